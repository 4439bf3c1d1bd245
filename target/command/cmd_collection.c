/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_collection.c -- collections and commands on all members of one (osd2-wire 3.2, 3.10).
 *
 * Commands on members run in transactions of MEMBERS_PER_TXN members, each atomic by itself, so
 * that a large collection neither locks the store nor fills the log (design D6).  A command that
 * is cut off half-way can simply be repeated.  The Command Tracking page of the collection tells
 * how far the last one came. */
#include <string.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/commands.h"
#include "command/transact.h"
#include "command/validate.h"
#include "exec/exec.h"
#include "wire/cursor.h"

#define MEMBERS_PER_TXN 1024
#define FCR		0x1 /* byte 11 b0 of REMOVE COLLECTION */

/* Command Tracking page (osd2-wire 5.16). */
#define PAGE_COMMAND_TRACKING (OSD_PAGE_COLLECTION_BASE | OSD_REL_COLLECTIONS)
enum {
	TRACKING_PERCENT = 0x1,
	TRACKING_ACTIVE = 0x2,
	TRACKING_ENDED = 0x3,
	TRACKING_PROCESSED = 0x11,
	TRACKING_MISSING = 0x13,
};

enum { FIELD_CDBFMT = 11, FIELD_OBJECT_ID = 24 };

/* ---- create ---------------------------------------------------------------------------------- */

enum osd_status osd_cmd_create_collection(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint64_t id;
	enum osd_status status =
		osd_collection_create(ctx->txn, request->object.partition_id,
				      request->decoded.object_id, OSD_COLLECTION_LINKED, &id);

	if (status != OSD_OK)
		return status;
	request->object.object_id = id;
	request->made_count = 1;
	return OSD_OK;
}

/* ---- walking the members --------------------------------------------------------------------- */

struct walk {
	struct osd_command_context *ctx;
	/* One member, inside txn.  Must be repeatable after OSD_E_RETRY. */
	enum osd_status (*member)(struct walk *walk, struct osd_txn *txn, struct osd_object_id id);
	unsigned txn_flags;
	bool tracked; /* progress goes to the Command Tracking page */
	struct osd_attr_writer *writer, writer_before; /* before: this batch, for its repetition */
	uint64_t next_id, processed, missing, members;
	uint64_t batch_missing;
	struct osd_list_result batch;
	uint64_t ids[MEMBERS_PER_TXN];
};

static enum osd_status put_tracking(struct osd_txn *txn, struct osd_object_id collection,
				    uint32_t number, uint64_t value, size_t width)
{
	uint8_t bytes[8];

	osd_put_be(bytes, value, width);
	return osd_attr_set(txn, collection, PAGE_COMMAND_TRACKING, number, bytes, width);
}

/* The percentage, and what is under way; the number of members is told by the collection itself. */
static enum osd_status track_in(void *arg, struct osd_txn *txn)
{
	const struct walk *walk = arg;
	struct osd_object_id id = walk->ctx->request->object;
	uint16_t action = walk->ctx->request->decoded.service_action;
	uint64_t percent = walk->members ? walk->processed * 100 / walk->members : 100;
	bool ended = walk->next_id == 0;
	enum osd_status status;

	status = put_tracking(txn, id, TRACKING_PERCENT, ended ? 100 : OSD_MIN(percent, 100u), 1);
	if (status == OSD_OK)
		status = put_tracking(txn, id, TRACKING_ACTIVE, ended ? 0 : action, 2);
	if (status == OSD_OK)
		status = put_tracking(txn, id, TRACKING_ENDED, ended ? 0 : 0xffff, 2);
	if (status == OSD_OK)
		status = put_tracking(txn, id, TRACKING_PROCESSED, walk->processed, 8);
	if (status == OSD_OK)
		status = put_tracking(txn, id, TRACKING_MISSING, walk->missing, 8);
	return status;
}

/* The target's own attributes, so in a transaction that may set them; the members' are the
 * client's. */
static enum osd_status track(struct walk *walk)
{
	if (!walk->tracked)
		return OSD_OK;
	return osd_transact(walk->ctx->objects, OSD_TXN_INTERNAL, OSD_COMMIT_PROCESS, track_in,
			    walk);
}

