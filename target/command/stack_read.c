/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_read.c -- see stack_read.h. */
#include "command/stack_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "command/attributes.h"
#include "command/stack_read_impl.h"
#include "command/task_management.h"
#include "function/stack_note.h"
#include "object/sums.h"

#define TRIES 16 /* of a READ, while others change the object */

static void free_read(struct osd_stack_reading *read)
{
	if (!read)
		return;
	osd_flights_end(read->flights, &read->flight, read->kept, read->status);
	osd_stack_parts_close(read);
	osd_stack_half_close(read);
	osd_stack_run_release(&read->run);
	free(read);
}

OSD_DEFINE_CLEANUP(struct osd_stack_reading *, free_read)

/* For the figures and for users who ask how the data came about. */
static void note(struct osd_functions *functions, struct osd_object_id id,
		 const struct osd_kept_key *key, enum osd_kept_use use, uint64_t began_usec)
{
	struct osd_stack_read read = {.use = use,
				      .version = key->version,
				      .usec = osd_monotonic_usec() - began_usec,
				      .ended_msec = osd_wall_msec()};

	memcpy(read.stack, key->stack, sizeof(read.stack));
	osd_stack_note_read(functions, id, &read);
	if (osd_functions_kept(functions))
		osd_kept_count(osd_functions_kept(functions), use, read.usec);
}

/* ---- steps ------------------------------------------------------------------------------------ */

static enum osd_status end_computed(struct osd_stack_reading *read)
{
	const struct osd_stack_half *half = read->half;

	read->kept = read->answer.kept && !read->run.skipped && !(half && half->run.skipped);
	return osd_stack_answer_end(&read->answer);
}

static void dispatch_again(struct osd_stack_reading *read)
{
	struct osd_request *request = read->run.request;

	osd_attributes_free(OSD_STEAL(request->attributes));
	request->reading = read;
	request->again = true;
	request->resume(request);
}

/* A run has ended. */
static void ended(struct osd_stack_reading *read)
{
	struct osd_stack_run *run = &read->run;
	struct osd_request *request = run->request;
	enum osd_status status;
	uint64_t end;

	if (atomic_fetch_sub(&read->running, 1) > 1)
		return;
	status = osd_stack_half_join(read);
	/* The object has changed before the second half was loaded. */
	if (status == OSD_E_CONFLICT) {
		dispatch_again(read);
		return;
	}
	if (status == OSD_OK && run->stream && osd_stack_stream_ended(run, &end))
		status = osd_stack_parts_end(read, end);
	else if (status == OSD_OK)
		status = end_computed(read);
	if (read->status == OSD_OK)
		note(read->functions, run->id, &read->answer.key, OSD_KEPT_MISS, read->began_usec);
	request->fault.status = status;
	free_read(read);
	request->resume(request);
}

/* Keeps and fills in what a run has computed.  Halves may do so at the same time: they share no bytes of the answer. */
static void take(struct osd_stack_reading *read, const struct osd_stack_run *run)
{
	struct osd_stack_answer *answer = &read->answer;

	if (!run->stack->contract.block)
		answer->end = run->length;
	if (answer->kept && !run->skipped)
		osd_stack_answer_keep(answer, run->offset, run->data, run->length);
	osd_stack_answer_fill(answer, run->offset, run->data, run->length);
}

static void done(struct osd_stack_run *run, enum osd_status status)
{
	struct osd_stack_reading *read = osd_container_of(run, struct osd_stack_reading, run);
	uint64_t end;

	if (status == OSD_OK && run->stream && !osd_stack_stream_ended(run, &end)) {
		dispatch_again(read);
		return;
	}
	if (status == OSD_OK && !run->stream)
		take(read, run);
	read->status = status;
	ended(read);
}

static void half_done(struct osd_stack_run *run, enum osd_status status)
{
	struct osd_stack_half *half = osd_container_of(run, struct osd_stack_half, run);

	if (status == OSD_OK)
		take(half->read, run);
	half->status = status;
	ended(half->read);
}

static enum osd_status end_kept(struct osd_stack_reading *read)
{
	note(read->functions, read->run.id, &read->answer.key, OSD_KEPT_HIT, read->began_usec);
	read->kept = true;
	return osd_stack_answer_end(&read->answer);
}

