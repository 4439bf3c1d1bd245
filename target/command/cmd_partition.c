/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_partition.c -- FORMAT OSD, CREATE PARTITION, REMOVE PARTITION (osd2-wire 3.2). */
#include "command/commands.h"
#include "command/phase.h"
#include "exec/exec.h"
#include "function/function.h"
#include "security/local_keys.h"

enum { FIELD_BYTE11 = 11, FIELD_CAPACITY = 32 };

#define SCOPE_MASK     0x7
#define SCOPE_CONTENTS 1

/* The checks that are possible while everything still exists. */
static enum osd_status check_format(struct osd_command_context *ctx, uint64_t capacity)
{
	enum osd_status status = osd_objects_check_format(ctx->objects, capacity);

	if (status == OSD_E_CDB_FIELD)
		return osd_command_fail(ctx->request, status, FIELD_CAPACITY);
	if (status == OSD_OK)
		status = osd_phase_rehearse(ctx->objects, ctx->request);
	osd_command_hold(ctx);
	if (status == OSD_OK && osd_command_aborted(ctx->request)) /* while others ended */
		status = OSD_E_TASK_ABORTED;
	return status;
}

/* The dispatcher runs no other command meanwhile, so no job is accepted after the check of all
 * jobs.  A format that is refused leaves them alone. */
enum osd_status osd_cmd_format_osd(struct osd_command_context *ctx)
{
	uint64_t capacity = ctx->request->decoded.formatted_capacity;
	enum osd_status status = check_format(ctx, capacity), forgotten;

	if (status != OSD_OK)
		return status;
	if (ctx->exec)
		osd_exec_end_jobs(ctx->exec);
	status = osd_objects_format(ctx->objects, capacity);
	if (status == OSD_OK && ctx->functions)
		osd_functions_forget(ctx->functions);
	if (!ctx->exec)
		return status;
	forgotten = osd_exec_formatted(ctx->exec, status == OSD_OK);
	return status == OSD_OK ? forgotten : status;
}

enum osd_status osd_cmd_create_partition(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint64_t id;
	enum osd_status status = osd_partition_create(ctx->txn, request->decoded.partition_id, &id);

	if (status == OSD_OK && ctx->keyring)
		status = osd_local_keys_add(ctx->keyring, ctx->txn, id);
	if (status != OSD_OK)
		return status;
	request->object = (struct osd_object_id){id, 0};
	request->made_count = 1;
	return OSD_OK;
}

/* Refused while the partition has unfinished jobs; the sense information is the id of the first. */
static enum osd_status check_jobs(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	struct osd_object_id job;
	enum osd_status status;

	if (!ctx->exec)
		return OSD_OK;
	status = osd_exec_check_partition(ctx->exec, request->object.partition_id, &job);
	if (status == OSD_E_JOB_IN_WAY)
		osd_fault_inform(&request->fault, job.object_id);
	return status;
}

enum osd_status osd_cmd_remove_partition(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint64_t id = request->object.partition_id;
	uint8_t scope = request->decoded.command_bits & SCOPE_MASK;
	enum osd_status status;

	if (scope > SCOPE_CONTENTS)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	status = check_jobs(ctx);
	if (status == OSD_OK)
		status = osd_partition_remove(ctx->txn, id, scope == SCOPE_CONTENTS);
	return osd_command_in_use(ctx, status);
}
