/* SPDX-License-Identifier: GPL-2.0-or-later */
/* submit.c -- the acceptance of a job.  It makes the record (acceptance.c) and
 * reserves a place in the queue.  One transaction then creates the surrogate and stores everything
 * a restart needs.  Then the job is queued. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/acceptance.h"
#include "exec/target.h"
#include "function/function.h"
#include "security/security.h"

#define CLOSED_MSEC	 10000	     /* until a pool may be open again: longer than any queue */
#define KEPT_CONTENT_MAX (16u << 10) /* arguments and code kept in memory while the job waits */

/* ---- the accepting transaction --------------------------------------------------------------- */

/* The predecessor must exist and belong to the submitter. */
static enum osd_status check_predecessor(struct osd_exec *exec, struct osd_txn *txn,
					 const struct osd_job_record *record)
{
	struct osd_job_record predecessor;

	return record->predecessor.object_id == 0
		       ? OSD_OK
		       : osd_exec_find_own(exec, txn, record->predecessor, record, &predecessor);
}

/* The transaction must be run again, perhaps with another id, but the sandbox has received the
 * first one. */
static void start_later(struct osd_acceptance *acceptance)
{
	struct osd_exec *exec = acceptance->exec;

	osd_lock(&exec->lock);
	osd_start_undo(OSD_STEAL(acceptance->run), acceptance->pool, &acceptance->record);
	osd_unlock(&exec->lock);
}

/* The size of what is stored besides record, code and arguments. */
static size_t payload_bytes(const struct osd_acceptance *acceptance)
{
	size_t waits_for = acceptance->job->after ? acceptance->job->after->count : 0;

	return acceptance->tags_length + waits_for * OSD_JOB_AFTER_BYTES +
	       acceptance->submission->array.ranges.length;
}

/* Everything that a restart needs, once the surrogate has its id. */
static enum osd_status store_job(struct osd_acceptance *acceptance, struct osd_txn *txn)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	const struct osd_after *after = acceptance->job->after;
	struct osd_job_record *record = &acceptance->record;
	enum osd_status status =
		osd_job_charge_accepted(acceptance->exec, txn, record, payload_bytes(acceptance));

	if (status == OSD_OK && acceptance->run)
		osd_start_send_ahead(acceptance->run, acceptance->job, record);
	if (status == OSD_OK)
		status = osd_job_record_put(txn, record);
	if (status == OSD_OK)
		status = osd_job_code_put(txn, record, submission->args.bytes, submission->code);
	if (status == OSD_OK && acceptance->tags_length)
		status = osd_job_payload_put(txn, record->id, OSD_PAYLOAD_TAGS, acceptance->tags,
					     acceptance->tags_length);
	if (status == OSD_OK && after)
		status = osd_after_put(txn, record->id, after);
	if (status == OSD_OK && record->flags & OSD_JOB_RANGES)
		status = osd_job_payload_put(txn, record->id, OSD_PAYLOAD_INDICES,
					     submission->array.ranges.bytes,
					     submission->array.ranges.length);
	if (status == OSD_OK && record->key_length)
		status = osd_job_key_put(txn, record);
	/* Another submission with this key was faster: find its job. */
	return status == OSD_E_EXISTS ? OSD_E_CONFLICT : status;
}

static enum osd_status accept_in(struct osd_txn *txn, void *arg)
{
	struct osd_acceptance *acceptance = arg;
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_job_record *record = &acceptance->record;
	enum osd_status status;

	if (acceptance->run && acceptance->run->sent)
		start_later(acceptance);
	status = osd_object_type_of(txn, record->zone.id, &record->zone.type);
	if (status == OSD_OK && record->key_length)
		status = osd_repeated_find(txn, acceptance);
	if (status != OSD_OK || acceptance->existing)
		return status;
	status = check_predecessor(acceptance->exec, txn, record);
	if (status == OSD_OK && acceptance->job->after)
		status = osd_after_check(acceptance->exec, txn, acceptance->job->after, record);
	if (status == OSD_OK)
		status =
			osd_surrogate_create(acceptance->exec, txn, submission->surrogate_partition,
					     submission->surrogate_id, record);
	return status == OSD_OK ? store_job(acceptance, txn) : status;
}

