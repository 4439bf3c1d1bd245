/* SPDX-License-Identifier: GPL-2.0-or-later */
/* end.c -- the end of a run.  RUNNING -> COMPLETING under exec->lock decides between a
 * finish and a kill.  Then the proxy drains the pipes, and one transaction writes the whole end.  A
 * job that may be retried gets another attempt instead. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/run/run.h"
#include "object/txn_run.h"

#define DEATH_USEC	 5000000 /* the longest wait for a killed sandbox and its exit status */
#define RETRY_FIRST_USEC UINT64_C(100000)
#define RETRY_MOST_USEC	 UINT64_C(60000000)

/* ---- why it ended ---------------------------------------------------------------------------- */

static bool finished(const struct osd_run *run)
{
	return run->handed_over_usec && run->session.phase == OSD_PHASE_OVER && !run->session.fault;
}

/* exec->lock held.  Waits until the sandbox is dead and iosd-sandboxd has reported its exit
 * status. */
static void await_death(struct osd_run *run)
{
	struct osd_exec *exec = run->exec;
	struct osd_sandbox *sandbox = run->sandbox;
	struct timespec until = osd_timespec(osd_monotonic_usec() + DEATH_USEC);

	osd_assert_held(&exec->lock);
	if (run->session.fault)
		osd_sandbox_kill(exec->sandboxes, sandbox);
	while ((!sandbox->dead || !sandbox->exit_known) && !sandbox->given_up)
		if (osd_cond_timedwait(&exec->changed, &exec->lock, &until) != 0)
			break;
}

static uint16_t reason_of_finish(const struct osd_session *session)
{
	static const uint16_t reasons[] = {
		[OSD_FINISH_OK] = OSD_REASON_NONE,
		[OSD_FINISH_EXCEPTION] = OSD_REASON_EXCEPTION,
		[OSD_FINISH_EXIT] = OSD_REASON_EXIT_CODE,
		[OSD_FINISH_MEMORY] = OSD_REASON_MEMORY_LIMIT,
		[OSD_FINISH_ENDED] = OSD_REASON_EXCEPTION,
		[OSD_FINISH_BAD_CODE] = OSD_REASON_BAD_CODE,
		[OSD_FINISH_CODE_LIMIT] = OSD_REASON_CODE_LIMIT,
		[OSD_FINISH_THREADS] = OSD_REASON_THREAD_LIMIT,
		[OSD_FINISH_FILES] = OSD_REASON_FILE_LIMIT,
	};

	if (session->finish_kind == OSD_FINISH_EXIT && !session->exit_code)
		return OSD_REASON_NONE;
	return reasons[session->finish_kind];
}

/* Processor time of the process, less what its earlier jobs used. */
static uint64_t cpu_at_exit(const struct osd_sandbox *sandbox)
{
	uint64_t total = sandbox->exit.cpu_user_usec + sandbox->exit.cpu_system_usec;

	return sandbox->principal ? total - OSD_MIN(total, sandbox->cpu_before_usec) : total;
}

static uint16_t reason_of_death(const struct osd_sandbox *sandbox,
				const struct osd_job_limits *limits)
{
	const struct osd_sandbox_exit *end = &sandbox->exit;

	if (sandbox->service_lost)
		return OSD_REASON_SERVICE_LOST;
	if (!sandbox->exit_known)
		return OSD_REASON_SANDBOX_DIED;
	if (end->out_of_memory)
		return OSD_REASON_MEMORY_LIMIT;
	if (WIFEXITED(end->wait_status))
		return OSD_REASON_NO_FINISH;
	if (WTERMSIG(end->wait_status) != SIGKILL && WTERMSIG(end->wait_status) != SIGXCPU)
		return OSD_REASON_SIGNAL;
	/* The kernel kills at RLIMIT_CPU, too, if the exact check was late. */
	if (cpu_at_exit(sandbox) >= limits->cpu_usec)
		return OSD_REASON_CPU_LIMIT;
	return OSD_REASON_SANDBOX_DIED; /* killed by somebody else */
}

/* From here on a kill has no effect. */
static uint16_t decide(struct osd_run *run)
{
	struct osd_job *job = run->job;
	uint16_t reason = job->end_reason;

	osd_assert_held(&run->exec->lock);
	run->unasked = !reason;
	if (!reason && run->session.fault)
		reason = run->session.fault;
	else if (!reason && finished(run))
		reason = reason_of_finish(&run->session);
	else if (!reason)
		reason = reason_of_death(run->sandbox, &job->record.limits);
	job->end_reason = reason;
	osd_job_apply(run->exec, job, OSD_JOB_EVENT_COLLECT, reason);
	return reason;
}

