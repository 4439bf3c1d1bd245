/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures.c -- counts jobs for the figures of a pool, see pool.h.  Elsewhere: output of the figures
 * (tell/figures_json.c). */
#include "base/clock.h"
#include "exec/pool/pool.h"

void osd_figures_arrived(struct osd_exec *exec, const struct osd_job *job)
{
	uint64_t members = job->record.array.count, count = members ? members : 1;

	exec->pools->accepted += count;
	job->pool->figures.arrived += count;
	osd_principal_accepted(exec, job->record.principal, count);
}

void osd_figures_started(struct osd_job *job)
{
	struct osd_pool_figures *figures = &job->pool->figures;

	figures->started++;
	osd_pool_work_starts(job);
	if (job->record.attempt == 1)
		osd_histogram_add(&figures->queue, job->started_usec - job->accepted_usec);
}

void osd_figures_ended(struct osd_exec *exec, const struct osd_job *job,
		       const struct osd_job_record *record)
{
	struct osd_pool_figures *figures = &job->pool->figures;

	if (record->flags & OSD_JOB_ARRAY)
		return; /* its members are counted instead */
	exec->pools->finished++;
	exec->pools->lost += record->state == OSD_STATE_SANDBOX_LOST;
	figures->ended++;
	osd_pool_work_ended(job, record);
	osd_principal_ended(exec, record);
	figures->finished[osd_job_reason_row(record->reason)]++;
	figures->cpu_usec += record->cpu_user_usec + record->cpu_system_usec;
	if (record->attempt)
		osd_histogram_add(&figures->run, record->run_usec);
	if (record->state == OSD_STATE_CANCELLED && job->end_asked_usec)
		osd_histogram_add(&figures->cancel, osd_monotonic_usec() - job->end_asked_usec);
}
