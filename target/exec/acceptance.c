/* SPDX-License-Identifier: GPL-2.0-or-later */
/* acceptance.c -- see acceptance.h. */
#include "exec/acceptance.h"

#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/session/session.h"
#include "exec/target.h"
#include "function/function.h"
#include "security/decide.h"
#include "security/mac.h"
#include "wire/cursor.h"

/* Refuses what this release does not support.  The sandboxes' CPython 3.11 cannot read zstd. */
static bool supported(const struct osd_exec_submission *submission)
{
	return (osd_exec_code_form(submission->flags) & OSD_CODE_PACKING) != OSD_CODE_ZSTD;
}

bool osd_exec_has_engine(void *arg, const char *engine)
{
	struct osd_exec *exec = arg;
	bool found;

	osd_lock(&exec->lock);
	found = osd_pool_find_engine(exec, NULL, engine, strlen(engine));
	osd_unlock(&exec->lock);
	return found;
}

/* exec->lock held.  An array longer than the queue would be BUSY for ever. */
static bool may_fit(const struct osd_pool *pool, const struct osd_exec_submission *submission)
{
	osd_assert_held(&pool->exec->lock);
	return submission->array.members <=
	       OSD_MIN(osd_fair_queue_place_max(&pool->queue, submission->principal),
		       (size_t)pool->config.queue_max);
}

static enum osd_status find_pool(struct osd_exec *exec,
				 const struct osd_exec_submission *submission,
				 struct osd_pool **ret_pool)
{
	enum osd_status status = OSD_OK;
	const struct osd_exec_text *name = &submission->pool, *engine = &submission->engine;
	const char *user = submission->definer ? submission->definer : submission->principal;
	struct osd_pool *named, *pool;

	osd_lock(&exec->lock);
	named = name->length ? osd_pool_find_named(exec, name->bytes, name->length) : NULL;
	pool = osd_pool_find_engine(exec, named, engine->bytes, engine->length);
	if (!pool && (named || !name->length))
		status = OSD_E_FUNCTION_ENGINE;
	else if (!pool || (name->length && !named) || !may_fit(pool, submission))
		status = OSD_E_CDB_FIELD;
	else if (osd_pool_is_native(&pool->config) && !submission->function.id.object_id)
		status = OSD_E_FUNCTION_UNSIGNED;
	else if (!submission->compile && !osd_pool_admits(&pool->config, user))
		status = OSD_E_POOL_ACCESS;
	osd_unlock(&exec->lock);
	*ret_pool = pool;
	return status;
}

/* Copies the pool's name, engine and limits, which an administrator may be changing. */
static bool fill_pool(struct osd_job_record *record, const struct osd_exec_submission *submission,
		      const struct osd_pool *pool)
{
	bool settled;

	record->limits = submission->limits;
	osd_lock(&pool->exec->lock);
	memcpy(record->pool, pool->config.name, sizeof(record->pool));
	if (osd_pool_is_native(&pool->config))
		record->flags |= OSD_JOB_NATIVE;
	settled = osd_pool_settle_limits(&pool->config, &record->limits);
	osd_unlock(&pool->exec->lock);
	return settled;
}

