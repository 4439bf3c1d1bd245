/* SPDX-License-Identifier: GPL-2.0-or-later */
/* payload.c -- attribute page 2000_0002h of a surrogate: result, stderr and traceback.
 * Those of a finished job are in the store; stderr of a running one comes from memory.
 * And page 2000_0007h: the list of objects that the job has used (exec/used/used.h), as stored at its end. */
#include <stdlib.h>

#include "base/util.h"
#include "exec/run/run.h"
#include "exec/tell/tell.h"
#include "wire/cursor.h"

/* Numbers of the page beside enum osd_job_payload's first three. */
#define STDERR_AT	OSD_PAYLOAD_PAGE_LAST /* be64 how much there was in all, then what is kept of it */
#define STDERR_AT_BYTES 8u
#define VALUE_MAX	(STDERR_AT_BYTES + OSD_JOB_PAYLOAD_MAX)

/* A reference to the run of an unfinished job that has one now. */
static struct osd_run *find_run(struct osd_exec *exec, struct osd_object_id id)
{
	struct osd_run *run = NULL;
	struct osd_job *job;

	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	if (job && job->run)
		run = osd_run_ref(job->run);
	osd_unlock(&exec->lock);
	return run;
}

/* Copies the stderr of a running script up to now.  False: no such job is running. */
static bool live_errors(struct osd_exec *exec, struct osd_object_id id, uint8_t *buffer,
			size_t *ret_length, uint64_t *ret_total)
{
	struct osd_run *run = find_run(exec, id);
	bool found;

	if (!run)
		return false;
	found = osd_output_errors(&run->output, buffer, ret_length, ret_total);
	osd_lock(&exec->lock);
	osd_run_unref(run);
	osd_unlock(&exec->lock);
	return found;
}

/* buffer: OSD_JOB_PAYLOAD_MAX. */
static enum osd_status get_errors(struct osd_exec *exec, struct osd_txn *txn,
				  struct osd_object_id id, uint8_t *buffer, size_t *ret_length,
				  uint64_t *ret_total)
{
	struct osd_job_record record;
	enum osd_status status;

	if (live_errors(exec, id, buffer, ret_length, ret_total))
		return OSD_OK;
	*ret_length = 0;
	*ret_total = 0;
	status = osd_job_record_get(txn, id, &record);
	/* A damaged one is no error: the same command may read those of other jobs. */
	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT || status == OSD_E_MEDIUM ? OSD_OK : status;
	*ret_total = record.stderr_length;
	return osd_job_payload_any(txn, id, OSD_PAYLOAD_STDERR, buffer, OSD_JOB_PAYLOAD_MAX,
				   ret_length);
}

enum osd_status osd_payload_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				size_t *ret_length)
{
	enum osd_status status;
	uint64_t total;

	(void)page;
	*ret_length = 0;
	if (number == OSD_PAYLOAD_RESULT || number == OSD_PAYLOAD_TRACEBACK)
		return osd_job_payload_any(txn, id, number, buffer, capacity, ret_length);
	if (number == OSD_PAYLOAD_STDERR && capacity >= OSD_JOB_PAYLOAD_MAX)
		return get_errors(context, txn, id, buffer, ret_length, &total);
	if (number != STDERR_AT || capacity < VALUE_MAX)
		return OSD_OK;
	status = get_errors(context, txn, id, buffer + STDERR_AT_BYTES, ret_length, &total);
	osd_put_be(buffer, total, STDERR_AT_BYTES);
	if (status == OSD_OK && total)
		*ret_length += STDERR_AT_BYTES;
	return status;
}

/* ---- objects used: number n is the n-th piece, from 1 ------------------------------------------ */

enum osd_status osd_used_get(void *context, struct osd_txn *txn, struct osd_object_id id,
			     uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
			     size_t *ret_length)
{
	enum osd_status status = OSD_E_NO_OBJECT;

	(void)context, (void)page;
	*ret_length = 0;
	if (number)
		status = osd_job_used_get(txn, id, number - 1, buffer, capacity, ret_length);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

enum osd_status osd_used_each(void *context, struct osd_txn *txn, struct osd_object_id id,
			      uint32_t page, osd_attr_fn *fn, void *arg)
{
	OSD_CLEANUP_FREE uint8_t *piece = malloc(OSD_JOB_USED_PIECE);
	enum osd_status status = piece ? OSD_OK : OSD_E_NO_MEMORY;
	size_t length = OSD_JOB_USED_PIECE;

	for (uint32_t number = 1; status == OSD_OK && length == OSD_JOB_USED_PIECE; number++) {
		status = osd_used_get(context, txn, id, page, number, piece, OSD_JOB_USED_PIECE,
				      &length);
		if (status == OSD_OK && length)
			status = fn(arg, page, number, piece, length);
	}
	return status;
}
