/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tasks.h -- the commands a unit has, for task management (command/tasks.h): which of them a
 * function covers, and who waits for their end.
 * Not here: locks (every call is made under unit->lock), what an abort does to a command. */
#ifndef OSD_UNIT_TASKS_H
#define OSD_UNIT_TASKS_H

#include <stddef.h>

#include "command/request.h"
#include "command/tasks.h"

struct osd_tasks {
	struct osd_request *first; /* linked by request->task.next, newest first */
	uint64_t next_serial;
	size_t asking; /* askers that wait for commands to end */
};

void osd_tasks_add(struct osd_tasks *tasks, struct osd_request *request);
void osd_tasks_remove(struct osd_tasks *tasks, struct osd_request *request);
/* The request is about to be answered, and may be gone right after: stand_in takes its place until
 * the answer is given, so that nobody is told sooner that it has ended. */
void osd_tasks_replace(struct osd_tasks *tasks, struct osd_request *request,
		       struct osd_request *stand_in);

/* Marks one command as aborted.  An asker that waits stops waiting: it is put in front of *resumed
 * (linked by request->next), its fault.status set. */
void osd_tasks_abort(struct osd_tasks *tasks, struct osd_request *request,
		     struct osd_request **resumed);
/* A function as command/tasks.h describes it.  OSD_PENDING: the asker waits. */
enum osd_status osd_tasks_manage(struct osd_tasks *tasks, struct osd_request *asker,
				 uint8_t function, uint64_t tag,
				 enum osd_task_response *ret_response,
				 struct osd_request **resumed);
/* After commands have ended: takes out askers that have nothing left to wait for. */
void osd_tasks_settle(struct osd_tasks *tasks, struct osd_request **resumed);

#endif
