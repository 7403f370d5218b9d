/* Streams of small messages between network namespaces of one Linux kernel, all from one process: init.sh runs it.
 *
 *   messages JOBS FOLDER
 *
 * Each line of JOBS is a stream: an index N, whose sender is in the namespace aN and whose receiver in bN, and words
 * (see `struct job`). When all are connected FOLDER/lossy.tc is carried out by tc; from then on packets are lost. What
 * arrives is noted in FOLDER/N.messages, 24 bytes for each message: number, time it was made, time it was read. With
 * `wire=1` FOLDER/N.sender.pcap and N.receiver.pcap are what the two hosts' links carried. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sctp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ULL
#define MOST_JOBS 250
#define PORT 5000
#define SNAP 1500

struct head { /* what each message begins with */
    uint32_t number, size;
    uint64_t made;
};

struct job {
    int index;
    int sctp;                          /* transport=sctp, else TCP */
    long count;                        /* messages */
    uint64_t interval, phase;          /* ns between them; until the first */
    int size;                          /* bytes of each */
    int rto_initial, rto_min, rto_max; /* ms, SCTP_RTOINFO; 0 is the kernel's */
    int sack_delay, sack_every;        /* ms, packets: SCTP_DELAYED_SACK; -1 is the kernel's */
    int linear;                        /* TCP_THIN_LINEAR_TIMEOUTS */
    int wire;
    char congestion[16];
    char settings[8][64];              /* set=ipv4/tcp_sack=0: below /proc/sys/net, in both namespaces */
    int set;
    /* While it runs. */
    int from, to;
    long sent, got;
    uint64_t next;
    size_t have;
    unsigned char buffer[1 << 15];
    FILE *log, *capture[2];
};

static struct job *jobs[MOST_JOBS];
static int many, tap = -1;
static const char *folder;
static struct { int job, side; } links[4096];

