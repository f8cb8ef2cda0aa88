/*
 * The wall clock of a server under test, which can be stepped and run fast. It is loaded into the
 * server by LD_PRELOAD and answers in place of the C library: wall clock times come from the
 * mapping in the file that REDISSERVER_CLOCK names, the monotonic clock stays as it is.
 *
 *     shown = base_shown + (real - base_real) * (1 + ppm / 1,000,000)
 *
 * It asks the kernel directly, so that it needs nothing that is not there yet while the server's
 * allocator starts up and asks for the time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct mapping {
	int64_t version; /* odd while the rest is being written */
	int64_t base_real, base_shown; /* nanoseconds */
	int64_t ppm;
};

static volatile struct mapping *mapping;

__attribute__((constructor)) static void load(void)
{
	const char *path = getenv("REDISSERVER_CLOCK");
	int fd;
	void *at;

	if (path == NULL || (fd = open(path, O_RDONLY)) < 0)
		return;
	at = mmap(NULL, sizeof *mapping, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		mapping = at;
}

static int64_t shown(int64_t real)
{
	int64_t version, base_real, base_shown, ppm;

	if (mapping == NULL)
		return real;
	do {
		version = __atomic_load_n(&mapping->version, __ATOMIC_ACQUIRE);
		base_real = mapping->base_real;
		base_shown = mapping->base_shown;
		ppm = mapping->ppm;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (version % 2 != 0 || version != __atomic_load_n(&mapping->version, __ATOMIC_ACQUIRE));
	return base_shown + (real - base_real) + (real - base_real) / 1000000 * ppm;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int result = (int)syscall(SYS_clock_gettime, id, ts);

	if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		int64_t t = shown((int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec);
		ts->tv_sec = t / 1000000000;
		ts->tv_nsec = t % 1000000000;
	}
	return result;
}

int gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (t != NULL)
		*t = ts.tv_sec;
	return ts.tv_sec;
}
