/* SPDX-License-Identifier: GPL-2.0-or-later */
/* manage.c -- see manage.h. */
#include "manage.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "base/clock.h"

/* one per process: set before the first nudge, then constant */
static struct osd_shm *shm;
static void (*interrupt_engine)(void);

void osd_manage_sample(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		return;
	atomic_store(&shm->cpu_user_usec, osd_timeval_usec(usage.ru_utime));
	atomic_store(&shm->cpu_system_usec, osd_timeval_usec(usage.ru_stime));
	atomic_store(&shm->peak_bytes, (uint64_t)usage.ru_maxrss * 1024);
}

/* Everything in here is allowed in a signal handler.  A sleep or a blocking read in C returns with EINTR.
 * The engine may be about to enter one and miss the signal, so the target nudges again until a job that
 * has to end has ended. */
static void heed(int signal)
{
	/* never reset: a sandbox whose job was told to end gets no other job */
	static volatile sig_atomic_t ending;
	int error = errno;
	uint32_t seen = atomic_load(&shm->control.seq);

	(void)signal;
	osd_manage_sample();
	if (atomic_load(&shm->control_word) == OSD_CONTROL_END)
		ending = 1;
	if (ending)
		interrupt_engine();
	atomic_store(&shm->control_answer, seen);
	errno = error;
}

void osd_manage_attach(struct osd_shm *memory, void (*interrupt)(void))
{
	shm = memory;
	interrupt_engine = interrupt;
}

void osd_manage_begin(void)
{
	const struct sigaction action = {.sa_handler = heed}; /* no SA_RESTART: see heed() */

	sigaction(OSD_NUDGE_SIGNAL, &action, NULL);
	osd_manage_sample();
}
