/* SPDX-License-Identifier: GPL-2.0-or-later */
/* watch.c -- what the monitor thread does for sandboxes (sandbox.h): events of their descriptors, and every
 * deadline.  A script that must end is asked to, again and again, then killed.
 *
 * Deadlines are found by a look at all sandboxes whenever something happened: there are at most as many as
 * a target has slots. */
#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/sandbox/sandbox.h"

#define PING_USEC	 1000000
#define CPU_STEP_USEC	 1000 /* shortest time between two readings of a processor clock */
#define AGAIN_FIRST_USEC 1000 /* between two nudges of a script that is told to end */
#define AGAIN_MOST_USEC	 100000

static void nudge(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox,
		  enum osd_control_word word)
{
	atomic_store(&sandbox->shm->control_word, word);
	osd_shm_post(&sandbox->shm->control);
	osd_service_nudge(sandboxes, sandbox->id);
}

/* Asks the script to end, again and again, because it may have been about to sleep; and sets the time at
 * which it is killed. */
static void end_script(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox, uint64_t now,
		       uint64_t *deadline)
{
	if (sandbox->kill_sent)
		return;
	if (sandbox->kill_usec == OSD_NEVER) {
		sandbox->kill_usec = now + sandboxes->ops->grace_of(sandbox);
		sandbox->nudge_usec = now;
		sandbox->nudge_delay_usec = AGAIN_FIRST_USEC;
	}
	if (now >= sandbox->nudge_usec) {
		nudge(sandboxes, sandbox, OSD_CONTROL_END);
		sandbox->nudge_usec = now + sandbox->nudge_delay_usec;
		sandbox->nudge_delay_usec = OSD_MIN(2 * sandbox->nudge_delay_usec, AGAIN_MOST_USEC);
	}
	*deadline = OSD_MIN(*deadline, sandbox->nudge_usec);
}

static void check_limits(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox, uint64_t now,
			 uint64_t *deadline)
{
	uint64_t used;

	if (osd_starvation_is_late(sandbox, now)) {
		sandboxes->ops->out_of_time(sandbox, false);
		return;
	}
	if (now >= sandbox->ping_usec) { /* for clients that poll the job: processor time, memory */
		sandbox->ping_usec = now + PING_USEC;
		sandbox->pinged = true;
		nudge(sandboxes, sandbox, OSD_CONTROL_PING);
	}
	*deadline = OSD_MIN(*deadline, sandbox->ping_usec);
	used = osd_sandbox_cpu_usec(sandbox); /* 0: it is gone, which is not known yet */
	used -= OSD_MIN(used, sandbox->cpu_before_usec);
	if (used >= sandbox->cpu_limit_usec) {
		sandboxes->ops->out_of_time(sandbox, !osd_starvation_was_wall(sandbox, now));
		return;
	}
	*deadline = OSD_MIN(*deadline, sandbox->wall_usec);
	*deadline =
		OSD_MIN(*deadline, now + OSD_MAX(sandbox->cpu_limit_usec - used, CPU_STEP_USEC));
}

static void check_script(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox, uint64_t now,
			 uint64_t *deadline)
{
	const struct osd_sandbox_ops *ops = sandboxes->ops;

	if (!sandbox->user)
		return;
	if (ops->work_of(sandbox) == OSD_WORK_RUNS)
		check_limits(sandboxes, sandbox, now, deadline);
	if (ops->work_of(sandbox) == OSD_WORK_TO_END)
		end_script(sandboxes, sandbox, now, deadline);
}

/* A sandbox whose job is over may exit, once it is time to. */
static void let_go(struct osd_sandbox *sandbox, uint64_t now, uint64_t *deadline)
{
	bool hurry = *sandbox->supply->waiting > 0; /* the slot in iosd-sandboxd is needed */

	if (!sandbox->answer_due || sandbox->state != OSD_SANDBOX_ENDING)
		return;
	if (now < sandbox->let_go_usec && !hurry) {
		*deadline = OSD_MIN(*deadline, sandbox->let_go_usec);
		return;
	}
	sandbox->answer_due = false;
	osd_shm_post(&sandbox->shm->areas[0].answer);
}

/* It was killed long ago: its job ends without it. */
static void give_up(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	osd_warning("sandbox %llu does not die: iosd-sandboxd does not answer",
		    (unsigned long long)sandbox->id);
	sandbox->given_up = true;
	osd_sandbox_died(sandboxes, sandbox);
}

/* False: the connection was lost, and the list is not what it was. */
static bool check(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox, uint64_t now,
		  uint64_t *deadline)
{
	let_go(sandbox, now, deadline);
	check_script(sandboxes, sandbox, now, deadline);
	if ((now >= sandbox->kill_usec && !osd_sandbox_keeps_longer(sandbox, now)) ||
	    !osd_sandbox_rests(sandbox, now, deadline)) {
		osd_sandbox_kill(sandboxes, sandbox);
		if (sandboxes->fd < 0)
			return false;
	}
	if (sandbox->kill_sent && sandbox->state == OSD_SANDBOX_TAKEN) {
		if (now >= sandbox->give_up_usec) {
			give_up(sandboxes, sandbox);
			return sandboxes->fd >= 0;
		}
		*deadline = OSD_MIN(*deadline, sandbox->give_up_usec);
	}
	*deadline = OSD_MIN(*deadline, sandbox->kill_usec);
	return true;
}

static void check_supply(struct osd_sandboxes *sandboxes, struct osd_supply *supply, uint64_t now,
			 uint64_t *deadline)
{
	uint64_t idle_from = supply->used_usec + supply->idle_usec;

	if (supply->serving && supply->busy == 0 && now >= idle_from)
		osd_supply_trim(sandboxes, supply, now);
	else if (supply->serving && supply->busy == 0)
		*deadline = OSD_MIN(*deadline, idle_from);
	if (supply->calm_usec > now)
		*deadline = OSD_MIN(*deadline, supply->calm_usec);
}

void osd_sandboxes_check(struct osd_sandboxes *sandboxes, uint64_t now_usec, uint64_t *deadline)
{
	bool connected = true;

	osd_service_connect(sandboxes, now_usec, deadline);
	for (struct osd_sandbox *sandbox = sandboxes->list, *next; sandbox && connected;
	     sandbox = next) {
		next = sandbox->next;
		if (!sandbox->dead)
			connected = check(sandboxes, sandbox, now_usec, deadline);
	}
	osd_starvation_check(sandboxes, now_usec, deadline);
	osd_sandboxes_refill(sandboxes);
	for (struct osd_supply *supply = sandboxes->supplies; supply; supply = supply->next)
		check_supply(sandboxes, supply, now_usec, deadline);
}

bool osd_sandboxes_compute(const struct osd_sandboxes *sandboxes)
{
	const struct osd_sandbox *sandbox = sandboxes->list;

	while (sandbox && (sandbox->dead || !sandbox->user || !sandbox->pinged))
		sandbox = sandbox->next;
	return sandbox != NULL;
}

void osd_sandboxes_event(struct osd_sandboxes *sandboxes, uint64_t event)
{
	struct osd_sandbox *sandbox;

	if (event == OSD_EVENT_SERVICE) {
		osd_service_receive(sandboxes);
		return;
	}
	sandbox = osd_sandbox_find(sandboxes, event >> 2);
	if (!sandbox)
		return;
	if ((event & 3) == OSD_EVENT_PIDFD)
		osd_sandbox_died(sandboxes, sandbox);
	else if (sandbox->state == OSD_SANDBOX_WARMING)
		osd_sandbox_heard(sandboxes, sandbox);
}
