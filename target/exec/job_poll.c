/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_poll.c -- polls answered from memory: the fixed form of page 2000_0001h of jobs that go on, and
 * of those that ended last, so that a poll neither waits nor reads a record; and the records of the
 * latter, for who asks for attributes of many.
 *
 * Whoever changes the record of an ended job, or takes it away, forgets it here first, in the
 * transaction that does it. */
#include <string.h>

#include "exec/exec_impl.h"

static struct osd_ended *place_of(struct osd_exec *exec, struct osd_object_id id)
{
	return &exec->ended[(id.object_id + id.partition_id * 31) % OSD_ENDED_KEPT];
}

static bool is_of(const struct osd_ended *ended, struct osd_object_id id)
{
	return ended->record.id.object_id == id.object_id &&
	       ended->record.id.partition_id == id.partition_id;
}

bool osd_exec_poll(struct osd_exec *exec, struct osd_object_id id, uint8_t bytes[OSD_PAGE_FORM_MAX],
		   size_t *ret_length)
{
	const struct osd_ended *ended = place_of(exec, id);
	struct osd_job *job;

	if (id.object_id == 0)
		return false;
	*ret_length = 0;
	pthread_mutex_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	if (job && !job->forget) {
		*ret_length = osd_job_form_live(exec, job, bytes);
	} else if (!job && is_of(ended, id)) {
		*ret_length = osd_job_form_ended(&ended->record, bytes);
	}
	pthread_mutex_unlock(&exec->lock);
	return *ret_length > 0;
}

bool osd_exec_find_ended(struct osd_exec *exec, struct osd_object_id id,
			 struct osd_job_record *ret_record)
{
	const struct osd_ended *ended = place_of(exec, id);

	if (!is_of(ended, id))
		return false;
	*ret_record = ended->record;
	return true;
}

void osd_exec_note_ended(struct osd_exec *exec, const struct osd_job *job)
{
	if (!job->forget)
		place_of(exec, job->record.id)->record = job->record;
}

void osd_exec_forget_ended(struct osd_exec *exec, struct osd_object_id id)
{
	struct osd_ended *ended = place_of(exec, id);
	struct osd_job *job;

	pthread_mutex_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	if (job)
		job->forget = true;
	if (is_of(ended, id))
		ended->record.id = (struct osd_object_id){0, 0};
	pthread_mutex_unlock(&exec->lock);
}
