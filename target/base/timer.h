/* SPDX-License-Identifier: GPL-2.0-or-later */
/* timer.h -- periodic work: one thread runs the functions of all timers when they are due.
 *
 * A function that takes long delays the others.  So it does short work only, and calls a helper
 * (base/helper.h) for the rest.  Any thread. */
#ifndef OSD_BASE_TIMER_H
#define OSD_BASE_TIMER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/lock.h"

/* Constant while it is one of the timers, except for the last two fields. */
struct osd_timer {
	uint64_t (*run)(void *arg); /* returns the time of the next run, or OSD_NEVER */
	void *arg;
	uint64_t due_usec; /* under lock; monotonic */
	struct osd_timer *next;
};

struct osd_timers {
	struct osd_lock lock;
	pthread_cond_t changed;
	struct osd_timer *first, *running; /* under lock */
	bool stopping;			   /* under lock */
	bool started;			   /* set and read by the owner alone */
	pthread_t thread;
};

void osd_timers_init(struct osd_timers *timers);
/* false: the thread cannot be started.  name: of the thread (thread.h). */
bool osd_timers_start(struct osd_timers *timers, const char *name);
/* Waits for the end of the run under way.  No timer runs from here on. */
void osd_timers_stop(struct osd_timers *timers);
/* Of timers that were initialised, and stopped. */
void osd_timers_release(struct osd_timers *timers);

/* Adds a timer that first runs at timer->due_usec. */
void osd_timer_add(struct osd_timers *timers, struct osd_timer *timer);
/* Removes it; waits for the end of its run.  Does nothing if it was not added. */
void osd_timer_remove(struct osd_timers *timers, struct osd_timer *timer);
/* Makes it run at this time at the latest; 0: now.  A leaf lock only. */
void osd_timer_set(struct osd_timers *timers, struct osd_timer *timer, uint64_t usec);

#endif
