/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mover.c -- the helper that moves heads to where they should be: back to the SSD once it has room
 * again; off it while it is drained, or where the policy says so.
 *
 * The mover stores nothing: each record says where its head is and how long the object is, and a
 * pass walks over all records.  A timer checks each second whether a pass may find something to do.
 * The longer a pass took to read the records, the longer is the pause after it, so that reading
 * them takes a tenth of a processor at most.  Each move is a transaction of its own (head_move.c),
 * so a stopped pass loses nothing.
 *
 * Commands have priority: after each piece the mover waits as long as the rate demands, and while
 * commands wait for a worker. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "object/internal.h"

#define SCAN_RECORDS  1024u /* records of one scan */
#define SCAN_HEADS    64u   /* heads moved before the next scan */
#define LEAST_GAP     UINT64_C(1000000)
#define MOST_GAP      UINT64_C(60000000)   /* while moves fail */
#define SSD_FAILURES  16u		   /* then this pass brings no more heads to the SSD */
/* the charge of a move against the rate, for its commits and syncs */
#define LEAST_CHARGED (UINT64_C(64) << 10)

/* ---- pace -------------------------------------------------------------------------------------- */

static bool step(void *arg, uint64_t bytes)
{
	struct osd_objects *objects = arg;

	return osd_upkeep_keep_pace(objects, bytes, atomic_load(&objects->heads.rate),
				    osd_should_stop);
}

/* ---- who is where it should not be -------------------------------------------------------------- */

static bool is_misplaced(const struct osd_objects *objects, const struct osd_record *record,
			 uint64_t length, enum osd_tier_head_on *ret_goal)
{
	if (record->type != OSD_USER_OBJECT || !(record->flags & OSD_REC_HAS_FILES) ||
	    record->head_bytes == OSD_TIER_ONE)
		return false;
	*ret_goal = osd_head_goal(objects, record->head_bytes, length);
	if (*ret_goal == record->head_on)
		return false;
	return *ret_goal == OSD_HEAD_ON_TAIL ||
	       atomic_load(&objects->heads.policy) != OSD_HEADS_OFF;
}

/* The record of an object that is being written lags.  The current length decides whether its head
 * leaves the SSD. */
static bool may_be_misplaced(const struct osd_objects *objects, const struct osd_record *record,
			     enum osd_tier_head_on *ret_goal)
{
	*ret_goal = OSD_HEAD_ON_TAIL;
	return (atomic_load(&objects->heads.policy) == OSD_HEADS_SMALL_ONLY &&
		record->reserved_bytes != record->length) ||
	       is_misplaced(objects, record, record->length, ret_goal);
}

struct scan {
	struct osd_objects *objects;
	bool ssd_full;	      /* look only for heads that leave it */
	uint64_t passed_over; /* others */
	struct osd_key next;  /* the first record not visited yet */
	unsigned looked_at;
	bool more;
	struct osd_place found[SCAN_HEADS];
	struct osd_record records[SCAN_HEADS];
	size_t count;
};

static bool scan_record(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct scan *scan = arg;
	const uint8_t *bytes = key.data;
	enum osd_tier_head_on goal;
	struct osd_record record;

	if (key.length != OSD_KEY_OBJECT_PART)
		return true;
	if (scan->looked_at++ == SCAN_RECORDS || scan->count == SCAN_HEADS) {
		memcpy(scan->next.bytes, bytes, key.length);
		scan->next.length = key.length;
		scan->more = true;
		return false;
	}
	if (osd_record_decode(value.data, value.length, &record) != OSD_OK ||
	    !may_be_misplaced(scan->objects, &record, &goal))
		return true;
	if (scan->ssd_full && goal == OSD_HEAD_ON_HEAD) {
		scan->passed_over++;
	} else {
		scan->records[scan->count] = record;
		scan->found[scan->count++] = osd_key_place(bytes);
	}
	return true;
}

/* ---- one head ----------------------------------------------------------------------------------- */

struct pass {
	struct osd_objects *objects;
	uint64_t misplaced; /* heads found on the wrong device and still there */
	uint64_t scan_usec;
	bool ssd_full;	       /* or it fails */
	unsigned ssd_failures; /* of heads being moved to it */
	uint64_t failures;
	enum osd_status failed; /* the last one */
};

/* Not for heads that the next write moves anyway. */
static bool is_failure(enum osd_status status)
{
	switch (status) {
	case OSD_OK:
	case OSD_E_EXISTS:
	case OSD_E_NO_OBJECT:
	case OSD_E_NO_PARTITION:
	case OSD_E_NO_SPACE:
	case OSD_E_BUSY:
	case OSD_E_UNSUPPORTED:
	case OSD_E_TASK_ABORTED:
		return false;
	default:
		return true;
	}
}

static enum osd_status move_one(struct pass *pass, struct osd_object *object,
				const struct osd_record *record)
{
	struct osd_objects *objects = pass->objects;
	uint64_t length = atomic_load(&object->length), bytes = 0;
	struct osd_head_pace pace = {step, objects};
	enum osd_tier_head_on goal;
	enum osd_status status;

	if (!is_misplaced(objects, record, length, &goal))
		return OSD_OK;
	if (goal == OSD_HEAD_ON_HEAD && !osd_heads_below(objects, atomic_load(&objects->heads.low),
							 OSD_MIN(length, record->head_bytes))) {
		pass->ssd_full = true;
		return OSD_E_NO_SPACE;
	}
	status = osd_head_move(object, goal, &pace, &bytes);
	if (is_failure(status) && goal == OSD_HEAD_ON_HEAD && ++pass->ssd_failures == SSD_FAILURES)
		pass->ssd_full = true;
	if (status == OSD_OK)
		step(objects, bytes < LEAST_CHARGED ? LEAST_CHARGED - bytes : 0);
	return status == OSD_E_EXISTS ? OSD_OK : status;
}

