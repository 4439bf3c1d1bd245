/* SPDX-License-Identifier: GPL-2.0-or-later */
/* thread.c -- the thread "iosd-after" (flow.h).  It does the work that ends of jobs cause, in steps
 * of bounded length, and ends when there is none. */
#include <time.h>

#include "exec/flow/flow.h"

/* Between two steps: without this pause the thread would take the lock again at once. */
#define PAUSE_NSEC 20000

/* Takes the array off the list; the caller gets its reference. */
static struct osd_array *take_array(struct osd_flow *flow)
{
	struct osd_array *array = flow->arrays;

	flow->arrays = array->next_working;
	return array;
}

static void work(void *arg)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NSEC};
	struct osd_flow *flow = arg;
	struct osd_exec *exec = flow->exec;
	bool more = true;

	osd_lock(&exec->lock);
	while (more && !exec->stopping) {
		bool rests;

		if (!osd_after_step(exec, &rests)) {
			more = flow->arrays != NULL;
			if (more)
				osd_array_step(take_array(flow));
		} else if (rests) {
			osd_unlock(&exec->lock);
			nanosleep(&pause, NULL);
			osd_lock(&exec->lock);
		}
	}
	osd_unlock(&exec->lock);
}

void osd_flow_init(struct osd_flow *flow)
{
	osd_helper_init(&flow->helper, "iosd-after", work, flow);
	osd_helper_init(&flow->sweeper, "iosd-sweep", osd_flow_sweep, flow->exec);
}

void osd_flow_start(struct osd_flow *flow)
{
	osd_lock(&flow->exec->lock);
	flow->started = true;
	osd_flow_call(flow);
	osd_unlock(&flow->exec->lock);
}

void osd_flow_stop(struct osd_flow *flow)
{
	osd_helper_stop(&flow->sweeper);
	osd_helper_stop(&flow->helper);
	osd_lock(&flow->exec->lock);
	osd_after_drop_failed(flow->exec);
	while (flow->arrays)
		osd_job_unref(take_array(flow)->head);
	osd_unlock(&flow->exec->lock);
}
