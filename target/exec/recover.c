/* SPDX-License-Identifier: GPL-2.0-or-later */
/* recover.c -- takes up the jobs of the target's last run.  A queued job is
 * queued again.  A job that was to be killed is CANCELLED.  A job that was running gets another
 * attempt if it has written nothing or may run twice; otherwise it is SANDBOX_LOST.  One that cannot be
 * taken up keeps no others: it has FAILED.  If not even its record can be read, it stays as it is. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/util.h"
#include "exec/target.h"

struct found {
	struct osd_exec *exec;
	struct osd_job_record *records;
	size_t count, capacity;
	struct osd_array *arrays; /* the unfinished ones, linked by next_found, the last first */
	uint64_t last_sequence;
	struct charge {
		struct osd_object_id job; /* one of the jobs it is for: same partition, same
					   * place */
		uint64_t bytes;
	} * charges; /* owned */
	size_t charge_count, charge_capacity;
	struct osd_object_id *uncounted; /* owned: jobs whose records do not have their charge */
	size_t uncounted_count, uncounted_capacity;
	bool no_memory;
};

/* Skips beyond every change count that earlier runs have shown without storing it. */
static void leap(const struct osd_exec *exec, struct osd_job_record *record)
{
	record->generation =
		OSD_MAX(record->generation + 1, osd_objects_openings(exec->objects) << 32);
}

static void drop_arrays(struct found *found)
{
	while (found->arrays) {
		struct osd_job *head = found->arrays->head;

		found->arrays = found->arrays->next_found;
		osd_job_unref(head);
	}
}

/* The records of the members directly follow the head's. */
static bool note_array(struct found *found, const struct osd_job_record *record)
{
	struct osd_pool *pool = osd_pool_of_record(found->exec, record);
	struct osd_job *head = pool ? osd_job_create(found->exec, record, pool) : NULL;

	if (!head || osd_array_create(head) != OSD_OK) {
		osd_job_unref(head);
		return false;
	}
	leap(found->exec, &head->record);
	head->array->next_found = found->arrays;
	found->arrays = head->array;
	return true;
}

static void note_ended(struct found *found, const struct osd_job_record *record)
{
	const struct osd_job *head = found->arrays ? found->arrays->head : NULL;

	if (record->flags & OSD_JOB_MEMBER && head &&
	    head->record.id.partition_id == record->id.partition_id &&
	    head->record.id.object_id == record->array.object_id)
		osd_array_count(head->array, record);
}

static bool is_for(const struct charge *charge, struct osd_object_id job)
{
	return charge->job.partition_id == job.partition_id &&
	       osd_job_place_of(charge->job) == osd_job_place_of(job);
}

static bool note_bytes(struct found *found, const struct osd_job_record *record, uint64_t bytes)
{
	struct charge *charge = NULL;

	for (size_t i = found->charge_count; i > 0 && !charge; i--)
		if (is_for(&found->charges[i - 1], record->id))
			charge = &found->charges[i - 1];
	if (!charge) {
		if (!OSD_MAKE_ROOM(found->charges, found->charge_count, found->charge_capacity))
			return false;
		charge = &found->charges[found->charge_count++];
		*charge = (struct charge){.job = record->id};
	}
	charge->bytes += bytes;
	return osd_stored_found(&found->exec->stored, record, bytes);
}

static bool note_charge(struct found *found, const struct osd_job_record *record)
{
	if (record->charged != OSD_JOB_UNCOUNTED)
		return note_bytes(found, record, record->charged);
	if (!OSD_MAKE_ROOM(found->uncounted, found->uncounted_count, found->uncounted_capacity))
		return false;
	found->uncounted[found->uncounted_count++] = record->id;
	return true;
}

/* False: no memory. */
static bool note(struct found *found, const struct osd_job_record *record)
{
	if (!note_charge(found, record))
		return false;
	found->last_sequence =
		OSD_MAX(found->last_sequence, record->sequence + record->array.count);
	if (osd_job_state_terminal(record->state)) {
		note_ended(found, record);
		return true;
	}
	if ((record->array.count && !note_array(found, record)) ||
	    !OSD_MAKE_ROOM(found->records, found->count, found->capacity))
		return false;
	found->records[found->count++] = *record;
	return true;
}

static bool note_job(void *arg, const struct osd_job_record *record)
{
	struct found *found = arg;

	found->no_memory = !note(found, record);
	return !found->no_memory;
}

/* The record stays for "osd target check" and "repair".  A member of an array may have run, so it does not
 * begin anew. */
