/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_member.c -- commands on all members of a collection: GET and SET MEMBER ATTRIBUTES, REMOVE
 * MEMBER OBJECTS (osd2-wire 3.10).  They run in atomic steps (tracked.h), so that a large
 * collection neither locks the store nor fills the log.  After an interruption, the
 * command can be repeated. */
#include <stdlib.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/authorise.h"
#include "command/commands.h"
#include "command/phase.h"
#include "command/precondition.h"
#include "command/stack_write.h"
#include "command/tracked.h"
#include "command/validate.h"
#include "object/page_provider.h"
#include "object/txn_run.h"

enum { FIELD_BYTE11 = 11, FIELD_OBJECT_ID = 24 };

/* Skips some members: those of other types, unfinished surrogates, and members that
 * the capability does not cover. */
static enum osd_status is_plain_member(struct osd_request *request, struct osd_txn *txn,
				       struct osd_object_id id, struct osd_access access,
				       bool *ret_plain)
{
	enum osd_object_type type;
	bool permitted = false;
	enum osd_status status = osd_object_type_of(txn, id, &type);

	*ret_plain = false;
	if (status == OSD_OK && type == OSD_USER_OBJECT)
		status = osd_authorise_inside(request, txn, id, access, &permitted);
	if (status != OSD_OK || !permitted)
		return status;
	status = osd_validate_unmarked(txn, id, type);
	*ret_plain = status == OSD_OK;
	return status == OSD_E_JOB_IN_WAY ? OSD_OK : status;
}

/* ---- SET MEMBER ATTRIBUTES ------------------------------------------------------------------- */

static enum osd_status validate(struct osd_tracked *tracked, struct osd_txn *txn)
{
	enum osd_status status = osd_validate_exists(tracked->ctx->request, txn);

	return status == OSD_OK ? osd_precondition_members(tracked->ctx, txn) : status;
}

static enum osd_status set_member(struct osd_tracked *tracked, struct osd_txn *txn,
				  struct osd_object_id id)
{
	int64_t *change = &tracked->next.capacity_change;
	struct osd_request *request = tracked->ctx->request;
	bool plain;
	enum osd_status status =
		is_plain_member(request, txn, id, osd_authorise_sets_access(request), &plain);

	if (status != OSD_OK || !plain)
		return status;
	return osd_phase_set_of(request, txn, id, false, change);
}

static enum osd_status set_step(struct osd_tracked *tracked, struct osd_txn *txn)
{
	enum osd_status status = osd_tracked_walk(tracked, txn, tracked->tracker, set_member);

	tracked->ctx->request->set_change = tracked->next.capacity_change;
	return status;
}

const struct osd_tracked_def osd_tracked_set_members = {.begin = validate, .step = set_step};

/* ---- GET MEMBER ATTRIBUTES ------------------------------------------------------------------- */

#define AT_ONCE_MEMBERS 128 /* the most that the front end's thread reads itself, from memory */

/* Members that are read in batches, each in a transaction of its own, which may be repeated. */
struct reading {
	struct osd_command_context *ctx;
	enum osd_status (*read)(struct reading *reading, struct osd_txn *txn,
				struct osd_object_id member);
	size_t most; /* members of a batch */
	struct so_far {
		struct osd_attr_writer writer;
		uint64_t used; /* capacity */
	} now, before;	       /* before: this batch */
	struct osd_list_result batch;
	uint64_t next_id;    /* 0: this is the first batch */
	uint64_t created_ms; /* of the collection at the first batch */
	uint64_t ids[OSD_STEP_MEMBERS];
};

/* A member that is removed meanwhile is skipped, as if it had been removed before. */
static enum osd_status read_member(struct reading *reading, struct osd_txn *txn, uint64_t id)
{
	struct osd_request *request = reading->ctx->request;
	struct osd_object_id member = {request->object.partition_id, id};
	struct so_far before = reading->now;
	enum osd_status status = reading->read(reading, txn, member);

	if (status != OSD_E_NO_OBJECT)
		return status;
	reading->now = before;
	request->fault = (struct osd_fault){0};
	return OSD_OK;
}

/* Between two batches, another collection may have got the id. */
static enum osd_status check_collection(struct reading *reading, struct osd_txn *txn)
{
	struct osd_request *request = reading->ctx->request;
	struct osd_object_facts facts;
	enum osd_status status = osd_validate_exists(request, txn);

