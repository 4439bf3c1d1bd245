/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tracked.h -- commands that run in bounded steps while the Command Tracking page of a collection
 * tells how far they are (osd2-wire 5.16, design D6).
 *
 * Each step is one transaction: the work on at most OSD_STEP_MEMBERS objects, fewer where that is
 * much, the page, and a record of where to go on.  A step that is not the last claims the
 * collection: until the command has ended, others that would change its members are refused
 * (24/00).  A command that ends with one step leaves no record.
 *
 * With IMMED_TR the first transaction only accepts the command: checks, claim, record; after GOOD
 * background.h runs the steps, also after a restart. */
#ifndef OSD_COMMAND_TRACKED_H
#define OSD_COMMAND_TRACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "command/context.h"
#include "object/object.h"

#define OSD_STEP_MEMBERS 1024

struct osd_background;
struct osd_tracked_query; /* cmd_query.c */

/* What is kept in the store between steps. */
struct osd_tracked_state {
	uint8_t phase;	  /* the command's own */
	uint8_t percent;
	uint64_t next_id; /* first id not dealt with in this phase */
	uint64_t processed, missing;
	uint64_t total; /* objects to process, as far as known at the first step; 0: unknown */
	int64_t capacity_change; /* so far; not in the record, as nothing can be told later */
	bool done;	/* this was the last step */
	bool gone;	/* with done: and it removed the tracker */
};

struct osd_tracked {
	struct osd_command_context *ctx;
	const struct osd_tracked_def *def;
	struct osd_object_id tracker; /* whose page tells of the command */
	uint32_t incarnation;	      /* once begun: of the tracker's partition */
	uint16_t tracker_field;	      /* the CDB byte that names it */
	bool background;	      /* what must be answered has been */
	bool begun, claimed;
	bool unstoppable; /* goes on when its task is aborted */
	struct osd_tracked_state state; /* as committed */
	struct osd_tracked_state next;	/* as the step under way leaves it */

	/* What prepare found for the next step. */
	bool prepared;
	struct osd_tracked_query *query; /* owned by the command */
	size_t count;
	uint64_t ids[OSD_STEP_MEMBERS];
};

/* All but step may be NULL.  begin and step run in a transaction and may run again. */
struct osd_tracked_def {
	/* In the first transaction, before anything else: checks; what is made or told first. */
	enum osd_status (*begin)(struct osd_tracked *tracked, struct osd_txn *txn);
	/* Before each step, outside its transaction: reads of any length. */
	enum osd_status (*prepare)(struct osd_tracked *tracked);
	enum osd_status (*step)(struct osd_tracked *tracked, struct osd_txn *txn);
	/* In the transaction of the last step, unless in the background. */
	enum osd_status (*finish)(struct osd_tracked *tracked, struct osd_txn *txn);
	/* After the last step, or a failure of any after the first. */
	void (*ended)(struct osd_tracked *tracked, enum osd_status status);
	void (*release)(struct osd_tracked *tracked);
	/* One that fails before it has been answered takes the tracker away, of which nobody has
	 * been told; so does the next start if the target ends there. */
	bool leaves_nothing;
};

extern const struct osd_tracked_def osd_tracked_set_members, osd_tracked_remove_members;
extern const struct osd_tracked_def osd_tracked_remove_collection, osd_tracked_query;
extern const struct osd_tracked_def osd_tracked_create_collection;

/* Runs the command to its end, or, with IMMED_TR, until it is accepted. */
enum osd_status osd_tracked_run(struct osd_command_context *ctx, const struct osd_tracked_def *def,
				struct osd_object_id tracker, uint16_t tracker_field);

/* A walk over the members of a collection: calls fn for those of the next batch.  A member that
 * somebody removes meanwhile counts as missing.  Moves tracked->next; done after the last batch. */
typedef enum osd_status osd_member_fn(struct osd_tracked *tracked, struct osd_txn *txn,
				      struct osd_object_id member);
enum osd_status osd_tracked_walk(struct osd_tracked *tracked, struct osd_txn *txn,
				 struct osd_object_id collection, osd_member_fn *fn);
/* fn for each of ids, in the same way. */
enum osd_status osd_tracked_each(struct osd_tracked *tracked, struct osd_txn *txn,
				 const uint64_t *ids, size_t count, osd_member_fn *fn);
/* OSD_E_CDB_FIELD at that byte when a command is in progress on the collection. */
enum osd_status osd_tracked_check_idle(struct osd_request *request, struct osd_txn *txn,
				       struct osd_object_id collection, uint16_t field);

/* ---- for background.c ------------------------------------------------------------------------ */

/* One step.  OSD_OK: state.done says whether it was the last; OSD_E_BUSY: try again later. */
enum osd_status osd_tracked_step(struct osd_tracked *tracked);
/* Ends a claimed command as failed: its page says so, or it leaves nothing. */
void osd_tracked_fail(struct osd_tracked *tracked, enum osd_status status);
/* In place of a claimed command that leaves nothing: from now on the store has the removal of its
 * tracker.  OSD_E_NO_OBJECT, OSD_E_NO_PARTITION: that is gone. */
enum osd_status osd_tracked_undo(struct osd_tracked *failed, struct osd_background **ret_removal);
void osd_tracked_release(struct osd_tracked *tracked);

/* The record of a claimed command (docs/format.md); key: partition, incarnation, tracker,
 * kind. */
enum osd_tracked_record { OSD_TRACKED_STATE = 0, OSD_TRACKED_REQUEST = 1 };
#define OSD_TRACKED_KEY_BYTES	21u
#define OSD_TRACKED_STATE_BYTES 40u
void osd_tracked_key(const struct osd_tracked *tracked, enum osd_tracked_record kind,
		     uint8_t key[OSD_TRACKED_KEY_BYTES]);
/* From the key of a record; false: not of one of this kind. */
bool osd_tracked_key_decode(const uint8_t *key, size_t length, enum osd_tracked_record kind,
			    struct osd_tracked *tracked);
/* false: not a record this release knows. */
bool osd_tracked_decode(const uint8_t *bytes, size_t length, struct osd_tracked *tracked,
			uint16_t *ret_service_action);

#endif