/* Another READ may be computing the missing units just now, or have ended a moment ago: then they are there. */
static enum osd_status begin_flight(struct osd_stack_reading *read, bool *ret_found)
{
	struct osd_stack_answer *answer = &read->answer;
	enum osd_status status;

	*ret_found = osd_stack_answer_keeps(answer, false);
	if (*ret_found)
		return OSD_OK;
	read->flight.key = answer->key;
	read->flight.first = answer->first_missing;
	read->flight.last = answer->last_missing;
	read->flight.reader = read->run.reader;
	status = osd_flights_begin(read->flights, &read->flight, answer->request);
	if (status == OSD_PENDING)
		osd_kept_count(answer->kept, OSD_KEPT_SHARED, 0);
	if (status == OSD_OK && read->flight.begun)
		*ret_found = osd_stack_answer_keeps(answer, false);
	return status;
}

/* Whether nothing need be computed if no bytes are wanted. */
static bool has_known_end(const struct osd_stack_reading *read)
{
	return read->answer.request->data_in_capacity == 0 && read->run.stack->contract.block;
}

/* A later object with the id of the source may have been found, after the source was removed.  Between two parts, the
 * functions may have changed together with the data. */
static enum osd_status check_source(struct osd_command_context *ctx, struct osd_stack_reading *read)
{
	const struct osd_stack *stack = read->run.stack;
	struct osd_stack_run again = {0};
	bool plain;
	enum osd_status status = osd_stack_run_open(ctx, NULL, &again, &plain);

	read->outdated = status == OSD_OK && (!osd_same_id(again.stack->source, stack->source) ||
					      !osd_stack_same(again.stack, stack));
	osd_stack_run_release(&again);
	return read->outdated ? OSD_E_BUSY : status;
}

/* The functions may have changed together with the data.  They belong to the version of the data that was found after
 * them if nothing that a stack depends on has changed since. */
static enum osd_status check_functions(struct osd_command_context *ctx,
				       struct osd_stack_reading *read)
{
	uint64_t changes = osd_stack_changes(read->functions);
	enum osd_status status;

	if (changes == read->changes)
		return OSD_OK;
	status = check_source(ctx, read);
	if (status == OSD_OK)
		read->changes = changes;
	return status;
}

/* A sequential stack loads all of the object, whatever the READ asks for.  A script has its own thread. */
static bool turns_long(struct osd_stack_reading *read)
{
	const struct osd_stack_run *run = &read->run;

	return !run->for_script && !run->stack->contract.block && !osd_stack_parts_needed(run) &&
	       osd_stack_turns_long(run->request, run->whole) &&
	       !(read->answer.kept && osd_stack_answer_keeps(&read->answer, false));
}

/* *ret_runs: the read is done()'s. */
static enum osd_status begin_runs(struct osd_stack_reading *read, bool *ret_runs)
{
	struct osd_stack_run *run = &read->run;
	bool half = read->half;
	enum osd_status status;

	atomic_store(&read->running, half ? 2 : 1);
	status = run->stream ? osd_stack_stream_begin(run) : osd_stack_run_begin(run);
	*ret_runs = status == OSD_PENDING;
	if (*ret_runs && half)
		osd_stack_half_begin(read);
	return status;
}

static enum osd_status attempt(struct osd_command_context *ctx, struct osd_stack_reading *read,
			       struct osd_object *source, const struct osd_data_version *wanted,
			       bool *ret_runs)
{
	struct osd_stack_answer *answer = &read->answer;
	struct osd_stack_run *run = &read->run;
	bool found = false;
	enum osd_status status = osd_stack_answer_look(source, ctx->data_flags, wanted, &run->whole,
						       &answer->key.version);

	if (status == OSD_OK)
		status = check_functions(ctx, read);
	if (status != OSD_OK)
		return status;
	answer->end = run->whole;
	osd_request_show_version(ctx->request, answer->key.version);
	if (run->whole == 0 || ctx->request->decoded.length == 0 || has_known_end(read))
		return osd_stack_answer_end(answer);
	if (turns_long(read))
		return OSD_E_WOULD_BLOCK;
	if (answer->kept)
		status = begin_flight(read, &found);
	if (found)
		return end_kept(read);
	/* Another thread may own a request that waits. */
	if (status == OSD_OK && ctx->request->span == OSD_SPAN_LONG)
		osd_command_hold(ctx);
	if (status == OSD_OK && osd_stack_parts_needed(run))
		status = osd_stack_parts_open(read);
	if (status == OSD_OK)
		status = run->stream ? osd_stack_parts_load(read)
				     : osd_stack_read_load(read, half_done);
	if (status != OSD_OK)
		return status;
	if (run->stream || (run->length && run->stack->count))
		return begin_runs(read, ret_runs);
	osd_stack_answer_fill(answer, run->offset, run->data, run->length);
	return osd_stack_answer_end(answer);
}