static void fill_digests(struct osd_job_record *record,
			 const struct osd_exec_submission *submission)
{
	struct osd_sha256 sha;
	uint8_t head[21], named[20], array[12];

	if (submission->function_code) {
		memcpy(record->code_sha256, submission->function_code->sha256,
		       sizeof(record->code_sha256));
	} else {
		osd_sha256_init(&sha);
		osd_sha256_add(&sha, submission->code, submission->code_length);
		osd_sha256_end(&sha, record->code_sha256);
	}

	if (submission->plain)
		return; /* no key names it: nothing compares its content */
	head[0] = (uint8_t)(record->args_encoding | osd_exec_code_form(submission->flags) << 4);
	osd_put_be(head + 1, record->zone.id.partition_id, 8);
	osd_put_be(head + 9, record->zone.id.object_id, 8);
	osd_put_be(head + 17, submission->args.length, 4);
	osd_sha256_init(&sha);
	osd_sha256_add(&sha, head, sizeof(head));
	osd_sha256_add(&sha, submission->args.bytes, submission->args.length);
	osd_sha256_add(&sha, record->code_sha256, sizeof(record->code_sha256));
	for (size_t i = 0; i < submission->after_count; i++) {
		osd_put_be(named, submission->after[i].partition_id, 8);
		osd_put_be(named + 8, submission->after[i].object_id, 8);
		osd_put_be(named + 16, submission->after[i].condition, 4);
		osd_sha256_add(&sha, named, sizeof(named));
	}
	if (record->array.count) {
		osd_put_be(array, record->array.index, 4);
		osd_put_be(array + 4, record->array.count, 4);
		osd_put_be(array + 8, record->array.at_once, 4);
		osd_sha256_add(&sha, array, sizeof(array));
		osd_sha256_add(&sha, submission->array.ranges.bytes,
			       submission->array.ranges.length);
	}
	osd_sha256_add(&sha, record->function.method, strlen(record->function.method));
	osd_sha256_end(&sha, record->content_sha256);
}

static void copy_text(char *to, size_t capacity, const struct osd_exec_text *text)
{
	size_t length = OSD_MIN((size_t)text->length, capacity - 1);

	if (length)
		memcpy(to, text->bytes, length);
	to[length] = '\0';
}

static void fill_tags(struct osd_acceptance *acceptance,
		      const struct osd_exec_submission *submission)
{
	struct osd_wr w = osd_wr_init(acceptance->tags, sizeof(acceptance->tags));

	for (size_t i = 0; i < submission->tag_count; i++) {
		osd_wr_bytes(&w, submission->tags[i].bytes, submission->tags[i].length);
		osd_wr_bytes(&w, "\n", 1);
	}
	acceptance->tags_length = osd_wr_used(&w);
}

/* Whether it acts under a capability. */
static bool is_limited(const struct osd_exec_submission *submission)
{
	return submission->grant && !submission->grant->open;
}

/* A surrogate with a chosen partition or id is an ordinary object, which CREATE permits.  A capability for the
 * zone gives no right in another partition.  Without a capability, that partition must accept NOSEC. */
static enum osd_status check_surrogate(const struct osd_exec *exec,
				       const struct osd_exec_submission *submission)
{
	uint64_t partition = submission->surrogate_partition;
	uint8_t least;
	enum osd_status status;

	if ((partition || submission->surrogate_id) && is_limited(submission) &&
	    !(submission->grant->capability.permissions & OSD_PERM_CREATE))
		return OSD_E_CDB_FIELD;
	if (partition == 0 || partition == osd_job_usual_partition(submission->zone))
		return OSD_OK;
	if (is_limited(submission))
		return OSD_E_CDB_FIELD;
	status = osd_least_method(exec->keyring, NULL, partition, &least);
	return status == OSD_OK && least != OSD_NOSEC ? OSD_E_CDB_FIELD : status;
}

/* Only a job or an array that runs at once, and whose surrogates are the target's to choose, can be answered with
 * earlier jobs. */
static bool may_reuse(const struct osd_exec_submission *submission)
{
	return !submission->reuse_usec ||
	       (!submission->plain && !submission->function.id.object_id &&
		!submission->after_count && !submission->begin_msec &&
		!(submission->flags & OSD_EXEC_HOLD) && !submission->surrogate_partition &&
		!submission->surrogate_id);
}

/* Whether the time is no further ahead than a record may be kept. */
static bool is_soon(const struct osd_exec_submission *submission)
{
	return submission->begin_msec <=
	       osd_wall_msec() + osd_exec_limits[OSD_LIMIT_EXPIRY].maximum / 1000;
}

