/* SPDX-License-Identifier: GPL-2.0-or-later */
/* background.h -- background commands (IMMED_TR), which run after their GOOD status: a bounded
 * number of them, in steps (tracked.h), on a thread of the unit that lives while there are any.
 * Principals take turns (turns.h).
 *
 * The transaction that accepts a command stores everything it needs: its CDB and its Data-Out.
 * Each step stores the point to continue from.  After a restart the command resumes there.  For
 * commands that were not in the background, a restart writes "aborted" to their page, or removes
 * what they made.  Task management does not affect background commands, because their tasks have
 * ended.  Only a failure, or the removal of the object it works on, ends one early.  A command that
 * loses its deadlocks pauses (turns.h). */
#ifndef OSD_COMMAND_BACKGROUND_H
#define OSD_COMMAND_BACKGROUND_H

#include "base/status.h"
#include "base/util.h"
#include "command/context.h"
#include "command/tracked.h"

#define OSD_BACKGROUND_MAX	64
#define OSD_BACKGROUND_DATA_MAX (2u << 20) /* the most bytes of Data-Out a command may keep */

struct osd_background;
struct osd_backgrounds;

/* Rebuilds the context of a stored request: does everything that the dispatcher does before the
 * command function runs.  ctx is zeroed; whatever the outcome it needs osd_context_release. */
typedef enum osd_status osd_rebuild_fn(void *dispatcher, struct osd_request *request,
				       struct osd_command_context *ctx);

/* The functions of the dispatcher for background commands. */
struct osd_background_ops {
	/* The row of a service action (table.h). */
	const struct osd_command_def *(*row)(uint16_t service_action);
	osd_rebuild_fn *rebuild;
	void (*enter)(void *dispatcher); /* before and after each step */
	void (*leave)(void *dispatcher);
};

enum osd_status osd_backgrounds_create(struct osd_objects *objects,
				       const struct osd_background_ops *ops, void *dispatcher,
				       struct osd_backgrounds **ret_backgrounds);
/* Call it after osd_backgrounds_stop; NULL is fine. */
void osd_backgrounds_free(struct osd_backgrounds *backgrounds);
/* Called before any command runs: resumes the commands that the last run left in the store.  No
 * step is done before its end. */
enum osd_status osd_backgrounds_recover(struct osd_backgrounds *backgrounds);
/* Makes the step under way end early, for a caller that waits until no step runs.  The command
 * continues with it later. */
void osd_backgrounds_interrupt(struct osd_backgrounds *backgrounds);
/* Ends the thread.  The commands stay in the store and resume at the next start. */
void osd_backgrounds_stop(struct osd_backgrounds *backgrounds);

/* ---- for tracked_run.c ----------------------------------------------------------------------- */

/* Replaces a claimed command by the removal of its tracker, in the store.  OSD_E_NO_OBJECT,
 * OSD_E_NO_PARTITION: the tracker is gone already.  (tracked_run.c) */
enum osd_status osd_tracked_undo(struct osd_tracked *failed, struct osd_background **ret_removal);

/* Reserves a place and copies all that the command needs.  OSD_E_QUEUE_FULL: its principal has as
 * many places as are free (base/places.h); OSD_E_CDB_FIELD at byte 11: too much Data-Out. */
enum osd_status osd_background_prepare(struct osd_command_context *ctx,
				       struct osd_background **ret_background);
/* Stores the copies, in the transaction that accepts the command. */
enum osd_status osd_background_put(const struct osd_background *background,
				   const struct osd_tracked *tracked, struct osd_txn *txn);
/* Starts an accepted command.  Takes over background; accepted is only read. */
void osd_background_start(struct osd_background *background, const struct osd_tracked *accepted);
/* Makes a REMOVE COLLECTION, with members, on behalf of the target itself.  There is always a place
 * for it.  It is not yet stored or started. */
enum osd_status osd_background_removal(struct osd_backgrounds *backgrounds,
				       struct osd_object_id collection,
				       struct osd_background **ret_background);
void osd_background_drop(struct osd_background *background); /* NULL is fine */
OSD_DEFINE_CLEANUP(struct osd_background *, osd_background_drop)

#endif