/* Straight into the memory of the sandbox, if the job starts at once. */
static enum osd_status fill_args(struct osd_acceptance *acceptance)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	size_t length = (size_t)submission->args.length;
	struct osd_job *job = acceptance->job;
	struct osd_run *run = acceptance->run;
	uint8_t *placed = run ? osd_run_place_args(run, job, &acceptance->record) : NULL;
	enum osd_status status;

	if (!placed)
		job->content = malloc(length + 1);
	if (!placed && !job->content)
		return OSD_E_NO_MEMORY;
	status = submission->fill_args(submission->arg, placed ? placed : job->content);
	if (placed && status != OSD_OK)
		osd_run_clear_args(run, length);
	return status;
}

/* Nothing is stored.  No object has an id in the root. */
static enum osd_status accept_plain(struct osd_acceptance *acceptance)
{
	struct osd_job_record *record = &acceptance->record;

	record->zone.type = acceptance->submission->zone_type;
	record->id = (struct osd_object_id){0, record->sequence};
	return acceptance->job->args_follow ? fill_args(acceptance) : OSD_OK;
}

/* ---- before and after ------------------------------------------------------------------------ */

/* A plain call has its content only here.  False: no memory for it. */
static bool keep_content(struct osd_job *job, const struct osd_exec_submission *submission)
{
	const struct osd_exec_text *args = &submission->args;
	size_t code = submission->plain ? 0 : submission->code_length, total = args->length + code;

	if (submission->plain)
		job->code = osd_function_code_ref(submission->function_code);
	job->args_follow = submission->fill_args;
	if (job->args_follow)
		return true;
	if (submission->owned_args) {
		job->content = OSD_STEAL(*submission->owned_args);
		return true;
	}
	job->content = total <= KEPT_CONTENT_MAX || submission->plain ? malloc(total + 1) : NULL;
	if (!job->content)
		return !submission->plain;
	if (args->length)
		memcpy(job->content, args->bytes, args->length);
	if (code)
		memcpy(job->content + args->length, submission->code, code);
	return true;
}

/* False: no memory for it. */
static bool keep_audience(struct osd_job *job, const struct osd_exec_submission *submission)
{
	bool named = submission->audience && osd_principal_is_named(submission->audience);

	job->audience = named ? strdup(submission->audience) : NULL;
	return job->audience || !named;
}

/* exec->lock held, nothing reserved yet.  Why the submission is refused; OSD_REFUSAL_COUNT: it is
 * not. */
static enum osd_refusal refusal_of(const struct osd_pool *pool,
				   const struct osd_exec_submission *submission)
{
	const bool synchronous = submission->done;

	osd_assert_held(&pool->exec->lock);
	if (pool->exec->pools->shedding && !submission->for_script)
		return OSD_REFUSAL_SHED;
	if (pool->mode == OSD_POOL_DRAINING && !submission->for_script)
		return OSD_REFUSAL_DRAINING;
	if (synchronous && pool->mode == OSD_POOL_PAUSED)
		return OSD_REFUSAL_PAUSED;
	return synchronous && !osd_pool_may_run(pool) ? OSD_REFUSAL_SERVICE : OSD_REFUSAL_COUNT;
}

static const char *payer_of(const struct osd_exec_submission *submission)
{
	return submission->payer ? submission->payer : submission->principal;
}

