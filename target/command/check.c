/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check.c -- see check.h. */
#include "command/check.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ration.h"
#include "base/util.h"
#include "command/attributes.h"
#include "command/hook_call.h"
#include "command/precondition.h"
#include "command/resolve.h"
#include "command/stack_write.h"
#include "command/submission.h"
#include "object/stack.h"
#include "wire/continuation.h"

#define TRIES	  16	  /* while others change the object */
#define WALL_USEC 5000000 /* that a check runs at most */
#define WAIT_USEC 30000000 /* with the time in the queue */

/* Of a command that was asked about. */
struct osd_checked {
	bool permitted;
	bool versioned; /* the object existed, and had this version */
	struct osd_data_version version;
	bool given; /* the command has a precondition of its own */
	unsigned tries;
	char text[OSD_HOOK_TEXT_MAX + 1]; /* of the refusal */
};

struct check {
	struct osd_request *request; /* borrowed */
	struct osd_functions *functions;
	struct osd_exec *exec;
	struct osd_object_id id;
	struct osd_hook *hooks; /* owned */
	size_t count, asked;
	struct osd_hook_frame frame;
	uint8_t *attributes, *data; /* owned: copies for the frame */
};

static void free_check(struct check *check)
{
	if (!check)
		return;
	free(check->hooks);
	free(check->attributes);
	free(check->data);
	free(check);
}

OSD_DEFINE_CLEANUP(struct check *, free_check)

void osd_check_forget(struct osd_request *request)
{
	free(request->checked);
	request->checked = NULL;
	request->checked_version = NULL;
}

bool osd_check_begin_again(struct osd_request *request)
{
	if (!request->checked_version || request->checked->given)
		return false;
	request->checked->permitted = false;
	request->checked_version = NULL;
	osd_stack_forget(request);
	return true;
}

/* ---- what is asked about ------------------------------------------------------------------------ */

static bool is_made(const struct osd_command_context *ctx)
{
	return ctx->def->flags & OSD_CMD_REQUESTED_ID;
}

static bool sets_length(const struct osd_attr_params *params)
{
	return osd_attributes_sets(params, OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH);
}

/* A check that fails must not keep its hook from being removed. */
static bool sets_hooks_alone(const struct osd_attr_params *params)
{
	struct osd_attr_walk walk = osd_attributes_to_set(params);
	struct osd_attr attr;

	while (osd_attr_walk_next(&walk, &attr))
		if (attr.page != OSD_PAGE_HOOKS)
			return false;
	return true;
}

static unsigned events_of(const struct osd_command_context *ctx)
{
	unsigned events = ctx->def->events;

	if (!(ctx->def->object_types & OSD_USER_OBJECT))
		return 0;
	if (ctx->attributes && ctx->attributes->sets && !sets_hooks_alone(ctx->attributes))
		events |= sets_length(ctx->attributes) && !is_made(ctx)
				  ? OSD_HOOK_SET | OSD_HOOK_WRITE
				  : OSD_HOOK_SET;
	return events;
}

/* What memory says.  An object that does not exist has no hooks: the command itself reports it. */
static unsigned hooked_events(struct osd_command_context *ctx)
{
	unsigned events = osd_hooks_any(ctx->objects) ? events_of(ctx) : 0;

	if (!events)
		return 0;
	if (is_made(ctx))
		return events & osd_hooks_above(ctx->objects, ctx->addressed.partition_id);
	if (ctx->request->object_type != OSD_USER_OBJECT && !ctx->addressed.object_id)
		return 0;
	return osd_resolve_object(ctx) == OSD_OK ? events & osd_object_hooks(ctx->object) : 0;
}

/* ---- the frame ---------------------------------------------------------------------------------- */

/* The entries that the command sets, as in a list of attributes. */
static enum osd_status copy_attributes(const struct osd_attr_params *params, struct check *check)
{
	struct osd_attr_walk walk = osd_attributes_to_set(params);
	size_t room = (size_t)(walk.list.end - walk.list.at);
	struct osd_attr_writer writer;
	struct osd_attr attr;

	if (walk.has_one)
		room = OSD_ATTR_VALUE_ENTRY + walk.one.length + 8;
	if (room == 0)
		return OSD_OK;
	check->attributes = malloc(room);
	if (!check->attributes)
		return OSD_E_NO_MEMORY;
	osd_attr_writer_init(&writer, check->attributes, room, OSD_LIST_BARE);
	while (osd_attr_walk_next(&walk, &attr))
		osd_attr_writer_add(&writer, attr.page, attr.number, attr.value, attr.length);
	check->frame.attributes = check->attributes;
	check->frame.attributes_length = osd_attr_writer_finish(&writer);
	return OSD_OK;
}

