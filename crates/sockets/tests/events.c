/*
 * What a program hears of its messages and streams, and asks of an association that is up. Both ends in one process on
 * the loopback address; run over the preload library in virtual time by preload.rs.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <linux/sctp.h>

#define CHECK(what) do { if (!(what)) { \
	printf("line %d: %s (errno %d, %s)\n", __LINE__, #what, errno, strerror(errno)); exit(1); } } while (0)

static char buffer[100000];

static void want(int fd, int kind)
{
	struct sctp_event e = { .se_type = kind, .se_on = 1 };
	CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &e, sizeof e) == 0);
}

static void want_not(int fd, int kind)
{
	struct sctp_event e = { .se_type = kind, .se_on = 0 };
	CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_EVENT, &e, sizeof e) == 0);
}

static void set(int fd, int option, unsigned value)
{
	struct sctp_assoc_value v = { 0, value };
	CHECK(setsockopt(fd, IPPROTO_SCTP, option, &v, sizeof v) == 0);
}

static int state_of(int fd)
{
	struct sctp_status st;
	socklen_t len = sizeof st;
	memset(&st, 0, sizeof st);
	CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &st, &len) == 0);
	return st.sstat_state;
}

static struct sockaddr_in at(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static void extensions(int fd)
{
	set(fd, SCTP_RECONFIG_SUPPORTED, 1);
	set(fd, SCTP_ENABLE_STREAM_RESET, 7);
	set(fd, SCTP_AUTH_SUPPORTED, 1);
}

/* Two ends of one association. */
static void couple(int port, int *client, int *server)
{
	struct sockaddr_in a = at(port);
	int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	*client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	extensions(s);
	extensions(*client);
	CHECK(bind(s, (struct sockaddr *)&a, sizeof a) == 0 && listen(s, 4) == 0);
	CHECK(connect(*client, (struct sockaddr *)&a, sizeof a) == 0);
	CHECK((*server = accept(s, NULL, NULL)) >= 0 && close(s) == 0);
}

