/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control.c -- control page 2000_0003h: cancel, kill, hold, release, expiry.
 *
 * A change to a job that has not started belongs to the transaction of the SET ATTRIBUTES.  The job
 * leaves the queue at the request.  At the end of the transaction it gets its new state, or its old
 * place.  The kill of a started job begins at once.  The transaction records the request, so that
 * the job does not run again after a crash.  A control that the job's state does not permit has no
 * effect: the caller reads the resulting state. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/job/job.h"

#define COMMIT_MSEC 100 /* within which most transactions under way have ended */

/* The effect of a control on a waiting job, by the state that the requesting transaction sees. */
static const struct {
	uint8_t control, state, event;
	uint16_t reason;
} effects[] = {
	{OSD_CONTROL_CANCEL, OSD_STATE_QUEUED, OSD_JOB_EVENT_CANCEL, OSD_REASON_CANCELLED},
	{OSD_CONTROL_CANCEL, OSD_STATE_HELD, OSD_JOB_EVENT_CANCEL, OSD_REASON_CANCELLED},
	{OSD_CONTROL_KILL, OSD_STATE_QUEUED, OSD_JOB_EVENT_CANCEL, OSD_REASON_KILLED},
	{OSD_CONTROL_KILL, OSD_STATE_HELD, OSD_JOB_EVENT_CANCEL, OSD_REASON_KILLED},
	{OSD_CONTROL_HOLD, OSD_STATE_QUEUED, OSD_JOB_EVENT_HOLD, OSD_REASON_HELD},
	{OSD_CONTROL_RELEASE, OSD_STATE_HELD, OSD_JOB_EVENT_RELEASE, OSD_REASON_WAITS_FOR_SLOT},
};

/* Takes over a reference of the job. */
static void change_ended(void *arg, bool committed)
{
	struct osd_job *job = arg;
	struct osd_exec *exec = job->exec;
	struct osd_exec_wait *waits = NULL;
	struct osd_exec_outcome outcome = {0};

	osd_lock(&exec->lock);
	if (committed && osd_job_state_terminal(job->pending.state)) {
		exec->held_count -= job->record.state == OSD_STATE_HELD;
		osd_job_record_end(&job->record, job->pending.state, job->pending.reason);
		osd_exec_sweep_by(exec, job->record.expiry_msec);
		outcome.reason = job->pending.reason;
		outcome.status = osd_job_reason_status(job->pending.reason);
		osd_story_ended(job, &job->record);
		exec->ops->ended(exec, job, &job->record, NULL);
		waits = osd_exec_take_waits(exec, job);
		osd_exec_forget(exec, job);
	} else {
		if (committed && job->pending.state == OSD_STATE_QUEUED)
			job->record.begin_msec = 0;
		if (committed && job->pending.state != job->record.state)
			osd_job_apply(exec, job,
				      job->pending.state == OSD_STATE_HELD ? OSD_JOB_EVENT_HOLD
									   : OSD_JOB_EVENT_RELEASE,
				      job->pending.reason);
		if (job->record.state == OSD_STATE_QUEUED)
			osd_exec_enqueue(exec, job);
	}
	job->pending.txn = NULL;
	job->kind->change_ended(job);
	osd_job_unref(job);
	osd_unlock(&exec->lock);
	osd_exec_deliver(waits, outcome);
}

/* exec->lock held.  True: the job waits, and the transaction owns the change in job->pending. */
static bool begin_change(struct osd_exec *exec, struct osd_job *job, struct osd_txn *txn,
			 uint8_t control, bool *ret_first)
{
	enum osd_job_state state = job->pending.txn ? job->pending.state : job->record.state, to;

	osd_assert_held(&exec->lock);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(effects); i++) {
		if (effects[i].control != control || effects[i].state != state ||
		    !osd_job_transition(state, effects[i].event, &to))
			continue;
		*ret_first = !job->pending.txn;
		job->pending.txn = txn;
		job->pending.state = to;
		job->pending.reason = effects[i].reason;
		if (effects[i].reason == OSD_REASON_WAITS_FOR_SLOT && job->kind->waits(job))
			job->pending.reason = OSD_REASON_WAITS_FOR_JOB;
		job->kind->unqueue(job);
		job->stored = true;
		return true;
	}
	return false;
}

static enum osd_status write_change(struct osd_exec *exec, struct osd_txn *txn, struct osd_job *job)
{
	struct osd_job_record record;

	osd_lock(&exec->lock);
	record = job->record;
	osd_unlock(&exec->lock);
	if (osd_job_state_terminal(job->pending.state)) {
		osd_job_record_end(&record, job->pending.state, job->pending.reason);
		return osd_job_write_end(exec, txn, &record);
	}
	record.state = job->pending.state;
	record.reason = job->pending.reason;
	if (record.state == OSD_STATE_QUEUED)
		record.begin_msec = 0;
	record.generation++;
	return osd_job_record_put(txn, &record);
}

