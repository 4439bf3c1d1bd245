/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_poll.c -- polls answered from memory: what page 2000_0001h says of jobs that go on, and of those
 * that ended last, so that a poll neither waits nor reads a record; and the records of the latter.
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

/* False: the store has to be asked. */
static bool answer_poll(struct osd_exec *exec, struct osd_object_id id,
			struct osd_job_answer *answer)
{
	const struct osd_job_record *ended;
	struct osd_job *job;
	bool live;

	if (id.object_id == 0)
		return false;
	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	live = job && !job->forget;
	ended = job ? NULL : osd_exec_find_ended(exec, id);
	if (live)
		osd_job_tell_live(exec, job, answer);
	else if (ended)
		osd_job_tell_ended(ended, answer);
	osd_unlock(&exec->lock);
	return live || ended;
}

bool osd_exec_poll(struct osd_exec *exec, struct osd_object_id id, uint8_t bytes[OSD_PAGE_FORM_MAX],
		   size_t *ret_length)
{
	struct osd_job_answer answer = {.form = bytes};
	bool found = answer_poll(exec, id, &answer);

	*ret_length = answer.form_length;
	return found;
}

bool osd_exec_poll_list(struct osd_exec *exec, struct osd_object_id id, struct osd_attr_list list,
			struct osd_attr_writer *writer)
{
	struct osd_job_answer answer = {.list = list, .writer = writer};

	return answer_poll(exec, id, &answer);
}

const struct osd_job_record *osd_exec_find_ended(struct osd_exec *exec, struct osd_object_id id)
{
	const struct osd_ended *ended = place_of(exec, id);

	return is_of(ended, id) ? &ended->record : NULL;
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

	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	if (job)
		job->forget = true;
	if (is_of(ended, id))
		ended->record.id = (struct osd_object_id){0, 0};
	osd_unlock(&exec->lock);
}
