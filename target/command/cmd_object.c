/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_object.c -- life of user objects: CREATE, CREATE AND WRITE, REMOVE; and the commands that
 * consist of attributes only (osd2-wire 3.2, 3.7). */
#include "base/util.h"
#include "command/attributes.h"
#include "command/commands.h"
#include "command/stack_write.h"
#include "command/phase.h"
#include "object/draft.h"
#include "object/txn_run.h"
#include "wire/sense.h"

enum { FIELD_OBJECT_ID = 24, FIELD_CREATE_COUNT = 32, FIELD_GET_PAGE = 52 };

/* The most bytes of attributes that one CREATE sets in its transaction. */
#define SET_MAX (UINT64_C(256) << 20)

/* CREATE of several objects: the target chooses the ids, and a page cannot describe several
 * objects. */
static enum osd_status check_count(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	const struct osd_cdb *cdb = &request->decoded;

	if (cdb->create_count > OSD_CREATE_MAX ||
	    (osd_cdb_sets(cdb) &&
	     (uint64_t)cdb->create_count * cdb->attributes.set_length > SET_MAX))
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
	const struct osd_stack_making making = {.partition_id = request->object.partition_id,
						.requested_id = request->decoded.object_id,
						.count = count};
	enum osd_status status = check_count(ctx);
	uint64_t first;

	if (status == OSD_OK)
		status = osd_stack_make(request, ctx->txn, &making, &first);
	if (status != OSD_OK)
		return status;
	request->object.object_id = first + count - 1;
	request->made_count = count;
	return OSD_OK;
}

/* ---- objects made with their data ------------------------------------------------------------ */

struct making {
	struct osd_command_context *ctx;
	struct osd_draft *draft;
	const struct osd_object *attributes_of; /* copied; NULL: none */
};

static enum osd_status put_draft(struct osd_txn *txn, void *arg)
{
	const struct making *making = arg;
	struct osd_request *request = making->ctx->request;
	const struct osd_stack_making object = {.partition_id = making->ctx->addressed.partition_id,
						.count = 1,
						.draft = making->draft};
	enum osd_status status;

	request->object = making->ctx->addressed;
	status = osd_stack_make(request, txn, &object, &request->object.object_id);
	if (status == OSD_OK && making->attributes_of)
		status = osd_copy_attributes(txn, making->attributes_of, request->object);
	if (status != OSD_OK)
		return status;
	request->made_count = 1;
	return osd_phase_set_then_get(request, txn);
}

enum osd_status osd_command_write_draft(struct osd_command_context *ctx, uint64_t place,
					uint64_t requested_id, const struct osd_change *change,
					struct osd_draft **draft)
{
	uint64_t length = 0;
	enum osd_status status =
		*draft ? OSD_OK : osd_draft_begin(ctx->objects, place, requested_id, draft);

	if (status == OSD_OK)
		status = osd_draft_write(*draft, change->pieces, change->piece_count, change->data,
					 &length);
	ctx->request->capacity_change = (int64_t)length;
	return status;
}

enum osd_status osd_command_put_draft(struct osd_command_context *ctx, struct osd_draft *draft,
				      const struct osd_object *attributes_of)
{
	struct making making = {ctx, draft, attributes_of};
	struct osd_request *request = ctx->request;
	unsigned flags = osd_phase_txn_flags(request) & ~(unsigned)OSD_TXN_READ_ONLY;
	enum osd_status status = osd_draft_sync(draft, ctx->data_flags);

	if (status == OSD_OK)
		status = osd_txn_run(ctx->objects, flags | osd_command_commit(request), put_draft,
				     &making);
	if (status == OSD_OK)
		return OSD_OK;
	request->completed &= ~(uint32_t)(OSD_FN_SET_ATTR | OSD_FN_GET_ATTR);
	request->made_count = 0;
	request->object = ctx->addressed;
	return status;
}

static enum osd_status create_and_write(struct osd_command_context *ctx, uint64_t place,
					const struct osd_change *change)
{
	OSD_CLEANUP(osd_draft_freep) struct osd_draft *draft = NULL;
	enum osd_status status =
		osd_command_write_draft(ctx, place, ctx->addressed.object_id, change, &draft);

	return status == OSD_OK ? osd_command_put_draft(ctx, draft, NULL) : status;
}

enum osd_status osd_cmd_create_and_write(struct osd_command_context *ctx)
{
	OSD_CLEANUP_FREE struct osd_piece *pieces = NULL;
	struct osd_change change = {0};
	uint64_t place;
	enum osd_status status = osd_command_load_change(ctx, &pieces, &change);

	if (status == OSD_OK)
		status = osd_stack_find_place(ctx, &place);
	if (status == OSD_OK)
		status = osd_stack_write_new(ctx, &change);
	if (status != OSD_OK)
		return status;
	do /* another command has just requested the id that was chosen */
		status = create_and_write(ctx, place, &change);
	while (status == OSD_E_EXISTS && ctx->addressed.object_id == 0);
	return status;
}

/* ---- REMOVE, and attributes alone ------------------------------------------------------------ */

enum osd_status osd_cmd_remove(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	enum osd_status status = osd_user_object_remove(ctx->txn, request->object);

	return osd_command_in_use(ctx, osd_stack_refuse_removal(request, status));
}

/* GET ATTRIBUTES and SET ATTRIBUTES: the dispatcher's attribute phases are the command. */
enum osd_status osd_cmd_attributes(struct osd_command_context *ctx)
{
	(void)ctx;
	return OSD_OK;
}
