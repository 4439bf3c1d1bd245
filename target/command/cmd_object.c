/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_object.c -- life of user objects: CREATE, CREATE AND WRITE, REMOVE; and the commands that
 * consist of attributes only (osd2-wire 3.2, 3.7). */
#include <inttypes.h>

#include "base/log.h"
#include "base/util.h"
#include "command/attributes.h"
#include "command/commands.h"
#include "command/transact.h"
#include "exec/exec.h"

enum { FIELD_OBJECT_ID = 24, FIELD_CREATE_COUNT = 32, FIELD_GET_PAGE = 52 };

/* CREATE of many: the target chooses the ids, and one page cannot tell about many objects. */
static enum osd_status check_count(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	const struct osd_cdb *cdb = &request->decoded;

	if (cdb->create_count > OSD_CREATE_MAX)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_CREATE_COUNT);
	if (cdb->create_count == 1)
		return OSD_OK;
	if (cdb->object_id != 0)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_OBJECT_ID);
	if (ctx->attributes && ctx->attributes->get_page &&
	    ctx->attributes->get_page != OSD_PAGE_CURRENT_COMMAND)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_GET_PAGE);
	return OSD_OK;
}

enum osd_status osd_cmd_create(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint32_t count = request->decoded.create_count;
	enum osd_status status = check_count(ctx);
	uint64_t first;

	if (status != OSD_OK)
		return status;
	status = osd_user_object_create(ctx->txn, request->object.partition_id,
					request->decoded.object_id, count, &first);
	if (status != OSD_OK)
		return status;
	request->object.object_id = first + count - 1;
	request->made_count = count;
	return OSD_OK;
}

static enum osd_status create_one(void *arg, struct osd_txn *txn)
{
	struct osd_command_context *ctx = arg;

	return osd_user_object_create(txn, ctx->addressed.partition_id, ctx->addressed.object_id, 1,
				      &ctx->request->object.object_id);
}

static enum osd_status write_new(struct osd_command_context *ctx)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	enum osd_status status = osd_object_get(ctx->objects, ctx->request->object, &object);

	return status == OSD_OK ? osd_command_write_data(ctx, object) : status;
}

static enum osd_status remove_again(void *arg, struct osd_txn *txn)
{
	struct osd_command_context *ctx = arg;

	return osd_user_object_remove(txn, ctx->request->object);
}

void osd_command_undo_create(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	enum osd_status status =
		osd_transact(ctx->objects, 0, OSD_COMMIT_PROCESS, remove_again, ctx);

	if (status != OSD_OK)
		osd_error("cannot remove object 0x%" PRIx64 "/0x%" PRIx64
			  " of a failed CREATE AND WRITE: %s",
			  request->object.partition_id, request->object.object_id,
			  osd_status_info(status)->meaning);
	request->made_count = 0;
	request->object = ctx->addressed;
}

/* Data calls need an object that exists for everybody, so the object is committed first and
 * taken back when the data or, in the dispatcher, the attributes fail.  A crash in between
 * leaves an object that was never acknowledged. */
enum osd_status osd_cmd_create_and_write(struct osd_command_context *ctx)
{
	enum osd_status status = osd_transact(ctx->objects, 0, OSD_COMMIT_PROCESS, create_one, ctx);

	if (status != OSD_OK)
		return status;
	status = write_new(ctx);
	if (status != OSD_OK)
		osd_command_undo_create(ctx);
	else
		ctx->request->made_count = 1;
	return status;
}

enum osd_status osd_command_remove_object(struct osd_command_context *ctx, struct osd_txn *txn,
					  struct osd_object_id id)
{
	enum osd_status status = osd_user_object_remove(txn, id);

	if (status == OSD_OK && ctx->exec)
		status = osd_exec_object_removed(ctx->exec, txn, id);
	return status;
}

enum osd_status osd_cmd_remove(struct osd_command_context *ctx)
{
	return osd_command_remove_object(ctx, ctx->txn, ctx->request->object);
}

/* GET ATTRIBUTES and SET ATTRIBUTES: the dispatcher's attribute phases are the command. */
enum osd_status osd_cmd_attributes(struct osd_command_context *ctx)
{
	(void)ctx;
	return OSD_OK;
}