static ssize_t put(int fd, const void *b, size_t n, int stream, unsigned context)
{
	char control[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
	struct iovec v = { (void *)b, n };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct sctp_sndinfo s = { .snd_sid = stream, .snd_ppid = htonl(42), .snd_context = context };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = IPPROTO_SCTP;
	c->cmsg_type = SCTP_SNDINFO;
	c->cmsg_len = CMSG_LEN(sizeof s);
	memcpy(CMSG_DATA(c), &s, sizeof s);
	return sendmsg(fd, &m, MSG_NOSIGNAL);
}

/* The next notification, which has to be of this type. */
static union sctp_notification *heard(int fd, int type, ssize_t *length)
{
	struct iovec v = { buffer, sizeof buffer };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	*length = recvmsg(fd, &m, 0);
	CHECK(*length > 0 && m.msg_flags & MSG_NOTIFICATION && m.msg_flags & MSG_EOR);
	union sctp_notification *n = (void *)buffer;
	CHECK(n->sn_header.sn_type == type && n->sn_header.sn_length == *length);
	return n;
}

static void dry(void)
{
	int c, s;
	ssize_t n;
	couple(6001, &c, &s);
	/* Nothing is on its way: reported at once. */
	want(c, SCTP_SENDER_DRY_EVENT);
	heard(c, SCTP_SENDER_DRY_EVENT, &n);
	CHECK(put(c, "one", 3, 0, 0) == 3 && put(c, "two", 3, 0, 0) == 3);
	heard(c, SCTP_SENDER_DRY_EVENT, &n);
	CHECK(recv(c, buffer, 10, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(close(c) == 0 && close(s) == 0);
}

static void failed(void)
{
	static char message[50000];
	int c, s, sent = 0, reported = 0;
	ssize_t n;
	couple(6002, &c, &s);
	want(c, SCTP_SEND_FAILED_EVENT);
	CHECK(fcntl(c, F_SETFL, O_NONBLOCK) == 0);
	/* The peer never reads: its window closes, and messages stay here. */
	while (memset(message, 'a' + sent % 26, sizeof message), put(c, message, sizeof message, 1, 1000 + sent) > 0)
		sent++;
	CHECK(errno == EAGAIN && sent > 10);
	struct linger at_once = { 1, 0 };
	CHECK(setsockopt(s, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0 && close(s) == 0);
	int unsent = 0, first = 0;
	for (;;) {
		struct iovec v = { buffer, sizeof buffer };
		struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
		n = recvmsg(c, &m, 0);
		if (n <= 0)
			break;
		struct sctp_send_failed_event *f = (void *)buffer;
		CHECK(m.msg_flags & MSG_NOTIFICATION && f->ssf_type == SCTP_SEND_FAILED_EVENT && f->ssf_length == n);
		CHECK(f->ssfe_info.snd_sid == 1 && f->ssfe_info.snd_ppid == htonl(42) && f->ssf_assoc_id != 0);
		if (!reported++)
			first = f->ssfe_info.snd_context - 1000;
		CHECK(f->ssfe_info.snd_context == 1000u + first + reported - 1);
		/* All of one that never left, and of any the bytes that were sent. */
		unsent += f->ssf_flags == SCTP_DATA_UNSENT;
		CHECK(f->ssf_flags == SCTP_DATA_SENT || n == (ssize_t)(sizeof *f + sizeof message));
		CHECK(f->ssf_data[0] == 'a' + (first + reported - 1) % 26);
	}
	CHECK(n == -1 && errno == ECONNRESET && reported > 0 && first + reported == sent && unsent > 0);
	CHECK(close(c) == 0);
}

static void next(void)
{
	char control[512], b[16];
	int c, s, on = 1;
	couple(6003, &c, &s);
	CHECK(setsockopt(s, IPPROTO_SCTP, SCTP_RECVNXTINFO, &on, sizeof on) == 0);
	CHECK(put(c, "first", 5, 1, 0) == 5 && put(c, "the second", 10, 2, 0) == 10);
	for (int i = 0; i < 2; i++) {
		struct iovec v = { b, sizeof b };
		struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
		struct sctp_nxtinfo info = { 0 };
		int found = 0;
		CHECK(recvmsg(s, &m, 0) == (i ? 10 : 5));
		for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
			if (h->cmsg_type == SCTP_NXTINFO && ++found)
				memcpy(&info, CMSG_DATA(h), sizeof info);
		CHECK(found == !i && (i || (info.nxt_sid == 2 && info.nxt_length == 10 && info.nxt_ppid == htonl(42))));
	}
	CHECK(close(c) == 0 && close(s) == 0);
}

static void streams(void)
{
	int c, s;
	ssize_t n;
	couple(6004, &c, &s);
	want(c, SCTP_STREAM_RESET_EVENT);
	want(c, SCTP_STREAM_CHANGE_EVENT);
	want(s, SCTP_STREAM_RESET_EVENT);
	struct { struct sctp_reset_streams r; uint16_t list[2]; } reset = {
		{ .srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 2 }, { 1, 3 } };
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_RESET_STREAMS, &reset, 12) == 0);
	struct sctp_stream_reset_event *r = (void *)heard(c, SCTP_STREAM_RESET_EVENT, &n);
	CHECK(n == 16 && r->strreset_flags == SCTP_STREAM_RESET_OUTGOING_SSN && r->strreset_stream_list[1] == 3);
	r = (void *)heard(s, SCTP_STREAM_RESET_EVENT, &n);
	CHECK(n == 16 && r->strreset_flags == SCTP_STREAM_RESET_INCOMING_SSN && r->strreset_stream_list[0] == 1);
	struct sctp_add_streams add = { .sas_outstrms = 5 };
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_ADD_STREAMS, &add, sizeof add) == 0);
	struct sctp_stream_change_event *more = (void *)heard(c, SCTP_STREAM_CHANGE_EVENT, &n);
	CHECK(more->strchange_outstrms == 15);
	reset.list[0] = 60000;
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_RESET_STREAMS, &reset, 12) == -1 && errno == EINVAL);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_RESET_STREAMS, &reset, 9) == -1 && errno == EINVAL);
	CHECK(close(c) == 0 && close(s) == 0);
}