/* The collection itself, and the next members. */
static enum osd_status load_members(struct walk *walk, struct osd_txn *txn)
{
	struct osd_list_request list = {OSD_LIST_MEMBERS, walk->ctx->request->object,
					walk->next_id};
	enum osd_status status = osd_validate_exists(walk->ctx->request, txn);

	if (status == OSD_OK)
		status = osd_list(txn, &list, walk->ids, MEMBERS_PER_TXN, &walk->batch);
	return status;
}

/* A member that somebody removes meanwhile is skipped, as if it had gone before. */
static enum osd_status run_member(struct walk *walk, struct osd_txn *txn, struct osd_object_id id)
{
	struct osd_attr_writer before = {0};
	enum osd_status status;

	if (walk->writer)
		before = *walk->writer;
	status = walk->member(walk, txn, id);
	if (status != OSD_E_NO_OBJECT)
		return status;
	if (walk->writer)
		*walk->writer = before;
	walk->ctx->request->fault = (struct osd_fault){0};
	walk->batch_missing++;
	return OSD_OK;
}

/* One batch in one transaction. */
static enum osd_status run_batch(void *arg, struct osd_txn *txn)
{
	struct walk *walk = arg;
	uint64_t pid = walk->ctx->request->object.partition_id;
	enum osd_status status = load_members(walk, txn);

	walk->batch_missing = 0;
	if (walk->writer)
		*walk->writer = walk->writer_before;
	for (size_t i = 0; status == OSD_OK && i < walk->batch.count; i++)
		status = run_member(walk, txn, (struct osd_object_id){pid, walk->ids[i]});
	return status;
}

static enum osd_status walk_members(struct walk *walk)
{
	enum osd_commit how = osd_command_commit(walk->ctx->request);
	enum osd_status status;

	do {
		if (walk->writer)
			walk->writer_before = *walk->writer;
		status = osd_transact(walk->ctx->objects, walk->txn_flags, how, run_batch, walk);
		if (status != OSD_OK)
			return status;
		if (walk->next_id == 0)
			walk->members = walk->batch.total_count;
		walk->processed += walk->batch.count - walk->batch_missing;
		walk->missing += walk->batch_missing;
		walk->next_id = walk->batch.next_id;
		status = track(walk);
	} while (status == OSD_OK && walk->next_id != 0);
	return status;
}

static struct walk *walk_create(struct osd_command_context *ctx, unsigned txn_flags)
{
	struct walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return NULL;
	walk->ctx = ctx;
	walk->txn_flags = txn_flags;
	if (ctx->data_flags & OSD_DATA_NO_TIMESTAMPS)
		walk->txn_flags |= OSD_TXN_NO_TIMESTAMPS;
	return walk;
}

/* Membership may mix types, and unfinished surrogates stay as they are (design D13). */
static enum osd_status is_plain_member(struct osd_txn *txn, struct osd_object_id id,
				       bool *ret_plain)
{
	enum osd_object_type type;
	enum osd_status status = osd_object_type(txn, id, &type);

	*ret_plain = false;
	if (status != OSD_OK || type != OSD_USER_OBJECT)
		return status;
	status = osd_validate_unmarked(txn, id, type);
	*ret_plain = status == OSD_OK;
	return status == OSD_E_JOB_IN_WAY ? OSD_OK : status;
}

/* ---- GET and SET MEMBER ATTRIBUTES ----------------------------------------------------------- */

static enum osd_status get_member(struct walk *walk, struct osd_txn *txn, struct osd_object_id id)
{
	return osd_attributes_group(walk->ctx->request, txn, id, walk->writer);
}

static enum osd_status set_member(struct walk *walk, struct osd_txn *txn, struct osd_object_id id)
{
	bool plain;
	enum osd_status status = is_plain_member(txn, id, &plain);

	if (status != OSD_OK || !plain)
		return status;
	return osd_attributes_set(walk->ctx->request, txn, id, false);
}

/* What members tell comes back in groups, which page format has no room for.  And with nothing
 * to do, the collection must be there all the same. */
static enum osd_status check_members(struct osd_command_context *ctx)
{
	const struct osd_attr_params *params = ctx->attributes;

	if (params && params->gets && params->format != OSD_CDBFMT_LIST)
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_CDBFMT);
	return osd_validate_alone(ctx);
}

static enum osd_status get_members(struct osd_command_context *ctx)
{
	OSD_CLEANUP_FREE struct walk *walk = walk_create(ctx, OSD_TXN_READ_ONLY);
	struct osd_attr_writer writer;
	enum osd_status status;

