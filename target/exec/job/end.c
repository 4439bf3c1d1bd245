/* SPDX-License-Identifier: GPL-2.0-or-later */
/* end.c -- how a job ends.  One transaction writes everything, then memory changes, then the
 * waiting commands are answered.  So a client that reads a terminal state can read everything else,
 * too. */
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/job/job.h"

#define END_TRIES      9     /* of the terminal transaction, after failures that may pass */
#define END_PAUSE_USEC 20000 /* after the first failure, then doubled each time: 5 s in all */

void osd_job_record_end(struct osd_job_record *record, enum osd_job_state state, uint16_t reason)
{
	uint64_t now = osd_wall_msec();
	enum osd_job_state to = state;

	/* An array never runs: it ends when its members have ended. */
	if (!(record->flags & OSD_JOB_ARRAY) &&
	    (!osd_job_transition(record->state, osd_job_event_to(state), &to) || to != state))
		osd_error("job %#llx/%#llx: an end as %s is not permitted in state %s",
			  (unsigned long long)record->id.partition_id,
			  (unsigned long long)record->id.object_id, osd_job_state_name(state),
			  osd_job_state_name(record->state));
	if (record->attempt == 0) /* it has only waited */
		record->queue_usec =
			now > record->submitted_msec ? (now - record->submitted_msec) * 1000 : 0;
	record->state = state;
	record->reason = reason;
	record->ended_msec = now;
	if (record->expiry_msec == 0 &&
	    !(record->flags & OSD_JOB_MEMBER)) /* it expires with its array */
		record->expiry_msec = now + record->keep_msec;
	record->generation++;
}

static enum osd_status put_payload(struct osd_txn *txn, const struct osd_job_record *record,
				   enum osd_job_payload kind, const uint8_t *bytes, size_t length)
{
	if (length == 0)
		return OSD_OK;
	return osd_job_payload_put(txn, record->id, kind, bytes, length);
}

static enum osd_status put_end(struct osd_txn *txn, const struct osd_job_record *record,
			       const struct osd_job_remains *remains, uint64_t charged)
{
	bool member = record->flags & OSD_JOB_MEMBER;
	struct osd_job_record stored = *record;
	enum osd_status status;

	stored.charged = charged;
	status = osd_job_record_put(txn, &stored);
	if (status == OSD_OK && !member)
		status = osd_job_expiry_move(txn, record, 0);
	if (status == OSD_OK && !member && !(record->flags & OSD_JOB_CODE_KEPT))
		status = osd_job_code_delete(txn, record);
	if (status == OSD_OK && remains)
		status = put_payload(txn, record, OSD_PAYLOAD_RESULT, remains->result,
				     remains->result_length);
	if (status == OSD_OK && remains)
		status = put_payload(txn, record, OSD_PAYLOAD_STDERR, remains->stderr_bytes,
				     remains->stderr_stored);
	if (status == OSD_OK && remains)
		status = put_payload(txn, record, OSD_PAYLOAD_TRACEBACK, remains->traceback,
				     remains->traceback_length);
	if (status == OSD_OK && remains)
		status = put_payload(txn, record, OSD_PAYLOAD_STATES, remains->states,
				     remains->states_length);
	if (status == OSD_OK && remains && record->used_length)
		status = osd_job_used_put(txn, record, remains->used);
	return status;
}

static bool is_full(enum osd_status status)
{
	return status == OSD_E_QUOTA || status == OSD_E_NO_SPACE;
}

/* The list of objects used is kept if there is room. */
static enum osd_status charge_used(struct osd_exec *exec, struct osd_txn *txn,
				   struct osd_job_record *record,
				   const struct osd_job_remains *remains, uint64_t *ret_charged)
{
	enum osd_status status;

	record->flags &= ~(uint32_t)OSD_JOB_LISTED;
	if (remains && remains->listed) {
		record->flags |= OSD_JOB_LISTED;
		record->used_length = (uint32_t)remains->used_length;
		status = osd_job_charge_ended(exec, txn, record, remains, true, ret_charged);
		if (!record->used_length || !is_full(status))
			return status;
		record->flags &= ~(uint32_t)OSD_JOB_LISTED;
	}
	record->used_length = 0;
	return osd_job_charge_ended(exec, txn, record, remains, true, ret_charged);
}

/* Charges for what is left of the job.  Code and arguments are kept if there is room. */
static enum osd_status charge_end(struct osd_exec *exec, struct osd_txn *txn,
				  struct osd_job_record *record,
				  const struct osd_job_remains *remains, uint64_t *ret_charged)
{
	enum osd_status status;

	record->flags &= ~(uint32_t)OSD_JOB_CODE_KEPT; /* from a transaction that is run again */
	if (osd_job_charge_keeps(exec, record)) {
		record->flags |= OSD_JOB_CODE_KEPT;
		status = charge_used(exec, txn, record, remains, ret_charged);
		if (!is_full(status))
			return status;
		record->flags &= ~(uint32_t)OSD_JOB_CODE_KEPT;
	}
	return charge_used(exec, txn, record, remains, ret_charged);
}

