/* SPDX-License-Identifier: GPL-2.0-or-later */
/* remembered.c -- an earlier job answers a submission, or a member of an array (target.h): the same principal, code,
 * arguments, zone, pool and package set, of a member also the same indices and place, and all objects that it read have
 * the versions that it read.  A submission gets the earlier job itself; a member, which has a surrogate already, gets a
 * copy of the result.
 *
 * The thread of a front end answers at once if there is no capability, and all that is compared is in memory.
 *
 * What is known of earlier jobs is in memory alone, and lost when the target ends: another interpreter may serve
 * then.  The inputs come from the list of the job's record.  Their versions are asked for by calls of a session with
 * the rights of the new submission, as its script would ask: what it may not read now, it is not told. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "exec/acceptance.h"
#include "exec/target.h"
#include "object/stack.h"
#include "object/txn_run.h"
#include "security/mac.h"

/* A submission finds its earlier job here, by digest.  A later job with the same place replaces it. */
struct osd_remembered {
	uint8_t digest[32];
	struct osd_object_id job; /* object 0: free */
	uint64_t sequence;
};

static void digest_of(const struct osd_job_record *record, uint8_t digest[32])
{
	struct osd_sha256 sha;
	uint8_t index[4];

	osd_put_be(index, record->array.index, sizeof(index));
	osd_sha256_init(&sha);
	osd_sha256_add(&sha, index, sizeof(index));
	osd_sha256_add(&sha, record->principal, strlen(record->principal) + 1);
	osd_sha256_add(&sha, record->pool, strlen(record->pool) + 1);
	osd_sha256_add(&sha, record->content_sha256, sizeof(record->content_sha256));
	osd_sha256_end(&sha, digest);
}

static struct osd_remembered *place_of(struct osd_exec *exec, const uint8_t digest[32])
{
	osd_assert_held(&exec->lock);
	return &osd_target_of(exec)->remembered[osd_get_be(digest, 4) % OSD_REMEMBERED_MAX];
}

bool osd_remembered_init(struct osd_target *target)
{
	target->remembered = calloc(OSD_REMEMBERED_MAX, sizeof(*target->remembered));
	return target->remembered;
}

void osd_remember(struct osd_exec *exec, const struct osd_job_record *record)
{
	const uint32_t wanted = OSD_JOB_REUSABLE | OSD_JOB_LISTED;
	struct osd_remembered entry = {.job = record->id, .sequence = record->sequence};

	if (record->state != OSD_STATE_COMPLETED || (record->flags & wanted) != wanted ||
	    record->flags & OSD_JOB_ANSWERED || record->used_length > OSD_JOB_USED_PIECE)
		return; /* one that was answered is no younger than the answer */
	digest_of(record, entry.digest);
	*place_of(exec, entry.digest) = entry;
}

/* ---- the earlier job ------------------------------------------------------------------------- */

struct earlier {
	struct osd_exec *exec;
	const struct osd_job_record *wanted; /* of the submission or the member */
	const struct osd_pool *pool;
	uint64_t reuse_usec;
	struct osd_remembered entry;
	char set[OSD_JOB_SET_MAX + 1]; /* that the pool has now */
	struct osd_job_record record;
	uint8_t list[OSD_JOB_USED_PIECE], result[OSD_JOB_PAYLOAD_MAX];
	size_t list_length, result_length;
};

/* Its large members stay as they are until they are loaded.  NULL: no memory. */
static struct earlier *earlier_for(struct osd_exec *exec, const struct osd_job_record *wanted,
				   const struct osd_pool *pool, uint64_t reuse_usec)
{
	struct earlier *earlier = malloc(sizeof(*earlier));

	if (!earlier)
		return NULL;
	earlier->exec = exec;
	earlier->wanted = wanted;
	earlier->pool = pool;
	earlier->reuse_usec = reuse_usec;
	earlier->list_length = earlier->result_length = 0;
	return earlier;
}

