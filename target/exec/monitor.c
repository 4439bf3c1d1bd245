/* SPDX-License-Identifier: GPL-2.0-or-later */
/* monitor.c -- the monitor thread.  It watches sandboxes and their deadlines (sandbox/watch.c),
 * pools that are to go, jobs that wait for another attempt, and commands that wait for a job.  It
 * never touches the store, so no disk load of a script delays a deadline. */
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/sandbox/script_turns.h"
#include "exec/target.h"

#define EVENTS_AT_ONCE	32
#define PING_USEC	1000000
#define PING_FIRST_USEC 150000 /* earlier than a job's first ping */

/* ---- deadlines; exec->lock held -------------------------------------------------------------- */

/* Time slices are for scripts that compute for long: a script that ends soon need not give way. */
static void check_turns(struct osd_exec *exec)
{
	if (osd_target_of(exec)->turns)
		osd_script_turns_set(osd_target_of(exec)->turns,
				     osd_sandboxes_compute(exec->sandboxes));
}

static void check_pools(struct osd_exec *exec)
{
	for (struct osd_pool *pool = exec->pools->first; pool; pool = pool->next)
		if (pool->leaving)
			osd_pool_leave(pool);
}

/* Takes out the waits that have timed out or whose command was aborted.  Ending them touches the
 * store, so the output thread does it. */
static void check_waits(struct osd_exec *exec, uint64_t now, uint64_t *deadline)
{
	struct osd_exec_wait **end = &exec->late;

	while (*end)
		end = &(*end)->next;
	*end = osd_exec_take_late_waits(exec, now, deadline);
	if (*end)
		osd_wake(exec->output_wake);
}

/* Checks everything once.  Returns the time of the next check. */
static uint64_t look_around(struct osd_exec *exec, const struct epoll_event *events, int count)
{
	uint64_t deadline = OSD_NEVER, now;

	exec->monitor.usec = OSD_NEVER;
	exec->monitor.awake = true;
	for (int i = 0; i < count; i++) {
		if (events[i].data.u64 == OSD_EVENT_WAKE)
			osd_wake_drain(exec->monitor.wake);
		else
			osd_sandboxes_event(exec->sandboxes, events[i].data.u64);
	}
	now = osd_monotonic_usec();
	osd_sandboxes_check(exec->sandboxes, now, &deadline);
	check_turns(exec);
	check_pools(exec);
	if (exec->flow->uncalled)
		osd_flow_call(exec->flow);
	osd_exec_check_delayed(exec, now, &deadline);
	check_waits(exec, now, &deadline);
	/* While one job follows another, no first ping needs to wake this thread. */
	if (now < exec->runs->handed_usec + PING_USEC)
		deadline = OSD_MIN(deadline, now + PING_FIRST_USEC);
	exec->monitor.awake = false;
	exec->monitor.usec = OSD_MIN(exec->monitor.usec, deadline);
	return exec->monitor.usec;
}

void *osd_monitor_main(void *arg)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	struct osd_exec *exec = arg;
	bool stopping = false;
	int count = 0;

	while (!stopping) {
		uint64_t deadline;

		osd_lock(&exec->lock);
		deadline = look_around(exec, events, count);
		stopping = exec->stopping;
		osd_unlock(&exec->lock);
		if (!stopping)
			count = epoll_wait(exec->sandboxes->watch_epoll, events, EVENTS_AT_ONCE,
					   osd_msec_until(deadline));
	}
	return NULL;
}
