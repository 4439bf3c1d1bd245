/* SPDX-License-Identifier: GPL-2.0-or-later */
/* submit.c -- the acceptance of a job (design D11, D15): parameters checked, a place in the queue,
 * then one transaction that makes the surrogate and everything a restart needs, then the queue. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/util.h"
#include "exec/exec_impl.h"
#include "exec/proxy.h"
#include "exec/rights.h"
#include "exec/story.h"
#include "wire/cursor.h"

#define CLOSED_MSEC	 10000 /* until a pool may be open again: longer than any queue says */
#define KEPT_CONTENT_MAX (16u << 10) /* arguments and code kept in memory while the job waits */

/* One submission on its way. */
struct acceptance {
	struct osd_exec *exec;
	const struct osd_exec_submission *submission;
	struct osd_pool *pool;
	struct osd_job *job;
	struct osd_job_record record;
	struct osd_after *after; /* the job's; NULL: it waits for none */
	uint8_t tags[OSD_JOB_TAGS_MAX];
	size_t tags_length;
	bool existing;		  /* the key is known: record is the earlier job's */
	struct osd_run *run;	  /* it starts at once; NULL: it goes into the queue */
	enum osd_refusal refusal; /* why it is BUSY; OSD_REFUSAL_COUNT: it is not */
};

/* ---- parameters ------------------------------------------------------------------------------ */

static bool is_text(const struct osd_exec_text *text, const char *wanted)
{
	return text->length == strlen(wanted) && memcmp(text->bytes, wanted, text->length) == 0;
}

/* What this release does not do is refused, not ignored.  Sandboxes' CPython 3.11 reads no zstd. */
static bool supported(const struct osd_exec_params *params)
{
	if (osd_exec_has(params, OSD_EXEC_PARAM_ENGINE) && !is_text(&params->engine, "python"))
		return false;
	return (osd_exec_code_form(params->flags) & OSD_CODE_PACKING) != OSD_CODE_ZSTD;
}

/* Of an array; else 0. */
static uint32_t member_count(const struct osd_exec_params *params)
{
	return osd_exec_has(params, OSD_EXEC_PARAM_ARRAY)
		       ? params->array_last - params->array_first + 1
		       : 0;
}

/* exec->lock held.  A longer array would be BUSY for ever. */
static bool may_fit(const struct osd_pool *pool, const struct osd_exec_submission *submission)
{
	return member_count(submission->params) <=
	       OSD_MIN(osd_fair_queue_place_max(&pool->queue, submission->principal),
		       (size_t)pool->config.queue_max);
}

static enum osd_status find_pool(struct osd_exec *exec,
				 const struct osd_exec_submission *submission,
				 struct osd_pool **ret_pool)
{
	enum osd_status status = OSD_OK;
	const struct osd_exec_text *name = &submission->params->pool;
	struct osd_pool *pool;

	pthread_mutex_lock(&exec->lock);
	pool = osd_pool_find_named(exec, name->bytes, name->length);
	if (!pool || !may_fit(pool, submission))
		status = OSD_E_CDB_FIELD;
	else if (!osd_pool_admits(&pool->config, submission->principal))
		status = OSD_E_POOL_ACCESS;
	pthread_mutex_unlock(&exec->lock);
	*ret_pool = pool;
	return status;
}

/* The pool and what it allows, which an administrator may be changing. */
static bool fill_pool(struct osd_job_record *record, const struct osd_exec_params *params,
		      const struct osd_pool *pool)
{
	bool settled;

	record->limits = (struct osd_job_limits){
		.wall_usec = params->wall_usec,
		.cpu_usec = params->cpu_usec,
		.memory_bytes = params->memory_bytes,
		.processes = params->processes,
		.output_bytes = params->output_bytes,
		.open_files = params->open_files,
		.io_bytes = params->io_bytes,
	};
	pthread_mutex_lock(&pool->exec->lock);
	memcpy(record->pool, pool->config.name, sizeof(record->pool));
	settled = osd_pool_settle_limits(&pool->config, &record->limits);
	pthread_mutex_unlock(&pool->exec->lock);
	return settled;
}

