/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keep.c -- sandboxes that run more than one job (design D21).  They are kept for a principal, renewed before
 * the next job, and ended when nobody needs them (sandbox.h).  reuse.c decides which are kept.
 *
 * The answer to FINISH makes the sandbox prepare for another job.  The proxy that takes the sandbox reads
 * its READY, or the monitor does when READY is due.  So a stream of jobs wakes no other thread for it. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/sandbox/sandbox.h"

#define RENEW_MSEC   250 /* far longer than a clean-up takes on a busy machine */
#define STALE_PIECES 4	 /* a pipe holds less */

bool osd_sandbox_fits(const struct osd_sandbox *sandbox, const struct osd_sandbox_order *order)
{
	return sandbox->supply == order->supply &&
	       osd_reuse_fits(sandbox->principal, &sandbox->limits, order->principal,
			      &order->limits);
}

/* The one that has waited longest: it has been READY longest. */
static struct osd_sandbox *find_kept(struct osd_sandboxes *sandboxes,
				     const struct osd_sandbox_order *order)
{
	struct osd_sandbox *found = NULL;

	for (struct osd_sandbox *sandbox = sandboxes->list; sandbox; sandbox = sandbox->next)
		if (sandbox->state == OSD_SANDBOX_KEPT && !sandbox->dead &&
		    osd_sandbox_fits(sandbox, order) &&
		    (!found || sandbox->kill_usec < found->kill_usec))
			found = sandbox;
	return found;
}

struct osd_sandbox *osd_sandbox_take(struct osd_sandboxes *sandboxes,
				     const struct osd_sandbox_order *order)
{
	struct osd_sandbox *found = find_kept(sandboxes, order);

	if (!found)
		found = osd_supply_find_ready(sandboxes, order->supply);
	if (found) {
		found->state = OSD_SANDBOX_TAKEN;
		found->references++;
	}
	return found;
}

/* At most as many wait as may work; the longest unused one goes first. */
static void make_room(struct osd_sandboxes *sandboxes, const struct osd_supply *supply)
{
	struct osd_sandbox *oldest = NULL;
	unsigned kept = 0;

	for (struct osd_sandbox *sandbox = sandboxes->list; sandbox; sandbox = sandbox->next) {
		if (sandbox->state != OSD_SANDBOX_KEPT || sandbox->dead ||
		    sandbox->supply != supply)
			continue;
		kept++;
		if (!oldest || sandbox->kill_usec < oldest->kill_usec)
			oldest = sandbox;
	}
	if (kept >= supply->max)
		osd_sandbox_kill(sandboxes, oldest);
}

void osd_supply_drop_kept(struct osd_sandboxes *sandboxes, const struct osd_supply *supply)
{
	struct osd_sandbox *next;

	for (struct osd_sandbox *sandbox = sandboxes->list; sandbox && sandboxes->fd >= 0;
	     sandbox = next) {
		next = sandbox->next;
		if (sandbox->state == OSD_SANDBOX_KEPT && sandbox->supply == supply)
			osd_sandbox_kill(sandboxes, sandbox);
	}
}

static void set_kept(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	sandbox->user = NULL;
	sandbox->wall_usec = OSD_NEVER;
	sandbox->state = OSD_SANDBOX_KEPT;
	sandbox->kill_usec =
		osd_monotonic_usec() +
		(sandbox->ready_again ? sandbox->supply->idle_usec : OSD_REUSE_RESET_USEC);
	osd_alarm_by(sandboxes->alarm, sandbox->kill_usec);
	osd_sandbox_unref(sandbox);
}

void osd_sandbox_keep(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox,
		      const char *principal)
{
	static const struct osd_answer again = {.code = OSD_ANSWER_OK, .a = 1};
	char *name = sandbox->principal ? sandbox->principal : strdup(principal);

	if (!name || sandbox->dead || sandboxes->stopping) {
		osd_sandbox_give_back(sandboxes, sandbox, true);
		return;
	}
	make_room(sandboxes, sandbox->supply);
	sandbox->principal = name;
	sandbox->ready_again = false;
	sandbox->calls_seen = atomic_load(&sandbox->shm->areas[0].call.seq);
	osd_answer_encode(&again, (uint8_t *)sandbox->shm + OSD_SHM_FRAME_AT + OSD_FRAME_BYTES);
	osd_shm_post(&sandbox->shm->areas[0].answer);
	set_kept(sandboxes, sandbox);
	osd_sandboxes_refill(sandboxes);
}

void osd_sandbox_keep_on(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	set_kept(sandboxes, sandbox);
	sandboxes->ops->ready(sandboxes->arg);
}

/* Throws away what the sandbox printed while it cleaned up: it belongs to no job. */
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

bool osd_sandbox_renew(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	struct pollfd first_word = {.fd = sandbox->job_fd, .events = POLLIN};

	sandbox->kill_usec = OSD_NEVER;
	if (!hear(sandbox)) {
		osd_unlock(sandboxes->lock);
		poll(&first_word, 1, RENEW_MSEC); /* its end of the socket goes with it */
		osd_lock(sandboxes->lock);
	}
	if (!sandbox->dead && hear(sandbox))
		return true;
	if (!sandbox->dead)
		osd_debug("sandbox %llu is not fit for another job",
			  (unsigned long long)sandbox->id);
	osd_sandbox_kill(sandboxes, sandbox);
	osd_sandbox_give_back(sandboxes, sandbox, true);
	return false;
}

bool osd_sandbox_is_renewed(struct osd_sandbox *sandbox)
{
	if (sandbox->dead || !hear(sandbox))
		return false;
	sandbox->kill_usec = OSD_NEVER;
	return true;
}

bool osd_sandbox_keeps_longer(struct osd_sandbox *sandbox, uint64_t now_usec)
{
	if (sandbox->state != OSD_SANDBOX_KEPT || sandbox->ready_again || !hear(sandbox))
		return false;
	sandbox->kill_usec = now_usec + sandbox->supply->idle_usec;
	return true;
}