static void keys(void)
{
	struct { struct sctp_authkey k; unsigned char bytes[4]; } key = { { .sca_keynumber = 7, .sca_keylength = 4 }, "abcd" };
	struct sctp_authkeyid id = { .scact_keynumber = 7 }, other = { .scact_keynumber = 8 };
	struct sctp_authchunk data = { 0 }, init = { 1 };
	struct { struct sctp_authchunks c; uint8_t list[256]; } list;
	socklen_t len = sizeof list;
	struct sockaddr_in a = at(6005);
	int c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), got;
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &data, 1) == -1 && errno == EACCES);
	for (int i = 0; i < 2; i++) {
		int fd = i ? s : c;
		extensions(fd);
		CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &init, 1) == -1 && errno == EINVAL);
		CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_AUTH_CHUNK, &data, 1) == 0);
		CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &other, sizeof other) == -1 && errno == EINVAL);
		CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_AUTH_KEY, &key, 12) == 0);
		CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_AUTH_ACTIVE_KEY, &id, sizeof id) == 0);
		CHECK(setsockopt(fd, IPPROTO_SCTP, SCTP_AUTH_DELETE_KEY, &id, sizeof id) == -1 && errno == EINVAL);
	}
	CHECK(bind(s, (struct sockaddr *)&a, sizeof a) == 0 && listen(s, 4) == 0);
	CHECK(connect(c, (struct sockaddr *)&a, sizeof a) == 0 && (got = accept(s, NULL, NULL)) >= 0);
	/* DATA both ways, signed with the key. */
	ssize_t n;
	want(got, SCTP_AUTHENTICATION_EVENT);
	want(c, SCTP_AUTHENTICATION_EVENT);
	CHECK(send(c, "signed", 6, 0) == 6);
	struct sctp_authkey_event *e = (void *)heard(got, SCTP_AUTHENTICATION_EVENT, &n);
	CHECK(n == sizeof *e && e->auth_indication == SCTP_AUTH_NEW_KEY && e->auth_keynumber == 7);
	CHECK(recv(got, buffer, 10, 0) == 6);
	/* Key 0 signs nothing any more, and may go. */
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_AUTH_DEACTIVATE_KEY, &id, sizeof id) == -1 && errno == EINVAL);
	other.scact_keynumber = 0;
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_AUTH_DEACTIVATE_KEY, &other, sizeof other) == 0);
	e = (void *)heard(c, SCTP_AUTHENTICATION_EVENT, &n);
	CHECK(e->auth_indication == SCTP_AUTH_FREE_KEY && e->auth_keynumber == 0);
	want_not(c, SCTP_AUTHENTICATION_EVENT);
	CHECK(send(got, "too", 3, 0) == 3 && recv(c, buffer, 10, 0) == 3);
	memset(&list, 0, sizeof list);
	CHECK(getsockopt(c, IPPROTO_SCTP, SCTP_PEER_AUTH_CHUNKS, &list, &len) == 0);
	CHECK(list.c.gauth_number_of_chunks >= 1 && memchr(list.list, 0, list.c.gauth_number_of_chunks));
	CHECK(close(c) == 0 && close(got) == 0 && close(s) == 0);
}

static void states(void)
{
	int c, s, absent = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, IPPROTO_SCTP);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(0x7f000009) };
	CHECK(connect(absent, (struct sockaddr *)&a, sizeof a) == -1 && errno == EINPROGRESS);
	CHECK(state_of(absent) == SCTP_COOKIE_WAIT && close(absent) == 0);
	couple(6006, &c, &s);
	CHECK(state_of(c) == SCTP_ESTABLISHED);
	/* The peer's primary address, and ours of a socket that was bound to any. */
	struct sctp_prim primary = { 0 };
	struct { struct sctp_getaddrs g; struct sockaddr_storage room[2]; } ours = { { 0 } };
	socklen_t len = sizeof primary;
	CHECK(getsockopt(c, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &primary, &len) == 0 && len == sizeof primary);
	struct sockaddr_in *there = (void *)&primary.ssp_addr, *here = (void *)ours.g.addrs;
	CHECK(there->sin_addr.s_addr == htonl(INADDR_LOOPBACK) && there->sin_port == htons(6006));
	len = sizeof ours;
	CHECK(getsockopt(c, IPPROTO_SCTP, SCTP_GET_LOCAL_ADDRS, &ours, &len) == 0 && ours.g.addr_num == 1);
	CHECK(here->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
	CHECK(close(c) == 0 && close(s) == 0);
}

