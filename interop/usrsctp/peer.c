/* A peer on usrsctp for the interoperation runs (scripts/interop-usrsctp.sh).
 *
 *   cc -O2 -o peer peer.c -lusrsctp -lpthread
 *   peer server|client [options]
 *
 *   --local A[,B]          own addresses, of IPv4 or IPv6
 *   --peer A[,B]           the peer's addresses (client)
 *   --port P               own SCTP port (a client has one of its own without it)
 *   --peer-port P          the peer's SCTP port (client)
 *   --udp L[:R]            UDP encapsulation: own UDP port, the peer's UDP port; without it raw IP (needs root)
 *   --messages N           messages to send (default 0)
 *   --streams S            streams to send them on (default 1)
 *   --rate N               messages a second at most
 *   --pr ttl:MS | rtx:N    partial reliability of the messages
 *   --gaps                 the other side gives messages up: numbers may be left out
 *   --end shutdown|abort|wait
 *                          who ends: this side gracefully, this side by ABORT, or the other side
 *   --seconds N            give up after so long (default 60)
 *   --rto MIN:MAX          milliseconds, and paths that fail after two errors
 *   --no-asconf            neither ASCONF nor AUTH
 *   --nat                  ASCONF with the wildcard address means the source address
 *   --no-pr                no PR-SCTP
 *   --extensions A[,B]     idata, reconf, nrsack: announced and used
 *   --reset                this side's streams begin anew after half of its messages
 *   --largest N            no message is larger
 *   --swap ADDRESS         of this side: added after a quarter of the messages; after three quarters the first one of
 *                          --local is removed
 *   --key TEXT             signs with this key (RFC 4895)
 *   --epoch N              how often this side has begun anew: what it sent before does not count
 *   --linger N             stays N s after the end: whoever did not hear of it gets an answer
 *   --vanish               when this process is killed its stack forgets the association at once
 *
 * Every message says its stream, its number there and its length; the rest follows from these, so that the receiver
 * can tell what is lost, doubled, out of order or damaged. The last message, on stream 0, says how many there were.
 * crates/net/examples/interop/content.rs has the same rule. One JSON object is printed at the end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

/* interop/linux/usrsctp.h is another header of this name. */
#ifndef STACK
#define STACK "usrsctp"
/* usrsctp.h leaves it out. */
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
/* Messages of all streams in parts. */
#define INTERLEAVE_STREAMS 2
/* What an association change tells of an ABORT: the chunk itself. */
#define BY_ABORT(c) ((c)->sac_length > sizeof *(c) && (c)->sac_info[0] == 6)
/* The end of the stream is not all: a notification follows. */
#define ENDS_QUIETLY 0
#endif

enum { HEADER = 16, LARGEST = 1 << 16, MAX_STREAMS = 1024, MAX_ADDRESSES = 4 };
/* Flags of a message: its bits above these say how often its sender has begun anew. */
enum { LAST = 1, EPOCH = 8 };

enum end { END_SHUTDOWN, END_ABORT, END_WAIT };

/* Of either family: address and port of IPv6 begin where those of IPv4 do. */
union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct addresses {
    union address at[MAX_ADDRESSES];
    int count;
};

static struct {
    int server;
    struct addresses local, peer, swap;
    uint16_t port, peer_port, udp_local, udp_peer;
    long messages, rate, seconds, linger;
    uint16_t streams;
    struct sctp_prinfo pr;
    enum end end;
    uint32_t rto_min, rto_max, largest, epoch;
    const char *key;
    int gaps, nat, no_asconf, no_pr, idata, reconf, nrsack, reset, vanish;
} o;