static void fill_digests(struct osd_job_record *record,
			 const struct osd_exec_submission *submission)
{
	const struct osd_exec_params *params = submission->params;
	struct osd_sha256 sha;
	uint8_t head[21], named[20], array[12];

	osd_sha256_init(&sha);
	osd_sha256_add(&sha, submission->code, submission->code_length);
	osd_sha256_end(&sha, record->code_sha256);

	head[0] = (uint8_t)(record->args_encoding | osd_exec_code_form(params->flags) << 4);
	osd_put_be(head + 1, record->zone.id.partition_id, 8);
	osd_put_be(head + 9, record->zone.id.object_id, 8);
	osd_put_be(head + 17, params->args.length, 4);
	osd_sha256_init(&sha);
	osd_sha256_add(&sha, head, sizeof(head));
	osd_sha256_add(&sha, params->args.bytes, params->args.length);
	osd_sha256_add(&sha, record->code_sha256, sizeof(record->code_sha256));
	for (size_t i = 0; i < params->after_count; i++) {
		osd_put_be(named, params->after[i].partition_id, 8);
		osd_put_be(named + 8, params->after[i].object_id, 8);
		osd_put_be(named + 16, params->after[i].condition, 4);
		osd_sha256_add(&sha, named, sizeof(named));
	}
	if (record->array.count) {
		osd_put_be(array, record->array.index, 4);
		osd_put_be(array + 4, record->array.count, 4);
		osd_put_be(array + 8, record->array.at_once, 4);
		osd_sha256_add(&sha, array, sizeof(array));
	}
	osd_sha256_end(&sha, record->content_sha256);
}

static void copy_text(char *to, size_t capacity, const struct osd_exec_text *text)
{
	size_t length = OSD_MIN((size_t)text->length, capacity - 1);

	if (length)
		memcpy(to, text->bytes, length);
	to[length] = '\0';
}

static void fill_tags(struct acceptance *acceptance, const struct osd_exec_params *params)
{
	struct osd_wr w = osd_wr_init(acceptance->tags, sizeof(acceptance->tags));

	for (size_t i = 0; i < params->tag_count; i++) {
		osd_wr_bytes(&w, params->tags[i].bytes, params->tags[i].length);
		osd_wr_bytes(&w, "\n", 1);
	}
	acceptance->tags_length = osd_wr_used(&w);
}

/* Does it act under a capability? */
static bool is_limited(const struct osd_exec_submission *submission)
{
	return submission->grant && !submission->grant->open;
}

/* What a capability says of the zone it does not say of another partition. */
static bool may_have_surrogate(const struct osd_exec_submission *submission)
{
	uint64_t partition = submission->params->surrogate_partition;

	return !is_limited(submission) || partition == 0 ||
	       partition == (submission->zone.partition_id ? submission->zone.partition_id
							   : OSD_JOBS_PARTITION);
}

static enum osd_status fill_record(struct acceptance *acceptance)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	const struct osd_exec_params *params = submission->params;
	struct osd_job_record *record = &acceptance->record;
	bool held = params->flags & OSD_EXEC_HOLD, waits = params->after_count > 0;

	*record = (struct osd_job_record){
		.generation = 1,
		.state = held ? OSD_STATE_HELD : OSD_STATE_QUEUED,
		.reason = held	  ? OSD_REASON_HELD
			  : waits ? OSD_REASON_WAITS_FOR_JOB
				  : OSD_REASON_WAITS_FOR_SLOT,
		.progress = OSD_JOB_PROGRESS_NONE,
		.submitted_msec = osd_wall_msec(),
		.zone.id = submission->zone,
		.keep_msec = (osd_exec_has(params, OSD_EXEC_PARAM_EXPIRY)
				      ? params->expiry_usec
				      : osd_exec_limits[OSD_LIMIT_EXPIRY].standard) /
			     1000,
		.client_flags = params->flags | (uint32_t)((params->grace_usec + 999) / 1000)
							<< OSD_JOB_GRACE_SHIFT,
		.flags = (params->flags & OSD_EXEC_IDEMPOTENT ? OSD_JOB_IDEMPOTENT : 0) |
			 (waits ? OSD_JOB_AFTER : 0) | (member_count(params) ? OSD_JOB_ARRAY : 0),
		.array = {.index = params->array_first,
			  .count = member_count(params),
			  .at_once = params->array_at_once},
		.predecessor = {params->predecessor_partition, params->predecessor_id},
		.priority = params->priority,
		.args_encoding = (uint8_t)params->args_encoding,
		.args_length = params->args.length,
		.code_length = (uint32_t)submission->code_length,
		.key_length = (uint8_t)OSD_MIN(params->key.length, (uint32_t)OSD_JOB_KEY_MAX),
	};
	if (is_limited(submission)) {
		record->rights.limited = true;
		record->rights.grant = *submission->grant;
		osd_rights_stamp(acceptance->exec, &record->rights);
	}
	if (record->key_length)
		memcpy(record->key, params->key.bytes, record->key_length);
	copy_text(record->name, sizeof(record->name), &params->name);
	copy_text(record->principal, sizeof(record->principal),
		  &(struct osd_exec_text){(const uint8_t *)submission->principal,
					  (uint32_t)strlen(submission->principal)});
	fill_tags(acceptance, params);
	fill_digests(record, submission);
	return fill_pool(record, params, acceptance->pool) ? OSD_OK : OSD_E_CDB_FIELD;
}