static void look_after(struct pass *pass, const struct osd_place *place,
		       const struct osd_record *record)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_object_id id = {place->partition_id, place->object_id};
	enum osd_status status = osd_object_get(pass->objects, id, &object);

	/* A partition of another incarnation: the reaper frees what was found. */
	if (status == OSD_OK && object->partition->incarnation == place->incarnation)
		status = move_one(pass, object, record);
	if (status == OSD_OK || osd_status_is_gone(status))
		return;
	pass->misplaced++;
	if (is_failure(status)) {
		pass->failures++;
		pass->failed = status;
	}
}

/* ---- passes ------------------------------------------------------------------------------------- */

/* True if heads only return: then a full SSD ends the pass. */
static bool is_useless(const struct pass *pass)
{
	const struct osd_heads *heads = &pass->objects->heads;

	return pass->ssd_full && !atomic_load(&heads->draining) &&
	       atomic_load(&heads->policy) != OSD_HEADS_SMALL_ONLY;
}

/* False: it was stopped before its end. */
static bool run_pass(struct pass *pass)
{
	struct osd_objects *objects = pass->objects;
	struct scan *scan = calloc(1, sizeof(*scan));
	enum osd_status status = scan ? OSD_OK : OSD_E_NO_MEMORY;
	bool more = true;

	while (status == OSD_OK && more && !is_useless(pass) && !osd_should_stop(objects)) {
		struct osd_key from = scan->next;
		uint64_t began = osd_monotonic_usec();

		*scan = (struct scan){.objects = objects, .ssd_full = pass->ssd_full};
		status = osd_kv_scan(objects->kv, NULL, OSD_KV_OBJECTS, osd_key_bytes(&from), 0,
				     scan_record, scan);
		pass->scan_usec += osd_monotonic_usec() - began;
		pass->misplaced += scan->passed_over;
		more = scan->more;
		for (size_t i = 0;
		     i < scan->count && !is_useless(pass) && !osd_should_stop(objects); i++)
			look_after(pass, &scan->found[i], &scan->records[i]);
	}
	free(scan);
	return status == OSD_OK && !more;
}

/* Whether a pass may find something to do. */
static bool is_wanted(struct osd_objects *objects)
{
	struct osd_heads *heads = &objects->heads;

	if (!atomic_load(&heads->wanted))
		return false;
	return atomic_load(&heads->draining) ||
	       atomic_load(&heads->policy) == OSD_HEADS_SMALL_ONLY ||
	       (atomic_load(&heads->policy) == OSD_HEADS_FIRST &&
		osd_heads_below(objects, atomic_load(&heads->low), 0));
}

/* The files of removed objects are freed later than the records. */
static bool is_reaped(struct osd_objects *objects)
{
	static const enum osd_meta_kind kinds[] = {OSD_META_DEAD_EPOCH, OSD_META_DEAD_PARTITION,
						   OSD_META_DEAD_FILES};
	bool reaped = true;

	for (size_t i = 0; reaped && i < OSD_ARRAY_SIZE(kinds); i++) {
		struct osd_key prefix = osd_key_meta(kinds[i]);
		bool any;

		reaped = osd_key_any(objects, NULL, OSD_KV_META, osd_key_bytes(&prefix), &any) ==
				 OSD_OK &&
			 !any;
	}
	return reaped;
}

/* Updates the state after a pass. */
static void note_pass(struct osd_objects *objects, const struct pass *pass, bool whole)
{
	struct osd_heads *heads = &objects->heads;
	bool draining = atomic_load(&heads->draining);

	atomic_store(&heads->passed_over, pass->misplaced);
	if (!whole || pass->misplaced > 0 || (draining && !is_reaped(objects)))
		atomic_store(&heads->wanted, true);
	else if (draining && !atomic_load(&heads->wanted))
		atomic_store(&heads->drained, true);
}

/* How long to wait after this pass. */
static uint64_t gap_after(struct osd_heads *heads, const struct pass *pass)
{
	if (pass->failures > 0 && pass->failures != heads->failures)
		osd_warning("%" PRIu64 " heads could not be moved; the last one: %s",
			    pass->failures, osd_status_info(pass->failed)->meaning);
	heads->failures = pass->failures;
	heads->failing_gap_usec =
		pass->failures ? OSD_MIN(2 * OSD_MAX(heads->failing_gap_usec, LEAST_GAP), MOST_GAP)
			       : LEAST_GAP;
	return OSD_MAX(heads->failing_gap_usec, 10 * pass->scan_usec);
}

void osd_mover_work(void *arg)
{
	struct osd_objects *objects = arg;
	struct pass pass = {.objects = objects};
	uint64_t gap = LEAST_GAP;

	if (is_wanted(objects)) {
		/* Cleared before the pass: what comes up meanwhile is for the next one. */
		atomic_store(&objects->heads.wanted, false);
		note_pass(objects, &pass, run_pass(&pass));
		gap = gap_after(&objects->heads, &pass);
	}
	osd_timer_set(&objects->timers, &objects->mover_timer, osd_monotonic_usec() + gap);
}

uint64_t osd_mover_check(void *arg)
{
	struct osd_objects *objects = arg;

	/* The helper sets the time of the next check. */
	if (is_wanted(objects) && osd_helper_call(&objects->mover))
		return OSD_NEVER;
	return osd_monotonic_usec() + LEAST_GAP;
}