static struct {
    uint32_t next[MAX_STREAMS];
    uint64_t sent, received, doubled, disordered, corrupt, bytes;
    int64_t expected;
    uint64_t abandoned;
    uint32_t epoch;
    int paths_lost, paths_back, resets, peer_resets, restarts;
    const char *end;
    int error;
} result = {.expected = -1, .end = "none"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct socket *association;
static int all_sent, last_seen, over;
static struct timespec began;
static double took;

static double elapsed(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9;
}

/* Prints the result and ends the process: usrsctp's own end may wait for minutes. */
static void finish(int code) {
    int64_t lost = result.expected < 0 ? -1 : result.expected - (int64_t)result.received;
    printf("{\"stack\":\"" STACK "\",\"sent\":%llu,\"received\":%llu,\"expected\":%lld,\"lost\":%lld,\"doubled\":%llu,"
           "\"disordered\":%llu,\"corrupt\":%llu,\"bytes\":%llu,\"abandoned\":%llu,\"paths_lost\":%d,\"paths_back\":%d,"
           "\"resets\":%d,\"peer_resets\":%d,\"restarts\":%d,\"end\":\"%s\",\"error\":%d,\"seconds\":%.2f}\n",
           (unsigned long long)result.sent, (unsigned long long)result.received, (long long)result.expected,
           (long long)lost, (unsigned long long)result.doubled, (unsigned long long)result.disordered,
           (unsigned long long)result.corrupt, (unsigned long long)result.bytes, (unsigned long long)result.abandoned,
           result.paths_lost, result.paths_back, result.resets, result.peer_resets, result.restarts,
           result.end, result.error, took > 0 ? took : elapsed());
    fflush(stdout);
    _exit(code);
}

static void die(const char *what) {
    fprintf(stderr, "peer: %s: %s\n", what, strerror(errno));
    _exit(2);
}

static void usage(const char *what) {
    fprintf(stderr, "peer: %s; the options stand at the top of peer.c\n", what);
    _exit(2);
}

/* ---- content */

static void put32(uint8_t *at, uint32_t v) {
    v = htonl(v);
    memcpy(at, &v, 4);
}

static uint32_t get32(const uint8_t *at) {
    uint32_t v;
    memcpy(&v, at, 4);
    return ntohl(v);
}

static uint32_t length_of(uint32_t stream, uint32_t number) {
    static const uint32_t lengths[] = {16, 17, 60, 100, 333, 500, 1000, 1173, 1500, 4000, 31};
    return lengths[(stream * 3 + number) % 11];
}

static void fill(uint8_t *m, uint32_t stream, uint32_t number, uint32_t flags, uint32_t length) {
    uint32_t x = (stream + 1) * 2654435761u ^ (number + 1) * 40503u ^ length;
    put32(m, stream);
    put32(m + 4, number);
    put32(m + 8, flags);
    put32(m + 12, length);
    for (uint32_t i = HEADER; i < length; i++) {
        x = x * 1664525u + 1013904223u;
        m[i] = (uint8_t)(x >> 24);
    }
}

static void check(const uint8_t *m, size_t length, uint16_t stream) {
    static uint8_t right[LARGEST];
    uint32_t number = length >= HEADER ? get32(m + 4) : 0;
    if (length < HEADER || length > LARGEST || get32(m) != stream || stream >= MAX_STREAMS) {
        result.corrupt++;
        return;
    }
    fill(right, stream, number, get32(m + 8), (uint32_t)length);
    if (memcmp(right, m, length) != 0) {
        result.corrupt++;
        return;
    }
    uint32_t epoch = get32(m + 8) >> EPOCH;
    if (epoch > result.epoch) {
        memset(result.next, 0, sizeof result.next);
        result.received = result.doubled = result.disordered = result.bytes = 0;
        result.expected = -1;
        last_seen = 0;
        result.epoch = epoch;
    }
    if (epoch < result.epoch) {
        /* On its way when its sender lost its memory. */
        return;
    }
    if (get32(m + 8) & LAST) {
        result.expected = number;
        last_seen = 1;
        return;
    }
    result.bytes += length;
    /* Numbers may be left out with --gaps, but none may come back. */
    if (number + 1 == result.next[stream]) {
        result.doubled++;
    } else if (number < result.next[stream]) {
        result.disordered++;
    } else {
        if (number > result.next[stream] && !o.gaps) {
            result.disordered++;
        }
        result.received++;
        result.next[stream] = number + 1;
    }
}

/* ---- sending */

static int send_one(const uint8_t *m, size_t length, uint16_t stream, const struct sctp_prinfo *pr) {
    struct sctp_sendv_spa spa;
    memset(&spa, 0, sizeof spa);
    spa.sendv_flags = SCTP_SEND_SNDINFO_VALID;
    spa.sendv_sndinfo.snd_sid = stream;
    if (pr->pr_policy != SCTP_PR_SCTP_NONE) {
        spa.sendv_flags |= SCTP_SEND_PRINFO_VALID;
        spa.sendv_prinfo = *pr;
    }
    for (int i = 0; usrsctp_sendv(association, m, length, NULL, 0, &spa, sizeof spa, SCTP_SENDV_SPA, 0) < 0; i++) {
        /* usrsctp resets streams as they run empty, not all at once, and takes nothing for one that waits for that. */
        if (errno != EAGAIN || !o.reset || i == 500) {
            return -1;
        }
        usleep(20000);
    }
    return 0;
}

static void end_now(void) {
    if (o.end == END_SHUTDOWN) {
        usrsctp_shutdown(association, SHUT_WR);
    } else if (o.end == END_ABORT) {
        struct sctp_sndinfo info;
        /* Both ends have all by then. */
        sleep(2);
#ifdef ABORT_BY_CLOSING
        shim_abort(association);
        result.end = "abort";
        finish(0);
#endif
        memset(&info, 0, sizeof info);
        info.snd_flags = SCTP_ABORT;
        if (usrsctp_sendv(association, "interop", 7, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) < 0) {
            fprintf(stderr, "peer: abort: %s\n", strerror(errno));
        }
    }
}

/* Ends the association once both directions are done, if that is ours to do. */
static void maybe_end(void) {
    static int ended;
    pthread_mutex_lock(&lock);
    int now = all_sent && last_seen && !ended;
    ended |= now;
    pthread_mutex_unlock(&lock);
    if (now) {
        end_now();
    }
}

/* Asks until nothing is outstanding (Linux), and waits for the first answer. */
static void reset_own(void) {
    struct sctp_reset_streams all;
    int before = result.resets;
    memset(&all, 0, sizeof all);
    all.srs_flags = SCTP_STREAM_RESET_OUTGOING;
    for (int i = 0; i < 500; i++) {
        if (usrsctp_setsockopt(association, IPPROTO_SCTP, SCTP_RESET_STREAMS, &all, sizeof all) == 0) {
            break;
        }
        usleep(20000);
    }
    for (int i = 0; i < 500 && result.resets == before; i++) {
        usleep(20000);
    }
}

/* A second address comes, the first one goes. */
static void swap_addresses(long message) {
    struct addresses *a = message == o.messages / 4 ? &o.swap : message == o.messages / 4 * 3 ? &o.local : NULL;
    if (o.swap.count > 0 && a != NULL) {
        int how = a == &o.swap ? SCTP_BINDX_ADD_ADDR : SCTP_BINDX_REM_ADDR;
        a->at[0].v4.sin_port = htons(o.port);
        if (usrsctp_bindx(association, &a->at[0].any, 1, how) < 0) {
            fprintf(stderr, "peer: bindx: %s\n", strerror(errno));
        }
    }
}

/* Sends all but the last message; false when that failed, or when the peer has lost its memory meanwhile. */
static int send_once(uint8_t *m, uint32_t epoch) {
    result.sent = 0;
    double start = elapsed();
    for (long i = 0; i < o.messages; i++) {
        uint32_t stream = (uint32_t)(i % o.streams), number = (uint32_t)(i / o.streams);
        uint32_t length = length_of(stream, number);
        if (o.reset && i == o.messages / 2) {
            reset_own();
        }
        swap_addresses(i);
        length = length > o.largest ? o.largest : length;
        fill(m, stream, number, epoch << EPOCH, length);
        if (send_one(m, length, (uint16_t)stream, &o.pr) < 0) {
            fprintf(stderr, "peer: message %ld: %s\n", i, strerror(errno));
            return 0;
        }
        result.sent++;
        if (o.rate > 0) {
            double ahead = start + (double)(i + 1) / (double)o.rate - elapsed();
            if (ahead > 0) {
                usleep((useconds_t)(ahead * 1e6));
            }
        }
        if (o.epoch + (uint32_t)result.restarts != epoch) {
            return 0;
        }
    }
    return 1;
}

static void *send_all(void *unused) {
    static uint8_t m[LARGEST];
    static const struct sctp_prinfo reliable;
    uint32_t epoch;
    (void)unused;
    do {
        epoch = o.epoch + (uint32_t)result.restarts;
        if (send_once(m, epoch)) {
            break;
        }
    } while (epoch != o.epoch + (uint32_t)result.restarts);
    if (result.sent != (uint64_t)o.messages) {
        return NULL;
    }
    fill(m, 0, (uint32_t)o.messages, epoch << EPOCH | LAST, HEADER);
    if (send_one(m, HEADER, 0, &reliable) < 0) {
        fprintf(stderr, "peer: last message: %s\n", strerror(errno));
        return NULL;
    }
    pthread_mutex_lock(&lock);
    all_sent = 1;
    pthread_mutex_unlock(&lock);
    maybe_end();
    return NULL;
}

/* ---- receiving */

static void note(const union sctp_notification *n) {
    switch (n->sn_header.sn_type) {
    case SCTP_ASSOC_CHANGE: {
        const struct sctp_assoc_change *c = &n->sn_assoc_change;
        int by_abort = BY_ABORT(c);
        if (c->sac_state == SCTP_SHUTDOWN_COMP) {
            result.end = "shutdown";
            over = 1;
        } else if (c->sac_state == SCTP_RESTART) {
            result.restarts++;
        } else if (c->sac_state == SCTP_COMM_LOST || c->sac_state == SCTP_CANT_STR_ASSOC) {
            result.end = by_abort ? "abort" : "lost";
            result.error = c->sac_error;
            over = 1;
        }
        break;
    }
    case SCTP_PEER_ADDR_CHANGE:
        result.paths_lost += n->sn_paddr_change.spc_state == SCTP_ADDR_UNREACHABLE;
        result.paths_back += n->sn_paddr_change.spc_state == SCTP_ADDR_AVAILABLE;
        break;
    case SCTP_STREAM_RESET_EVENT: {
        uint16_t flags = n->sn_strreset_event.strreset_flags;
        int done = !(flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED));
        result.resets += done && flags & SCTP_STREAM_RESET_OUTGOING_SSN;
        result.peer_resets += done && flags & SCTP_STREAM_RESET_INCOMING_SSN;
        break;
    }
    case SCTP_SEND_FAILED_EVENT:
        result.abandoned++;
        break;
    default:
        break;
    }
}