enum osd_status osd_job_write_end(struct osd_exec *exec, struct osd_txn *txn,
				  const struct osd_job_record *record)
{
	/* The object's record first: it orders this transaction and commands on the surrogate. */
	enum osd_status status = osd_surrogate_mark(txn, record->id, false);
	struct osd_job_record ended = *record;
	uint64_t charged;

	if (status == OSD_OK || status == OSD_E_NO_OBJECT) /* a damaged store has lost the object */
		status = charge_end(exec, txn, &ended, NULL, &charged);
	return status == OSD_OK ? put_end(txn, &ended, NULL, charged) : status;
}

struct ending {
	struct osd_exec *exec;
	struct osd_job *job;
	struct osd_job_record record;
	const struct osd_job_remains *remains;
	struct osd_job_remains cut; /* the part that is kept if there is no room for all */
};

/* Refreshes the record.  Since it was filled in, stored output may have changed the job, or a
 * client may have set its expiry.  This transaction locks the surrogate, so no other command can
 * change it any more. */
static void fix_record(struct ending *ending)
{
	const struct osd_job_record *live = &ending->job->record;

	osd_lock(&ending->exec->lock);
	ending->record.generation = OSD_MAX(ending->record.generation, live->generation + 1);
	if (live->expiry_msec)
		ending->record.expiry_msec = live->expiry_msec;
	ending->job->recorded = true;
	osd_unlock(&ending->exec->lock);
}

/* The quota has no room for everything.  The reason of a failure is kept, up to
 * OSD_JOB_RESERVE_BYTES, even beyond the quota.  A result in memory is not kept, and the job fails. */
static void cut_remains(struct ending *ending)
{
	struct osd_job_record *record = &ending->record;
	struct osd_job_remains *cut = &ending->cut;

	*cut = *ending->remains;
	if (cut->result_length) { /* a longer result is in its object already */
		if (record->state == OSD_STATE_COMPLETED) {
			record->state = OSD_STATE_FAILED;
			record->reason = OSD_REASON_NO_SPACE;
		}
		cut->result = NULL;
		cut->result_length = 0;
		record->result_length = 0;
		record->flags &= ~(uint32_t)OSD_JOB_RESULT_JSON;
	}
	if (cut->stderr_stored + cut->traceback_length > OSD_JOB_RESERVE_BYTES) {
		cut->stderr_stored = 0;
		record->flags |= OSD_JOB_STDERR_CUT;
	}
	ending->remains = cut;
}

static enum osd_status write_end(struct osd_txn *txn, void *arg)
{
	struct ending *ending = arg;
	enum osd_status status = osd_surrogate_mark(txn, ending->record.id, false);
	uint64_t charged;

	if (status != OSD_OK)
		return status;
	fix_record(ending);
	status = charge_end(ending->exec, txn, &ending->record, ending->remains, &charged);
	if (ending->remains && is_full(status)) {
		cut_remains(ending);
		status = osd_job_charge_ended(ending->exec, txn, &ending->record, ending->remains,
					      false, &charged);
	}
	return status == OSD_OK ? put_end(txn, &ending->record, ending->remains, charged) : status;
}

static void pause_usec(uint64_t usec)
{
	struct timespec pause = osd_timespec(usec);

	nanosleep(&pause, NULL);
}

/* A terminal state that cannot be written now may be written later: the disk was full, or the
 * transaction lost every conflict.  Once the tries for one job have all failed, the next job gets
 * one try only. */
static enum osd_status store_end(struct osd_exec *exec, struct ending *ending)
{
	int tries = atomic_load(&exec->ends_fail) ? 1 : END_TRIES;
	enum osd_status status = OSD_OK;

	for (int i = 0; i < tries; i++) {
		status = osd_txn_run(exec->objects, OSD_TXN_INTERNAL, write_end, ending);
		if (status != OSD_E_BUSY && status != OSD_E_NO_SPACE && status != OSD_E_NO_MEMORY)
			break;
		if (i + 1 < tries)
			pause_usec((uint64_t)END_PAUSE_USEC << i);
	}
	atomic_store(&exec->ends_fail, status != OSD_OK);
	return status;
}

/* Nothing but the answer can say why a plain call failed. */
static void report(const struct ending *ending, struct osd_exec_outcome *outcome)
{
	const struct osd_job_remains *remains = ending->remains;

	outcome->form = OSD_RESULT_REPORT;
	outcome->owned_result = NULL;
	outcome->result = (const uint8_t *)ending->record.message;
	outcome->result_length = strlen(ending->record.message);
	if (remains && remains->traceback_length) {
		outcome->result = remains->traceback;
		outcome->result_length = remains->traceback_length;
	}
	outcome->whole_length = outcome->result_length;
}

