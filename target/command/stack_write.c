/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_write.c -- see stack_write.h. */
#include "command/stack_write.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/stack_answer.h"
#include "command/phase.h"
#include "command/stack_run.h"
#include "command/task_management.h"
#include "object/draft.h"
#include "object/txn_run.h"
#include "object/view.h"
#include "wire/cursor.h"

#define TRIES 16 /* of a WRITE, while others change the object */

/* The bytes to store. */
struct osd_stack_written {
	struct osd_stack *stack; /* owned: that has made it */
	uint8_t *base;		 /* owned: data are in it */
	uint8_t *data;
	struct osd_piece piece;	 /* in the stored object */
	bool replaces;		 /* all of the object, and not a piece */
	bool versioned;		 /* it holds for this version of the stored bytes alone */
	struct osd_data_version version;
	bool stale; /* the object has changed since */
	unsigned tries;
};

struct stack_write {
	struct osd_stack_run run;
	struct osd_object
		*source; /* owned: the one that is changed, if it is not that of the command */
	const uint8_t *
		bytes; /* of the command, for [start, end) of the object; borrowed with the request */
	uint64_t start, end;
	uint64_t first, stop; /* stored bytes that are computed: whole blocks, or all */
	bool computes, versioned;
	struct osd_data_version version;
	unsigned tries;
};

static void free_write(struct stack_write *write)
{
	if (write) {
		osd_stack_run_release(&write->run);
		osd_object_put(write->source);
	}
	free(write);
}

OSD_DEFINE_CLEANUP(struct stack_write *, free_write)

void osd_stack_forget(struct osd_request *request)
{
	struct osd_stack_written *written = OSD_STEAL(request->written);

	if (!written)
		return;
	free(written->stack);
	free(written->base);
	free(written);
}

/* ---- what is computed --------------------------------------------------------------------------- */

/* The stored bytes that must be computed first, of an object of so many stored bytes. */
static void plan(struct stack_write *write, uint64_t whole)
{
	const struct osd_contract *contract = &write->run.stack->contract;
	uint32_t block = contract->block;
	uint64_t from = OSD_MIN(write->start, whole), rest;

	write->run.whole = whole;
	write->first = 0;
	write->stop = whole;
	write->versioned = true;
	if (!block) {
		write->computes = whole && !(contract->size == OSD_SIZE_SAME && write->start == 0 &&
					     write->end >= whole);
		return;
	}
	write->first = from - from % block;
	rest = write->end % block;
	if (rest && write->end < whole)
		write->stop = OSD_MIN(write->end + (block - rest), whole);
	else
		write->stop = OSD_MIN(write->end, whole);
	write->computes =
		write->stop > write->first && (from % block || (rest && write->end < whole));
	write->versioned = from % block || rest || write->start > whole;
}

/* OSD_E_CONFLICT: the object was changed meanwhile. */
static enum osd_status load_once(struct osd_command_context *ctx, struct stack_write *write,
				 const struct osd_data_version *wanted)
{
	struct osd_stack_run *run = &write->run;
	struct osd_object *object = write->source ? write->source : ctx->object;
	uint64_t whole = 0;
	enum osd_status status =
		osd_stack_answer_look(object, ctx->data_flags, wanted, &whole, &write->version);

	if (status != OSD_OK)
		return status;
	plan(write, whole);
	if (!write->computes)
		return OSD_OK;
	if (!ctx->script && osd_stack_turns_long(ctx->request, write->stop - write->first))
		return OSD_E_WOULD_BLOCK;
	if (ctx->request->span == OSD_SPAN_LONG)
		osd_command_hold(ctx);
	status = osd_stack_run_allocate(
		run, (size_t)OSD_MIN(write->stop - write->first, (uint64_t)SIZE_MAX));
	if (status != OSD_OK)
		return status;
	run->offset = write->first;
	status = osd_stack_answer_load(object, ctx->data_flags, &write->version, write->first,
				       run->data, run->length);
	return status == OSD_E_CONFLICT && wanted ? OSD_E_VERSION : status;
}

static enum osd_status load(struct osd_command_context *ctx, struct stack_write *write,
			    const struct osd_data_version *wanted)
{
	enum osd_status status = OSD_E_CONFLICT;

	for (unsigned i = 0; i < TRIES && status == OSD_E_CONFLICT; i++)
		status = load_once(ctx, write, wanted);
	return status == OSD_E_CONFLICT ? OSD_E_BUSY : status;
}