/* exec->lock held.  True: the job has started, and the request to end it must be stored. */
static bool begin_kill(struct osd_exec *exec, struct osd_job *job)
{
	osd_assert_held(&exec->lock);
	if (job->record.state != OSD_STATE_STARTING && job->record.state != OSD_STATE_RUNNING)
		return false;
	if (!(job->record.flags & OSD_JOB_KILL_ASKED))
		osd_job_touch(job);
	job->record.flags |= OSD_JOB_KILL_ASKED;
	osd_exec_request_end(exec, job, OSD_REASON_KILLED);
	return true;
}

/* This transaction locks the surrogate, so the job's end is written after it.  Takes over a reference. */
static enum osd_status write_kill(struct osd_exec *exec, struct osd_txn *txn, struct osd_job *job)
{
	enum osd_status status = osd_job_write_live(exec, txn, job);

	osd_lock(&exec->lock);
	osd_job_unref(job);
	osd_unlock(&exec->lock);
	return status;
}

enum osd_status osd_job_control(struct osd_exec *exec, struct osd_txn *txn, struct osd_object_id id,
				uint8_t control)
{
	struct osd_job *job;
	bool changing = false, first = false, killing = false;
	enum osd_status status = OSD_OK;

	if (control < OSD_CONTROL_CANCEL || control > OSD_CONTROL_RELEASE)
		return OSD_E_PARAM_FIELD;
	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	if (job && job->kind->control) {
		osd_job_ref(job);
		osd_unlock(&exec->lock);
		return job->kind->control(txn, job, control);
	}
	if (job && ((job->pending.txn && job->pending.txn != txn) || job->kind->is_changing(job)))
		status = OSD_E_CONFLICT; /* another command is changing it or its array right now */
	else if (job && !job->end_reason)
		changing = begin_change(exec, job, txn, control, &first);
	if (job && status == OSD_OK && !changing && control == OSD_CONTROL_KILL)
		killing = begin_kill(exec, job);
	if (first || killing)
		osd_job_ref(job);
	if (first)
		job->kind->change_begins(job);
	osd_unlock(&exec->lock);
	if (killing)
		return write_kill(exec, txn, job);
	if (first)
		status = osd_txn_on_end(txn, change_ended, job);
	return changing && status == OSD_OK ? write_change(exec, txn, job) : status;
}

struct expiry_change {
	struct osd_job *job; /* with a reference */
	uint64_t from, to;
};

static void expiry_change_ended(void *arg, bool committed)
{
	struct expiry_change *change = arg;
	struct osd_job *job = change->job;
	struct osd_exec *exec = job->exec;

	osd_lock(&exec->lock);
	if (!committed && job->record.expiry_msec == change->to) {
		job->record.expiry_msec = change->from;
		osd_job_touch(job);
	}
	osd_job_unref(job);
	osd_unlock(&exec->lock);
	free(change);
}

/* exec->lock held.  The job may end, and write its record, before the transaction does. */
static void begin_expiry(struct osd_exec *exec, struct osd_job *job, struct expiry_change *change)
{
	osd_assert_held(&exec->lock);
	osd_job_ref(job);
	change->job = job;
	change->from = job->record.expiry_msec;
	job->record.expiry_msec = change->to;
	osd_job_touch(job);
	exec->idle_msec = OSD_MIN(exec->idle_msec, change->to); /* and of its members */
}

enum osd_status osd_job_set_expiry(struct osd_exec *exec, struct osd_txn *txn,
				   struct osd_object_id id, uint64_t expiry_msec)
{
	OSD_CLEANUP_FREE struct expiry_change *change = malloc(sizeof(*change));
	struct osd_job_record record;
	struct osd_job *job;
	enum osd_status status;
	uint64_t old;
	bool changes;

	if (!change)
		return OSD_E_NO_MEMORY;
	if (expiry_msec == 0 ||
	    expiry_msec > osd_wall_msec() + osd_exec_limits[OSD_LIMIT_EXPIRY].maximum / 1000)
		return OSD_E_PARAM_FIELD;
	/* Check memory first: a job that ends meanwhile is in memory until its end is in the
	 * store. */
	osd_lock(&exec->lock);
	job = osd_exec_find(exec, id);
	changes = job && !(job->record.flags & OSD_JOB_MEMBER);
	change->to = expiry_msec;
	if (changes)
		begin_expiry(exec, job, change);
	osd_exec_sweep_by(exec, OSD_MAX(expiry_msec, osd_wall_msec() + COMMIT_MSEC));
	osd_unlock(&exec->lock);
	osd_exec_forget_ended(exec, id);
	status = changes ? osd_txn_on_end(txn, expiry_change_ended, OSD_STEAL(change)) : OSD_OK;
	if (status != OSD_OK)
		return status;
	status = osd_job_record_get(txn, id, &record);
	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_E_PARAM_FIELD : status;
	if (record.flags & OSD_JOB_MEMBER)
		return OSD_E_PARAM_FIELD; /* a member expires with its array */
	old = record.expiry_msec;
	record.expiry_msec = expiry_msec;
	record.generation++;
	status = osd_job_record_put(txn, &record);
	if (status == OSD_OK && osd_job_state_terminal(record.state))
		status = osd_job_expiry_move(txn, &record, old);
	return status;
}
