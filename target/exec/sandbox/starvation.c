/* SPDX-License-Identifier: GPL-2.0-or-later */
/* starvation.c -- processor time that scripts needed and did not get (sandbox.h).  The kernel counts in
 * /proc/PID/schedstat how long the first thread of a process was ready to run and did not.  A kernel
 * without CONFIG_SCHED_INFO counts nothing, and hidepid hides the file: the figure is then 0. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/sandbox/sandbox.h"

#define SAMPLE_USEC  UINT64_C(250000)
#define EXTEND_LEAST UINT64_C(10000)  /* a shorter extension is not worth another look */
/* A new sandbox is READY, a killed one is dead and an end is reported sooner, unless it or its zygote starves. */
#define USUAL	     UINT64_C(100000)
#define PER_MILLE    1000u
#define LITTLE	     500u /* per mille of what scripts wanted: less is reported */

/* Reads the start of a file of /proc/PID, as text; false: it cannot be read. */
static bool read_proc(pid_t pid, const char *name, char *text, size_t bytes)
{
	char path[32];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, text, bytes - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	return true;
}

/* How long the process has waited for a processor since it began.  The kernel adds a wait when it ends. */
static uint64_t waited_usec(pid_t pid)
{
	uint64_t waited_nsec;
	char text[80];

	if (!read_proc(pid, "schedstat", text, sizeof(text)) ||
	    sscanf(text, "%*u %" SCNu64, &waited_nsec) != 1)
		return 0;
	return waited_nsec / 1000;
}

/* Whether the process runs or waits for a processor now. */
static bool is_ready(pid_t pid)
{
	char text[80]; /* "PID (NAME) STATE ...", a name of at most 15 bytes */
	const char *name;

	if (!read_proc(pid, "stat", text, sizeof(text)))
		return false;
	name = strrchr(text, ')');
	return name && name[1] == ' ' && name[2] == 'R';
}

uint64_t osd_starved_extension(uint64_t wall_usec, uint64_t starved_usec)
{
	uint64_t most = wall_usec > OSD_STARVED_MOST_USEC / OSD_STARVED_TIMES
				? OSD_STARVED_MOST_USEC
				: wall_usec * OSD_STARVED_TIMES;

	return OSD_MIN(starved_usec, most);
}

void osd_starvation_begin(struct osd_sandbox *sandbox, uint64_t now_usec)
{
	sandbox->wall_first_usec = sandbox->wall_usec;
	sandbox->sampled_usec = now_usec;
	sandbox->cpu_sampled_usec = sandbox->cpu_before_usec;
	sandbox->was_ready = true; /* the job wakes it */
	sandbox->measured = false;
	atomic_store(&sandbox->starved_usec, 0);
}

struct sample {
	uint64_t waited, used;
};

/* How long the process has waited and computed since the last sample.  Waits that began before the job do
 * not count, and waits of one thread while others compute do not: a job starves that gets nothing.
 *
 * A process that has not run since the last sample, was ready then (or has had its job since) and is ready
 * now, has waited all the time.  The kernel has not counted that wait; when it does, its first part is in
 * waited_usec already. */
static struct sample take_sample(struct osd_sandbox *sandbox, uint64_t now)
{
	uint64_t elapsed = now - OSD_MIN(now, sandbox->sampled_usec);
	uint64_t used = osd_sandbox_cpu_usec(sandbox), waited = waited_usec(sandbox->pid);
	struct sample sample = {.waited = waited - OSD_MIN(waited, sandbox->waited_usec),
				.used = used - OSD_MIN(used, sandbox->cpu_sampled_usec)};
	bool ready = is_ready(sandbox->pid);

	if (ready && sandbox->was_ready && sample.used == 0) {
		sample.waited = elapsed;
		waited = sandbox->waited_usec + elapsed;
	}
	sample.waited = OSD_MIN(sample.waited, elapsed - OSD_MIN(elapsed, sample.used));
	sandbox->was_ready = ready;
	sandbox->sampled_usec = now;
	sandbox->waited_usec = OSD_MAX(waited, sandbox->waited_usec);
	sandbox->cpu_sampled_usec = OSD_MAX(used, sandbox->cpu_sampled_usec);
	if (sandbox->user)
		atomic_fetch_add(&sandbox->starved_usec, sample.waited);
	return sample;
}

void osd_starvation_measure(struct osd_sandbox *sandbox)
{
	sandbox->waited_usec = OSD_MAX(waited_usec(sandbox->pid), sandbox->waited_usec);
	sandbox->measured = sandbox->waited_usec > 0; /* each process has waited for a moment */
}