/* The bytes that readers will see: those that were computed, zeros behind them, and the command's. */
static enum osd_status compose(struct stack_write *write)
{
	struct osd_stack_run *run = &write->run;
	OSD_CLEANUP_FREE uint8_t *base = OSD_STEAL(run->base);
	const uint8_t *old = base ? run->data : NULL;
	size_t had = write->computes ? run->length : 0;
	uint64_t room = OSD_MAX(write->end - write->first, (uint64_t)had);
	enum osd_status status;

	run->inverse = true;
	status = osd_stack_run_allocate(run, (size_t)OSD_MIN(room, (uint64_t)SIZE_MAX));
	if (status != OSD_OK)
		return status;
	if (had)
		memcpy(run->data, old, had);
	memset(run->data + had, 0, run->length - had);
	memcpy(run->data + (write->start - write->first), write->bytes,
	       (size_t)(write->end - write->start));
	run->offset = write->first;
	run->whole = run->stack->contract.block ? OSD_MAX(run->whole, write->end) : run->length;
	return osd_stack_run_begin(run);
}

/* ---- steps -------------------------------------------------------------------------------------- */

/* The command is dispatched again, and finds this. */
static enum osd_status hand_over(struct stack_write *write)
{
	struct osd_stack_run *run = &write->run;
	struct osd_stack_written *written = malloc(sizeof(*written));

	if (!written)
		return OSD_E_NO_MEMORY;
	*written = (struct osd_stack_written){
		.piece = {write->first, run->length},
		.replaces = !run->stack->contract.block,
		.versioned = write->versioned,
		.version = write->version,
		.tries = write->tries,
	};
	written->base = OSD_STEAL(run->base);
	written->data = run->data;
	written->stack = OSD_STEAL(run->stack);
	osd_attributes_forget(run->request);
	run->request->written = written;
	run->request->again = true;
	return OSD_OK;
}

static void done(struct osd_stack_run *run, enum osd_status status)
{
	struct stack_write *write = osd_container_of(run, struct stack_write, run);
	struct osd_request *request = run->request;

	if (status == OSD_OK)
		status = run->inverse ? hand_over(write) : compose(write);
	if (status == OSD_PENDING)
		return;
	request->fault.status = status;
	free_write(write);
	request->resume(request);
}

static enum osd_status begin(struct osd_command_context *ctx, struct stack_write *write, bool made,
			     const struct osd_change *change)
{
	const struct osd_contract *contract = &write->run.stack->contract;
	enum osd_status status = OSD_OK;

	if (!contract->inverse)
		return osd_stack_refuse(ctx->request, OSD_CONTRACT_NO_INVERSE);
	if (change->piece_count != 1)
		return osd_stack_refuse(ctx->request, OSD_CONTRACT_PIECES);
	write->run.done = done;
	write->bytes = change->data;
	write->start = change->pieces[0].offset;
	write->end = write->start + change->pieces[0].length;
	if (!made)
		status = load(ctx, write, change->wanted);
	if (status != OSD_OK)
		return status;
	return write->computes ? osd_stack_run_begin(&write->run) : compose(write);
}

/* ---- objects that are made ---------------------------------------------------------------------- */

static bool joins(const struct osd_attr *attr)
{
	return attr->page == OSD_REL_COLLECTIONS && attr->length == 8;
}