/* What has come of a message: with I-DATA those of several streams come in parts. The last place is for events. */
static struct {
    uint8_t *data;
    size_t have;
} parts[MAX_STREAMS + 1];

/* Takes a part; true when it was the last one. */
static int take_part(size_t at, const uint8_t *data, size_t length, int last) {
    if (parts[at].data == NULL) {
        parts[at].data = malloc(2 * LARGEST);
    }
    if (parts[at].data == NULL || parts[at].have + length > 2 * LARGEST) {
        result.corrupt++;
        parts[at].have = 0;
        return 0;
    }
    memcpy(parts[at].data + parts[at].have, data, length);
    parts[at].have += length;
    return last;
}

static void receive_all(void) {
    static uint8_t buffer[LARGEST];
    while (!over) {
        struct sctp_rcvinfo info;
        socklen_t from_length = 0, info_length = sizeof info;
        unsigned int kind = 0;
        int flags = 0;
        ssize_t n = usrsctp_recvv(association, buffer, sizeof buffer, NULL, &from_length, &info, &info_length, &kind,
                                  &flags);
        if (n <= 0) {
            result.error = n < 0 ? errno : 0;
            if (strcmp(result.end, "none") == 0 && n < 0) {
                result.end = errno == ECONNRESET ? "abort" : "lost";
            } else if (strcmp(result.end, "none") == 0 && ENDS_QUIETLY) {
                result.end = "shutdown";
            }
            break;
        }
        size_t at = flags & MSG_NOTIFICATION || info.rcv_sid >= MAX_STREAMS ? MAX_STREAMS : info.rcv_sid;
        if (!take_part(at, buffer, (size_t)n, flags & MSG_EOR)) {
            continue;
        }
        if (flags & MSG_NOTIFICATION) {
            note((const union sctp_notification *)parts[at].data);
        } else {
            check(parts[at].data, parts[at].have, info.rcv_sid);
            maybe_end();
        }
        parts[at].have = 0;
    }
}

