/*
 * Corners that programs for the kernel's SCTP get into: both ends in one process, real packets on loopback. Run over the
 * preload library by corners.rs, one of the ways below by name.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sctp.h>

#define CHECK(what) do { if (!(what)) { \
	printf("line %d: %s (errno %d, %s)\n", __LINE__, #what, errno, strerror(errno)); exit(1); } } while (0)

static char buffer[1 << 20];

static struct sockaddr_in loopback(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static int listening(int style, int port)
{
	struct sockaddr_in a = loopback(port);
	int s = socket(AF_INET, style, IPPROTO_SCTP);
	CHECK(s >= 0 && bind(s, (struct sockaddr *)&a, sizeof a) == 0 && listen(s, 8) == 0);
	return s;
}

/* The two ends of an association; buffers of this size, if any. */
static void couple(int port, int size, int *c, int *a)
{
	struct sockaddr_in at = loopback(port);
	int s = listening(SOCK_STREAM, port);
	*c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	if (size) {
		CHECK(setsockopt(*c, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
		CHECK(setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) == 0);
	}
	CHECK(connect(*c, (struct sockaddr *)&at, sizeof at) == 0);
	CHECK((*a = accept(s, NULL, NULL)) >= 0 && close(s) == 0);
}

static void nap(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	while (nanosleep(&t, &t) != 0)
		;
}

static void no_waiting(int fd)
{
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
}

/* Edges: what comes after a call had nothing to give, and before the next wait, has one of its own. */
static void edges(void)
{
	int c, a, e = epoll_create1(0);
	struct epoll_event want = { EPOLLIN | EPOLLET, { 0 } }, got;
	couple(6001, 0, &c, &a);
	no_waiting(a);
	CHECK(epoll_ctl(e, EPOLL_CTL_ADD, a, &want) == 0);
	CHECK(send(c, "1", 1, 0) == 1 && epoll_wait(e, &got, 1, 5000) == 1 && recv(a, buffer, 10, 0) == 1);
	CHECK(recv(a, buffer, 10, 0) == -1 && errno == EAGAIN);
	CHECK(send(c, "2", 1, 0) == 1);
	nap(200);
	CHECK(epoll_wait(e, &got, 1, 5000) == 1 && got.events & EPOLLIN && recv(a, buffer, 10, 0) == 1);
	/* Also for who does not try in vain. */
	CHECK(send(c, "3", 1, 0) == 1);
	nap(200);
	CHECK(epoll_wait(e, &got, 1, 5000) == 1 && recv(a, buffer, 10, 0) == 1 && buffer[0] == '3');
	CHECK(epoll_wait(e, &got, 1, 0) == 0);
	CHECK(close(c) == 0 && close(a) == 0 && close(e) == 0);
}

/* Likewise for room to send. */
static void room(void)
{
	int c, a, e = epoll_create1(0);
	struct epoll_event want = { EPOLLOUT | EPOLLET, { 0 } }, got;
	couple(6002, 20000, &c, &a);
	no_waiting(c);
	no_waiting(a);
	CHECK(epoll_ctl(e, EPOLL_CTL_ADD, c, &want) == 0 && epoll_wait(e, &got, 1, 5000) == 1);
	/* Messages of more than half the buffer, which has room for one and not for two. */
	for (int size = 3000; size <= 30000; size *= 10) {
		int sent = 0, read = 0, idle = 0;
		while (send(c, buffer, size, 0) == size)
			CHECK(++sent < 1000);
		CHECK(errno == EAGAIN && sent > 0);
		while (read < sent * size && idle < 200) {
			ssize_t n = recv(a, buffer, sizeof buffer, 0);
			if (n > 0) {
				read += n;
				idle = 0;
			} else {
				nap(10);
				idle++;
			}
		}
		CHECK(read == sent * size);
		nap(300);
		CHECK(epoll_wait(e, &got, 1, 5000) == 1 && got.events & EPOLLOUT && send(c, buffer, size, 0) == size);
		while (epoll_wait(e, &got, 1, 100) == 1)
			;
		for (read = 0; read < size && idle < 400; idle++) {
			ssize_t n = recv(a, buffer, sizeof buffer, 0);
			if (n > 0)
				read += n;
			else
				nap(10);
		}
		CHECK(read == size);
	}
	CHECK(close(c) == 0 && close(a) == 0);
}

static void *stuffs(void *fd)
{
	while (send(*(int *)fd, buffer, 30000, MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

/* A call that waits for room for a large message does nothing meanwhile. */
static void idle(void)
{
	int c, a;
	pthread_t thread;
	struct timespec before, after;
	couple(6003, 20000, &c, &a);
	CHECK(pthread_create(&thread, NULL, stuffs, &c) == 0);
	nap(500);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	nap(1000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	long ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
	if (ms > 100)
		printf("%ld ms of work\n", ms);
	CHECK(ms <= 100 && pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
}

static void *waits(void *fd)
{
	/* In one call or between two: messages come all the time. */
	for (;;)
		recv(*(int *)fd, buffer, 10, 0);
	return NULL;
}

static void cancel(void)
{
	int c, a;
	couple(6004, 0, &c, &a);
	for (int i = 0; i < 400; i++) {
		pthread_t thread;
		void *how = NULL;
		struct timespec limit;
		CHECK(pthread_create(&thread, NULL, waits, &a) == 0);
		for (int k = 0; k < i % 40; k++)
			sched_yield();
		CHECK(send(c, "x", 1, 0) == 1 && pthread_cancel(thread) == 0 && send(c, "x", 1, 0) == 1);
		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec += 5;
		CHECK((errno = pthread_timedjoin_np(thread, &how, &limit)) == 0 && how == PTHREAD_CANCELED);
		while (recv(a, buffer, 10, MSG_DONTWAIT) > 0)
			;
	}
}

static volatile int counted;

static void *counts(void *fd)
{
	for (;;)
		if (recv(*(int *)fd, buffer, 10, 0) == 1)
			counted++;
	return NULL;
}

/* A thread that is cancelled takes no message with it that its call has read. */
static void lost(void)
{
	int c, a, one = 1, sent = 0;
	couple(6017, 0, &c, &a);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_NODELAY, &one, sizeof one) == 0);
	for (int i = 0; i < 500; i++) {
		pthread_t thread;
		CHECK(pthread_create(&thread, NULL, counts, &a) == 0);
		for (int k = 0; k < 10 + i % 10; k++, sent++)
			CHECK(send(c, "x", 1, 0) == 1);
		CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, NULL) == 0);
		struct pollfd p = { a, POLLIN, 0 };
		while (counted < sent && poll(&p, 1, 5000) == 1 && recv(a, buffer, 10, MSG_DONTWAIT) == 1)
			counted++;
		CHECK(counted == sent);
	}
}

static void *counts_several(void *fd)
{
	struct iovec v[4];
	struct mmsghdr m[4];
	char rooms[4][8];
	memset(m, 0, sizeof m);
	for (int i = 0; i < 4; i++) {
		v[i] = (struct iovec){ rooms[i], sizeof rooms[i] };
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	for (;;) {
		int n = recvmmsg(*(int *)fd, m, 4, 0, NULL);
		if (n > 0)
			counted += n;
	}
	return NULL;
}

/* Likewise for those that a call has read while it waits for more. */
static void lost_of_several(void)
{
	int c, a, one = 1, sent = 0;
	couple(6018, 0, &c, &a);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_NODELAY, &one, sizeof one) == 0);
	for (int i = 0; i < 100; i++) {
		pthread_t thread;
		struct timespec limit;
		CHECK(pthread_create(&thread, NULL, counts_several, &a) == 0);
		for (int k = 0; k < 5 + i % 4; k++, sent++)
			CHECK(send(c, "x", 1, 0) == 1);
		nap(2);
		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec += 5;
		CHECK(pthread_cancel(thread) == 0 && (errno = pthread_timedjoin_np(thread, NULL, &limit)) == 0);
		struct pollfd p = { a, POLLIN, 0 };
		while (counted < sent && poll(&p, 1, 1000) == 1 && recv(a, buffer, 10, MSG_DONTWAIT) == 1)
			counted++;
		CHECK(counted == sent);
	}
}

/* select looks at no more of a set than the kernel does, and the kernel at no more than there are descriptors. */
static void selected(void)
{
	int c, a;
	long page = sysconf(_SC_PAGESIZE);
	char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(two != MAP_FAILED && mprotect(two + page, page, PROT_NONE) == 0);
	fd_set *set = (fd_set *)(two + page - sizeof(fd_set));
	int (*any)(int, fd_set *, fd_set *, fd_set *, struct timeval *) = select;
	struct timeval limit = { 5, 0 };
	couple(6005, 0, &c, &a);
	FD_SET(a, set);
	CHECK(send(c, "x", 1, 0) == 1 && any(1000000, set, NULL, NULL, &limit) == 1 && FD_ISSET(a, set));
	CHECK(recv(a, buffer, 10, 0) == 1);
}

static void children(void)
{
	int c, a, status = -1;
	couple(6006, 0, &c, &a);
	int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);
	CHECK(own >= 0);
	/* What a child of vfork closes is its own. */
	pid_t child = vfork();
	if (child == 0) {
		close(a);
		dup2(0, c);
		for (int fd = 3; fd < 1100; fd++)
			close(fd);
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == 1 && recv(a, buffer, 10, 0) == 1);
	/* One of fork inherits what is closed by exec, and what is not. */
	if ((child = fork()) == 0)
		_exit(fcntl(own, F_GETFD) == FD_CLOEXEC && fcntl(a, F_GETFD) == 0 ? 0 : 1);
	CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
	/* A descriptor is replaced when there is another one. */
	CHECK(dup2(999, a) == -1 && errno == EBADF && dup3(c, a, 1) == -1 && errno == EINVAL);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == 1 && recv(a, buffer, 10, 0) == 1);
	CHECK(close(own) == 0);
}