/* ---- the accepting transaction --------------------------------------------------------------- */

/* Finds out what kind of zone the ids name. */
static enum osd_status find_zone(struct osd_txn *txn, struct osd_zone *zone)
{
	zone->type = OSD_ROOT;
	if (zone->id.partition_id == 0)
		return zone->id.object_id == 0 ? OSD_OK : OSD_E_NO_PARTITION;
	return osd_object_type(txn, zone->id, &zone->type);
}

/* The job that came before under the same key, if there is one. */
static enum osd_status find_earlier(struct osd_txn *txn, struct acceptance *acceptance)
{
	const struct osd_exec_params *params = acceptance->submission->params;
	struct osd_job_record wanted = acceptance->record, earlier;
	struct osd_object_id id;
	enum osd_status status;

	wanted.id.partition_id = params->surrogate_partition   ? params->surrogate_partition
				 : wanted.zone.id.partition_id ? wanted.zone.id.partition_id
							       : OSD_JOBS_PARTITION;
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

/* It must be known, and the submitter's own. */
static enum osd_status check_predecessor(struct osd_exec *exec, struct osd_txn *txn,
					 const struct osd_job_record *record)
{
	struct osd_job_record predecessor;

	return record->predecessor.object_id == 0
		       ? OSD_OK
		       : osd_exec_find_own(exec, txn, record->predecessor, record->principal,
					   &predecessor);
}

/* The transaction has to be tried again, with another id perhaps, and the sandbox has been told one. */
static void start_later(struct acceptance *acceptance)
{
	struct osd_exec *exec = acceptance->exec;

	pthread_mutex_lock(&exec->lock);
	osd_start_undo(OSD_STEAL(acceptance->run), acceptance->pool, &acceptance->record);
	pthread_mutex_unlock(&exec->lock);
}

static enum osd_status accept_in(struct osd_txn *txn, void *arg)
{
	struct acceptance *acceptance = arg;
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_job_record *record = &acceptance->record;
	bool made;
	enum osd_status status;

