/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_partition.c -- FORMAT OSD, CREATE PARTITION, REMOVE PARTITION (osd2-wire 3.2). */
#include "command/commands.h"

enum { FIELD_BYTE11 = 11 };

#define SCOPE_MASK     0x7
#define SCOPE_CONTENTS 1

/* The dispatcher lets nothing else run meanwhile and has ended all jobs. */
enum osd_status osd_cmd_format_osd(struct osd_command_context *ctx)
{
	return osd_objects_format(ctx->objects, ctx->request->decoded.formatted_capacity);
}

enum osd_status osd_cmd_create_partition(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint64_t id;
	enum osd_status status =
		osd_partition_create(ctx->txn, request->decoded.partition_id, &id);

	if (status != OSD_OK)
		return status;
	request->object = (struct osd_object_id){id, 0};
	request->made_count = 1;
	return OSD_OK;
}

enum osd_status osd_cmd_remove_partition(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint8_t scope = request->decoded.command_bits & SCOPE_MASK;

	if (scope > SCOPE_CONTENTS)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	return osd_partition_remove(ctx->txn, request->object.partition_id,
				    scope == SCOPE_CONTENTS);
}