static enum osd_status reserve_wait(struct osd_acceptance *acceptance)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	const struct osd_exec_wait wanted = {
		.done = submission->done,
		.arg = submission->arg,
		.aborted = submission->aborted,
		.end_on_abort = submission->flags & OSD_EXEC_END_ON_ABORT,
		.plain = submission->plain,
	};

	osd_assert_held(&acceptance->exec->lock);
	return osd_exec_wait_reserve(acceptance->exec, &wanted, payer_of(submission),
				     submission->sync_wait_usec, &acceptance->wait);
}

/* exec->lock held.  OSD_OK, or why the client has the job back. */
static enum osd_status give_back(struct osd_acceptance *acceptance,
				 struct osd_exec_refusal *refusal)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_pool *pool = acceptance->pool;
	struct osd_job_record *record = &acceptance->record;
	const struct osd_job_offload *offload = &record->offload;
	enum osd_status status = OSD_OK;

	osd_assert_held(&acceptance->exec->lock);
	if (osd_pool_refuses_work(pool, record))
		status = OSD_E_PUSHED_BACK;
	else if (!submission->for_script && !acceptance->job->after &&
		 osd_pool_would_be_late(pool, record))
		status = OSD_E_LATE;
	if (status != OSD_OK)
		refusal->numbers = (struct osd_advice_numbers){
			offload->near_usec, offload->wait_usec, offload->weighed_usec};
	if (status == OSD_E_LATE)
		refusal->deadline_usec = pool->config.deadline_usec;
	return status;
}

/* exec->lock held.  Takes places in the queue and, if synchronous, a place among the waits: all, or none. */
static enum osd_status take_places(struct osd_acceptance *acceptance)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_exec *exec = acceptance->exec;
	struct osd_pool *pool = acceptance->pool;
	struct osd_job *job = acceptance->job;
	size_t places = OSD_MAX(acceptance->record.array.count, 1u);
	enum osd_status status = OSD_OK;

	osd_assert_held(&exec->lock);
	if (submission->done) {
		status = reserve_wait(acceptance);
		if (status == OSD_E_QUEUE_FULL)
			acceptance->refusal = OSD_REFUSAL_WAITS;
	}
	if (status == OSD_OK) {
		status = osd_pool_reserve(pool, payer_of(submission), places,
					  submission->for_script, &job->entry);
		if (status == OSD_E_QUEUE_FULL)
			acceptance->refusal = osd_pool_is_full(pool, places)
						      ? OSD_REFUSAL_QUEUE
						      : OSD_REFUSAL_PRINCIPAL;
	}
	if (status == OSD_OK)
		status = osd_after_watch(exec, job);
	if (status != OSD_OK) {
		job->kind->unplace(job);
		osd_exec_wait_drop(exec, OSD_STEAL(acceptance->wait));
	}
	return status;
}

/* exec->lock held.  Gives the job its places and its number, and a sandbox if it need not wait. */
static enum osd_status reserve(struct osd_acceptance *acceptance, struct osd_exec_refusal *refusal)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_exec *exec = acceptance->exec;
	struct osd_pool *pool = acceptance->pool;
	struct osd_job *job = acceptance->job;
	enum osd_status status;

	osd_assert_held(&exec->lock);
	refusal->queue_depth = pool->queue.place_count;
	refusal->retry_after_msec = osd_pool_retry_after(pool);
	if (exec->formatting)
		return OSD_E_NOT_READY;
	if (exec->sandboxes->isolation_refused)
		return OSD_E_ISOLATION;
	if (!osd_pool_settle_limits(&pool->config, &acceptance->record.limits))
		return OSD_E_CDB_FIELD; /* the limits have just been lowered */
	acceptance->refusal = refusal_of(pool, submission);
	if (acceptance->refusal == OSD_REFUSAL_PAUSED ||
	    acceptance->refusal == OSD_REFUSAL_DRAINING)
		refusal->retry_after_msec = CLOSED_MSEC;
	if (acceptance->refusal != OSD_REFUSAL_COUNT)
		return OSD_E_QUEUE_FULL;
	status = give_back(acceptance, refusal);
	if (status == OSD_OK)
		status = take_places(acceptance);
	if (status != OSD_OK)
		return status;
	acceptance->record.sequence = job->entry.sequence = exec->next_sequence;
	job->entry.accepted_usec = osd_monotonic_usec();
	exec->next_sequence += 1 + acceptance->record.array.count;
	job->entry.priority = acceptance->record.priority;
	job->reads_once = submission->reads_once;
	job->entry.lendable = submission->stage && submission->function.access == OSD_JOB_NO_ACCESS;
	acceptance->run = osd_start_claim(job, &acceptance->record);
	if (acceptance->run)
		acceptance->run->lingers = submission->plain && submission->lingers;
	return OSD_OK;
}