static enum osd_status find_source(struct osd_command_context *ctx, struct osd_stack_reading *read,
				   struct osd_object **ret_source)
{
	const struct osd_stack *stack = read->run.stack;
	enum osd_status status = osd_object_get(ctx->objects, stack->source, ret_source);
	bool gone = osd_status_is_gone(status);

	if (osd_same_id(stack->source, read->run.id) && !read->run.stream) /* not a later one with its id */
		return status == OSD_OK && *ret_source != ctx->object ? OSD_E_NO_OBJECT : status;
	if (status != OSD_OK && !gone)
		return status;
	status = check_source(ctx, read); /* the object may have been removed before its source was */
	return status == OSD_OK && gone ? OSD_E_BUSY : status;
}

/* The request was dispatched again for the next part. */
static enum osd_status go_on(struct osd_command_context *ctx, struct osd_stack_reading *read,
			     bool *ret_runs)
{
	enum osd_status status = osd_stack_parts_load(read);

	osd_request_show_version(ctx->request, read->answer.key.version);
	return status == OSD_OK ? begin_runs(read, ret_runs) : status;
}

/* OSD_PENDING: another thread may own the request. */
static enum osd_status serve(struct osd_command_context *ctx, struct osd_stack_reading *read,
			     const struct osd_data_version *wanted, bool *ret_runs)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *source = NULL;
	enum osd_status status = find_source(ctx, read, &source);

	if (status != OSD_OK)
		return status;
	read->source = source;
	read->data_flags = ctx->data_flags;
	status = read->run.stream ? go_on(ctx, read, ret_runs) : OSD_E_CONFLICT;
	while (status == OSD_E_CONFLICT && read->tries++ < TRIES) {
		/* READs that wait for data of an earlier version look for the present one. */
		osd_flights_end(read->flights, &read->flight, true, OSD_E_CONFLICT);
		osd_stack_parts_close(read);
		status = attempt(ctx, read, source, wanted, ret_runs);
	}
	return status == OSD_E_CONFLICT ? OSD_E_BUSY : status;
}

/* ---- the command ------------------------------------------------------------------------------ */

/* known: a note of the stack; NULL: there is none yet. */
static void fill_in(struct osd_command_context *ctx, struct osd_stack_reading *read,
		    const struct osd_piece *pieces, size_t piece_count,
		    const struct osd_stack_note *known)
{
	struct osd_stack_run *run = &read->run;
	struct osd_stack_answer *answer = &read->answer;
	struct osd_stack_note stack;

	run->done = done;
	memcpy(read->pieces, pieces, piece_count * sizeof(*pieces));
	answer->request = ctx->request;
	answer->pieces = read->pieces;
	answer->piece_count = piece_count;
	if (run->stack->count == 0)
		return;
	stack = known ? *known
		      : osd_stack_note_put(ctx->functions, run->id, read->changes, run->stack,
					   run->codes);
	answer->key.source = stack.source;
	memcpy(answer->key.stack, stack.hash, sizeof(stack.hash));
	answer->unit = stack.unit;
	answer->kept = stack.deterministic ? osd_functions_kept(ctx->functions) : NULL;
	run->reads_once = !answer->kept && piece_count == 1;
	read->compares = osd_objects_compare_reads(ctx->objects);
}

/* may_be_known: no note of the stack has turned out to be out of date. */
static enum osd_status open_read(struct osd_command_context *ctx, const struct osd_piece *pieces,
				 size_t piece_count, bool may_be_known,
				 struct osd_stack_reading **ret_read, bool *ret_plain)
{
	OSD_CLEANUP(free_readp)
	struct osd_stack_reading *read = calloc(1, sizeof(*read) + piece_count * sizeof(*pieces));
	struct osd_stack_note note;
	enum osd_status status;
	bool known;

