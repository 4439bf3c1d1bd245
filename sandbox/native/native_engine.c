/* SPDX-License-Identifier: GPL-2.0-or-later */
/* native_engine.c -- the engine `native` (engine.h): functions as shared libraries of this machine (docs/native.md).
 *
 * A process runs one call.  It loads the library, gives up the permission to make memory executable, and only then
 * runs code of it.  The target sends code that a listed signer has signed, and nothing else; the sandbox does not
 * rely on that. */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "engine.h"
#include "job_calls.h"
#include "library.h"
#include "long_read.h"
#include "native_calls.h"
#include "seccomp_rules.h"
#include "wire/exec_param.h"

#define PREFIX	   "osd_function_" /* of an entry point's symbol (OSD_FUNCTION in osd.h) */
#define START_ROOM (1u << 20)	   /* bytes of the result of Runde's form */

typedef int entry_function(void);
typedef int start_function(void *in, size_t in_length, void *out, size_t room, size_t *out_length);

/* The entry point: one of the two is set. */
struct entry {
	entry_function *plain;
	start_function *start; /* Runde's form */
};

static struct osd_library library;

/* ---- a call ---------------------------------------------------------------------------------- */

/* False: the result says why. */
static bool load(const struct osd_engine_job *job, struct osd_engine_result *result)
{
	char why[OSD_IMAGE_WHY];

	if (!job->run.native || job->run.code_form || job->run.method_bytes == 0)
		return osd_job_end_fail(
			result, OSD_FINISH_BAD_CODE, "code",
			"the engine native runs functions that are signed for it, not packed");
	return osd_library_load((const uint8_t *)job->code, job->run.code_bytes, osd_native_import,
				&library, why) ||
	       osd_job_end_fail(result,
				library.image.no_memory ? OSD_FINISH_MEMORY : OSD_FINISH_BAD_CODE,
				"load", why);
}

/* The symbol of OSD_FUNCTION(name); if it is missing, `start` for the entry point main, and the symbol `name` for
 * another one, both of Runde's form. */
static bool find_entry(const char *name, struct entry *ret_entry)
{
	char symbol[sizeof(PREFIX) + OSD_EXEC_WORD_MAX];
	void *found;

	*ret_entry = (struct entry){0};
	snprintf(symbol, sizeof(symbol), PREFIX "%s", name);
	found = osd_library_function(&library, symbol);
	if (found) {
		memcpy(&ret_entry->plain, &found, sizeof(found));
		return true;
	}
	found = osd_library_function(&library, strcmp(name, "main") == 0 ? "start" : name);
	memcpy(&ret_entry->start, &found, sizeof(found));
	return found != NULL;
}

static void run_start(start_function *start, const char *name, const struct osd_engine_job *job,
		      struct osd_engine_result *result)
{
	size_t in_length = job->run.args_bytes, out_length = 0;
	void *in = malloc(in_length + 1), *out = calloc(1, START_ROOM);
	char why[80];
	int code;

	if (!in || !out) {
		osd_job_end_fail(result, OSD_FINISH_MEMORY, name,
				 "no memory for arguments and result");
		return;
	}
	memcpy(in, job->args, in_length);
	code = start(in, in_length, out, START_ROOM, &out_length);
	if (out_length > START_ROOM) {
		snprintf(why, sizeof(why), "it returned %zu bytes, and the room is %u", out_length,
			 START_ROOM);
		osd_job_end_fail(result, OSD_FINISH_EXCEPTION, name, why);
		return;
	}
	if (code == 0 && out_length > 0 && osd_job_result(0, out, out_length) != 0)
		code = 1;
	osd_job_end_well(result, name, code);
}

static void run(const char *name, const struct osd_engine_job *job, struct osd_engine_result *result)
{
	char why[OSD_IMAGE_WHY];
	struct entry entry;

	if (!osd_library_start(&library, why))
		osd_job_end_fail(result, OSD_FINISH_BAD_CODE, "load", why);
	else if (!find_entry(name, &entry))
		osd_job_end_fail(result, OSD_FINISH_BAD_CODE, name,
				 "the library exports neither " PREFIX
				 "NAME nor the function itself (start for main)");
	else if (entry.plain)
		osd_job_end_well(result, name, entry.plain());
	else
		run_start(entry.start, name, job, result);
}

static void call(const struct osd_engine_job *job, struct osd_engine_result *ret_result)
{
	char name[OSD_EXEC_WORD_MAX + 1];
	struct osd_step step;
	jmp_buf leave;

	osd_job_calls_begin(job);
	if (!load(job, ret_result))
		return;
	if (osd_seccomp_narrow(&step) < 0) {
		osd_job_end_fail(ret_result, OSD_FINISH_EXCEPTION, step.what, strerror(errno));
		return;
	}
	snprintf(name, sizeof(name), "%.*s", (int)job->run.method_bytes, job->method);
	if (setjmp(leave)) {
		osd_job_end_fail(ret_result,
				 osd_job_calls_ended() ? OSD_FINISH_ENDED : OSD_FINISH_EXCEPTION,
				 name, osd_native_why());
		return;
	}
	osd_native_calls_begin(&leave);
	run(name, job, ret_result);
	fflush(NULL);
	osd_long_read_drop();
	osd_job_calls_give_result(ret_result);
}

/* ---- the zygote ------------------------------------------------------------------------------ */

static bool prepare(const struct osd_engine_setup *setup, uint64_t *ret_bytes, char *text, size_t size)
{
	(void)setup;
	*ret_bytes = 0;
	return osd_native_calls_prepare(text, size);
}

const struct osd_engine osd_engine_native = {
	.name = "native",
	.executable_memory = true,
	.narrows_filter = true,
	.prepare = prepare,
	.call = call,
	.interrupt = osd_job_calls_end,
};