static void *watch(void *unused) {
    (void)unused;
    sleep((unsigned)o.seconds);
    if (took > 0) {
        return NULL;
    }
    result.end = "timeout";
    finish(3);
    return NULL;
}

/* ---- beginning */

static void set(struct socket *s, int option, const void *value, socklen_t length, const char *name) {
    if (usrsctp_setsockopt(s, IPPROTO_SCTP, option, value, length) < 0) {
        die(name);
    }
}

static void set_key(struct socket *s) {
    enum { NUMBER = 1 };
    uint16_t length = (uint16_t)strlen(o.key);
    struct sctp_authkey *key = calloc(1, sizeof *key + length);
    struct sctp_authkeyid active;
    if (key == NULL) {
        die("key");
    }
    memset(&active, 0, sizeof active);
    key->sca_assoc_id = active.scact_assoc_id = SCTP_FUTURE_ASSOC;
    key->sca_keynumber = active.scact_keynumber = NUMBER;
    key->sca_keylength = length;
    memcpy(key->sca_key, o.key, length);
    set(s, SCTP_AUTH_KEY, key, (socklen_t)(sizeof *key + length), "SCTP_AUTH_KEY");
    set(s, SCTP_AUTH_ACTIVE_KEY, &active, sizeof active, "SCTP_AUTH_ACTIVE_KEY");
    free(key);
}

