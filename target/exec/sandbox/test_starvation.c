/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_starvation.c -- by how much a wall limit is extended; a process that gets no processor at all.  With
 * real scripts: tests/exec/test_starvation.py. */
#include "exec/sandbox/sandbox.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"

#define SECOND	   UINT64_C(1000000)
#define WALL_USEC  UINT64_C(100000)
#define SMALL_USEC UINT64_C(5000)

static void extension(void)
{
	CHECK_EQ(osd_starved_extension(2 * SECOND, 0), 0);
	CHECK_EQ(osd_starved_extension(2 * SECOND, 5 * SECOND), 5 * SECOND);
	CHECK_EQ(osd_starved_extension(2 * SECOND, 99 * SECOND), 18 * SECOND);
	CHECK_EQ(osd_starved_extension(0, SECOND), 0);
	CHECK_EQ(osd_starved_extension(6 * SECOND, 99 * SECOND), 54 * SECOND);
	CHECK_EQ(osd_starved_extension(7 * SECOND, 99 * SECOND), OSD_STARVED_MOST_USEC);
	CHECK_EQ(osd_starved_extension(UINT64_MAX, UINT64_MAX), OSD_STARVED_MOST_USEC);
}

/* A job that has used up its processor time, which is as long as its wall limit, or not. */
static void both_limits(void)
{
	struct osd_sandbox sandbox = {.wall_limit_usec = 2 * SECOND, .cpu_limit_usec = 2 * SECOND};

	sandbox.wall_usec = 3 * SECOND;
	osd_starvation_begin(&sandbox, SECOND);
	sandbox.wall_usec = 5 * SECOND;
	CHECK(!osd_starvation_was_wall(&sandbox, 3 * SECOND - 1));
	CHECK(osd_starvation_was_wall(&sandbox, 3 * SECOND));
	sandbox.cpu_limit_usec = SECOND;
	CHECK(!osd_starvation_was_wall(&sandbox, 4 * SECOND));
	sandbox.cpu_limit_usec = 3 * SECOND;
	CHECK(!osd_starvation_was_wall(&sandbox, 4 * SECOND));
}

/* A child that computes until it is killed, on one processor.  It ends with this process, however
 * that ends. */
static pid_t loop_on(const cpu_set_t *processor)
{
	pid_t parent = getpid(), pid = fork();

	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
			_exit(1);
		sched_setaffinity(0, sizeof(*processor), processor);
		for (volatile unsigned turns = 0;; turns++)
			;
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void pause_usec(uint64_t usec)
{
	usleep((useconds_t)usec);
}

/* The kernel counts a wait when it ends.  A loop of real-time priority keeps a job off its processor for
 * longer than the job's wall limit, and the limit is extended all the same. */
static void no_processor_at_all(void)
{
	struct osd_sandbox sandbox = {.user = &sandbox, .wall_limit_usec = WALL_USEC};
	struct sched_param realtime = {.sched_priority = 1};
	cpu_set_t own, one;
	unsigned first = 0;
	uint64_t used, now;
	bool is_late;
	pid_t hog;

	CHECK_EQ(sched_getaffinity(0, sizeof(own), &own), 0);
	if (CPU_COUNT(&own) < 2)
		return; /* the test itself needs one */
	while (!CPU_ISSET(first, &own))
		first++;
	CPU_CLR(first, &own);
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CHECK_EQ(sched_setaffinity(0, sizeof(own), &own), 0);
	hog = loop_on(&one);
	sandbox.pid = loop_on(&one);
	while (osd_sandbox_cpu_usec(&sandbox) < SMALL_USEC)
		pause_usec(SMALL_USEC);
	if (sched_setscheduler(hog, SCHED_FIFO, &realtime) == 0) {
		do { /* from here on the child does not run */
			used = osd_sandbox_cpu_usec(&sandbox);
			pause_usec(SMALL_USEC);
		} while (osd_sandbox_cpu_usec(&sandbox) != used);
		sandbox.cpu_before_usec = used;
		now = osd_monotonic_usec();
		sandbox.wall_usec = now + WALL_USEC;
		osd_starvation_begin(&sandbox, now);
		pause_usec(WALL_USEC + SMALL_USEC);
		/* So long it has waited at least.  This thread may have waited for longer than a limit
		 * is extended by. */
		is_late = osd_starvation_is_late(&sandbox, now + WALL_USEC + SMALL_USEC);
		if (osd_sandbox_cpu_usec(&sandbox) == used) { /* not let in after all, until here */
			CHECK(!is_late);
			CHECK(sandbox.starved_usec >= WALL_USEC);
			CHECK(sandbox.wall_usec >= now + 2 * WALL_USEC);
		}
	}
	end(hog);
	end(sandbox.pid);
}

int main(void)
{
	extension();
	both_limits();
	no_processor_at_all();
	return 0;
}
