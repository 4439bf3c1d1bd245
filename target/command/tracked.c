/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tracked.c -- the steps of a tracked command, its page and its record (tracked.h). */
#include "command/tracked.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "command/authorise.h"
#include "command/complete.h"
#include "object/tracking.h"
#include "object/txn_run.h"
#include "wire/cursor.h"

#define RECORD_VERSION 1
#define NOT_DONE_YET   99u /* percent at most while running */
#define STEP_WEIGHT    (8u << 20) /* by osd_txn_weight: a step over heavier members ends early */

/* ---- the record ------------------------------------------------------------------------------ */

void osd_tracked_key(const struct osd_tracked *tracked, enum osd_tracked_record kind,
		     uint8_t key[OSD_TRACKED_KEY_BYTES])
{
	struct osd_wr w = osd_wr_init(key, OSD_TRACKED_KEY_BYTES);

	osd_wr_be(&w, tracked->tracker.partition_id, 8);
	osd_wr_be(&w, tracked->incarnation, 4);
	osd_wr_be(&w, tracked->tracker.object_id, 8);
	osd_wr_be(&w, kind, 1);
}

bool osd_tracked_key_decode(const uint8_t *key, size_t length, enum osd_tracked_record kind,
			    struct osd_tracked *tracked)
{
	struct osd_rd r = osd_rd_init(key, length);

	tracked->tracker.partition_id = osd_rd_be(&r, 8);
	tracked->incarnation = (uint32_t)osd_rd_be(&r, 4);
	tracked->tracker.object_id = osd_rd_be(&r, 8);
	return osd_rd_be(&r, 1) == kind && !r.bad && length == OSD_TRACKED_KEY_BYTES;
}

static enum osd_status put_record(const struct osd_tracked *tracked, struct osd_txn *txn)
{
	const struct osd_tracked_state *state = &tracked->next;
	uint8_t key[OSD_TRACKED_KEY_BYTES], bytes[OSD_TRACKED_STATE_BYTES];
	struct osd_wr w = osd_wr_init(bytes, sizeof(bytes));

	osd_wr_be(&w, RECORD_VERSION, 1);					  /* 0 */
	osd_wr_be(&w, tracked->background, 1);					  /* 1 */
	osd_wr_be(&w, tracked->ctx->request->decoded.service_action, 2);	  /* 2-3 */
	osd_wr_be(&w, state->phase, 1);						  /* 4 */
	osd_wr_be(&w, state->percent, 1);					  /* 5 */
	osd_wr_zero(&w, 2);							  /* 6-7 */
	osd_wr_be(&w, state->next_id, 8);					  /* 8-15 */
	osd_wr_be(&w, state->processed, 8);					  /* 16-23 */
	osd_wr_be(&w, state->missing, 8);					  /* 24-31 */
	osd_wr_be(&w, state->total, 8);						  /* 32-39 */
	osd_wr_be(&w, state->source_created_ms, 8);				  /* 40-47 */
	osd_tracked_key(tracked, OSD_TRACKED_STATE, key);
	return osd_txn_record_put(txn, OSD_TABLE_COMMANDS, key, sizeof(key), bytes, sizeof(bytes));
}

bool osd_tracked_decode(const uint8_t *bytes, size_t length, struct osd_tracked *tracked,
			uint16_t *ret_service_action)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	struct osd_tracked_state *state = &tracked->state;
	uint64_t version = osd_rd_be(&r, 1), background = osd_rd_be(&r, 1);

	*ret_service_action = (uint16_t)osd_rd_be(&r, 2);
	state->phase = (uint8_t)osd_rd_be(&r, 1);
	state->percent = (uint8_t)osd_rd_be(&r, 1);
	osd_rd_be(&r, 2);
	state->next_id = osd_rd_be(&r, 8);
	state->processed = osd_rd_be(&r, 8);
	state->missing = osd_rd_be(&r, 8);
	state->total = osd_rd_be(&r, 8);
	if (osd_rd_left(&r) != 0) /* an earlier release did not store it */
		state->source_created_ms = osd_rd_be(&r, 8);
	tracked->background = background != 0;
	tracked->begun = tracked->claimed = true;
	return !r.bad && version == RECORD_VERSION && background <= 1;
}