/* A child of a thread that has used a socket uses its own. */
static void forked(void)
{
	struct sockaddr_in at = loopback(6019);
	int c, a, status = -1;
	couple(6020, 0, &c, &a);
	CHECK(send(c, "x", 1, 0) == 1 && recv(a, buffer, 10, 0) == 1);
	int s = listening(SOCK_STREAM, 6019);
	pid_t child = fork();
	if (child == 0) {
		alarm(20);
		CHECK((c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)) >= 0);
		CHECK(connect(c, (struct sockaddr *)&at, sizeof at) == 0 && send(c, "abc", 3, 0) == 3);
		CHECK(recv(c, buffer, 10, 0) == 3 && buffer[2] == 'c' && close(c) == 0);
		_exit(0);
	}
	struct pollfd p = { s, POLLIN, 0 };
	CHECK(child > 0 && poll(&p, 1, 10000) == 1 && (a = accept(s, NULL, NULL)) >= 0);
	CHECK(recv(a, buffer, 10, 0) == 3 && send(a, buffer, 3, 0) == 3);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* A program that closes all there is closes its own. */
static void closes(void)
{
	int c, a;
	couple(6007, 0, &c, &a);
	for (int fd = 3; fd < 20000; fd++)
		if (fd != c && fd != a)
			close(fd);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == 1 && recv(a, buffer, 10, 0) == 1);
	CHECK(close_range(a + 1, ~0u, 0) == 0);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == 1 && recv(a, buffer, 10, 0) == 1);
	struct pollfd p = { c, POLLIN, 0 };
	CHECK(close_range(a, a, 0) == 0 && poll(&p, 1, 5000) == 1 && recv(c, buffer, 10, 0) == 0);
	CHECK(close_range(3, ~0u, 0) == 0 && send(c, "x", 1, MSG_NOSIGNAL) == -1 && errno == EBADF);
	couple(6007, 0, &c, &a);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == 1 && recv(a, buffer, 10, 0) == 1);
}