/* The failure, if any, of storing the job's output and result. */
static uint16_t reason_of_storage(const struct osd_run *run, uint16_t reason)
{
	enum osd_status result = run->session.result_status;

	if (reason == OSD_REASON_NONE && atomic_load(&run->output.over_limit))
		reason = OSD_REASON_OUTPUT_LIMIT;
	if (reason == OSD_REASON_NONE)
		reason = atomic_load(&run->output.unstored);
	if (reason == OSD_REASON_NONE && result != OSD_OK)
		reason = osd_output_reason(result);
	return reason;
}

/* ---- the record ------------------------------------------------------------------------------ */

static void note_usage(struct osd_run *run, struct osd_job_record *record)
{
	const struct osd_sandbox *sandbox = run->sandbox;
	const struct osd_sandbox_exit *end = &sandbox->exit;
	uint64_t total;

	osd_run_sample(run, record);
	if (!sandbox->exit_known || sandbox->service_lost)
		return;
	total = cpu_at_exit(sandbox);
	record->cpu_system_usec = OSD_MIN(total, end->cpu_system_usec);
	if (sandbox->principal)
		record->cpu_system_usec -=
			OSD_MIN(record->cpu_system_usec, sandbox->system_before_usec);
	record->cpu_user_usec = total - record->cpu_system_usec;
	record->peak_bytes = OSD_MAX(record->peak_bytes, end->peak_bytes);
	if (WIFSIGNALED(end->wait_status))
		record->signal = (uint8_t)WTERMSIG(end->wait_status);
	else
		record->exit_code = (uint32_t)WEXITSTATUS(end->wait_status);
}

static void note_flags(struct osd_run *run, struct osd_job_record *record)
{
	const struct osd_session *session = &run->session;

	if (atomic_load(&run->output.over_limit))
		record->flags |= OSD_JOB_STDOUT_CUT;
	if (session->result_object)
		record->flags |= OSD_JOB_RESULT_SPILLED;
	if (session->result_json)
		record->flags |= OSD_JOB_RESULT_JSON;
	record->result_object = session->result_object;
}

/* Fills in the final record, except state and reason. */
static void fill_record(struct osd_run *run, struct osd_job_record *record)
{
	struct osd_job *job = run->job;

	osd_lock(&run->exec->lock);
	osd_job_show_progress(job);
	job->starving_known = finished(run) && run->sandbox->user == run &&
			      osd_starvation_end(run->sandbox, osd_monotonic_usec());
	note_usage(run, &job->record);
	note_flags(run, &job->record);
	if (finished(run)) {
		job->record.exit_code = run->session.exit_code;
		if (run->session.line[0])
			memcpy(job->record.message, run->session.line, sizeof(job->record.message));
	}
	*record = job->record;
	osd_unlock(&run->exec->lock);
}

/* ---- another attempt ------------------------------------------------------------------------- */

static bool wants_retry(const struct osd_job_record *record, uint16_t reason, uint8_t state)
{
	uint32_t exit_wanted = (record->client_flags & OSD_EXEC_RETRY_EXIT) >> 8;

	if (state == OSD_STATE_SANDBOX_LOST && reason != OSD_REASON_NO_SANDBOX)
		return true;
	if (reason == OSD_REASON_MEMORY_LIMIT)
		return record->client_flags & OSD_EXEC_RETRY_OOM;
	return reason == OSD_REASON_EXIT_CODE && exit_wanted && record->exit_code == exit_wanted;
}

static enum osd_status drop_companion(struct osd_txn *txn, void *arg)
{
	const struct osd_object_id *companion = arg;
	enum osd_status status = osd_remove_if_there(txn, *companion);

	return status == OSD_OK ? osd_job_companion_delete(txn, *companion) : status;
}

/* If its object cannot be removed, the record of a job that ends names it, so it goes with that. */
static void erase_result(struct osd_run *run)
{
	struct osd_session *session = &run->session;
	struct osd_object_id companion = {session->job.partition_id, session->result_object};

	atomic_store(&session->result_length, 0);
	session->result_json = false;
	if (companion.object_id &&
	    osd_txn_run(run->exec->objects, OSD_TXN_INTERNAL, drop_companion, &companion) != OSD_OK)
		osd_warning("result object %#llx/%#llx of a job without a result stays behind",
			    (unsigned long long)companion.partition_id,
			    (unsigned long long)companion.object_id);
	else
		session->result_object = 0;
}