static bool note_damaged(void *arg, struct osd_object_id id)
{
	const struct found *found = arg;
	const struct osd_job *head = found->arrays ? found->arrays->head : NULL;
	struct osd_job_record lost = {.id = id, .state = OSD_STATE_SANDBOX_LOST};

	osd_error("the record of job %#llx/%#llx is damaged: the job stays as it is",
		  (unsigned long long)id.partition_id, (unsigned long long)id.object_id);
	if (head && id.partition_id == head->record.id.partition_id &&
	    id.object_id - head->record.id.object_id - 1 < head->record.array.count) {
		lost.array.object_id = head->record.id.object_id;
		osd_array_count(head->array, &lost);
	}
	return true;
}

static int by_sequence(const void *a, const void *b)
{
	uint64_t x = ((const struct osd_job_record *)a)->sequence;
	uint64_t y = ((const struct osd_job_record *)b)->sequence;

	return x < y ? -1 : x > y;
}

static enum osd_status erase_output(struct osd_exec *exec, struct osd_object_id surrogate)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	enum osd_status status = osd_object_get(exec->objects, surrogate, &object);

	return status == OSD_OK ? osd_object_truncate(object, 0, OSD_DATA_RESERVE) : status;
}

/* The output of the last run is complete: nothing will be added. */
static enum osd_status measure_output(struct osd_exec *exec, struct osd_job_record *record)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	enum osd_status status = osd_object_get(exec->objects, record->id, &object);

	return status == OSD_OK ? osd_object_length(object, &record->stdout_length) : status;
}

static struct osd_object_id array_of(const struct osd_job_record *record)
{
	return (struct osd_object_id){record->id.partition_id, record->array.object_id};
}

/* Limits apply to new submissions: a job that was accepted is kept. */
static enum osd_status admit(struct osd_exec *exec, struct osd_job *job)
{
	const struct osd_job_record *record = &job->record;
	enum osd_status status = OSD_OK;

	if (record->flags & OSD_JOB_AFTER && record->attempt == 0)
		status = osd_txn_run(exec->objects, OSD_TXN_READ_ONLY, osd_after_load, job);
	if (status == OSD_OK && job->head)
		status = osd_array_place(job);
	else if (status == OSD_OK)
		status = osd_pool_reserve(job->pool, record->principal, job->array ? 0 : 1, true,
					  &job->entry);
	if (status == OSD_OK)
		osd_exec_admit(exec, job);
	return status;
}

static enum osd_status readmit(struct osd_exec *exec, struct osd_job_record *record)
{
	struct osd_pool *pool = osd_pool_of_record(exec, record);
	struct osd_job *job = pool ? osd_job_create(exec, record, pool) : NULL;
	enum osd_status status;

	if (!job)
		return OSD_E_NO_MEMORY;
	if (record->flags & OSD_JOB_MEMBER) {
		job->head = osd_job_ref(osd_exec_find(exec, array_of(record)));
		job->stored = true;
	}
	status = admit(exec, job);
	osd_job_unref(job);
	return status;
}

struct lost {
	struct osd_exec *exec;
	const struct osd_job_record *record;
};

static enum osd_status write_lost(struct osd_txn *txn, void *arg)
{
	const struct lost *lost = arg;

	return osd_job_write_end(lost->exec, txn, lost->record);
}

/* Removes a result that the last attempt had begun. */
static enum osd_status start_over(struct osd_txn *txn, void *arg)
{
	struct osd_job_record record = *(const struct osd_job_record *)arg;
	struct osd_object_id companion = {record.id.partition_id, record.result_object};
	enum osd_status status = OSD_OK;

	if (record.result_object)
		status = osd_remove_if_there(txn, companion);
	if (status == OSD_OK && record.result_object)
		status = osd_job_companion_delete(txn, companion);
	record.result_object = 0;
	return status == OSD_OK ? osd_job_record_put(txn, &record) : status;
}

/* A member whose array has ended, although its own end could not be written (osd_exec_finish). */
static bool is_orphan(struct osd_exec *exec, const struct osd_job_record *record)
{
	return record->flags & OSD_JOB_MEMBER && !osd_exec_find(exec, array_of(record));
}

static void note_lost(struct osd_exec *exec, const struct osd_job_record *record)
{
	struct osd_job *head = osd_exec_find(exec, array_of(record));

	if (head)
		osd_array_count(head->array, record);
}