/* As on a kernel from before the call, and what no kernel has. */
static void refused(void)
{
	struct sock_filter all[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof all / sizeof *all, all };
	int c, a, n;
	couple(6021, 0, &c, &a);
	CHECK(close_range(3, ~0u, 1 << 10) == -1 && errno == EINVAL);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == 1 && recv(a, buffer, 10, 0) == 1);
	CHECK(ioctl(c, TIOCOUTQ, &n) == -1 && errno == ENOTTY);
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
	CHECK(close_range(3, ~0u, 0) == -1 && errno == ENOSYS);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == 1 && recv(a, buffer, 10, 0) == 1);
	closefrom(3);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == -1 && errno == EBADF && fcntl(a, F_GETFD) == -1 && errno == EBADF);
	couple(6021, 0, &c, &a);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == 1 && recv(a, buffer, 10, 0) == 1);
}

static void connects(void)
{
	struct sockaddr_in at = loopback(6008);
	sctp_assoc_t id = -1;
	struct { sctp_assoc_t id; int length; struct sockaddr *list; } by = { 0, sizeof at, (struct sockaddr *)&at };
	socklen_t len = sizeof by;
	int s = listening(SOCK_SEQPACKET, 6008), c = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	no_waiting(c);
	/* Under way, and by which association. */
	CHECK(getsockopt(c, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX3, &by, &len) == -1 && errno == EINPROGRESS);
	CHECK(by.id > 0 && len == sizeof id);
	struct sctp_status st = { .sstat_assoc_id = by.id };
	for (int i = 0; i < 500 && st.sstat_state != SCTP_ESTABLISHED; i++) {
		nap(10);
		st.sstat_assoc_id = by.id;
		len = sizeof st;
		CHECK(getsockopt(c, IPPROTO_SCTP, SCTP_STATUS, &st, &len) == 0);
	}
	CHECK(st.sstat_state == SCTP_ESTABLISHED && close(c) == 0);
	/* The oldest form answers no id, the next one does. */
	for (int old = 0; old < 2; old++) {
		int option = old ? SCTP_SOCKOPT_CONNECTX_OLD : SCTP_SOCKOPT_CONNECTX;
		CHECK((c = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP)) >= 0);
		int r = setsockopt(c, IPPROTO_SCTP, option, &at, sizeof at);
		CHECK((old ? r == 0 : r > 0) && close(c) == 0);
	}
	CHECK(close(s) == 0);
}