/* The range from the first byte to the last one.  An APPEND begins at the end.  pieces: NULL: there is one. */
static enum osd_status find_range(struct osd_command_context *ctx,
				  const struct osd_descriptor *pieces, struct osd_hook_frame *frame)
{
	const struct osd_cdb *cdb = &ctx->request->decoded;
	struct osd_sg_list list;
	uint64_t first = UINT64_MAX, last = 0, offset, length, end;
	enum osd_status status;

	frame->offset = ctx->def->bytes == OSD_BYTES_AT_END ? frame->old_length
							    : cdb->starting_byte_address;
	frame->length = cdb->length;
	if (!pieces)
		return OSD_OK;
	status = osd_sg_list_open(pieces, cdb->starting_byte_address, cdb->length, &list);
	if (status != OSD_OK)
		return osd_command_fail(ctx->request, status, OSD_CONTINUATION_FIELD);
	while (osd_sg_list_next(&list, &offset, &length)) {
		if (length == 0)
			continue;
		first = OSD_MIN(first, offset);
		end = osd_add_capped(offset, length);
		last = OSD_MAX(last, end);
	}
	frame->offset = OSD_MIN(first, last);
	frame->length = last - frame->offset;
	return OSD_OK;
}

static enum osd_status copy_data(struct osd_command_context *ctx, struct check *check)
{
	if (!(ctx->def->flags & OSD_CMD_DATA_OUT) || ctx->command_data_length > OSD_CHECK_DATA_MAX)
		return OSD_OK;
	check->data = malloc(OSD_MAX(ctx->command_data_length, 1));
	if (!check->data)
		return OSD_E_NO_MEMORY;
	if (ctx->command_data_length)
		memcpy(check->data, ctx->command_data, ctx->command_data_length);
	check->frame.data = check->data;
	check->frame.data_length = ctx->command_data_length;
	return OSD_OK;
}

/* Of the object, or of its source, which has the data and is changed.  *ret_source_gone: it has none any more. */
static enum osd_status state_of(struct osd_object *object, uint64_t *ret_length,
				struct osd_data_version *ret_version, bool *ret_source_gone)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *source = NULL;
	enum osd_status status = osd_object_get_source(object, &source);
	const bool has_source = source || status != OSD_OK;

	if (status == OSD_OK)
		status = osd_object_state(source ? source : object, ret_length, ret_version);
	*ret_source_gone = has_source && osd_status_is_gone(status);
	return *ret_source_gone ? OSD_OK : status;
}

/* The state of the data that the checks are about. */
static enum osd_status look_at(struct osd_command_context *ctx, struct check *check)
{
	struct osd_checked *checked = ctx->request->checked;
	const struct osd_data_version *wanted;
	struct osd_data_version given;
	bool source_gone = false;
	enum osd_status status;

	checked->versioned = false;
	if (is_made(ctx))
		return OSD_OK;
	status = osd_precondition_load(ctx, OSD_PAGE_VERSION, &given, &wanted);
	checked->given = wanted != NULL;
	if (status == OSD_OK)
		status = state_of(ctx->object, &check->frame.old_length, &checked->version,
				  &source_gone);
	if (status != OSD_OK || source_gone)
		return status;
	checked->versioned = true;
	return !wanted || osd_same_version(*wanted, checked->version) ? OSD_OK : OSD_E_VERSION;
}

static enum osd_status fill(struct osd_command_context *ctx, struct check *check, unsigned events)
{
	struct osd_descriptor pieces;
	bool scattered = osd_continuation_find(&ctx->continuation, OSD_DESC_SG_LIST, &pieces);
	enum osd_status status = look_at(ctx, check);

	check->frame.events = events;
	check->frame.service_action = ctx->def->service_action;
	check->frame.partition_id = ctx->addressed.partition_id;
	check->frame.object_id = ctx->addressed.object_id;
	check->frame.now_msec = osd_wall_msec();
	if (status == OSD_OK && ctx->def->events & (OSD_HOOK_WRITE | OSD_HOOK_CREATE))
		status = find_range(ctx, scattered ? &pieces : NULL, &check->frame);
	if (status == OSD_OK)
		status = copy_attributes(ctx->attributes, check);
	return status == OSD_OK && !scattered ? copy_data(ctx, check) : status;
}

/* ---- the calls ---------------------------------------------------------------------------------- */