void osd_exec_finish(struct osd_exec *exec, struct osd_job *job,
		     const struct osd_job_record *record, const struct osd_job_remains *remains)
{
	struct ending ending = {.exec = exec, .job = job, .record = *record, .remains = remains};
	struct osd_exec_wait *waits;
	bool plain = record->flags & OSD_JOB_PLAIN;
	enum osd_status status = plain ? OSD_OK : store_end(exec, &ending);
	struct osd_exec_outcome outcome = {
		.status = osd_job_reason_status(ending.record.reason),
		.reason = ending.record.reason,
		.result_object = ending.record.result_object,
		.cpu_usec = record->cpu_user_usec + record->cpu_system_usec,
	};

	if (status != OSD_OK) {
		osd_error("job %#llx/%#llx: cannot store how it ended (%s); decided again at the "
			  "next start",
			  (unsigned long long)record->id.partition_id,
			  (unsigned long long)record->id.object_id, osd_status_info(status)->name);
		outcome.status = status;
	}
	if (remains && !record->result_object) {
		outcome.result = ending.remains->result;
		outcome.owned_result = plain ? remains->owned_result : NULL;
		outcome.result_length = ending.remains->result_length;
	}
	outcome.whole_length = ending.record.result_length;
	outcome.form = osd_job_result_form(&ending.record);
	if (plain && outcome.status != OSD_OK)
		report(&ending, &outcome);
	osd_story_ended(job, &ending.record);
	osd_lock(&exec->lock);
	job->record = ending.record;
	if (!plain)
		osd_exec_sweep_by(exec, ending.record.expiry_msec);
	exec->ops->ended(exec, job, &ending.record, plain ? &outcome : NULL);
	waits = osd_exec_take_waits(exec, job);
	if (status != OSD_OK)
		job->kind->unended(job);
	else if (!plain)
		osd_exec_note_ended(exec, job);
	osd_exec_forget(exec, job);
	osd_unlock(&exec->lock);
	osd_exec_deliver(waits, outcome);
}

bool osd_exec_claim(struct osd_exec *exec, struct osd_job *job, uint16_t reason)
{
	osd_assert_held(&exec->lock);
	if (job->kind->end_parts) { /* the job ends when all its parts have ended */
		job->kind->end_parts(job, reason);
		return false;
	}
	if (!osd_job_state_waits(job->record.state)) {
		osd_exec_request_end(exec, job, reason);
		return false;
	}
	if (job->pending.txn || job->end_reason)
		return false;
	job->end_reason = reason; /* no other thread ends or starts it from here on */
	job->kind->unqueue(job);
	exec->held_count -= job->record.state == OSD_STATE_HELD;
	osd_job_ref(job);
	return true;
}

void osd_exec_end_claimed(struct osd_exec *exec, struct osd_job *job, uint16_t reason)
{
	struct osd_job_record record;

	osd_lock(&exec->lock);
	record = job->record;
	osd_unlock(&exec->lock);
	osd_job_record_end(&record, osd_job_reason_info(reason)->terminal_state, reason);
	osd_exec_finish(exec, job, &record, NULL);
	osd_lock(&exec->lock);
	osd_job_unref(job);
	osd_unlock(&exec->lock);
}

bool osd_exec_stops(struct osd_exec *exec)
{
	bool stopping;

	osd_lock(&exec->lock);
	stopping = exec->stopping;
	osd_unlock(&exec->lock);
	return stopping;
}

void osd_exec_end_one(struct osd_exec *exec, struct osd_object_id id, uint16_t reason)
{
	struct osd_job *job;
	bool mine;

	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	mine = job && osd_exec_claim(exec, job, reason);
	osd_unlock(&exec->lock);
	if (mine)
		osd_exec_end_claimed(exec, job, reason);
}

/* The next start decides about a job that is left, as after a crash. */
static void end_or_leave(struct osd_exec *exec, struct osd_job *job, uint16_t reason)
{
	if (!osd_exec_stops(exec)) {
		osd_exec_end_claimed(exec, job, reason);
		return;
	}
	osd_lock(&exec->lock);
	osd_job_unref(job);
	osd_unlock(&exec->lock);
}

void osd_exec_end_matching(struct osd_exec *exec,
			   bool (*pick)(const struct osd_job *job, const void *arg),
			   const void *arg, uint16_t reason)
{
	struct osd_job *claimed[256], *job;
	size_t count;

	do {
		count = 0;
		job = NULL;
		osd_lock(&exec->lock);
		while (count < OSD_ARRAY_SIZE(claimed) && (job = osd_exec_next_job(exec, job)))
			if (pick(job, arg) && osd_exec_claim(exec, job, reason))
				claimed[count++] = job;
		osd_unlock(&exec->lock);
		for (size_t i = 0; i < count; i++)
			end_or_leave(exec, claimed[i], reason);
	} while (count == OSD_ARRAY_SIZE(claimed) && !osd_exec_stops(exec));
}