/* The job is in the store: puts it into memory, or uses the earlier job. */
static void admit(struct osd_acceptance *acceptance)
{
	struct osd_exec *exec = acceptance->exec;
	struct osd_job *job = acceptance->job;
	struct osd_run *run = acceptance->existing ? NULL : acceptance->run;
	bool ended;

	if (!acceptance->existing && job->array)
		osd_array_fill(job->array, &acceptance->record);
	if (!acceptance->existing)
		osd_story_accepted(job, &acceptance->record);
	osd_lock(&exec->lock);
	exec->accepting--;
	if (acceptance->existing) {
		osd_after_drop(exec, job);
		job->kind->unplace(job);
		if (acceptance->run)
			osd_start_give_back(acceptance->run, job->pool);
	} else {
		job->record = acceptance->record;
		osd_figures_arrived(exec, job);
		osd_exec_admit(exec, job);
		if (job->array)
			osd_array_admit(job->array);
		osd_after_admitted(job);
		if (run)
			osd_start_begin(run, job);
	}
	ended = acceptance->wait && !osd_exec_find(exec, acceptance->record.id);
	if (ended)
		osd_exec_wait_take(exec, acceptance->wait);
	else if (acceptance->wait)
		osd_exec_wait_start(exec, acceptance->wait, acceptance->record.id);
	osd_job_unref(job);
	osd_unlock(&exec->lock);
	if (run)
		osd_start_send(run);
	if (ended)
		osd_repeated_deliver(exec, acceptance->wait, &acceptance->record);
}

/* Loads the surrogate into memory: it will be polled, and commands on objects in memory do not
 * wait. */
static void warm_surrogate(struct osd_exec *exec, struct osd_object_id id)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;

	(void)osd_object_get(exec->objects, id, &object);
}

/* An earlier job answers, also when the queue is full. */
static enum osd_status answer_earlier(struct osd_acceptance *acceptance, struct osd_object_id *ret_job)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_exec *exec = acceptance->exec;
	enum osd_status status = OSD_OK;

	if (submission->done) {
		osd_lock(&exec->lock);
		status = reserve_wait(acceptance);
		if (status == OSD_OK)
			osd_exec_wait_take(exec, acceptance->wait);
		osd_unlock(&exec->lock);
	}
	if (status != OSD_OK)
		return status;
	*ret_job = acceptance->record.id;
	warm_surrogate(exec, *ret_job); /* the next one can be answered at once (remembered.c) */
	if (submission->cached)
		*submission->cached = true;
	if (!acceptance->wait)
		return OSD_OK;
	osd_repeated_deliver(exec, acceptance->wait, &acceptance->record);
	return OSD_PENDING;
}

static void take_back(struct osd_acceptance *acceptance, bool busy)
{
	struct osd_exec *exec = acceptance->exec;
	struct osd_job *job = acceptance->job;

	osd_lock(&exec->lock);
	exec->accepting--;
	if (busy && acceptance->refusal != OSD_REFUSAL_COUNT) {
		exec->pools->refused[acceptance->refusal]++;
		osd_principal_refused(exec, acceptance->record.principal);
	}
	if (acceptance->run)
		osd_start_give_back(acceptance->run, job->pool);
	osd_after_drop(exec, job);
	job->kind->unplace(job);
	osd_exec_wait_drop(exec, acceptance->wait);
	osd_job_unref(job);
	osd_unlock(&exec->lock);
}

