/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dispatch.c -- see dispatch.h.  Here: the order of phases, transactions with their retries,
 * attributes before or after.  Elsewhere: the checks before (prepare.c), attribute lists
 * (attributes.c) and their objects (phase.c), FORMAT's quiescence (gate.c), the bytes of the answer
 * (complete.c), the commands (cmd_*.c). */
#include "command/dispatch.h"

#include <string.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/check.h"
#include "command/commands.h"
#include "command/compile.h"
#include "command/complete.h"
#include "command/dispatch_impl.h"
#include "command/integrity.h"
#include "command/osc.h"
#include "command/phase.h"
#include "command/precondition.h"
#include "command/resolve.h"
#include "command/stack_copy.h"
#include "command/stack_read.h"
#include "command/stack_run.h"
#include "command/stack_write.h"
#include "command/table.h"
#include "command/validate.h"
#include "object/txn_run.h"
#include "object/view.h"
#include "wire/cdb_peek.h"

#define INLINE_READ_MAX	  (64u << 10)
#define INLINE_HASHED_MAX (68u << 10) /* Data-In of such a READ with all that proves it */
#define INLINE_LIST_MAX	  512u /* bytes of Data-Out, which are the list of attributes asked for */
#define BEGIN_DATA_MAX	  (16u << 10) /* bytes of Data-Out, which are copied */

/* ---- the gate -------------------------------------------------------------------------------- */

/* FORMAT OSD waits for all other commands.  It is checked before it closes the gate. */
static enum osd_status close_gate(struct osd_dispatcher *dispatcher)
{
	enum osd_status status = osd_gate_close(&dispatcher->gate);

	if (status != OSD_OK)
		return status;
	osd_backgrounds_interrupt(dispatcher->backgrounds);
	osd_gate_drain(&dispatcher->gate);
	return OSD_OK;
}

static void leave(struct osd_dispatcher *dispatcher, bool alone)
{
	if (alone)
		osd_gate_open(&dispatcher->gate);
	else
		osd_gate_leave(&dispatcher->gate);
}

/* ---- execution ------------------------------------------------------------------------------- */

static enum osd_status execute(struct osd_command_context *ctx)
{
	enum osd_status status;

	ctx->request->initiated |= OSD_FN_COMMAND | OSD_FN_IMP_ST_ATT;
	status = ctx->def->execute(ctx);
	if (status == OSD_OK || osd_status_keeps_data(status))
		ctx->request->completed |= OSD_FN_COMMAND | OSD_FN_IMP_ST_ATT;
	return status;
}

/* Attributes that are got before others are set must not change in between, but reads before the
 * first change of a transaction take no locks.  So lock the record first, which also reads it only
 * once.  The same for a version that is compared. */
static enum osd_status hold_to_set(const struct osd_command_context *ctx)
{
	const struct osd_attr_params *params = ctx->request->attributes;

	const bool sets = params && params->sets;
	const bool changes = sets || !(ctx->def->flags & OSD_CMD_NO_CHANGE);

	return (sets && ctx->def->execute == osd_cmd_attributes) ||
			       (changes && osd_precondition_given(ctx)) ||
			       ctx->request->checked_version
		       ? osd_object_hold(ctx->txn, ctx->request->object)
		       : OSD_OK;
}

/* All phases of a command whose row says OSD_CMD_TXN. */
static enum osd_status phases(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint16_t flags = ctx->def->flags;
	enum osd_status status = OSD_OK;

	if (!(flags & OSD_CMD_REQUESTED_ID)) {
		status = hold_to_set(ctx);
		if (status == OSD_OK)
			status = osd_validate_exists(request, ctx->txn);
		if (status == OSD_OK)
			status = osd_authorise_again(ctx);
		if (status == OSD_OK)
			status = osd_precondition_check(ctx, ctx->txn, ctx->pin);
	}
	if (osd_osc_forgives(request, status))
		return OSD_OK;
	if (status == OSD_OK && flags & OSD_CMD_CHANGES)
		status = osd_validate_unmarked(ctx->txn, request->object, request->object_type);
	if (status != OSD_OK || flags & OSD_CMD_OWN_ATTRS)
		return status == OSD_OK ? execute(ctx) : status;
	if (flags & OSD_CMD_GET_FIRST) {
		status = osd_phase_get(request, ctx->txn);
		if (status == OSD_OK)
			status = osd_phase_set(request, ctx->txn);
		return status == OSD_OK ? execute(ctx) : status;
	}
	if (flags & OSD_CMD_ATTRS_FIRST) {
		status = osd_phase_before_removal(request, ctx->txn);
		return status == OSD_OK ? execute(ctx) : status;
	}
	status = execute(ctx);
	return status == OSD_OK ? osd_phase_set_then_get(request, ctx->txn) : status;
}

