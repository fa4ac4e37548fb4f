// A wrong clock for one process: preloaded, it moves the time of day by OMBRA_TEST_CLOCK_OFFSET_S
// seconds. Clocks that only count on are left alone. Nothing here allocates memory, because allocators
// ask for the time while they start.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset;

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("OMBRA_TEST_CLOCK_OFFSET_S");
  offset = text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  long failed = syscall(SYS_clock_gettime, clock, now);
  if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    now->tv_sec += offset;
  return (int)failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec exact;
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return -1;
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *now) {
  struct timespec exact;
  if (clock_gettime(CLOCK_REALTIME, &exact) != 0) return (time_t)-1;
  if (now) *now = exact.tv_sec;
  return exact.tv_sec;
}

typedef int timed_wait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

// Whoever waits until a time of day has it from the clock above, and the kernel has the right one.
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
  timed_wait *wait = (timed_wait *)dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!wait) wait = (timed_wait *)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  struct timespec right = *until;
  right.tv_sec -= offset;
  return wait(cond, mutex, &right);
}