/* Removes the stored records of the command. */
static enum osd_status forget(const struct osd_tracked *tracked, struct osd_txn *txn)
{
	enum osd_status status = OSD_OK;

	for (unsigned kind = OSD_TRACKED_STATE; kind <= OSD_TRACKED_REQUEST; kind++) {
		uint8_t key[OSD_TRACKED_KEY_BYTES];

		osd_tracked_key(tracked, (enum osd_tracked_record)kind, key);
		status = osd_txn_record_delete(txn, OSD_TABLE_COMMANDS, key, sizeof(key));
		if (status != OSD_OK && status != OSD_E_NO_OBJECT)
			return status;
	}
	return OSD_OK;
}

/* ---- the collection that is read ------------------------------------------------------------- */

enum osd_status osd_tracked_note_source(struct osd_tracked *tracked, struct osd_txn *txn,
					struct osd_object_id source)
{
	struct osd_object_facts facts;
	enum osd_status status = osd_txn_facts(txn, source, false, &facts);

	if (status == OSD_OK)
		tracked->next.source_created_ms = facts.created_ms;
	return status;
}

enum osd_status osd_tracked_same_source(const struct osd_tracked *tracked, struct osd_txn *txn,
					struct osd_object_id source)
{
	return osd_txn_same(txn, source, tracked->next.source_created_ms);
}

/* ---- the page -------------------------------------------------------------------------------- */

enum osd_status osd_tracked_check_idle(struct osd_request *request, struct osd_txn *txn,
				       struct osd_object_id collection, uint16_t field)
{
	uint16_t active = 0;
	enum osd_status status = osd_tracking_active(txn, collection, false, &active);

	return status == OSD_OK && active ? osd_command_fail(request, OSD_E_CDB_FIELD, field)
					  : status;
}

/* Checks that the collection still is, or may become, this command's. */
static enum osd_status hold_tracker(struct osd_tracked *tracked, struct osd_txn *txn)
{
	uint16_t active = 0;
	enum osd_status status = osd_tracking_active(txn, tracked->tracker, true, &active);

	return status == OSD_OK && active && !tracked->claimed
		       ? osd_command_fail(tracked->ctx->request, OSD_E_CDB_FIELD,
					  tracked->tracker_field)
		       : status;
}

/* The partition's id may belong to another partition by now, and so may the tracker's id. */
static enum osd_status hold_partition(struct osd_tracked *tracked, struct osd_txn *txn)
{
	uint32_t incarnation;
	enum osd_status status =
		osd_partition_incarnation(txn, tracked->tracker.partition_id, &incarnation);

	if (status == OSD_OK && tracked->begun && incarnation != tracked->incarnation)
		return OSD_E_NO_PARTITION;
	if (status == OSD_OK)
		tracked->incarnation = incarnation;
	return status;
}

static uint8_t percent_of(const struct osd_tracked_state *state)
{
	uint64_t percent = state->percent;

	if (state->done)
		return 100;
	if (state->total)
		percent = (state->processed + state->missing) * 100 / state->total;
	return (uint8_t)OSD_MIN(percent, NOT_DONE_YET);
}

/* Writes the page and the record as the step leaves them. */
static enum osd_status note(struct osd_tracked *tracked, struct osd_txn *txn)
{
	struct osd_tracked_state *next = &tracked->next;
	struct osd_tracking tracking = {.processed = next->processed, .missing = next->missing};
	enum osd_status status = OSD_OK;

