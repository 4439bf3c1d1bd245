/* SPDX-License-Identifier: GPL-2.0-or-later */
/* output_thread.c -- the output thread, which reads the pipes of scripts.  It also ends waits that have
 * timed out, calls the sweep when it is due, and ends jobs whose rights were revoked. */
#include <sys/epoll.h>
#include <time.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/util.h"
#include "exec/target.h"

#define SWEEP_LEAST    UINT64_C(200000) /* between two sweeps */
#define EVENTS_AT_ONCE 32
/* The pause after the pipes were read.  A script that prints line by line is then not read line by
 * line, which would keep a processor busy. */
#define PAUSE_NSEC 1000000

/* exec->lock held.  The run of a sandbox, with a reference; NULL: it has none. */
static struct osd_run *find_run(struct osd_exec *exec, uint64_t sandbox_id)
{
	struct osd_sandbox *sandbox = osd_sandbox_find(exec->sandboxes, sandbox_id);

	osd_assert_held(&exec->lock);
	return sandbox && sandbox->user ? osd_run_ref(sandbox->user) : NULL;
}

static bool serve_pipes(struct osd_exec *exec, uint64_t sandbox_id)
{
	struct osd_run *run;
	bool more;

	osd_lock(&exec->lock);
	run = find_run(exec, sandbox_id);
	osd_unlock(&exec->lock);
	if (!run)
		return false;
	more = osd_output_drain(&run->output, run->sandbox->stdout_fd, run->sandbox->stderr_fd);
	osd_lock(&exec->lock);
	if (run->job->run == run) {
		osd_job_touch(run->job);
		if (atomic_load(&run->output.over_limit))
			osd_exec_request_end(exec, run->job, OSD_REASON_OUTPUT_LIMIT);
		else if (atomic_load(&run->output.unstored))
			osd_exec_request_end(exec, run->job, atomic_load(&run->output.unstored));
	}
	osd_run_unref(run);
	osd_unlock(&exec->lock);
	return more;
}

/* Sandboxes whose pipes had more bytes than one pass reads. */
struct busy {
	uint64_t ids[OSD_EXEC_SLOTS_MAX];
	size_t count;
	bool served; /* the pipes were read, whatever they held */
};

static void serve_and_note(struct osd_exec *exec, uint64_t id, struct busy *busy)
{
	for (size_t i = 0; i < busy->count; i++)
		if (busy->ids[i] == id)
			return;
	busy->served = true;
	if (serve_pipes(exec, id) && busy->count < OSD_ARRAY_SIZE(busy->ids))
		busy->ids[busy->count++] = id;
}

static void deliver_each(struct osd_exec *exec, struct osd_exec_wait *waits)
{
	while (waits) {
		struct osd_exec_wait *wait = waits;
		struct osd_exec_outcome outcome = {.status = OSD_E_STILL_RUNNING};
		struct osd_object_id job = wait->job;
		uint16_t end = 0;

		waits = wait->next;
		wait->next = NULL;
		if (wait->was_aborted) {
			outcome.status = OSD_E_TASK_ABORTED;
			if (wait->end_on_abort || wait->plain)
				end = OSD_REASON_CLIENT_GONE;
		} else if (wait->plain) {
			outcome.reason = end = OSD_REASON_WALL_LIMIT;
			outcome.status = osd_job_reason_status(end);
			outcome.form = OSD_RESULT_REPORT;
		}
		osd_exec_deliver(wait, outcome);
		if (end)
			osd_exec_end_one(exec, job, end);
	}
}

static void deliver_late(struct osd_exec *exec)
{
	struct osd_exec_wait *late;

	osd_lock(&exec->lock);
	late = OSD_STEAL(exec->late);
	osd_unlock(&exec->lock);
	deliver_each(exec, late);
}

/* exec->lock held.  Whether to sweep now; sets how long to wait for events afterwards.  rights:
 * jobs' rights are to be swept, too. */
static bool sweep_due(struct osd_exec *exec, bool rights, int *ret_wait_msec)
{
	uint64_t now = osd_monotonic_usec();
	bool due = now >= exec->sweep_usec && now >= exec->swept_usec + SWEEP_LEAST;
	uint64_t next;

	osd_assert_held(&exec->lock);
	if (due) {
		exec->swept_usec = now;
		exec->sweep_usec = now + OSD_SWEEP_USEC;
	}
	next = OSD_MAX(exec->sweep_usec, exec->swept_usec + SWEEP_LEAST);
	if (rights)
		next = OSD_MIN(next, now + OSD_RIGHTS_SWEEP_USEC);
	*ret_wait_msec = (int)((next - now + 999) / 1000);
	return due;
}

/* Serves the pipes that have bytes, and those that still had some after the last pass. */
static void serve_events(struct osd_exec *exec, struct busy *busy, int wait_msec)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	const struct busy before = *busy;
	int count = epoll_wait(exec->sandboxes->pipes_epoll, events, EVENTS_AT_ONCE,
			       before.count ? 0 : wait_msec);

	busy->count = 0;
	busy->served = false;
	for (size_t i = 0; i < before.count; i++)
		serve_and_note(exec, before.ids[i], busy);
	for (int i = 0; i < count; i++) {
		if (events[i].data.u64 != OSD_EVENT_WAKE) {
			serve_and_note(exec, events[i].data.u64, busy);
			continue;
		}
		osd_wake_drain(exec->output_wake);
		deliver_late(exec);
	}
}

void *osd_output_main(void *arg)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NSEC};
	struct busy busy = {.count = 0};
	struct osd_exec *exec = arg;
	bool stopping = false, sweep, rights, rights_again = false;
	int wait_msec = 0; /* the first sweep is at the start */
	uint64_t rights_usec = 0;

	while (!stopping) {
		serve_events(exec, &busy, wait_msec);
		osd_lock(&exec->lock);
		stopping = exec->stopping;
		rights = exec->runs->limited_count || rights_again ||
			 atomic_load(&exec->runs->policy_changed);
		sweep = sweep_due(exec, rights, &wait_msec);
		osd_unlock(&exec->lock);
		/* However often policies change, there is at most one sweep per interval. */
		if (rights && !stopping && osd_monotonic_usec() >= rights_usec) {
			/* A change that comes during the sweep is left to the next one. */
			atomic_store(&exec->runs->policy_changed, false);
			rights_again = !osd_rights_sweep(exec);
			rights_usec = osd_monotonic_usec() + OSD_RIGHTS_SWEEP_USEC;
		}
		if (sweep && !stopping)
			osd_flow_call_sweep(exec->flow);
		if (busy.served && !stopping)
			nanosleep(&pause, NULL);
	}
	return NULL;
}
