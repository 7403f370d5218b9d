/*
 * Uses the sockets API for SCTP as a program for the kernel would, with both ends in one process on the loopback
 * address. Run over the preload library by preload.rs. The first thing that is not as it should be ends it with its line.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <linux/sctp.h>

#define CHECK(what) do { if (!(what)) { \
	printf("line %d: %s (errno %d, %s)\n", __LINE__, #what, errno, strerror(errno)); exit(1); } } while (0)

static struct sockaddr_in loopback(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static void subscribe(int fd)
{
	struct sctp_event_subscribe e;
	memset(&e, 0, sizeof e);
	e.sctp_data_io_event = e.sctp_association_event = e.sctp_shutdown_event = 1;
	CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENTS, &e, sizeof e) == 0);
}

/* Reads one piece; what stands beside it goes to info, the flags of the message to flags. */
static ssize_t get(int fd, void *b, size_t n, struct sctp_sndrcvinfo *info, int *flags)
{
	char control[256];
	struct iovec v = { b, n };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t r = recvmsg(fd, &m, 0);
	*flags = m.msg_flags;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); r >= 0 && c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_SNDRCV)
			memcpy(info, CMSG_DATA(c), sizeof *info);
	return r;
}

static void expect_change(int fd, int state)
{
	union { char raw[512]; struct sctp_assoc_change change; } b;
	struct sctp_sndrcvinfo info;
	int flags;
	CHECK(get(fd, &b, sizeof b, &info, &flags) == sizeof b.change);
	CHECK(flags & MSG_NOTIFICATION && b.change.sac_type == SCTP_ASSOC_CHANGE && b.change.sac_state == state);
}

