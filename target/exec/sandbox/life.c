/* SPDX-License-Identifier: GPL-2.0-or-later */
/* life.c -- the life of a sandbox (sandbox.h): what iosd-sandboxd and the sandbox itself report, and how it
 * ends.  Not here: when it is killed (watch.c), another job in it (keep.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/sandbox/sandbox.h"

/* The time a sandbox has to exit after its job, before it is killed.  Killing it then harms no job.  The time
 * is short because a hostile script may continue to compute after it reported its end, and no job is
 * charged for that. */
#define EXIT_USEC 100000
/* The pause before the next request after a sandbox could not be made.  It doubles with each failure. */
#define CALM_FIRST_USEC 200000
#define CALM_MOST_USEC	5000000
/* Exit and fork take a processor for a millisecond each, part of it unpreemptible, just when the answer to
 * a waiting client passes through several threads.  So they wait this long when others are READY. */
#define LINGER_USEC 1000
#define LATELY	    4 /* of the last few, the newest counts a quarter */

/* ---- what is counted ------------------------------------------------------------------------- */

static void count_start(const struct osd_sandbox *sandbox)
{
	struct osd_supply_figures *figures = &sandbox->supply->figures;
	uint64_t usec = osd_monotonic_usec() - sandbox->asked_usec;

	figures->starts++;
	figures->warm_usec =
		figures->warm_usec ? (figures->warm_usec * (LATELY - 1) + usec) / LATELY : usec;
}

static void count_exit(const struct osd_sandbox *sandbox)
{
	enum osd_sandbox_exit_kind kind = OSD_SANDBOX_EXIT_DONE;

	if (!sandbox->pid)
		return; /* there was no process */
	if (sandbox->given_up)
		kind = OSD_SANDBOX_EXIT_STUCK;
	else if (sandbox->service_lost || !sandbox->exit_known)
		kind = OSD_SANDBOX_EXIT_SERVICE;
	else if (sandbox->exit.out_of_memory)
		kind = OSD_SANDBOX_EXIT_MEMORY;
	else if (sandbox->kill_sent)
		kind = OSD_SANDBOX_EXIT_KILLED;
	else if (WIFSIGNALED(sandbox->exit.wait_status))
		kind = OSD_SANDBOX_EXIT_SIGNAL;
	sandbox->supply->figures.exits[kind]++;
}

/* ---- its end ---------------------------------------------------------------------------------- */

static void unlink_sandbox(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	struct osd_sandbox **link = &sandboxes->list;

	while (*link != sandbox)
		link = &(*link)->next;
	*link = sandbox->next;
	count_exit(sandbox);
	sandbox->state = OSD_SANDBOX_GONE;
	pthread_cond_broadcast(sandboxes->changed);
	osd_sandbox_unref(sandbox);
}

static bool map_shared(struct osd_sandbox *sandbox, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;
	void *shm;

	/* Unsealed, the sandbox could shrink it under us. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &status) < 0 ||
	    status.st_size < (off_t)OSD_SHM_BYTES)
		return false;
	shm = mmap(NULL, OSD_SHM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shm == MAP_FAILED)
		return false;
	sandbox->shm = shm;
	return sandbox->shm->magic == OSD_SHM_MAGIC;
}

static void watch(struct osd_sandboxes *sandboxes, int fd, uint64_t id, enum osd_watch_event kind)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = id << 2 | kind};

	epoll_ctl(sandboxes->watch_epoll, EPOLL_CTL_ADD, fd, &event);
}

void osd_sandbox_spawned(struct osd_sandboxes *sandboxes, uint64_t id, pid_t pid,
			 int fds[OSD_SPAWNED_FDS])
{
	struct osd_sandbox *sandbox = osd_sandbox_find(sandboxes, id);

	if (!sandbox || sandbox->state != OSD_SANDBOX_SPAWNING)
		return;
	sandbox->state = OSD_SANDBOX_WARMING;
	sandbox->pid = pid;
	sandbox->pidfd = fds[SPAWNED_PIDFD];
	sandbox->job_fd = fds[SPAWNED_JOB];
	sandbox->stdout_fd = fds[SPAWNED_STDOUT];
	sandbox->stderr_fd = fds[SPAWNED_STDERR];
	fds[SPAWNED_PIDFD] = fds[SPAWNED_JOB] = fds[SPAWNED_STDOUT] = fds[SPAWNED_STDERR] = -1;
	fcntl(sandbox->stdout_fd, F_SETFL, O_NONBLOCK);
	fcntl(sandbox->stderr_fd, F_SETFL, O_NONBLOCK);
	watch(sandboxes, sandbox->pidfd, id, OSD_EVENT_PIDFD);
	watch(sandboxes, sandbox->job_fd, id, OSD_EVENT_JOB_SOCKET);
	if (!map_shared(sandbox, fds[SPAWNED_SHM])) {
		osd_error("the shared memory of sandbox %llu is not as agreed",
			  (unsigned long long)id);
		osd_sandbox_kill(sandboxes, sandbox); /* the connection may go, and it as well */
	}
}

