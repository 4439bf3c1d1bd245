/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proxy.c -- the proxy threads.  A proxy takes a job and a READY sandbox, hands the
 * job over (handover.c), and serves the script's calls until the script is over.  Elsewhere: what the
 * calls do (session/), how the job ends (end.c), deadlines and deaths (sandbox/watch.c). */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/run/run.h"
#include "exec/session/session.h"
#include "function/function.h"

#define TURN_USEC 100 /* a proxy lets others go at least this often */
/* A call without a record that runs alone: its proxy spins for so long at first.  Asleep, it would take longer to
 * wake up than a short function to run. */
#define ALONE_SPIN_NSEC UINT64_C(150000)
#define PACE_USEC	UINT64_C(20000) /* between two checks whether a paced job is to end */

/* ---- serving --------------------------------------------------------------------------------- */

/* Only a sample of the calls is timed: reading the clock twice takes 1 % of a short call. */
static enum osd_served serve_one(struct osd_run *run, unsigned number, unsigned area)
{
	uint8_t *shared = (uint8_t *)run->sandbox->shm;
	uint8_t *frame = shared + osd_shm_frame_at(area), *body = shared + osd_shm_body_at(area);
	bool timed = number % OSD_CALLS_PER_TIMED == 0;
	uint64_t start = timed ? osd_monotonic_usec() : 0;
	enum osd_served served;

	served = osd_session_serve(&run->session, frame, body, frame + OSD_FRAME_BYTES, body);
	if (timed && served == OSD_SERVED)
		osd_call_took(&run->exec->runs->calls, run->session.last_op,
			      osd_monotonic_usec() - start);
	return served;
}

/* A script that calls without pause keeps its proxy from sleeping.  Another thread that wakes up on
 * this CPU, such as that of an ordinary command, may then wait for the kernel's next tick, up to 4
 * ms.  So the proxy yields. */
static void let_others_go(uint64_t *turn_usec)
{
	uint64_t now = osd_monotonic_usec();

	if (now - *turn_usec < TURN_USEC)
		return;
	sched_yield();
	*turn_usec = now;
}

static bool is_wanted(struct osd_run *run)
{
	const struct osd_session_hooks *hooks = &run->session.hooks;

	return !hooks->is_over(hooks->arg) && !hooks->is_to_end(hooks->arg);
}

/* The bandwidth of a pool: waits until the bytes of the call just served are due, or the job is to end. */
static void keep_pace(struct osd_run *run)
{
	struct osd_session *session = &run->session;
	uint64_t first, now;

	if (!session->due_usec)
		return;
	first = now = osd_monotonic_usec();
	while (now < session->due_usec && is_wanted(run)) {
		const struct timespec step =
			osd_timespec(OSD_MIN(session->due_usec - now, PACE_USEC));

		nanosleep(&step, NULL);
		now = osd_monotonic_usec();
	}
	session->due_usec = 0;
	atomic_fetch_add(&session->pace->held_usec, now - first);
}

/* Whether a function that data pass through will run beyond the first spin, most likely.  Its other half needs the
 * processor then. */
static bool is_long(const struct osd_run *run)
{
	const struct osd_function_code *code = run->job->code;

	return run->session.stage && code &&
	       (uint64_t)atomic_load(&code->pace) * run->job->record.args_length / 1024 >
		       2 * ALONE_SPIN_NSEC;
}

/* Serves calls until the script finishes, breaks the protocol or dies.  The caller posts the answer
 * to FINISH. */
static void serve(struct osd_run *run)
{
	struct osd_shm_area *areas = run->sandbox->shm->areas;
	enum osd_served served;
	uint64_t spin_nsec = OSD_SHM_SPIN_NSEC, turn_usec = 0;
	unsigned area = 0;

	if (run->session.plain && !is_long(run) && osd_run_is_alone(run))
		spin_nsec = ALONE_SPIN_NSEC;

	for (unsigned number = 0;; number++) {
		if (osd_shm_wait_for(&areas[area].call, &run->calls_seen[area], spin_nsec,
				     OSD_SHM_FOREVER, &run->sandbox->dead) != OSD_SHM_POSTED)
			return;
		spin_nsec = OSD_SHM_SPIN_NSEC;
		served = serve_one(run, number, area);
		if (served != OSD_SERVED)
			return; /* a command waits for the end of the job */
		keep_pace(run);
		osd_shm_post(&areas[area].answer);
		area = run->session.ahead ? 1 - area : 0;
		let_others_go(&turn_usec);
	}
}

/* The job could not be handed over. */
static void give_up(struct osd_run *run, enum osd_handover outcome)
{
	struct osd_session *session = &run->session;

	session->phase = OSD_PHASE_OVER;
	if (outcome == OSD_LIMITS_BAD)
		session->fault = OSD_REASON_NO_SANDBOX;
	else if (outcome == OSD_STORE_BAD)
		session->fault = OSD_REASON_STORAGE;
	else if (outcome == OSD_SANDBOX_BAD)
		session->fault = OSD_REASON_SANDBOX_DIED;
}

static void serve_or_give_up(struct osd_run *run, enum osd_handover outcome)
{
	if (outcome == OSD_HANDED_OVER)
		serve(run);
	else
		give_up(run, outcome);
	osd_run_end(run);
}

