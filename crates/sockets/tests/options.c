/*
 * Options as programs for Linux use them, by the structures of its header. Both ends in one process on the loopback
 * address; run over the preload library in virtual time by preload.rs.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/sctp.h>

#define CHECK(what) do { if (!(what)) { \
	printf("line %d: %s (errno %d, %s)\n", __LINE__, #what, errno, strerror(errno)); exit(1); } } while (0)
#define SET(fd, option, value) setsockopt(fd, IPPROTO_SCTP, option, value, sizeof *(value))
#define REFUSED(call, why) (errno = 0, (call) == -1 && errno == (why))

static char buffer[100000];

static struct sockaddr_in at(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return a;
}

static int get(int fd, int option, void *value, socklen_t len)
{
	socklen_t got = len;
	int r = getsockopt(fd, IPPROTO_SCTP, option, value, &got);
	return r || got != len ? -1 : 0;
}

/* Two ends of one association; the server's buffer is small. */
static void couple(int port, int *client, int *server)
{
	struct sockaddr_in a = at(port);
	struct sctp_assoc_value on = { 0, 1 }, all = { 0, 7 };
	int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), room = 10000;
	*client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	CHECK(setsockopt(s, SOL_SOCKET, SO_RCVBUF, &room, sizeof room) == 0);
	CHECK(SET(s, SCTP_RECONFIG_SUPPORTED, &on) == 0 && SET(*client, SCTP_RECONFIG_SUPPORTED, &on) == 0);
	CHECK(SET(*client, SCTP_ENABLE_STREAM_RESET, &all) == 0);
	CHECK(bind(s, (struct sockaddr *)&a, sizeof a) == 0 && listen(s, 4) == 0);
	CHECK(connect(*client, (struct sockaddr *)&a, sizeof a) == 0);
	CHECK((*server = accept(s, NULL, NULL)) >= 0 && close(s) == 0);
	CHECK(fcntl(*client, F_SETFL, O_NONBLOCK) == 0 && fcntl(*server, F_SETFL, O_NONBLOCK) == 0);
}

static void put(int fd, int stream, size_t n)
{
	char control[CMSG_SPACE(sizeof(struct sctp_sndinfo))];
	struct iovec v = { buffer, n };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct sctp_sndinfo s = { .snd_sid = stream };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = IPPROTO_SCTP;
	c->cmsg_type = SCTP_SNDINFO;
	c->cmsg_len = CMSG_LEN(sizeof s);
	memcpy(CMSG_DATA(c), &s, sizeof s);
	CHECK(sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)n);
}

/* Streams of the messages as they arrive, a digit each, those of stream 0 left out. */
static void order(int fd, char *to)
{
	char control[512];
	for (int idle = 0; idle < 3;) {
		struct iovec v = { buffer, sizeof buffer };
		struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
		if (recvmsg(fd, &m, 0) <= 0) {
			CHECK(errno == EAGAIN);
			usleep(500000);
			idle++;
			continue;
		}
		struct sctp_rcvinfo *i = (void *)CMSG_DATA(CMSG_FIRSTHDR(&m));
		if (i->rcv_sid)
			*to++ = '0' + i->rcv_sid;
	}
	*to = 0;
}

/* Fills the peer's window, and then has something waiting on streams 1 to 3. */
static void fill(int fd)
{
	for (int i = 0; i < 4; i++)
		put(fd, 0, 8000);
	for (int round = 0; round < 2; round++)
		for (int stream = 1; stream <= 3; stream++)
			put(fd, stream, 1000);
}

static void schedulers(void)
{
	struct { unsigned number; const char *order; } all[] = {
		{ SCTP_SS_FCFS, "123123" }, { SCTP_SS_PRIO, "113322" }, { SCTP_SS_RR, "123123" }, { SCTP_SS_FCFS, "123123" } };
	int c, s, on = 1;
	couple(6101, &c, &s);
	CHECK(SET(s, SCTP_RECVRCVINFO, &on) == 0);
	struct sctp_assoc_value which = { 0, 9 };
	CHECK(REFUSED(SET(c, SCTP_STREAM_SCHEDULER, &which), EINVAL));
	CHECK(get(c, SCTP_STREAM_SCHEDULER, &which, sizeof which) == 0 && which.assoc_value == SCTP_SS_FCFS);
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		char got[32];
		which.assoc_value = all[i].number;
		CHECK(SET(c, SCTP_STREAM_SCHEDULER, &which) == 0);
		struct sctp_stream_value second = { 0, 2, 7 }, third = { 0, 3, 4 }, none = { 0, 60000, 1 };
		CHECK(SET(c, SCTP_STREAM_SCHEDULER_VALUE, &second) == 0 && SET(c, SCTP_STREAM_SCHEDULER_VALUE, &third) == 0);
		CHECK(REFUSED(SET(c, SCTP_STREAM_SCHEDULER_VALUE, &none), EINVAL));
		second.stream_value = 99;
		CHECK(get(c, SCTP_STREAM_SCHEDULER_VALUE, &second, sizeof second) == 0);
		CHECK(second.stream_value == (all[i].number == SCTP_SS_PRIO ? 7 : 0));
		fill(c);
		order(s, got);
		if (strcmp(got, all[i].order))
			printf("scheduler %u: %s\n", all[i].number, got), exit(1);
	}
	CHECK(close(c) == 0 && close(s) == 0);
}

