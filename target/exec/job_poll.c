/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_poll.c -- polls answered from memory: the fixed form of page 2000_0001h of jobs that go on, and
 * of those that ended last, so that a poll neither waits nor reads a record.
 *
 * What the form shows of an ended job does not change until its record goes; whoever takes the record
 * away forgets the form here first, in the transaction that does it. */
#include <string.h>

#include "exec/exec_impl.h"

static struct osd_ended *place_of(struct osd_exec *exec, struct osd_object_id id)
{
	return &exec->ended[(id.object_id + id.partition_id * 31) % OSD_ENDED_KEPT];
}

static bool is_of(const struct osd_ended *ended, struct osd_object_id id)
{
	return ended->id.object_id == id.object_id && ended->id.partition_id == id.partition_id;
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
	if (job && !job->removed) {
		*ret_length = osd_job_form_live(exec, job, bytes);
	} else if (!job && is_of(ended, id)) {
		memcpy(bytes, ended->form, ended->length);
		*ret_length = ended->length;
	}
	pthread_mutex_unlock(&exec->lock);
	return *ret_length > 0;
}

void osd_exec_note_ended(struct osd_exec *exec, const struct osd_job *job)
{
	struct osd_ended *ended = place_of(exec, job->record.id);

	if (job->removed)
		return;
	ended->id = job->record.id;
	ended->length = (uint8_t)osd_job_form_ended(&job->record, ended->form);
}

void osd_exec_forget_ended(struct osd_exec *exec, struct osd_object_id id)
{
	struct osd_ended *ended = place_of(exec, id);
	struct osd_job *job;

	pthread_mutex_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	if (job)
		job->removed = true;
	if (is_of(ended, id))
		ended->id = (struct osd_object_id){0, 0};
	pthread_mutex_unlock(&exec->lock);
}
