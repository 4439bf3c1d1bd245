/* SPDX-License-Identifier: GPL-2.0-or-later */
/* upkeep.c -- how the threads beside the requests wait for work, are woken up, and learn that the store is
 * being closed.  Not here: their work (maintenance.c, index_build.c, mover.c, scrub.c). */
#include "object/internal.h"

#include <errno.h>
#include <time.h>

#define TICK_USEC 1000000

/* Until kicked, told to stop (then false), or so long; the kick has been heard then. */
static bool wait_so_long(struct osd_objects *objects, bool *kicked, uint64_t usec)
{
	struct timespec until;
	bool stop;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(usec % 1000000 * 1000);
	until.tv_sec += (time_t)(usec / 1000000) + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	osd_lock(&objects->work_lock);
	while (!objects->stop && !*kicked)
		if (osd_cond_timedwait(&objects->work, &objects->work_lock, &until) == ETIMEDOUT)
			break;
	stop = objects->stop;
	*kicked = false;
	osd_unlock(&objects->work_lock);
	return !stop;
}

static void kick(struct osd_objects *objects, bool *kicked)
{
	osd_lock(&objects->work_lock);
	if (!*kicked) {
		*kicked = true;
		pthread_cond_broadcast(&objects->work);
	}
	osd_unlock(&objects->work_lock);
}

void osd_kick_settle(struct osd_objects *objects)
{
	kick(objects, &objects->settle_now);
}

bool osd_settle_wait(struct osd_objects *objects)
{
	return wait_so_long(objects, &objects->settle_now, TICK_USEC);
}

void osd_kick_reaper(struct osd_objects *objects)
{
	(void)osd_helper_call(&objects->reaper); /* else at the next one, or after a restart */
}

void osd_kick_indexer(struct osd_objects *objects)
{
	kick(objects, &objects->index_now);
	(void)osd_helper_call(&objects->indexer);
}

bool osd_indexer_wait(struct osd_objects *objects)
{
	return wait_so_long(objects, &objects->index_now, TICK_USEC);
}

void osd_kick_mover(struct osd_objects *objects)
{
	kick(objects, &objects->move_now);
}

bool osd_mover_wait(struct osd_objects *objects, uint64_t usec)
{
	return wait_so_long(objects, &objects->move_now, usec);
}

void osd_kick_scrub(struct osd_objects *objects)
{
	kick(objects, &objects->scrub_now);
}

bool osd_scrub_wait(struct osd_objects *objects, uint64_t usec)
{
	return wait_so_long(objects, &objects->scrub_now, usec);
}

bool osd_upkeep_pause(struct osd_objects *objects, uint64_t usec)
{
	bool kicked = false; /* nobody else knows it */

	return wait_so_long(objects, &kicked, usec);
}

bool osd_should_stop(struct osd_objects *objects)
{
	bool stop;

	osd_lock(&objects->work_lock);
	stop = objects->stop;
	osd_unlock(&objects->work_lock);
	return stop;
}