static bool look_up(struct earlier *earlier)
{
	struct osd_exec *exec = earlier->exec;
	uint8_t digest[32];

	digest_of(earlier->wanted, digest);
	osd_lock(&exec->lock);
	earlier->entry = *place_of(exec, digest);
	memcpy(earlier->set, earlier->pool->config.set, sizeof(earlier->set));
	osd_unlock(&exec->lock);
	return earlier->entry.job.object_id &&
	       memcmp(earlier->entry.digest, digest, sizeof(digest)) == 0;
}

/* The zone may have been removed, and another object made with its id. */
static enum osd_status check_zone_type(struct osd_txn *txn, const struct osd_zone *zone)
{
	enum osd_object_type type;
	enum osd_status status = osd_object_type_of(txn, zone->id, &type);

	return status == OSD_OK && type != zone->type ? OSD_E_NO_OBJECT : status;
}

static enum osd_status load(struct osd_txn *txn, void *arg)
{
	struct earlier *earlier = arg;
	enum osd_status status = osd_job_record_get(txn, earlier->entry.job, &earlier->record);

	earlier->list_length = 0;
	if (status == OSD_OK && earlier->record.used_length)
		status = osd_job_used_get(txn, earlier->entry.job, 0, earlier->list,
					  sizeof(earlier->list), &earlier->list_length);
	return status == OSD_OK ? check_zone_type(txn, &earlier->record.zone) : status;
}

static bool is_fit(const struct earlier *earlier)
{
	const struct osd_job_record *record = &earlier->record;
	uint64_t now = osd_wall_msec(), age = now - OSD_MIN(now, record->ended_msec);

	return record->sequence == earlier->entry.sequence &&
	       earlier->list_length == record->used_length && age <= earlier->reuse_usec / 1000 &&
	       strcmp(record->set, earlier->set) == 0;
}

/* ---- its inputs ------------------------------------------------------------------------------ */

static bool is_current(struct osd_session *session, const struct osd_used_entry *input, uint8_t *body)
{
	uint32_t kind = input->kinds & OSD_USED_VERSIONED;
	const struct osd_call call = {
		.op = kind == OSD_USED_DATA ? OSD_CALL_LENGTH : OSD_CALL_LIST,
		.partition_id = input->id.partition_id,
		.object_id = input->id.object_id,
		.a = kind == OSD_USED_DATA ? 0 : OSD_LIST_MEMBERS,
	};
	uint8_t frame[OSD_FRAME_BYTES], answer[OSD_FRAME_BYTES];
	const struct osd_used_entry *now;

	if (osd_rights_have_range(session, input->id))
		return false;
	osd_call_encode(&call, frame);
	if (osd_session_serve(session, frame, body, answer, body) != OSD_SERVED)
		return false;
	now = osd_used_find(&session->used, input->id);
	return now && now->kinds == kind && osd_same_version(now->version, input->version);
}

static bool are_current(struct osd_session *session, const struct osd_used *inputs)
{
	OSD_CLEANUP_FREE uint8_t *body = malloc(OSD_BODY_MAX);

	if (!body || osd_rights_ended(session))
		return false;
	for (uint32_t i = 0; i < inputs->count; i++)
		if (!is_current(session, &inputs->entries[i], body))
			return false;
	return true;
}

static bool inputs_are_current(struct earlier *earlier)
{
	struct osd_exec *exec = earlier->exec;
	struct osd_session session = {
		.objects = exec->objects,
		.host = &exec->runs->host,
		.zone = earlier->record.zone,
		.limits = {.io_bytes = UINT64_MAX},
		.rights = earlier->wanted->rights,
		.shares_lock = OSD_SESSION_SHARES_LOCK,
		.policy_seen = UINT64_MAX,
	};
	struct osd_used inputs = {0};
	bool current = osd_session_init(&session) == OSD_OK;

	if (current && earlier->list_length)
		current = osd_used_decode(earlier->list, earlier->list_length, &inputs) == OSD_OK;
	current = current && osd_used_is_versioned(&inputs) && are_current(&session, &inputs);
	osd_used_release(&inputs);
	osd_session_release(&session);
	return current;
}

