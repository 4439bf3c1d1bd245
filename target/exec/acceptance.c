/* SPDX-License-Identifier: GPL-2.0-or-later */
/* acceptance.c -- see acceptance.h. */
#include "exec/acceptance.h"

#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/util.h"
#include "exec/rights.h"
#include "security/decide.h"
#include "wire/cursor.h"

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

/* exec->lock held.  A longer array would be BUSY for ever. */
static bool may_fit(const struct osd_pool *pool, const struct osd_exec_submission *submission)
{
	return osd_exec_array_members(submission->params) <=
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

	osd_lock(&exec->lock);
	pool = osd_pool_find_named(exec, name->bytes, name->length);
	if (!pool || !may_fit(pool, submission))
		status = OSD_E_CDB_FIELD;
	else if (!osd_pool_admits(&pool->config, submission->principal))
		status = OSD_E_POOL_ACCESS;
	osd_unlock(&exec->lock);
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
	osd_lock(&pool->exec->lock);
	memcpy(record->pool, pool->config.name, sizeof(record->pool));
	settled = osd_pool_settle_limits(&pool->config, &record->limits);
	osd_unlock(&pool->exec->lock);
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
		osd_sha256_add(&sha, params->array_ranges.bytes, params->array_ranges.length);
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

static void fill_tags(struct osd_acceptance *acceptance, const struct osd_exec_params *params)
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

/* Where the surrogate goes if nothing else is said. */
static uint64_t usual_partition(const struct osd_exec_submission *submission)
{
	uint64_t partition = submission->zone.partition_id;

	return partition ? partition : OSD_JOBS_PARTITION;
}

/* What a capability says of the zone it does not say of another partition, and without one that partition
 * must take NOSEC itself. */
static enum osd_status check_surrogate(const struct osd_exec *exec,
				       const struct osd_exec_submission *submission)
{
	uint64_t partition = submission->params->surrogate_partition;
	uint8_t least;
	enum osd_status status;

	if (partition == 0 || partition == usual_partition(submission))
		return OSD_OK;
	if (is_limited(submission))
		return OSD_E_CDB_FIELD;
	status = osd_least_method(exec->config.keyring, NULL, partition, &least);
	return status == OSD_OK && least != OSD_NOSEC ? OSD_E_CDB_FIELD : status;
}

/* Not further ahead than a record may be kept. */
static bool is_soon(const struct osd_exec_params *params)
{
	return params->begin_msec <=
	       osd_wall_msec() + osd_exec_limits[OSD_LIMIT_EXPIRY].maximum / 1000;
}

static enum osd_status fill_record(struct osd_acceptance *acceptance)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	const struct osd_exec_params *params = submission->params;
	struct osd_job_record *record = &acceptance->record;
	uint64_t now_msec = osd_wall_msec();
	bool later = params->begin_msec > now_msec;
	bool held = later || params->flags & OSD_EXEC_HOLD, waits = params->after_count > 0;

	*record = (struct osd_job_record){
		.generation = 1,
		.state = held ? OSD_STATE_HELD : OSD_STATE_QUEUED,
		.reason = later	  ? OSD_REASON_WAITS_FOR_TIME
			  : held  ? OSD_REASON_HELD
			  : waits ? OSD_REASON_WAITS_FOR_JOB
				  : OSD_REASON_WAITS_FOR_SLOT,
		.progress = OSD_JOB_PROGRESS_NONE,
		.submitted_msec = now_msec,
		.begin_msec = later ? params->begin_msec : 0,
		.zone.id = submission->zone,
		.keep_msec = (osd_exec_has(params, OSD_EXEC_PARAM_EXPIRY)
				      ? params->expiry_usec
				      : osd_exec_limits[OSD_LIMIT_EXPIRY].standard) /
			     1000,
		.client_flags = params->flags | (uint32_t)((params->grace_usec + 999) / 1000)
							<< OSD_JOB_GRACE_SHIFT,
		.flags = (params->flags & OSD_EXEC_IDEMPOTENT ? OSD_JOB_IDEMPOTENT : 0) |
			 (waits ? OSD_JOB_AFTER : 0) | (osd_exec_array_members(params) ? OSD_JOB_ARRAY : 0) |
			 (params->array_ranges.length ? OSD_JOB_RANGES : 0),
		.array = {.index = params->array_first,
			  .count = osd_exec_array_members(params),
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

enum osd_status osd_acceptance_fill(struct osd_acceptance *acceptance)
{
	const struct osd_exec_submission *submission = acceptance->submission;
	struct osd_exec *exec = acceptance->exec;
	enum osd_status status;

	if (submission->code_length == 0 ||
	    submission->code_length > osd_exec_limits[OSD_LIMIT_CODE].maximum ||
	    !supported(submission->params) || !is_soon(submission->params))
		return OSD_E_CDB_FIELD;
	status = check_surrogate(exec, submission);
	if (status != OSD_OK)
		return status;
	if (osd_exec_code_form(submission->params->flags) & OSD_CODE_BYTECODE &&
	    !exec->config.allow_bytecode)
		return OSD_E_BYTECODE;
	status = find_pool(exec, submission, &acceptance->pool);
	return status == OSD_OK ? fill_record(acceptance) : status;
}