	if (!next->gone) {
		next->percent = tracking.percent = percent_of(next);
		if (!next->done) {
			tracking.active = tracked->ctx->request->decoded.service_action;
			tracking.ended = OSD_TRACKING_RUNNING;
		}
		status = hold_tracker(tracked, txn);
		if (status == OSD_OK)
			status = osd_tracking_put(txn, tracked->tracker, &tracking);
	}
	if (status == OSD_OK && !next->done)
		status = put_record(tracked, txn);
	else if (status == OSD_OK && tracked->claimed)
		status = forget(tracked, txn);
	return status;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static enum osd_status do_one(struct osd_tracked *tracked, struct osd_txn *txn, uint64_t member,
			      osd_member_fn *fn)
{
	struct osd_object_id id = {tracked->tracker.partition_id, member};
	enum osd_status status = fn(tracked, txn, id);

	if (status == OSD_OK)
		tracked->next.processed++;
	if (status != OSD_E_NO_OBJECT)
		return status;
	tracked->ctx->request->fault = (struct osd_fault){0};
	tracked->next.missing++;
	return OSD_OK;
}

enum osd_status osd_tracked_each(struct osd_tracked *tracked, struct osd_txn *txn,
				 const uint64_t *ids, size_t count, osd_member_fn *fn)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < count; i++)
		status = do_one(tracked, txn, ids[i], fn);
	return status;
}

enum osd_status osd_tracked_walk(struct osd_tracked *tracked, struct osd_txn *txn,
				 struct osd_object_id collection, osd_member_fn *fn)
{
	struct osd_tracked_state *next = &tracked->next;
	struct osd_list_request list = {OSD_LIST_MEMBERS, collection, next->next_id};
	bool first = next->next_id == 0;
	struct osd_list_result batch;
	enum osd_status status =
		first ? osd_list(txn, &list, tracked->ids, OSD_STEP_MEMBERS, &batch)
		      : osd_list_uncounted(txn, &list, tracked->ids, OSD_STEP_MEMBERS, &batch);

	if (status == OSD_OK && first)
		next->total = batch.total_count;
	for (size_t i = 0; status == OSD_OK && i < batch.count; i++) {
		if (osd_txn_weight(txn) > STEP_WEIGHT) {
			batch.next_id = tracked->ids[i];
			break;
		}
		status = do_one(tracked, txn, tracked->ids[i], fn);
	}
	next->next_id = batch.next_id;
	next->done = batch.next_id == 0;
	return status;
}

enum osd_status osd_tracked_add(struct osd_tracked *tracked, struct osd_txn *txn,
				struct osd_object_id member)
{
	return osd_collection_add(txn, tracked->tracker, member.object_id);
}

/* Another collection may have the id by now.  The command itself reports that there is none. */
static enum osd_status authorise_again(struct osd_command_context *ctx, struct osd_txn *txn)
{
	enum osd_status status;

	if (ctx->def->flags & OSD_CMD_REQUESTED_ID)
		return OSD_OK;
	/* Nothing goes from the partition from here on. */
	status = osd_object_hold(txn, (struct osd_object_id){ctx->addressed.partition_id, 0});
	ctx->txn = txn;
	if (status == OSD_OK)
		status = osd_authorise_again(ctx);
	ctx->txn = NULL;
	return osd_status_is_gone(status) ? OSD_OK : status;
}

static enum osd_status begin(struct osd_tracked *tracked, struct osd_txn *txn)
{
	enum osd_status status = OSD_OK;

	tracked->next = tracked->state;
	if (!tracked->begun)
		status = authorise_again(tracked->ctx, txn);
	if (status == OSD_OK && !tracked->begun && tracked->def->begin)
		status = tracked->def->begin(tracked, txn);
	return status == OSD_OK ? hold_partition(tracked, txn) : status;
}

static enum osd_status step_in(struct osd_txn *txn, void *arg)
{
	struct osd_tracked *tracked = arg;
	enum osd_status status;