static void resets(void)
{
	char got[32];
	int c, s, on = 1;
	struct { struct sctp_reset_streams r; uint16_t list[1]; } one = {
		{ .srs_flags = SCTP_STREAM_RESET_OUTGOING, .srs_number_streams = 1 }, { 1 } };
	struct sctp_assoc_value none = { 0, 0 }, all = { 0, 7 };
	sctp_assoc_t association = 0;
	couple(6102, &c, &s);
	CHECK(SET(s, SCTP_RECVRCVINFO, &on) == 0);
	/* Not enabled, then not yet, then done. */
	CHECK(SET(c, SCTP_ENABLE_STREAM_RESET, &none) == 0);
	CHECK(REFUSED(setsockopt(c, IPPROTO_SCTP, SCTP_RESET_STREAMS, &one, 10), ENOPROTOOPT));
	CHECK(SET(c, SCTP_ENABLE_STREAM_RESET, &all) == 0);
	fill(c);
	CHECK(REFUSED(setsockopt(c, IPPROTO_SCTP, SCTP_RESET_STREAMS, &one, 10), EAGAIN));
	CHECK(REFUSED(SET(c, SCTP_RESET_ASSOC, &association), EAGAIN));
	order(s, got);
	CHECK(setsockopt(c, IPPROTO_SCTP, SCTP_RESET_STREAMS, &one, 10) == 0);
	CHECK(SET(c, SCTP_RESET_ASSOC, &association) == 0);
	CHECK(close(c) == 0 && close(s) == 0);
}

static void structures(void)
{
	int c, s;
	couple(6103, &c, &s);
	struct sctp_paddrthlds_v2 t = { .spt_pathmaxrxt = 7, .spt_pathpfthld = 2, .spt_pathcpthld = 1 };
	CHECK(REFUSED(SET(c, SCTP_PEER_ADDR_THLDS_V2, &t), EINVAL));
	t.spt_pathcpthld = 3;
	CHECK(SET(c, SCTP_PEER_ADDR_THLDS_V2, &t) == 0);
	memset(&t, 0, sizeof t);
	CHECK(get(c, SCTP_PEER_ADDR_THLDS_V2, &t, sizeof t) == 0);
	CHECK(t.spt_pathmaxrxt == 7 && t.spt_pathpfthld == 2 && t.spt_pathcpthld == 3);
	struct sockaddr_in *unused = (void *)&t.spt_address;
	*unused = at(6103);
	unused->sin_addr.s_addr = htonl(0x0a000001);
	CHECK(REFUSED(SET(c, SCTP_PEER_ADDR_THLDS_V2, &t), ENOENT));

	put(c, 0, 500);
	put(c, 0, 500);
	struct sctp_assoc_stats stats;
	memset(&stats, 0, sizeof stats);
	CHECK(get(c, SCTP_GET_ASSOC_STATS, &stats, sizeof stats) == 0);
	CHECK(stats.sas_oodchunks >= 1 && stats.sas_ouodchunks == 0 && stats.sas_opackets >= 3 && stats.sas_ipackets >= 2);
	CHECK(stats.sas_maxrto >= 1000 && stats.sas_octrlchunks >= 2 && stats.sas_ictrlchunks >= 2);
	CHECK(((struct sockaddr_in *)&stats.sas_obs_rto_ipaddr)->sin_addr.s_addr == htonl(INADDR_LOOPBACK));

	struct sctp_prstatus given = { .sprstat_policy = SCTP_PR_SCTP_ALL, .sprstat_sid = 1 };
	CHECK(get(c, SCTP_PR_STREAM_STATUS, &given, sizeof given) == 0 && given.sprstat_abandoned_sent == 0);
	struct sctp_assoc_value largest = { 0, 463 };
	CHECK(REFUSED(SET(c, SCTP_MAXSEG, &largest), EINVAL));
	largest.assoc_value = 600;
	CHECK(SET(c, SCTP_MAXSEG, &largest) == 0);
	CHECK(get(c, SCTP_MAXSEG, &largest, sizeof largest) == 0 && largest.assoc_value == 600);
	struct sctp_probeinterval probe = { .spi_interval = 4999 };
	CHECK(REFUSED(SET(c, SCTP_PLPMTUD_PROBE_INTERVAL, &probe), EINVAL));
	struct sctp_udpencaps udp = { 0 };
	CHECK(get(c, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp) == 0 && udp.sue_port == 0);
	int idle = 5;
	CHECK(REFUSED(SET(c, SCTP_AUTOCLOSE, &idle), EOPNOTSUPP));
	CHECK(close(c) == 0 && close(s) == 0);
}

int main(void)
{
	schedulers();
	resets();
	structures();
	puts("all as it should be");
	return 0;
}