/* One attempt.  Resets what an earlier attempt left in the request, and hides the results of a
 * failed one. */
static enum osd_status attempt(struct osd_txn *txn, void *arg)
{
	struct osd_command_context *ctx = arg;
	enum osd_status status;

	osd_prepare_attempt(ctx->request);
	ctx->request->object = ctx->addressed;
	ctx->txn = txn;
	osd_txn_watch(txn, &ctx->request->aborted);
	status = phases(ctx);
	ctx->txn = NULL;
	if (status == OSD_E_CONTRACT && !ctx->request->fault.has_command_information &&
	    osd_view_may_be(ctx->objects, ctx->addressed.partition_id))
		return osd_stack_refuse(ctx->request, OSD_CONTRACT_DIRECTORY);
	return status;
}

static enum osd_status run_in_txn(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	enum osd_status status = ctx->def->first ? ctx->def->first(ctx) : OSD_OK;

	if (status != OSD_OK) /* also OSD_PENDING: the request is not ours any more */
		return status;
	status = osd_precondition_begin(ctx, &ctx->pin);
	if (status != OSD_OK)
		return status;
	status = osd_txn_run(ctx->objects,
			     osd_phase_txn_flags(request) | osd_command_commit(request), attempt,
			     ctx);
	osd_pin_end(OSD_STEAL(ctx->pin));
	if (status == OSD_OK)
		return OSD_OK;
	osd_prepare_attempt(request);
	request->object = ctx->addressed;
	return status;
}

/* Checks that an object may be changed. */
static enum osd_status check_unmarked(struct osd_command_context *ctx)
{
	enum osd_status status = osd_resolve_object(ctx);

	if (status != OSD_OK)
		return status;
	return osd_object_is_unfinished(ctx->object) ? OSD_E_JOB_IN_WAY : OSD_OK;
}

/* Commands that move data or run transactions of their own. */
static enum osd_status run_data(struct osd_command_context *ctx)
{
	enum osd_status status = OSD_OK, outcome;

	if (ctx->def->flags & OSD_CMD_CHANGES)
		status = check_unmarked(ctx);
	if (status != OSD_OK)
		return status;
	outcome = execute(ctx);
	if (outcome == OSD_PENDING)
		return outcome; /* from here on another thread may own the request */
	if (outcome != OSD_OK && !osd_status_keeps_data(outcome))
		return outcome;
	if (!(ctx->def->flags & OSD_CMD_OWN_ATTRS))
		status = osd_phase_alone(ctx->objects, ctx->request);
	return status == OSD_OK ? outcome : status;
}

/* *ret_result is changed if the request is not finished; then another thread may own it. */
static enum osd_status run(struct osd_command_context *ctx, enum osd_dispatch_result *ret_result)
{
	enum osd_status status = osd_copies_defer(ctx->copies, ctx);

	if (status == OSD_PENDING)
		*ret_result = OSD_DISPATCH_LATER;
	if (status != OSD_OK)
		return status;
	do {
		status = osd_check_command(ctx);
		if (status == OSD_OK)
			status = ctx->def->flags & OSD_CMD_TXN ? run_in_txn(ctx) : run_data(ctx);
	} while (status == OSD_E_VERSION && osd_check_begin_again(ctx->request));
	if (status == OSD_PENDING)
		*ret_result = OSD_DISPATCH_PARKED;
	return status;
}

/* ---- entry points ---------------------------------------------------------------------------- */