	if (acceptance->run && acceptance->run->sent)
		start_later(acceptance);
	status = find_zone(txn, &record->zone);
	if (status == OSD_OK && record->key_length)
		status = find_earlier(txn, acceptance);
	if (status != OSD_OK || acceptance->existing)
		return status;
	status = check_predecessor(acceptance->exec, txn, record);
	if (status == OSD_OK && acceptance->after)
		status = osd_after_check(acceptance->exec, txn, acceptance->after,
					 record->principal);
	if (status != OSD_OK)
		return status;
	status = osd_surrogate_create(txn, submission->params->surrogate_partition,
				      submission->params->surrogate_id, record);
	made = status == OSD_OK;
	if (made && acceptance->run)
		osd_start_send_ahead(acceptance->run, acceptance->job, record);
	if (status == OSD_OK)
		status = osd_job_record_put(txn, record);
	if (status == OSD_OK)
		status = osd_job_code_put(txn, record, submission->params->args.bytes,
					  submission->code);
	if (status == OSD_OK && acceptance->tags_length)
		status = osd_job_payload_put(txn, record->id, OSD_PAYLOAD_TAGS, acceptance->tags,
					     acceptance->tags_length);
	if (status == OSD_OK && acceptance->after)
		status = osd_after_put(txn, record->id, acceptance->after);
	if (status == OSD_OK && record->key_length)
		status = osd_job_key_put(txn, record);
	/* Another submission with this key was faster: look again. */
	return status == OSD_E_EXISTS && made ? OSD_E_RETRY : status;
}

/* ---- before and after ------------------------------------------------------------------------ */

static void keep_content(struct osd_job *job, const struct osd_exec_submission *submission)
{
	const struct osd_exec_text *args = &submission->params->args;
	size_t total = args->length + submission->code_length;

	job->content = total <= KEPT_CONTENT_MAX ? malloc(total) : NULL;
	if (!job->content)
		return;
	if (args->length)
		memcpy(job->content, args->bytes, args->length);
	memcpy(job->content + args->length, submission->code, submission->code_length);
}

uint32_t osd_exec_retry_after(const struct osd_pool *pool)
{
	uint64_t slots = OSD_MAX(pool->config.max, UINT64_C(1));

	return (uint32_t)OSD_MIN(20 + 5 * pool->queue.place_count / slots, UINT64_C(5000));
}

const char *osd_refusal_name(enum osd_refusal refusal)
{
	static const char *const names[] = {
		[OSD_REFUSAL_QUEUE] = "queue-full",
		[OSD_REFUSAL_PRINCIPAL] = "principal-full",
		[OSD_REFUSAL_WAITS] = "too-many-waits",
		[OSD_REFUSAL_SERVICE] = "no-sandboxes",
		[OSD_REFUSAL_PAUSED] = "paused",
		[OSD_REFUSAL_DRAINING] = "draining",
		[OSD_REFUSAL_SHED] = "shed",
	};

	return names[refusal];
}

/* exec->lock held.  Before anything is reserved; OSD_REFUSAL_COUNT: not at all. */
static enum osd_refusal refusal_of(const struct osd_exec *exec, const struct osd_pool *pool,
				   bool synchronous)
{
	if (exec->shedding)
		return OSD_REFUSAL_SHED;
	if (pool->mode == OSD_POOL_DRAINING)
		return OSD_REFUSAL_DRAINING;
	if (synchronous && pool->mode == OSD_POOL_PAUSED)
		return OSD_REFUSAL_PAUSED;
	return synchronous && !osd_pool_may_run(exec, pool) ? OSD_REFUSAL_SERVICE
							    : OSD_REFUSAL_COUNT;
}

/* exec->lock held.  Places in the queue and, if synchronous, one among the waits. */
static enum osd_status reserve(struct osd_exec *exec, struct acceptance *acceptance,
			       struct osd_job *job, struct osd_exec_wait **ret_wait,
			       struct osd_exec_refusal *refusal)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_pool *pool = acceptance->pool;
	enum osd_status status = OSD_OK;
	uint32_t members = acceptance->record.array.count;
	size_t places = members ? members : 1;

	refusal->queue_depth = pool->queue.place_count;
	refusal->retry_after_msec = osd_exec_retry_after(pool);
	if (exec->formatting)
		return OSD_E_NOT_READY;
	if (exec->pool.isolation_refused)
		return OSD_E_ISOLATION;
	if (!osd_pool_settle_limits(&pool->config, &acceptance->record.limits))
		return OSD_E_CDB_FIELD; /* they have just been lowered */
	acceptance->refusal = refusal_of(exec, pool, submission->done != NULL);
	if (acceptance->refusal == OSD_REFUSAL_PAUSED ||
	    acceptance->refusal == OSD_REFUSAL_DRAINING)
		refusal->retry_after_msec = CLOSED_MSEC;
	if (acceptance->refusal != OSD_REFUSAL_COUNT)
		return OSD_E_BUSY;
	if (submission->done) {
		status = osd_exec_wait_reserve(exec, submission, ret_wait);
		if (status == OSD_E_BUSY)
			acceptance->refusal = OSD_REFUSAL_WAITS;
	}
	if (status == OSD_OK) {
		status = osd_pool_reserve(pool, acceptance->record.principal, places, false,
					  &job->entry);
		if (status == OSD_E_BUSY)
			acceptance->refusal = osd_pool_is_full(pool, places)
						      ? OSD_REFUSAL_QUEUE
						      : OSD_REFUSAL_PRINCIPAL;
	}
	if (status == OSD_OK)
		status = osd_after_watch(exec, job);
	if (status != OSD_OK) {
		osd_exec_unplace(job);
		osd_exec_wait_drop(exec, OSD_STEAL(*ret_wait));
		return status;
	}
	acceptance->record.sequence = job->entry.sequence = exec->next_sequence;
	job->entry.accepted_usec = osd_monotonic_usec();
	exec->next_sequence += 1 + members;
	job->entry.priority = acceptance->record.priority;
	acceptance->run = osd_start_claim(job, &acceptance->record);
	return OSD_OK;
}

