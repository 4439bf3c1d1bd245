/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unit.h -- runs requests: one opened store with its dispatcher, a queue of requests and an elastic
 * pool of worker threads.
 *
 * Order: call osd_unit_open first.  Then any thread may call osd_unit_submit (or _try, then
 * _submit).  Every submitted request gets its done() call exactly once, from any thread.  Call
 * osd_unit_close last, when no request is submitted any more: it waits for those under way.  Worker
 * threads block all signals.  They are asked to stop and joined, never cancelled. */
#ifndef OSD_UNIT_ENGINE_H
#define OSD_UNIT_ENGINE_H

#include <stdbool.h>

#include "base/status.h"
#include "command/request.h"
#include "command/task_management.h"
#include "unit/config.h"
#include "unit/command_figures.h"

struct osd_unit;

#define OSD_WORKERS_MAX 64

/* Opens the store (recovery included) and starts the workers.  On failure, message has instructions
 * for a person. */
enum osd_status osd_unit_open(const struct osd_config *config, char message[256],
				struct osd_unit **ret_unit);
/* Waits for every request, stops the workers, closes the store.  NULL is fine. */
void osd_unit_close(struct osd_unit *unit);

/* The bytes that the store can hold. */
uint64_t osd_unit_capacity(struct osd_unit *unit);

/* The security token of this start, for VPD page B1h; borrowed. */
const uint8_t *osd_unit_token(const struct osd_unit *unit);

/* The store's identity: osd_objects_system_id and osd_objects_serial; borrowed. */
const uint8_t *osd_unit_system_id(const struct osd_unit *unit);
const char *osd_unit_serial(const struct osd_unit *unit);

/* The thread of a front end, which must not wait, runs commands for at most 50 us of each 100 us.  This keeps the
 * account, belongs to the thread and is zero at first. */
struct osd_inline_window {
	uint64_t start_ns, spent_ns, last_end_ns;
	bool pipelined; /* the last command came so soon that others wait, most likely */
	bool asleep;	/* it came so long ago that processors sleep, if nothing else runs */
};
/* Queues the request, or begins it at once if it parks soon; returns without waiting.  window NULL: it is
 * queued. */
void osd_unit_submit(struct osd_unit *unit, struct osd_inline_window *window,
		     struct osd_request *request);
/* For the thread of a front end.  True: the request is finished, without a call of done().  False: submit it. */
bool osd_unit_try(struct osd_unit *unit, struct osd_inline_window *window,
		  struct osd_request *request);

/* A parked request goes on; any thread, exactly once per parking (command/context.h). */
void osd_unit_resume(struct osd_request *request);
/* A task management function covers the request, which was submitted and is not done yet: it ends
 * with TASK ABORTED where it next looks (command/task_management.h).  Never waits. */
void osd_unit_abort(struct osd_unit *unit, struct osd_request *request);
/* PERFORM TASK MANAGEMENT FUNCTION of a request that the unit runs (command/task_management.h). */
osd_manage_tasks_fn osd_unit_manage_tasks;

/* Any thread: a front end has refused a command for this (unit/command_figures.h). */
void osd_unit_reject(struct osd_unit *unit, enum osd_rejection why);

struct osd_unit_load {
	unsigned workers; /* wanted */
	unsigned busy;	  /* of them, and the thread beside a single one */
	unsigned queued;  /* commands that wait for one */
	uint64_t oldest_usec; /* how long the first of these has waited since it came */
};
void osd_unit_load(struct osd_unit *unit, struct osd_unit_load *ret_load);

/* Changes the number of workers, 1..OSD_WORKERS_MAX, while requests run; returns what is in
 * force. */
unsigned osd_unit_set_workers(struct osd_unit *unit, unsigned workers);

#endif