static bool finds(struct earlier *earlier)
{
	struct osd_objects *objects = earlier->exec->objects;

	return look_up(earlier) &&
	       osd_txn_run(objects, OSD_TXN_READ_ONLY, load, earlier) == OSD_OK &&
	       is_fit(earlier) && inputs_are_current(earlier);
}

bool osd_remembered_find(struct osd_acceptance *acceptance)
{
	OSD_CLEANUP_FREE struct earlier *earlier = NULL;
	uint64_t reuse_usec = acceptance->submission->reuse_usec;

	if (!reuse_usec || acceptance->record.array.count)
		return false;
	earlier = earlier_for(acceptance->exec, &acceptance->record, acceptance->pool, reuse_usec);
	if (!earlier || !finds(earlier))
		return false;
	acceptance->existing = true;
	acceptance->record = earlier->record;
	return true;
}

/* ---- at once --------------------------------------------------------------------------------- */

#define AT_ONCE_INPUTS_MAX 16u

static enum osd_status load_result(struct osd_txn *txn, void *arg)
{
	struct earlier *earlier = arg;

	return osd_job_payload_get(txn, earlier->record.id, OSD_PAYLOAD_RESULT, earlier->result,
				   sizeof(earlier->result), &earlier->result_length);
}

/* Whether the input is an object in memory, in the zone, that has the version that was read. */
static enum osd_status compare_at_once(struct earlier *earlier, struct osd_txn *txn,
				       const struct osd_used_entry *input)
{
	struct osd_session session = {.objects = earlier->exec->objects,
				      .host = &earlier->exec->runs->host,
				      .zone = earlier->record.zone};
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_data_version now;
	enum osd_status status;
	uint64_t length;

	if ((input->kinds & OSD_USED_VERSIONED) != OSD_USED_DATA)
		return OSD_E_WOULD_BLOCK;
	status = osd_object_get_cached(earlier->exec->objects, input->id, &object);
	if (status == OSD_OK && osd_object_is_stacked(object))
		return OSD_E_WOULD_BLOCK; /* functions make its data */
	if (status == OSD_OK)
		status = osd_session_check_zone(&session, txn, input->id);
	if (status == OSD_OK)
		status = osd_object_state_at_once(object, &length, &now);
	return status == OSD_OK && !osd_same_version(now, input->version) ? OSD_E_VERSION : status;
}

/* As load(), and all that the answer needs. */
static enum osd_status load_at_once(struct osd_txn *txn, struct earlier *earlier)
{
	struct osd_used inputs = {0};
	enum osd_status status = load(txn, earlier);

	if (status == OSD_OK && !is_fit(earlier))
		status = OSD_E_VERSION;
	if (status == OSD_OK && earlier->record.result_length)
		status = load_result(txn, earlier);
	if (status == OSD_OK && earlier->list_length)
		status = osd_used_decode(earlier->list, earlier->list_length, &inputs);
	if (status == OSD_OK &&
	    (inputs.count > AT_ONCE_INPUTS_MAX || !osd_used_is_versioned(&inputs)))
		status = OSD_E_WOULD_BLOCK;
	for (uint32_t i = 0; status == OSD_OK && i < inputs.count; i++)
		status = compare_at_once(earlier, txn, &inputs.entries[i]);
	osd_used_release(&inputs);
	return status;
}

/* The record of a surrogate in memory is most likely in memory, too. */
static bool finds_at_once(struct earlier *earlier)
{
	struct osd_objects *objects = earlier->exec->objects;
	OSD_CLEANUP(osd_object_putp) struct osd_object *surrogate = NULL;
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;

	return look_up(earlier) &&
	       osd_object_get_cached(objects, earlier->entry.job, &surrogate) == OSD_OK &&
	       osd_txn_begin(objects, OSD_TXN_READ_ONLY | OSD_TXN_NOWAIT, &txn) == OSD_OK &&
	       load_at_once(txn, earlier) == OSD_OK &&
	       earlier->result_length == earlier->record.result_length;
}

