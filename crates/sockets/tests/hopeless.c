/*
 * Waits that nothing can end. A socket's call says so; a tester's wait for a packet ends the program, also while another
 * thread waits for that one. Run over the preload library by preload.rs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_the_other(void *unused)
{
	pthread_mutex_lock(&lock);
	return unused;
}

int main(int n, char **arguments)
{
	char b[100];
	pthread_t other;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(5001) };
	int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(s, (struct sockaddr *)&at, sizeof at) != 0 || listen(s, 1) != 0)
		return 3;
	if (accept(s, NULL, NULL) != -1 || errno != EDEADLK)
		return 4;
	if (n > 1 && strcmp(arguments[1], "thread") == 0) {
		pthread_mutex_lock(&lock);
		pthread_create(&other, NULL, wait_for_the_other, NULL);
		/* In real time, until it waits. */
		struct timespec soon = { 0, 100000000 };
		syscall(SYS_nanosleep, &soon, NULL);
	}
	s = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
	recvfrom(s, b, sizeof b, 0, NULL, NULL);
	return 5;
}
