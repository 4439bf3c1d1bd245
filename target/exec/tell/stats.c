/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stats.c -- a few numbers of all jobs (exec/exec.h). */
#include <string.h>

#include "base/util.h"
#include "exec/pool/pool.h"
#include "exec/tell/tell.h"

/* ---- figures --------------------------------------------------------------------------------- */

void osd_exec_stats(struct osd_exec *exec, struct osd_exec_stats *ret_stats)
{
	size_t places;

	osd_lock(&exec->lock);
	places = osd_pools_places(exec);
	*ret_stats = (struct osd_exec_stats){
		/* With those that wait for other jobs, or are being accepted. */
		.queued = places - OSD_MIN(exec->held_count, places),
		.held = exec->held_count,
		.running = exec->running_count,
		.accepted = exec->pools->accepted,
		.finished = exec->pools->finished,
		.lost = exec->pools->lost,
		.retry_after_msec = osd_pool_retry_after(exec->pools->first),
		.service_connected = exec->sandboxes->welcomed,
	};
	memcpy(ret_stats->isolation, exec->sandboxes->isolation, sizeof(ret_stats->isolation));
	osd_unlock(&exec->lock);
}
