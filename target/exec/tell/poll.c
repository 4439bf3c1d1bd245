/* SPDX-License-Identifier: GPL-2.0-or-later */
/* poll.c -- polls answered from memory: what page 2000_0001h says of jobs that go on, and of those that
 * ended last. */
#include "exec/tell/tell.h"

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