/* A socket of IPv6 has addresses of both families. */
static int family(void) {
    for (int i = 0; i < o.local.count; i++) {
        if (o.local.at[i].any.sa_family == AF_INET6) {
            return AF_INET6;
        }
    }
    return AF_INET;
}

static struct socket *new_socket(void) {
    struct socket *s = usrsctp_socket(family(), SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (s == NULL) {
        die("socket");
    }
    static const uint16_t events[] = {SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE, SCTP_SEND_FAILED_EVENT};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        struct sctp_event e = {SCTP_FUTURE_ASSOC, events[i], 1};
        set(s, SCTP_EVENT, &e, sizeof e, "SCTP_EVENT");
    }
    struct sctp_event resets = {SCTP_FUTURE_ASSOC, SCTP_STREAM_RESET_EVENT, 1};
    if (o.reconf) {
        set(s, SCTP_EVENT, &resets, sizeof resets, "SCTP_EVENT");
        struct sctp_assoc_value allow = {SCTP_FUTURE_ASSOC, SCTP_ENABLE_RESET_STREAM_REQ};
        set(s, SCTP_ENABLE_STREAM_RESET, &allow, sizeof allow, "SCTP_ENABLE_STREAM_RESET");
    }
    if (o.idata) {
        int interleave = INTERLEAVE_STREAMS;
        set(s, SCTP_FRAGMENT_INTERLEAVE, &interleave, sizeof interleave, "SCTP_FRAGMENT_INTERLEAVE");
        struct sctp_assoc_value yes = {SCTP_FUTURE_ASSOC, 1};
        set(s, SCTP_INTERLEAVING_SUPPORTED, &yes, sizeof yes, "SCTP_INTERLEAVING_SUPPORTED");
    }
    if (o.key != NULL) {
        set_key(s);
    }
#ifdef ABORT_BY_CLOSING
    if (o.vanish) {
        shim_abort(s);
    }
#endif
    int on = 1;
    set(s, SCTP_RECVRCVINFO, &on, sizeof on, "SCTP_RECVRCVINFO");
    set(s, SCTP_NODELAY, &on, sizeof on, "SCTP_NODELAY");
    struct sctp_initmsg init = {o.streams, MAX_STREAMS, 0, 0};
    set(s, SCTP_INITMSG, &init, sizeof init, "SCTP_INITMSG");
    if (o.rto_max > 0) {
        struct sctp_rtoinfo rto = {SCTP_FUTURE_ASSOC, o.rto_min, o.rto_max, o.rto_min};
        set(s, SCTP_RTOINFO, &rto, sizeof rto, "SCTP_RTOINFO");
        struct sctp_paddrparams paths;
        memset(&paths, 0, sizeof paths);
        paths.spp_address.ss_family = AF_INET;
        paths.spp_pathmaxrxt = 2;
        paths.spp_hbinterval = 500;
        paths.spp_flags = SPP_HB_ENABLE;
        set(s, SCTP_PEER_ADDR_PARAMS, &paths, sizeof paths, "SCTP_PEER_ADDR_PARAMS");
    }
    if (o.udp_peer != 0) {
        struct sctp_udpencaps e;
        memset(&e, 0, sizeof e);
        e.sue_address.ss_family = AF_INET;
        e.sue_port = htons(o.udp_peer);
        set(s, SCTP_REMOTE_UDP_ENCAPS_PORT, &e, sizeof e, "SCTP_REMOTE_UDP_ENCAPS_PORT");
    }
    return s;
}