static void finish(struct osd_request *request, enum osd_status status)
{
	osd_complete(request, status);
	osd_attributes_forget(request);
	request->alone = false;
	if (request->written)
		osd_stack_forget(request);
	if (request->reading)
		osd_stack_read_forget(request);
	if (request->copied)
		osd_stack_copy_forget(request);
	if (request->checked)
		osd_check_forget(request);
	if (request->compiled)
		osd_compile_forget(request);
	if (request->security.extensions)
		osd_authorise_release(&request->security);
	if (request->security.proof.grant.verified)
		explicit_bzero(&request->security, sizeof(request->security));
	else
		request->security = (struct osd_request_security){0};
}

enum osd_dispatch_result osd_dispatch(struct osd_dispatcher *dispatcher,
				      struct osd_request *request)
{
	struct osd_command_context ctx;
	enum osd_dispatch_result result = OSD_DISPATCH_DONE;
	enum osd_status status, decoded;
	bool alone = false;

	osd_prepare_reset(dispatcher, request);
	decoded = osd_prepare_decode(request, &ctx);
	status = decoded == OSD_E_OPCODE ? decoded : osd_gate_enter(&dispatcher->gate);
	if (status != OSD_OK) {
		finish(request, status);
		return OSD_DISPATCH_DONE;
	}
	status = osd_prepare(dispatcher, request, decoded, false, &ctx);
	if (status == OSD_OK && osd_command_aborted(request))
		status = OSD_E_TASK_ABORTED; /* in the queue */
	if (status == OSD_OK && request->def->flags & OSD_CMD_EXCLUSIVE) {
		osd_gate_leave(&dispatcher->gate);
		status = close_gate(dispatcher);
		if (status != OSD_OK) {
			osd_context_release(&ctx);
			finish(request, status);
			return OSD_DISPATCH_DONE;
		}
		alone = true;
	}
	if (status == OSD_OK)
		status = run(&ctx, &result);
	osd_context_release(&ctx); /* FORMAT OSD waits for its reference */
	leave(dispatcher, alone);
	if (result == OSD_DISPATCH_DONE)
		finish(request, status);
	return result;
}

/* Cheap enough to say no before decoding: most requests are not small READs, EXEC, or for attributes. */
static bool may_run_inline(const struct osd_request *request)
{
	const struct osd_command_def *def;

	if (request->data_out_length > BEGIN_DATA_MAX)
		return false;
	def = osd_command_of(request->cdb, request->cdb_length);
	if (def && def->at_once)
		return true;
	if (!def || request->data_out_length > INLINE_LIST_MAX ||
	    (def->flags & (OSD_CMD_INLINE | OSD_CMD_MAY_PARK)) != OSD_CMD_INLINE)
		return false;
	if (def->flags & (OSD_CMD_TXN | OSD_CMD_OWN_ATTRS))
		return true;
	return request->data_out_length == 0 && osd_cdb_peek_length(request->cdb) <= INLINE_READ_MAX;
}

/* GET ATTRIBUTES is for an object in memory: its records are then most likely in memory, too.  The function
 * of another command decides what it can do without waiting, but the record of an object that it addresses
 * may have to be read. */
static enum osd_status run_txn_inline(struct osd_command_context *ctx)
{
	const struct osd_attr_params *params = ctx->attributes;
	bool only_attributes = ctx->def->execute == osd_cmd_attributes;
	struct osd_txn *txn;
	enum osd_status status = OSD_OK;

	if (params ? params->sets || params->walks : only_attributes)
		return OSD_E_WOULD_BLOCK;
	if (!only_attributes && ctx->addressed.object_id != 0)
		return OSD_E_WOULD_BLOCK;
	if (only_attributes && osd_attributes_peek(ctx->request, ctx->objects))
		return OSD_OK;
	if (only_attributes)
		status = osd_resolve_object(ctx);
	if (status == OSD_OK)
		status = osd_txn_begin(ctx->objects,
				       osd_phase_txn_flags(ctx->request) | OSD_TXN_NOWAIT, &txn);
	if (status != OSD_OK)
		return OSD_E_WOULD_BLOCK;
	status = attempt(txn, ctx);
	osd_txn_abort(txn);
	return status == OSD_E_CONFLICT ? OSD_E_WOULD_BLOCK : status;
}

static enum osd_status run_inline(struct osd_dispatcher *dispatcher, struct osd_request *request)
{
	OSD_CLEANUP(osd_context_release) struct osd_command_context ctx;
	enum osd_status status = osd_prepare_decode(request, &ctx);