/* A sandbox did not start: the next is asked for later.  Logged once for each cause. */
static void lacks(struct osd_supply *supply, const char *why)
{
	if (strncmp(supply->lacking, why, sizeof(supply->lacking) - 1) != 0)
		osd_warning("no sandbox for pool %s: %s", supply->name, why);
	snprintf(supply->lacking, sizeof(supply->lacking), "%s", why);
	supply->calm_delay_usec =
		OSD_MIN(OSD_MAX(2 * supply->calm_delay_usec, CALM_FIRST_USEC), CALM_MOST_USEC);
	supply->calm_usec = osd_monotonic_usec() + supply->calm_delay_usec;
}

void osd_sandbox_heard(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	uint8_t bytes[1024];
	enum osd_job_message type;
	const uint8_t *body;
	size_t body_length;
	char quoted[256];
	ssize_t length = recv(sandbox->job_fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (length < 0 && errno == EAGAIN)
		return;
	epoll_ctl(sandboxes->watch_epoll, EPOLL_CTL_DEL, sandbox->job_fd, NULL);
	/* A sandbox that is being killed may still send READY; no job owns it. */
	if (length > 0 && !sandbox->kill_sent &&
	    osd_job_message_decode(bytes, (size_t)length, &type, &body, &body_length) &&
	    sandbox->state == OSD_SANDBOX_WARMING) {
		if (type == OSD_JOB_READY && body_length == 0 && sandbox->shm) {
			sandbox->state = OSD_SANDBOX_READY;
			sandbox->kill_usec = OSD_NEVER;
			osd_sandbox_watch_pipes(sandboxes, sandbox, EPOLL_CTL_ADD);
			count_start(sandbox);
			sandbox->supply->lacking[0] = '\0';
			sandbox->supply->calm_delay_usec = 0;
			sandboxes->ops->ready(sandboxes->arg);
			osd_sandboxes_refill(sandboxes);
			return;
		}
		osd_log_quote(quoted, sizeof(quoted), (const char *)body, body_length);
		lacks(sandbox->supply, quoted);
	}
	osd_sandbox_kill(sandboxes, sandbox);
}

void osd_sandbox_refused(struct osd_sandboxes *sandboxes, uint64_t id, const char *why)
{
	struct osd_sandbox *sandbox = osd_sandbox_find(sandboxes, id);

	if (!sandbox)
		return;
	if (sandbox->state != OSD_SANDBOX_SPAWNING) {
		osd_warning("iosd-sandboxd refused limits: %s", why);
		sandbox->limits_asked = false;
		sandbox->limits_refused = true;
		pthread_cond_broadcast(sandboxes->changed);
		return;
	}
	lacks(sandbox->supply, why);
	unlink_sandbox(sandboxes, sandbox);
}

void osd_sandbox_give_back(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox, bool used)
{
	sandbox->user = NULL;
	sandbox->wall_usec = OSD_NEVER;
	/* A used one is not READY for just anybody, and one that is being killed, or whose limits are not known, for
	 * nobody. */
	used = used || sandbox->principal || sandbox->stale || sandbox->kill_sent ||
	       sandbox->limits_asked || sandbox->limits_refused;
	if (sandbox->state == OSD_SANDBOX_TAKEN && !used && !sandbox->dead) {
		sandbox->state = OSD_SANDBOX_READY;
		sandbox->kill_usec = OSD_NEVER;
		sandboxes->ops->ready(sandboxes->arg);
	} else if (sandbox->state == OSD_SANDBOX_TAKEN) {
		uint64_t now = osd_monotonic_usec();

		sandbox->supply->figures
			.recycled[sandbox->supply->reuse == OSD_REUSE_NEVER ? OSD_RECYCLED_USED
									    : OSD_RECYCLED_WORN]++;
		sandbox->state = OSD_SANDBOX_ENDING;
		sandbox->let_go_usec = sandbox->supply->linger_usec = now + LINGER_USEC;
		sandbox->kill_usec = OSD_MIN(sandbox->kill_usec, now + EXIT_USEC);
		osd_alarm_by(sandboxes->alarm, sandbox->let_go_usec);
		if (sandbox->dead && sandbox->exit_known)
			unlink_sandbox(sandboxes, sandbox);
	}
	osd_sandbox_unref(sandbox);
	osd_sandboxes_refill(sandboxes);
}

void osd_sandbox_limits_set(struct osd_sandboxes *sandboxes, uint64_t id)
{
	struct osd_sandbox *sandbox = osd_sandbox_find(sandboxes, id);

	if (!sandbox)
		return;
	sandbox->limits_asked = false;
	pthread_cond_broadcast(sandboxes->changed);
}

void osd_sandbox_died(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	if (sandbox->dead)
		return;
	atomic_store(&sandbox->dead, true);
	sandbox->asked_usec = osd_monotonic_usec(); /* how it ended */
	sandbox->kill_usec = OSD_NEVER;
	if (sandbox->pidfd >= 0)
		epoll_ctl(sandboxes->watch_epoll, EPOLL_CTL_DEL, sandbox->pidfd, NULL);
	if (sandbox->state == OSD_SANDBOX_WARMING)
		epoll_ctl(sandboxes->watch_epoll, EPOLL_CTL_DEL, sandbox->job_fd, NULL);
	for (unsigned area = 0; sandbox->shm && area < OSD_SHM_AREAS; area++)
		osd_shm_kick(&sandbox->shm->areas[area].call);
	pthread_cond_broadcast(sandboxes->changed);
	if (sandbox->exit_known && sandbox->state != OSD_SANDBOX_TAKEN)
		unlink_sandbox(sandboxes, sandbox);
	osd_sandboxes_refill(sandboxes);
}

void osd_sandbox_exited(struct osd_sandboxes *sandboxes, uint64_t id,
			const struct osd_sandbox_exit *status)
{
	struct osd_sandbox *sandbox = osd_sandbox_find(sandboxes, id);

	if (!sandbox || sandbox->exit_known)
		return;
	sandbox->exit = *status;
	sandbox->exit_known = true;
	pthread_cond_broadcast(sandboxes->changed);
	if (!sandbox->dead)
		osd_sandbox_died(sandboxes, sandbox);
	else if (sandbox->state != OSD_SANDBOX_TAKEN)
		unlink_sandbox(sandboxes, sandbox);
}

static void end_all(struct osd_sandboxes *sandboxes)
{
	sandboxes->ops->unserved(sandboxes->arg);
	for (struct osd_sandbox *sandbox = sandboxes->list, *next; sandbox; sandbox = next) {
		next = sandbox->next;
		sandbox->service_lost = !sandbox->exit_known;
		sandbox->exit_known = true; /* nothing more will be reported */
		if (!sandbox->dead)
			osd_sandbox_died(sandboxes, sandbox);
		else if (sandbox->state != OSD_SANDBOX_TAKEN)
			unlink_sandbox(sandboxes, sandbox);
	}
}

/* ---- all of them ------------------------------------------------------------------------------ */

void osd_sandboxes_init(struct osd_sandboxes *sandboxes)
{
	sandboxes->fd = -1;
	sandboxes->next_id = 1;
	sandboxes->lost = end_all;
}

void osd_sandboxes_release(struct osd_sandboxes *sandboxes)
{
	osd_service_lost(sandboxes);
	while (sandboxes->list)
		unlink_sandbox(sandboxes, sandboxes->list);
}