static enum osd_status look_in(struct osd_txn *txn, void *arg)
{
	struct osd_acceptance *acceptance = arg;
	struct osd_zone *zone = &acceptance->record.zone;
	enum osd_status status = osd_object_type_of(txn, zone->id, &zone->type);

	return status == OSD_OK ? osd_repeated_find(txn, acceptance) : status;
}

/* No room for another job, or none is wanted, but this may be a repeated submission of an accepted one, sent
 * because the first answer was lost.  refused: the status if it is not. */
static enum osd_status find_when_busy(struct osd_acceptance *acceptance, enum osd_status refused)
{
	struct osd_exec *exec = acceptance->exec;
	enum osd_status status = osd_txn_run(exec->objects, OSD_TXN_READ_ONLY, look_in, acceptance);

	if (status != OSD_OK || !acceptance->existing)
		return status == OSD_E_JOB_KEY_CLASH ? status : refused;
	if (!acceptance->submission->done)
		return OSD_OK;
	osd_lock(&exec->lock);
	status = reserve_wait(acceptance);
	osd_unlock(&exec->lock);
	return status;
}

static enum osd_status make_job(struct osd_acceptance *acceptance)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	const struct osd_flow_request request = {
		.after = submission->after,
		.after_count = submission->after_count,
		.ranges = submission->array.ranges,
		.reuse_usec = submission->reuse_usec,
	};
	struct osd_job *job = osd_job_create(acceptance->exec, &acceptance->record, acceptance->pool);
	enum osd_status status = job ? osd_flow_prepare(job, &request) : OSD_E_NO_MEMORY;

	if (status == OSD_OK && (!keep_content(job, submission) || !keep_audience(job, submission)))
		status = OSD_E_NO_MEMORY;
	if (status != OSD_OK) {
		osd_job_unref(job);
		return status;
	}
	acceptance->job = job;
	return OSD_OK;
}

enum osd_status osd_exec_submit(struct osd_exec *exec, const struct osd_exec_submission *submission,
				struct osd_object_id *ret_job, struct osd_exec_refusal *ret_refusal)
{
	struct osd_acceptance acceptance = {
		.exec = exec, .submission = submission, .refusal = OSD_REFUSAL_COUNT};
	enum osd_status status = osd_acceptance_fill(&acceptance);

	*ret_refusal = (struct osd_exec_refusal){0};
	if (status == OSD_OK && osd_remembered_find(&acceptance))
		return answer_earlier(&acceptance, ret_job);
	if (status == OSD_OK)
		status = make_job(&acceptance);
	if (status != OSD_OK)
		return status;
	osd_lock(&exec->lock);
	exec->accepting++;
	status = reserve(&acceptance, ret_refusal);
	osd_unlock(&exec->lock);
	if (status == OSD_OK) {
		*ret_refusal = (struct osd_exec_refusal){0}; /* there is room */
		status = submission->plain ? accept_plain(&acceptance)
					   : osd_txn_run(exec->objects, OSD_TXN_INTERNAL,
							 accept_in, &acceptance);
	} else if ((status == OSD_E_QUEUE_FULL || status == OSD_E_PUSHED_BACK ||
		    status == OSD_E_LATE) &&
		   acceptance.record.key_length) {
		status = find_when_busy(&acceptance, status);
	}
	if (status != OSD_OK) {
		take_back(&acceptance, status == OSD_E_QUEUE_FULL);
		return status;
	}
	*ret_job = acceptance.record.id;
	if (!submission->done)
		warm_surrogate(exec, *ret_job);
	admit(&acceptance);
	return submission->done ? OSD_PENDING : OSD_OK;
}