/* Ends a job that cannot be taken up.  If its end cannot be stored, the next start tries again. */
static enum osd_status give_up(struct osd_exec *exec, struct osd_job_record *record,
			       enum osd_status why)
{
	struct osd_job_record ended = *record;
	enum osd_status status;

	if (why == OSD_OK || why == OSD_E_NO_MEMORY)
		return why;
	osd_job_record_end(&ended, OSD_STATE_FAILED, OSD_REASON_INTERNAL);
	snprintf(ended.message, sizeof(ended.message), "not taken up after a restart: %s",
		 osd_status_info(why)->meaning);
	status = osd_txn_run(exec->objects, OSD_TXN_INTERNAL, write_lost,
			     &(struct lost){exec, &ended});
	osd_error("job %#llx/%#llx cannot be taken up: %s; it %s",
		  (unsigned long long)ended.id.partition_id, (unsigned long long)ended.id.object_id,
		  osd_status_info(why)->meaning,
		  status == OSD_OK ? "has FAILED" : "stays as it is until the next start");
	if (ended.flags & OSD_JOB_MEMBER)
		note_lost(exec, &ended);
	if (status == OSD_OK)
		*record = ended;
	return OSD_OK;
}

static enum osd_status recover_running(struct osd_exec *exec, struct osd_job_record *record)
{
	bool wrote = record->flags & OSD_JOB_WROTE, killed = record->flags & OSD_JOB_KILL_ASKED;
	enum osd_status status;

	if (killed)
		osd_job_record_end(record, OSD_STATE_CANCELLED, OSD_REASON_KILLED);
	else if ((wrote && !(record->flags & OSD_JOB_IDEMPOTENT)) || is_orphan(exec, record) ||
		 record->attempt >= osd_job_attempts(record))
		osd_job_record_end(record, OSD_STATE_SANDBOX_LOST,
				   wrote ? OSD_REASON_LOST_AFTER_WRITE
					 : OSD_REASON_TARGET_RESTARTED);
	if (osd_job_state_terminal(record->state)) {
		exec->pools->lost += !killed;
		status = measure_output(exec, record);
		if (status != OSD_E_NO_MEMORY) /* else it has the length that was stored last */
			status = osd_txn_run(exec->objects, OSD_TXN_INTERNAL, write_lost,
					     &(struct lost){exec, record});
		if (status == OSD_OK)
			osd_story_lost(record);
		if (status == OSD_OK && record->flags & OSD_JOB_MEMBER)
			note_lost(exec, record);
		return status;
	}
	record->state = OSD_STATE_QUEUED;
	record->reason = OSD_REASON_WAITS_FOR_SLOT;
	status = erase_output(exec, record->id);
	if (status == OSD_OK)
		status = osd_txn_run(exec->objects, OSD_TXN_INTERNAL, start_over, record);
	if (status != OSD_OK)
		return status;
	record->result_object = 0;
	return readmit(exec, record);
}

/* Records written by a release that did not charge for jobs. */
static enum osd_status count_uncounted(struct osd_txn *txn, struct found *found)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; i < found->uncounted_count && status == OSD_OK; i++) {
		struct osd_job_record record;
		uint64_t bytes;

		status = osd_job_record_get(txn, found->uncounted[i], &record);
		if (status == OSD_OK)
			status = osd_job_charge_count(txn, &record, &bytes);
		if (status == OSD_OK && !note_bytes(found, &record, bytes))
			status = OSD_E_NO_MEMORY;
	}
	for (size_t i = 0; i < found->count && status == OSD_OK; i++)
		status = osd_job_charge_count(txn, &found->records[i], &found->records[i].charged);
	for (struct osd_array *array = found->arrays; array && status == OSD_OK;
	     array = array->next_found)
		status = osd_job_charge_count(txn, &array->head->record,
					      &array->head->record.charged);
	return status;
}

static enum osd_status read_jobs(struct osd_txn *txn, void *arg)
{
	struct found *found = arg;
	enum osd_status status;

	found->count = found->charge_count = found->uncounted_count = 0;
	osd_stored_clear(&found->exec->stored);
	drop_arrays(found);
	status = osd_job_record_each(txn, 0, note_job, note_damaged, found);
	if (status == OSD_OK && found->no_memory)
		status = OSD_E_NO_MEMORY;
	return status == OSD_OK ? count_uncounted(txn, found) : status;
}