static void bind_all(struct socket *s) {
    for (int i = 0; i < o.local.count; i++) {
        o.local.at[i].v4.sin_port = htons(o.port);
        if (usrsctp_bindx(s, &o.local.at[i].any, 1, SCTP_BINDX_ADD_ADDR) < 0) {
            die("bind");
        }
    }
}

static void open_association(void) {
    struct socket *s = new_socket();
    if (o.server) {
        bind_all(s);
        if (usrsctp_listen(s, 1) < 0) {
            die("listen");
        }
        fprintf(stderr, "ready\n");
        association = usrsctp_accept(s, NULL, NULL);
        if (association == NULL) {
            die("accept");
        }
        return;
    }
    o.port = o.port != 0 ? o.port : (uint16_t)(50000 + getpid() % 10000);
    bind_all(s);
    /* One behind the other, each as long as its family has it. */
    _Alignas(union address) char packed[sizeof o.peer.at];
    size_t length = 0;
    for (int i = 0; i < o.peer.count; i++) {
        union address *a = &o.peer.at[i];
        size_t own = a->any.sa_family == AF_INET6 ? sizeof a->v6 : sizeof a->v4;
        a->v4.sin_port = htons(o.peer_port);
        memcpy(packed + length, a, own);
        length += own;
    }
    if (usrsctp_connectx(s, (struct sockaddr *)packed, o.peer.count, NULL) < 0) {
        die("connect");
    }
    association = s;
}

/* ---- options */

static void read_addresses(struct addresses *to, char *text) {
    to->count = 0;
    for (char *word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
        if (to->count == MAX_ADDRESSES) {
            usage("too many addresses");
        }
        union address *a = &to->at[to->count++];
        memset(a, 0, sizeof *a);
        a->any.sa_family = strchr(word, ':') == NULL ? AF_INET : AF_INET6;
        void *at = a->any.sa_family == AF_INET ? (void *)&a->v4.sin_addr : (void *)&a->v6.sin6_addr;
        if (inet_pton(a->any.sa_family, word, at) != 1) {
            usage("an address is none");
        }
    }
}

static void read_pr(const char *text) {
    if (strncmp(text, "ttl:", 4) == 0) {
        o.pr.pr_policy = SCTP_PR_SCTP_TTL;
    } else if (strncmp(text, "rtx:", 4) == 0) {
        o.pr.pr_policy = SCTP_PR_SCTP_RTX;
    } else {
        usage("--pr is ttl:MS or rtx:N");
    }
    o.pr.pr_value = (uint32_t)atoi(text + 4);
}

static void read_end(const char *text) {
    static const char *const names[] = {"shutdown", "abort", "wait"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
            o.end = (enum end)i;
            return;
        }
    }
    usage("--end is shutdown, abort or wait");
}

static void read_extensions(char *text) {
    for (char *word = strtok(text, ","); word != NULL; word = strtok(NULL, ",")) {
        o.idata |= strcmp(word, "idata") == 0;
        o.reconf |= strcmp(word, "reconf") == 0;
        o.nrsack |= strcmp(word, "nrsack") == 0;
    }
}

