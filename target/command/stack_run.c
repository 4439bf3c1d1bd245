/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_run.c -- see stack_run.h. */
#include "command/stack_run.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ration.h"
#include "base/util.h"
#include "command/compile.h"
#include "command/hook_call.h"
#include "command/submission.h"
#include "object/txn_run.h"

#define PACE_LEAST (64u << 10)		/* of fewer bytes, a call takes longer than its function */
#define DATA_MAX   (UINT64_C(72) << 20) /* of one: the longest transfer, and blocks at its ends */

static _Atomic uint64_t tokens; /* of failures, to find them in the log */

enum osd_status osd_stack_refuse(struct osd_request *request, enum osd_contract_refusal why)
{
	osd_fault_inform_command(&request->fault, why);
	return OSD_E_CONTRACT;
}

/* ---- open and release -------------------------------------------------------------------------- */

struct resolving {
	struct osd_functions *functions;
	struct osd_object_id id;
	struct osd_object *object; /* under the id, as authorised; NULL: any */
	const struct osd_stack_made *made;
	struct osd_stack *stack;
	bool source_gone; /* the object is there, its source is not */
};

/* Something is absent: the source of the object, if it is the same object before and after.  Else that was removed, and
 * another may have got its id, which is read then. */
static enum osd_status find_absent(struct resolving *resolving, struct osd_txn *txn,
				   const struct osd_object_facts *before)
{
	struct osd_object_facts now;
	enum osd_status status = osd_txn_facts(txn, resolving->id, false, &now);

	if (status != OSD_OK)
		return status;
	resolving->source_gone = now.created_ms == before->created_ms;
	return resolving->source_gone ? OSD_E_NO_OBJECT : OSD_E_CONFLICT;
}

static enum osd_status resolve_in(struct osd_txn *txn, void *arg)
{
	struct resolving *resolving = arg;
	struct osd_object_facts before, opened;
	enum osd_status status;

	free(resolving->stack);
	resolving->stack = NULL;
	resolving->source_gone = false;
	if (resolving->made)
		return osd_stack_resolve_new(resolving->functions, txn, resolving->made,
					     &resolving->stack);
	status = osd_txn_facts(txn, resolving->id, false, &before);
	if (status != OSD_OK)
		return status;
	if (resolving->object) {
		osd_object_facts(resolving->object, &opened);
		if (opened.created_ms != before.created_ms)
			return OSD_E_NO_OBJECT;
	}
	status = osd_stack_resolve(resolving->functions, txn, resolving->id, &resolving->stack);
	return status == OSD_E_NO_OBJECT ? find_absent(resolving, txn, &before) : status;
}

/* All calls of the run have one version of each function. */
static enum osd_status take_codes(struct osd_functions *functions, struct osd_exec *exec,
				  struct osd_stack_run *run)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; i < run->stack->count && status == OSD_OK; i++) {
		const struct osd_function *function = &run->stack->stages[i].function;

		status = osd_function_permits(function, run->id.partition_id)
				 ? osd_function_code(functions, function, &run->codes[i])
				 : OSD_E_FUNCTION_CAPS;
		if (status == OSD_OK)
			osd_compile_for_calls(functions, exec, function, run->codes[i]);
	}
	return status == OSD_E_NO_FUNCTION ? OSD_E_FUNCTION_INACTIVE : status;
}

enum osd_status osd_stack_run_open(struct osd_command_context *ctx,
				   const struct osd_stack_made *made, struct osd_stack_run *run,
				   bool *ret_plain)
{
	struct resolving resolving = {ctx->functions, ctx->addressed, ctx->object, made, NULL, false};
	struct osd_principal principal;
	enum osd_status status = OSD_OK;

	if (!run->stack) {
		status = osd_txn_run(ctx->objects, OSD_TXN_READ_ONLY, resolve_in, &resolving);
		run->stack = resolving.stack;
	}
	if (status == OSD_E_CONTRACT)
		return osd_stack_refuse(ctx->request, OSD_CONTRACT_MISSING);
	if (resolving.source_gone)
		return osd_stack_refuse(ctx->request, OSD_CONTRACT_SOURCE);
	if (status != OSD_OK)
		return status;
	run->request = ctx->request;
	run->fault = &ctx->request->fault;
	run->exec = ctx->exec;
	run->id = made ? (struct osd_object_id){ctx->addressed.partition_id, 0} : ctx->addressed;
	*ret_plain = osd_stack_is_plain(run->stack, run->id);
	if (*ret_plain)
		return OSD_OK;
	run->for_script = ctx->script;
	if (!ctx->script)
		osd_command_principal(ctx->request, &principal);
	snprintf(run->reader, sizeof(run->reader), "%s", ctx->script ? ctx->script : principal.key);
	if (run->stack->count && !ctx->exec)
		return OSD_E_ISOLATION;
	return take_codes(ctx->functions, ctx->exec, run);
}

