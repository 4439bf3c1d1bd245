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

/* The calling thread holds a place that others wait for, too: fn(arg) gives it back when the thread has to
 * wait for another one, for as long as that takes.  NULL: it holds none any more. */
void osd_thread_on_wait(void (*fn)(void *arg), void *arg);
/* Before such a wait; fn takes a leaf lock at most. */
void osd_thread_waits(void);

#endif
