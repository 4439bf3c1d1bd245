/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_data.c -- commands on the data of user objects: READ, WRITE, APPEND, CLEAR, PUNCH and the
 * FLUSH family (osd2-wire 3.3, 3.4, 3.6). */
#include <string.h>

#include "base/util.h"
#include "command/commands.h"
#include "command/validate.h"

/* ---- READ ------------------------------------------------------------------------------------ */

/* Reads length bytes at offset to Data-In byte at, as far as Data-In reaches.  *ret_available:
 * how many of them the object has, whether they fitted or not. */
static enum osd_status read_piece(struct osd_command_context *ctx, struct osd_object *object,
				  uint64_t offset, uint64_t length, uint64_t at,
				  uint64_t *ret_available)
{
	struct osd_request *request = ctx->request;
	size_t room = at < request->data_in_capacity ? request->data_in_capacity - (size_t)at : 0;
	size_t wanted = (size_t)OSD_MIN(length, (uint64_t)room), done = 0;
	uint8_t *buffer = wanted ? request->data_in + at : NULL;
	uint64_t end = 0;
	enum osd_status status;

	status = osd_object_read(object, offset, buffer, wanted, ctx->data_flags, &done);
	if (status != OSD_OK)
		return status;
	*ret_available = done;
	if (done < wanted || wanted == length)
		return OSD_OK;
	if (ctx->data_flags & OSD_DATA_NOWAIT)
		return OSD_E_RETRY; /* Data-In is shorter than LENGTH: not worth a fast path */
	status = osd_object_length(object, &end);
	if (status == OSD_OK)
		*ret_available = end > offset ? OSD_MIN(length, end - offset) : 0;
	return status;
}

static enum osd_status report_short(struct osd_request *request, uint64_t available)
{
	if (available == request->decoded.length)
		return OSD_OK;
	request->fault.has_command_information = true;
	request->fault.command_information = available;
	return OSD_E_SHORT_READ;
}

/* Every piece has its full slot in Data-In, zero-filled where the object ends. */
static enum osd_status read_scattered(struct osd_command_context *ctx, struct osd_object *object,
				      const struct osd_descriptor *descriptor)
{
	struct osd_request *request = ctx->request;
	uint64_t offset, length, at = 0, total = 0;
	struct osd_sg_list list;
	enum osd_status status;

	status = osd_sg_list_open(descriptor, request->decoded.starting_byte_address,
				  request->decoded.length, &list);
	if (status != OSD_OK)
		return osd_command_fail(request, status, OSD_CONTINUATION_FIELD);
	while (osd_sg_list_next(&list, &offset, &length)) {
		uint64_t available;

		status = read_piece(ctx, object, offset, length, at, &available);
		if (status != OSD_OK)
			return status;
		if (at + available < request->data_in_capacity)
			memset(request->data_in + at + available, 0,
			       (size_t)OSD_MIN(length - available,
					       request->data_in_capacity - at - available));
		total += available;
		at += length;
	}
	request->command_data_in = at;
	return report_short(request, total);
}

enum osd_status osd_cmd_read(struct osd_command_context *ctx)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_request *request = ctx->request;
	struct osd_descriptor descriptor;
	uint64_t available;
	enum osd_status status =
		ctx->data_flags & OSD_DATA_NOWAIT
			? osd_object_get_cached(ctx->objects, request->object, &object)
			: osd_object_get(ctx->objects, request->object, &object);

	if (status != OSD_OK)
		return status;
	if (osd_continuation_find(&ctx->continuation, OSD_DESC_SG_LIST, &descriptor))
		return read_scattered(ctx, object, &descriptor);
	status = read_piece(ctx, object, request->decoded.starting_byte_address,
			    request->decoded.length, 0, &available);
	if (status != OSD_OK)
		return status;
	request->command_data_in = available;
	return report_short(request, available);
}

/* ---- commands that change data --------------------------------------------------------------- */

