/* SPDX-License-Identifier: GPL-2.0-or-later */
/* copies.h -- commands that wait for a COPY USER OBJECTS, or for a PUNCH of a command's or a script's, of
 * the same object.  The source of a
 * copy cannot change until it has been copied, which without common blocks takes as long as its bytes
 * take; of an object being punched nobody sees the data until its rest has been moved.  Commands that
 * would wait for that are put aside and dispatched again afterwards, from the start, so that they keep no
 * worker from others.  A second copy of a source that somebody waits for is put aside behind them, or
 * copies without end would keep them out.
 *
 * A command that was on its way when the copy began may still wait for it on its worker. */
#ifndef OSD_COMMAND_COPIES_H
#define OSD_COMMAND_COPIES_H

#include <stdatomic.h>

#include "base/lock.h"
#include "base/status.h"
#include "command/context.h"

/* A copy or PUNCH under way; whoever does it owns this. */
struct osd_copying {
	struct osd_copying *next;
	struct osd_object_id source;
	bool excludes_readers; /* a PUNCH */
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
/* In all of these copies may be NULL: commands wait where they are.
 *
 * Before the source is locked, and after it has been let go.  begin: fills in *copying. */
void osd_copies_begin(struct osd_copies *copies, struct osd_copying *copying,
		      struct osd_object_id source, bool excludes_readers);
void osd_copies_end(struct osd_copies *copies, struct osd_copying *copying);
/* Of a command just about to run: OSD_PENDING: it waits, and what is in its request is somebody
 * else's from here on; OSD_E_TASK_ABORTED: it would, but need not any more. */
enum osd_status osd_copies_defer(struct osd_copies *copies, const struct osd_command_context *ctx);
/* Those that wait and have been aborted are dispatched again, to end. */
void osd_copies_look_at_aborted(struct osd_copies *copies);

#endif
