/* SPDX-License-Identifier: GPL-2.0-or-later */
/* removal.c -- the effects of removals on jobs (exec.h): surrogates, partitions, collections,
 * FORMAT OSD. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/target.h"

#define FORMAT_WAIT_USEC 2000000

static bool stands_in(const struct osd_job_record *record, uint64_t partition_id)
{
	return !(record->flags & OSD_JOB_PLAIN) && (record->id.partition_id == partition_id ||
						    record->zone.id.partition_id == partition_id);
}

enum osd_status osd_exec_check_partition(struct osd_exec *exec, uint64_t partition_id,
					 struct osd_object_id *ret_job)
{
	const struct osd_job *job = NULL;
	struct osd_object_id first = {0, 0}; /* the lowest surrogate */

	osd_lock(&exec->lock);
	while ((job = osd_exec_next_job(exec, job)))
		if (stands_in(&job->record, partition_id) &&
		    (!first.object_id || job->record.id.object_id < first.object_id))
			first = job->record.id;
	osd_unlock(&exec->lock);
	if (!first.object_id)
		return OSD_OK;
	*ret_job = first;
	return OSD_E_JOB_IN_WAY;
}

struct gathered {
	struct osd_exec *exec;
	uint64_t partition_id; /* 0: all */
	struct osd_object_id *ids;
	size_t count, capacity;
	enum osd_status status;
};

/* Whether the record of a job may go with its partition although the store does not show its end
 * yet. */
static enum osd_status check_over(struct osd_exec *exec, struct osd_object_id id)
{
	enum osd_status status = OSD_OK;

	osd_lock(&exec->lock);
	if (osd_exec_find(exec, id))
		status = OSD_E_JOB_IN_WAY;
	else if (exec->accepting) /* it may be this job: soon it will be in the table */
		status = OSD_E_CONFLICT;
	osd_unlock(&exec->lock);
	return status;
}

static bool gather_one(struct gathered *gathered, struct osd_object_id id, bool ended)
{
	if (gathered->partition_id && !ended)
		gathered->status = check_over(gathered->exec, id);
	if (gathered->status != OSD_OK)
		return false;
	if (!OSD_MAKE_ROOM(gathered->ids, gathered->count, gathered->capacity)) {
		gathered->status = OSD_E_NO_MEMORY;
		return false;
	}
	gathered->ids[gathered->count++] = id;
	return true;
}

static bool gather(void *arg, const struct osd_job_record *record)
{
	return gather_one(arg, record->id, osd_job_state_terminal(record->state));
}

static bool gather_damaged(void *arg, struct osd_object_id id)
{
	return gather_one(arg, id, false);
}

static enum osd_status forget_records(struct osd_exec *exec, struct osd_txn *txn,
				      uint64_t partition_id)
{
	struct gathered gathered = {.exec = exec, .partition_id = partition_id, .status = OSD_OK};
	enum osd_status status =
		osd_job_record_each(txn, partition_id, gather, gather_damaged, &gathered);

	if (status == OSD_OK)
		status = gathered.status;
	for (size_t i = 0; i < gathered.count && status == OSD_OK; i++) {
		struct osd_job_record record;

		status = osd_job_record_get(txn, gathered.ids[i], &record);
		if (status == OSD_OK)
			status = osd_flow_forget(exec, txn, &record);
		else if (status == OSD_E_MEDIUM)
			status = osd_job_record_purge(txn, gathered.ids[i]);
	}
	free(gathered.ids);
	return status;
}

static enum osd_status object_removed(struct osd_exec *exec, struct osd_txn *txn,
				      struct osd_object_id id)
{
	struct osd_job_record record;
	enum osd_status status = osd_job_record_get(txn, id, &record);

	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status == OSD_OK && osd_array_keeps(exec, &record))
		return OSD_E_JOB_IN_WAY;
	return status == OSD_OK ? osd_flow_forget_all(exec, txn, &record) : status;
}

/* ---- plain calls, which prevent no removal ---- */

struct removed_partition {
	struct osd_exec *exec;
	uint64_t id;
};

static bool is_plain_in(const struct osd_job *job, const void *arg)
{
	const struct removed_partition *removed = arg;

	return job->record.flags & OSD_JOB_PLAIN &&
	       job->record.zone.id.partition_id == removed->id;
}

static void end_plain(void *arg, bool committed)
{
	OSD_CLEANUP_FREE struct removed_partition *removed = arg;

	if (committed)
		osd_exec_end_matching(removed->exec, is_plain_in, removed,
				      OSD_REASON_ZONE_REMOVED);
}

static enum osd_status end_plain_at_commit(struct osd_exec *exec, struct osd_txn *txn,
					   uint64_t partition_id)
{
	struct removed_partition *removed = malloc(sizeof(*removed));

	if (!removed)
		return OSD_E_NO_MEMORY;
	*removed = (struct removed_partition){exec, partition_id};
	return osd_txn_on_end(txn, end_plain, removed);
}

/* The transaction has locked the partition.  A job accepted since osd_exec_check_partition is in
 * the store by now, and no other can be accepted. */
enum osd_status osd_exec_removed(void *exec, struct osd_txn *txn, struct osd_object_id id)
{
	struct osd_object_id job;
	enum osd_status status;

	if (osd_exec_uses_function(exec, id, &job))
		return OSD_E_FUNCTION_IN_USE;
	if (id.object_id)
		return object_removed(exec, txn, id);
	status = end_plain_at_commit(exec, txn, id.partition_id);
	return status == OSD_OK ? forget_records(exec, txn, id.partition_id) : status;
}

static bool has_zone(const struct osd_job *job, const void *arg)
{
	const struct osd_zone *zone = &job->record.zone;

	return zone->type == OSD_COLLECTION &&
	       osd_same_id(zone->id, *(const struct osd_object_id *)arg);
}

void osd_exec_collection_removed(struct osd_exec *exec, struct osd_object_id id)
{
	osd_exec_end_matching(exec, has_zone, &id, OSD_REASON_ZONE_REMOVED);
}

static bool any_job(const struct osd_job *job, const void *arg)
{
	(void)job, (void)arg;
	return true;
}

void osd_exec_end_jobs(struct osd_exec *exec)
{
	struct timespec until = osd_timespec(osd_monotonic_usec() + FORMAT_WAIT_USEC);
	size_t left;
	int error = 0;

	osd_lock(&exec->lock);
	exec->formatting = true; /* nothing is started until osd_exec_formatted */
	osd_unlock(&exec->lock);
	do { /* a job that has just lost its sandbox waits for another attempt: check again */
		osd_exec_end_matching(exec, any_job, NULL, OSD_REASON_FORMATTED);
		osd_lock(&exec->lock);
		if (exec->table.count > 0)
			error = osd_cond_timedwait(&exec->changed, &exec->lock, &until);
		left = exec->table.count;
		osd_unlock(&exec->lock);
	} while (left > 0 && !error);
	if (left > 0)
		osd_warning("%zu jobs did not end in time for FORMAT OSD", left);
}

static enum osd_status forget_all(struct osd_txn *txn, void *exec)
{
	return forget_records(exec, txn, 0);
}

enum osd_status osd_exec_formatted(struct osd_exec *exec, bool succeeded)
{
	enum osd_status status = OSD_OK;

	if (succeeded)
		status = osd_txn_run(exec->objects, OSD_TXN_INTERNAL, forget_all, exec);
	osd_lock(&exec->lock);
	exec->formatting = false;
	exec->pools->work(exec);
	osd_unlock(&exec->lock);
	return status;
}
