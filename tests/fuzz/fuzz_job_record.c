/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_job_record.c -- invariant: the bytes of a job record are refused, or decode to a record whose own
 * bytes decode and encode to the very same bytes. */
#include "base/log.h"
#include "exec/record/record.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[OSD_JOB_RECORD_MAX], again[OSD_JOB_RECORD_MAX];
	struct osd_job_record record;
	size_t length;

	osd_log_init(-1, "fuzz", OSD_LOG_ERROR);
	if (osd_job_record_decode(data, size, &record) != OSD_OK)
		return 0;
	HOLDS(record.key_length <= sizeof(record.key));
	HOLDS(strlen(record.principal) < sizeof(record.principal));
	length = osd_job_record_encode(&record, bytes);
	HOLDS(length <= OSD_JOB_RECORD_MAX / 2);
	HOLDS(osd_job_record_decode(bytes, length, &record) == OSD_OK);
	HOLDS(osd_job_record_encode(&record, again) == length);
	HOLDS(!memcmp(bytes, again, length));
	return 0;
}