	if (!walk)
		return OSD_E_NO_MEMORY;
	if (!ctx->attributes || !ctx->attributes->gets)
		return OSD_OK;
	osd_attributes_groups_begin(ctx->request, &writer);
	walk->member = get_member;
	walk->writer = &writer;
	status = walk_members(walk);
	if (status == OSD_OK)
		osd_attributes_groups_end(ctx->request, &writer);
	return status;
}

static enum osd_status set_members(struct osd_command_context *ctx)
{
	OSD_CLEANUP_FREE struct walk *walk = walk_create(ctx, 0);

	if (!walk)
		return OSD_E_NO_MEMORY;
	if (!ctx->attributes || !ctx->attributes->sets)
		return OSD_OK;
	walk->member = set_member;
	walk->tracked = true;
	return walk_members(walk);
}

enum osd_status osd_cmd_get_member_attributes(struct osd_command_context *ctx)
{
	enum osd_status status = check_members(ctx);

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

static enum osd_status remove_member(struct walk *walk, struct osd_txn *txn,
				     struct osd_object_id id)
{
	bool plain;
	enum osd_status status = is_plain_member(txn, id, &plain);

	return status == OSD_OK && plain ? osd_command_remove_object(walk->ctx, txn, id) : status;
}

static enum osd_status own_attributes_in(void *arg, struct osd_txn *txn)
{
	struct osd_request *request = arg;
	enum osd_status status = osd_validate_exists(request, txn);

	if (status == OSD_OK)
		status = osd_attributes_set(request, txn, request->object, false);
	if (status == OSD_OK)
		status = osd_attributes_get(request, txn, request->object);
	return status;
}

/* Attributes of the collection itself, before its members or it go. */
static enum osd_status own_attributes(struct osd_command_context *ctx)
{
	return osd_transact(ctx->objects, 0, OSD_COMMIT_PROCESS, own_attributes_in, ctx->request);
}

enum osd_status osd_cmd_remove_member_objects(struct osd_command_context *ctx)
{
	OSD_CLEANUP_FREE struct walk *walk = walk_create(ctx, 0);
	enum osd_status status;

	if (!walk)
		return OSD_E_NO_MEMORY;
	/* Nobody empties a partition so; REMOVE PARTITION does, and says what it is. */
	if (ctx->request->object.object_id == OSD_OBJECTS_COLLECTION)
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_OBJECT_ID);
	status = own_attributes(ctx);
	if (status != OSD_OK)
		return status;
	walk->member = remove_member;
	walk->tracked = true;
	return walk_members(walk);
}

/* ---- REMOVE COLLECTION ----------------------------------------------------------------------- */

static enum osd_status drop_member(struct walk *walk, struct osd_txn *txn, struct osd_object_id id)
{
	return osd_collection_drop(txn, walk->ctx->request->object, id.object_id);
}

static enum osd_status drop_members(struct osd_command_context *ctx)
{
	OSD_CLEANUP_FREE struct walk *walk = walk_create(ctx, 0);

	if (!walk)
		return OSD_E_NO_MEMORY;
	walk->member = drop_member;
	walk->tracked = true;
	return walk_members(walk);
}

static enum osd_status remove_collection(void *arg, struct osd_txn *txn)
{
	const struct osd_request *request = arg;

	return osd_collection_remove(txn, request->object, request->decoded.command_bits & FCR);
}

/* Set and get come first (osd2-wire 3.7); a large collection is emptied piece by piece, and what
 * joined meanwhile goes with the collection.  Well-known ones (osd2-wire 1.2) are the target's. */
enum osd_status osd_cmd_remove_collection(struct osd_command_context *ctx)
{
	enum osd_status status = ctx->request->object.object_id >= OSD_FIRST_ID
					 ? own_attributes(ctx)
					 : osd_command_fail(ctx->request, OSD_E_CDB_FIELD,
							    FIELD_OBJECT_ID);

	if (status == OSD_OK && ctx->request->decoded.command_bits & FCR)
		status = drop_members(ctx);
	if (status == OSD_OK)
		status = osd_transact(ctx->objects, 0, osd_command_commit(ctx->request),
				      remove_collection, ctx->request);
	if (status == OSD_OK && ctx->exec)
		osd_exec_collection_removed(ctx->exec, ctx->request->object);
	return status;
}