/* The end of a job that was there before, read when memory no longer knows it: it may have ended
 * since the accepting transaction saw it. */
struct ended {
	struct osd_job_record record;
	uint8_t result[OSD_JOB_PAYLOAD_MAX];
	size_t result_length;
};

static enum osd_status read_ended(struct osd_txn *txn, void *arg)
{
	struct ended *ended = arg;
	struct osd_object_id id = ended->record.id;
	enum osd_status status = osd_job_record_get(txn, id, &ended->record);

	if (status == OSD_OK)
		status = osd_job_payload_get(txn, id, OSD_PAYLOAD_RESULT, ended->result,
					     sizeof(ended->result), &ended->result_length);
	if (status == OSD_E_NO_OBJECT) /* no result, or the record is gone since: as it was found */
		ended->result_length = 0;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

/* A synchronous submission of a job that has ended already. */
static void deliver_ended(struct osd_exec *exec, struct osd_exec_wait *wait,
			  const struct osd_job_record *found)
{
	OSD_CLEANUP_FREE struct ended *ended = malloc(sizeof(*ended));
	struct osd_exec_outcome outcome = {.status = OSD_E_NO_MEMORY};

	if (ended) {
		ended->record = *found;
		outcome.status = osd_exec_transact(exec, OSD_TXN_READ_ONLY, read_ended, ended);
	}
	if (outcome.status == OSD_OK) {
		outcome.status = osd_job_reason_status(ended->record.reason);
		outcome.reason = ended->record.reason;
		outcome.result_object = ended->record.result_object;
		outcome.result = ended->result_length ? ended->result : NULL;
		outcome.result_length = ended->result_length;
	}
	wait->job = found->id;
	osd_exec_deliver(wait, outcome);
}

/* The job is in the store: into memory with it, or on to the earlier one. */
static void admit(struct osd_exec *exec, struct acceptance *acceptance, struct osd_job *job,
		  struct osd_exec_wait *wait)
{
	struct osd_exec_wait *ended = NULL;
	struct osd_run *run = NULL;

	if (job->array && !acceptance->existing)
		osd_array_fill(job->array, &acceptance->record);
	if (!acceptance->existing)
		osd_story_accepted(job, &acceptance->record);
	pthread_mutex_lock(&exec->lock);
	exec->accepting--;
	if (acceptance->existing) {
		osd_after_drop(exec, job);
		osd_exec_unplace(job);
		if (acceptance->run)
			osd_start_give_back(acceptance->run, job->pool);
	} else {
		job->record = acceptance->record;
		osd_figures_arrived(exec, job);
		osd_exec_admit(exec, job);
		if (job->array)
			osd_array_admit(exec, job->array);
		if (job->after)
			osd_after_admitted(exec, job);
		run = acceptance->run;
		if (run)
			osd_start_begin(run, job);
	}
	if (wait && osd_exec_find(exec, acceptance->record.id)) {
		osd_exec_wait_start(exec, wait, acceptance->record.id);
	} else if (wait) {
		ended = wait;
		exec->wait_count--;
	}
	osd_job_unref(job);
	pthread_mutex_unlock(&exec->lock);
	if (run)
		osd_start_send(run);
	if (ended)
		deliver_ended(exec, ended, &acceptance->record);
}

static void take_back(struct osd_exec *exec, struct acceptance *acceptance, struct osd_job *job,
		      struct osd_exec_wait *wait, bool busy)
{
	pthread_mutex_lock(&exec->lock);
	exec->accepting--;
	if (busy && acceptance->refusal != OSD_REFUSAL_COUNT) {
		exec->refused[acceptance->refusal]++;
		osd_principal_refused(exec, acceptance->record.principal);
	}
	if (acceptance->run)
		osd_start_give_back(acceptance->run, job->pool);
	osd_after_drop(exec, job);
	osd_exec_unplace(job);
	osd_exec_wait_drop(exec, wait);
	osd_job_unref(job);
	pthread_mutex_unlock(&exec->lock);
}

/* Into memory with the surrogate: it will be polled, and commands on objects in memory do not
 * wait. */
static void warm_surrogate(struct osd_exec *exec, struct osd_object_id id)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;

