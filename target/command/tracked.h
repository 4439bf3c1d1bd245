/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tracked.h -- commands that run in bounded steps.  The Command Tracking page of a collection shows
 * their progress (osd2-wire 5.16).
 *
 * Each step is one transaction: the work on at most OSD_STEP_MEMBERS objects (fewer if they are
 * heavy), the page, and a record of the point to continue from.  A step that is not the last claims
 * the collection: until the command has ended, other commands that would change its members are
 * refused (24/00).  A command that ends with one step leaves no record.  With IMMED_TR the first
 * transaction only accepts the command: checks, claim, record.  After GOOD, background.h runs the
 * steps, also after a restart. */
#ifndef OSD_COMMAND_TRACKED_H
#define OSD_COMMAND_TRACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "command/context.h"
#include "object/txn_run.h"

#define OSD_STEP_MEMBERS 1024

struct osd_tracked_query; /* cmd_query.c */

/* The state that is stored between steps. */
struct osd_tracked_state {
	uint8_t phase; /* the command's own */
	uint8_t percent;
	uint64_t next_id; /* first id that this phase has not processed */
	uint64_t processed, missing;
	uint64_t total; /* objects to process, as counted at the first step; 0: unknown */
	uint64_t source_created_ms; /* of the second collection that the command reads; 0: it reads
				     * none, or a release that did not store this accepted it */
	int64_t capacity_change;    /* so far; not in the record, because a resumed command cannot
				  * report it */
	bool done;		    /* this was the last step */
	bool gone;		    /* with done: the last step removed the tracker */
};

struct osd_tracked {
	struct osd_command_context *ctx;
	const struct osd_tracked_def *def;
	struct osd_object_id tracker; /* the collection whose page shows the progress */
	uint32_t incarnation;	      /* once begun: of the tracker's partition */
	uint16_t tracker_field;	      /* the CDB byte that names it */
	uint64_t other_created_ms;    /* of the second collection that it names, as authorised */
	bool background;	      /* the command has been answered; it runs in the background */
	bool begun, claimed;
	bool unstoppable;		/* continues when its task is aborted */
	struct osd_tracked_state state; /* as committed */
	struct osd_tracked_state next;	/* the state after the step under way */

	/* The results of prepare for the next step. */
	bool prepared;
	struct osd_tracked_query *query; /* owned by the command */
	size_t count;
	uint64_t ids[OSD_STEP_MEMBERS];
};

/* All but step may be NULL.  begin and step run in a transaction and may run again. */
struct osd_tracked_def {
	/* Called in the first transaction, before anything else: checks, creations, attributes. */
	enum osd_status (*begin)(struct osd_tracked *tracked, struct osd_txn *txn);
	/* Called before each step, outside its transaction: reads of any length. */
	enum osd_status (*prepare)(struct osd_tracked *tracked);
	enum osd_status (*step)(struct osd_tracked *tracked, struct osd_txn *txn);
	/* Called in the transaction of the last step, unless in the background. */
	enum osd_status (*finish)(struct osd_tracked *tracked, struct osd_txn *txn);
	/* Called after the last step, or after a failure of any step but the first. */
	void (*ended)(struct osd_tracked *tracked, enum osd_status status);
	void (*release)(struct osd_tracked *tracked);
	/* If the command fails before it has been answered, its tracker is removed: no client knows
	 * of it.  If the target crashes there, the next start removes it. */
	bool leaves_nothing;
};

extern const struct osd_tracked_def osd_tracked_set_members, osd_tracked_remove_members;
extern const struct osd_tracked_def osd_tracked_remove_collection, osd_tracked_query;
extern const struct osd_tracked_def osd_tracked_create_collection;

/* Runs the command to its end, or, with IMMED_TR, until it is accepted. */
enum osd_status osd_tracked_run(struct osd_command_context *ctx, const struct osd_tracked_def *def,
				struct osd_object_id tracker, uint16_t tracker_field);

/* A walk over the members of a collection: calls fn for those of the next batch.  A member removed
 * meanwhile counts as missing.  Moves tracked->next; done after the last batch. */
typedef enum osd_status osd_member_fn(struct osd_tracked *tracked, struct osd_txn *txn,
				      struct osd_object_id member);
enum osd_status osd_tracked_walk(struct osd_tracked *tracked, struct osd_txn *txn,
				 struct osd_object_id collection, osd_member_fn *fn);
/* The same for each of ids. */
enum osd_status osd_tracked_each(struct osd_tracked *tracked, struct osd_txn *txn,
				 const uint64_t *ids, size_t count, osd_member_fn *fn);
/* Adds the member to the tracker. */
osd_member_fn osd_tracked_add;
/* Called by begin: the command will read this collection in all its steps. */
enum osd_status osd_tracked_note_source(struct osd_tracked *tracked, struct osd_txn *txn,
					struct osd_object_id source);
/* Called by step: OSD_E_NO_OBJECT: another collection has the id by now, or none has. */
enum osd_status osd_tracked_same_source(const struct osd_tracked *tracked, struct osd_txn *txn,
					struct osd_object_id source);
/* OSD_E_CDB_FIELD at that byte if a command is in progress on the collection. */
enum osd_status osd_tracked_check_idle(struct osd_request *request, struct osd_txn *txn,
				       struct osd_object_id collection, uint16_t field);

/* ---- for tracked_run.c and background.c ------------------------------------------------------ */

/* osd_txn_run() with the flags of the command. */
enum osd_status osd_tracked_transact(const struct osd_tracked *tracked, osd_txn_fn *fn, void *arg);
/* Checks, claims the tracker and writes page and record, in the transaction that accepts the command for the
 * background.  The caller makes tracked->next its state after the commit. */
enum osd_status osd_tracked_accept(struct osd_tracked *tracked, struct osd_txn *txn);
/* Does one step.  OSD_OK: state.done is set if it was the last; OSD_E_BUSY: try again later. */
enum osd_status osd_tracked_step(struct osd_tracked *tracked);
/* Ends a command as failed: writes that to its page, if it is claimed. */
void osd_tracked_fail(struct osd_tracked *tracked, enum osd_status status);
void osd_tracked_release(struct osd_tracked *tracked);

/* The record of a claimed command (docs/format.md); key: partition, incarnation, tracker,
 * kind. */
enum osd_tracked_record { OSD_TRACKED_STATE = 0, OSD_TRACKED_REQUEST = 1 };
#define OSD_TRACKED_KEY_BYTES	21u
#define OSD_TRACKED_STATE_BYTES 48u
void osd_tracked_key(const struct osd_tracked *tracked, enum osd_tracked_record kind,
		     uint8_t key[OSD_TRACKED_KEY_BYTES]);
/* Decodes the key of a record; false: the record is of another kind. */
bool osd_tracked_key_decode(const uint8_t *key, size_t length, enum osd_tracked_record kind,
			    struct osd_tracked *tracked);
/* False: this release does not know the record's version. */
bool osd_tracked_decode(const uint8_t *bytes, size_t length, struct osd_tracked *tracked,
			uint16_t *ret_service_action);

#endif