void osd_stack_run_release(struct osd_stack_run *run)
{
	osd_stack_room_drop(OSD_ROOM_BYTES, &run->held);
	for (size_t i = 0; i < OSD_STACK_STAGES; i++)
		osd_function_code_put(run->codes[i]);
	free(run->stack);
	free(run->base);
	free(run->args);
}

enum osd_status osd_stack_run_charge(struct osd_stack_run *run, size_t length)
{
	return osd_stack_room_hold(OSD_ROOM_BYTES, run->reader, length, &run->held);
}

static size_t place_of(const struct osd_stack_run *run)
{
	return run->inverse ? run->stack->count - 1 - run->passed : run->passed;
}

static const struct osd_stage *stage_of(const struct osd_stack_run *run)
{
	return &run->stack->stages[place_of(run)];
}

enum osd_status osd_stack_run_allocate(struct osd_stack_run *run, size_t length)
{
	bool blocks = run->stack->contract.block;
	enum osd_status status;
	size_t frame;

	if (length > (blocks ? DATA_MAX : OSD_STAGE_DATA_MAX))
		return osd_stack_refuse(run->request, OSD_CONTRACT_TOO_LARGE);
	status = osd_stack_run_charge(run, length);
	if (status != OSD_OK)
		return status;
	free(run->base);
	run->passed = 0;
	frame = run->stack->count ? OSD_STAGE_FRAME_BYTES + stage_of(run)->parameters_length : 0;
	run->base = malloc(OSD_MAX(frame + length, 1));
	run->data = run->base + frame;
	run->length = length;
	return run->base ? OSD_OK : OSD_E_NO_MEMORY;
}

/* ---- stages ------------------------------------------------------------------------------------- */

static void stage_ended(void *arg, const struct osd_exec_outcome *outcome);

static const char *method_of(const struct osd_stack_run *run)
{
	return run->inverse ? stage_of(run)->inverse : stage_of(run)->method;
}

/* A WRITE never stores bytes that an optional function has not seen: a READ could not undo them.  And what a stream
 * makes must be kept. */
static bool is_optional(const struct osd_stack_run *run)
{
	return stage_of(run)->function.contract.optional && !run->inverse && !run->stream;
}

/* Sandboxes are kept for a principal.  This one has the function in its name: no other code, neither the reader's nor
 * that of another function, ever runs where this function sees data. */
static void name_principal(const struct osd_stack_run *run, const struct osd_function *function,
			   char principal[OSD_PRINCIPAL_MAX])
{
	snprintf(principal, OSD_PRINCIPAL_MAX,
		 "stage:%" PRIx64 "/%" PRIx64 ":%02x%02x%02x%02x:%.400s", function->id.partition_id,
		 function->id.object_id, function->sha256[0], function->sha256[1],
		 function->sha256[2], function->sha256[3], run->reader);
}

/* The functions of a reader are one in the queue, and with the reader's other calls.  A script's READ runs while the
 * script has its turn. */
static const char *payer_of(const struct osd_stack_run *run)
{
	return run->for_script ? NULL : osd_submission_payer(run->reader);
}

/* Of all data at once. */
static struct osd_stage_frame frame_of(const struct osd_stack_run *run)
{
	const struct osd_stage *stage = stage_of(run);

	return (struct osd_stage_frame){run->offset, run->whole, 0, stage->parameters,
					stage->parameters_length};
}

/* The frame and the data of the first stage, where its sandbox gets them. */
static enum osd_status fill_args(void *arg, uint8_t *args)
{
	struct osd_stack_run *run = arg;
	const struct osd_stage_frame frame = frame_of(run);

	return run->load(run, args + osd_stage_frame_encode(&frame, args));
}

/* OSD_PENDING: stage_ended will be called, or has been; then the run may be gone. */
enum osd_status osd_stack_run_call(struct osd_stack_run *run)
{
	const struct osd_stage *stage = stage_of(run);
	struct osd_exec_submission submission = osd_submission_own(
		&stage->function, run->codes[place_of(run)], method_of(run), run->id, 0);
	char principal[OSD_PRINCIPAL_MAX];

