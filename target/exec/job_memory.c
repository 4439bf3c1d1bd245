/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_memory.c -- jobs in memory: references, table, queue, transitions, requests to end.  The
 * caller holds exec->lock.  Not here: anything that reaches the store. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/exec_impl.h"
#include "exec/story.h"

struct osd_job *osd_job_create(const struct osd_job_record *record, struct osd_pool *pool)
{
	struct osd_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->record = *record;
	job->pool = pool;
	job->references = 1;
	job->accepted_usec = job->entry.since = osd_monotonic_usec();
	job->entry.accepted_usec = pool->exec->opened_usec; /* later for what is accepted now */
	job->entry.priority = record->priority;
	job->entry.sequence = record->sequence;
	return job;
}

struct osd_job *osd_job_ref(struct osd_job *job)
{
	job->references++;
	return job;
}

void osd_job_unref(struct osd_job *job)
{
	if (!job || --job->references > 0)
		return;
	osd_job_unref(job->head);
	osd_array_free(job->array);
	free(job->after);
	free(job->content);
	free(job);
}

struct osd_job *osd_exec_find(struct osd_exec *exec, struct osd_object_id id)
{
	struct osd_job_node *node = osd_job_table_find(&exec->table, id);

	return node ? osd_container_of(node, struct osd_job, node) : NULL;
}

void osd_exec_unqueue(struct osd_exec *exec, struct osd_job *job)
{
	if (!job->head) {
		osd_fair_queue_drop(&job->pool->queue, &job->entry);
	} else if (job->entry.queued) {
		osd_fair_queue_drop(&job->head->array->waiting, &job->entry);
		osd_array_settle(exec, job->head->array);
	}
}

void osd_exec_unplace(struct osd_job *job)
{
	if (!job->entry.principal)
		return;
	if (job->head)
		osd_array_unplace(job);
	else
		osd_fair_queue_unreserve(&job->pool->queue, &job->entry);
}

void osd_exec_delay(struct osd_exec *exec, struct osd_job *job, uint64_t usec)
{
	if (job->head)
		osd_array_yield(exec, job);
	job->not_before_usec = osd_monotonic_usec() + usec;
	job->next_delayed = exec->delayed;
	exec->delayed = job;
	osd_wake(exec->monitor_wake);
}

static void undelay(struct osd_exec *exec, struct osd_job *job)
{
	struct osd_job **link = &exec->delayed;

	while (*link && *link != job)
		link = &(*link)->next_delayed;
	if (*link)
		*link = job->next_delayed;
}

/* Says what it waits for; false: no longer for other jobs. */
static bool wait_for_jobs(struct osd_job *job)
{
	bool waits = job->after->left > 0;
	uint16_t reason = waits ? OSD_REASON_WAITS_FOR_JOB : OSD_REASON_WAITS_FOR_SLOT;

	if (job->record.attempt == 0 && job->record.reason != reason) {
		job->record.reason = reason;
		osd_job_touch(job);
	}
	return waits;
}

/* A job that had started has given up its place: it gets one again whatever the caps. */
static enum osd_status take_place(struct osd_job *job)
{
	if (job->entry.principal)
		return OSD_OK;
	if (job->head)
		return osd_array_place(job);
	return osd_pool_reserve(job->pool, job->record.principal, 1, true, &job->entry);
}

/* Among those of its array that wait. */
static enum osd_status push_member(struct osd_exec *exec, struct osd_job *job)
{
	struct osd_array *array = job->head->array;
	enum osd_status status = osd_fair_queue_push(&array->waiting, &job->entry);

	if (status == OSD_OK && array->head->record.array.ending)
		osd_array_work(exec, array, 0);
	else if (status == OSD_OK)
		osd_array_settle(exec, array);
	return status;
}

/* Among those of its pool. */
static enum osd_status push(struct osd_job *job)
{
	job->entry.since = osd_monotonic_usec();
	return osd_fair_queue_push(&job->pool->queue, &job->entry);
}

