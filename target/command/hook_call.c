/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook_call.c -- see hook_call.h. */
#include "command/hook_call.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/compile.h"
#include "command/submission.h"
#include "security/security.h"
#include "wire/text.h"

#define ARGS_MAX (1u << 20) /* as those of any plain call */

/* Where the hook is attached: there, one administrator decides. */
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

static struct osd_exec_submission submission_of(const struct osd_hook_call *call,
						struct osd_function_code *code,
						struct osd_exec_text args)
{
	const struct osd_function *function = &call->hook->function;
	bool reads = call->reads && function->access != OSD_FUNCTION_NONE;
	struct osd_exec_submission submission = {
		.zone = call->zone,
		.zone_type = call->zone.object_id ? OSD_USER_OBJECT : OSD_PARTITION,
		.code = code->bytes,
		.code_length = code->length,
		.function_code = code,
		.has_args = true,
		.args_encoding = OSD_ARGS_BYTES,
		.args = args,
		.function.access = reads ? OSD_JOB_READS : OSD_JOB_NO_ACCESS,
		.plain = true,
		.stage = true,
		.limits.wall_usec = call->wall_usec,
		.sync_wait_usec = call->wait_usec,
		.done = call->done,
		.arg = call->arg,
		.aborted = call->aborted,
	};

	memcpy(submission.function.method, call->hook->method, strlen(call->hook->method) + 1);
	osd_submission_call(&submission, function);
	return submission;
}

enum osd_status osd_hook_call(const struct osd_hook_call *call, struct osd_exec_refusal *ret_refusal)
{
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *code = NULL;
	const struct osd_function *function = &call->hook->function;
	struct osd_hook_frame *frame = call->frame;
	OSD_CLEANUP_FREE uint8_t *args = NULL;
	char principal[OSD_PRINCIPAL_MAX];
	struct osd_exec_submission submission;
	struct osd_object_id job;
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
	submission = submission_of(call, code, (struct osd_exec_text){args, (uint32_t)length});
	submission.principal = principal;
	submission.payer = call->payer;
	submission.definer = call->hook->definer;
	osd_compile_for_calls(call->functions, call->exec, function, code);
	status = osd_exec_submit(call->exec, &submission, &job, ret_refusal);
	return status == OSD_E_CDB_FIELD ? OSD_E_POOL_ACCESS : status;
}

/* ---- text --------------------------------------------------------------------------------------- */

static unsigned digit_of(uint8_t c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* One character of a JSON string, as UTF-8.  Characters outside the basic plane are two escapes, which become question
 * marks.  Returns the bytes read. */
static size_t unescape(const uint8_t *at, size_t left, uint8_t out[3], size_t *ret_count)
{
	unsigned code = 0;

	*ret_count = 1;
	if (at[0] != '\\' || left < 2) {
		out[0] = at[0];
		return 1;
	}
	if (at[1] != 'u' || left < 6) {
		out[0] = at[1] == 'n' || at[1] == 't' || at[1] == 'r' ? ' ' : at[1];
		return 2;
	}
	for (size_t i = 2; i < 6; i++)
		code = code << 4 | (digit_of(at[i]) & 15);
	if (code < 0x80 || (code >= 0xd800 && code < 0xe000)) {
		out[0] = code < 0x80 ? (uint8_t)code : '?';
	} else if (code < 0x800) {
		out[0] = (uint8_t)(0xc0 | code >> 6);
		out[1] = (uint8_t)(0x80 | (code & 0x3f));
		*ret_count = 2;
	} else {
		out[0] = (uint8_t)(0xe0 | code >> 12);
		out[1] = (uint8_t)(0x80 | (code >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (code & 0x3f));
		*ret_count = 3;
	}
	return 6;
}

/* As much as fits, in whole characters. */
static size_t from_json(const uint8_t *bytes, size_t length, char text[OSD_HOOK_TEXT_MAX + 1])
{
	size_t used = 0, count;

	for (size_t at = 0; at < length;) {
		uint8_t out[3];

		at += unescape(bytes + at, length - at, out, &count);
		if (used + count > OSD_HOOK_TEXT_MAX)
			break;
		memcpy(text + used, out, count);
		used += count;
	}
	return used;
}

/* Without the part of a character at the end. */
static size_t cut_at_character(const uint8_t *bytes, size_t length)
{
	if (length <= OSD_HOOK_TEXT_MAX)
		return length;
	for (length = OSD_HOOK_TEXT_MAX; length && (bytes[length] & 0xc0) == 0x80;)
		length--;
	return length;
}

static size_t from_bytes(const uint8_t *bytes, size_t length, char text[OSD_HOOK_TEXT_MAX + 1])
{
	size_t from;

	while (length && (bytes[length - 1] == '\n' || bytes[length - 1] == '\r'))
		length--;
	for (from = length; from && bytes[from - 1] != '\n';)
		from--;
	length = cut_at_character(bytes + from, length - from);
	memcpy(text, bytes + from, length);
	return length;
}

size_t osd_hook_text(const struct osd_exec_outcome *outcome, char text[OSD_HOOK_TEXT_MAX + 1])
{
	const uint8_t *bytes = outcome->result;
	size_t length = outcome->result ? outcome->result_length : 0, used = 0;

	if (outcome->status == OSD_OK && outcome->form == OSD_RESULT_JSON && length >= 2 &&
	    bytes[0] == '"')
		used = from_json(bytes + 1, length - 2, text);
	else if (length)
		used = from_bytes(bytes, length, text);
	for (size_t i = 0; i < used; i++)
		if ((uint8_t)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = ' ';
	if (!osd_text_is_clean((const uint8_t *)text, used))
		for (size_t i = 0; i < used; i++)
			if ((uint8_t)text[i] >= 0x80)
				text[i] = '?';
	text[used] = '\0';
	return used;
}
