/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasm_end.c -- see wasm_end.h. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "job_calls.h"
#include "wasm_end.h"

#define REPORT_BYTES (16u << 10)
#define LINE_BYTES   400

#define WT osd_wasmtime

static char report[REPORT_BYTES], line[LINE_BYTES];

static bool is_about_memory(const char *text)
{
	return strstr(text, "os error 12") || strstr(text, "annot allocate memory");
}

/* Whether words stand there, or a number and words: "1: unknown import".  The lines of an array do not. */
static bool is_sentence(const char *row)
{
	row += strspn(row, " ");
	if (isdigit((unsigned char)*row)) {
		row += strspn(row, "0123456789");
		if (strncmp(row, ": ", 2) != 0)
			return false;
		row += 2;
	}
	return isalpha((unsigned char)*row);
}

/* The cause in a report of Wasmtime: the words after "wasm trap: ", otherwise the last line with words. */
static void find_cause(const char *text, char cause[LINE_BYTES])
{
	const char *begin = strstr(text, "wasm trap: ");
	size_t end = strlen(text);

	if (begin) {
		begin += strlen("wasm trap: ");
		end = strcspn(begin, "\n");
	} else {
		begin = text + end;
		do {
			if (begin > text)
				begin--;
			while (begin > text && begin[-1] != '\n')
				begin--;
		} while (begin > text && !is_sentence(begin));
		end = strcspn(begin, "\n");
		while (end > 0 && *begin == ' ')
			begin++, end--;
	}
	snprintf(cause, LINE_BYTES, "%.*s", (int)OSD_MIN(end, (size_t)LINE_BYTES - 1), begin);
}

void osd_wasm_end_fail(struct osd_engine_result *result, enum osd_finish_kind kind,
		       const char *what, wasmtime_error *error, wasm_trap *trap)
{
	wasm_bytes message = {0};
	char cause[LINE_BYTES];
	size_t length;

	if (error)
		WT.wasmtime_error_message(error, &message);
	else
		WT.wasm_trap_message(trap, &message);
	length = OSD_MIN(message.size, sizeof(report) - 128);
	snprintf(report, sizeof(report), "%s: %.*s\n", what, (int)length,
		 message.data ? message.data : "");
	if (osd_job_calls_ended())
		kind = OSD_FINISH_ENDED;
	else if (is_about_memory(report))
		kind = OSD_FINISH_MEMORY;
	find_cause(report, cause);
	if (strncmp(cause, what, strlen(what)) == 0)
		snprintf(line, sizeof(line), "%s", cause);
	else
		snprintf(line, sizeof(line), "%.100s: %.290s", what, cause);
	if (message.data)
		WT.wasm_byte_vec_delete(&message);
	if (error)
		WT.wasmtime_error_delete(error);
	if (trap)
		WT.wasm_trap_delete(trap);
	*result = (struct osd_engine_result){.exit_code = 1,
					     .kind = kind,
					     .report = report,
					     .line = line,
					     .report_bytes = strlen(report),
					     .line_bytes = strlen(line)};
}
