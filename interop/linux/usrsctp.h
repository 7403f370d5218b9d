/* The calls of usrsctp that interop/usrsctp/peer.c makes, on the kernel's own SCTP (RFC 6458): the same program is then
 * a peer on Linux.
 *
 *   cc -O2 -static -I interop/linux -o peer-linux interop/usrsctp/peer.c -lpthread
 *
 * What usrsctp sets for a process, Linux sets for a network namespace, by sysctl: UDP encapsulation, extensions.
 */
#ifndef INTEROP_LINUX_USRSCTP_H
#define INTEROP_LINUX_USRSCTP_H

#include <linux/sctp.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define STACK "linux"
/* The causes of the ABORT follow, without its header. */
#define BY_ABORT(c) ((c)->sac_length > sizeof *(c) || (c)->sac_error != 0)
/* An accepted socket reads the end of the stream before the association is over. */
#define ENDS_QUIETLY 1
#define INTERLEAVE_STREAMS 1
#undef SCTP_BINDX_ADD_ADDR
#define SCTP_BINDX_ADD_ADDR SCTP_SOCKOPT_BINDX_ADD
#undef SCTP_BINDX_REM_ADDR
#define SCTP_BINDX_REM_ADDR SCTP_SOCKOPT_BINDX_REM
#ifndef SCTP_EOR
#define SCTP_EOR 0
#endif

enum { SCTP_SENDV_SNDINFO = 1, SCTP_SENDV_SPA = 4 };
enum { SCTP_SEND_SNDINFO_VALID = 1, SCTP_SEND_PRINFO_VALID = 2 };

struct sctp_sendv_spa {
    uint32_t sendv_flags;
    struct sctp_sndinfo sendv_sndinfo;
    struct sctp_prinfo sendv_prinfo;
};

/* A socket by its number; zero is none. */
struct socket {
    int fd;
};

static inline struct socket *shim_socket(int fd) {
    struct socket *s = fd < 0 ? NULL : malloc(sizeof *s);
    if (s != NULL) {
        s->fd = fd;
    }
    return s;
}

/* Linux knows SCTP_ABORT on sockets of the other style only: an end without lingering is an ABORT, when all that holds
 * the socket is gone. */
#define ABORT_BY_CLOSING 1
static inline void shim_abort(struct socket *s) {
    struct linger none = {1, 0};
    setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
}

static inline struct socket *usrsctp_socket(int domain, int type, int protocol, void *receive, void *send,
                                            uint32_t threshold, void *ulp) {
    (void)receive, (void)send, (void)threshold, (void)ulp;
    return shim_socket(socket(domain, type, protocol));
}

static inline int usrsctp_setsockopt(struct socket *s, int level, int option, const void *value, socklen_t length) {
    return setsockopt(s->fd, level, option, value, length);
}

/* Bytes of addresses of both families, one behind the other. */
static inline socklen_t shim_length(const struct sockaddr *addresses, int count) {
    const char *end = (const char *)addresses;
    while (count-- > 0) {
        const struct sockaddr *a = (const struct sockaddr *)end;
        end += a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    }
    return (socklen_t)(end - (const char *)addresses);
}

static inline int usrsctp_bindx(struct socket *s, struct sockaddr *addresses, int count, int flags) {
    return setsockopt(s->fd, IPPROTO_SCTP, flags, addresses, shim_length(addresses, count));
}

static inline int usrsctp_listen(struct socket *s, int backlog) {
    return listen(s->fd, backlog);
}

static inline struct socket *usrsctp_accept(struct socket *s, struct sockaddr *from, socklen_t *length) {
    return shim_socket(accept(s->fd, from, length));
}

static inline int usrsctp_connectx(struct socket *s, const struct sockaddr *addresses, int count, void *id) {
    (void)id;
    return setsockopt(s->fd, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, addresses, shim_length(addresses, count));
}

static inline int usrsctp_shutdown(struct socket *s, int how) {
    return shutdown(s->fd, how);
}

static inline void shim_control(struct msghdr *m, int type, const void *value, size_t length) {
    struct cmsghdr *c = (struct cmsghdr *)((char *)m->msg_control + m->msg_controllen);
    c->cmsg_level = IPPROTO_SCTP;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(length);
    memcpy(CMSG_DATA(c), value, length);
    m->msg_controllen += CMSG_SPACE(length);
}

static inline ssize_t usrsctp_sendv(struct socket *s, const void *data, size_t length, struct sockaddr *to, int count,
                                    void *info, socklen_t info_length, unsigned kind, int flags) {
    _Alignas(struct cmsghdr) char control[256] = {0};
    struct iovec part = {(void *)data, length};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = 0};
    (void)to, (void)count, (void)info_length;
    if (kind == SCTP_SENDV_SNDINFO) {
        shim_control(&m, SCTP_SNDINFO, info, sizeof(struct sctp_sndinfo));
    } else {
        const struct sctp_sendv_spa *spa = info;
        shim_control(&m, SCTP_SNDINFO, &spa->sendv_sndinfo, sizeof spa->sendv_sndinfo);
        if (spa->sendv_flags & SCTP_SEND_PRINFO_VALID) {
            shim_control(&m, SCTP_PRINFO, &spa->sendv_prinfo, sizeof spa->sendv_prinfo);
        }
    }
    return sendmsg(s->fd, &m, flags | MSG_NOSIGNAL);
}

static inline ssize_t usrsctp_recvv(struct socket *s, void *buffer, size_t length, struct sockaddr *from,
                                    socklen_t *from_length, void *info, socklen_t *info_length, unsigned *kind,
                                    int *flags) {
    _Alignas(struct cmsghdr) char control[256];
    struct iovec part = {buffer, length};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(s->fd, &m, 0);
    (void)from, (void)from_length, (void)kind;
    *flags = m.msg_flags;
    for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level == IPPROTO_SCTP && c->cmsg_type == SCTP_RCVINFO) {
            memcpy(info, CMSG_DATA(c), *info_length);
        }
    }
    return n;
}

static inline void usrsctp_init(uint16_t port, void *send, void *print) {
    (void)port, (void)send, (void)print;
}
static inline void shim_by_sysctl(uint32_t value) {
    (void)value;
}
#define usrsctp_sysctl_set_sctp_no_csum_on_loopback shim_by_sysctl
#define usrsctp_sysctl_set_sctp_asconf_enable shim_by_sysctl
#define usrsctp_sysctl_set_sctp_auth_enable shim_by_sysctl
#define usrsctp_sysctl_set_sctp_nat_friendly shim_by_sysctl
#define usrsctp_sysctl_set_sctp_pr_enable shim_by_sysctl
#define usrsctp_sysctl_set_sctp_nrsack_enable shim_by_sysctl

#endif
