/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keep.c -- sandboxes that run more than one job.  They are kept for a principal, renewed before
 * the next job, and ended when nobody needs them (sandbox.h).  reuse.c decides which are kept.
 *
 * The answer to FINISH makes the sandbox prepare for another job, and then call NEXT.  The proxy that takes
 * the sandbox sees that call, or the monitor does when it is due.  So a stream of jobs wakes no other thread
 * for it, and needs the job socket no more. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/sandbox/sandbox.h"

#define RENEW_USEC   250000 /* far longer than a clean-up takes on a busy machine */
#define STALE_PIECES 4	 /* a pipe holds less */
#define LOOK_USEC    1000000 /* between two looks at the processor time of one that waits */
#define REST_USEC    50000   /* an engine's own threads use less of it from one look to the next */
#define LIGHT_MOST   64	 /* calls of one function from one whole clean-up to the next */

static bool is_of_function(const struct osd_sandbox *sandbox, const struct osd_sandbox_order *order)
{
	return osd_same_id(sandbox->function, order->function) &&
	       (!order->code_sha256 || memcmp(sandbox->function_sha256, order->code_sha256,
					      sizeof(sandbox->function_sha256)) == 0);
}

static bool is_for(const struct osd_sandbox *sandbox, const struct osd_sandbox_order *order)
{
	return sandbox->supply == order->supply && is_of_function(sandbox, order) &&
	       osd_reuse_fits(sandbox->principal, &sandbox->limits, order->principal,
			      &order->limits);
}

/* Whether it is clean enough for the job, or will be once it calls NEXT. */
static bool is_clean_for(const struct osd_sandbox *sandbox, const struct osd_sandbox_order *order)
{
	return !sandbox->light_slot ||
	       (order->code_sha256 &&
		osd_kept_codes_holds(&sandbox->codes, sandbox->light_slot, order->code_sha256,
				     order->code_name));
}

bool osd_sandbox_fits(const struct osd_sandbox *sandbox, const struct osd_sandbox_order *order)
{
	return is_for(sandbox, order) && is_clean_for(sandbox, order);
}

static bool goes_before(const struct osd_sandbox *a, const struct osd_sandbox *b,
			const struct osd_sandbox_order *order)
{
	if (is_clean_for(a, order) != is_clean_for(b, order))
		return is_clean_for(a, order);
	return a->kill_usec < b->kill_usec;
}

/* The one that has waited longest: it has called NEXT longest ago. */
static struct osd_sandbox *find_kept(struct osd_sandboxes *sandboxes,
				     const struct osd_sandbox_order *order)
{
	struct osd_sandbox *found = NULL;

	for (struct osd_sandbox *sandbox = sandboxes->list; sandbox; sandbox = sandbox->next)
		if (sandbox->state == OSD_SANDBOX_KEPT && !sandbox->dead && is_for(sandbox, order) &&
		    (!found || goes_before(sandbox, found, order)))
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
		if (sandbox->supply != supply)
			continue;
		if (sandbox->state == OSD_SANDBOX_KEPT)
			osd_sandbox_kill(sandboxes, sandbox);
		else if (sandbox->state == OSD_SANDBOX_TAKEN && sandbox->principal)
			sandbox->stale = true; /* its job may not start, and put it back */
	}
}

static void set_kept(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	uint64_t now = osd_monotonic_usec();

	sandbox->user = NULL;
	sandbox->wall_usec = OSD_NEVER;
	sandbox->state = OSD_SANDBOX_KEPT;
	sandbox->kill_usec =
		now + (sandbox->ready_again ? sandbox->supply->idle_usec : OSD_REUSE_RESET_USEC);
	sandbox->look_usec = now + LOOK_USEC;
	sandbox->idle_cpu_usec = 0;
	osd_alarm_by(sandboxes->alarm, OSD_MIN(sandbox->kill_usec, sandbox->look_usec));
	osd_sandbox_unref(sandbox);
}

/* Answers FINISH or NEXT; the sandbox calls NEXT, again. */
static void tell_to_clean(struct osd_sandbox *sandbox, uint8_t same_slot)
{
	struct osd_answer answer = {.code = OSD_ANSWER_OK, .a = OSD_AFTER_CLEAN};

	sandbox->light_slot = 0;
	if (same_slot && sandbox->light_count < LIGHT_MOST) {
		answer.a = OSD_AFTER_CLEAN_LIGHTLY;
		sandbox->light_slot = same_slot;
	}
	sandbox->light_count = sandbox->light_slot ? sandbox->light_count + 1 : 0;
	sandbox->ready_again = false;
	sandbox->calls_seen = atomic_load(&sandbox->shm->areas[0].call.seq);
	osd_answer_encode(&answer, (uint8_t *)sandbox->shm + OSD_SHM_FRAME_AT + OSD_FRAME_BYTES);
	osd_shm_post(&sandbox->shm->areas[0].answer);
}

