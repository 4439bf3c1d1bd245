/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job.c -- jobs in memory: references, table, transitions, requests to end (job.h).  The caller
 * holds exec->lock.  Elsewhere: all access to the store, and the queues, which belong to a job's
 * kind. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/job/job.h"
#include "function/function.h"

struct osd_job *osd_job_create(struct osd_exec *exec, const struct osd_job_record *record,
			       struct osd_pool *pool)
{
	struct osd_job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->exec = exec;
	job->kind = exec->ops->kind_of(record);
	job->record = *record;
	job->pool = pool;
	job->references = 1;
	job->accepted_usec = job->entry.since = osd_monotonic_usec();
	job->entry.accepted_usec = exec->opened_usec; /* jobs accepted later get a later time */
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
	job->kind->release(job);
	osd_job_unref(job->head);
	free(job->after);
	free(job->content);
	free(job->audience);
	osd_function_code_put(job->code);
	free(job);
}

struct osd_job *osd_exec_find(struct osd_exec *exec, struct osd_object_id id)
{
	struct osd_job_node *node = osd_job_table_find(&exec->table, id);

	return node ? osd_container_of(node, struct osd_job, node) : NULL;
}

struct osd_job *osd_exec_next_job(const struct osd_exec *exec, const struct osd_job *job)
{
	struct osd_job_node *node = osd_job_table_next(&exec->table, job ? &job->node : NULL);

	return node ? osd_container_of(node, struct osd_job, node) : NULL;
}

bool osd_exec_copy_record(struct osd_exec *exec, struct osd_object_id id,
			  struct osd_job_record *ret_record)
{
	const struct osd_job *job;

	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	if (job)
		*ret_record = job->record;
	osd_unlock(&exec->lock);
	return job != NULL;
}

static void undelay(struct osd_exec *exec, struct osd_job *job)
{
	struct osd_job **link = &exec->delayed;

	while (*link && *link != job)
		link = &(*link)->next_delayed;
	if (*link)
		*link = job->next_delayed;
}

void osd_exec_delay(struct osd_exec *exec, struct osd_job *job, uint64_t usec)
{
	undelay(exec, job); /* the head of an array, at each of its members that finds no memory */
	job->kind->paused(job);
	job->not_before_usec = osd_monotonic_usec() + usec;
	job->next_delayed = exec->delayed;
	exec->delayed = job;
	osd_wake(exec->monitor.wake);
}

void osd_exec_enqueue(struct osd_exec *exec, struct osd_job *job)
{
	undelay(exec, job); /* a release, or an aborted change, ends the delay */
	job->ready_usec = osd_monotonic_usec();
	if (job->kind->enqueue(job) != OSD_OK)
		osd_exec_delay(exec, job, OSD_NO_MEMORY_USEC);
}

void osd_exec_check_delayed(struct osd_exec *exec, uint64_t now_usec, uint64_t *deadline)
{
	for (struct osd_job **link = &exec->delayed; *link;) {
		struct osd_job *job = *link;

		if (job->not_before_usec > now_usec) {
			*deadline = OSD_MIN(*deadline, job->not_before_usec);
			link = &job->next_delayed;
			continue;
		}
		*link = job->next_delayed;
		job->next_delayed = NULL;
		if (job->record.state == OSD_STATE_QUEUED && !job->end_reason &&
		    !job->pending.txn) {
			job->record.reason = OSD_REASON_WAITS_FOR_SLOT;
			osd_exec_enqueue(exec, job);
			link = &exec->delayed; /* the call may have changed the list */
		}
	}
}

void osd_exec_admit(struct osd_exec *exec, struct osd_job *job)
{
	job->node.id = job->record.id;
	job->in_table = true;
	osd_job_table_insert(&exec->table, &job->node);
	osd_job_ref(job);
	job->kind->entered(job);
	job->kind->changed(job);
	if (job->record.state == OSD_STATE_QUEUED)
		osd_exec_enqueue(exec, job);
	else if (!(job->record.flags & OSD_JOB_ARRAY))
		exec->held_count += job->record.state == OSD_STATE_HELD;
	osd_exec_note_idle(exec, job);
	osd_exec_note_begin(exec, job);
}

void osd_exec_forget(struct osd_exec *exec, struct osd_job *job)
{
	if (!job->in_table)
		return;
	undelay(exec, job);
	job->kind->unqueue(job);
	job->kind->unplace(job);
	osd_job_table_remove(&exec->table, &job->node);
	job->in_table = false;
	job->kind->left(job);
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
	job->kind->changed(job);
	if (to == OSD_STATE_HELD)
		osd_exec_note_idle(exec, job);
	return true;
}

enum osd_status osd_job_write_live(struct osd_exec *exec, struct osd_txn *txn, struct osd_job *job)
{
	struct osd_job_record record;
	enum osd_status status;
	bool same;

	/* The first put locks the record.  A flag added before that was written by an earlier
	 * transaction, and is read here.  A flag added later is written by a later transaction. */
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
	pthread_cond_broadcast(&exec->changed);
	job->end_asked_usec = osd_monotonic_usec();
	osd_story_asked(job, reason);
	osd_wake(exec->monitor.wake);
}

/* ---- progress -------------------------------------------------------------------------------------- */

static bool is_due(const struct osd_job *job)
{
	return job->progress_waits &&
	       osd_monotonic_usec() >= job->progress_usec + OSD_JOB_PROGRESS_USEC;
}

static void put_progress(const struct osd_job *job, struct osd_job_record *record)
{
	record->progress = job->progress_next;
	memcpy(record->message, job->message_next, sizeof(job->message_next));
	record->generation += !job->recorded;
}

void osd_job_show_progress(struct osd_job *job)
{
	if (!job->progress_waits)
		return;
	job->progress_waits = false;
	job->progress_usec = osd_monotonic_usec();
	put_progress(job, &job->record);
}

void osd_job_touch(struct osd_job *job)
{
	if (is_due(job))
		osd_job_show_progress(job);
	job->record.generation += !job->recorded;
}

void osd_job_seen(const struct osd_job *job, struct osd_job_record *ret_record)
{
	*ret_record = job->record;
	if (is_due(job))
		put_progress(job, ret_record);
}

/* Progress may stay the same or become unknown, but never decreases. */
static uint16_t not_back(const struct osd_job *job, uint16_t progress)
{
	uint16_t before = job->progress_waits ? job->progress_next : job->record.progress;

	return before == OSD_JOB_PROGRESS_NONE ? progress : OSD_MAX(before, progress);
}

void osd_job_set_progress(struct osd_job *job, uint16_t progress, const uint8_t *message,
			  size_t length)
{
	if (is_due(job)) /* it may have been seen, under this generation */
		job->record.generation += !job->recorded;
	job->progress_next = not_back(job, progress);
	job->progress_waits = true;
	memcpy(job->message_next, message, length);
	job->message_next[length] = '\0';
	if (is_due(job))
		osd_job_show_progress(job);
}
