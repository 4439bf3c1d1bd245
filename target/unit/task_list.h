/* SPDX-License-Identifier: GPL-2.0-or-later */
/* task_list.h -- the commands of a unit, for task management (command/task_management.h): the
 * commands that a function covers, and the functions that wait for their end.  Elsewhere: locks
 * (the caller holds unit->lock), the effect of an abort on a command. */
#ifndef OSD_UNIT_TASK_LIST_H
#define OSD_UNIT_TASK_LIST_H

#include <stddef.h>

#include "command/request.h"
#include "command/task_management.h"

struct osd_tasks {
	struct osd_task *first; /* newest first */
	uint64_t next_serial;
	size_t asking; /* askers that wait for commands to end */
};

void osd_tasks_add(struct osd_tasks *tasks, struct osd_request *request);
void osd_tasks_remove(struct osd_task *task);
/* The front end may free the request as soon as it has the answer.  stand_in keeps its place in the
 * list until the answer has been sent, because a task management function may not report its end
 * before. */
void osd_tasks_replace(struct osd_request *request, struct osd_task *stand_in);

/* Marks one command as aborted.  If it is a waiting function, it stops waiting: it is put in front
 * of *resumed (linked by request->next), with its fault.status set. */
void osd_tasks_abort(struct osd_tasks *tasks, struct osd_request *request,
		     struct osd_request **resumed);
/* A function as command/task_management.h describes it.  OSD_PENDING: the asker waits. */
enum osd_status osd_tasks_manage(struct osd_tasks *tasks, struct osd_request *asker,
				 uint8_t function, uint64_t tag,
				 enum osd_task_response *ret_response,
				 struct osd_request **resumed);
/* Called after commands have ended: takes out the functions that wait for nothing any more. */
void osd_tasks_resume_askers(struct osd_tasks *tasks, struct osd_request **resumed);

#endif
