/* SPDX-License-Identifier: GPL-2.0-or-later */
/* timer.c -- see timer.h. */
#include "base/timer.h"

#include <stddef.h>

#include "base/thread.h"
#include "base/util.h"

void osd_timers_init(struct osd_timers *timers)
{
	*timers = (struct osd_timers){.first = NULL};
	osd_lock_init(&timers->lock, OSD_RANK_TIMERS);
	osd_cond_init(&timers->changed);
}

/* A list will do: a unit has about ten timers. */
static struct osd_timer *earliest(const struct osd_timers *timers)
{
	struct osd_timer *found = timers->first;

	osd_assert_held(&timers->lock);
	for (struct osd_timer *timer = found; timer; timer = timer->next)
		if (timer->due_usec < found->due_usec)
			found = timer;
	return found;
}

/* Under lock, released meanwhile. */
static void run_one(struct osd_timers *timers, struct osd_timer *timer)
{
	uint64_t next;

	osd_assert_held(&timers->lock);
	/* osd_timer_set while it runs must not be lost: the earlier of both times counts. */
	timer->due_usec = OSD_NEVER;
	timers->running = timer;
	osd_unlock(&timers->lock);
	next = timer->run(timer->arg);
	osd_lock(&timers->lock);
	timers->running = NULL;
	timer->due_usec = OSD_MIN(timer->due_usec, next);
	pthread_cond_broadcast(&timers->changed); /* for osd_timer_remove */
}

static void *main_of(void *arg)
{
	struct osd_timers *timers = arg;

	osd_lock(&timers->lock);
	while (!timers->stopping) {
		struct osd_timer *timer = earliest(timers);
		uint64_t due = timer ? timer->due_usec : OSD_NEVER;
		struct timespec until = osd_timespec(due);

		if (due == OSD_NEVER)
			osd_cond_wait(&timers->changed, &timers->lock);
		else if (due > osd_monotonic_usec())
			osd_cond_timedwait(&timers->changed, &timers->lock, &until);
		else
			run_one(timers, timer);
	}
	osd_unlock(&timers->lock);
	return NULL;
}

bool osd_timers_start(struct osd_timers *timers, const char *name)
{
	timers->started = osd_thread_start(&timers->thread, name, main_of, timers);
	return timers->started;
}

void osd_timers_stop(struct osd_timers *timers)
{
	osd_lock(&timers->lock);
	timers->stopping = true;
	pthread_cond_broadcast(&timers->changed);
	osd_unlock(&timers->lock);
	if (timers->started)
		pthread_join(timers->thread, NULL);
	timers->started = false;
}

void osd_timers_release(struct osd_timers *timers)
{
	pthread_cond_destroy(&timers->changed);
	osd_lock_destroy(&timers->lock);
}

void osd_timer_add(struct osd_timers *timers, struct osd_timer *timer)
{
	osd_lock(&timers->lock);
	timer->next = timers->first;
	timers->first = timer;
	pthread_cond_broadcast(&timers->changed);
	osd_unlock(&timers->lock);
}

void osd_timer_remove(struct osd_timers *timers, struct osd_timer *timer)
{
	struct osd_timer **link = &timers->first;

	osd_lock(&timers->lock);
	while (timers->running == timer)
		osd_cond_wait(&timers->changed, &timers->lock);
	while (*link && *link != timer)
		link = &(*link)->next;
	if (*link)
		*link = timer->next;
	osd_unlock(&timers->lock);
}

void osd_timer_set(struct osd_timers *timers, struct osd_timer *timer, uint64_t usec)
{
	osd_lock(&timers->lock);
	if (usec < timer->due_usec) {
		timer->due_usec = usec;
		pthread_cond_broadcast(&timers->changed);
	}
	osd_unlock(&timers->lock);
}