static ssize_t put(int fd, const void *b, size_t n, int stream, int flags, const struct sockaddr_in *to)
{
	char control[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
	struct iovec v = { (void *)b, n };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct sctp_sndinfo s = { .snd_sid = stream, .snd_flags = flags, .snd_ppid = htonl(42) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = IPPROTO_SCTP;
	c->cmsg_type = SCTP_SNDINFO;
	c->cmsg_len = CMSG_LEN(sizeof s);
	memcpy(CMSG_DATA(c), &s, sizeof s);
	m.msg_name = (void *)to;
	m.msg_namelen = to ? sizeof *to : 0;
	return sendmsg(fd, &m, 0);
}

static void one_to_one(void)
{
	static char sent[5000], got[5000];
	struct sockaddr_in at = loopback(5001), peer;
	socklen_t len = sizeof peer, four = 4;
	struct sctp_sndrcvinfo info;
	int flags, error = 1;
	int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), a;
	CHECK(s >= 0 && c >= 0);
	subscribe(s);
	CHECK(bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, 4) == 0);
	CHECK(fcntl(s, F_SETFL, O_NONBLOCK) == 0 && accept(s, NULL, NULL) == -1 && errno == EAGAIN);
	CHECK(fcntl(c, F_SETFL, O_NONBLOCK) == 0);
	CHECK(connect(c, (struct sockaddr *)&at, sizeof at) == 0 || errno == EINPROGRESS);
	struct pollfd p = { c, POLLOUT, 0 };
	CHECK(poll(&p, 1, 5000) == 1 && p.revents == POLLOUT);
	CHECK(getsockopt(c, SOL_SOCKET, SO_ERROR, &error, &four) == 0 && error == 0);
	CHECK(connect(c, (struct sockaddr *)&at, sizeof at) == -1 && errno == EISCONN);
	a = accept(s, (struct sockaddr *)&peer, &len);
	CHECK(a >= 0 && len == sizeof peer && peer.sin_family == AF_INET && peer.sin_addr.s_addr == at.sin_addr.s_addr);
	expect_change(a, SCTP_COMM_UP);
	struct sctp_status st;
	len = sizeof st;
	memset(&st, 0, sizeof st);
	CHECK(getsockopt(a, IPPROTO_SCTP, SCTP_STATUS, &st, &len) == 0 && len == sizeof st);
	/* What belongs to one association, and what a socket of one has not. */
	struct sctp_assoc_value most = { 0, 0 };
	len = sizeof most;
	CHECK(getsockopt(a, IPPROTO_SCTP, SCTP_MAXSEG, &most, &len) == 0 && most.assoc_value == st.sstat_fragmentation_point);
	struct sctp_prim prim;
	memset(&prim, 0, sizeof prim);
	len = sizeof prim;
	CHECK(getsockopt(a, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &prim, &len) == 0 && len == sizeof prim);
	struct sockaddr_in first;
	memcpy(&first, &prim.ssp_addr, sizeof first);
	CHECK(first.sin_family == AF_INET && first.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	int one = 1;
	len = sizeof one;
	CHECK(getsockopt(a, IPPROTO_SCTP, SCTP_GET_ASSOC_NUMBER, &one, &len) == -1 && errno == EOPNOTSUPP);
	CHECK(setsockopt(a, IPPROTO_SCTP, SCTP_AUTOCLOSE, &one, sizeof one) == -1 && errno == EOPNOTSUPP);
	CHECK(st.sstat_state == SCTP_ESTABLISHED && st.sstat_outstrms >= 4 && st.sstat_primary.spinfo_state == SCTP_ACTIVE);
	/* A message of several packets, read in two pieces. */
	for (size_t i = 0; i < sizeof sent; i++)
		sent[i] = i * 7;
	CHECK(put(c, sent, sizeof sent, 3, SCTP_UNORDERED, NULL) == sizeof sent);
	CHECK(get(a, got, 2000, &info, &flags) == 2000 && !(flags & MSG_EOR));
	CHECK(info.sinfo_stream == 3 && info.sinfo_flags == SCTP_UNORDERED && info.sinfo_ppid == htonl(42));
	CHECK(get(a, got + 2000, sizeof got - 2000, &info, &flags) == 3000 && flags & MSG_EOR);
	CHECK(memcmp(sent, got, sizeof got) == 0);
	CHECK(send(a, "back", 4, 0) == 4 && recv(c, got, sizeof got, 0) == 4 && memcmp(got, "back", 4) == 0);
	CHECK(recv(c, got, sizeof got, 0) == -1 && errno == EAGAIN);
	/* A stream that the peer does not have. */
	CHECK(put(c, "x", 1, 60000, 0, NULL) == -1 && errno == EINVAL);
	/* The end. */
	CHECK(shutdown(c, SHUT_WR) == 0);
	struct sctp_shutdown_event gone;
	CHECK(get(a, &gone, sizeof gone, &info, &flags) == sizeof gone && gone.sse_type == SCTP_SHUTDOWN_EVENT);
	expect_change(a, SCTP_SHUTDOWN_COMP);
	CHECK(recv(a, got, sizeof got, 0) == 0 && recv(c, got, sizeof got, 0) == 0);
	CHECK(send(c, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	CHECK(close(a) == 0 && close(c) == 0 && close(s) == 0 && close(s) == -1);
}

static void one_to_many(void)
{
	char b[100];
	struct sockaddr_in at = loopback(5002), from;
	socklen_t len = sizeof from;
	struct sctp_sndrcvinfo info;
	int flags, s = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), c = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	subscribe(s);
	CHECK(bind(s, (struct sockaddr *)&at, sizeof at) == 0 && listen(s, 1) == 0);
	/* The first message begins the association. */
	CHECK(put(c, "hello", 5, 1, 0, &at) == 5);
	expect_change(s, SCTP_COMM_UP);
	CHECK(get(s, b, sizeof b, &info, &flags) == 5 && memcmp(b, "hello", 5) == 0 && info.sinfo_stream == 1);
	sctp_peeloff_arg_t peel = { info.sinfo_assoc_id, -1 };
	socklen_t peel_len = sizeof peel;
	CHECK(getsockopt(s, IPPROTO_SCTP, SCTP_SOCKOPT_PEELOFF, &peel, &peel_len) >= 0 && peel.sd >= 0);
	CHECK(put(c, "again", 5, 0, 0, &at) == 5);
	CHECK(recvfrom(peel.sd, b, sizeof b, 0, (struct sockaddr *)&from, &len) == 5 && memcmp(b, "again", 5) == 0);
	/* An abort reaches the peeled off socket as an error. */
	CHECK(put(c, "why", 3, 0, SCTP_ABORT, &at) == 3);
	expect_change(peel.sd, SCTP_COMM_LOST);
	CHECK(recv(peel.sd, b, sizeof b, 0) == -1 && errno == ECONNRESET);
	CHECK(close(peel.sd) == 0 && close(c) == 0 && close(s) == 0);
}

/* No peer answers: the time until that is known passes at once where time is virtual. */
static void no_peer(void)
{
	struct sockaddr_in at = loopback(5003);
	struct timespec before, after;
	struct sctp_initmsg i = { .sinit_max_attempts = 2 };
	int c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_INITMSG, &i, sizeof i) == 0);
	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK(connect(c, (struct sockaddr *)&at, sizeof at) == -1 && errno == ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &after);
	/* RTO.Initial, doubled twice. */
	CHECK(after.tv_sec - before.tv_sec == 7);
	sleep(3600);
	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK(before.tv_sec - after.tv_sec == 3600);
	CHECK(close(c) == 0);
}

int main(void)
{
	one_to_one();
	one_to_many();
	no_peer();
	puts("all as it should be");
	return 0;
}