enum osd_status osd_exec_answer_at_once(struct osd_exec *exec,
					const struct osd_exec_submission *submission)
{
	struct osd_acceptance acceptance = {.exec = exec, .submission = submission};
	OSD_CLEANUP_FREE struct earlier *earlier = NULL;
	struct osd_exec_outcome outcome = {.status = OSD_OK};

	if (!submission->reuse_usec || submission->array.members || !submission->zone.partition_id ||
	    !submission->grant->open || submission->surrogate_partition ||
	    osd_acceptance_fill(&acceptance) != OSD_OK)
		return OSD_E_WOULD_BLOCK;
	earlier = earlier_for(exec, &acceptance.record, acceptance.pool, submission->reuse_usec);
	if (!earlier || !finds_at_once(earlier))
		return OSD_E_WOULD_BLOCK;
	outcome.job = earlier->record.id;
	outcome.result = earlier->result_length ? earlier->result : NULL;
	outcome.result_length = earlier->result_length;
	outcome.whole_length = earlier->record.result_length;
	outcome.form = osd_job_result_form(&earlier->record);
	*submission->cached = true;
	submission->done(submission->arg, &outcome);
	return OSD_OK;
}

/* ---- members --------------------------------------------------------------------------------- */

/* Whether its result is all that it left, and is at hand. */
static bool can_be_copied(struct earlier *earlier)
{
	const struct osd_job_record *record = &earlier->record;

	enum osd_status status = OSD_OK;

	if (record->stdout_length || record->stderr_length || record->result_object)
		return false;
	if (record->result_length)
		status = osd_txn_run(earlier->exec->objects, OSD_TXN_READ_ONLY, load_result,
				     earlier);
	return status == OSD_OK && earlier->result_length == record->result_length;
}

/* From here on a kill has no effect.  False: one came before. */
static bool collect(struct osd_exec *exec, struct osd_job *job, struct osd_job_record *ret_record)
{
	bool mine;

	osd_lock(&exec->lock);
	mine = !job->end_reason && osd_job_apply(exec, job, OSD_JOB_EVENT_COLLECT, OSD_REASON_NONE);
	*ret_record = job->record;
	osd_unlock(&exec->lock);
	return mine;
}

static bool end_with(const struct earlier *earlier, struct osd_job *job)
{
	const struct osd_job_remains remains = {
		.result = earlier->result,
		.result_length = earlier->result_length,
		.used = earlier->list,
		.used_length = earlier->list_length,
		.listed = true,
	};
	struct osd_job_record record;

	if (!collect(earlier->exec, job, &record))
		return false;
	record.attempt = 0; /* it has not run */
	record.flags |= OSD_JOB_ANSWERED | (earlier->record.flags & OSD_JOB_RESULT_JSON);
	record.result_length = earlier->record.result_length;
	memcpy(record.message, earlier->record.message, sizeof(record.message));
	osd_job_record_end(&record, OSD_STATE_COMPLETED, OSD_REASON_NONE);
	osd_exec_finish(earlier->exec, job, &record, &remains);
	return true;
}

bool osd_remembered_answer(struct osd_exec *exec, struct osd_job *job)
{
	OSD_CLEANUP_FREE struct earlier *earlier = NULL;
	struct osd_job_record wanted;

	if (!job->head || !job->head->array->reuse_usec)
		return false;
	osd_lock(&exec->lock);
	wanted = job->record;
	osd_unlock(&exec->lock);
	if (wanted.flags & OSD_JOB_WROTE) /* it has run before, and lost its sandbox */
		return false;
	earlier = earlier_for(exec, &wanted, job->pool, job->head->array->reuse_usec);
	return earlier && finds(earlier) && can_be_copied(earlier) && end_with(earlier, job);
}
