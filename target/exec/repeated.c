/* SPDX-License-Identifier: GPL-2.0-or-later */
/* repeated.c -- an earlier job answers a submission: one with the same key, or one that is remembered
 * (acceptance.h). */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "exec/acceptance.h"

enum osd_status osd_repeated_find(struct osd_txn *txn, struct osd_acceptance *acceptance)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_job_record wanted = acceptance->record, earlier;
	struct osd_object_id id;
	enum osd_status status;

	wanted.id.partition_id = submission->surrogate_partition
					 ? submission->surrogate_partition
					 : osd_job_usual_partition(wanted.zone.id);
	status = osd_job_key_find(txn, &wanted, &id);
	if (status == OSD_OK)
		status = osd_job_record_get(txn, id, &earlier);
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status != OSD_OK)
		return status;
	if (memcmp(earlier.content_sha256, wanted.content_sha256, sizeof(wanted.content_sha256)) !=
	    0)
		return OSD_E_JOB_KEY_CLASH;
	acceptance->existing = true;
	acceptance->record = earlier;
	return OSD_OK;
}

/* The end of an earlier job with the same key, read once it is not in memory any more: it may have
 * ended after the accepting transaction read it. */
struct ended {
	struct osd_job_record record;
	uint8_t result[OSD_JOB_PAYLOAD_MAX];
	size_t result_length;
};

static enum osd_status read_ended(struct osd_txn *txn, void *arg)
{
	struct ended *ended = arg;
	struct osd_object_id id = ended->record.id;
	struct osd_job_record now;
	enum osd_status status = osd_job_record_get(txn, id, &now);

	if (status == OSD_OK && now.sequence != ended->record.sequence)
		status = OSD_E_NO_OBJECT; /* another job has the id, which its client chose */
	if (status == OSD_OK) {
		ended->record = now;
		status = osd_job_payload_get(txn, id, OSD_PAYLOAD_RESULT, ended->result,
					     sizeof(ended->result), &ended->result_length);
	}
	if (status == OSD_E_NO_OBJECT) /* no result, or the record has been removed since: use the
				        * earlier copy */
		ended->result_length = 0;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

void osd_repeated_deliver(struct osd_exec *exec, struct osd_exec_wait *wait,
			  const struct osd_job_record *found)
{
	OSD_CLEANUP_FREE struct ended *ended = malloc(sizeof(*ended));
	struct osd_exec_outcome outcome = {.status = OSD_E_NO_MEMORY};

	if (ended) {
		ended->record = *found;
		outcome.status = osd_txn_run(exec->objects, OSD_TXN_READ_ONLY, read_ended, ended);
	}
	if (outcome.status == OSD_OK) {
		outcome.status = osd_job_reason_status(ended->record.reason);
		outcome.reason = ended->record.reason;
		outcome.result_object = ended->record.result_object;
		outcome.result = ended->result_length ? ended->result : NULL;
		outcome.result_length = ended->result_length;
		outcome.whole_length = ended->record.result_length;
		outcome.form = osd_job_result_form(&ended->record);
	}
	wait->job = found->id;
	osd_exec_deliver(wait, outcome);
}