static enum osd_status refuse(struct check *check, const struct osd_exec_outcome *outcome,
			      uint16_t reason)
{
	static struct osd_ration ration = OSD_RATION(20, 1000000);
	static _Atomic uint64_t tokens;
	const struct osd_hook *hook = &check->hooks[check->asked];
	struct osd_checked *checked = check->request->checked;
	struct osd_fault *fault = &check->request->fault;
	unsigned withheld;

	osd_hook_text(outcome, checked->text);
	fault->text = checked->text;
	osd_fault_inform(fault, atomic_fetch_add(&tokens, 1) + 1);
	osd_fault_inform_command(fault, reason);
	if (osd_ration_take(&ration, osd_monotonic_usec(), &withheld))
		osd_info("a check of 0x%" PRIx64 "/0x%" PRIx64 " does not permit a command: function %s (0x%" PRIx64
			 "/0x%" PRIx64 ", %s, attribute %" PRIu32 "), reason %u, token %" PRIu64
			 ": %s",
			 check->id.partition_id, check->id.object_id, hook->function.alias,
			 hook->function.id.partition_id, hook->function.id.object_id, hook->method,
			 hook->number, reason, fault->information, checked->text);
	return OSD_E_CHECK;
}

static enum osd_status ask(struct check *check);

/* A function that fails or does not end forbids it. */
static enum osd_status judge(struct check *check, const struct osd_exec_outcome *outcome)
{
	enum osd_status status = osd_submission_outcome(outcome);

	if (status == OSD_OK && outcome->whole_length && outcome->form != OSD_RESULT_NONE)
		return refuse(check, outcome, 0);
	if (status == OSD_OK) {
		check->asked++;
		return ask(check);
	}
	if (osd_status_is_of_job(status))
		return refuse(check, outcome, outcome->reason);
	return status;
}

/* exec/ calls this once for each function, from any thread. */
static void answered(void *arg, const struct osd_exec_outcome *outcome)
{
	struct check *check = arg;
	struct osd_request *request = check->request;
	enum osd_status status = judge(check, outcome);

	if (status == OSD_PENDING)
		return;
	if (status == OSD_OK) {
		request->checked->permitted = true;
		if (request->checked->versioned)
			request->checked_version = &request->checked->version;
		osd_attributes_forget(request);
		request->again = true;
	}
	request->fault.status = status;
	free_check(check);
	request->resume(request);
}

/* OSD_OK: all functions have permitted it.  OSD_PENDING: the next one was asked; the check may be gone. */
static enum osd_status ask(struct check *check)
{
	struct osd_principal principal;
	struct osd_hook_call call = {
		.functions = check->functions,
		.exec = check->exec,
		.hook = &check->hooks[check->asked],
		.zone = check->id,
		.frame = &check->frame,
		.wall_usec = WALL_USEC,
		.wait_usec = WAIT_USEC,
		.done = answered,
		.arg = check,
		.aborted = &check->request->aborted,
		.fault = &check->request->fault,
	};

	if (check->asked == check->count)
		return OSD_OK;
	if (!check->exec)
		return OSD_E_ISOLATION;
	osd_command_principal(check->request, &principal);
	call.payer = osd_submission_payer(principal.key);
	return osd_hook_call(&call);
}

/* ---- the command -------------------------------------------------------------------------------- */

static enum osd_status begin(struct osd_command_context *ctx, unsigned events)
{
	OSD_CLEANUP(free_checkp) struct check *check = calloc(1, sizeof(*check));
	struct osd_hook_search search = {
		.functions = ctx->functions,
		.id = {ctx->addressed.partition_id, is_made(ctx) ? 0 : ctx->addressed.object_id},
		.events = events};
	enum osd_status status;

	if (!check)
		return OSD_E_NO_MEMORY;
	status = osd_hook_search(ctx->objects, &search);
	check->request = ctx->request;
	check->functions = ctx->functions;
	check->exec = ctx->exec;
	check->id = search.id;
	check->hooks = search.hooks;
	check->count = search.count;
	check->frame.created_msec = search.created_msec;
	if (status != OSD_OK || check->count == 0)
		return status;
	status = fill(ctx, check, events);
	if (status == OSD_OK)
		status = ask(check);
	if (status == OSD_PENDING)
		check = NULL; /* from here on answered() owns it and the request */
	return status;
}

enum osd_status osd_check_command(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	unsigned events = hooked_events(ctx);
	enum osd_status status;

	if (!events || (request->checked && request->checked->permitted))
		return OSD_OK;
	if (ctx->def->untold)
		return OSD_E_CHECK;
	if (!request->checked)
		request->checked = calloc(1, sizeof(*request->checked));
	if (!request->checked)
		return OSD_E_NO_MEMORY;
	if (++request->checked->tries > TRIES)
		return OSD_E_BUSY;
	status = begin(ctx, events);
	/* No function was asked: the hooks have gone, or concern other events. */
	return osd_status_is_gone(status) ? OSD_OK : status;
}
