/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_check.c -- OBJECT STRUCTURE CHECK (osd2-wire 3.2): of a partition or of the whole store. */
#include "command/commands.h"
#include "command/task_management.h"
#include "command/validate.h"

/* Damage ends the command with a CHECK CONDITION, but it has done its work: attributes, among them
 * the Error Recovery page asked for, are served. */
enum osd_status osd_cmd_object_structure_check(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	struct osd_check_result result;
	enum osd_status status = osd_validate_alone(ctx);

	if (status == OSD_OK)
		status = osd_objects_check(ctx->objects, request->object.partition_id,
					   osd_command_stops, ctx, &result);
	if (status != OSD_OK || result.objects + result.containers == 0)
		return status;
	osd_fault_inform_command(&request->fault, result.objects + result.containers);
	return OSD_E_DAMAGED;
}
