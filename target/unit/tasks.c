/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tasks.c -- see tasks.h.  A function covers the commands that were there before its asker: so two
 * askers never wait for each other. */
#include "unit/tasks.h"

static bool is_aborted(const struct osd_request *request)
{
	return __atomic_load_n(&request->aborted, __ATOMIC_ACQUIRE);
}

void osd_tasks_add(struct osd_tasks *tasks, struct osd_request *request)
{
	request->task.serial = tasks->next_serial++;
	request->task.asked = 0;
	request->task.next = tasks->first;
	request->task.at = &tasks->first;
	if (tasks->first)
		tasks->first->task.at = &request->task.next;
	tasks->first = request;
}

void osd_tasks_remove(struct osd_tasks *tasks, struct osd_request *request)
{
	(void)tasks;
	*request->task.at = request->task.next;
	if (request->task.next)
		request->task.next->task.at = request->task.at;
}

void osd_tasks_replace(struct osd_tasks *tasks, struct osd_request *request,
		       struct osd_request *stand_in)
{
	(void)tasks;
	stand_in->nexus = request->nexus;
	stand_in->task_tag = request->task_tag;
	stand_in->aborted = false;
	stand_in->task = request->task;
	*stand_in->task.at = stand_in;
	if (stand_in->task.next)
		stand_in->task.next->task.at = &stand_in->task.next;
}

static bool covers(const struct osd_request *asker, uint8_t function, uint64_t tag,
		   const struct osd_request *request)
{
	bool same_nexus = request->nexus.id == asker->nexus.id;

	if (request->task.serial >= asker->task.serial)
		return false;
	switch (function) {
	case OSD_TASK_ABORT:
	case OSD_TASK_QUERY:
		return same_nexus && request->task_tag == tag;
	case OSD_TASK_ABORT_SET:
	case OSD_TASK_QUERY_SET:
		return same_nexus;
	default:
		return true;
	}
}

static bool covers_any(const struct osd_tasks *tasks, const struct osd_request *asker,
		       uint8_t function, uint64_t tag)
{
	const struct osd_request *request = tasks->first;

	while (request && !covers(asker, function, tag, request))
		request = request->task.next;
	return request != NULL;
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

static void abort_covered(struct osd_tasks *tasks, const struct osd_request *asker,
			  uint8_t function, uint64_t tag, struct osd_request **resumed)
{
	for (struct osd_request *request = tasks->first; request; request = request->task.next)
		if (covers(asker, function, tag, request))
			osd_tasks_abort(tasks, request, resumed);
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
		if (covers_any(tasks, asker, function, tag))
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
	abort_covered(tasks, asker, function, tag, resumed);
	if (is_aborted(asker))
		return OSD_E_TASK_ABORTED;
	if (!covers_any(tasks, asker, function, tag))
		return OSD_OK;
	asker->task.asked = function;
	asker->task.tag = tag;
	tasks->asking++;
	return OSD_PENDING;
}

void osd_tasks_settle(struct osd_tasks *tasks, struct osd_request **resumed)
{
	for (struct osd_request *asker = tasks->first; asker && tasks->asking;
	     asker = asker->task.next)
		if (asker->task.asked &&
		    !covers_any(tasks, asker, asker->task.asked, asker->task.tag))
			stop_asking(tasks, asker, OSD_OK, resumed);
}
