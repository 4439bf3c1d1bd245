/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_exec.c -- EXEC: a script travels with the command. */
#include "command/commands.h"
#include "command/submission.h"

enum { FIELD_CODE_LENGTH = 32 };

enum osd_status osd_cmd_exec(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	struct osd_exec_params params;
	struct osd_exec_submission submission = {0};
	enum osd_status status;

	if (!ctx->exec)
		return OSD_E_ISOLATION;
	if (ctx->command_data_length > osd_exec_limits[OSD_LIMIT_CODE].maximum)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_CODE_LENGTH);
	status = osd_submission_params(ctx, &params);
	if (status != OSD_OK)
		return status;
	if (osd_exec_has(&params, OSD_EXEC_PARAM_FUNCTION) ||
	    (params.flags & OSD_EXEC_PREDECESSOR_ARGS && ctx->command_data_length == 0))
		return osd_command_fail(request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	osd_submission_fill(&submission, &params);
	if (ctx->command_data_length > 0) {
		submission.code = ctx->command_data;
		submission.code_length = ctx->command_data_length;
	} else if (!osd_exec_has(&params, OSD_EXEC_PARAM_PREDECESSOR)) {
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_CODE_LENGTH);
	}
	return ctx->data_flags & OSD_DATA_NOWAIT ? osd_submission_at_once(ctx, &submission)
						 : osd_submission_send(ctx, &submission);
}