	if (status == OSD_OK && reading->next_id)
		return osd_txn_same(txn, request->object, reading->created_ms);
	if (status == OSD_OK)
		status = osd_txn_facts(txn, request->object, false, &facts);
	if (status == OSD_OK)
		reading->created_ms = facts.created_ms;
	return status;
}

static enum osd_status read_batch(struct osd_txn *txn, void *arg)
{
	struct reading *reading = arg;
	struct osd_request *request = reading->ctx->request;
	struct osd_list_request list = {OSD_LIST_MEMBERS, request->object, reading->next_id};
	enum osd_status status = check_collection(reading, txn);

	osd_txn_watch(txn, &request->aborted);
	reading->now = reading->before;
	if (status == OSD_OK)
		status = osd_list_uncounted(txn, &list, reading->ids, reading->most,
					    &reading->batch);
	if (request->attributes->only_peeks && reading->batch.next_id != 0)
		return OSD_E_WOULD_BLOCK;
	for (size_t i = 0; status == OSD_OK && i < reading->batch.count; i++)
		status = read_member(reading, txn, reading->ids[i]);
	return status;
}

static enum osd_status read_all(struct reading *reading, unsigned flags)
{
	struct osd_command_context *ctx = reading->ctx;
	enum osd_status status;

	reading->most = OSD_STEP_MEMBERS;
	do {
		osd_command_hold(ctx);
		if (osd_command_aborted(ctx->request))
			return OSD_E_TASK_ABORTED;
		reading->before = reading->now;
		status = osd_txn_run(ctx->objects, flags | OSD_TXN_READ_ONLY, read_batch, reading);
		reading->next_id = reading->batch.next_id;
	} while (status == OSD_OK && reading->next_id != 0);
	return status;
}

static enum osd_status get_member(struct reading *reading, struct osd_txn *txn,
				  struct osd_object_id member)
{
	struct osd_request *request = reading->ctx->request;
	struct osd_access access = {.permissions = OSD_PERM_GET_ATTR};
	bool permitted;
	enum osd_status status = osd_authorise_inside(request, txn, member, access, &permitted);

	return status == OSD_OK && permitted
		       ? osd_attributes_group(request, txn, member, &reading->now.writer)
		       : status;
}

/* Few members whose attributes are all in memory.  Anything else, also an error, is for a worker. */
static enum osd_status get_at_once(struct reading *reading)
{
	struct osd_command_context *ctx = reading->ctx;
	struct osd_txn *txn;
	enum osd_status status;

	if (!ctx->request->attributes->peeks)
		return OSD_E_WOULD_BLOCK;
	ctx->request->attributes->only_peeks = true;
	reading->most = AT_ONCE_MEMBERS;
	status = osd_txn_begin(ctx->objects,
			       osd_phase_txn_flags(ctx->request) | OSD_TXN_READ_ONLY | OSD_TXN_NOWAIT,
			       &txn);
	if (status != OSD_OK)
		return OSD_E_WOULD_BLOCK;
	status = read_batch(txn, reading);
	osd_txn_abort(txn);
	return status == OSD_OK ? OSD_OK : OSD_E_WOULD_BLOCK;
}

static enum osd_status get_members(struct osd_command_context *ctx)
{
	OSD_CLEANUP_FREE struct reading *reading = calloc(1, sizeof(*reading));
	enum osd_status status;

	if (!reading)
		return OSD_E_NO_MEMORY;
	if (!ctx->attributes || !ctx->attributes->gets)
		return OSD_OK;
	osd_attributes_groups_begin(ctx->request, &reading->before.writer);
	ctx->request->attributes->peeks =
		osd_objects_peeks(ctx->objects, ctx->attributes->get_list);
	reading->ctx = ctx;
	reading->read = get_member;
	reading->now = reading->before;
	status = ctx->data_flags & OSD_DATA_NOWAIT
			 ? get_at_once(reading)
			 : read_all(reading, osd_phase_txn_flags(ctx->request));
	if (status == OSD_OK)
		osd_attributes_list_end(ctx->request, &reading->now.writer);
	return status;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Attributes of members are returned in groups.  Page format has no room for groups, and a
 * background command cannot return them.  The collection must exist even if there is nothing to
 * do. */
static enum osd_status check_members(struct osd_command_context *ctx)
{
	const struct osd_attr_params *params = ctx->attributes;
	bool gets = params && params->gets;