void osd_sandbox_keep(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox,
		      const struct osd_sandbox_order *order, uint8_t same_slot)
{
	if (!sandbox->principal) {
		sandbox->principal = strdup(order->principal);
		sandbox->function = order->function;
		if (order->code_sha256)
			memcpy(sandbox->function_sha256, order->code_sha256,
			       sizeof(sandbox->function_sha256));
	}
	/* The connection may be lost here, and the sandbox with it. */
	if (sandbox->principal && !sandbox->dead && !sandboxes->stopping)
		make_room(sandboxes, sandbox->supply);
	if (!sandbox->principal || sandbox->dead || sandboxes->stopping) {
		osd_sandbox_give_back(sandboxes, sandbox, true);
		return;
	}
	if (same_slot)
		sandboxes->called = sandbox->supply;
	tell_to_clean(sandbox, same_slot);
	set_kept(sandboxes, sandbox);
	osd_sandboxes_refill(sandboxes);
}

void osd_sandbox_put_back(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	if (!sandbox->principal || sandbox->dead || sandbox->stale) {
		osd_sandbox_give_back(sandboxes, sandbox, false);
		return;
	}
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

/* Whether it has called NEXT, and made no other call since FINISH. */
static bool hear(struct osd_sandbox *sandbox)
{
	uint8_t frame[OSD_FRAME_BYTES];
	struct osd_call call;

	if (sandbox->ready_again)
		return true;
	if (atomic_load(&sandbox->shm->areas[0].call.seq) != sandbox->calls_seen + 1)
		return false;
	memcpy(frame, (uint8_t *)sandbox->shm + OSD_SHM_FRAME_AT, sizeof(frame));
	if (!osd_call_decode(frame, &call) || call.op != OSD_CALL_NEXT || call.body_bytes)
		return false;
	discard(sandbox->stdout_fd);
	discard(sandbox->stderr_fd);
	sandbox->ready_again = true;
	return true;
}

void osd_sandbox_rouse(struct osd_sandboxes *sandboxes)
{
	struct osd_sandbox *found = NULL;

	for (struct osd_sandbox *sandbox = sandboxes->list; sandbox; sandbox = sandbox->next)
		if (sandbox->state == OSD_SANDBOX_KEPT && !sandbox->dead &&
		    sandbox->supply == sandboxes->called && sandbox->last_slot &&
		    osd_kept_codes_are_short(&sandbox->codes, sandbox->last_slot) &&
		    (!found || sandbox->kill_usec < found->kill_usec))
			found = sandbox;
	if (found)
		osd_shm_rouse(&found->shm->areas[0].answer);
}

/* Releases the lock meanwhile. */
static bool await_next(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	uint32_t seen = sandbox->calls_seen;

	if (!hear(sandbox)) {
		osd_unlock(sandboxes->lock);
		osd_shm_wait(&sandbox->shm->areas[0].call, &seen, RENEW_USEC, &sandbox->dead);
		osd_lock(sandboxes->lock);
	}
	return !sandbox->dead && hear(sandbox);
}

bool osd_sandbox_renew(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox,
		       const struct osd_sandbox_order *order)
{
	bool wholly = !is_clean_for(sandbox, order), heard;

	sandbox->kill_usec = OSD_NEVER;
	heard = await_next(sandboxes, sandbox);
	if (heard && wholly) {
		tell_to_clean(sandbox, 0);
		heard = await_next(sandboxes, sandbox);
	}
	if (heard)
		return true;
	if (!sandbox->dead)
		osd_debug("sandbox %llu is not fit for another job",
			  (unsigned long long)sandbox->id);
	osd_sandbox_kill(sandboxes, sandbox);
	osd_sandbox_give_back(sandboxes, sandbox, true);
	return false;
}

bool osd_sandbox_is_renewed(struct osd_sandbox *sandbox, const struct osd_sandbox_order *order)
{
	if (sandbox->dead || !is_clean_for(sandbox, order) || !hear(sandbox))
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

/* The first look comes late, so that no job waits for it. */
bool osd_sandbox_rests(struct osd_sandbox *sandbox, uint64_t now_usec, uint64_t *deadline)
{
	uint64_t used, before = sandbox->idle_cpu_usec;

	if (sandbox->state != OSD_SANDBOX_KEPT)
		return true;
	if (now_usec >= sandbox->look_usec) {
		used = osd_sandbox_cpu_usec(sandbox);
		if (before && used > before + REST_USEC)
			return false;
		sandbox->idle_cpu_usec = used;
		sandbox->look_usec = now_usec + LOOK_USEC;
	}
	*deadline = OSD_MIN(*deadline, sandbox->look_usec);
	return true;
}
