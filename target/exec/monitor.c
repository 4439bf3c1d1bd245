/* SPDX-License-Identifier: GPL-2.0-or-later */
/* monitor.c -- one thread that watches: the connection to iosd-sandboxd, the ends of sandboxes
 * (pidfds), the first words of new ones, and every deadline.  It kills, marks the sandbox and wakes
 * its proxy; it never touches the store, so nothing a script does to the disk delays a deadline.
 *
 * Deadlines are found by looking at all of them whenever something happened: there are at most as
 * many sandboxes and waits as a target has slots and open commands. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/exec_impl.h"
#include "exec/sandboxd_client.h"
#include "exec/script_turns.h"
#include "exec/starvation.h"

#define EVENTS_AT_ONCE	32
#define PING_USEC	1000000
#define PING_FIRST_USEC 150000 /* sooner than a job's first ping */
#define CPU_STEP_USEC	1000   /* shortest time between two looks at a processor clock */
#define AGAIN_FIRST_USEC 1000  /* between two nudges of a script that is told to end */
#define AGAIN_MOST_USEC	100000

void osd_wake(int eventfd)
{
	uint64_t one = 1;

	if (write(eventfd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		osd_error("cannot wake a thread: %s", strerror(errno));
}

void osd_monitor_by(struct osd_exec *exec, uint64_t usec)
{
	if (usec >= exec->monitor_usec)
		return;
	exec->monitor_usec = usec;
	if (!exec->monitor_looks)
		osd_wake(exec->monitor_wake);
}

static void drain_wake(int eventfd)
{
	uint64_t count;

	if (read(eventfd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		osd_error("cannot read an event counter: %s", strerror(errno));
}

/* ---- deadlines; exec->lock held -------------------------------------------------------------- */

/* As clock_getcpuclockid(3) says it, which would ask the kernel whether there is such a process. */
static clockid_t cpu_clock_of(pid_t pid)
{
	return (clockid_t)(~(unsigned)pid << 3 | 2);
}

uint64_t osd_sandbox_cpu_usec(const struct osd_sandbox *sandbox)
{
	struct timespec used;

	if (sandbox->dead || clock_gettime(cpu_clock_of(sandbox->pid), &used) != 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

/* Whose rights have ended does not go on looking at what it has mapped for as long as it asked for. */
static uint64_t grace_of(const struct osd_sandbox *sandbox)
{
	bool revoked = sandbox->job && sandbox->job->end_reason == OSD_REASON_REVOKED;

	return revoked ? OSD_MIN(sandbox->grace_usec, osd_exec_limits[OSD_LIMIT_GRACE].standard)
		       : sandbox->grace_usec;
}

static void nudge(struct osd_exec *exec, struct osd_sandbox *sandbox, enum osd_control_word word)
{
	atomic_store(&sandbox->shm->control_word, word);
	osd_shm_post(&sandbox->shm->control);
	osd_service_nudge(exec, sandbox->id);
}

/* Asks the script to end, again and again, for it may have been about to sleep; and sets the time by
 * which it must have. */
static void end_script(struct osd_exec *exec, struct osd_sandbox *sandbox, uint64_t now,
		       uint64_t *deadline)
{
	if (sandbox->kill_sent)
		return;
	if (sandbox->kill_usec == OSD_NEVER) {
		sandbox->kill_usec = now + grace_of(sandbox);
		sandbox->nudge_usec = now;
		sandbox->nudge_delay_usec = AGAIN_FIRST_USEC;
	}
	if (now >= sandbox->nudge_usec) {
		nudge(exec, sandbox, OSD_CONTROL_END);
		sandbox->nudge_usec = now + sandbox->nudge_delay_usec;
		sandbox->nudge_delay_usec = OSD_MIN(2 * sandbox->nudge_delay_usec, AGAIN_MOST_USEC);
	}
	*deadline = OSD_MIN(*deadline, sandbox->nudge_usec);
}

static void check_limits(struct osd_exec *exec, struct osd_sandbox *sandbox, uint64_t now,
			 uint64_t *deadline)
{
	struct osd_job *job = sandbox->job;
	uint64_t used;

	if (job->end_reason)
		return;
	if (osd_starvation_is_late(sandbox, now)) {
		job->end_reason = OSD_REASON_WALL_LIMIT;
		return;
	}
	if (now >= sandbox->ping_usec) { /* for those who watch the job: processor time, memory */
		sandbox->ping_usec = now + PING_USEC;
		sandbox->pinged = true;
		nudge(exec, sandbox, OSD_CONTROL_PING);
	}
	*deadline = OSD_MIN(*deadline, sandbox->ping_usec);
	used = osd_sandbox_cpu_usec(sandbox); /* 0: it is gone, which we have not been told yet */
	used -= OSD_MIN(used, sandbox->cpu_before_usec);
	if (used >= sandbox->cpu_limit_usec) {
		job->end_reason = OSD_REASON_CPU_LIMIT;
		return;
	}
	*deadline = OSD_MIN(*deadline, sandbox->wall_usec);
	*deadline =
		OSD_MIN(*deadline, now + OSD_MAX(sandbox->cpu_limit_usec - used, CPU_STEP_USEC));
}

static void check_sandboxes(struct osd_exec *exec, uint64_t now, uint64_t *deadline)
{
	for (struct osd_sandbox *sandbox = exec->pool.list, *next; sandbox; sandbox = next) {
		next = sandbox->next;
		if (sandbox->dead)
			continue;
		osd_pool_let_go(sandbox, now, deadline);
		if (sandbox->job && sandbox->job->record.state == OSD_STATE_RUNNING) {
			check_limits(exec, sandbox, now, deadline);
			if (sandbox->job->end_reason)
				end_script(exec, sandbox, now, deadline);
		}
		if (now >= sandbox->kill_usec && !osd_pool_keeps_longer(sandbox, now)) {
			osd_pool_kill(exec, sandbox);
			if (exec->pool.fd < 0)
				return; /* the connection was lost: the list is not what it was */
		}
		if (sandbox->kill_sent && sandbox->state == OSD_SANDBOX_TAKEN) {
			if (now >= sandbox->give_up_usec) {
				osd_pool_give_up(exec, sandbox);
				if (exec->pool.fd < 0)
					return;
				continue;
			}
			*deadline = OSD_MIN(*deadline, sandbox->give_up_usec);
		}
		*deadline = OSD_MIN(*deadline, sandbox->kill_usec);
	}
}

/* Scripts that end soon need not give way. */
static void check_turns(struct osd_exec *exec)
{
	const struct osd_sandbox *sandbox = exec->pool.list;

	while (sandbox && (sandbox->dead || !sandbox->job || !sandbox->pinged))
		sandbox = sandbox->next;
	if (exec->turns)
		osd_script_turns_set(exec->turns, sandbox != NULL);
}

/* Jobs that wait for another attempt. */
static void check_delayed(struct osd_exec *exec, uint64_t now, uint64_t *deadline)
{
	for (struct osd_job **link = &exec->delayed; *link;) {
		struct osd_job *job = *link;

		if (job->not_before_usec > now) {
			*deadline = OSD_MIN(*deadline, job->not_before_usec);
			link = &job->next_delayed;
			continue;
		}
		*link = job->next_delayed;
		job->next_delayed = NULL;
		if (job->record.state == OSD_STATE_QUEUED && !job->end_reason &&
		    !job->pending.txn) {
			job->record.reason = OSD_REASON_WAITS_FOR_SLOT;
			osd_exec_enqueue(exec, job);
			return check_delayed(exec, now,
					     deadline); /* enqueue may have changed the list */
		}
	}
}

static int timeout_msec(uint64_t deadline)
{
	uint64_t now = osd_monotonic_usec();

	if (deadline == OSD_NEVER)
		return -1;
	return deadline <= now ? 0 : (int)OSD_MIN((deadline - now + 999) / 1000, 60000);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void handle(struct osd_exec *exec, uint64_t what)
{
	struct osd_sandbox *sandbox;

	if (what == OSD_EVENT_WAKE) {
		drain_wake(exec->monitor_wake);
		return;
	}
	if (what == OSD_EVENT_SERVICE) {
		osd_pool_receive(exec);
		return;
	}
	sandbox = osd_pool_find(exec, what >> 2);
	if (!sandbox)
		return;
	if ((what & 3) == OSD_EVENT_PIDFD)
		osd_pool_died(exec, sandbox);
	else if (sandbox->state == OSD_SANDBOX_WARMING)
		osd_pool_heard(exec, sandbox);
}

/* Waits whose time is over, or whose command was aborted.  What follows them touches the store, so
 * the output thread does it. */
static void check_waits(struct osd_exec *exec, uint64_t now, uint64_t *deadline)
{
	struct osd_exec_wait **end = &exec->late;

	while (*end)
		end = &(*end)->next;
	*end = osd_exec_take_late_waits(exec, now, deadline);
	if (*end)
		osd_wake(exec->output_wake);
}

/* Returns when to look again. */
static uint64_t look_around(struct osd_exec *exec, const struct epoll_event *events, int count)
{
	uint64_t deadline = OSD_NEVER, now;

	exec->monitor_usec = OSD_NEVER;
	exec->monitor_looks = true;
	for (int i = 0; i < count; i++)
		handle(exec, events[i].data.u64);
	now = osd_monotonic_usec();
	osd_pool_connect(exec, now, &deadline);
	check_sandboxes(exec, now, &deadline);
	osd_starvation_check(exec, now, &deadline);
	check_turns(exec);
	osd_pool_refill(exec);
	for (struct osd_pool *pool = exec->pools; pool; pool = pool->next) {
		osd_pool_rest(exec, pool, now, &deadline);
		if (pool->calm_usec > now)
			deadline = OSD_MIN(deadline, pool->calm_usec);
	}
	check_delayed(exec, now, &deadline);
	check_waits(exec, now, &deadline);
	/* While jobs come one after the other none need wake this thread for its first ping. */
	if (now < exec->handed_usec + PING_USEC)
		deadline = OSD_MIN(deadline, now + PING_FIRST_USEC);
	exec->monitor_looks = false;
	exec->monitor_usec = OSD_MIN(exec->monitor_usec, deadline);
	return exec->monitor_usec;
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
			count = epoll_wait(exec->monitor_epoll, events, EVENTS_AT_ONCE,
					   timeout_msec(deadline));
	}
	return NULL;
}