static void die(const char *what) {
    fprintf(stderr, "messages: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static FILE *open_file(const char *name, const char *mode) {
    FILE *f = fopen(name, mode);
    if (!f) die(name);
    return f;
}

static void enter(char side, int index) {
    char name[64];
    snprintf(name, sizeof name, "/run/netns/%c%d", side, index);
    int fd = open(name, O_RDONLY);
    if (fd < 0 || setns(fd, CLONE_NEWNET)) die(name);
    close(fd);
}

static void word(struct job *j, char *key, char *value) {
    struct { const char *key; int *to; } numbers[] = {
        { "size", &j->size }, { "rto_initial", &j->rto_initial }, { "rto_min", &j->rto_min }, { "rto_max", &j->rto_max },
        { "sack_delay", &j->sack_delay }, { "sack_every", &j->sack_every }, { "linear", &j->linear }, { "wire", &j->wire },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(key, numbers[i].key)) {
            *numbers[i].to = atoi(value);
            return;
        }
    if (!strcmp(key, "transport")) j->sctp = !strcmp(value, "sctp");
    else if (!strcmp(key, "count")) j->count = atol(value);
    else if (!strcmp(key, "interval")) j->interval = strtoull(value, NULL, 10);
    else if (!strcmp(key, "phase")) j->phase = strtoull(value, NULL, 10);
    else if (!strcmp(key, "congestion")) snprintf(j->congestion, sizeof j->congestion, "%s", value);
    else if (!strcmp(key, "set") && j->set < 8) snprintf(j->settings[j->set++], sizeof *j->settings, "%s", value);
    else {
        fprintf(stderr, "messages: unknown word %s\n", key);
        exit(2);
    }
}

static void read_jobs(const char *name) {
    char line[4096];
    FILE *f = open_file(name, "r");
    while (many < MOST_JOBS && fgets(line, sizeof line, f)) {
        char *at = strtok(line, " \n");
        if (!at) continue;
        struct job *j = calloc(1, sizeof *j);
        j->index = atoi(at);
        j->sack_delay = j->sack_every = -1;
        while ((at = strtok(NULL, " \n"))) {
            char *equals = strchr(at, '=');
            if (!equals) continue;
            *equals = 0;
            word(j, at, equals + 1);
        }
        jobs[many++] = j;
    }
    fclose(f);
}

/* What the job wants of the namespace that this process is in. */
static void apply_settings(struct job *j) {
    for (int i = 0; i < j->set; i++) {
        char name[128], *equals = strchr(j->settings[i], '=');
        if (!equals) die(j->settings[i]);
        snprintf(name, sizeof name, "/proc/sys/net/%.*s", (int)(equals - j->settings[i]), j->settings[i]);
        FILE *f = open_file(name, "w");
        if (fputs(equals + 1, f) < 0 || fclose(f)) die(name);
    }
}

static void option(int fd, int level, int name, const void *value, socklen_t length, const char *what) {
    if (setsockopt(fd, level, name, value, length)) die(what);
}

static int open_socket(struct job *j) {
    int one = 1, room = 256 << 20, fd = socket(AF_INET, SOCK_STREAM, j->sctp ? IPPROTO_SCTP : IPPROTO_TCP);
    if (fd < 0) die("socket");
    /* A stream whose messages wait must not keep the others waiting. */
    option(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room, "SO_SNDBUFFORCE");
    if (!j->sctp) {
        option(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one, "TCP_NODELAY");
        if (j->congestion[0])
            option(fd, IPPROTO_TCP, TCP_CONGESTION, j->congestion, strlen(j->congestion), "TCP_CONGESTION");
        if (j->linear) option(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &one, sizeof one, "TCP_THIN_LINEAR_TIMEOUTS");
        return fd;
    }
    option(fd, IPPROTO_SCTP, SCTP_NODELAY, &one, sizeof one, "SCTP_NODELAY");
    struct sctp_rtoinfo rto = { .srto_initial = j->rto_initial, .srto_max = j->rto_max, .srto_min = j->rto_min };
    if (j->rto_initial || j->rto_min || j->rto_max)
        option(fd, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto, "SCTP_RTOINFO");
    struct sctp_sack_info sack = {
        .sack_delay = j->sack_delay < 0 ? 0 : j->sack_delay,
        .sack_freq = j->sack_every < 0 ? 0 : j->sack_every,
    };
    if (j->sack_delay >= 0 || j->sack_every >= 0)
        option(fd, IPPROTO_SCTP, SCTP_DELAYED_SACK, &sack, sizeof sack, "SCTP_DELAYED_SACK");
    return fd;
}

static void open_stream(struct job *j, int events) {
    char name[256];
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    enter('b', j->index);
    apply_settings(j);
    int listening = open_socket(j);
    if (bind(listening, (void *)&address, sizeof address) || listen(listening, 1)) die("listen");
    enter('a', j->index);
    apply_settings(j);
    j->from = open_socket(j);
    address.sin_addr.s_addr = htonl(10u << 24 | j->index << 16 | 2 << 8 | 2);
    if (connect(j->from, (void *)&address, sizeof address)) die("connect");
    j->to = accept(listening, NULL, NULL);
    if (j->to < 0) die("accept");
    close(listening);
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = j };
    if (epoll_ctl(events, EPOLL_CTL_ADD, j->to, &event)) die("epoll_ctl");
    snprintf(name, sizeof name, "%s/%d.messages", folder, j->index);
    j->log = open_file(name, "w");
}

/* Captures: the router's side of each link, which sees what a host sends as it leaves and what it gets as it comes. */
static void open_captures(void) {
    struct { uint32_t magic; uint16_t major, minor; uint32_t zone, digits, snap, link; } first = {
        0xa1b23c4d, 2, 4, 0, 0, SNAP, 101 /* begins with IP */
    };
    char name[256], link[32];
    int wanted = 0, size = 256 << 20, one = 1;
    for (int i = 0; i < many; i++)
        for (int side = 0; side < 2 && jobs[i]->wire; side++) {
            snprintf(name, sizeof name, "%s/%d.%s.pcap", folder, jobs[i]->index, side ? "receiver" : "sender");
            jobs[i]->capture[side] = open_file(name, "w");
            fwrite(&first, sizeof first, 1, jobs[i]->capture[side]);
            snprintf(link, sizeof link, "%c%d", side ? 'q' : 'p', jobs[i]->index);
            unsigned at = if_nametoindex(link);
            if (!at || at >= sizeof links / sizeof *links) die(link);
            links[at].job = i + 1;
            links[at].side = side;
            wanted = 1;
        }
    if (!wanted) return;
    tap = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, htons(ETH_P_ALL));
    if (tap < 0) die("AF_PACKET");
    option(tap, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size, "SO_RCVBUFFORCE");
    option(tap, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one, "SO_TIMESTAMPNS");
}

