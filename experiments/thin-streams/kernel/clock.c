/* Virtual time for a user-mode Linux kernel that was built without it: preloaded into linux.uml.
 *
 * The kernel knows its machine's time by clock_gettime and one POSIX timer, and waits in sigsuspend when it has nothing
 * to do. Here the clock stands while it works and jumps to the timer when it waits, so that hours of a protocol take
 * seconds, and what the machine does beside it changes no figure. Each look at the clock moves it a little, for loops
 * that wait for time to pass. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define LOOK 20LL            /* ns that a look at the clock costs */
#define EPOCH 1700000000LL   /* the date at which every kernel boots */

static long long now = 1, due, period;

static struct timespec split(long long ns) {
    return (struct timespec){ .tv_sec = ns / SECOND, .tv_nsec = ns % SECOND };
}

int clock_gettime(clockid_t clock, struct timespec *to) {
    now += LOOK;
    *to = split(now);
    if (clock == CLOCK_REALTIME) to->tv_sec += EPOCH;
    return 0;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    (void)zone;
    now += LOOK;
    *to = (struct timeval){ .tv_sec = now / SECOND + EPOCH, .tv_usec = now % SECOND / 1000 };
    return 0;
}

int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict to) {
    (void)clock;
    (void)event;
    *to = &due;
    return 0;
}

int timer_settime(timer_t timer, int flags, const struct itimerspec *restrict to, struct itimerspec *restrict old) {
    (void)timer;
    (void)flags;
    (void)old;
    long long wait = to->it_value.tv_sec * SECOND + to->it_value.tv_nsec;
    due = wait ? now + wait : 0;
    period = to->it_interval.tv_sec * SECOND + to->it_interval.tv_nsec;
    return 0;
}

int timer_gettime(timer_t timer, struct itimerspec *to) {
    (void)timer;
    /* What is overdue is due at once; zero would say that no timer runs. */
    long long left = due > now ? due - now : 1;
    *to = (struct itimerspec){ .it_value = split(due ? left : 0), .it_interval = split(period) };
    return 0;
}

int sigsuspend(const sigset_t *mask) {
    static int (*real)(const sigset_t *);
    if (!real) real = (int (*)(const sigset_t *))dlsym(RTLD_NEXT, "sigsuspend");
    if (due) {
        if (due > now) now = due;
        due = period ? due + period : 0;
        kill(getpid(), SIGALRM);
    }
    return real(mask);
}
