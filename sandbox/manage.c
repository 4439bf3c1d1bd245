/* SPDX-License-Identifier: GPL-2.0-or-later */
/* manage.c -- see manage.h. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "manage.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "osdcore_module.h"

#define STACK_BYTES    (64u << 10)
#define END_AGAIN_USEC 1000

struct management {
	struct osd_shm *shm;
	pid_t process, main_thread;
};

/* one per process: set before the thread starts, then constant */
static struct management management;

static uint64_t microseconds(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_usec;
}

static void sample_usage(struct osd_shm *shm)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		return;
	atomic_store(&shm->cpu_user_usec, microseconds(usage.ru_utime));
	atomic_store(&shm->cpu_system_usec, microseconds(usage.ru_stime));
	atomic_store(&shm->peak_bytes, (uint64_t)usage.ru_maxrss * 1024);
}

void osd_manage_sample(void)
{
	sample_usage(management.shm);
}

/* The first makes the interpreter look between two bytecodes; the second ends a sleep or a
 * blocking read in C.  Denied where the sandbox has no process namespace: then the grace runs
 * out instead.  Between the interpreter's look and the entry into a blocking call neither is
 * seen, so both are repeated until the handler has raised osd.Ended. */
static void end_script(const struct management *m)
{
	PyErr_SetInterruptEx(OSD_END_SIGNAL);
	syscall(SYS_tgkill, m->process, m->main_thread, OSD_END_SIGNAL);
}

static void *manage(void *argument)
{
	struct management *m = argument;
	uint64_t timeout_usec = OSD_SHM_FOREVER;
	uint32_t seen = 0;
	bool ending = false;

	for (;;) {
		osd_shm_sleep(&m->shm->control, &seen, timeout_usec, NULL);
		sample_usage(m->shm);
		/* for good: who was told to end is given no other job */
		ending |= atomic_load(&m->shm->control_word) == OSD_CONTROL_END;
		timeout_usec = OSD_SHM_FOREVER;
		if (ending && !osd_core_has_ended()) {
			end_script(m);
			timeout_usec = END_AGAIN_USEC;
		}
		atomic_store(&m->shm->control_answer, seen);
		syscall(SYS_futex, &m->shm->control_answer, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	}
	return NULL;
}

int osd_manage_start(struct osd_shm *shm, struct osd_step *step)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	management = (struct management){shm, getpid(), (pid_t)syscall(SYS_gettid)};
	error = pthread_attr_init(&attr);
	if (!error) {
		sigfillset(&all); /* signals are the main thread's */
		pthread_sigmask(SIG_SETMASK, &all, &before);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		error = pthread_attr_setstacksize(&attr, STACK_BYTES);
		if (!error)
			error = pthread_create(&thread, &attr, manage, &management);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		pthread_attr_destroy(&attr);
	}
	if (error) {
		errno = error;
		return osd_step_failed(step, "start the management thread", NULL);
	}
	return 0;
}
