/* SPDX-License-Identifier: GPL-2.0-or-later */
/* due.c -- when the sweep must look again (job.h): records that expire, jobs that nobody starts, jobs that
 * are held until their begin.  What it does then: flow/. */
#include "base/clock.h"
#include "base/util.h"
#include "exec/job/job.h"

void osd_exec_sweep_by(struct osd_exec *exec, uint64_t expiry_msec)
{
	uint64_t now_msec = osd_wall_msec(), usec = osd_monotonic_usec();

	if (expiry_msec >= now_msec + OSD_SWEEP_USEC / 1000)
		return;
	/* One millisecond more: a record expires when its time is past. */
	usec += (expiry_msec > now_msec ? expiry_msec - now_msec : 0) * 1000 + 1000;
	if (usec >= exec->sweep_usec)
		return;
	exec->sweep_usec = usec;
	osd_wake(exec->output_wake);
}

/* A job that has not started and need not start by itself: a client holds it, or other jobs that are
 * perhaps held do.  Members that wait for the jobs their array waits for go with it. */
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

/* Members begin with their array. */
bool osd_job_begins_later(const struct osd_job *job)
{
	return !(job->record.flags & OSD_JOB_MEMBER) && job->record.begin_msec &&
	       job->record.state == OSD_STATE_HELD && !job->end_reason;
}

/* until a job that could not be released is tried again */

void osd_exec_note_begin(struct osd_exec *exec, const struct osd_job *job)
{
	if (!osd_job_begins_later(job) || job->record.begin_msec >= exec->begin_msec)
		return;
	exec->begin_msec = job->record.begin_msec;
	osd_exec_sweep_by(exec, exec->begin_msec);
}
