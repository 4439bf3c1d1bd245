/* SPDX-License-Identifier: GPL-2.0-or-later */
/* task_list.c -- see task_list.h.  A function covers only commands that arrived before it, so two
 * functions never wait for each other. */
#include "unit/task_list.h"

void osd_tasks_add(struct osd_tasks *tasks, struct osd_request *request)
{
	request->task = (struct osd_task){.next = tasks->first,
					  .at = &tasks->first,
					  .request = request,
					  .nexus_id = request->nexus.id,
					  .tag = request->task_tag,
					  .serial = tasks->next_serial++};
	if (tasks->first)
		tasks->first->at = &request->task.next;
	tasks->first = &request->task;
}

void osd_tasks_remove(struct osd_task *task)
{
	*task->at = task->next;
	if (task->next)
		task->next->at = task->at;
}

void osd_tasks_replace(struct osd_request *request, struct osd_task *stand_in)
{
	*stand_in = request->task;
	stand_in->request = NULL;
	*stand_in->at = stand_in;
	if (stand_in->next)
		stand_in->next->at = &stand_in->next;
}

static bool covers(const struct osd_task *asker, uint8_t function, uint64_t tag,
		   const struct osd_task *task)
{
	bool same_nexus = task->nexus_id == asker->nexus_id;

	if (task->serial >= asker->serial)
		return false;
	switch (function) {
	case OSD_TASK_ABORT:
	case OSD_TASK_QUERY:
		return same_nexus && task->tag == tag;
	case OSD_TASK_ABORT_SET:
	case OSD_TASK_QUERY_SET:
		return same_nexus;
	default:
		return true;
	}
}

static bool covers_any(const struct osd_tasks *tasks, const struct osd_task *asker,
		       uint8_t function, uint64_t tag)
{
	const struct osd_task *task = tasks->first;

	while (task && !covers(asker, function, tag, task))
		task = task->next;
	return task != NULL;
}

static void stop_asking(struct osd_tasks *tasks, struct osd_request *asker, enum osd_status status,
			struct osd_request **resumed)
{
	asker->task.asked = 0;
	tasks->asking--;
	asker->fault.status = status;
	asker->next = *resumed;
	*resumed = asker;
}

void osd_tasks_abort(struct osd_tasks *tasks, struct osd_request *request,
		     struct osd_request **resumed)
{
	__atomic_store_n(&request->aborted, true, __ATOMIC_RELEASE);
	if (request->task.asked)
		stop_asking(tasks, request, OSD_E_TASK_ABORTED, resumed);
}

static void abort_covered(struct osd_tasks *tasks, const struct osd_task *asker,
			  uint8_t function, uint64_t tag, struct osd_request **resumed)
{
	for (struct osd_task *task = tasks->first; task; task = task->next)
		if (task->request && covers(asker, function, tag, task))
			osd_tasks_abort(tasks, task->request, resumed);
}

enum osd_status osd_tasks_manage(struct osd_tasks *tasks, struct osd_request *asker,
				 uint8_t function, uint64_t tag,
				 enum osd_task_response *ret_response,
				 struct osd_request **resumed)
{
	*ret_response = OSD_TASK_COMPLETE;
	switch (function) {
	case OSD_TASK_QUERY:
	case OSD_TASK_QUERY_SET:
		if (covers_any(tasks, &asker->task, function, tag))
			*ret_response = OSD_TASK_SUCCEEDED;
		return OSD_OK;
	case OSD_TASK_ABORT:
	case OSD_TASK_ABORT_SET:
	case OSD_TASK_CLEAR_SET:
	case OSD_TASK_LU_RESET:
		break;
	default:
		*ret_response = OSD_TASK_REJECTED;
		return OSD_OK;
	}
	abort_covered(tasks, &asker->task, function, tag, resumed);
	if (osd_command_aborted(asker))
		return OSD_E_TASK_ABORTED;
	if (!covers_any(tasks, &asker->task, function, tag))
		return OSD_OK;
	asker->task.asked = function;
	asker->task.asked_tag = tag;
	tasks->asking++;
	return OSD_PENDING;
}

void osd_tasks_resume_askers(struct osd_tasks *tasks, struct osd_request **resumed)
{
	for (struct osd_task *asker = tasks->first; asker && tasks->asking; asker = asker->next)
		if (asker->asked && !covers_any(tasks, asker, asker->asked, asker->asked_tag))
			stop_asking(tasks, asker->request, OSD_OK, resumed);
}