	if (osd_object_get(exec->objects, id, &object) != OSD_OK)
		object = NULL;
}

static enum osd_status look_in(struct osd_txn *txn, void *arg)
{
	struct acceptance *acceptance = arg;
	enum osd_status status = find_zone(txn, &acceptance->record.zone);

	return status == OSD_OK ? find_earlier(txn, acceptance) : status;
}

/* There is no room for another job, but this may be one that was accepted before: whoever had no answer
 * asks again. */
static enum osd_status find_when_busy(struct acceptance *acceptance,
				      struct osd_exec_wait **ret_wait)
{
	struct osd_exec *exec = acceptance->exec;
	enum osd_status status = osd_exec_transact(exec, OSD_TXN_READ_ONLY, look_in, acceptance);

	if (status != OSD_OK || !acceptance->existing)
		return status == OSD_E_JOB_KEY_CLASH ? status : OSD_E_BUSY;
	if (!acceptance->submission->done)
		return OSD_OK;
	pthread_mutex_lock(&exec->lock);
	status = osd_exec_wait_reserve(exec, acceptance->submission, ret_wait);
	pthread_mutex_unlock(&exec->lock);
	return status;
}

enum osd_status osd_exec_submit(struct osd_exec *exec, const struct osd_exec_submission *submission,
				struct osd_object_id *ret_job, struct osd_exec_refusal *ret_refusal)
{
	struct acceptance acceptance = {
		.exec = exec, .submission = submission, .refusal = OSD_REFUSAL_COUNT};
	struct osd_exec_wait *wait = NULL;
	struct osd_job *job;
	enum osd_status status;

	*ret_refusal = (struct osd_exec_refusal){0};
	if (submission->code_length == 0 ||
	    submission->code_length > osd_exec_limits[OSD_LIMIT_CODE].maximum ||
	    !supported(submission->params) || !may_have_surrogate(submission))
		return OSD_E_CDB_FIELD;
	if (osd_exec_code_form(submission->params->flags) & OSD_CODE_BYTECODE &&
	    !exec->config.allow_bytecode)
		return OSD_E_BYTECODE;
	status = find_pool(exec, submission, &acceptance.pool);
	if (status == OSD_OK)
		status = fill_record(&acceptance);
	if (status != OSD_OK)
		return status;
	job = osd_job_create(&acceptance.record, acceptance.pool);
	if (!job)
		return OSD_E_NO_MEMORY;
	status = osd_after_create(submission->params, &job->after);
	if (status == OSD_OK && acceptance.record.array.count)
		status = osd_array_create(job);
	if (status == OSD_OK && job->array)
		status = osd_array_prepare(job->array);
	if (status != OSD_OK) {
		osd_job_unref(job);
		return status;
	}
	acceptance.job = job;
	acceptance.after = job->after;
	keep_content(job, submission);
	pthread_mutex_lock(&exec->lock);
	exec->accepting++;
	status = reserve(exec, &acceptance, job, &wait, ret_refusal);
	pthread_mutex_unlock(&exec->lock);
	if (status == OSD_OK)
		status = osd_exec_transact(exec, OSD_TXN_INTERNAL, accept_in, &acceptance);
	else if (status == OSD_E_BUSY && acceptance.record.key_length)
		status = find_when_busy(&acceptance, &wait);
	if (status != OSD_OK) {
		take_back(exec, &acceptance, job, wait, status == OSD_E_BUSY);
		return status;
	}
	*ret_job = acceptance.record.id;
	if (!submission->done)
		warm_surrogate(exec, *ret_job);
	admit(exec, &acceptance, job, wait);
	return submission->done ? OSD_PENDING : OSD_OK;
}