	if ((gets && params->format != OSD_CDBFMT_LIST) ||
	    (ctx->request->decoded.immed_tr &&
	     (gets || ctx->request->decoded.service_action == OSD_SA_GET_MEMBER_ATTRIBUTES)))
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	return gets || (params && params->sets) ? OSD_OK : osd_validate_alone(ctx);
}

static enum osd_status compare_alone(struct osd_txn *txn, void *ctx)
{
	return osd_precondition_members(ctx, txn);
}

static enum osd_status set_members(struct osd_command_context *ctx)
{
	if (!ctx->attributes || !ctx->attributes->sets)
		return osd_precondition_given(ctx)
			       ? osd_txn_run(ctx->objects, OSD_TXN_NO_TIMESTAMPS, compare_alone, ctx)
			       : OSD_OK;
	return osd_tracked_run(ctx, &osd_tracked_set_members, ctx->request->object,
			       FIELD_OBJECT_ID);
}

enum osd_status osd_cmd_get_member_attributes(struct osd_command_context *ctx)
{
	const struct osd_attr_params *params = ctx->attributes;
	enum osd_status status;

	if (ctx->data_flags & OSD_DATA_NOWAIT && (!params || !params->gets || params->sets))
		return OSD_E_WOULD_BLOCK;
	status = check_members(ctx);
	if (status == OSD_OK)
		status = get_members(ctx);
	return status == OSD_OK ? set_members(ctx) : status;
}

enum osd_status osd_cmd_set_member_attributes(struct osd_command_context *ctx)
{
	enum osd_status status = check_members(ctx);

	if (status == OSD_OK)
		status = set_members(ctx);
	return status == OSD_OK ? get_members(ctx) : status;
}

/* ---- REMOVE MEMBER OBJECTS ------------------------------------------------------------------- */

static const struct osd_access to_remove = {.permissions = OSD_PERM_REMOVE};

static enum osd_status measure_member(struct reading *reading, struct osd_txn *txn,
				      struct osd_object_id member)
{
	uint64_t used = 0;
	bool plain;
	enum osd_status status =
		is_plain_member(reading->ctx->request, txn, member, to_remove, &plain);

	if (status == OSD_OK && plain)
		status = osd_object_used(txn, member, &used);
	reading->now.used += used;
	return status;
}

/* The attributes are served before the members are removed, so the reported change in used capacity
 * is the use of the members at the start. */
static enum osd_status measure_removal(struct osd_command_context *ctx)
{
	OSD_CLEANUP_FREE struct reading *reading = NULL;
	struct osd_request *request = ctx->request;
	enum osd_status status;

	if (!request->attributes || !request->attributes->wants_capacity_change)
		return OSD_OK;
	reading = calloc(1, sizeof(*reading));
	if (!reading)
		return OSD_E_NO_MEMORY;
	reading->ctx = ctx;
	reading->read = measure_member;
	status = read_all(reading, OSD_TXN_NO_TIMESTAMPS);
	request->capacity_change = -(int64_t)reading->now.used;
	return status;
}

/* Attributes of the collection itself come before its members go. */
static enum osd_status begin_removal(struct osd_tracked *tracked, struct osd_txn *txn)
{
	enum osd_status status = validate(tracked, txn);

	return status == OSD_OK ? osd_phase_set_then_get(tracked->ctx->request, txn) : status;
}

static enum osd_status remove_member(struct osd_tracked *tracked, struct osd_txn *txn,
				     struct osd_object_id id)
{
	bool plain;
	enum osd_status status =
		is_plain_member(tracked->ctx->request, txn, id, to_remove, &plain);

	if (status != OSD_OK || !plain)
		return status;
	return osd_stack_refuse_removal(tracked->ctx->request, osd_user_object_remove(txn, id));
}

static enum osd_status remove_step(struct osd_tracked *tracked, struct osd_txn *txn)
{
	return osd_tracked_walk(tracked, txn, tracked->tracker, remove_member);
}

const struct osd_tracked_def osd_tracked_remove_members = {.begin = begin_removal,
							   .step = remove_step};

enum osd_status osd_cmd_remove_member_objects(struct osd_command_context *ctx)
{
	enum osd_status status;

	/* This command does not empty a partition: REMOVE PARTITION does that explicitly. */
	if (ctx->request->object.object_id == OSD_OBJECTS_COLLECTION)
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_OBJECT_ID);
	status = measure_removal(ctx);
	if (status != OSD_OK)
		return status;
	return osd_tracked_run(ctx, &osd_tracked_remove_members, ctx->request->object,
			       FIELD_OBJECT_ID);
}