bool osd_starvation_end(struct osd_sandbox *sandbox, uint64_t now_usec)
{
	if (sandbox->measured)
		take_sample(sandbox, now_usec);
	return sandbox->measured;
}

bool osd_starvation_is_late(struct osd_sandbox *sandbox, uint64_t now_usec)
{
	uint64_t deadline;

	if (now_usec < sandbox->wall_usec)
		return false;
	take_sample(sandbox, now_usec);
	deadline = sandbox->wall_first_usec +
		   osd_starved_extension(sandbox->wall_limit_usec,
					 atomic_load(&sandbox->starved_usec));
	if (deadline < now_usec + EXTEND_LEAST)
		return true;
	sandbox->wall_usec = deadline;
	return false;
}

bool osd_starvation_was_wall(const struct osd_sandbox *sandbox, uint64_t now_usec)
{
	return sandbox->cpu_limit_usec == sandbox->wall_limit_usec &&
	       now_usec >= sandbox->wall_first_usec;
}

/* Scripts that have run for a while, and sandboxes that should have been ready by now. */
static bool is_sampled(const struct osd_sandboxes *sandboxes, const struct osd_sandbox *sandbox,
		       uint64_t now)
{
	if (sandbox->dead || sandbox->kill_sent)
		return false;
	if (sandbox->state == OSD_SANDBOX_WARMING)
		return now >= sandbox->asked_usec + USUAL;
	return sandbox->pinged && sandbox->user &&
	       sandboxes->ops->work_of(sandbox) != OSD_WORK_NONE;
}

/* The C library reads this from a file each time. */
static uint64_t processors(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return (uint64_t)OSD_MAX(count, 1L);
}

static void report(struct osd_sandboxes *sandboxes, uint64_t got, uint64_t wanted)
{
	if (wanted && got * PER_MILLE < wanted * LITTLE)
		osd_service_report_share(sandboxes, (unsigned)(got * PER_MILLE / wanted));
}

/* Whether it waits for a processor by its pool's bound, and not for other programs. */
static bool is_bound(const struct osd_sandbox *sandbox)
{
	return sandbox->supply->cpu_share < OSD_CPU_SHARE_WHOLE;
}

/* Whether it has been killed and is not dead, or its zygote has not reported how it ended. */
static bool ends(const struct osd_sandbox *sandbox)
{
	return sandbox->dead ? !sandbox->exit_known : sandbox->kill_sent;
}

/* When a sandbox is late to be READY, or to end.  OSD_NEVER: neither is due. */
static uint64_t late_at(const struct osd_sandbox *sandbox)
{
	bool due = ends(sandbox) ? !is_bound(sandbox)
				 : !sandbox->dead && sandbox->state == OSD_SANDBOX_WARMING;

	return due ? sandbox->asked_usec + USUAL : OSD_NEVER;
}

/* A zygote has its share together with the scripts. */
void osd_starvation_check(struct osd_sandboxes *sandboxes, uint64_t now_usec, uint64_t *deadline)
{
	uint64_t got = 0, wanted = 0, span = 0;
	bool due = now_usec >= sandboxes->sampled_usec + SAMPLE_USEC, any = false, late = false;

	for (struct osd_sandbox *sandbox = sandboxes->list; sandbox; sandbox = sandbox->next) {
		uint64_t late_usec = late_at(sandbox);
		struct sample sample;

		if (now_usec < late_usec)
			*deadline = OSD_MIN(*deadline, late_usec);
		else
			late |= ends(sandbox);
		if (!is_sampled(sandboxes, sandbox, now_usec))
			continue;
		any = true;
		if (!due)
			continue;
		span = OSD_MAX(span, now_usec - OSD_MIN(now_usec, sandbox->sampled_usec));
		sample = take_sample(sandbox, now_usec);
		if (is_bound(sandbox))
			continue;
		got += sample.used;
		wanted += sample.used + sample.waited;
	}
	any |= late;
	if (any && due) {
		sandboxes->sampled_usec = now_usec;
		/* Scripts that wait for each other are not starved by others. */
		report(sandboxes, got, OSD_MIN(wanted, processors() * span));
		if (late)
			osd_service_report_share(sandboxes, 0);
	}
	if (any)
		*deadline = OSD_MIN(*deadline, sandboxes->sampled_usec + SAMPLE_USEC);
}
