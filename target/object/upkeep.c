/* SPDX-License-Identifier: GPL-2.0-or-later */
/* upkeep.c -- how the threads beside the requests are woken up, pause, and learn that the store is
 * being closed.  Elsewhere: their work (maintenance.c, index_build.c, mover.c, scrub.c). */
#include "object/internal.h"

#include <errno.h>

#include "base/util.h"

#define STEP_USEC  UINT64_C(200000)
#define BUSY_STEPS 100
#define BUSY_USEC  UINT64_C(1000)

/* Waits until *kicked is set, and clears it; until the store is being closed (then false); or so
 * long. */
static bool wait_so_long(struct osd_objects *objects, bool *kicked, uint64_t usec)
{
	struct timespec until = osd_timespec(osd_monotonic_usec() + usec);
	bool stop;

	osd_lock(&objects->work_lock);
	while (!objects->stop && !*kicked)
		if (osd_cond_timedwait(&objects->work, &objects->work_lock, &until) == ETIMEDOUT)
			break;
	stop = objects->stop;
	*kicked = false;
	osd_unlock(&objects->work_lock);
	return !stop;
}

void osd_kick_settle(struct osd_objects *objects)
{
	osd_timer_set(&objects->timers, &objects->settle_timer, 0);
}

void osd_kick_reaper(struct osd_objects *objects)
{
	/* Without a thread, the next kick or restart does the work. */
	(void)osd_helper_call(&objects->reaper);
}

void osd_kick_indexer(struct osd_objects *objects)
{
	osd_lock(&objects->work_lock);
	objects->index_now = true;
	pthread_cond_broadcast(&objects->work);
	osd_unlock(&objects->work_lock);
	(void)osd_helper_call(&objects->indexer);
}

bool osd_indexer_wait(struct osd_objects *objects)
{
	return wait_so_long(objects, &objects->index_now, OSD_UPKEEP_USEC);
}

void osd_kick_mover(struct osd_objects *objects)
{
	osd_timer_set(&objects->timers, &objects->mover_timer, 0);
}

struct osd_timers *osd_objects_timers(struct osd_objects *objects)
{
	return &objects->timers;
}

void osd_upkeep_pause(struct osd_objects *objects, uint64_t usec)
{
	bool kicked = false; /* no other thread sets it */

	wait_so_long(objects, &kicked, usec);
}

bool osd_upkeep_keep_pace(struct osd_objects *objects, uint64_t bytes, uint64_t rate,
			  bool (*must_end)(struct osd_objects *objects))
{
	uint64_t left = bytes * 1000000 / rate, step;

	for (; left > 0 && !must_end(objects); left -= step) {
		step = OSD_MIN(left, STEP_USEC);
		osd_upkeep_pause(objects, step);
	}
	for (int i = 0; i < BUSY_STEPS && !must_end(objects) && objects->commands_queued &&
			objects->commands_queued(objects->context) > 0;
	     i++)
		osd_upkeep_pause(objects, BUSY_USEC);
	return !must_end(objects);
}

bool osd_should_stop(struct osd_objects *objects)
{
	bool stop;

	osd_lock(&objects->work_lock);
	stop = objects->stop;
	osd_unlock(&objects->work_lock);
	return stop;
}
