/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_copy.c -- COPY USER OBJECTS (osd2-wire 3.13): a new user object with the data, and perhaps the
 * attributes, of another one. */
#include "base/util.h"
#include "command/authorise.h"
#include "command/commands.h"
#include "command/copies.h"
#include "command/stack_copy.h"
#include "command/stack_write.h"
#include "command/task_management.h"
#include "object/draft.h"
#include "wire/continuation.h"

enum { FIELD_METHOD = 14 };

static enum osd_status choose_method(struct osd_command_context *ctx, enum osd_copy_method *ret_how)
{
	uint8_t method = ctx->request->decoded.duplication_method;

	*ret_how = OSD_COPY_ANY;
	if (method == OSD_DUPLICATION_BYTE_BY_BYTE)
		*ret_how = OSD_COPY_BYTES;
	if (method == OSD_DUPLICATION_SPACE_EFFICIENT)
		*ret_how = OSD_COPY_SHARE;
	if (osd_duplication_supported(method) &&
	    (*ret_how != OSD_COPY_SHARE || osd_objects_can_share_blocks(ctx->objects)))
		return OSD_OK;
	return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_METHOD);
}

/* Of the source: its ids are in the continuation segment. */
static enum osd_status copy_failed(struct osd_command_context *ctx, enum osd_copy_method method,
				   enum osd_status status)
{
	if (osd_status_is_gone(status))
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	if (status == OSD_E_UNSUPPORTED &&
	    method == OSD_COPY_SHARE) /* these two objects' files are not alike */
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_METHOD);
	return status;
}

static enum osd_status copy(struct osd_command_context *ctx, struct osd_object *from,
			    bool attributes, enum osd_copy_method method, uint64_t place)
{
	OSD_CLEANUP(osd_draft_freep) struct osd_draft *draft = NULL;
	uint64_t length = 0;
	enum osd_status status =
		osd_draft_begin(ctx->objects, place, ctx->addressed.object_id, &draft);

	if (status != OSD_OK)
		return status;
	status = osd_draft_copy(draft, from, method, osd_command_stops, ctx, &length);
	if (status != OSD_OK)
		return copy_failed(ctx, method, status);
	ctx->request->capacity_change = (int64_t)length;
	/* Attributes are copied as of the same moment; without them writers need not wait longer. */
	if (!attributes)
		osd_draft_let_go(draft);
	return osd_command_put_draft(ctx, draft, attributes ? from : NULL);
}

/* The data that readers see of the source have no blocks that can be shared. */
static enum osd_status copy_through(struct osd_command_context *ctx, struct osd_object *from,
				    bool attributes, enum osd_copy_method method, uint64_t place)
{
	if (method == OSD_COPY_SHARE)
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_METHOD);
	return copy_failed(ctx, method, osd_stack_copy(ctx, from, place, attributes));
}

/* Attributes that come along are read there and set here, whichever there are. */
static enum osd_status open_source(struct osd_command_context *ctx, struct osd_object_id from,
				   bool attributes, struct osd_object **ret_source)
{
	enum osd_status status = attributes ? osd_authorise_touched(ctx->objects, ctx->request,
								    OSD_PAGE_ALL, OSD_NUMBER_ALL)
					    : OSD_OK;

	if (status != OSD_OK)
		return status;
	return osd_authorise_other(ctx, from, OSD_USER_OBJECT,
				   attributes ? OSD_PERM_READ | OSD_PERM_GET_ATTR : OSD_PERM_READ,
				   attributes ? OSD_USES_ALL : OSD_USES_NONE, ret_source);
}

/* An absent partition for the copy counts first. */
static enum osd_status source_absent(struct osd_command_context *ctx, uint64_t place,
				     enum osd_status absent)
{
	OSD_CLEANUP(osd_draft_freep) struct osd_draft *draft = NULL;
	enum osd_status status =
		osd_draft_begin(ctx->objects, place, ctx->addressed.object_id, &draft);

	return status == OSD_OK ? copy_failed(ctx, OSD_COPY_ANY, absent) : status;
}

enum osd_status osd_cmd_copy_user_objects(struct osd_command_context *ctx)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_copy_source source;
	struct osd_object_id from;
	struct osd_copying copying;
	enum osd_copy_method method;
	uint64_t place = 0;
	bool through;
	enum osd_status status = choose_method(ctx, &method);

	if (status != OSD_OK)
		return status;
	status = osd_copies_source(ctx, &source);
	if (status != OSD_OK)
		return osd_command_fail(ctx->request, status, OSD_CONTINUATION_FIELD);
	from = (struct osd_object_id){source.partition_id, source.object_id};
	status = osd_stack_find_place(ctx, &place);
	if (status == OSD_OK)
		status = open_source(ctx, from, source.attributes, &object);
	if (osd_status_is_gone(status))
		return source_absent(ctx, place, status);
	if (status != OSD_OK)
		return status;
	status = osd_stack_copy_concerns(ctx, object, place, &through);
	if (status == OSD_OK && through)
		return copy_through(ctx, object, source.attributes, method, place);
	if (status != OSD_OK)
		return status;
	osd_copies_begin(ctx->copies, &copying, from, false);
	do /* somebody asked for the very id that was picked */
		status = copy(ctx, object, source.attributes, method, place);
	while (status == OSD_E_EXISTS && ctx->addressed.object_id == 0);
	osd_copies_end(ctx->copies, &copying);
	return status;
}