/* That an association is over is nothing to read unless the program asked for notifications. */
static void ended(void)
{
	struct sockaddr_in at = loopback(6009);
	int s = listening(SOCK_SEQPACKET, 6009), c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	struct pollfd p = { s, POLLIN, 0 };
	struct linger at_once = { 1, 0 };
	CHECK(connect(c, (struct sockaddr *)&at, sizeof at) == 0);
	CHECK(setsockopt(c, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0 && close(c) == 0);
	nap(300);
	CHECK(poll(&p, 1, 300) == 0 && recv(s, buffer, 10, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	/* What was sent before the end is. */
	CHECK((c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP)) >= 0);
	CHECK(connect(c, (struct sockaddr *)&at, sizeof at) == 0 && send(c, "x", 1, 0) == 1 && close(c) == 0);
	nap(300);
	CHECK(poll(&p, 1, 5000) == 1 && recv(s, buffer, 10, MSG_DONTWAIT) == 1);
	CHECK(poll(&p, 1, 300) == 0 && recv(s, buffer, 10, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(close(s) == 0);
}

static int watched;
static volatile sig_atomic_t handled;

static void calls(int number)
{
	int before = errno;
	char b[10];
	(void)number;
	recv(watched, b, sizeof b, MSG_DONTWAIT | MSG_PEEK);
	handled++;
	errno = before;
}

/* A handler that uses the socket which its own thread is at work on. */
static void handler(void)
{
	int c, a;
	struct sigaction action = { .sa_handler = calls, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
	int one = 1;
	couple(6010, 0, &c, &a);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_NODELAY, &one, sizeof one) == 0);
	watched = c;
	CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
	for (int i = 0; i < 5000; i++) {
		ssize_t n;
		while ((n = send(c, "x", 1, 0)) == -1 && errno == EINTR)
			;
		CHECK(n == 1);
		while ((n = recv(a, buffer, 10, 0)) == -1 && errno == EINTR)
			;
		CHECK(n == 1);
	}
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0 && handled > 50);
}

static volatile pid_t reader;

static void *recvs(void *fd)
{
	reader = gettid();
	ssize_t n = recv(*(int *)fd, buffer, 10, 0);
	return (void *)(long)(n == -1 ? errno : 0);
}

/* Until the thread that reads has slept for some time. */
static void asleep(void)
{
	char path[64], state[200];
	for (int slept = 0; slept < 5; nap(1)) {
		snprintf(path, sizeof path, "/proc/self/task/%d/stat", reader);
		FILE *f = reader ? fopen(path, "r") : NULL;
		int there = f && fgets(state, sizeof state, f);
		slept = there && strstr(state, ") S ") ? slept + 1 : 0;
		if (f)
			fclose(f);
	}
}

/* Who waits on a socket does not go on at another one of the same number. */
static void again(void)
{
	for (int i = 0; i < 100; i++) {
		int s = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), other;
		pthread_t thread;
		void *how = NULL;
		struct timespec limit;
		reader = 0;
		CHECK(pthread_create(&thread, NULL, recvs, &s) == 0);
		asleep();
		CHECK(close(s) == 0 && (other = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP)) == s);
		clock_gettime(CLOCK_REALTIME, &limit);
		limit.tv_sec += 5;
		CHECK((errno = pthread_timedjoin_np(thread, &how, &limit)) == 0);
		CHECK((long)how == EBADF && close(other) == 0);
	}
}

