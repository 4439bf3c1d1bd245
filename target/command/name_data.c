/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_data.c -- the data parts of commands on names: what PUT stores, and what LOOKUP returns (naming.h).
 *
 * PUT writes its data to a draft before the transaction of the command: files cannot be made inside it.  The
 * transaction makes the draft an object and gives it the name.  A draft that does not become one is removed. */

#include "base/crc32c.h"
#include "base/util.h"
#include "command/attributes.h"
#include "command/commands.h"
#include "command/naming.h"
#include "command/stack_write.h"
#include "object/draft.h"
#include "object/stack.h"

#define INLINE_DATA_MAX (64u << 10)

enum { FIELD_PARTITION = 16, FIELD_ALLOCATION = 40 };
enum { PARAM_VERB = 0, PARAM_CHECKSUM = 16 };

/* ---- PUT ------------------------------------------------------------------------------------- */

static enum osd_status write_draft(struct osd_command_context *ctx, uint64_t place,
				   const struct osd_change *change)
{
	enum osd_status status = osd_command_write_draft(ctx, place, 0, change, &ctx->draft);

	return status == OSD_OK ? osd_draft_sync(ctx->draft, ctx->data_flags) : status;
}

/* The stages of the partition get the data before they are stored, as those of CREATE AND WRITE. */
static enum osd_status store(struct osd_command_context *ctx, const struct osd_name_params *params)
{
	const struct osd_piece piece = {0, params->most};
	struct osd_change change = {.kind = OSD_CHANGE_WRITE,
				    .pieces = &piece,
				    .piece_count = 1,
				    .data = ctx->command_data + params->data_at};
	uint64_t place;
	enum osd_status status;

	if (ctx->addressed.partition_id == 0)
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_PARTITION);
	if (params->flags & OSD_NAME_CHECKSUM &&
	    osd_crc32c(0, change.data, params->most) != params->checksum)
		return osd_naming_fail_in_data(ctx->request, OSD_E_PARAM_FIELD, PARAM_CHECKSUM);
	status = osd_stack_find_place(ctx, &place);
	if (status == OSD_OK && params->most)
		status = osd_stack_write_new(ctx, &change);
	return status == OSD_OK ? write_draft(ctx, place, &change) : status;
}

enum osd_status osd_cmd_change_names_first(struct osd_command_context *ctx)
{
	OSD_CLEANUP_FREE uint8_t *copy = NULL;
	struct osd_name_params params;
	enum osd_status status;

	if (ctx->command_data_length == 0 || ctx->command_data[PARAM_VERB] != OSD_NAME_PUT)
		return OSD_OK;
	osd_draft_free(OSD_STEAL(ctx->draft));
	status = osd_naming_load(ctx, &copy, &params);
	return status == OSD_OK && params.verb == OSD_NAME_PUT ? store(ctx, &params) : status;
}

enum osd_status osd_naming_put(struct osd_naming *naming)
{
	struct osd_command_context *ctx = naming->ctx;
	const struct osd_stack_making making = {.partition_id = naming->from.partition_id,
						.count = 1,
						.draft = ctx->draft,
						.named = true};
	struct osd_named made = {{naming->from.partition_id, 0}, OSD_USER_OBJECT};
	enum osd_status status;

	if (!ctx->draft) /* Data-Out has changed since it was read first */
		return osd_naming_fail_in_data(ctx->request, OSD_E_PARAM_FIELD, PARAM_VERB);
	status = osd_stack_make(ctx->request, naming->txn, &making, &made.id.object_id);
	if (status == OSD_OK)
		status = osd_naming_give(naming, &naming->place, &made);
	ctx->request->capacity_change = (int64_t)osd_draft_length(ctx->draft);
	naming->outcome |= OSD_NAME_MADE;
	naming->result = made;
	return status;
}

/* ---- LOOKUP ---------------------------------------------------------------------------------- */

/* The object, which stays the same when the name is given to another one. */
static enum osd_status open_found(struct osd_naming *naming, struct osd_object **ret_object)
{
	struct osd_command_context *ctx = naming->ctx;
	bool nowait = ctx->data_flags & OSD_DATA_NOWAIT;

	osd_txn_release_reads(naming->txn); /* data under change may wait for a transaction */
	return nowait ? osd_object_get_cached(ctx->objects, naming->result.id, ret_object)
		      : osd_object_get(ctx->objects, naming->result.id, ret_object);
}

/* Whether they pass through functions.  The bit of the object may be left over. */
static enum osd_status is_transformed(struct osd_naming *naming, struct osd_object *object,
				      bool *ret_is)
{
	enum osd_object_type type;
	enum osd_status status = OSD_OK;

	*ret_is = osd_object_is_stacked(object);
	if (!*ret_is)
		return OSD_OK;
	if (naming->ctx->data_flags & OSD_DATA_NOWAIT)
		return OSD_E_WOULD_BLOCK;
	status = osd_object_type_of(naming->txn, naming->result.id, &type);
	return status == OSD_OK ? osd_stack_concerns(naming->txn, ret_is) : status;
}

/* Data that cannot be read here are left out: a READ reports why. */
static enum osd_status read_found(struct osd_naming *naming, struct osd_object *object, size_t most)
{
	struct osd_request *request = naming->ctx->request;
	uint8_t *header = request->data_in + OSD_NAME_ENTRY, version[OSD_VERSION_BYTES];
	struct osd_version_check check = {.wanted = NULL};
	size_t got = 0;
	enum osd_status status =
		osd_object_read_with(object, 0, header + OSD_NAME_DATA_HEADER, most,
				     naming->ctx->data_flags, &check, &got);

	if (status == OSD_E_WOULD_BLOCK || status == OSD_E_NO_OBJECT)
		return status;
	if (status != OSD_OK)
		return OSD_OK;
	osd_request_show_version(request, check.found);
	osd_version_encode(check.found, version);
	osd_name_data_encode(check.length, version, (uint32_t)got, header);
	naming->outcome |= OSD_NAME_DATA;
	naming->data_bytes = OSD_NAME_DATA_HEADER + got;
	return OSD_OK;
}

enum osd_status osd_naming_read(struct osd_naming *naming)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	const struct osd_command_context *ctx = naming->ctx;
	struct osd_request *request = ctx->request;
	const size_t before = OSD_NAME_ENTRY + OSD_NAME_DATA_HEADER;
	uint64_t room =
		OSD_MIN(request->decoded.result_allocation_length, request->data_in_capacity);
	size_t most = naming->params.most;
	bool transformed = true;
	enum osd_status status;

	/* Attributes that are set lock records: data must not be waited for then. */
	if (!most || naming->result.type != OSD_USER_OBJECT ||
	    (ctx->attributes && ctx->attributes->sets))
		return OSD_OK;
	if (room < before)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_ALLOCATION);
	most = (size_t)OSD_MIN(most, room - before);
	if (ctx->data_flags & OSD_DATA_NOWAIT && most > INLINE_DATA_MAX)
		return OSD_E_WOULD_BLOCK;
	status = open_found(naming, &object);
	if (status == OSD_OK)
		status = osd_naming_may_touch(naming, &naming->result, OSD_PERM_READ);
	if (status == OSD_OK)
		status = is_transformed(naming, object, &transformed);
	osd_txn_release_reads(naming->txn);
	if (status == OSD_OK && !transformed)
		status = read_found(naming, object, most);
	if (!osd_status_is_gone(status))
		return status;
	/* It was removed after the lookup: the command begins again. */
	return ctx->data_flags & OSD_DATA_NOWAIT ? OSD_E_WOULD_BLOCK : OSD_E_CONFLICT;
}
