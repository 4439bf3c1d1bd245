/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sweep.c -- the sweep: removes the records of ended jobs when they expire, with their surrogates
 * and results, ends jobs that were not started in time, and releases jobs whose begin time has come. */
#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/flow/flow.h"

#define STAYS_MSEC    500 /* before a removal that was not possible is tried again */
#define BEGIN_AT_ONCE 64
#define AGAIN_MSEC    500

/* ---- records that expire --------------------------------------------------------------------- */

struct removal {
	struct osd_exec *exec;
	struct osd_object_id id;
};

static enum osd_status remove_expired(struct osd_txn *txn, void *arg)
{
	struct removal *removal = arg;
	struct osd_job_record record;
	enum osd_status status = osd_job_record_get(txn, removal->id, &record);

	if (status == OSD_OK &&
	    (!osd_job_state_terminal(record.state) || record.expiry_msec > osd_wall_msec()))
		return OSD_E_NO_OBJECT; /* its expiry has changed, or was that of an earlier job */
	return status == OSD_OK ? osd_flow_remove(removal->exec, txn, &record) : status;
}

/* OSD_E_BUSY: another job waits for it or for one of the array's members, or a change is under way. */
static enum osd_status try_removal(struct osd_exec *exec, struct osd_object_id id)
{
	struct removal removal = {exec, id};
	bool awaited;

	osd_lock(&exec->lock);
	awaited = osd_after_awaited(exec, id);
	osd_unlock(&exec->lock);
	return awaited ? OSD_E_BUSY
		       : osd_txn_run(exec->objects, OSD_TXN_INTERNAL, remove_expired, &removal);
}

static bool is_late(const struct osd_job *job, const void *now_usec)
{
	return osd_pool_is_late(job, *(const uint64_t *)now_usec);
}

static bool has_idled(const struct osd_job *job, const void *now_msec)
{
	return osd_job_is_idle(job) && osd_job_idle_expiry(job) < *(const uint64_t *)now_msec;
}

/* Ends the jobs that have not started in time, and schedules the next sweep for them: this one may have begun
 * for another reason.  A job with a change under way is tried again soon. */
static void end_idle(struct osd_exec *exec, uint64_t now_msec)
{
	uint64_t now_usec = osd_monotonic_usec();
	struct osd_job *job = NULL;
	bool due;

	osd_lock(&exec->lock);
	due = exec->idle_msec < now_msec;
	if (!due)
		osd_exec_sweep_by(exec, exec->idle_msec);
	osd_unlock(&exec->lock);
	if (!due)
		return;
	osd_exec_end_matching(exec, has_idled, &now_msec, OSD_REASON_EXPIRED);
	osd_exec_end_matching(exec, is_late, &now_usec, OSD_REASON_DEADLINE);
	osd_lock(&exec->lock);
	exec->idle_msec = UINT64_MAX;
	while ((job = osd_exec_next_job(exec, job))) {
		osd_exec_note_idle(exec, job);
		osd_pool_note_deadline(job);
	}
	osd_unlock(&exec->lock);
}

/* ---- jobs that begin at a time of day (EXEC parameter BEGIN) --------------------------------- */

/* They are HELD, and released at that time, as a client would.  A client's release before that time
 * starts them at once.  Either release clears the begin time in the record.  The time is that of the
 * wall clock.  Each sweep checks it: at the earliest begin, and at least once a minute, so that it
 * notices when the clock was set. */

/* exec->lock held.  Lists jobs whose time has come, and notes the time of the others. */
static size_t find_due(struct osd_exec *exec, uint64_t now_msec,
		       struct osd_object_id ids[BEGIN_AT_ONCE])
{
	const struct osd_job *job = NULL;
	size_t count = 0;

	osd_assert_held(&exec->lock);
	while ((job = osd_exec_next_job(exec, job)))
		if (osd_job_begins_later(job) && job->record.begin_msec <= now_msec &&
		    count < BEGIN_AT_ONCE)
			ids[count++] = job->record.id;
		else
			osd_exec_note_begin(exec, job);
	return count;
}

struct release {
	struct osd_exec *exec;
	struct osd_object_id id;
};

static enum osd_status release(struct osd_txn *txn, void *arg)
{
	const struct release *release = arg;

	return osd_job_control(release->exec, txn, release->id, OSD_CONTROL_RELEASE);
}

static void begin_due(struct osd_exec *exec)
{
	struct osd_object_id ids[BEGIN_AT_ONCE];
	uint64_t now_msec = osd_wall_msec();
	bool failed = false;
	size_t count;

	do {
		osd_lock(&exec->lock);
		count = 0;
		if (exec->begin_msec <= now_msec) {
			exec->begin_msec = UINT64_MAX;
			count = find_due(exec, now_msec, ids);
		} else if (exec->begin_msec != UINT64_MAX) {
			osd_exec_sweep_by(exec, exec->begin_msec);
		}
		osd_unlock(&exec->lock);
		for (size_t i = 0; i < count && !osd_exec_stops(exec); i++) {
			struct release one = {exec, ids[i]};
			enum osd_status status =
				osd_txn_run(exec->objects, OSD_TXN_INTERNAL, release, &one);

			if (status == OSD_OK)
				continue;
			osd_warning("job %#llx/%#llx cannot begin now: %s; tried again",
				    (unsigned long long)one.id.partition_id,
				    (unsigned long long)one.id.object_id,
				    osd_status_info(status)->name);
			osd_lock(&exec->lock);
			exec->begin_msec = OSD_MIN(exec->begin_msec, now_msec + AGAIN_MSEC);
			osd_exec_sweep_by(exec, exec->begin_msec);
			osd_unlock(&exec->lock);
			failed = true;
		}
	} while (count == BEGIN_AT_ONCE && !failed && !osd_exec_stops(exec));
}

/* ---- all of it ------------------------------------------------------------------------------- */

void osd_flow_call_sweep(struct osd_flow *flow)
{
	if (!osd_helper_call(&flow->sweeper))
		osd_flow_sweep(flow->exec);
}

void osd_flow_sweep(void *arg)
{
	struct osd_exec *exec = arg;
	struct osd_expired_jobs expired = {.without = 0};
	enum osd_status status, failed = OSD_OK;
	uint64_t next_msec = UINT64_MAX;
	bool busy = false;

	do {
		expired.now_msec = osd_wall_msec();
		begin_due(exec);
		end_idle(exec, expired.now_msec);
		status = osd_txn_run(exec->objects, OSD_TXN_READ_ONLY, osd_job_record_expired,
				     &expired);
		if (status != OSD_OK) {
			failed = status;
			break;
		}
		next_msec = expired.next_msec;
		for (size_t i = 0; i < expired.count && !osd_exec_stops(exec); i++) {
			status = try_removal(exec, expired.ids[i]);
			expired.without += status != OSD_OK; /* this sweep could not remove it */
			if (status == OSD_E_BUSY)
				busy = true;
			else if (status != OSD_OK && !osd_status_is_gone(status))
				failed = status;
		}
	} while (expired.count == OSD_EXPIRED_AT_ONCE && !osd_exec_stops(exec));
	if (failed != OSD_OK)
		osd_warning("cannot sweep expired jobs: %s", osd_status_info(failed)->name);
	osd_lock(&exec->lock);
	osd_exec_sweep_by(exec, busy ? osd_wall_msec() + STAYS_MSEC : next_msec);
	osd_unlock(&exec->lock);
}