	if (!read)
		return OSD_E_NO_MEMORY;
	read->functions = ctx->functions;
	read->changes = osd_stack_changes(ctx->functions);
	read->flights = ctx->flights;
	read->began_usec = osd_monotonic_usec();
	read->status = OSD_E_BUSY;
	known = may_be_known &&
		osd_stack_note_get(ctx->functions, ctx->addressed, &note, &read->run.stack);
	if (known)
		read->changes = note.changes;
	status = osd_stack_run_open(ctx, NULL, &read->run, ret_plain);
	if (status != OSD_OK || *ret_plain)
		return status;
	fill_in(ctx, read, pieces, piece_count, known ? &note : NULL);
	*ret_read = OSD_STEAL(read);
	return OSD_OK;
}

/* A READ whose functions have changed before it called one begins from the start. */
enum osd_status osd_stack_read(struct osd_command_context *ctx, const struct osd_piece *pieces,
			       size_t piece_count, const struct osd_data_version *wanted,
			       bool *ret_plain)
{
	OSD_CLEANUP(free_readp) struct osd_stack_reading *read = OSD_STEAL(ctx->request->reading);
	bool goes_on = read, runs = false;
	enum osd_status status = OSD_OK;

	*ret_plain = false;
	for (unsigned i = 0; i < TRIES; i++) {
		if (!goes_on)
			status = open_read(ctx, pieces, piece_count, i == 0, &read, ret_plain);
		if (status == OSD_OK && !*ret_plain)
			status = serve(ctx, read, wanted, &runs);
		if (runs)
			read = NULL; /* from here on done() owns it and the request */
		if (!read || !read->outdated || goes_on)
			break;
		free_read(OSD_STEAL(read));
	}
	return status == OSD_E_WOULD_BLOCK ? osd_stack_as_long(ctx->request) : status;
}

/* READs that wait for its result go on without it. */
void osd_stack_read_forget(struct osd_request *request)
{
	struct osd_stack_reading *read = OSD_STEAL(request->reading);

	read->status = OSD_E_TASK_ABORTED;
	free_read(read);
}

/* The removal of the source changes no stack, so the note may name one that a later object has the id of. */
static bool is_source(struct osd_object *object, const struct osd_stack_note *stack)
{
	struct osd_object_facts facts;

	osd_object_facts(object, &facts);
	return !stack->source_created_msec || facts.created_ms == stack->source_created_msec;
}

static enum osd_status look_at_once(struct osd_command_context *ctx,
				    const struct osd_stack_note *stack,
				    struct osd_stack_answer *answer)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *source = NULL;
	enum osd_status status = osd_object_get_cached(ctx->objects, stack->source, &source);

	if (status == OSD_OK && !is_source(source, stack))
		status = OSD_E_WOULD_BLOCK;
	if (status == OSD_OK)
		status = osd_stack_answer_look(source, ctx->data_flags, NULL, &answer->end,
					       &answer->key.version);
	return status == OSD_OK && answer->end ? OSD_OK : OSD_E_WOULD_BLOCK;
}

enum osd_status osd_stack_read_kept(struct osd_command_context *ctx)
{
	const struct osd_cdb *cdb = &ctx->request->decoded;
	struct osd_piece piece = {cdb->starting_byte_address, cdb->length};
	struct osd_stack_answer answer = {.request = ctx->request,
					  .pieces = &piece,
					  .piece_count = 1,
					  .kept = osd_functions_kept(ctx->functions)};
	uint64_t began_usec = osd_monotonic_usec();
	struct osd_stack_note stack;

	if (!answer.kept || cdb->continuation_length ||
	    !osd_stack_note_get(ctx->functions, ctx->addressed, &stack, NULL) ||
	    !stack.deterministic)
		return OSD_E_WOULD_BLOCK;
	answer.unit = stack.unit;
	answer.key.source = stack.source;
	memcpy(answer.key.stack, stack.hash, sizeof(stack.hash));
	if (look_at_once(ctx, &stack, &answer) != OSD_OK || !osd_stack_answer_keeps(&answer, true))
		return OSD_E_WOULD_BLOCK;
	osd_request_show_version(ctx->request, answer.key.version);
	note(ctx->functions, ctx->addressed, &answer.key, OSD_KEPT_HIT, began_usec);
	return osd_stack_answer_end(&answer);
}
