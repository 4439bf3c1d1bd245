/* SPDX-License-Identifier: GPL-2.0-or-later */
/* call.c -- wakes the thread "iosd-after" (flow.h). */
#include "base/clock.h"
#include "base/util.h"
#include "exec/flow/flow.h"

#define RETRY_USEC UINT64_C(100000) /* until the thread is started again that could not */

void osd_flow_call(struct osd_flow *flow)
{
	if (!flow->started)
		return;
	osd_assert_held(&flow->exec->lock);
	flow->uncalled = !osd_helper_call(&flow->helper);
	if (flow->uncalled)
		osd_alarm_by(&flow->exec->monitor, osd_monotonic_usec() + RETRY_USEC);
}

void osd_array_work(struct osd_array *array, uint32_t at)
{
	struct osd_flow *flow = array->head->exec->flow;

	array->cursor = OSD_MIN(array->cursor, at);
	if (array->working)
		return;
	array->working = true;
	array->next_working = flow->arrays;
	flow->arrays = array;
	osd_job_ref(array->head);
	osd_flow_call(flow);
}
