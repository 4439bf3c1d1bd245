/* SPDX-License-Identifier: GPL-2.0-or-later */
/* long_call.c -- what the bytes of a call cost, and calls that may take long: they work in steps, charge each step, and
 * stop when the job is to end (session.h). */
#include "exec/session/session.h"

#include "base/clock.h"
#include "base/pace.h"
#include "base/thread.h"
#include "base/util.h"

static bool is_to_end(const struct osd_session *session)
{
	return session->hooks.is_to_end && session->hooks.is_to_end(session->hooks.arg);
}

static bool is_over(const struct osd_session *session)
{
	return atomic_load(&session->revoked) ||
	       (session->hooks.is_over && session->hooks.is_over(session->hooks.arg));
}

void osd_long_call_rest(void *arg)
{
	struct osd_session *session = arg;

	if (!session->step.inside)
		return;
	session->step.inside = false;
	session->step.pieces = 0;
	osd_call_gate_leave(session->gate);
}

void osd_session_enter(struct osd_session *session, bool long_call)
{
	struct osd_session_step *step = &session->step;

	*step = (struct osd_session_step){.is_long = long_call,
					  .cleans_up = long_call && is_to_end(session)};
	if (long_call || !session->gate)
		return;
	osd_call_gate_enter(session->gate);
	step->inside = true;
	osd_thread_on_wait(osd_long_call_rest, session);
}

void osd_session_leave(struct osd_session *session)
{
	osd_thread_on_wait(NULL, NULL);
	osd_long_call_rest(session);
}

/* Several small pieces share one place, because each wait for a place may take a millisecond. */
static void take_place(struct osd_session *session, uint64_t bytes)
{
	struct osd_session_step *step = &session->step;
	bool fresh = step->pieces == 0 || step->pieces >= OSD_LONG_STEP_PIECES ||
		     step->bytes + bytes > OSD_LONG_STEP_BYTES;

	if (fresh && session->gate) {
		osd_long_call_rest(session);
		step->inside = osd_call_gate_enter_step(session->gate);
		step->pieces = 0;
		step->bytes = 0;
	}
	step->pieces++;
	step->bytes += bytes;
}

static bool must_stop(const struct osd_session *session)
{
	const struct osd_session_step *step = &session->step;

	return is_over(session) || (step->is_long && !step->cleans_up && is_to_end(session));
}

enum osd_status osd_session_count_io(struct osd_session *session, _Atomic uint64_t *counter,
				     uint64_t bytes)
{
	uint64_t sum = atomic_load(&session->bytes_read) + atomic_load(&session->bytes_written);

	if (!osd_add_u64(sum, bytes, &sum) || sum > session->limits.io_bytes) {
		session->fault = OSD_REASON_IO_LIMIT;
		return OSD_E_PARAM_FIELD;
	}
	atomic_fetch_add_explicit(counter, bytes, memory_order_relaxed);
	if (session->pace)
		session->due_usec = osd_pace_take(session->pace, bytes, osd_monotonic_usec());
	return OSD_OK;
}

bool osd_long_call_step(void *arg, uint64_t bytes)
{
	struct osd_session *session = arg;

	if (must_stop(session))
		return false;
	if (bytes && osd_session_count_io(session, &session->bytes_written, bytes) != OSD_OK)
		return false;
	take_place(session, bytes);
	return true;
}

static bool next_record(void *arg)
{
	struct osd_session *session = arg;
	struct osd_session_watch *watch = &session->watch;

	if (++watch->records % OSD_LONG_STEP_PIECES == 0 && !watch->stopped) {
		if (watch->records >= OSD_LONG_RECORDS)
			osd_long_call_rest(session);
		watch->stopped = must_stop(session);
	}
	return !watch->stopped;
}

void osd_long_call_watch(struct osd_session *session, struct osd_txn *txn)
{
	session->watch = (struct osd_session_watch){.watcher = {next_record, session}};
	osd_txn_watch_by(txn, &session->watch.watcher);
}
