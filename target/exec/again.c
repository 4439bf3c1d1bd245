/* SPDX-License-Identifier: GPL-2.0-or-later */
/* again.c -- a submission that runs the code of its predecessor again, or other code with the same arguments.
 * The target keeps both until the job ends, and longer if the job did not complete (job/job.h). */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "exec/target.h"

struct again {
	struct osd_exec *exec;
	const char *principal;
	struct osd_object_id id;
	struct osd_job_record record; /* the record with the code: for a member, its array's */
	uint8_t *content;	      /* owned: arguments and code */
};

static bool has_code(const struct osd_job_record *record)
{
	return !osd_job_state_terminal(record->state) || record->flags & OSD_JOB_CODE_KEPT;
}

static enum osd_status read_code(struct osd_txn *txn, void *arg)
{
	struct again *again = arg;
	struct osd_job_record *record = &again->record;
	enum osd_status status = OSD_OK;
	size_t length;

	if (!osd_exec_copy_record(again->exec, again->id, record))
		status = osd_job_record_get(txn, again->id, record);
	if (status == OSD_OK && record->flags & OSD_JOB_MEMBER)
		status = osd_job_record_get(
			txn,
			(struct osd_object_id){record->id.partition_id, record->array.object_id},
			record);
	if (status == OSD_E_NO_OBJECT)
		return OSD_E_CDB_FIELD;
	if (status != OSD_OK)
		return status;
	/* A principal may not learn that another principal's job exists. */
	if (strcmp(record->principal, again->principal) != 0 || !has_code(record))
		return OSD_E_CDB_FIELD;
	length = (size_t)record->args_length + record->code_length;
	free(again->content); /* left from a transaction that is run again */
	again->content = malloc(length);
	if (!again->content)
		return OSD_E_NO_MEMORY;
	status = osd_job_code_get(txn, record, again->content);
	/* The job has ended meanwhile, and its code is gone. */
	return status == OSD_E_NO_OBJECT ? OSD_E_CDB_FIELD : status;
}

enum osd_status osd_exec_take_content(struct osd_exec *exec, struct osd_exec_submission *submission,
				      uint8_t **ret_content)
{
	struct again again = {
		.exec = exec,
		.principal = submission->principal,
		.id = submission->predecessor,
	};
	enum osd_status status = osd_txn_run(exec->objects, OSD_TXN_READ_ONLY, read_code, &again);

	*ret_content = again.content;
	if (status != OSD_OK)
		return status;
	if (!submission->has_args) {
		submission->args_encoding = again.record.args_encoding;
		submission->args = (struct osd_exec_text){again.content, again.record.args_length};
	}
	if (submission->code)
		return OSD_OK;
	submission->flags = (submission->flags & ~(uint32_t)OSD_EXEC_CODE_FORM) |
			    (again.record.client_flags & OSD_EXEC_CODE_FORM);
	submission->function = again.record.function;
	submission->code = again.content + again.record.args_length;
	submission->code_length = again.record.code_length;
	return OSD_OK;
}
