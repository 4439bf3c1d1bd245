/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_call.c -- see hook_call.h. */
#include "command/hook_call.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/compile.h"
#include "command/submission.h"
#include "object/txn_run.h"
#include "security/security.h"

#define ARGS_MAX (1u << 20) /* as those of any plain call */

static enum osd_status search_in(struct osd_txn *txn, void *arg)
{
	struct osd_hook_search *search = arg;
	struct osd_object_facts facts = {.created_ms = 0};
	enum osd_status status = OSD_OK;

	free(search->hooks);
	search->hooks = NULL;
	search->count = 0;
	if (search->id.object_id)
		status = osd_txn_facts(txn, search->id, false, &facts);
	search->created_msec = facts.created_ms;
	return status == OSD_OK ? osd_hooks_find(search->functions, txn, search->id, search->events,
						 &search->hooks, &search->count)
				: status;
}

enum osd_status osd_hook_search(struct osd_objects *objects, struct osd_hook_search *search)
{
	return osd_txn_run(objects, OSD_TXN_READ_ONLY | OSD_TXN_NO_TIMESTAMPS, search_in, search);
}

/* The name has the place that the hook is attached to: one administrator decides there. */
static void name_principal(const struct osd_hook_call *call, char principal[OSD_PRINCIPAL_MAX])
{
	const struct osd_function *function = &call->hook->function;
	const enum osd_stack_level level = call->hook->level;

	snprintf(principal, OSD_PRINCIPAL_MAX,
		 "hook:%" PRIx64 "/%" PRIx64 ":%02x%02x%02x%02x:%" PRIx64 "/%" PRIx64,
		 function->id.partition_id, function->id.object_id, function->sha256[0],
		 function->sha256[1], function->sha256[2], function->sha256[3],
		 level == OSD_STACK_ROOT ? 0 : call->zone.partition_id,
		 level == OSD_STACK_OWN ? call->zone.object_id : 0);
}

enum osd_status osd_hook_call(const struct osd_hook_call *call)
{
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *code = NULL;
	const struct osd_function *function = &call->hook->function;
	struct osd_hook_frame *frame = call->frame;
	OSD_CLEANUP_FREE uint8_t *args = NULL;
	char principal[OSD_PRINCIPAL_MAX];
	struct osd_exec_submission submission;
	enum osd_status status = osd_function_permits(function, call->zone.partition_id)
					 ? osd_function_code(call->functions, function, &code)
					 : OSD_E_FUNCTION_CAPS;
	size_t length;

	if (status != OSD_OK)
		return status == OSD_E_NO_FUNCTION ? OSD_E_FUNCTION_INACTIVE : status;
	frame->parameters = call->hook->parameters;
	frame->parameters_length = call->hook->parameters_length;
	frame->page = call->hook->page;
	length = osd_hook_frame_length(frame);
	if (length > ARGS_MAX)
		return OSD_E_QUOTA;
	args = malloc(length);
	if (!args)
		return OSD_E_NO_MEMORY;
	osd_hook_frame_encode(frame, args);
	name_principal(call, principal);
	submission =
		osd_submission_own(function, code, call->hook->method, call->zone, call->wall_usec);
	submission.args = (struct osd_exec_text){args, (uint32_t)length};
	if (call->reads && function->access != OSD_FUNCTION_NONE)
		submission.function.access = OSD_JOB_READS;
	submission.sync_wait_usec = call->wait_usec;
	submission.done = call->done;
	submission.arg = call->arg;
	submission.aborted = call->aborted;
	submission.principal = principal;
	submission.payer = call->payer;
	submission.audience = call->payer ? call->payer : call->hook->definer;
	submission.definer = call->hook->definer;
	osd_compile_for_calls(call->functions, call->exec, function, code);
	return osd_submission_send_own(call->exec, &submission, call->fault);
}
