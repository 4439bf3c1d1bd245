/* SPDX-License-Identifier: GPL-2.0-or-later */
/* resolve.c -- see resolve.h. */
#include "command/resolve.h"

#include <stdlib.h>

#include "object/draft.h"

/* If the object does not exist, the type is any that the CDB can mean. */
static void missing_facts(struct osd_command_context *ctx)
{
	uint8_t types = ctx->def->object_types;

	if (ctx->request->object_type == OSD_PARTITION)
		types = OSD_PARTITION;
	else
		types &= OSD_USER_OBJECT | OSD_COLLECTION;
	ctx->facts = (struct osd_object_facts){
		.id = ctx->addressed,
		.type = (enum osd_object_type)types,
		.boot_epoch = osd_objects_boot_epoch(ctx->objects),
		.to_be_made = ctx->def->flags & OSD_CMD_REQUESTED_ID,
		.missing = true,
	};
}

/* User objects that are in memory; the root and partitions unless their tag is asked for. */
static enum osd_status facts_at_once(struct osd_command_context *ctx, bool with_tag)
{
	if (ctx->addressed.object_id == 0 && !with_tag &&
	    osd_objects_find(ctx->objects, ctx->addressed, false, &ctx->object, &ctx->facts) == OSD_OK)
		return OSD_OK;
	if (ctx->addressed.object_id == 0 || osd_resolve_object(ctx) != OSD_OK)
		return OSD_E_WOULD_BLOCK;
	osd_object_facts(ctx->object, &ctx->facts);
	return ctx->facts.tag == 0 && with_tag ? OSD_E_WOULD_BLOCK : OSD_OK;
}

enum osd_status osd_resolve_facts(struct osd_command_context *ctx, bool with_tag)
{
	enum osd_status status;

	if (ctx->data_flags & OSD_DATA_NOWAIT)
		return facts_at_once(ctx, with_tag);
	if (ctx->def->flags & OSD_CMD_REQUESTED_ID)
		status = osd_objects_facts_made(ctx->objects, ctx->request->object_type,
						ctx->addressed, &ctx->facts);
	else
		status = osd_objects_find(ctx->objects, ctx->addressed, with_tag, &ctx->object,
					  &ctx->facts);
	ctx->absent = status == OSD_OK ? OSD_E_NO_OBJECT : status;
	if (!osd_status_is_gone(status))
		return status;
	missing_facts(ctx);
	return OSD_OK;
}

enum osd_status osd_resolve_object(struct osd_command_context *ctx)
{
	if (ctx->object)
		return OSD_OK;
	if (ctx->absent != OSD_OK)
		return ctx->absent;
	return ctx->data_flags & OSD_DATA_NOWAIT
		       ? osd_object_get_cached(ctx->objects, ctx->addressed, &ctx->object)
		       : osd_object_get(ctx->objects, ctx->addressed, &ctx->object);
}

void osd_context_release(struct osd_command_context *ctx)
{
	free(ctx->copy);
	if (ctx->object)
		osd_object_put(ctx->object);
	if (ctx->draft)
		osd_draft_free(ctx->draft);
}