static void run_job(struct osd_exec *exec, struct osd_job *job, struct osd_sandbox *sandbox)
{
	bool answered = exec->ops->answer(exec, job);
	struct osd_run *run = answered ? NULL : osd_run_create(exec, sandbox);

	osd_lock(&exec->lock);
	if (!run && !answered) { /* out of memory: try again later */
		osd_job_apply(exec, job, OSD_JOB_EVENT_AGAIN, OSD_REASON_WAITS_FOR_SLOT);
		job->record.attempt--;
		osd_exec_delay(exec, job, OSD_NO_MEMORY_USEC);
	}
	if (run) {
		osd_run_set_job(run, job);
	} else {
		osd_sandbox_put_back(exec->sandboxes, sandbox);
		osd_job_unref(job);
	}
	osd_unlock(&exec->lock);
	if (run)
		serve_or_give_up(run, osd_run_hand_over(run));
}

/* exec->lock held.  The next job that may start.  It stays in the queue.  NULL: no job may
 * start. */
static struct osd_job *next_job(const struct osd_pool *pool)
{
	struct osd_fair_entry *entry = osd_pool_next(pool);
	struct osd_job *job;

	osd_assert_held(&pool->exec->lock);
	if (!entry)
		return NULL;
	job = osd_container_of(entry, struct osd_job, entry);
	return job->kind->first(job);
}

/* exec->lock held, but released for a moment while a used sandbox is reset.  Returns a sandbox for
 * the next job, or NULL.  *ret_again: the caller should try again at once. */
static struct osd_sandbox *take_sandbox(struct osd_pool *pool, bool *ret_again)
{
	struct osd_exec *exec = pool->exec;
	struct osd_job *job = next_job(pool);
	struct osd_sandbox_order order;
	struct osd_sandbox *sandbox;
	bool renewed;

	osd_assert_held(&exec->lock);
	*ret_again = false;
	if (!job)
		return NULL;
	order = osd_pool_order(job);
	sandbox = osd_sandbox_take(exec->sandboxes, &order);
	*ret_again = sandbox != NULL;
	if (!sandbox) /* an unused pool may keep no prestarted sandbox */
		osd_sandboxes_refill(exec->sandboxes);
	if (!sandbox || !sandbox->principal)
		return sandbox;
	pool->supply.busy++; /* this proxy's slot: other proxies take no sandbox beyond the slots */
	renewed = osd_sandbox_renew(exec->sandboxes, sandbox, &order);
	pool->supply.busy--;
	if (!renewed)
		return NULL;
	job = next_job(pool); /* not necessarily the same */
	if (job)
		order = osd_pool_order(job);
	if (job && osd_sandbox_fits(sandbox, &order))
		return sandbox;
	osd_sandbox_put_back(exec->sandboxes, sandbox);
	return NULL;
}

/* exec->lock held.  The next job, taken out of the queue, if it is given back to its client, and why; NULL: it
 * is not. */
static struct osd_job *take_for_client(struct osd_pool *pool, uint16_t *ret_reason)
{
	struct osd_job *job = next_job(pool);
	uint16_t reason = 0;

	if (job && osd_pool_returns_work(job))
		reason = OSD_REASON_PUSHED_BACK;
	else if (job && osd_pool_is_late(job, osd_monotonic_usec()))
		reason = OSD_REASON_DEADLINE;
	if (!reason || !osd_exec_claim(pool->exec, job, reason))
		return NULL;
	if (reason == OSD_REASON_PUSHED_BACK)
		osd_pool_work_returned(job);
	*ret_reason = reason;
	return job;
}

/* exec->lock held, released meanwhile. */
static void push_back(struct osd_pool *pool, struct osd_job *job, uint16_t reason)
{
	struct osd_exec *exec = pool->exec;

	osd_proxies_call_next(exec);
	osd_unlock(&exec->lock);
	osd_exec_end_claimed(exec, job, reason);
	osd_lock(&exec->lock);
}

static struct osd_job *take_job(struct osd_pool *pool, struct osd_fair_principal **ret_occupant)
{
	struct osd_fair_entry *entry = osd_pool_next(pool);
	struct osd_job *job = osd_container_of(entry, struct osd_job, entry);

	osd_assert_held(&pool->exec->lock);
	osd_fair_queue_take(&pool->queue, entry);
	*ret_occupant = osd_pool_occupy(pool, entry);
	job = osd_job_ref(job->kind->take(job));
	job->kind->unplace(job);
	memcpy(job->record.set, pool->config.set, sizeof(job->record.set));
	job->started_usec = osd_monotonic_usec();
	job->record.attempt++;
	job->record.started_msec = osd_wall_msec();
	job->record.queue_usec = job->started_usec - job->accepted_usec;
	osd_job_apply(pool->exec, job, OSD_JOB_EVENT_TAKE, OSD_REASON_NONE);
	osd_figures_started(job);
	return job;
}

bool osd_proxy_work(struct osd_pool *pool)
{
	struct osd_exec *exec = pool->exec;
	struct osd_run *started = osd_start_take(pool);
	struct osd_fair_principal *occupant = started ? started->occupant : NULL;
	struct osd_sandbox *sandbox = NULL;
	struct osd_job *job = NULL;
	uint16_t reason;
	bool again = false;

	osd_assert_held(&exec->lock);
	if (!started && (job = take_for_client(pool, &reason))) {
		push_back(pool, job, reason);
		return true;
	}
	if (!started)
		sandbox = take_sandbox(pool, &again);
	if (sandbox)
		job = take_job(pool, &occupant);
	if (!started && !job)
		return again;
	osd_proxies_call_next(exec);
	osd_unlock(&exec->lock);
	if (started)
		serve_or_give_up(started, osd_run_take_over(started));
	else
		run_job(exec, job, sandbox);
	osd_lock(&exec->lock);
	osd_pool_vacate(pool, occupant);
	return true;
}
