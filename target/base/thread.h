/* SPDX-License-Identifier: GPL-2.0-or-later */
/* thread.h -- how the target's threads start, how many can run at a time, and how threads of scripts let
 * others go first.
 *
 * Any thread; no state. */
#ifndef OSD_BASE_THREAD_H
#define OSD_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread with all signals blocked: the host program handles signals. `top -H` and /proc show
 * name, at most 15 characters. */
bool osd_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);

/* How many processors the calling thread may use, at least 1: the administrator can give a target fewer
 * than the machine has. */
unsigned osd_thread_processors(void);

/* Gives the calling thread, and threads that it starts later, longer time slices.  Its share of the CPU
 * does not change, but a thread that needs little runs before it.  It needs no privilege.  Without
 * effect on Linux before 6.12, which has slices of one length only, and for a thread with another
 * policy than the usual one. */
void osd_thread_take_long_turns(void);
/* As before that. */
void osd_thread_take_usual_turns(void);

/* The calling thread holds a place that other threads wait for. fn(arg) gives the place back for the
 * time that the thread waits for another one.  NULL: it holds no place. */
void osd_thread_on_wait(void (*fn)(void *arg), void *arg);
/* Called before such a wait. fn takes a leaf lock at most. */
void osd_thread_waits(void);

#endif
