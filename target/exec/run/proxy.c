/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proxy.c -- the proxy threads (design D17).  A proxy takes a job and a READY sandbox, hands the
 * job over, and serves the script's calls until the script is over.  Elsewhere: what the calls do
 * (session/), how the job ends (end.c), deadlines and deaths (sandbox/watch.c). */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/run/run.h"
#include "exec/session/session.h"
#include "function/function.h"
#include "object/txn_run.h"

#define TURN_USEC   100	    /* a proxy lets others go at least this often */
#define LIMITS_USEC 1000000 /* iosd-sandboxd's answer to LIMITS */
/* A call without a record that runs alone: its proxy spins for so long at first.  Asleep, it would take longer to
 * wake up than a short function to run. */
#define ALONE_SPIN_NSEC UINT64_C(150000)

/* ---- what the session asks of its proxy ------------------------------------------------------ */

static enum osd_status write_live(struct osd_txn *txn, void *arg)
{
	struct osd_run *run = arg;

	return osd_job_write_live(run->exec, txn, run->job);
}

static enum osd_status store_record(struct osd_run *run)
{
	if (run->session.plain)
		return OSD_OK;
	return osd_txn_run(run->exec->objects, OSD_TXN_INTERNAL, write_live, run);
}

static enum osd_status hook_wrote(void *arg)
{
	struct osd_run *run = arg;

	osd_lock(&run->exec->lock);
	run->job->record.flags |= OSD_JOB_WROTE;
	osd_job_touch(run->job);
	osd_unlock(&run->exec->lock);
	return store_record(run);
}

/* The record names the companion object from its creation, so that a crash leaves no orphan. */
static enum osd_status hook_spilled(void *arg, struct osd_txn *txn, uint64_t companion)
{
	struct osd_run *run = arg;
	enum osd_status status;

	osd_lock(&run->exec->lock);
	run->job->record.result_object = companion;
	osd_unlock(&run->exec->lock);
	status = osd_job_write_live(run->exec, txn, run->job);
	return status == OSD_OK ? osd_job_companion_put(txn, run->job->record.id, companion)
				: status;
}

static void hook_progress(void *arg, uint16_t progress, const uint8_t *message, size_t length)
{
	struct osd_run *run = arg;

	osd_lock(&run->exec->lock);
	osd_job_set_progress(run->job, progress, message, length);
	osd_unlock(&run->exec->lock);
}

/* It fails when the sandbox has ended. */
static enum osd_status hook_share(void *arg, const int *fds, size_t count)
{
	struct osd_run *run = arg;
	uint8_t bytes[OSD_JOB_HEADER];
	size_t length = osd_job_message_encode(OSD_JOB_SHARE, NULL, 0, bytes, sizeof(bytes));
	struct iovec iov = {bytes, length};

	return osd_run_send_fds(run, &iov, 1, fds, count) ? OSD_OK : OSD_E_TASK_ABORTED;
}

static bool hook_is_to_end(void *arg)
{
	struct osd_run *run = arg;
	bool asked;

	osd_lock(&run->exec->lock);
	asked = run->job->end_reason != 0;
	osd_unlock(&run->exec->lock);
	return asked;
}

static bool hook_is_over(void *arg)
{
	const struct osd_run *run = arg;

	return atomic_load(&run->sandbox->dead);
}

/* ---- handing over ---------------------------------------------------------------------------- */

struct content {
	struct osd_job_record *record;
	uint8_t *bytes;
};

static enum osd_status load_content(struct osd_txn *txn, void *arg)
{
	struct content *content = arg;

	return osd_job_code_get(txn, content->record, content->bytes);
}

/* exec->lock held.  Copies the payload of the job, or of its array's head.  NULL: not kept, or no
 * memory. */
static uint8_t *copy_content(const struct osd_job *whole)
{
	size_t length = (size_t)whole->record.args_length + whole->record.code_length;
	uint8_t *copy = whole->content ? malloc(length) : NULL;

	osd_assert_held(&whole->exec->lock);
	if (copy)
		memcpy(copy, whole->content, length);
	return copy;
}

