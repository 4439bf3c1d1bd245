/* SPDX-License-Identifier: GPL-2.0-or-later */
/* copies.h -- commands that wait for a COPY USER OBJECTS, or for a PUNCH by a command or a script,
 * of the same object.  The source of a copy cannot change until it has been copied; without shared
 * blocks this takes time in proportion to its size.  The data of an object under PUNCH cannot be
 * read until the bytes after the hole have been moved.  Commands that would wait for either are put
 * aside, so that they occupy no worker.  Afterwards they are dispatched again from the start.  A
 * second copy of a source is put aside behind the commands that already wait for it; otherwise
 * endless copies would block them for ever.  A command that was already running when the copy began
 * may still wait for it on its worker. */
#ifndef OSD_COMMAND_COPIES_H
#define OSD_COMMAND_COPIES_H

#include <stdatomic.h>

#include "base/lock.h"
#include "base/status.h"
#include "command/context.h"

/* A copy or PUNCH under way; owned by the command or call that does it. */
struct osd_copying {
	struct osd_copying *next;
	struct osd_object_id source;
	bool excludes_readers;		     /* a PUNCH */
	struct osd_request *waiting, **last; /* under lock */
};

struct osd_copies {
	/* Dispatches a request again, on a worker; any thread. */
	void (*requeue)(struct osd_request *request);
	struct osd_lock lock;	  /* a leaf */
	struct osd_copying *list; /* under lock */
	_Atomic unsigned count;
};

void osd_copies_init(struct osd_copies *copies, void (*requeue)(struct osd_request *request));
void osd_copies_release(struct osd_copies *copies);
/* In all of these, copies may be NULL: then commands wait where they are.  Call begin before the
 * source is locked, and end after it is unlocked.  begin fills in *copying. */
void osd_copies_begin(struct osd_copies *copies, struct osd_copying *copying,
		      struct osd_object_id source, bool excludes_readers);
void osd_copies_end(struct osd_copies *copies, struct osd_copying *copying);
/* Called for a command about to run.  OSD_PENDING: it waits, and the caller must not touch its
 * request any more.  OSD_E_TASK_ABORTED: it would have to wait, but it was aborted. */
enum osd_status osd_copies_defer(struct osd_copies *copies, const struct osd_command_context *ctx);
/* The source that the continuation of COPY USER OBJECTS names; OSD_E_CDB_FIELD: it names none that is supported. */
struct osd_copy_source;
enum osd_status osd_copies_source(const struct osd_command_context *ctx,
				  struct osd_copy_source *ret_source);
/* Dispatches the waiting commands that were aborted again, so that they end. */
void osd_copies_look_at_aborted(struct osd_copies *copies);

#endif
