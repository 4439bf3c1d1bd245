/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dispatch.h -- the way of one request: decode, look up, authorise, validate, execute in a
 * transaction with deadlock retry, set and get attributes in the standard's order, status, sense
 * and lengths.
 *
 * Any number of threads may dispatch at once, each its own request.  The dispatcher never calls
 * request->done: the unit does, when osd_dispatch or osd_dispatch_resumed says the request is
 * finished. */
#ifndef OSD_COMMAND_DISPATCH_H
#define OSD_COMMAND_DISPATCH_H

#include <stdbool.h>

#include "command/context.h"

struct osd_copies;
struct osd_dispatcher;
struct osd_functions;

struct osd_dispatcher_config {
	struct osd_objects *objects;   /* borrowed */
	struct osd_exec *exec;         /* borrowed; NULL: no EXEC */
	struct osd_functions *functions; /* borrowed */
	struct osd_keyring *keyring;   /* borrowed */
	struct osd_nonces *nonces;     /* borrowed */
	uint8_t token[OSD_SECURITY_TOKEN_BYTES]; /* VPD page B1h's */
	void (*resume)(struct osd_request *request); /* handed to command functions */
	struct osd_copies *copies; /* copies.h; borrowed; NULL: commands never wait aside */
	const char *hold; /* tests only (task_management.h); borrowed; NULL: none */
	bool osc_compat;  /* request->osc_compat of all */
	osd_manage_tasks_fn *manage_tasks;	     /* the same; NULL: no task management */
};

enum osd_dispatch_result {
	OSD_DISPATCH_DONE,   /* status, sense and lengths are set */
	OSD_DISPATCH_PARKED, /* completes after config.resume and osd_dispatch_resumed */
	OSD_DISPATCH_LATER,  /* nothing was done; copies.requeue is called when it may begin */
	OSD_DISPATCH_QUEUE,  /* osd_dispatch_inline and _begin: would have to wait; nothing has happened */
};

enum osd_status osd_dispatcher_create(const struct osd_dispatcher_config *config,
				      struct osd_dispatcher **ret_dispatcher);
/* No request may be in the dispatcher or parked; NULL is fine. */
void osd_dispatcher_free(struct osd_dispatcher *dispatcher);

/* May wait for locks and disks. */
enum osd_dispatch_result osd_dispatch(struct osd_dispatcher *dispatcher,
				      struct osd_request *request);
/* Never waits: finishes a small READ, a GET ATTRIBUTES of an object, or a LOOKUP of a path, if all it
 * needs is in memory and unlocked; else OSD_DISPATCH_QUEUE. */
enum osd_dispatch_result osd_dispatch_inline(struct osd_dispatcher *dispatcher,
					     struct osd_request *request);
/* Never waits: begins a command that parks, if all it needs until then is in memory.  OSD_DISPATCH_PARKED,
 * OSD_DISPATCH_DONE, or OSD_DISPATCH_QUEUE. */
enum osd_dispatch_result osd_dispatch_begin(struct osd_dispatcher *dispatcher,
					    struct osd_request *request);
/* Finishes a resumed request: attributes, then completion.  It waits while FORMAT OSD has the
 * store.  OSD_DISPATCH_QUEUE: the thread must not wait, because FORMAT OSD may be waiting for
 * it. */
enum osd_dispatch_result osd_dispatch_resumed(struct osd_dispatcher *dispatcher,
					      struct osd_request *request, bool may_wait);
/* Before osd_dispatch_begin of a request that lingers: wakes up the sandbox that it will most likely need. */
void osd_dispatch_expect(struct osd_dispatcher *dispatcher);
/* Called after requests were marked as aborted: parked ones end soon, on another thread. */
void osd_dispatch_aborted(struct osd_dispatcher *dispatcher);

/* Background commands (background.h).  recover: called before any dispatch; from then on they do
 * their steps.  stop: ends these; the commands stay in the store. */
enum osd_status osd_dispatch_recover(struct osd_dispatcher *dispatcher);
void osd_dispatch_stop_background(struct osd_dispatcher *dispatcher);
/* Around the use of the store by a thread of the unit's own; arg: the dispatcher.  A background step counts as a
 * command inside: FORMAT OSD waits for it, and it waits for FORMAT OSD. */
void osd_dispatch_step_in(void *arg);
void osd_dispatch_step_out(void *arg);

#endif