static int refuse;

int pthread_create(pthread_t *t, const pthread_attr_t *with, void *(*f)(void *), void *of)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
	return refuse ? EAGAIN : real(t, with, f, of);
}

/* A process that may have no more threads at first. */
static void threads(void)
{
	int c, a;
	refuse = 1;
	CHECK(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP) == -1 && errno == EAGAIN);
	refuse = 0;
	couple(6011, 0, &c, &a);
	CHECK(send(c, "x", 1, 0) == 1 && recv(a, buffer, 10, 0) == 1);
}

static void several(void)
{
	int c, a;
	struct mmsghdr m[4];
	struct iovec v[4];
	char rooms[4][8];
	int one = 1;
	couple(6012, 0, &c, &a);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_NODELAY, &one, sizeof one) == 0);
	memset(m, 0, sizeof m);
	for (int i = 0; i < 4; i++) {
		v[i] = (struct iovec){ "abcd", i + 1 };
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	CHECK(sendmmsg(c, m, 3, 0) == 3 && m[0].msg_len == 1 && m[2].msg_len == 3);
	nap(200);
	for (int i = 0; i < 4; i++)
		v[i] = (struct iovec){ rooms[i], sizeof rooms[i] };
	/* What is there, without waiting for the fourth. */
	CHECK(recvmmsg(a, m, 4, MSG_WAITFORONE, NULL) == 3 && m[0].msg_len == 1 && m[2].msg_len == 3);
	CHECK(memcmp(rooms[2], "abc", 3) == 0 && m[2].msg_hdr.msg_flags & MSG_EOR);
	CHECK(recvmmsg(a, m, 4, MSG_DONTWAIT, NULL) == -1 && errno == EAGAIN);
	/* The limit is looked at after each message. */
	struct timespec none = { 0, 0 }, wrong = { 0, 1000000000 }, more = { 5, 0 };
	CHECK(sendmmsg(c, m, 0, 0) == 0 && recvmmsg(a, m, 4, 0, &wrong) == -1 && errno == EINVAL);
	CHECK(send(c, "x", 1, 0) == 1 && send(c, "y", 1, 0) == 1);
	CHECK(recvmmsg(a, m, 4, 0, &none) == 1 && recvmmsg(a, m, 1, 0, &more) == 1 && more.tv_sec == 4);
	/* An error after messages is reported by the next call. */
	struct linger at_once = { 1, 0 };
	CHECK(send(c, "x", 1, 0) == 1);
	nap(200);
	CHECK(setsockopt(c, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0 && close(c) == 0);
	nap(200);
	CHECK(recvmmsg(a, m, 4, 0, NULL) == 1 && recvmmsg(a, m, 4, 0, NULL) == -1 && errno == ECONNRESET);
}

static void lengths(void)
{
	int c, a, value = -1;
	socklen_t negative = -1, huge = 0x7fffffff;
	couple(6013, 0, &c, &a);
	CHECK(getsockopt(c, SOL_SOCKET, SO_ERROR, &value, &negative) == -1 && errno == EINVAL);
	CHECK(getsockopt(c, SOL_SOCKET, SO_ERROR, &value, &huge) == 0 && huge == sizeof value && value == 0);
	huge = 0x7fffffff;
	CHECK(getsockopt(c, IPPROTO_SCTP, SCTP_NODELAY, &value, &huge) == 0 && huge == sizeof value);
	value = 1;
	CHECK(setsockopt(c, SOL_SOCKET, SO_REUSEADDR, &value, -1) == -1 && errno == EINVAL);
	CHECK(setsockopt(c, SOL_SOCKET, SO_REUSEADDR, &value, 0x7fffffff) == 0);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_NODELAY, &value, -1) == -1 && errno == EINVAL);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_NODELAY, &value, 0x7fffffff) == -1 && errno == ENOMEM);
}