void osd_exec_enqueue(struct osd_exec *exec, struct osd_job *job)
{
	enum osd_status status;

	undelay(exec, job); /* a release, or a change that came to nothing, ends the waiting */
	if (job->after && wait_for_jobs(job))
		return; /* the end of the last of them puts it here */
	if (job->array) {
		osd_array_settle(exec, job->array);
		return;
	}
	status = take_place(job);
	if (status == OSD_OK && job->head)
		status = push_member(exec, job);
	else if (status == OSD_OK)
		status = push(job);
	if (status != OSD_OK)
		osd_exec_delay(exec, job, OSD_NO_MEMORY_USEC);
	else if (!job->head)
		osd_pool_has_work(job->pool);
}

void osd_exec_admit(struct osd_exec *exec, struct osd_job *job)
{
	job->node.id = job->record.id;
	job->in_table = true;
	osd_job_table_insert(&exec->table, &job->node);
	osd_job_ref(job);
	if (job->head)
		osd_array_note(exec, job);
	if (job->record.state == OSD_STATE_QUEUED)
		osd_exec_enqueue(exec, job);
	else if (!job->array)
		exec->held_count += job->record.state == OSD_STATE_HELD;
	osd_exec_note_idle(exec, job);
	osd_exec_note_begin(exec, job);
}

void osd_exec_forget(struct osd_exec *exec, struct osd_job *job)
{
	if (!job->in_table)
		return;
	undelay(exec, job);
	osd_exec_unqueue(exec, job);
	osd_exec_unplace(job);
	if (job->pool->leaving)
		osd_monitor_by(exec, 0);
	osd_job_table_remove(&exec->table, &job->node);
	job->in_table = false;
	osd_after_ended(exec, job);
	if (job->head) {
		osd_array_yield(exec, job);
		osd_array_note(exec, job);
	}
	pthread_cond_broadcast(&exec->changed);
	osd_job_unref(job);
}

bool osd_job_apply(struct osd_exec *exec, struct osd_job *job, enum osd_job_event event,
		   uint16_t reason)
{
	enum osd_job_state from = job->record.state, to;

	if (!osd_job_transition(from, event, &to)) {
		osd_error("job %#llx/%#llx: event %u is not permitted in state %s",
			  (unsigned long long)job->record.id.partition_id,
			  (unsigned long long)job->record.id.object_id, event,
			  osd_job_state_name(from));
		return false;
	}
	if (from == OSD_STATE_HELD)
		exec->held_count--;
	if (to == OSD_STATE_HELD)
		exec->held_count++;
	job->record.state = to;
	job->record.reason = reason;
	osd_job_touch(job);
	if (job->head)
		osd_array_note(exec, job);
	if (to == OSD_STATE_HELD)
		osd_exec_note_idle(exec, job);
	return true;
}

enum osd_status osd_job_write_live(struct osd_exec *exec, struct osd_txn *txn, struct osd_job *job)
{
	struct osd_job_record record;
	enum osd_status status;
	bool same;

	/* From the first put on the record is locked: whoever added a flag before that wrote it
	 * before us and is seen here, whoever adds one later writes after us. */
	do {
		osd_lock(&exec->lock);
		record = job->record;
		osd_unlock(&exec->lock);
		status = osd_job_record_put(txn, &record);
		osd_lock(&exec->lock);
		same = record.flags == job->record.flags;
		osd_unlock(&exec->lock);
	} while (status == OSD_OK && !same);
	return status;
}

void osd_exec_request_end(struct osd_exec *exec, struct osd_job *job, uint16_t reason)
{
	if (job->end_reason ||
	    (job->record.state != OSD_STATE_STARTING && job->record.state != OSD_STATE_RUNNING))
		return;
	job->end_reason = reason;
	job->end_asked_usec = osd_monotonic_usec();
	osd_story_asked(job, reason);
	osd_wake(exec->monitor_wake);
}

void osd_job_show_progress(struct osd_job *job, uint64_t now_usec, bool force)
{
	if (!job->progress_waits ||
	    (!force && now_usec - job->progress_usec < OSD_JOB_PROGRESS_USEC))
		return;
	job->progress_waits = false;
	job->progress_usec = now_usec;
	job->record.progress = job->progress_next;
	memcpy(job->record.message, job->message_next, sizeof(job->message_next));
	osd_job_touch(job);
}
