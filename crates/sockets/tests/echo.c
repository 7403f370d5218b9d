/*
 * An echo server and its client over real packets, each in a process of its own, that wait in one of the ways in which
 * programs wait. Run over the preload library by real.rs.
 *
 *   echo server PORT WAY       serves one association, says how many messages it echoed
 *   echo client PORT WAY       sends messages of all sizes and compares what comes back
 *   echo fork PORT -           what a child of fork sees of its parent's sockets
 *   echo cancel PORT -         a thread that waits is cancelled
 *   echo quick PORT -          sends and ends at once; the message has to arrive all the same
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/sctp.h>

#define CHECK(what) do { if (!(what)) { \
	printf("line %d: %s (errno %d, %s)\n", __LINE__, #what, errno, strerror(errno)); exit(1); } } while (0)

#define MESSAGES 300
#define LARGEST 60000

static const char *way;
static char buffer[LARGEST];

static int waits(void)
{
	return strcmp(way, "block") != 0;
}

/* Waits until fd can be read, or written. */
static void ready(int fd, int to_write)
{
	if (!strcmp(way, "poll")) {
		struct pollfd p = { fd, to_write ? POLLOUT : POLLIN, 0 };
		CHECK(poll(&p, 1, 10000) == 1 && p.revents & p.events);
	} else if (!strcmp(way, "select")) {
		fd_set set;
		struct timeval limit = { 10, 0 };
		FD_ZERO(&set);
		FD_SET(fd, &set);
		CHECK(select(fd + 1, to_write ? NULL : &set, to_write ? &set : NULL, NULL, &limit) == 1 && FD_ISSET(fd, &set));
	} else if (!strcmp(way, "epoll") || !strcmp(way, "edge")) {
		static int e = -1, known[1024];
		struct epoll_event want = { to_write ? EPOLLOUT : EPOLLIN, { .fd = fd } }, got;
		if (!strcmp(way, "edge"))
			want.events |= EPOLLET;
		if (e < 0)
			CHECK((e = epoll_create1(0)) >= 0);
		CHECK(epoll_ctl(e, known[fd]++ ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &want) == 0);
		CHECK(epoll_wait(e, &got, 1, 10000) == 1 && got.data.fd == fd && got.events & want.events);
	}
}

static struct sockaddr_in address(const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static void no_waiting(int fd)
{
	if (waits())
		CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
}

static void put(int fd, const char *b, size_t n)
{
	for (;;) {
		ssize_t r = send(fd, b, n, MSG_NOSIGNAL);
		if (r >= 0) {
			CHECK((size_t)r == n);
			return;
		}
		CHECK(errno == EAGAIN && waits());
		ready(fd, 1);
	}
}

/* The next message whole, or nothing at the end. */
static ssize_t get(int fd, char *b, size_t room)
{
	size_t n = 0;
	for (;;) {
		struct iovec v = { b + n, room - n };
		struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
		ssize_t r = recvmsg(fd, &m, 0);
		if (r < 0) {
			CHECK(errno == EAGAIN && waits());
			ready(fd, 0);
			continue;
		}
		n += r;
		if (r == 0 || m.msg_flags & MSG_EOR)
			return n;
	}
}

static void server(const char *port)
{
	struct sockaddr_in at = address(port);
	int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), a, served = 0;
	ssize_t n;
	CHECK(s >= 0 && bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, 5) == 0);
	no_waiting(s);
	puts("listening");
	fflush(stdout);
	if (waits())
		ready(s, 0);
	CHECK((a = accept(s, NULL, NULL)) >= 0);
	no_waiting(a);
	while ((n = get(a, buffer, sizeof buffer)) > 0) {
		served++;
		/* An answer that is not read would make the close an abort. */
		if (n != 14 || memcmp(buffer, "the last words", 14))
			put(a, buffer, n);
	}
	CHECK(n == 0 && close(a) == 0 && close(s) == 0);
	printf("served %d\n", served);
}

