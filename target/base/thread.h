/* SPDX-License-Identifier: GPL-2.0-or-later */
/* thread.h -- how the target's threads start, and how threads of scripts let others go first.
 *
 * Any thread; no state. */
#ifndef OSD_BASE_THREAD_H
#define OSD_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* With all signals blocked: they are the host's business.  name is what `top -H` and /proc show of
 * it, at most 15 characters. */
bool osd_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);

/* The calling thread, and those it starts from then on, run for longer at a time than others while these
 * wait.  That says nothing of its share of the processor, but whoever wants little gets it at once,
 * before this one.  Needs no right.  Linux before 6.12 knows no turns of different length, and nothing
 * happens; nor where the thread has another policy than the usual one. */
void osd_thread_take_long_turns(void);
/* As before that. */
void osd_thread_take_usual_turns(void);

#endif