/* Room on a socket of many associations: none until the message that was refused has some. */
static void room_of_many(void)
{
	struct sockaddr_in at = loopback(6015);
	int size = 20000, one = 1, s = listening(SOCK_SEQPACKET, 6015), c = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	CHECK(close(s) == 0 && (s = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP)) >= 0);
	CHECK(setsockopt(s, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) == 0);
	CHECK(setsockopt(c, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) == 0);
	CHECK(bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, 1) == 0);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_NODELAY, &one, sizeof one) == 0);
	struct pollfd p = { c, POLLOUT, 0 };
	CHECK(poll(&p, 1, 0) == 1 && sendto(c, buffer, 1000, 0, (struct sockaddr *)&at, sizeof at) == 1000);
	no_waiting(c);
	int sent = 1;
	while (sendto(c, buffer, 1000, 0, (struct sockaddr *)&at, sizeof at) == 1000)
		CHECK(++sent < 1000);
	CHECK(errno == EAGAIN);
	nap(300);
	/* The peer has taken what it has room for by now. */
	while (sendto(c, buffer, 1000, 0, (struct sockaddr *)&at, sizeof at) == 1000)
		CHECK(++sent < 1000);
	CHECK(errno == EAGAIN && poll(&p, 1, 100) == 0);
	for (int i = 0; i < sent; i++)
		CHECK(recv(s, buffer, sizeof buffer, 0) == 1000);
	CHECK(poll(&p, 1, 5000) == 1 && sendto(c, buffer, 1000, 0, (struct sockaddr *)&at, sizeof at) == 1000);
}

/* What is there to be read goes with the association to its own socket, also what was looked at already. */
static void peeled(void)
{
	struct sockaddr_in at = loopback(6016), short_one = at;
	int on = 1, n = -1, s = listening(SOCK_SEQPACKET, 6016), c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	struct sctp_event_subscribe e = { .sctp_data_io_event = 1 };
	char control[1000];
	struct iovec v = { buffer, 100 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_RECVNXTINFO, &on, sizeof on) == 0);
	CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_EVENTS, &e, sizeof e) == 0);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_NODELAY, &on, sizeof on) == 0);
	CHECK(connect(c, (struct sockaddr *)&at, sizeof at) == 0 && send(c, "one", 3, 0) == 3 && send(c, "other", 5, 0) == 5);
	nap(300);
	CHECK(ioctl(s, FIONREAD, &n) == 0 && n == 3);
	/* Room for one piece of two, and none for what fills it up. */
	m.msg_controllen = CMSG_SPACE(sizeof(struct sctp_sndrcvinfo)) + 8;
	CHECK(recvmsg(s, &m, 0) == 3 && m.msg_flags & MSG_CTRUNC);
	struct cmsghdr *first = CMSG_FIRSTHDR(&m);
	CHECK(first && first->cmsg_type == SCTP_SNDRCV && !CMSG_NXTHDR(&m, first));
	sctp_peeloff_arg_t peel = { ((struct sctp_sndrcvinfo *)CMSG_DATA(first))->sinfo_assoc_id, -1 };
	socklen_t len = sizeof peel;
	CHECK(getsockopt(s, IPPROTO_SCTP, SCTP_SOCKOPT_PEELOFF, &peel, &len) >= 0);
	CHECK(recv(peel.sd, buffer, 100, MSG_DONTWAIT) == 5 && recv(s, buffer, 100, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	/* An address that is none. */
	short_one.sin_family = 77;
	CHECK(sendto(s, "x", 1, 0, (struct sockaddr *)&short_one, sizeof short_one) == -1 && errno == EINVAL);
	CHECK(sendto(s, "x", 1, 0, (struct sockaddr *)&at, 8) == -1 && errno == EINVAL);
	/* Options that are only remembered. */
	unsigned point = 1 << 30;
	len = sizeof n;
	CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_PARTIAL_DELIVERY_POINT, &point, sizeof point) == -1 && errno == EINVAL);
	CHECK(setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) == 0);
	CHECK(getsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &n, &len) == 0 && n == 1);
	CHECK(close(c) == 0 && close(peel.sd) == 0 && close(s) == 0);
}

/* A packet of a hand-made peer: common header and one chunk. */
static void answer(int udp, const struct sockaddr_in *to, const unsigned char *got, unsigned tag, const void *chunk,
		   size_t n)
{
	unsigned char p[200] = { got[2], got[3], got[0], got[1] };
	unsigned sum = ~0u;
	memcpy(p + 4, &tag, 4);
	memcpy(p + 12, chunk, n);
	for (size_t i = 0; i < 12 + n; i++) {
		sum ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			sum = sum & 1 ? sum >> 1 ^ 0x82f63b78 : sum >> 1;
	}
	sum = ~sum;
	for (int i = 0; i < 4; i++)
		p[8 + i] = sum >> 8 * i;
	CHECK(sendto(udp, p, 12 + n, 0, (struct sockaddr *)to, sizeof *to) == (ssize_t)(12 + n));
}