/* Arguments and code, from memory or else from the store.  The caller frees *ret_bytes. */
static enum osd_status get_content(struct osd_run *run, struct osd_job_record *record,
				   uint8_t **ret_bytes)
{
	struct osd_job_record owner = *record; /* an array's head stores them for all members */
	struct content content = {.record = &owner};
	struct osd_job *whole;
	enum osd_status status;

	osd_lock(&run->exec->lock);
	whole = osd_job_whole(run->job);
	content.bytes = whole != run->job ? copy_content(whole) : OSD_STEAL(whole->content);
	osd_unlock(&run->exec->lock);
	if (content.bytes) {
		*ret_bytes = content.bytes;
		return OSD_OK;
	}
	if (record->array.object_id)
		owner.id.object_id = record->array.object_id;
	content.bytes = malloc((size_t)record->args_length + record->code_length);
	if (!content.bytes)
		return OSD_E_NO_MEMORY;
	status = osd_txn_run(run->exec->objects, OSD_TXN_READ_ONLY, load_content, &content);
	if (status == OSD_OK)
		*ret_bytes = content.bytes;
	else
		free(content.bytes);
	return status;
}

/* exec->lock held.  Gives the sandbox the job's limits if it was forked with others. */
static bool settle_limits(struct osd_run *run)
{
	struct osd_exec *exec = run->exec;
	struct osd_sandbox *sandbox = run->sandbox;
	struct osd_sandbox_limits wanted = osd_sandbox_limits_of(&run->job->record.limits);
	struct timespec until = osd_timespec(osd_monotonic_usec() + LIMITS_USEC);

	osd_assert_held(&exec->lock);
	if (osd_sandbox_limits_equal(&wanted, &sandbox->limits))
		return true;
	if (!osd_sandbox_ask_limits(exec->sandboxes, sandbox, &wanted))
		return false;
	while (sandbox->limits_asked && !sandbox->dead)
		if (osd_cond_timedwait(&exec->changed, &exec->lock, &until) != 0)
			break;
	return !sandbox->limits_asked && !sandbox->limits_refused && !sandbox->dead;
}

static void watch_deadlines(struct osd_run *run)
{
	const struct osd_job_limits *limits = &run->job->record.limits;

	osd_assert_held(&run->exec->lock);
	osd_alarm_by(&run->exec->monitor,
		     OSD_MIN(run->sandbox->ping_usec,
			     run->handed_over_usec + OSD_MIN(limits->wall_usec, limits->cpu_usec)));
}

static bool open_session(struct osd_run *run)
{
	if (osd_session_init(&run->session) != OSD_OK)
		return false;
	run->session.gate = &run->exec->runs->gate;
	run->session.pace = &run->job->pool->pace;
	run->session.hooks = (struct osd_session_hooks){.wrote = hook_wrote,
							.spilled = hook_spilled,
							.progress = hook_progress,
							.share = hook_share,
							.pass = osd_run_pass,
							.is_to_end = hook_is_to_end,
							.is_over = hook_is_over,
							.arg = run};
	return true;
}

/* Checks the job's rights again: they may have been revoked while the job was queued. */
static void end_if_revoked(struct osd_run *run)
{
	if (!osd_rights_ended(&run->session))
		return;
	osd_lock(&run->exec->lock);
	if (!run->job->end_reason)
		run->job->end_reason = OSD_REASON_REVOKED;
	osd_unlock(&run->exec->lock);
}

enum handed_over { HANDED_OVER, NOT_WANTED, SANDBOX_BAD, LIMITS_BAD, STORE_BAD };

static enum handed_over hand_over(struct osd_run *run)
{
	OSD_CLEANUP_FREE uint8_t *content = NULL;
	struct osd_exec *exec = run->exec;
	struct osd_job *job = run->job;
	struct osd_job_record record;
	bool wanted, limited, refused;

	end_if_revoked(run);
	osd_lock(&exec->lock);
	limited = settle_limits(run);
	refused = run->sandbox->limits_refused;
	run->unheard = !limited && !refused && !run->sandbox->dead;
	record = job->record;
	wanted = !job->end_reason;
	osd_unlock(&exec->lock);
	if (!wanted)
		return NOT_WANTED;
	if (!limited)
		return refused ? LIMITS_BAD : SANDBOX_BAD;
	if (get_content(run, &record, &content) != OSD_OK || store_record(run) != OSD_OK ||
	    !open_session(run))
		return STORE_BAD;

	osd_lock(&exec->lock);
	wanted = !job->end_reason;
	if (wanted) {
		osd_run_begin(run);
		watch_deadlines(run);
	}
	osd_unlock(&exec->lock);
	if (!wanted)
		return NOT_WANTED;
	osd_run_note_start(run, &record);
	return osd_run_send(run, job, &record, content) ? HANDED_OVER : SANDBOX_BAD;
}

