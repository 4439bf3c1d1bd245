/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_list.c -- LIST and LIST COLLECTION, with and without attributes, with continuation
 * (osd2-wire 3.8). */

#include "base/util.h"
#include "command/attributes.h"
#include "command/authorise.h"
#include "command/commands.h"
#include "wire/list_data.h"

#define ENTRIES_MAX  65536u /* ids or id blocks in one command */
#define MEASURED_MAX 256u   /* further blocks measured for ADDITIONAL LENGTH */

enum { FIELD_BYTE11 = 11, FIELD_ALLOCATION = 32 };

/* The objects that one LIST returns, as given by its ids. */
struct listing {
	struct osd_list_request request;
	enum osd_object_type type; /* of the objects listed */
	enum osd_descriptor_format format, format_with_attributes;
};

static const struct listing partitions = {.request.kind = OSD_LIST_PARTITIONS,
					  .type = OSD_PARTITION,
					  .format = OSD_ODF_PARTITIONS,
					  .format_with_attributes = OSD_ODF_PARTITION_ATTRS};
static const struct listing user_objects = {.request.kind = OSD_LIST_USER_OBJECTS,
					    .type = OSD_USER_OBJECT,
					    .format = OSD_ODF_USER_OBJECTS,
					    .format_with_attributes = OSD_ODF_USER_OBJECT_ATTRS};
static const struct listing collections = {.request.kind = OSD_LIST_COLLECTIONS,
					   .type = OSD_COLLECTION,
					   .format = OSD_ODF_COLLECTIONS,
					   .format_with_attributes = OSD_ODF_COLLECTION_ATTRS};

static bool is_not_of(enum osd_object_type type, uint32_t page)
{
	return !osd_page_is_of(type, page);
}

static struct osd_object_id listed_object(const struct listing *listing, uint64_t id)
{
	if (listing->type == OSD_PARTITION)
		return (struct osd_object_id){id, 0};
	return (struct osd_object_id){listing->request.in.partition_id, id};
}

/* The state of the list as a number, so that a later call can find out whether it has changed.  It
 * counts all commits of the store, so it may report a change that did not happen, but never misses
 * one. */
static uint32_t list_identifier(struct osd_objects *objects)
{
	struct osd_objects_stats stats;
	uint32_t identifier;

	osd_objects_stats(objects, &stats);
	identifier = (uint32_t)(stats.commits + 1);
	return identifier ? identifier : 1;
}

/* ---- with attributes: id blocks -------------------------------------------------------------- */

struct blocks {
	struct osd_command_context *ctx;
	const struct listing *listing;
	struct osd_list_writer *writer;
	uint8_t *entries; /* OSD_ATTR_GROUP_MAX bytes */
};

/* Whether the object was removed meanwhile; one of another type, which has other pages, may have got the id. */
static bool is_gone(const struct blocks *blocks, struct osd_object_id listed, enum osd_status status)
{
	enum osd_object_type type;

	if (status != OSD_E_PARAM_FIELD)
		return osd_status_is_gone(status);
	status = osd_object_type_of(blocks->ctx->txn, listed, &type);
	return status == OSD_OK ? type != blocks->listing->type : osd_status_is_gone(status);
}

/* *ret_length: the block's bytes, whether it fitted or not. */
static enum osd_status put_block(const struct blocks *blocks, uint64_t id, size_t *ret_length)
{
	struct osd_object_id listed = listed_object(blocks->listing, id);
	const struct osd_page_filter of_listed = {osd_page_is_of, blocks->listing->type};
	struct osd_attr_writer writer;
	enum osd_status status;
	bool permitted;
	size_t length;

	osd_attr_writer_init(&writer, blocks->entries, OSD_ATTR_GROUP_MAX, OSD_LIST_BARE);
	status = osd_authorise_listed(blocks->ctx, listed, &permitted);
	if (status == OSD_OK && permitted) /* otherwise only its id may be returned */
		status = osd_attributes_collect(blocks->ctx->request, blocks->ctx->txn, listed,
						&of_listed, &writer);
	if (status != OSD_OK && is_gone(blocks, listed, status)) {
		blocks->ctx->request->fault = (struct osd_fault){0};
		return OSD_OK;
	}
	if (status == OSD_OK && writer.full)
		return OSD_E_GROUP_LENGTH;
	if (status != OSD_OK)
		return status;
	length = osd_attr_writer_finish(&writer);
	osd_list_writer_block(blocks->writer, id, (uint8_t)blocks->listing->type, blocks->entries,
			      length);
	*ret_length = OSD_LIST_BLOCK + length;
	return OSD_OK;
}

/* ---- both commands --------------------------------------------------------------------------- */

/* Id blocks.  Those that do not fit are measured, up to MEASURED_MAX of them.  *offered: how many were
 * placed or measured; *length: bytes of the last one. */
static enum osd_status put_blocks(struct osd_command_context *ctx, const struct listing *listing,
				  struct osd_list_writer *writer, const uint64_t *ids, size_t count,
				  size_t *offered, size_t *length)
{
	OSD_CLEANUP_FREE uint8_t *entries = malloc(OSD_ATTR_GROUP_MAX);
	struct blocks blocks = {ctx, listing, writer, entries};
	enum osd_status status = OSD_OK;
	size_t measured = 0;

	if (!entries)
		return OSD_E_NO_MEMORY;
	for (*offered = 0; status == OSD_OK && *offered < count; ++*offered) {
		if (writer->first_left_out && ++measured > MEASURED_MAX)
			break;
		if (osd_command_aborted(ctx->request))
			return OSD_E_TASK_ABORTED;
		status = put_block(&blocks, ids[*offered], length);
	}
	return status;
}

