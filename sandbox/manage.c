/* SPDX-License-Identifier: GPL-2.0-or-later */
/* manage.c -- see manage.h. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "manage.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include "osdcore_module.h"

/* one per process: set before the first nudge, then constant */
static struct osd_shm *shm;

static uint64_t microseconds(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_usec;
}

static void sample_usage(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		return;
	atomic_store(&shm->cpu_user_usec, microseconds(usage.ru_utime));
	atomic_store(&shm->cpu_system_usec, microseconds(usage.ru_stime));
	atomic_store(&shm->peak_bytes, (uint64_t)usage.ru_maxrss * 1024);
}

/* Nothing here but what a signal handler may do.  The interpreter looks for its own signal between two
 * bytecodes; a sleep or a blocking read in C is ended by this one.  Between the interpreter's look
 * and the entry into a blocking call neither is seen, so who tells a script to end nudges again. */
static void heed(int signal)
{
	/* for good: who was told to end is given no other job */
	static volatile sig_atomic_t ending;
	int error = errno;
	uint32_t seen = atomic_load(&shm->control.seq);

	(void)signal;
	sample_usage();
	if (atomic_load(&shm->control_word) == OSD_CONTROL_END)
		ending = 1;
	if (ending && !osd_core_has_ended())
		PyErr_SetInterruptEx(OSD_END_SIGNAL);
	atomic_store(&shm->control_answer, seen);
	errno = error;
}

void osd_manage_attach(struct osd_shm *memory)
{
	shm = memory;
}

void osd_manage_begin(void)
{
	const struct sigaction action = {.sa_handler = heed}; /* no SA_RESTART: see heed() */

	sigaction(OSD_NUDGE_SIGNAL, &action, NULL);
	sample_usage();
}

void osd_manage_sample(void)
{
	sample_usage();
}
