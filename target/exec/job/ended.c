/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ended.c -- the records of the jobs that ended last.  They are kept in memory, so that a poll
 * neither waits nor reads the store (job.h).  A thread that changes or removes the record of an
 * ended job drops it here first, in the same transaction. */

#include "exec/job/job.h"

static struct osd_job_record *place_of(struct osd_exec *exec, struct osd_object_id id)
{
	return &exec->ended[(id.object_id + id.partition_id * 31) % OSD_ENDED_KEPT];
}

const struct osd_job_record *osd_exec_find_ended(struct osd_exec *exec, struct osd_object_id id)
{
	const struct osd_job_record *ended = place_of(exec, id);

	osd_assert_held(&exec->lock);
	return osd_same_id(ended->id, id) ? ended : NULL;
}

void osd_exec_note_ended(struct osd_exec *exec, const struct osd_job *job)
{
	osd_assert_held(&exec->lock);
	if (!job->forget)
		*place_of(exec, job->record.id) = job->record;
}

void osd_exec_forget_ended(struct osd_exec *exec, struct osd_object_id id)
{
	struct osd_job_record *ended = place_of(exec, id);
	struct osd_job *job;

	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	if (job)
		job->forget = true;
	if (osd_same_id(ended->id, id))
		ended->id = (struct osd_object_id){0, 0};
	osd_unlock(&exec->lock);
}
