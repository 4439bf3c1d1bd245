/* SPDX-License-Identifier: GPL-2.0-or-later */
/* thread.c -- the thread "iosd-after" (flow.h).  It does the work that ends of jobs cause, in steps
 * of bounded length. */
#include <time.h>

#include "base/util.h"
#include "exec/flow/flow.h"

#define PAUSE_NSEC                                                                                 \
	20000 /* between two steps: without it this thread would have the lock again at once */

/* Takes the array off the list; the caller gets its reference. */
static struct osd_array *take_array(struct osd_flow *flow)
{
	struct osd_array *array = flow->arrays;

	flow->arrays = array->next_working;
	return array;
}

void *osd_flow_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NSEC};
	struct osd_flow *flow = arg;
	struct osd_exec *exec = flow->exec;

	osd_lock(&exec->lock);
	while (!exec->stopping) {
		bool rests;

		if (!osd_after_step(exec, &rests)) {
			if (flow->arrays)
				osd_array_step(exec, take_array(flow));
			else
				osd_cond_wait(&flow->work, &exec->lock);
		} else if (rests) {
			osd_unlock(&exec->lock);
			nanosleep(&pause, NULL);
			osd_lock(&exec->lock);
		}
	}
	osd_after_drop_failed(exec);
	while (flow->arrays)
		osd_job_unref(take_array(flow)->head);
	osd_unlock(&exec->lock);
	return NULL;
}