/* An earlier release neither marked an object that holds a result nor named its owner. */
static enum osd_status adopt_companion(struct osd_txn *txn, void *arg)
{
	const struct osd_object_id *id = arg;
	struct osd_job_record record;
	enum osd_status status = osd_job_record_get(txn, *id, &record);
	struct osd_object_id companion;

	if (status != OSD_OK || !record.result_object)
		return status;
	companion = (struct osd_object_id){id->partition_id, record.result_object};
	status = osd_companion_mark(txn, companion);
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK; /* a client has removed it */
	if (status == OSD_OK)
		status = osd_job_companion_put(txn, *id, companion.object_id);
	if (status == OSD_OK)
		status = osd_job_charge_count(txn, &record, &record.charged);
	return status == OSD_OK ? osd_job_record_put(txn, &record) : status;
}

static enum osd_status adopt_companions(struct osd_exec *exec, const struct found *found)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; i < found->uncounted_count && status != OSD_E_NO_MEMORY; i++) {
		status = osd_txn_run(exec->objects, OSD_TXN_INTERNAL | OSD_TXN_NO_TIMESTAMPS,
				     adopt_companion, &found->uncounted[i]);
		if (status != OSD_OK)
			osd_error("the result of job %#llx/%#llx is not marked as its own: %s",
				  (unsigned long long)found->uncounted[i].partition_id,
				  (unsigned long long)found->uncounted[i].object_id,
				  osd_status_info(status)->meaning);
	}
	return status == OSD_E_NO_MEMORY ? status : OSD_OK;
}

static void charge_found(struct osd_exec *exec, const struct found *found)
{
	for (size_t i = 0; i < found->charge_count; i++)
		osd_objects_charge_records(exec->objects, found->charges[i].job,
					   found->charges[i].bytes);
}

/* All heads must be in the table before their members. */
static enum osd_status recover_heads(struct osd_exec *exec, const struct found *found)
{
	enum osd_status status = OSD_OK;

	for (struct osd_array *array = found->arrays; array && status == OSD_OK;
	     array = array->next_found) {
		if (array->head->record.flags & OSD_JOB_RANGES)
			status = osd_txn_run(exec->objects, OSD_TXN_READ_ONLY, osd_array_load,
					     array);
		if (status == OSD_OK)
			status = admit(exec, array->head);
		status = give_up(exec, &array->head->record, status);
	}
	return status;
}

/* Recovers a job that is not a head. */
static enum osd_status recover_job(struct osd_exec *exec, struct osd_job_record *record)
{
	leap(exec, record);
	if (osd_job_state_waits(record->state) && !is_orphan(exec, record))
		return give_up(exec, record, readmit(exec, record));
	return give_up(exec, record, recover_running(exec, record));
}

/* Called before any client can read a job.  An array that has not ended shows the last waiting
 * state of its members, which is not stored for ended members. */
static void end_arrays(struct osd_exec *exec, const struct found *found)
{
	osd_lock(&exec->lock);
	for (struct osd_array *array = found->arrays; array; array = array->next_found)
		osd_array_end_if_over(array);
	osd_unlock(&exec->lock);
}

enum osd_status osd_exec_recover(struct osd_exec *exec)
{
	struct found found = {.exec = exec};
	enum osd_status status = osd_txn_run(exec->objects, OSD_TXN_READ_ONLY, read_jobs, &found);
	size_t queued = 0;

	if (found.count)
		qsort(found.records, found.count, sizeof(*found.records), by_sequence);
	exec->next_sequence = found.last_sequence + 1;
	if (status == OSD_OK)
		charge_found(exec, &found);
	if (status == OSD_OK)
		status = adopt_companions(exec, &found);
	if (status == OSD_OK)
		status = recover_heads(exec, &found);
	for (size_t i = 0; i < found.count && status == OSD_OK; i++) {
		struct osd_job_record *record = &found.records[i];

		if (!record->array.count)
			status = recover_job(exec, record);
		queued += !osd_job_state_terminal(record->state);
	}
	for (struct osd_array *array = found.arrays; array && status == OSD_OK;
	     array = array->next_found)
		if (array->head->in_table)
			status = osd_array_admit_rest(array);
	if (status == OSD_OK)
		status = osd_after_recover(exec);
	if (status == OSD_OK)
		end_arrays(exec, &found);
	drop_arrays(&found);
	if (status == OSD_OK && found.count)
		osd_info("%zu jobs of the last run: %zu wait again, %zu ended", found.count, queued,
			 found.count - queued);
	free(found.records);
	free(found.charges);
	free(found.uncounted);
	return status;
}