static enum osd_status list_ids(struct osd_command_context *ctx, const struct listing *listing,
				struct osd_list_writer *writer)
{
	bool with_attributes = ctx->request->decoded.list_attr;
	size_t block = with_attributes ? OSD_LIST_BLOCK : sizeof(uint64_t);
	size_t room = OSD_MIN(osd_list_writer_room(writer, block), (size_t)ENTRIES_MAX) +
		      (with_attributes ? MEASURED_MAX : 0);
	OSD_CLEANUP_FREE uint64_t *ids = malloc((room + 1) * sizeof(*ids));
	struct osd_list_result result;
	uint64_t left_out;
	size_t offered;
	enum osd_status status;

	if (!ids)
		return OSD_E_NO_MEMORY;
	status = osd_list(ctx->txn, &listing->request, ids, room, &result);
	if (status != OSD_OK)
		return status;
	if (with_attributes) {
		status = put_blocks(ctx, listing, writer, ids, result.count, &offered, &block);
	} else {
		for (offered = 0; offered < result.count; offered++)
			osd_list_writer_id(writer, ids[offered]);
	}
	/* Blocks that were not measured count as large as the last one. */
	if (status == OSD_OK && offered < result.total_count) {
		if (!osd_mul_u64(result.total_count - offered, block, &left_out))
			left_out = UINT64_MAX;
		osd_list_writer_left_out(writer, left_out,
					 offered < result.count ? ids[offered] : result.next_id);
	}
	return status;
}

/* Attributes of the container of the listed objects; those of the objects go into their blocks. */
static enum osd_status get_container_attributes(struct osd_command_context *ctx,
						const struct listing *listing)
{
	const struct osd_page_filter of_others = {is_not_of, listing->type};

	if (!ctx->attributes || !ctx->attributes->gets)
		return OSD_OK;
	if (!ctx->request->decoded.list_attr || ctx->attributes->format != OSD_CDBFMT_LIST)
		return osd_attributes_get(ctx->request, ctx->txn, ctx->request->object);
	return osd_attributes_get_filtered(ctx->request, ctx->txn, ctx->request->object,
					   &of_others);
}

static enum osd_status check(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	const struct osd_cdb *cdb = &request->decoded;

	if (cdb->command_bits != 0) /* sort order: ascending id only */
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	if (cdb->allocation_length && cdb->allocation_length < OSD_LIST_DATA_HEADER)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_ALLOCATION);
	if (cdb->list_attr && !(ctx->attributes && ctx->attributes->gets &&
				ctx->attributes->format == OSD_CDBFMT_LIST))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	return OSD_OK;
}

/* The list, as much of it as the allocation length and Data-In allow. */
static enum osd_status put_list(struct osd_command_context *ctx, const struct listing *listing)
{
	struct osd_request *request = ctx->request;
	const struct osd_cdb *cdb = &request->decoded;
	uint32_t identifier = list_identifier(ctx->objects);
	size_t capacity =
		(size_t)OSD_MIN(cdb->allocation_length, (uint64_t)request->data_in_capacity);
	bool header_only = capacity < OSD_LIST_DATA_HEADER;
	uint8_t header[OSD_LIST_DATA_HEADER];
	struct osd_list_writer writer;
	enum osd_status status;
	size_t placed;

	osd_list_writer_init(&writer, header_only ? header : request->data_in,
			     header_only ? sizeof(header) : capacity);
	status = list_ids(ctx, listing, &writer);
	if (status != OSD_OK)
		return status;
	placed = osd_list_writer_finish(
		&writer, cdb->list_attr ? listing->format_with_attributes : listing->format,
		identifier, cdb->list_identifier && cdb->list_identifier != identifier);
	if (header_only)
		osd_command_data_in(request, header, placed);
	else
		request->command_data_in = placed;
	return OSD_OK;
}

static enum osd_status run_list(struct osd_command_context *ctx, struct listing listing)
{
	struct osd_request *request = ctx->request;
	const struct osd_cdb *cdb = &request->decoded;
	enum osd_status status = check(ctx);

	if (status != OSD_OK)
		return status;
	listing.request.in = request->object;
	listing.request.initial_id = cdb->initial_object_id;
	if (cdb->allocation_length) {
		status = put_list(ctx, &listing);
		if (status != OSD_OK)
			return status;
	}
	status = osd_attributes_set(request, ctx->txn, request->object, false);
	return status == OSD_OK ? get_container_attributes(ctx, &listing) : status;
}

enum osd_status osd_cmd_list(struct osd_command_context *ctx)
{
	return run_list(ctx, ctx->request->object.partition_id ? user_objects : partitions);
}

enum osd_status osd_cmd_list_collection(struct osd_command_context *ctx)
{
	struct listing members = user_objects;

	members.request.kind = OSD_LIST_MEMBERS;
	return run_list(ctx, ctx->request->object.object_id ? members : collections);
}