static void read_captures(void) {
    static unsigned char packet[1 << 16];
    while (tap >= 0) {
        char control[128];
        struct sockaddr_ll from;
        struct iovec part = { packet, sizeof packet };
        struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1,
                            .msg_control = control, .msg_controllen = sizeof control };
        ssize_t length = recvmsg(tap, &m, 0);
        if (length < 0) return;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (!c || from.sll_ifindex >= (int)(sizeof links / sizeof *links)) continue;
        struct timespec t;
        memcpy(&t, CMSG_DATA(c), sizeof t);
        int job = links[from.sll_ifindex].job;
        if (!job || ntohs(from.sll_protocol) != ETH_P_IP) continue;
        uint32_t kept = length < SNAP ? length : SNAP;
        uint32_t record[4] = { t.tv_sec, t.tv_nsec, kept, length };
        FILE *f = jobs[job - 1]->capture[links[from.sll_ifindex].side];
        fwrite(record, sizeof record, 1, f);
        fwrite(packet, kept, 1, f);
    }
}

static void send_message(struct job *j, uint64_t time) {
    static unsigned char message[1 << 15];
    struct head head = { j->sent, j->size, time };
    memcpy(message, &head, sizeof head);
    if (send(j->from, message, j->size, MSG_NOSIGNAL | MSG_DONTWAIT) != j->size) die("send");
    j->sent++;
    j->next += j->interval;
}

static void read_messages(struct job *j, uint64_t read) {
    ssize_t length = recv(j->to, j->buffer + j->have, sizeof j->buffer - j->have, 0);
    if (length <= 0) die("recv");
    size_t at = 0;
    j->have += length;
    while (j->have - at >= sizeof(struct head)) {
        struct head head;
        memcpy(&head, j->buffer + at, sizeof head);
        if ((int)head.size != j->size || head.number != j->got) {
            fprintf(stderr, "messages: stream %d: %u came in place of %ld\n", j->index, head.number, j->got);
            exit(1);
        }
        if (j->have - at < head.size) break;
        uint64_t row[3] = { head.number, head.made, read };
        fwrite(row, sizeof row, 1, j->log);
        at += head.size;
        j->got++;
    }
    memmove(j->buffer, j->buffer + at, j->have - at);
    j->have -= at;
}

/* Until all messages are there, or nothing has come for half an hour. The clock stands while this works: one look for
 * each time that something is to be done is enough. */
static void run(int events) {
    struct epoll_event ready[64];
    uint64_t time = now(), captured = 0, news = time;
    for (;;) {
        uint64_t next = time + SECOND / 2;
        int open = 0;
        for (int i = 0; i < many; i++) {
            struct job *j = jobs[i];
            open += j->got < j->count;
            while (j->sent < j->count && j->next <= time) send_message(j, time);
            if (j->sent < j->count && j->next < next) next = j->next;
        }
        if (time - captured > SECOND / 2) {
            read_captures();
            captured = time;
        }
        if (!open) return;
        if (time - news > 1800 * SECOND) {
            fprintf(stderr, "messages: nothing comes any more\n");
            exit(1);
        }
        struct timespec wait = { .tv_sec = (next - time) / SECOND, .tv_nsec = (next - time) % SECOND };
        int n = epoll_pwait2(events, ready, 64, &wait, NULL);
        time = now();
        if (n > 0) news = time;
        for (int i = 0; i < n; i++) read_messages(ready[i].data.ptr, time);
    }
}

int main(int count, char **words) {
    if (count != 3) {
        fprintf(stderr, "usage: messages JOBS FOLDER\n");
        return 2;
    }
    folder = words[2];
    read_jobs(words[1]);
    int events = epoll_create1(0), home = open("/proc/self/ns/net", O_RDONLY);
    if (events < 0 || home < 0) die("epoll");
    open_captures();
    for (int i = 0; i < many; i++) open_stream(jobs[i], events);
    if (setns(home, CLONE_NEWNET)) die("setns");
    char command[512];
    snprintf(command, sizeof command, "tc -batch %s/lossy.tc", folder);
    if (system(command)) die(command);
    uint64_t begin = now() + SECOND;
    for (int i = 0; i < many; i++) jobs[i]->next = begin + jobs[i]->phase;
    run(events);
    read_captures();
    for (int i = 0; i < many; i++) {
        fclose(jobs[i]->log);
        for (int side = 0; side < 2; side++)
            if (jobs[i]->capture[side]) fclose(jobs[i]->capture[side]);
    }
    return 0;
}