static int addresses_of_peer(int fd)
{
	struct { struct sctp_getaddrs g; struct sockaddr_storage room[8]; } list = { { 0 } };
	socklen_t len = sizeof list;
	CHECK(getsockopt(fd, IPPROTO_SCTP, SCTP_GET_PEER_ADDRS, &list, &len) == 0);
	return list.g.addr_num;
}

/* A further address joins a living association, is reported, and leaves it again. */
static void moving(void)
{
	struct sockaddr_in here = at(0), more = at(0), there = at(6007);
	int c = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), l = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), s, state;
	ssize_t n;
	CHECK(system("ip addr add 127.0.0.2/8 dev lo") == 0);
	more.sin_addr.s_addr = htonl(0x7f000002);
	extensions(c);
	extensions(l);
	set(c, SCTP_ASCONF_SUPPORTED, 1);
	set(l, SCTP_ASCONF_SUPPORTED, 1);
	CHECK(bind(c, (struct sockaddr *)&here, sizeof here) == 0);
	CHECK(bind(l, (struct sockaddr *)&there, sizeof there) == 0 && listen(l, 1) == 0);
	CHECK(connect(c, (struct sockaddr *)&there, sizeof there) == 0 && (s = accept(l, NULL, NULL)) >= 0);
	struct timeval limit = { 100, 0 };
	CHECK(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
	want(s, SCTP_PEER_ADDR_CHANGE);
	CHECK(addresses_of_peer(s) == 1);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, &more, sizeof more) == 0);
	do {
		struct sctp_paddr_change *p = (void *)heard(s, SCTP_PEER_ADDR_CHANGE, &n);
		CHECK(((struct sockaddr_in *)&p->spc_aaddr)->sin_addr.s_addr == more.sin_addr.s_addr);
		state = p->spc_state;
	} while (state != SCTP_ADDR_CONFIRMED);
	CHECK(addresses_of_peer(s) == 2);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_REM, &more, sizeof more) == 0);
	struct sctp_paddr_change *p = (void *)heard(s, SCTP_PEER_ADDR_CHANGE, &n);
	CHECK(p->spc_state == SCTP_ADDR_REMOVED);
	CHECK(close(c) == 0 && close(s) == 0 && close(l) == 0);
}

/* An association over which nothing goes ends, and no earlier: time is virtual. */
static void idle(void)
{
	int c = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP), s = socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP);
	int after = 5, given = 0;
	socklen_t len = sizeof given;
	struct sockaddr_in to = at(6020);
	struct timespec begun, now;
	ssize_t n;
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_AUTOCLOSE, &after, sizeof after) == 0);
	CHECK(getsockopt(c, IPPROTO_SCTP, SCTP_AUTOCLOSE, &given, &len) == 0 && given == 5);
	CHECK(bind(s, (struct sockaddr *)&to, sizeof to) == 0 && listen(s, 1) == 0);
	want(c, SCTP_ASSOC_CHANGE);
	CHECK(sendto(c, "x", 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
	CHECK(((struct sctp_assoc_change *)heard(c, SCTP_ASSOC_CHANGE, &n))->sac_state == SCTP_COMM_UP);
	sleep(4);
	CHECK(recv(s, buffer, sizeof buffer, 0) == 1 && sendto(c, "y", 1, 0, (struct sockaddr *)&to, sizeof to) == 1);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	CHECK(((struct sctp_assoc_change *)heard(c, SCTP_ASSOC_CHANGE, &n))->sac_state == SCTP_SHUTDOWN_COMP);
	clock_gettime(CLOCK_MONOTONIC, &now);
	long ms = (now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000;
	CHECK(ms >= 5000 && ms < 5500);
	CHECK(recv(s, buffer, sizeof buffer, 0) == 1 && close(c) == 0 && close(s) == 0);
}

int main(void)
{
	dry();
	failed();
	next();
	streams();
	keys();
	states();
	moving();
	idle();
	puts("all as it should be");
	return 0;
}