	name_principal(run, &stage->function, principal);
	submission.args =
		(struct osd_exec_text){run->args, (uint32_t)(run->frame_length + run->data_length)};
	submission.owned_args = is_optional(run) || !run->args ? NULL : &run->args;
	submission.fill_args = run->args ? NULL : fill_args;
	submission.reads_once = !run->stream;
	submission.for_script = run->for_script;
	submission.sync_wait_usec = osd_exec_limits[OSD_LIMIT_SYNC_WAIT].maximum;
	submission.done = stage_ended;
	submission.arg = run;
	submission.aborted = &run->request->aborted;
	submission.principal = principal;
	submission.payer = payer_of(run);
	submission.audience = run->reader;
	submission.definer = stage->definer;
	return osd_submission_send_own(run->exec, &submission, run->fault);
}

enum osd_status osd_stack_run_prepare(struct osd_stack_run *run, uint64_t whole, const void *header,
				      size_t header_length, const void *data, size_t length)
{
	const struct osd_stage_frame frame = {run->offset + run->piece, whole,
					      (uint32_t)header_length, stage_of(run)->parameters,
					      stage_of(run)->parameters_length};
	uint8_t *args = malloc(OSD_STAGE_FRAME_MAX + header_length + length);

	if (!args)
		return OSD_E_NO_MEMORY;
	run->frame_length = osd_stage_frame_encode(&frame, args);
	if (header_length)
		memcpy(args + run->frame_length, header, header_length);
	run->frame_length += header_length;
	if (length)
		memcpy(args + run->frame_length, data, length);
	free(run->args);
	run->args = args;
	run->data_length = length;
	return OSD_OK;
}

/* Hands data to the stage at hand.  whole: bytes that its input has in all. */
static enum osd_status pass(struct osd_stack_run *run, const uint8_t *data, size_t length,
			    uint64_t whole)
{
	enum osd_status status = osd_stack_run_prepare(run, whole, NULL, 0, data, length);

	return status == OSD_OK ? osd_stack_run_call(run) : status;
}

size_t osd_stack_run_piece_max(const struct osd_stack_run *run)
{
	uint32_t block = run->stack->contract.block;

	return block ? OSD_STAGE_DATA_MAX / block * block : OSD_STAGE_DATA_MAX;
}

/* All data at once: the frame is put in front of them, where it has its room. */
static enum osd_status pass_all(struct osd_stack_run *run)
{
	const struct osd_stage_frame frame = frame_of(run);

	free(run->args);
	run->args = OSD_STEAL(run->base);
	run->frame_length = OSD_STAGE_FRAME_BYTES + frame.parameters_length;
	if (run->args)
		osd_stage_frame_encode(&frame, run->args);
	run->data_length = run->length;
	run->data = NULL;
	return osd_stack_run_call(run);
}

static enum osd_status begin_piece(struct osd_stack_run *run)
{
	size_t length = OSD_MIN(run->length - run->piece, osd_stack_run_piece_max(run));

	run->passed = 0;
	if (length == run->length)
		return pass_all(run);
	return pass(run, run->data + run->piece, length, run->whole);
}

enum osd_status osd_stack_run_begin(struct osd_stack_run *run)
{
	run->piece = 0;
	return begin_piece(run);
}

/* The bytes that a stage has returned, or its input if that passes instead. */
struct output {
	uint8_t **owner; /* of the memory that data are in, malloc'd; NULL: they are borrowed */
	const uint8_t *data;
	size_t length;
};

/* The last stage's output takes the place of the input.  That of blocks has the same length. */
static enum osd_status keep(struct osd_stack_run *run, const struct output *output)
{
	size_t length = output->length;

	if (run->data) { /* one of several pieces */
		memcpy(run->data + run->piece, output->data, length);
		run->piece += length;
		return run->piece < run->length ? begin_piece(run) : OSD_OK;
	}
	run->length = length;
	if (output->owner && *output->owner) {
		run->base = OSD_STEAL(*output->owner);
		run->data = run->base + (output->data - run->base);
		return OSD_OK;
	}
	if (run->reads_once) {
		run->data = (uint8_t *)output->data;
		return OSD_OK;
	}
	run->base = run->data = malloc(OSD_MAX(length, 1));
	if (run->base && length)
		memcpy(run->data, output->data, length);
	return run->base ? OSD_OK : OSD_E_NO_MEMORY;
}

/* OSD_PENDING: another stage was submitted. */
static enum osd_status go_on(struct osd_stack_run *run, const struct output *output)
{
	bool blocks = run->stack->contract.block;

