/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandbox.c -- one sandbox: found, asked and killed, its clocks and its pipes (sandbox.h). */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/sandbox/sandbox.h"
#include "wire/cursor.h"

/* The time to wait for the death of a killed sandbox.  iosd-sandboxd may be stopped and report nothing; the
 * job then ends without the report.  That is safe: the sandbox's calls get no more answers. */
#define DYING_USEC 1000000

struct osd_sandbox *osd_sandbox_find(struct osd_sandboxes *sandboxes, uint64_t id)
{
	struct osd_sandbox *sandbox = sandboxes->list;

	while (sandbox && sandbox->id != id)
		sandbox = sandbox->next;
	return sandbox;
}

void osd_sandbox_unref(struct osd_sandbox *sandbox)
{
	if (--sandbox->references > 0)
		return;
	osd_closep(&sandbox->pidfd);
	osd_closep(&sandbox->job_fd);
	osd_closep(&sandbox->stdout_fd);
	osd_closep(&sandbox->stderr_fd);
	if (sandbox->shm)
		munmap(sandbox->shm, OSD_SHM_BYTES);
	free(sandbox->principal);
	free(sandbox);
}

bool osd_sandbox_ask_limits(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox,
			    const struct osd_sandbox_limits *limits)
{
	uint8_t body[64];
	size_t length = osd_sandbox_limits_encode(limits, body, sizeof(body));

	sandbox->limits_asked = true;
	sandbox->limits = *limits;
	return osd_service_send(sandboxes, OSD_SANDBOXD_LIMITS, sandbox->id, body, length);
}

void osd_sandbox_kill(struct osd_sandboxes *sandboxes, struct osd_sandbox *sandbox)
{
	if (sandbox->kill_sent || sandbox->dead)
		return;
	sandbox->kill_sent = true;
	sandbox->kill_usec = OSD_NEVER;
	sandbox->asked_usec = osd_monotonic_usec(); /* to be dead */
	sandbox->give_up_usec = sandbox->asked_usec + DYING_USEC;
	if (sandbox->state == OSD_SANDBOX_KEPT || sandbox->state == OSD_SANDBOX_READY) {
		sandbox->supply->figures
			.recycled[sandbox->stale ? OSD_RECYCLED_ASKED : OSD_RECYCLED_IDLE]++;
		sandbox->state = OSD_SANDBOX_ENDING;
	}
	osd_service_send(sandboxes, OSD_SANDBOXD_KILL, sandbox->id, NULL, 0);
}

void osd_sandbox_name_job(struct osd_sandboxes *sandboxes, const struct osd_sandbox *sandbox,
			  uint64_t partition_id, uint64_t object_id)
{
	uint8_t body[16];

	osd_put_be(body, partition_id, 8);
	osd_put_be(body + 8, object_id, 8);
	osd_service_send(sandboxes, OSD_SANDBOXD_JOB, sandbox->id, body, sizeof(body));
}

/* The same clock as clock_getcpuclockid(3) returns, which would ask the kernel whether the process exists. */
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

/* ---- pipes ----------------------------------------------------------------------------------- */

void osd_sandbox_watch_pipes(struct osd_sandboxes *sandboxes, const struct osd_sandbox *sandbox,
			     int operation)
{
	/* One event each, so that a flood in one pipe does not keep the thread from the others. */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = sandbox->id};

	epoll_ctl(sandboxes->pipes_epoll, operation, sandbox->stdout_fd, &event);
	epoll_ctl(sandboxes->pipes_epoll, operation, sandbox->stderr_fd, &event);
}
