/* SPDX-License-Identifier: GPL-2.0-or-later */
/* background.h -- commands that go on after their GOOD status (IMMED_TR): a bounded number of them,
 * in steps (tracked.h), on one thread of the unit; principals take turns (turns.h).
 *
 * What a command needs is in the store, in the transaction that accepted it: its CDB and Data-Out,
 * and after each step where to go on.  After a restart it goes on there; of commands that were not in
 * the background the page says aborted, or what they made is removed.  Task management does not
 * reach them, for their tasks have ended; what ends one early is a failure, or the removal of what
 * it works on.  One that loses its deadlocks pauses (turns.h). */
#ifndef OSD_COMMAND_BACKGROUND_H
#define OSD_COMMAND_BACKGROUND_H

#include <stdbool.h>

#include "base/status.h"
#include "command/context.h"
#include "command/tracked.h"

#define OSD_BACKGROUND_MAX	64
#define OSD_BACKGROUND_DATA_MAX (2u << 20) /* bytes of Data-Out a command may take along */

struct osd_background;
struct osd_backgrounds;

/* How a request gets its context again: everything the dispatcher does before the command function
 * runs.  *ret_copy: of the continuation; the context's, to be freed. */
typedef enum osd_status osd_rebuild_fn(void *dispatcher, struct osd_request *request,
				       struct osd_command_context *ctx, uint8_t **ret_copy);

enum osd_status osd_backgrounds_create(struct osd_objects *objects, osd_rebuild_fn *rebuild,
				       void *dispatcher, struct osd_backgrounds **ret_backgrounds);
/* After osd_backgrounds_stop, and the return of osd_backgrounds_step; NULL is fine. */
void osd_backgrounds_free(struct osd_backgrounds *backgrounds);
/* Before anything runs: takes up what the last run left in the store. */
enum osd_status osd_backgrounds_recover(struct osd_backgrounds *backgrounds);
/* Waits for a command that has something to do, and does one step of it between enter and leave;
 * false: stop was called. */
bool osd_backgrounds_step(struct osd_backgrounds *backgrounds, void (*enter)(void *arg),
			  void (*leave)(void *arg), void *arg);
/* Who needs all steps to end has not long to wait: the one under way ends early, and its command
 * goes on with it later. */
void osd_backgrounds_interrupt(struct osd_backgrounds *backgrounds);
/* Commands stay in the store where they are. */
void osd_backgrounds_stop(struct osd_backgrounds *backgrounds);

/* ---- for tracked.c --------------------------------------------------------------------------- */

/* A place, and copies of all the command needs.  OSD_E_QUEUE_FULL: its principal has as many places as are
 * free (base/places.h); OSD_E_CDB_FIELD at byte 11: too much Data-Out. */
enum osd_status osd_background_prepare(struct osd_command_context *ctx,
				       struct osd_background **ret_background);
/* The copies, in the transaction that accepts the command. */
enum osd_status osd_background_put(const struct osd_background *background,
				   const struct osd_tracked *tracked, struct osd_txn *txn);
/* Accepted: takes the background over; accepted is only read. */
void osd_background_start(struct osd_background *background, const struct osd_tracked *accepted);
/* REMOVE COLLECTION, with members, as the target's own; there is always a place for it.  Not yet
 * in the store, nor started. */
enum osd_status osd_background_removal(struct osd_backgrounds *backgrounds,
				       struct osd_object_id collection,
				       struct osd_background **ret_background);
struct osd_tracked *osd_background_tracked(struct osd_background *background); /* borrowed */
void osd_background_drop(struct osd_background *background); /* NULL is fine */
static inline void osd_background_dropp(struct osd_background **background)
{
	osd_background_drop(*background);
}

#endif
