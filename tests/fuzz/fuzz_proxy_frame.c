/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_proxy_frame.c -- invariant: what a sandbox puts into a frame or on the job socket is
 * refused, or decodes within its limits and encodes to the very same bytes. */
#include "fuzz.h"
#include "wire/proxy_frame.h"

static void fuzz_frames(const uint8_t *data)
{
	uint8_t again[OSD_FRAME_BYTES];
	struct osd_call call;
	struct osd_answer answer;

	if (osd_call_decode(data, &call)) {
		HOLDS(call.body_bytes <= OSD_BODY_MAX);
		osd_call_encode(&call, again);
		HOLDS(!memcmp(data, again, sizeof(again)));
	}
	if (osd_answer_decode(data, &answer)) {
		HOLDS(answer.body_bytes <= OSD_BODY_MAX && answer.fd_count <= OSD_ANSWER_FDS);
		osd_answer_encode(&answer, again);
		HOLDS(!memcmp(data, again, sizeof(again)));
	}
}

static void fuzz_run(const uint8_t *data)
{
	uint8_t again[OSD_JOB_RUN_BYTES];
	struct osd_job_run run;

	if (!osd_job_run_decode(data, &run))
		return;
	HOLDS(run.code_bytes >= 1 && run.code_bytes <= 16u << 20);
	HOLDS(run.args_bytes <= OSD_JOB_ARGS_MAX && run.name_bytes <= 128);
	HOLDS(run.in_memfd || run.in_shared ||
	      osd_job_run_code_sent(&run) + run.args_bytes <= OSD_JOB_INLINE_MAX);
	HOLDS(!run.in_shared || osd_job_run_texts(&run) <= OSD_SHM_TEXTS_BYTES);
	osd_job_run_encode(&run, again);
	HOLDS(!memcmp(data, again, sizeof(again)));
}

static void fuzz_message(const uint8_t *data, size_t size)
{
	uint8_t again[4096];
	enum osd_job_message type;
	const uint8_t *body;
	size_t length;

	if (!osd_job_message_decode(data, size, &type, &body, &length))
		return;
	touch(body, length);
	if (size <= sizeof(again)) {
		HOLDS(osd_job_message_encode(type, body, length, again, sizeof(again)) == size);
		HOLDS(!memcmp(data, again, size));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= OSD_FRAME_BYTES)
		fuzz_frames(data);
	if (size >= OSD_JOB_RUN_BYTES)
		fuzz_run(data);
	fuzz_message(data, size);
	return 0;
}
