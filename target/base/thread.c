/* SPDX-License-Identifier: GPL-2.0-or-later */
/* thread.c -- see thread.h. */
#include "base/thread.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONG_TURN_NSEC 5000000 /* longer than any usual slice */

/* The argument of sched_setattr(2), which the C library of Debian 12 does not declare. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

bool osd_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg)
{
	sigset_t all, old;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error)
		return false;
	pthread_setname_np(*thread, name);
	return true;
}

unsigned osd_thread_processors(void)
{
	cpu_set_t set;
	long count;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		count = CPU_COUNT(&set);
	else /* there are more than a set has room for */
		count = sysconf(_SC_NPROCESSORS_ONLN);
	return count < 1 ? 1 : (unsigned)count;
}

static _Thread_local struct {
	void (*fn)(void *arg);
	void *arg;
} on_wait;

void osd_thread_on_wait(void (*fn)(void *arg), void *arg)
{
	on_wait.fn = fn;
	on_wait.arg = arg;
}

void osd_thread_waits(void)
{
	if (on_wait.fn)
		on_wait.fn(on_wait.arg);
}

static void take_turns(uint64_t nsec)
{
	struct scheduling now = {0};

	/* The administrator may have chosen another policy or priority, which stays. */
	if (syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) != 0 || now.policy != SCHED_OTHER)
		return;
	now.size = sizeof(now);
	now.runtime = nsec;
	syscall(SYS_sched_setattr, 0, &now, 0);
}

void osd_thread_take_long_turns(void)
{
	take_turns(LONG_TURN_NSEC);
}

void osd_thread_take_usual_turns(void)
{
	take_turns(0);
}
