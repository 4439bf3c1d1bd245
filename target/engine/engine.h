/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine.h -- who works on what, when: one opened store with its dispatcher, a queue of requests
 * and an elastic pool of worker threads.
 *
 * Order: osd_engine_open; then from any thread osd_engine_submit (or _try, then _submit); every
 * request submitted gets its done() call exactly once, from a worker; osd_engine_close last,
 * when no request is submitted any more: it waits for those under way.
 *
 * Worker threads block all signals, are asked to stop and joined, never cancelled (design D3). */
#ifndef OSD_ENGINE_ENGINE_H
#define OSD_ENGINE_ENGINE_H

#include <stdbool.h>

#include "base/status.h"
#include "command/request.h"
#include "command/tasks.h"
#include "engine/config.h"
#include "engine/figures.h"

struct osd_engine;

#define OSD_WORKERS_MAX 64

/* Opens the store (recovery included) and starts the workers.  On failure message tells a person
 * what to do. */
enum osd_status osd_engine_open(const struct osd_config *config, char message[256],
				struct osd_engine **ret_engine);
/* Waits for every request, stops the workers, closes the store.  NULL is fine. */
void osd_engine_close(struct osd_engine *engine);

/* Bytes the store may hold. */
uint64_t osd_engine_capacity(struct osd_engine *engine);

/* The security token of this start, for VPD page B1h; borrowed. */
const uint8_t *osd_engine_token(const struct osd_engine *engine);

/* The store's identity: osd_objects_system_id and osd_objects_serial; borrowed. */
const uint8_t *osd_engine_system_id(const struct osd_engine *engine);
const char *osd_engine_serial(const struct osd_engine *engine);

/* Queues the request; returns at once. */
void osd_engine_submit(struct osd_engine *engine, struct osd_request *request);
/* For a master thread that must not wait: true when the request was finished at once, on this
 * thread, without a done() call (at most 50 us of such work in any 100 us); false: submit it. */
bool osd_engine_try(struct osd_engine *engine, struct osd_request *request);

/* A parked request goes on; any thread, exactly once per parking (command/context.h). */
void osd_engine_resume(struct osd_request *request);
/* A task management function covers the request, which was submitted and is not done yet: it ends
 * with TASK ABORTED where it next looks (command/tasks.h).  Never waits. */
void osd_engine_abort(struct osd_engine *engine, struct osd_request *request);
/* PERFORM TASK MANAGEMENT FUNCTION of a request that the engine runs (command/tasks.h). */
osd_manage_tasks_fn osd_engine_manage_tasks;

/* Any thread: a front end has refused a command for this (engine/figures.h). */
void osd_engine_reject(struct osd_engine *engine, enum osd_rejection why);

struct osd_engine_load {
	unsigned workers; /* wanted */
	unsigned busy;	  /* of them, and the thread beside a single one */
	unsigned queued;  /* commands that wait for one */
	uint64_t oldest_usec; /* how long the first of these has waited since it came */
};
void osd_engine_load(struct osd_engine *engine, struct osd_engine_load *ret_load);

/* Changes the number of workers, 1..OSD_WORKERS_MAX, while requests run; returns what is in
 * force. */
unsigned osd_engine_set_workers(struct osd_engine *engine, unsigned workers);

#endif