	osd_txn_watch(txn, tracked->unstoppable ? NULL : &tracked->ctx->request->aborted);
	status = begin(tracked, txn);
	if (status == OSD_OK && !tracked->claimed)
		status = osd_tracked_check_idle(tracked->ctx->request, txn, tracked->tracker,
						tracked->tracker_field);
	if (status == OSD_OK)
		status = tracked->def->step(tracked, txn);
	if (status == OSD_OK && tracked->next.done && !tracked->background && tracked->def->finish)
		status = tracked->def->finish(tracked, txn);
	return status == OSD_OK ? note(tracked, txn) : status;
}

enum osd_status osd_tracked_transact(const struct osd_tracked *tracked, osd_txn_fn *fn, void *arg)
{
	unsigned flags = osd_command_commit(tracked->ctx->request);

	if (tracked->ctx->data_flags & OSD_DATA_NO_TIMESTAMPS)
		flags |= OSD_TXN_NO_TIMESTAMPS;
	return osd_txn_run(tracked->ctx->objects, flags, fn, arg);
}

enum osd_status osd_tracked_accept(struct osd_tracked *tracked, struct osd_txn *txn)
{
	enum osd_status status = begin(tracked, txn);

	return status == OSD_OK ? note(tracked, txn) : status;
}

enum osd_status osd_tracked_step(struct osd_tracked *tracked)
{
	enum osd_status status = OSD_OK;

	if (tracked->begun && !tracked->unstoppable)
		osd_command_hold(tracked->ctx);
	if (tracked->begun && !tracked->unstoppable && osd_command_aborted(tracked->ctx->request))
		return OSD_E_TASK_ABORTED;
	if (tracked->def->prepare && !tracked->prepared)
		status = tracked->def->prepare(tracked);
	if (status != OSD_OK)
		return status;
	tracked->prepared = true;
	status = osd_tracked_transact(tracked, step_in, tracked);
	if (status != OSD_OK)
		return status;
	tracked->prepared = false;
	tracked->begun = true;
	tracked->claimed = !tracked->next.done;
	tracked->state = tracked->next;
	if (tracked->state.done && tracked->def->ended)
		tracked->def->ended(tracked, OSD_OK);
	return OSD_OK;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static enum osd_status fail_in(struct osd_txn *txn, void *arg)
{
	struct osd_tracked *tracked = arg;
	const struct osd_request *request = tracked->ctx->request;
	struct osd_tracking tracking = {
		.percent = tracked->state.percent,
		.ended = request->sam_status,
		.sense = request->sense,
		.sense_length = request->sense_length,
		.processed = tracked->state.processed,
		.missing = tracked->state.missing,
	};
	enum osd_status status = hold_partition(tracked, txn);

	if (status == OSD_OK)
		status = hold_tracker(tracked, txn);
	if (status == OSD_OK)
		status = osd_tracking_put(txn, tracked->tracker, &tracking);
	if (osd_status_is_gone(status))
		status = OSD_OK; /* the collection is gone, and its page with it */
	return status == OSD_OK ? forget(tracked, txn) : status;
}

static void tell_failure(struct osd_tracked *tracked, enum osd_status status)
{
	struct osd_command_context *ctx = tracked->ctx;
	struct osd_fault fault = ctx->request->fault;
	enum osd_status outcome;

	osd_complete_status(ctx->request, status, false);
	outcome = osd_txn_run(ctx->objects, OSD_TXN_INTERNAL, fail_in, tracked);
	if (outcome != OSD_OK) /* the next start finds the record, and ends the command then */
		osd_error("the Command Tracking page of collection 0x%" PRIx64 "/0x%" PRIx64
			  " cannot be written: %s",
			  tracked->tracker.partition_id, tracked->tracker.object_id,
			  osd_status_info(outcome)->meaning);
	ctx->request->fault = fault;
}

void osd_tracked_fail(struct osd_tracked *tracked, enum osd_status status)
{
	if (tracked->claimed)
		tell_failure(tracked, status);
	if (tracked->def->ended)
		tracked->def->ended(tracked, status);
	tracked->claimed = false;
}

void osd_tracked_release(struct osd_tracked *tracked)
{
	if (tracked && tracked->def->release)
		tracked->def->release(tracked);
	free(tracked);
}