/* What a peer reports is delivered, cause by cause, as it is on the wire. */
static void reported(void)
{
	static const unsigned char init_ack[28] = { 2, 0, 0, 28, 1, 2, 3, 4, 0, 1, 0, 0, 0, 10, 0, 10, 0, 0, 0, 1,
						    0, 7, 0, 8, 'c', 'o', 'o', 'k' };
	static const unsigned char cookie_ack[4] = { 11, 0, 0, 4 };
	static const unsigned char error[16] = { 9, 0, 0, 16, 0, 4, 0, 4, 0xab, 0xcd, 0, 8, 1, 2, 3, 4 };
	unsigned char got[2000];
	unsigned tag = 0;
	struct sockaddr_in at = loopback(0), from, peer = loopback(6014);
	socklen_t len = sizeof at;
	int udp = socket(AF_INET, SOCK_DGRAM, 0), c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(bind(udp, (struct sockaddr *)&at, len) == 0 && getsockname(udp, (struct sockaddr *)&at, &len) == 0);
	struct sctp_udpencaps over;
	memset(&over, 0, sizeof over);
	over.sue_port = at.sin_port;
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &over, sizeof over) == 0);
	struct sctp_event want = { .se_type = SCTP_REMOTE_ERROR, .se_on = 1 };
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_EVENT, &want, sizeof want) == 0);
	no_waiting(c);
	CHECK(connect(c, (struct sockaddr *)&peer, sizeof peer) == -1 && errno == EINPROGRESS);
	for (int step = 0; step < 2; step++) {
		struct pollfd p = { udp, POLLIN, 0 };
		len = sizeof from;
		CHECK(poll(&p, 1, 10000) == 1);
		CHECK(recvfrom(udp, got, sizeof got, 0, (struct sockaddr *)&from, &len) >= 20 && got[12] == (step ? 10 : 1));
		if (step == 0)
			memcpy(&tag, got + 16, 4);
		answer(udp, &from, got, tag, step ? cookie_ack : init_ack, step ? sizeof cookie_ack : sizeof init_ack);
	}
	answer(udp, &from, got, tag, error, sizeof error);
	for (int i = 0; i < 2; i++) {
		union sctp_notification *reported = (void *)buffer;
		struct iovec v = { buffer, sizeof buffer };
		struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
		struct pollfd p = { c, POLLIN, 0 };
		size_t value = i * 4, whole = sizeof(struct sctp_remote_error) + value;
		CHECK(poll(&p, 1, 10000) == 1 && recvmsg(c, &m, 0) == (ssize_t)whole && m.msg_flags & MSG_NOTIFICATION);
		CHECK(reported->sn_header.sn_type == SCTP_REMOTE_ERROR && reported->sn_remote_error.sre_length == whole);
		CHECK(reported->sn_remote_error.sre_error == htons(i ? 0xabcd : 4));
		CHECK(memcmp(reported->sn_remote_error.sre_data, "\1\2\3\4", value) == 0);
	}
	/* No peer would answer a SHUTDOWN. */
	struct linger at_once = { 1, 0 };
	CHECK(setsockopt(c, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0 && close(c) == 0 && close(udp) == 0);
}

int main(int n, char **arguments)
{
	static const struct { const char *name; void (*run)(void); } all[] = {
		{ "edges", edges }, { "room", room }, { "idle", idle }, { "cancel", cancel }, { "select", selected },
		{ "children", children }, { "closes", closes }, { "connects", connects }, { "ended", ended },
		{ "handler", handler }, { "again", again }, { "threads", threads }, { "several", several },
		{ "lengths", lengths }, { "reported", reported }, { "room-of-many", room_of_many },
		{ "peeled", peeled }, { "lost", lost },
		{ "lost-of-several", lost_of_several }, { "forked", forked },
		{ "refused", refused },
	};
	CHECK(n == 2);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i].name, arguments[1])) {
			all[i].run();
			puts("as it should be");
			return 0;
		}
	return 2;
}