/* Completes the handover of a job that its submitter has already started (start.c). */
static enum handed_over take_over(struct osd_run *run)
{
	osd_lock(&run->exec->lock);
	watch_deadlines(run);
	osd_unlock(&run->exec->lock);
	if (run->sent)
		osd_sandbox_watch_again(run->exec->sandboxes, run->sandbox);
	if (run->not_sent)
		return SANDBOX_BAD;
	if (run->session.phase == OSD_PHASE_OVER) /* its submitter served it, and it has to be killed */
		return NOT_WANTED;
	return open_session(run) ? HANDED_OVER : STORE_BAD;
}

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
		osd_run_pace(run);
		osd_shm_post(&areas[area].answer);
		area = run->session.ahead ? 1 - area : 0;
		let_others_go(&turn_usec);
	}
}

/* The job could not be handed over. */
static void give_up(struct osd_run *run, enum handed_over outcome)
{
	struct osd_session *session = &run->session;

	session->phase = OSD_PHASE_OVER;
	if (outcome == LIMITS_BAD)
		session->fault = OSD_REASON_NO_SANDBOX;
	else if (outcome == STORE_BAD)
		session->fault = OSD_REASON_STORAGE;
	else if (outcome == SANDBOX_BAD)
		session->fault = OSD_REASON_SANDBOX_DIED;
}

static void serve_or_give_up(struct osd_run *run, enum handed_over outcome)
{
	if (outcome == HANDED_OVER)
		serve(run);
	else
		give_up(run, outcome);
	osd_run_end(run);
}

/* exec->lock held.  A sandbox that was taken for a job and has not seen it. */
static void return_sandbox(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	if (sandbox->principal)
		osd_sandbox_keep_on(exec->sandboxes, sandbox);
	else
		osd_sandbox_give_back(exec->sandboxes, sandbox, false);
}

static void run_job(struct osd_exec *exec, struct osd_job *job, struct osd_sandbox *sandbox)
{
	bool answered = exec->ops->answer(exec, job);
	struct osd_run *run = answered ? NULL : osd_run_create(exec, sandbox);

	osd_lock(&exec->lock);
	if (answered) {
		return_sandbox(exec, sandbox);
		osd_job_unref(job);
		osd_unlock(&exec->lock);
		return;
	}
	if (!run) { /* out of memory: try again later */
		osd_job_apply(exec, job, OSD_JOB_EVENT_AGAIN, OSD_REASON_WAITS_FOR_SLOT);
		job->record.attempt--;
		osd_exec_delay(exec, job, 100000);
		osd_sandbox_give_back(exec->sandboxes, sandbox, false);
		osd_job_unref(job);
		osd_unlock(&exec->lock);
		return;
	}
	osd_run_set_job(run, job);
	osd_unlock(&exec->lock);
	serve_or_give_up(run, hand_over(run));
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

static struct osd_sandbox *take_for(const struct osd_job *job)
{
	struct osd_sandbox_order order = osd_pool_order(job);

	osd_assert_held(&job->exec->lock);
	return osd_sandbox_take(job->exec->sandboxes, &order);
}

static bool fits(const struct osd_sandbox *sandbox, const struct osd_job *job)
{
	struct osd_sandbox_order order = osd_pool_order(job);

	return osd_sandbox_fits(sandbox, &order);
}

/* exec->lock held, but released for a moment while a used sandbox is reset.  Returns a sandbox for
 * the next job, or NULL.  *ret_again: the caller should try again at once. */
static struct osd_sandbox *take_sandbox(struct osd_pool *pool, bool *ret_again)
{
	struct osd_exec *exec = pool->exec;
	struct osd_job *job = next_job(pool);
	struct osd_sandbox *sandbox = job ? take_for(job) : NULL;
	struct osd_sandbox_order order;
	bool renewed;

	osd_assert_held(&exec->lock);
	*ret_again = sandbox != NULL;
	if (job && !sandbox)
		osd_sandboxes_refill(
			exec->sandboxes); /* an unused pool may keep no prestarted sandbox */
	if (!sandbox || !sandbox->principal)
		return sandbox;
	pool->supply.busy++; /* this proxy's slot: other proxies take no sandbox beyond the slots */
	order = osd_pool_order(job);
	renewed = osd_sandbox_renew(exec->sandboxes, sandbox, &order);
	pool->supply.busy--;
	if (!renewed)
		return NULL;
	job = next_job(pool); /* not necessarily the same */
	if (job && fits(sandbox, job))
		return sandbox;
	osd_sandbox_keep_on(exec->sandboxes, sandbox);
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
	job = osd_job_ref(job->kind->take(job));
	osd_exec_unplace(job);
	*ret_occupant = osd_pool_occupy(pool, job->record.principal);
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
		serve_or_give_up(started, take_over(started));
	else
		run_job(exec, job, sandbox);
	osd_lock(&exec->lock);
	osd_pool_vacate(pool, occupant);
	return true;
}