	/* Leave the error to a worker, which reports it. */
	if (status != OSD_OK || request->decoded.data_distribution)
		return OSD_E_WOULD_BLOCK;
	if (request->def->at_once ? osd_request_method(request) != OSD_NOSEC
				  : request->decoded.continuation_length != 0)
		return OSD_E_WOULD_BLOCK;
	status = osd_prepare(dispatcher, request, OSD_OK, true, &ctx);
	if (status != OSD_OK || (osd_request_method(request) == OSD_ALLDATA &&
				 request->data_in_capacity > INLINE_HASHED_MAX))
		return OSD_E_WOULD_BLOCK;
	if (ctx.def->flags & OSD_CMD_TXN)
		return run_txn_inline(&ctx);
	if (request->attributes && !request->attributes->current_only &&
	    !(ctx.def->flags & OSD_CMD_OWN_ATTRS))
		return OSD_E_WOULD_BLOCK;
	return run_data(&ctx);
}

/* The request may be another thread's once its command has returned OSD_PENDING. */
static enum osd_status begin(struct osd_dispatcher *dispatcher, struct osd_request *request)
{
	OSD_CLEANUP(osd_context_release) struct osd_command_context ctx;
	enum osd_status status = osd_prepare_decode(request, &ctx);

	/* A job under a capability reads keys. */
	if (status != OSD_OK || request->decoded.data_distribution || request->decoded.immed_tr ||
	    osd_request_method(request) != OSD_NOSEC)
		return OSD_E_WOULD_BLOCK;
	status = osd_prepare(dispatcher, request, OSD_OK, true, &ctx);
	/* This thread may be the one that gets attributes at the end: only the command's own need no store. */
	if (status != OSD_OK || (request->attributes && !request->attributes->current_only))
		return OSD_E_WOULD_BLOCK;
	return execute(&ctx);
}

static enum osd_dispatch_result
do_at_once(struct osd_dispatcher *dispatcher, struct osd_request *request,
	   enum osd_status (*run_it)(struct osd_dispatcher *dispatcher, struct osd_request *request))
{
	enum osd_status status;

	if (osd_gate_enter(&dispatcher->gate) != OSD_OK)
		return OSD_DISPATCH_QUEUE;
	osd_prepare_reset(dispatcher, request);
	status = run_it(dispatcher, request);
	osd_gate_leave(&dispatcher->gate);
	if (status == OSD_PENDING)
		return OSD_DISPATCH_PARKED;
	if (status != OSD_E_WOULD_BLOCK) {
		finish(request, status);
		return OSD_DISPATCH_DONE;
	}
	osd_attributes_forget(request);
	return OSD_DISPATCH_QUEUE;
}

enum osd_dispatch_result osd_dispatch_inline(struct osd_dispatcher *dispatcher,
					     struct osd_request *request)
{
	return may_run_inline(request) ? do_at_once(dispatcher, request, run_inline)
				       : OSD_DISPATCH_QUEUE;
}

enum osd_dispatch_result osd_dispatch_begin(struct osd_dispatcher *dispatcher,
					    struct osd_request *request)
{
	return request->data_out_length <= BEGIN_DATA_MAX ? do_at_once(dispatcher, request, begin)
							  : OSD_DISPATCH_QUEUE;
}

enum osd_dispatch_result osd_dispatch_resumed(struct osd_dispatcher *dispatcher,
					      struct osd_request *request, bool may_wait)
{
	enum osd_status outcome = request->fault.status, status = OSD_OK;

	if (outcome == OSD_OK || osd_status_keeps_data(outcome)) {
		request->completed |= OSD_FN_COMMAND | OSD_FN_IMP_ST_ATT;
		if (may_wait)
			osd_gate_return(&dispatcher->gate);
		else if (osd_gate_enter(&dispatcher->gate) != OSD_OK)
			return OSD_DISPATCH_QUEUE;
		status = osd_phase_alone(dispatcher->config.objects, request);
		osd_gate_leave(&dispatcher->gate);
		/* The checks are asked again when the client sends the command again. */
		if (status == OSD_E_VERSION && osd_check_begin_again(request))
			status = OSD_E_BUSY;
	}
	/* The end of the job matters more than that a format has removed its attributes. */
	finish(request, outcome == OSD_OK ? status : outcome);
	return OSD_DISPATCH_DONE;
}
