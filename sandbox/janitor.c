/* SPDX-License-Identifier: GPL-2.0-or-later */
/* janitor.c -- a child of iosd-sandboxd that outlives it by a moment.  After the end of the daemon,
 * orderly or not, the janitor removes the control groups.  The daemon itself lacks the capability that
 * this may need, and waits for the janitor at an orderly end.  Processes need no janitor: the kernel
 * ends a process namespace with its first process, and zygotes exit when the daemon's socket closes.
 * If the janitor is killed too, the next daemon removes the groups (cgroup.c). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon.h"
#include "privileges.h"

#define ALIVE_FD 3 /* read end of a pipe whose write end only the daemon has */

static void clean_up_after(struct osd_daemon *daemon)
{
	uint64_t kept;
	char nothing;

	prctl(PR_SET_NAME, "iosd-janitor", 0, 0, 0);
	/* root owns the groups and the user namespaces of their processes, so it needs no capability
	 * for these */
	kept = osd_cgroups_need_override(&daemon->cgroups) ? OSD_CAPABILITY(DAC_OVERRIDE) : 0;
	if (osd_privileges_keep(kept, kept) < 0)
		_exit(1);
	/* the whole service is being stopped, and then the janitor is needed */
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	syscall(SYS_close_range, ALIVE_FD + 1, ~0u, 0);
	if (osd_janitor_filter() < 0)
		_exit(1);
	while (read(ALIVE_FD, &nothing, 1) < 0 && errno == EINTR)
		;
	osd_cgroups_remove(&daemon->cgroups);
	_exit(0);
}

bool osd_janitor_start(struct osd_daemon *daemon)
{
	int alive[2];
	pid_t pid;

	if (!daemon->cgroups.count)
		return true;
	if (pipe2(alive, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		if (alive[0] != ALIVE_FD && dup2(alive[0], ALIVE_FD) < 0)
			_exit(1);
		clean_up_after(daemon);
	}
	close(alive[0]);
	daemon->janitor = pid;
	daemon->alive_fd = alive[1]; /* stays open until the daemon ends */
	return pid > 0;
}

void osd_janitor_finish(struct osd_daemon *daemon)
{
	if (daemon->janitor <= 0)
		return;
	close(daemon->alive_fd);
	while (waitpid(daemon->janitor, NULL, 0) < 0 && errno == EINTR)
		;
}