	if (run->stream)
		return run->take(run, output->data, output->length);
	if (++run->passed < run->stack->count)
		return pass(run, output->data, output->length,
			    blocks ? run->whole : output->length);
	return keep(run, output);
}

/* ---- failures ----------------------------------------------------------------------------------- */

/* The last line of a traceback, without what would spoil a log. */
static void last_line(const uint8_t *text, size_t length, char line[160])
{
	const uint8_t *from = length ? osd_last_line(text, &length) : NULL;
	size_t used = 0;

	for (; used < OSD_MIN(length, 159u); used++)
		line[used] = from[used] < 0x20 || from[used] >= 0x7f ? '?' : (char)from[used];
	line[used] = '\0';
}

static enum osd_status fail(struct osd_stack_run *run, uint16_t reason, const char *why)
{
	static struct osd_ration ration = OSD_RATION(20, 1000000);
	const struct osd_stage *stage = stage_of(run);
	const struct osd_function *function = &stage->function;
	struct osd_fault *fault = run->fault;
	unsigned withheld;

	osd_fault_inform(fault, atomic_fetch_add(&tokens, 1) + 1);
	osd_fault_inform_command(fault, reason);
	if (osd_ration_take(&ration, osd_monotonic_usec(), &withheld))
		osd_warning("%s of 0x%" PRIx64 "/0x%" PRIx64 " failed in function %s "
			    "(0x%" PRIx64 "/0x%" PRIx64 ", %s, attribute %" PRIu32
			    ") at byte %" PRIu64 ", reason %u, token %" PRIu64 ": %s",
			    run->inverse ? "WRITE" : "READ", run->id.partition_id, run->id.object_id,
			    function->alias, function->id.partition_id, function->id.object_id,
			    method_of(run), stage->number, run->offset + run->piece, reason,
			    fault->information, why);
	return OSD_E_STAGE;
}

/* A function that breaks its contract fails as if it had raised an exception. */
static const char *broken_promise(const struct osd_stack_run *run,
				  const struct osd_exec_outcome *outcome)
{
	struct osd_contract contract = osd_stage_contract(stage_of(run), run->inverse);
	uint64_t wanted;

	if (outcome->form != OSD_RESULT_BYTES && outcome->whole_length)
		return "it returned no bytes";
	if (osd_contract_length(&contract, run->data_length, &wanted) &&
	    wanted != outcome->whole_length)
		return "it returned another length than its contract promises";
	return NULL;
}

/* How long its function takes, for osd_stack_run_usec: half of it is news. */
static void note_pace(struct osd_stack_run *run, uint64_t cpu_usec)
{
	struct osd_function_code *code = run->codes[place_of(run)];
	uint64_t before = atomic_load(&code->pace), now = cpu_usec * 1024000 / run->data_length;

	now = before ? (before + now) / 2 : now;
	atomic_store(&code->pace, (uint32_t)OSD_MIN(OSD_MAX(now, UINT64_C(1)), UINT32_MAX));
}

uint64_t osd_stack_run_usec(const struct osd_stack_run *run, size_t length)
{
	uint64_t usec = 0;

	for (size_t i = 0; i < run->stack->count; i++)
		usec += atomic_load(&run->codes[i]->pace) * (uint64_t)length / 1024 / 1000;
	return usec;
}

static enum osd_status judge(struct osd_stack_run *run, const struct osd_exec_outcome *outcome)
{
	bool optional = is_optional(run);
	enum osd_status status = osd_submission_outcome(outcome);
	uint16_t reason = outcome->reason;
	const char *why = NULL;
	char line[160];

	if (status == OSD_OK) {
		why = broken_promise(run, outcome);
		reason = OSD_REASON_EXCEPTION;
		if (run->data_length >= PACE_LEAST)
			note_pace(run, outcome->cpu_usec);
		if (!why)
			return go_on(run, &(struct output){outcome->owned_result, outcome->result,
							   (size_t)outcome->whole_length});
	} else if (!osd_status_is_of_job(status)) {
		return status;
	}
	run->skipped |= optional;
	if (optional)
		return go_on(run, &(struct output){&run->args, run->args + run->frame_length,
						   run->data_length});
	if (!why) {
		last_line(outcome->result, outcome->result ? outcome->result_length : 0, line);
		why = line;
	}
	return fail(run, reason, why);
}

/* exec/ calls this once for each stage, from any thread. */
static void stage_ended(void *arg, const struct osd_exec_outcome *outcome)
{
	struct osd_stack_run *run = arg;
	enum osd_status status = judge(run, outcome);

	if (status != OSD_PENDING)
		run->done(run, status);
}
