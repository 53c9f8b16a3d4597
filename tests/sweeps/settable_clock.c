/* Preloaded into a yard by a test: adds the seconds in the file $SETTABLE_CLOCK to the clock, but not to monotonic time.
   libfaketime also replaces poll, select and condition variables, and makes subprocesses with a timeout fail. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    char text[32] = {0};
    const char *path = getenv("SETTABLE_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    long seconds = read(file, text, sizeof text - 1) > 0 ? atol(text) : 0;
    close(file);
    return seconds;
}

int clock_gettime(clockid_t id, struct timespec *result) {
    int failure = syscall(SYS_clock_gettime, id, result);
    if (!failure && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        result->tv_sec += offset();
    return failure;
}

int gettimeofday(struct timeval *result, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    result->tv_sec = now.tv_sec;
    result->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result)
        *result = now.tv_sec;
    return now.tv_sec;
}