static enum osd_status write_scattered(struct osd_command_context *ctx, struct osd_object *object,
				       const struct osd_descriptor *descriptor)
{
	const uint8_t *data = ctx->command_data;
	uint64_t offset, length;
	struct osd_sg_list list;
	enum osd_status status;

	status = osd_sg_list_open(descriptor, ctx->request->decoded.starting_byte_address,
				  ctx->command_data_length, &list);
	if (status != OSD_OK)
		return osd_command_fail(ctx->request, status, OSD_CONTINUATION_FIELD);
	while (osd_sg_list_next(&list, &offset, &length)) {
		if (offset > INT64_MAX || length > INT64_MAX - offset)
			return osd_command_fail(ctx->request, OSD_E_CDB_FIELD,
						OSD_CONTINUATION_FIELD);
		status = osd_object_write(object, offset, data, (size_t)length, ctx->data_flags);
		if (status != OSD_OK)
			return status;
		data += length;
	}
	return OSD_OK;
}

enum osd_status osd_command_write_data(struct osd_command_context *ctx, struct osd_object *object)
{
	struct osd_descriptor descriptor;

	if (osd_continuation_find(&ctx->continuation, OSD_DESC_SG_LIST, &descriptor))
		return write_scattered(ctx, object, &descriptor);
	return osd_object_write(object, ctx->request->decoded.starting_byte_address,
				ctx->command_data, ctx->command_data_length, ctx->data_flags);
}

enum osd_status osd_cmd_write(struct osd_command_context *ctx)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	enum osd_status status = osd_object_get(ctx->objects, ctx->request->object, &object);

	return status == OSD_OK ? osd_command_write_data(ctx, object) : status;
}

enum osd_status osd_cmd_append(struct osd_command_context *ctx)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	enum osd_status status = osd_object_get(ctx->objects, ctx->request->object, &object);

	if (status != OSD_OK)
		return status;
	return osd_object_append(object, ctx->command_data, ctx->command_data_length,
				 ctx->data_flags, &ctx->request->append_start);
}

enum osd_status osd_cmd_clear(struct osd_command_context *ctx)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	const struct osd_cdb *cdb = &ctx->request->decoded;
	enum osd_status status = osd_object_get(ctx->objects, ctx->request->object, &object);

	if (status != OSD_OK)
		return status;
	return osd_object_clear(object, cdb->starting_byte_address, cdb->length, ctx->data_flags);
}

/* A range that runs past the end is cut there, so one that runs past 2^64 is too. */
enum osd_status osd_cmd_punch(struct osd_command_context *ctx)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	const struct osd_cdb *cdb = &ctx->request->decoded;
	uint64_t length = OSD_MIN(cdb->length, UINT64_MAX - cdb->starting_byte_address);
	enum osd_status status = osd_object_get(ctx->objects, ctx->request->object, &object);

	if (status != OSD_OK)
		return status;
	return osd_object_punch(object, cdb->starting_byte_address, length, ctx->data_flags);
}

/* ---- FLUSH family: everything in what is named, whatever the scope says (osd2-wire 9-2) ------ */

enum osd_status osd_cmd_flush(struct osd_command_context *ctx)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	enum osd_status status = osd_object_get(ctx->objects, ctx->request->object, &object);

	return status == OSD_OK ? osd_object_flush(object) : status;
}

/* The partition's flush does the members' and their attributes in one pass over the disk. */
enum osd_status osd_cmd_flush_collection(struct osd_command_context *ctx)
{
	struct osd_object_id partition = {ctx->request->object.partition_id, 0};
	enum osd_status status = osd_validate_alone(ctx);

	return status == OSD_OK ? osd_objects_flush(ctx->objects, partition) : status;
}

enum osd_status osd_cmd_flush_partition(struct osd_command_context *ctx)
{
	enum osd_status status = osd_validate_alone(ctx);

	return status == OSD_OK ? osd_objects_flush(ctx->objects, ctx->request->object) : status;
}

enum osd_status osd_cmd_flush_osd(struct osd_command_context *ctx)
{
	return osd_objects_flush(ctx->objects, (struct osd_object_id){0, 0});
}