/* enum osd_job_flags */
static uint32_t flags_of(const struct osd_exec_submission *submission)
{
	return (submission->flags & OSD_EXEC_IDEMPOTENT ? OSD_JOB_IDEMPOTENT : 0) |
	       (submission->after_count ? OSD_JOB_AFTER : 0) |
	       (submission->array.members ? OSD_JOB_ARRAY : 0) |
	       (submission->array.ranges.length ? OSD_JOB_RANGES : 0) |
	       (submission->plain ? OSD_JOB_PLAIN : 0) |
	       (submission->reuse_usec ? OSD_JOB_REUSABLE : 0) |
	       (submission->stage ? OSD_JOB_STAGE : 0) |
	       (submission->compile ? OSD_JOB_COMPILE : 0) | (submission->pure ? OSD_JOB_PURE : 0);
}

static struct osd_job_record record_of(const struct osd_exec_submission *submission)
{
	uint64_t now_msec = osd_wall_msec();
	bool later = submission->begin_msec > now_msec;
	bool held = later || submission->flags & OSD_EXEC_HOLD;

	return (struct osd_job_record){
		.generation = 1,
		.state = held ? OSD_STATE_HELD : OSD_STATE_QUEUED,
		.reason = later			    ? OSD_REASON_WAITS_FOR_TIME
			  : held		    ? OSD_REASON_HELD
			  : submission->after_count ? OSD_REASON_WAITS_FOR_JOB
						    : OSD_REASON_WAITS_FOR_SLOT,
		.progress = OSD_JOB_PROGRESS_NONE,
		.submitted_msec = now_msec,
		.begin_msec = later ? submission->begin_msec : 0,
		.zone.id = submission->zone,
		.keep_msec = (submission->keep_usec ? submission->keep_usec
						    : osd_exec_limits[OSD_LIMIT_EXPIRY].standard) /
			     1000,
		.client_flags = (submission->flags & OSD_JOB_FLAGS_KEPT) |
				(uint32_t)((submission->grace_usec + 999) / 1000)
					<< OSD_JOB_GRACE_SHIFT,
		.flags = flags_of(submission),
		.offload = {.home_usec = submission->home_usec,
			    .home_bytes = submission->home_bytes},
		.array = {.index = submission->array.first,
			  .count = submission->array.members,
			  .at_once = submission->array.at_once},
		.function = submission->function,
		.predecessor = submission->predecessor,
		.priority = submission->priority,
		.args_encoding = (uint8_t)submission->args_encoding,
		.args_length = submission->args.length,
		.code_length = (uint32_t)submission->code_length,
		.key_length = (uint8_t)OSD_MIN(submission->key.length, (uint32_t)OSD_JOB_KEY_MAX),
	};
}

static enum osd_status fill_record(struct osd_acceptance *acceptance)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_job_record *record = &acceptance->record;

	*record = record_of(submission);
	if (is_limited(submission)) {
		record->rights.limited = true;
		record->rights.grant = *submission->grant;
		osd_rights_stamp(acceptance->exec->keyring, &record->rights);
	}
	if (record->key_length)
		memcpy(record->key, submission->key.bytes, record->key_length);
	copy_text(record->name, sizeof(record->name), &submission->name);
	copy_text(record->principal, sizeof(record->principal),
		  &(struct osd_exec_text){(const uint8_t *)submission->principal,
					  (uint32_t)strlen(submission->principal)});
	fill_tags(acceptance, submission);
	fill_digests(record, submission);
	return fill_pool(record, submission, acceptance->pool) ? OSD_OK : OSD_E_CDB_FIELD;
}

enum osd_status osd_acceptance_fill(struct osd_acceptance *acceptance)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_exec *exec = acceptance->exec;
	enum osd_status status;

	if (submission->code_length == 0 ||
	    submission->code_length > osd_exec_limits[OSD_LIMIT_CODE].maximum ||
	    !supported(submission) || !is_soon(submission) || !may_reuse(submission))
		return OSD_E_CDB_FIELD;
	status = check_surrogate(exec, submission);
	if (status != OSD_OK)
		return status;
	if (osd_exec_code_form(submission->flags) & OSD_CODE_BYTECODE &&
	    !osd_target_of(exec)->config.allow_bytecode)
		return OSD_E_BYTECODE;
	status = find_pool(exec, submission, &acceptance->pool);
	return status == OSD_OK ? fill_record(acceptance) : status;
}
