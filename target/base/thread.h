/* SPDX-License-Identifier: GPL-2.0-or-later */
/* thread.h -- how the target's threads start, and how soon they get a processor.
 *
 * Any thread; no state. */
#ifndef OSD_BASE_THREAD_H
#define OSD_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* With all signals blocked: they are the host's business.  name is what `top -H` and /proc show of
 * it, at most 15 characters. */
bool osd_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);

/* How long a thread runs at a time while others wait.  It says nothing of its share of the processor;
 * but who takes short turns and wants little gets them at once, before those that take longer ones. */
enum osd_turns {
	OSD_TURNS_USUAL, /* the kernel's own: a few milliseconds */
	OSD_TURNS_SHORT, /* threads that ordinary commands wait for */
	OSD_TURNS_LONG	 /* scripts */
};

/* Of the calling thread, and of those it starts from then on.  Needs no right.  Linux before 6.12 knows
 * no turns of different length, and nothing happens; nor where the thread has another policy than the
 * usual one. */
void osd_thread_turns(enum osd_turns turns);

#endif
