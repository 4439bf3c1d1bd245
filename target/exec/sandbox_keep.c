/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandbox_keep.c -- sandboxes that run another job (design D21): kept for a principal, renewed,
 * ended when nobody wants them.  Under exec->lock; whether one is kept at all is decided in
 * reuse.c.
 *
 * The answer to FINISH tells the sandbox to make itself ready again; its READY is read by the proxy
 * that wants it, or by the monitor when it is due, so that a stream of jobs wakes nobody for it. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/exec_impl.h"

#define RENEW_MSEC   250 /* far longer than a clean-up takes on a busy machine */
#define STALE_PIECES 4	/* a pipe holds less */

bool osd_pool_fits(const struct osd_sandbox *sandbox, const struct osd_job *job)
{
	struct osd_sandbox_limits wanted = osd_sandbox_limits_of(&job->record.limits);

	return sandbox->pool == job->pool &&
	       osd_reuse_fits(sandbox->principal, &sandbox->limits, job->record.principal, &wanted);
}

/* The one that has waited longest: it has been READY longest. */
struct osd_sandbox *osd_pool_find_kept(struct osd_exec *exec, const struct osd_job *job)
{
	struct osd_sandbox *found = NULL;

	for (struct osd_sandbox *sandbox = exec->pool.list; sandbox; sandbox = sandbox->next)
		if (sandbox->state == OSD_SANDBOX_KEPT && !sandbox->dead &&
		    osd_pool_fits(sandbox, job) &&
		    (!found || sandbox->kill_usec < found->kill_usec))
			found = sandbox;
	return found;
}

/* At most as many wait as may work; the longest unused one goes first. */
static void make_room(struct osd_exec *exec, const struct osd_pool *pool)
{
	struct osd_sandbox *oldest = NULL;
	unsigned kept = 0;

	for (struct osd_sandbox *sandbox = exec->pool.list; sandbox; sandbox = sandbox->next) {
		if (sandbox->state != OSD_SANDBOX_KEPT || sandbox->dead || sandbox->pool != pool)
			continue;
		kept++;
		if (!oldest || sandbox->kill_usec < oldest->kill_usec)
			oldest = sandbox;
	}
	if (kept >= pool->config.max)
		osd_pool_kill(exec, oldest);
}

void osd_pool_drop_kept(struct osd_exec *exec, const struct osd_pool *pool)
{
	struct osd_sandbox *next;

	for (struct osd_sandbox *sandbox = exec->pool.list; sandbox && exec->pool.fd >= 0;
	     sandbox = next) {
		next = sandbox->next;
		if (sandbox->state == OSD_SANDBOX_KEPT && sandbox->pool == pool)
			osd_pool_kill(exec, sandbox);
	}
}

static void set_kept(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	sandbox->job = NULL;
	sandbox->wall_usec = OSD_NEVER;
	sandbox->state = OSD_SANDBOX_KEPT;
	sandbox->kill_usec = osd_monotonic_usec() +
			     (sandbox->ready_again ? sandbox->pool->config.idle_usec
						   : OSD_REUSE_RESET_USEC);
	osd_monitor_by(exec, sandbox->kill_usec);
	osd_sandbox_unref(sandbox);
}

void osd_pool_keep(struct osd_exec *exec, struct osd_sandbox *sandbox, const char *principal)
{
	static const struct osd_answer again = {.code = OSD_ANSWER_OK, .a = 1};
	char *name = sandbox->principal ? sandbox->principal : strdup(principal);

	if (!name || sandbox->dead || exec->stopping) {
		osd_pool_give_back(exec, sandbox, true);
		return;
	}
	make_room(exec, sandbox->pool);
	sandbox->principal = name;
	sandbox->ready_again = false;
	sandbox->calls_seen = atomic_load(&sandbox->shm->areas[0].call.seq);
	osd_answer_encode(&again, (uint8_t *)sandbox->shm + OSD_SHM_FRAME_AT + OSD_FRAME_BYTES);
	osd_shm_post(&sandbox->shm->areas[0].answer);
	set_kept(exec, sandbox);
	osd_pool_refill(exec);
}

void osd_pool_keep_on(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	set_kept(exec, sandbox);
	pthread_cond_signal(&sandbox->pool->work);
}

/* What it printed while it cleaned up belongs to no job. */
static void discard(int fd)
{
	uint8_t bytes[16384];

	for (int i = 0; i < STALE_PIECES && read(fd, bytes, sizeof(bytes)) == sizeof(bytes); i++)
		;
}

/* Its READY, if that is there: the one message, and no call after FINISH. */
static bool hear(struct osd_sandbox *sandbox)
{
	uint8_t bytes[64];
	enum osd_job_message type;
	const uint8_t *body;
	size_t body_length;
	ssize_t length;

	if (sandbox->ready_again)
		return true;
	length = recv(sandbox->job_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (length <= 0 ||
	    !osd_job_message_decode(bytes, (size_t)length, &type, &body, &body_length) ||
	    type != OSD_JOB_READY || body_length != 0 ||
	    atomic_load(&sandbox->shm->areas[0].call.seq) != sandbox->calls_seen)
		return false;
	discard(sandbox->stdout_fd);
	discard(sandbox->stderr_fd);
	sandbox->ready_again = true;
	return true;
}

bool osd_pool_renew(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	struct pollfd first_word = {.fd = sandbox->job_fd, .events = POLLIN};

	sandbox->kill_usec = OSD_NEVER;
	if (!hear(sandbox)) {
		osd_unlock(&exec->lock);
		poll(&first_word, 1, RENEW_MSEC); /* its end of the socket goes with it */
		osd_lock(&exec->lock);
	}
	if (!sandbox->dead && hear(sandbox))
		return true;
	if (!sandbox->dead)
		osd_debug("sandbox %llu is not fit for another job",
			  (unsigned long long)sandbox->id);
	osd_pool_kill(exec, sandbox);
	osd_pool_give_back(exec, sandbox, true);
	return false;
}

bool osd_pool_is_renewed(struct osd_sandbox *sandbox)
{
	if (sandbox->dead || !hear(sandbox))
		return false;
	sandbox->kill_usec = OSD_NEVER;
	return true;
}

bool osd_pool_keeps_longer(struct osd_sandbox *sandbox, uint64_t now_usec)
{
	if (sandbox->state != OSD_SANDBOX_KEPT || sandbox->ready_again || !hear(sandbox))
		return false;
	sandbox->kill_usec = now_usec + sandbox->pool->config.idle_usec;
	return true;
}
