/* SPDX-License-Identifier: GPL-2.0-or-later */
/* handover.c -- a proxy hands its job over to the sandbox: it gives the sandbox the job's limits, stores the record,
 * opens the session and sends the job.  Also the answers to the session's questions (run.h). */
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd_message.h"
#include "base/util.h"
#include "exec/run/run.h"
#include "exec/session/session.h"
#include "object/txn_run.h"

#define LIMITS_USEC 1000000 /* iosd-sandboxd's answer to LIMITS */

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

/* Whether the script has received every message of its job's socket, as far as is known. */
static bool has_read_all(const struct osd_run *run)
{
	int unread;

	return ioctl(run->sandbox->job_fd, SIOCOUTQ, &unread) != 0 || unread == 0;
}

/* It fails when the sandbox has ended.  The kernel bounds the descriptors in transit of all jobs together. */
static enum osd_status hook_share(void *arg, const int *fds, size_t count)
{
	struct osd_run *run = arg;
	uint8_t bytes[OSD_JOB_HEADER];
	size_t length = osd_job_message_encode(OSD_JOB_SHARE, NULL, 0, bytes, sizeof(bytes));
	int error;

	if (!has_read_all(run))
		return OSD_E_UNSUPPORTED;
	error = osd_fd_send(run->sandbox->job_fd, bytes, length, fds, count, MSG_DONTWAIT);
	return error ? OSD_E_TASK_ABORTED : OSD_OK;
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

enum osd_handover osd_run_hand_over(struct osd_run *run)
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
		return OSD_NOT_WANTED;
	if (!limited)
		return refused ? OSD_LIMITS_BAD : OSD_SANDBOX_BAD;
	if (get_content(run, &record, &content) != OSD_OK || store_record(run) != OSD_OK ||
	    !open_session(run))
		return OSD_STORE_BAD;

	osd_lock(&exec->lock);
	wanted = !job->end_reason;
	if (wanted) {
		osd_run_begin(run);
		watch_deadlines(run);
	}
	osd_unlock(&exec->lock);
	if (!wanted)
		return OSD_NOT_WANTED;
	osd_run_note_start(run, &record);
	return osd_run_send(run, job, &record, content) ? OSD_HANDED_OVER : OSD_SANDBOX_BAD;
}

enum osd_handover osd_run_take_over(struct osd_run *run)
{
	osd_lock(&run->exec->lock);
	watch_deadlines(run);
	osd_unlock(&run->exec->lock);
	if (run->sent)
		osd_sandbox_watch_pipes(run->exec->sandboxes, run->sandbox, EPOLL_CTL_MOD);
	if (run->not_sent)
		return OSD_SANDBOX_BAD;
	if (run->session.phase == OSD_PHASE_OVER) /* its submitter served it, and it has to be killed */
		return OSD_NOT_WANTED;
	return open_session(run) ? OSD_HANDED_OVER : OSD_STORE_BAD;
}