static size_t size_of(int i)
{
	return 1 + (size_t)i * i * 7919 % (LARGEST - 1);
}

static int connected(const char *port)
{
	struct sockaddr_in at = address(port);
	socklen_t four = 4;
	int error = -1, lowest = dup(0);
	CHECK(lowest >= 0 && close(lowest) == 0);
	int c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	/* The number that it would have without the library's own descriptors. */
	CHECK(c == lowest);
	no_waiting(c);
	if (!waits()) {
		CHECK(connect(c, (struct sockaddr *)&at, sizeof at) == 0);
		return c;
	}
	CHECK(connect(c, (struct sockaddr *)&at, sizeof at) == 0 || errno == EINPROGRESS);
	ready(c, 1);
	CHECK(getsockopt(c, SOL_SOCKET, SO_ERROR, &error, &four) == 0 && error == 0);
	return c;
}

static void client(const char *port)
{
	static char sent[LARGEST];
	int c = connected(port);
	/* An epoll set would keep the first descriptor, as the kernel has it. */
	if (!waits()) {
		int again = dup(c);
		CHECK(again >= 0 && close(c) == 0);
		c = again;
	}
	/* More than the buffers of both ends take while neither reads would stop both: eight at a time. */
	for (int i = 0; i < MESSAGES; i += 8) {
		int last = i + 8 < MESSAGES ? i + 8 : MESSAGES;
		for (int k = i; k < last; k++) {
			memset(sent, k, size_of(k));
			put(c, sent, size_of(k));
		}
		for (int k = i; k < last; k++) {
			memset(sent, k, size_of(k));
			CHECK(get(c, buffer, sizeof buffer) == (ssize_t)size_of(k) && memcmp(buffer, sent, size_of(k)) == 0);
		}
	}
	CHECK(shutdown(c, SHUT_WR) == 0 && get(c, buffer, sizeof buffer) == 0 && close(c) == 0);
	printf("echoed %d\n", MESSAGES);
}

static void forked(const char *port)
{
	int c = connected(port), status = -1;
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		/* The peer is gone, as far as the child can see. */
		int own = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
		signal(SIGPIPE, SIG_IGN);
		_exit(read(c, buffer, 1) == 0 && write(c, "x", 1) == -1 && errno == EPIPE && own >= 0 && own != c ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	put(c, "still here", 10);
	CHECK(get(c, buffer, sizeof buffer) == 10 && close(c) == 0);
	puts("the parent goes on");
}

static void *reader(void *fd)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	recv(*(int *)fd, buffer, sizeof buffer, 0);
	return NULL;
}

static void nothing(int number)
{
	(void)number;
}

static void cancelled(const char *port)
{
	int c = connected(port);
	void *how = NULL;
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, reader, &c) == 0);
	usleep(200000);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &how) == 0 && how == PTHREAD_CANCELED);
	/* A signal ends a wait too, where its handler does not restart calls. */
	struct sigaction action = { .sa_handler = nothing };
	sigaction(SIGALRM, &action, NULL);
	alarm(1);
	CHECK(recv(c, buffer, sizeof buffer, 0) == -1 && errno == EINTR);
	put(c, "still here", 10);
	CHECK(get(c, buffer, sizeof buffer) == 10 && close(c) == 0);
	puts("no call hangs");
}

int main(int n, char **arguments)
{
	CHECK(n == 4);
	way = arguments[3];
	if (!strcmp(arguments[1], "server")) {
		server(arguments[2]);
	} else if (!strcmp(arguments[1], "client")) {
		client(arguments[2]);
	} else if (!strcmp(arguments[1], "fork")) {
		way = "block";
		forked(arguments[2]);
	} else if (!strcmp(arguments[1], "cancel")) {
		way = "block";
		cancelled(arguments[2]);
	} else {
		way = "block";
		put(connected(arguments[2]), "the last words", 14);
		puts("gone");
	}
	return 0;
}
