/* SPDX-License-Identifier: GPL-2.0-or-later */
/* due.c -- when the sweep runs next (job.h): for records that expire, jobs not started in time, and
 * jobs held until their begin.  The sweep itself is in flow/. */
#include "base/clock.h"
#include "base/util.h"
#include "exec/job/job.h"

void osd_exec_sweep_by(struct osd_exec *exec, uint64_t expiry_msec)
{
	uint64_t now_msec = osd_wall_msec(), usec = osd_monotonic_usec();

	if (expiry_msec >= now_msec + OSD_SWEEP_USEC / 1000)
		return;
	/* Plus one millisecond: a record expires once its time is past. */
	usec += (expiry_msec > now_msec ? expiry_msec - now_msec : 0) * 1000 + 1000;
	if (usec >= exec->sweep_usec)
		return;
	exec->sweep_usec = usec;
	osd_wake(exec->output_wake);
}

bool osd_job_is_idle(const struct osd_job *job)
{
	if (job->record.state == OSD_STATE_HELD)
		return !(job->record.flags & OSD_JOB_ARRAY);
	return job->record.state == OSD_STATE_QUEUED && job->record.attempt == 0 &&
	       job->kind->waits(job);
}

uint64_t osd_job_idle_expiry(const struct osd_job *job)
{
	const struct osd_job_record *record = &osd_job_whole(job)->record;

	return record->expiry_msec
		       ? record->expiry_msec
		       : OSD_MAX(record->submitted_msec, record->begin_msec) + record->keep_msec;
}

void osd_exec_note_idle(struct osd_exec *exec, const struct osd_job *job)
{
	uint64_t expiry = osd_job_idle_expiry(job);

	if (!osd_job_is_idle(job) || expiry >= exec->idle_msec)
		return;
	exec->idle_msec = expiry;
	osd_exec_sweep_by(exec, expiry);
}

bool osd_job_begins_later(const struct osd_job *job)
{
	return !(job->record.flags & OSD_JOB_MEMBER) && job->record.begin_msec &&
	       job->record.state == OSD_STATE_HELD && !job->end_reason;
}

void osd_exec_note_begin(struct osd_exec *exec, const struct osd_job *job)
{
	if (!osd_job_begins_later(job) || job->record.begin_msec >= exec->begin_msec)
		return;
	exec->begin_msec = job->record.begin_msec;
	osd_exec_sweep_by(exec, exec->begin_msec);
}
