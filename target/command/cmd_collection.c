/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_collection.c -- life of collections: CREATE COLLECTION, CREATE USER TRACKING COLLECTION, REMOVE
 * COLLECTION (osd2-wire 3.2).
 * Not here: their members (cmd_member.c), QUERY (cmd_query.c). */
#include "command/authorise.h"
#include "command/commands.h"
#include "command/phase.h"
#include "command/precondition.h"
#include "command/tracked.h"
#include "command/validate.h"
#include "exec/exec.h"
#include "object/names.h"

enum { FIELD_OBJECT_ID = 24, FIELD_SOURCE = 40 };

static enum osd_status create(struct osd_command_context *ctx, struct osd_txn *txn,
			      enum osd_collection_type type)
{
	struct osd_request *request = ctx->request;
	uint64_t id;
	enum osd_status status = osd_collection_create(txn, request->decoded.partition_id,
						       request->decoded.object_id, type, &id);

	if (status != OSD_OK)
		return status;
	request->object.object_id = id;
	request->made_count = 1;
	return OSD_OK;
}

enum osd_status osd_cmd_create_collection(struct osd_command_context *ctx)
{
	return create(ctx, ctx->txn, OSD_COLLECTION_LINKED);
}

/* ---- REMOVE COLLECTION ----------------------------------------------------------------------- */

/* Set and get come first (osd2-wire 3.7). */
static enum osd_status begin_removal(struct osd_tracked *tracked, struct osd_txn *txn)
{
	enum osd_status status = osd_validate_exists(tracked->ctx->request, txn);

	if (status == OSD_OK)
		status = osd_precondition_members(tracked->ctx, txn);
	if (status == OSD_OK)
		status = osd_directory_check_empty(txn, tracked->tracker);
	if (status == OSD_E_NOT_DIRECTORY) /* a collection without names */
		status = OSD_OK;

	return status == OSD_OK ? osd_phase_set_then_get(tracked->ctx->request, txn) : status;
}

static enum osd_status drop_member(struct osd_tracked *tracked, struct osd_txn *txn,
				   struct osd_object_id id)
{
	return osd_collection_drop(txn, tracked->tracker, id.object_id);
}

/* A large collection is emptied in steps.  Members that joined meanwhile are removed, too. */
static enum osd_status remove_step(struct osd_tracked *tracked, struct osd_txn *txn)
{
	bool members = tracked->ctx->request->decoded.command_bits & OSD_FCR;
	enum osd_status status = OSD_OK;

	if (members)
		status = osd_tracked_walk(tracked, txn, tracked->tracker, drop_member);
	if (status != OSD_OK || (members && !tracked->next.done))
		return status;
	tracked->next.done = tracked->next.gone = true;
	return osd_collection_remove(txn, tracked->tracker, members);
}

static void removed(struct osd_tracked *tracked, enum osd_status status)
{
	if (status == OSD_OK && tracked->ctx->exec)
		osd_exec_collection_removed(tracked->ctx->exec, tracked->tracker);
}

const struct osd_tracked_def osd_tracked_remove_collection = {
	.begin = begin_removal, .step = remove_step, .ended = removed};

/* Well-known collections (osd2-wire 1.2) belong to the target and cannot be removed. */
enum osd_status osd_cmd_remove_collection(struct osd_command_context *ctx)
{
	if (ctx->request->object.object_id < OSD_FIRST_ID)
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_OBJECT_ID);
	if (!(ctx->request->decoded.command_bits & OSD_FCR)) /* nothing that would run in the
							      * background */
		ctx->request->decoded.immed_tr = false;
	return osd_tracked_run(ctx, &osd_tracked_remove_collection, ctx->request->object,
			       FIELD_OBJECT_ID);
}

/* ---- CREATE USER TRACKING COLLECTION --------------------------------------------------------- */

static struct osd_object_id source_of(const struct osd_tracked *tracked)
{
	const struct osd_cdb *cdb = &tracked->ctx->request->decoded;

	return (struct osd_object_id){cdb->partition_id, cdb->source_collection_id};
}

static enum osd_status check_source(struct osd_tracked *tracked, struct osd_txn *txn)
{
	struct osd_request *request = tracked->ctx->request;
	struct osd_object_id source = source_of(tracked);
	enum osd_object_type type;
	enum osd_status status = osd_txn_same(txn, source, tracked->other_created_ms);

	if (status == OSD_OK)
		status = osd_object_type_of(txn, source, &type);
	if (status == OSD_E_NO_OBJECT || (status == OSD_OK && type != OSD_COLLECTION))
		return osd_command_fail(request, OSD_E_NO_OBJECT, FIELD_SOURCE);
	if (status == OSD_OK)
		status = osd_tracked_note_source(tracked, txn, source);
	return status == OSD_OK ? osd_tracked_check_idle(request, txn, source, FIELD_SOURCE)
				: status;
}

/* A background command cannot return anything later. */
static enum osd_status begin_creation(struct osd_tracked *tracked, struct osd_txn *txn)
{
	struct osd_request *request = tracked->ctx->request;
	enum osd_status status = OSD_OK;

	request->made_count = 0;
	if (request->decoded.source_collection_id)
		status = check_source(tracked, txn);
	if (status == OSD_OK)
		status = create(tracked->ctx, txn, OSD_COLLECTION_TRACKING);
	if (status != OSD_OK)
		return status;
	tracked->tracker = request->object;
	status = osd_phase_set(request, txn);
	return status == OSD_OK && tracked->background ? osd_phase_get(request, txn) : status;
}

static enum osd_status copy_step(struct osd_tracked *tracked, struct osd_txn *txn)
{
	enum osd_status status;

	if (!tracked->ctx->request->decoded.source_collection_id) {
		tracked->next.done = true;
		return OSD_OK;
	}
	status = osd_tracked_same_source(tracked, txn, source_of(tracked));
	if (status == OSD_OK)
		status = osd_tracked_walk(tracked, txn, source_of(tracked), osd_tracked_add);
	if (status == OSD_E_NO_OBJECT) /* removed members count as missing: here the source was
				        * removed */
		return osd_command_fail(tracked->ctx->request, status, FIELD_SOURCE);
	return status;
}

static enum osd_status finish_creation(struct osd_tracked *tracked, struct osd_txn *txn)
{
	return osd_phase_get(tracked->ctx->request, txn);
}

const struct osd_tracked_def osd_tracked_create_collection = {.begin = begin_creation,
							      .step = copy_step,
							      .finish = finish_creation,
							      .leaves_nothing = true};

enum osd_status osd_cmd_create_user_tracking_collection(struct osd_command_context *ctx)
{
	struct osd_object_id none = {ctx->request->object.partition_id, 0};
	uint64_t source = ctx->request->decoded.source_collection_id;
	enum osd_status status = OSD_OK;

	/* Without members to copy there is no background work. */
	if (!source)
		ctx->request->decoded.immed_tr = false;
	else
		status = osd_authorise_other(
			ctx, (struct osd_object_id){ctx->request->object.partition_id, source},
			OSD_COLLECTION, OSD_PERM_READ, OSD_USES_NONE, NULL);
	if (status == OSD_E_NO_OBJECT)
		return osd_command_fail(ctx->request, status, FIELD_SOURCE);
	if (status != OSD_OK)
		return status;
	status = osd_tracked_run(ctx, &osd_tracked_create_collection, none, FIELD_OBJECT_ID);
	if (status != OSD_OK) {
		ctx->request->made_count = 0;
		ctx->request->object = ctx->addressed;
	}
	return status;
}