static int by_id(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* The collections that the attributes of the command name.  The caller frees *ret_ids. */
static enum osd_status find_joined(struct osd_command_context *ctx, uint64_t **ret_ids,
				   struct osd_stack_made *made)
{
	struct osd_attr_walk walk = osd_attributes_to_set(ctx->attributes), again = walk;
	struct osd_attr attr;
	size_t count = 0;

	*made = (struct osd_stack_made){.partition_id = ctx->addressed.partition_id};
	while (osd_attr_walk_next(&walk, &attr))
		count += joins(&attr);
	if (count == 0)
		return OSD_OK;
	*ret_ids = calloc(count, sizeof(**ret_ids));
	if (!*ret_ids)
		return OSD_E_NO_MEMORY;
	while (osd_attr_walk_next(&again, &attr))
		if (joins(&attr))
			(*ret_ids)[made->count++] = osd_get_be(attr.value, 8);
	qsort(*ret_ids, count, sizeof(**ret_ids), by_id);
	made->collections = *ret_ids;
	return OSD_OK;
}

/* ---- the command -------------------------------------------------------------------------------- */

static void fill(const struct osd_stack_written *written, struct osd_change *change)
{
	change->data = written->data;
	change->pieces = &written->piece;
	change->piece_count = 1;
	if (written->replaces) {
		change->kind = OSD_CHANGE_REPLACE;
		change->length = written->piece.length;
	}
	if (written->versioned)
		change->wanted = &written->version;
	/* Readers would get what the functions make of a hole. */
	change->least = written->piece.offset;
}

/* The object whose data this one shows.  It is found first and checked then: a later object with its id is none. */
static enum osd_status open_source(struct osd_command_context *ctx, struct stack_write *write)
{
	struct osd_stack_run *run = &write->run, again = {0};
	bool plain, gone;
	enum osd_status status;

	if (!run->stack->writable)
		return osd_stack_refuse(ctx->request, OSD_CONTRACT_NO_CHANGE);
	status = osd_object_get(ctx->objects, run->stack->source, &write->source);
	gone = osd_status_is_gone(status);
	if (status == OSD_OK || gone) /* the object may have been removed before its source was */
		status = osd_stack_run_open(ctx, NULL, &again, &plain);
	if (status == OSD_OK && (gone || !osd_stack_same(again.stack, run->stack)))
		status = OSD_E_BUSY;
	osd_stack_run_release(&again);
	return status;
}

static enum osd_status start(struct osd_command_context *ctx, bool made, unsigned tries,
			     struct osd_change *change, struct osd_object **ret_source)
{
	OSD_CLEANUP(free_writep) struct stack_write *write = calloc(1, sizeof(*write));
	OSD_CLEANUP_FREE uint64_t *joined = NULL;
	struct osd_stack_written *written = ctx->request->written;
	struct osd_stack_made what;
	bool plain = false;
	enum osd_status status = write ? OSD_OK : OSD_E_NO_MEMORY;

	if (status == OSD_OK && made)
		status = find_joined(ctx, &joined, &what);
	if (status == OSD_OK)
		status = osd_stack_run_open(ctx, made ? &what : NULL, &write->run, &plain);
	if (status == OSD_OK && !made && !osd_same_id(write->run.stack->source, write->run.id))
		status = open_source(ctx, write);
	if (status != OSD_OK)
		return status;
	if (written && !written->stale && osd_stack_same(written->stack, write->run.stack)) {
		fill(written, change);
		*ret_source = OSD_STEAL(write->source);
		return OSD_OK;
	}
	osd_stack_forget(ctx->request);
	if (write->run.stack->count == 0) {
		*ret_source = OSD_STEAL(write->source);
		return OSD_OK;
	}
	if (tries == TRIES)
		return OSD_E_BUSY;
	write->tries = tries + 1;
	status = begin(ctx, write, made, change);
	if (status == OSD_PENDING)
		write = NULL; /* from here on done() owns it and the request */
	return status;
}

static bool may_be_stacked(struct osd_command_context *ctx, bool made)
{
	return made ? osd_stack_may_be_above(ctx->objects, ctx->addressed.partition_id)
		    : osd_object_is_stacked(ctx->object);
}

static enum osd_status pass_through(struct osd_command_context *ctx, bool made,
				    struct osd_change *change, struct osd_object **ret_source)
{
	struct osd_request *request = ctx->request;
	unsigned tries = request->written ? request->written->tries : 0;
	enum osd_status status;

	*ret_source = NULL;
	if (!may_be_stacked(ctx, made) || ctx->command_data_length == 0) {
		osd_stack_forget(request);
		return OSD_OK;
	}
	status = start(ctx, made, tries, change, ret_source);
	return status == OSD_E_WOULD_BLOCK ? osd_stack_as_long(request) : status;
}

enum osd_status osd_stack_write(struct osd_command_context *ctx, struct osd_change *change,
				struct osd_object **ret_source)
{
	return pass_through(ctx, false, change, ret_source);
}

enum osd_status osd_stack_write_new(struct osd_command_context *ctx, struct osd_change *change)
{
	struct osd_object *none; /* an object that is made has no source yet */

	return pass_through(ctx, true, change, &none);
}

enum osd_status osd_stack_passes_new(struct osd_command_context *ctx, bool *ret_passes)
{
	OSD_CLEANUP_FREE uint64_t *joined = NULL;
	struct osd_stack_run run = {0};
	struct osd_stack_made what;
	bool plain;
	enum osd_status status = OSD_OK;

	*ret_passes = false;
	if (!may_be_stacked(ctx, true))
		return OSD_OK;
	status = find_joined(ctx, &joined, &what);
	if (status == OSD_OK)
		status = osd_stack_run_open(ctx, &what, &run, &plain);
	*ret_passes = status == OSD_OK && run.stack->count;
	osd_stack_run_release(&run);
	return status;
}

bool osd_stack_begin_again(struct osd_request *request)
{
	struct osd_stack_written *written = request->written;

	if (!written || (!written->versioned && !written->piece.offset))
		return false;
	written->stale = true;
	return true;
}

enum osd_status osd_stack_check_change(struct osd_command_context *ctx)
{
	struct osd_stack_run run = {0};
	bool plain = false;
	enum osd_status status = osd_stack_run_open(ctx, NULL, &run, &plain);

	osd_stack_run_release(&run);
	return status == OSD_OK && !plain ? osd_stack_refuse(ctx->request, OSD_CONTRACT_NO_CHANGE)
					  : status;
}

static enum osd_status place_new(struct osd_request *request, struct osd_txn *txn,
				 uint64_t partition_id, uint64_t *ret_place)
{
	enum osd_status status;

	*ret_place = partition_id;
	if (osd_attributes_sets(request->attributes, OSD_PAGE_STACK, OSD_STACK_SOURCE))
		return OSD_OK;
	status = osd_view_place(txn, partition_id, ret_place);
	return status == OSD_E_CONTRACT ? osd_stack_refuse(request, OSD_CONTRACT_VIEW) : status;
}

struct placing {
	struct osd_command_context *ctx;
	uint64_t place;
};

static enum osd_status place_in(struct osd_txn *txn, void *arg)
{
	struct placing *placing = arg;

	return place_new(placing->ctx->request, txn, placing->ctx->addressed.partition_id,
			 &placing->place);
}

enum osd_status osd_stack_find_place(struct osd_command_context *ctx, uint64_t *ret_place)
{
	struct placing placing = {ctx, ctx->addressed.partition_id};
	unsigned flags = osd_phase_txn_flags(ctx->request) | OSD_TXN_READ_ONLY;
	enum osd_status status = OSD_OK;

	if (osd_stack_may_be_above(ctx->objects, placing.place))
		status = osd_txn_run(ctx->objects, flags, place_in, &placing);
	*ret_place = placing.place;
	return status;
}

/* In its base, an object of a view gets its name later. */
static enum osd_status make_at(struct osd_txn *txn, const struct osd_stack_making *making,
			       uint64_t place, uint64_t *ret_first)
{
	bool named = making->named && place == making->partition_id;

	if (making->draft)
		return (named ? osd_draft_begin_object : osd_draft_put)(txn, making->draft,
									ret_first);
	return named ? osd_user_object_begin(txn, place, ret_first)
		     : osd_user_object_create(txn, place, making->requested_id, making->count,
					      ret_first);
}

enum osd_status osd_stack_make(struct osd_request *request, struct osd_txn *txn,
			       const struct osd_stack_making *making, uint64_t *ret_first)
{
	uint64_t place;
	enum osd_status status = place_new(request, txn, making->partition_id, &place);

	if (status == OSD_OK && making->draft && place != osd_draft_partition(making->draft))
		status = OSD_E_BUSY;
	if (status == OSD_OK)
		status = make_at(txn, making, place, ret_first);
	return status == OSD_OK && place != making->partition_id
		       ? osd_view_shows(txn, making->partition_id, *ret_first, making->count)
		       : status;
}

enum osd_status osd_stack_refuse_removal(struct osd_request *request, enum osd_status status)
{
	return status == OSD_E_CONTRACT ? osd_stack_refuse(request, OSD_CONTRACT_NO_CHANGE)
					: status;
}
