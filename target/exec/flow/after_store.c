/* SPDX-License-Identifier: GPL-2.0-or-later */
/* after_store.c -- jobs that wait for other jobs, in the store: the list of each, the checks at
 * acceptance, and the edges after a restart (flow.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "exec/flow/flow.h"
#include "security/decide.h"
#include "wire/cursor.h"

enum osd_status osd_after_put(struct osd_txn *txn, struct osd_object_id id,
			      const struct osd_after *after)
{
	uint8_t bytes[OSD_EXEC_AFTER_MAX * OSD_JOB_AFTER_BYTES];
	struct osd_wr w = osd_wr_init(bytes, sizeof(bytes));

	for (size_t i = 0; i < after->count; i++) {
		const struct osd_job_predecessor *on = &after->edges[i].on;

		osd_wr_be(&w, on->id.partition_id, 8);
		osd_wr_be(&w, on->id.object_id, 8);
		osd_wr_be(&w, on->condition, 4);
		osd_wr_zero(&w, 4);
		osd_wr_be(&w, on->sequence, 8);
	}
	return osd_job_payload_put(txn, id, OSD_PAYLOAD_AFTER, bytes, osd_wr_used(&w));
}

enum osd_status osd_job_after_get(struct osd_txn *txn, struct osd_object_id id,
				  struct osd_job_predecessor list[], size_t *ret_count)
{
	uint8_t bytes[OSD_EXEC_AFTER_MAX * OSD_JOB_AFTER_BYTES];
	size_t length = 0;
	enum osd_status status =
		osd_job_payload_get(txn, id, OSD_PAYLOAD_AFTER, bytes, sizeof(bytes), &length);
	struct osd_rd r = osd_rd_init(bytes, OSD_MIN(length, sizeof(bytes)));

	if (status != OSD_OK)
		return status;
	if (length > sizeof(bytes) || length % OSD_JOB_AFTER_BYTES != 0)
		return osd_internal("job 0x%" PRIx64 "/0x%" PRIx64
				    ": its list of earlier jobs has %zu bytes",
				    id.partition_id, id.object_id, length);
	*ret_count = length / OSD_JOB_AFTER_BYTES;
	for (size_t i = 0; i < *ret_count; i++) {
		list[i].id.partition_id = osd_rd_be(&r, 8);
		list[i].id.object_id = osd_rd_be(&r, 8);
		list[i].condition = (uint32_t)osd_rd_be(&r, 4);
		osd_rd_bytes(&r, 4);
		list[i].sequence = osd_rd_be(&r, 8);
	}
	return OSD_OK;
}

enum osd_status osd_after_load(struct osd_txn *txn, void *arg)
{
	struct osd_job *job = arg;
	struct osd_job_predecessor list[OSD_EXEC_AFTER_MAX];
	struct osd_after *after;
	size_t count;
	enum osd_status status = osd_job_after_get(txn, job->record.id, list, &count);

	if (status != OSD_OK)
		return status;
	after = osd_after_allocate(count);
	if (!after)
		return OSD_E_NO_MEMORY;
	for (size_t i = 0; i < count; i++)
		after->edges[i].on = list[i];
	after->left = 1;  /* until osd_after_recover */
	free(job->after); /* left from a transaction that is run again */
	job->after = after;
	return OSD_OK;
}

/* The record of a job.  It comes from memory if a member has none in the store yet. */
static enum osd_status get_record(struct osd_exec *exec, struct osd_txn *txn,
				  struct osd_object_id id, struct osd_job_record *ret_record)
{
	enum osd_status status = osd_job_record_get(txn, id, ret_record);

	return status == OSD_E_NO_OBJECT && osd_exec_copy_record(exec, id, ret_record) ? OSD_OK
										       : status;
}

/* ---- acceptance ------------------------------------------------------------------------------- */

/* A partition other than the zone's, and other than the one for surrogates of its jobs, must accept
 * the method of the submission. */
static enum osd_status check_reach(struct osd_exec *exec, struct osd_txn *txn,
				   struct osd_object_id id, const struct osd_job_record *by)
{
	uint8_t least;
	enum osd_status status;

	if (id.partition_id == osd_job_usual_partition(by->zone.id))
		return OSD_OK;
	status = osd_least_method(exec->keyring, txn, id.partition_id, &least);
	return status == OSD_OK && !osd_method_suffices(&by->rights.grant, least) ? OSD_E_CDB_FIELD
										  : status;
}

enum osd_status osd_exec_find_own(struct osd_exec *exec, struct osd_txn *txn,
				  struct osd_object_id id, const struct osd_job_record *by,
				  struct osd_job_record *ret_record)
{
	enum osd_status status = check_reach(exec, txn, id, by);

	if (status != OSD_OK)
		return status;
	status = get_record(exec, txn, id, ret_record);
	/* A principal may not learn that another principal's job exists. */
	if (status == OSD_E_NO_OBJECT ||
	    (status == OSD_OK && strcmp(ret_record->principal, by->principal) != 0))
		return OSD_E_CDB_FIELD;
	return status;
}

enum osd_status osd_after_check(struct osd_exec *exec, struct osd_txn *txn, struct osd_after *after,
				const struct osd_job_record *by)
{
	for (size_t i = 0; i < after->count; i++) {
		struct osd_after_edge *edge = &after->edges[i];
		struct osd_job_record record;
		enum osd_status status = osd_exec_find_own(exec, txn, edge->on.id, by, &record);

		if (status != OSD_OK)
			return status;
		edge->on.sequence = record.sequence;
		edge->found = osd_job_state_terminal(record.state) ? record.state : 0;
	}
	return OSD_OK;
}

/* ---- after a restart -------------------------------------------------------------------------- */

struct look {
	struct osd_exec *exec;
	struct osd_after *after;
};

/* The end of a job whose record is gone: it ended as asked (flow.h).  Its id may belong to another
 * job by now. */
static uint8_t as_asked(uint32_t condition)
{
	return condition == OSD_AFTER_FAILED ? OSD_STATE_FAILED : OSD_STATE_COMPLETED;
}

static enum osd_status look_up(struct osd_txn *txn, void *arg)
{
	struct look *look = arg;
	struct osd_after *after = look->after;

	for (size_t i = 0; i < after->count; i++) {
		struct osd_after_edge *edge = &after->edges[i];
		struct osd_job_record record;
		enum osd_status status = get_record(look->exec, txn, edge->on.id, &record);

		if (status == OSD_E_MEDIUM) { /* damaged: it may be repaired, and the job waits */
			edge->found = 0;
			continue;
		}
		if (status != OSD_OK && status != OSD_E_NO_OBJECT)
			return status;
		if (status == OSD_E_NO_OBJECT || record.sequence != edge->on.sequence)
			edge->found = as_asked(edge->on.condition);
		else
			edge->found = osd_job_state_terminal(record.state) ? record.state : 0;
	}
	return OSD_OK;
}

enum osd_status osd_after_recover(struct osd_exec *exec)
{
	enum osd_status status = OSD_OK;
	struct osd_job *job = NULL;

	while (status == OSD_OK && (job = osd_exec_next_job(exec, job))) {
		status = osd_after_watch(exec, job);
		if (status == OSD_OK && job->after)
			status = osd_txn_run(exec->objects, OSD_TXN_READ_ONLY, look_up,
					     &(struct look){exec, job->after});
		if (status == OSD_OK)
			osd_after_admitted(job);
	}
	return status;
}