/* Removes the output and the result of the last attempt. */
static void erase_output(struct osd_run *run)
{
	if (run->output.object &&
	    osd_object_truncate(run->output.object, 0, OSD_DATA_RESERVE) != OSD_OK)
		osd_warning("output of a lost attempt stays in front of the next one's");
	erase_result(run);
}

static uint64_t retry_delay_usec(const struct osd_job_record *record)
{
	uint64_t delay = RETRY_FIRST_USEC << OSD_MIN(record->attempt - 1, 9);

	delay = OSD_MIN(delay, RETRY_MOST_USEC);
	return delay + osd_monotonic_usec() % (delay / 5 + 1); /* jitter: up to a fifth */
}

static void again(struct osd_run *run, uint16_t reason)
{
	struct osd_exec *exec = run->exec;
	struct osd_job *job = run->job;
	struct osd_job_record *record = &job->record;
	uint64_t delay;

	erase_output(run);
	osd_lock(&exec->lock);
	osd_job_apply(exec, job, OSD_JOB_EVENT_AGAIN, OSD_REASON_WAITS_FOR_RETRY);
	job->end_reason = 0;
	job->run = NULL;
	run->sandbox->user = NULL;
	record->exit_code = record->signal = 0;
	record->progress = OSD_JOB_PROGRESS_NONE;
	record->message[0] = '\0';
	record->result_length = record->stdout_length = record->stderr_length =
		record->result_object = 0;
	record->flags &= ~(uint32_t)(OSD_JOB_STDOUT_CUT | OSD_JOB_STDERR_CUT |
				     OSD_JOB_RESULT_SPILLED | OSD_JOB_RESULT_JSON);
	delay = retry_delay_usec(record);
	osd_exec_delay(exec, job, delay);
	osd_story_again(job, delay);
	record->attempt -= run->unheard;
	if (!run->unheard)
		exec->pools->retried[osd_job_reason_row(reason)]++;
	osd_unlock(&exec->lock);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void finish(struct osd_run *run, struct osd_job_record *record, uint16_t reason,
		   uint8_t state)
{
	OSD_CLEANUP_FREE uint8_t *errors = NULL, *used = NULL;
	struct osd_session *session = &run->session;
	struct osd_job_remains remains = {
		.traceback = session->traceback,
		.traceback_length = session->traceback_length,
	};
	uint64_t total;

	if (record->stderr_length > 0)
		errors = malloc(OSD_JOB_PAYLOAD_MAX);
	if (errors) {
		remains.stderr_bytes = errors;
		osd_output_errors(&run->output, errors, &remains.stderr_stored, &total);
	}
	osd_session_end_uses(session);
	if (record->flags & OSD_JOB_WROTE || !osd_used_is_versioned(&session->used))
		record->flags &= ~(uint32_t)OSD_JOB_REUSABLE;
	remains.listed = osd_used_encode(&session->used, &used, &remains.used_length) == OSD_OK;
	remains.used = used;
	if (!session->result_object) {
		remains.result = session->placed ? session->placed : session->result;
		remains.owned_result = session->placed ? NULL : &session->result;
		remains.result_length = record->result_length;
	}
	osd_job_record_end(record, state, reason);
	osd_exec_finish(run->exec, run->job, record, &remains);
}

static void end_or_again(struct osd_run *run, uint16_t reason)
{
	struct osd_job_record record;
	uint8_t state;

	reason = reason_of_storage(run, reason);
	state = reason ? osd_job_reason_info(reason)->terminal_state : OSD_STATE_COMPLETED;
	if (run->session.result_status != OSD_OK) /* it has a gap */
		erase_result(run);
	fill_record(run, &record);
	if (wants_retry(&record, reason, state)) {
		bool harmless =
			!(record.flags & OSD_JOB_WROTE) || record.flags & OSD_JOB_IDEMPOTENT;

		bool has_code = !(record.flags & OSD_JOB_PLAIN); /* still */

		if (harmless && ((has_code && record.attempt < osd_job_attempts(&record)) ||
				 run->unheard)) {
			again(run, reason);
			return;
		}
		if (!harmless && state == OSD_STATE_SANDBOX_LOST)
			reason = OSD_REASON_LOST_AFTER_WRITE;
	}
	finish(run, &record, reason, state);
}

static bool may_run_another(const struct osd_run *run)
{
	const struct osd_session *session = &run->session;
	const struct osd_sandbox *sandbox = run->sandbox;
	const struct osd_reuse_facts facts = {
		.finished = finished(run) && run->unasked && sandbox->kill_usec == OSD_NEVER &&
			    session->finish_kind != OSD_FINISH_MEMORY &&
			    session->finish_kind != OSD_FINISH_ENDED,
		.output_stored =
			run->output.status == OSD_OK && !atomic_load(&run->output.over_limit),
		.principal = run->job->record.principal,
		.jobs = sandbox->jobs,
		.jobs_max = sandbox->supply->sandbox_jobs,
		.cpu_used_usec = run->cpu_usec, /* at its end */
		.cpu_limit_usec = sandbox->cpu_limit_usec,
		.cpu_seconds = sandbox->limits.cpu_seconds,
		.peak_bytes = atomic_load(&sandbox->shm->peak_bytes),
		.peak_first_bytes = sandbox->peak_first_bytes,
		.memory_bytes = sandbox->limits.memory_bytes,
		.stage = session->stage,
	};

	osd_assert_held(&run->exec->lock);
	return !sandbox->dead && !sandbox->stale && osd_reuse_keeps(sandbox->supply->reuse, &facts);
}

/* Whether the job that starts next in the sandbox is most likely another call of the run's function, by the same
 * principal. */
static bool same_follows(const struct osd_run *run)
{
	const struct osd_fair_entry *entry = osd_fair_queue_peek(&run->job->pool->queue, false);
	const struct osd_job_record *record = &run->job->record, *next;

	osd_assert_held(&run->exec->lock);
	if (!run->session.kept_code || !run->code_slot)
		return false;
	if (!entry) /* none waits: as it was before */
		return run->sandbox->last_slot == run->code_slot;
	next = &osd_container_of(entry, struct osd_job, entry)->record;
	return osd_same_id(next->function.id, record->function.id) &&
	       strcmp(next->principal, record->principal) == 0 &&
	       memcmp(next->code_sha256, record->code_sha256, sizeof(next->code_sha256)) == 0 &&
	       strcmp(next->name, record->name) == 0;
}

/* Processor time of the job; 0: its sandbox is gone. */
static uint64_t cpu_used(const struct osd_run *run)
{
	return run->cpu_usec - OSD_MIN(run->cpu_usec, run->sandbox->cpu_before_usec);
}

/* The proxy no longer needs the run.  The output thread may still hold a reference for a moment. */
static void release(struct osd_run *run)
{
	struct osd_exec *exec = run->exec;
	struct osd_sandbox *sandbox = run->sandbox;
	struct osd_sandbox_order order;

	if (run->handed_over_usec)
		osd_output_release(&run->output);
	osd_session_release(&run->session);
	osd_lock(&exec->lock);
	exec->running_count--;
	run->job->pool->load.running--;
	run->job->pool->load.started_usec -= run->started_usec;
	exec->runs->limited_count -= run->session.rights.limited;
	if (run->job->run == run)
		run->job->run = NULL;
	sandbox->references++; /* one for the pool, one for the run */
	if (may_run_another(run)) {
		if (run->code_slot && run->session.kept_code)
			osd_kept_codes_note(&sandbox->codes, run->code_slot, cpu_used(run));
		order = osd_pool_order(run->job);
		osd_sandbox_keep(exec->sandboxes, sandbox, &order,
				 same_follows(run) ? run->code_slot : 0);
		sandbox->last_slot = run->code_slot;
	} else {
		sandbox->answer_due = finished(run);
		osd_sandbox_give_back(exec->sandboxes, sandbox,
				      run->handed_over_usec || run->session.fault);
	}
	osd_run_unref(run);
	pthread_cond_broadcast(&exec->changed);
	osd_unlock(&exec->lock);
}

void osd_run_end(struct osd_run *run)
{
	struct osd_exec *exec = run->exec;
	uint16_t reason;
	bool stopping, kept;

	osd_lock(&exec->lock);
	if (run->handed_over_usec && !finished(run))
		await_death(run);
	stopping = exec->stopping && !finished(run);
	reason = stopping ? 0 : decide(run);
	kept = finished(run) && run->sandbox->supply->reuse != OSD_REUSE_NEVER; /* most likely */
	osd_unlock(&exec->lock);
	if (run->handed_over_usec)
		osd_output_finish(&run->output, run->sandbox->stdout_fd, run->sandbox->stderr_fd);
	if (!stopping) /* the next start decides, as after a crash */
		end_or_again(run, reason);
	if (run->handed_over_usec && !kept)
		osd_sandbox_watch_pipes(exec->sandboxes, run->sandbox, EPOLL_CTL_DEL);
	release(run);
}