static void read_option(const char *name, char *value) {
    unsigned a = 0, b = 0;
    if (strcmp(name, "--local") == 0) {
        read_addresses(&o.local, value);
    } else if (strcmp(name, "--peer") == 0) {
        read_addresses(&o.peer, value);
    } else if (strcmp(name, "--port") == 0) {
        o.port = (uint16_t)atoi(value);
    } else if (strcmp(name, "--peer-port") == 0) {
        o.peer_port = (uint16_t)atoi(value);
    } else if (strcmp(name, "--udp") == 0) {
        sscanf(value, "%u:%u", &a, &b);
        o.udp_local = (uint16_t)a;
        o.udp_peer = (uint16_t)b;
    } else if (strcmp(name, "--messages") == 0) {
        o.messages = atol(value);
    } else if (strcmp(name, "--streams") == 0) {
        o.streams = (uint16_t)atoi(value);
    } else if (strcmp(name, "--rate") == 0) {
        o.rate = atol(value);
    } else if (strcmp(name, "--seconds") == 0) {
        o.seconds = atol(value);
    } else if (strcmp(name, "--linger") == 0) {
        o.linger = atol(value);
    } else if (strcmp(name, "--pr") == 0) {
        read_pr(value);
    } else if (strcmp(name, "--end") == 0) {
        read_end(value);
    } else if (strcmp(name, "--extensions") == 0) {
        read_extensions(value);
    } else if (strcmp(name, "--largest") == 0) {
        o.largest = (uint32_t)atol(value);
    } else if (strcmp(name, "--swap") == 0) {
        read_addresses(&o.swap, value);
    } else if (strcmp(name, "--key") == 0) {
        o.key = value;
    } else if (strcmp(name, "--epoch") == 0) {
        o.epoch = (uint32_t)atol(value);
    } else if (strcmp(name, "--rto") == 0) {
        sscanf(value, "%u:%u", &o.rto_min, &o.rto_max);
    } else {
        usage(name);
    }
}

static void read_options(int argc, char **argv) {
    o.streams = 1;
    o.seconds = 60;
    o.largest = LARGEST;
    if (argc < 2) {
        usage("server or client?");
    }
    o.server = strcmp(argv[1], "server") == 0;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--gaps") == 0) {
            o.gaps = 1;
        } else if (strcmp(argv[i], "--nat") == 0) {
            o.nat = 1;
        } else if (strcmp(argv[i], "--no-asconf") == 0) {
            o.no_asconf = 1;
        } else if (strcmp(argv[i], "--no-pr") == 0) {
            o.no_pr = 1;
        } else if (strcmp(argv[i], "--vanish") == 0) {
            o.vanish = 1;
        } else if (strcmp(argv[i], "--reset") == 0) {
            o.reset = 1;
        } else if (i + 1 < argc) {
            read_option(argv[i], argv[i + 1]);
            i++;
        } else {
            usage(argv[i]);
        }
    }
    if (o.streams == 0 || o.streams > MAX_STREAMS || o.local.count == 0) {
        usage("--local and some streams are needed");
    }
}

int main(int argc, char **argv) {
    pthread_t sender, watcher;
    read_options(argc, argv);
    clock_gettime(CLOCK_MONOTONIC, &began);
    usrsctp_init(o.udp_local, NULL, NULL);
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    if (o.no_asconf) {
        usrsctp_sysctl_set_sctp_asconf_enable(0);
        usrsctp_sysctl_set_sctp_auth_enable(0);
    }
    usrsctp_sysctl_set_sctp_nat_friendly((uint32_t)o.nat);
    usrsctp_sysctl_set_sctp_nrsack_enable((uint32_t)o.nrsack);
    if (o.no_pr) {
        usrsctp_sysctl_set_sctp_pr_enable(0);
    }
    pthread_create(&watcher, NULL, watch, NULL);
    open_association();
    fprintf(stderr, "open\n");
    clock_gettime(CLOCK_MONOTONIC, &began);
    pthread_create(&sender, NULL, send_all, NULL);
    receive_all();
    took = elapsed();
    /* Lets the last packets (SHUTDOWN COMPLETE, ABORT) leave, and again when they were lost. */
    usleep(200000);
    sleep((unsigned)o.linger);
    if (o.end == END_ABORT && all_sent && last_seen && strcmp(result.end, "lost") == 0) {
        result.end = "abort";
    }
    finish(0);
}
