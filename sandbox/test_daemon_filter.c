/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_daemon_filter.c -- behind the filters of the daemon and of its janitor, with arguments that do no
 * harm: what must not work, and what must, a zygote's own filter among it. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "privileges.h"
#include "seccomp_rules.h"

#define BAD (-1L) /* a descriptor, pointer or id that is nobody's */

struct attempt {
	const char *name;
	long number;
	long arguments[6];
};

/* Without the filter root gets another error for these: an argument is wrong. */
static const struct attempt denied[] = {
	{"ptrace", SYS_ptrace, {BAD, BAD, 0, 0}},
	{"process_vm_writev", SYS_process_vm_writev, {BAD, 0, 0, 0, 0, 0}},
	{"pidfd_getfd", SYS_pidfd_getfd, {BAD, BAD, 0}},
	{"bpf", SYS_bpf, {BAD, BAD, 0}},
	{"finit_module", SYS_finit_module, {BAD, BAD, 0}},
	{"kexec_load", SYS_kexec_load, {BAD, BAD, BAD, BAD}},
	{"open_by_handle_at", SYS_open_by_handle_at, {BAD, BAD, 0}},
	{"keyctl", SYS_keyctl, {BAD, 0, 0, 0, 0}},
	{"perf_event_open", SYS_perf_event_open, {BAD, BAD, BAD, BAD, BAD}},
	{"io_uring_setup", SYS_io_uring_setup, {0, BAD}},
	{"userfaultfd", SYS_userfaultfd, {BAD}},
	{"chroot", SYS_chroot, {BAD}},
	{"fsopen", SYS_fsopen, {BAD, 0}},
	{"move_mount", SYS_move_mount, {BAD, BAD, BAD, BAD, 0}},
	{"reboot", SYS_reboot, {0, 0, 0, 0}},
	{"clock_settime", SYS_clock_settime, {BAD, BAD}},
	{"socket of the network", SYS_socket, {AF_INET, SOCK_STREAM, 0}},
	{"socket of packets", SYS_socket, {AF_PACKET, SOCK_RAW, 0}},
	{"socket of the kernel", SYS_socket, {AF_NETLINK, SOCK_RAW, 0}},
};

/* What a zygote calls to set itself up. */
static const struct attempt wanted[] = {
	{"socket of a file", SYS_socket, {AF_UNIX, SOCK_DGRAM, 0}},
	{"mount", SYS_mount, {BAD, BAD, BAD, 0, 0}},
	{"pivot_root", SYS_pivot_root, {BAD, BAD}},
	{"setns", SYS_setns, {BAD, 0}},
	{"clone3", SYS_clone3, {BAD, 0}},
	{"landlock_create_ruleset", SYS_landlock_create_ruleset, {BAD, 0, BAD}},
	{"pidfd_open", SYS_pidfd_open, {BAD, 0}},
	{"memfd_create", SYS_memfd_create, {BAD, 0}},
};

static const struct attempt denied_to_janitor[] = {
	{"socket", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
	{"execve", SYS_execve, {BAD, BAD, BAD}},
	{"clone", SYS_clone, {CLONE_NEWUSER, BAD, BAD, BAD, BAD}},
	{"mount", SYS_mount, {BAD, BAD, BAD, 0, 0}},
	{"chown", SYS_chown, {BAD, 0, 0}},
	{"prctl", SYS_prctl, {BAD, 0, 0, 0, 0}},
	{"renameat2", SYS_renameat2, {BAD, BAD, BAD, BAD, 0}},
	{"ptrace", SYS_ptrace, {BAD, BAD, 0, 0}},
};

static const struct attempt wanted_by_janitor[] = {
	{"rmdir", SYS_rmdir, {BAD}},
	{"kill", SYS_kill, {0x7fffffff, 0}},
	{"getdents64", SYS_getdents64, {BAD, BAD, 0}},
};

static int check(const struct attempt *list, size_t count, bool is_denied)
{
	int failures = 0;

	for (size_t i = 0; i < count; i++) {
		const long *x = list[i].arguments;

		errno = 0;
		if (syscall(list[i].number, x[0], x[1], x[2], x[3], x[4], x[5]) >= 0)
			errno = 0;
		if ((errno == EPERM) == is_denied)
			continue;
		printf("%s: %s\n", list[i].name, strerror(errno));
		failures++;
	}
	return failures;
}

static int be_daemon(void)
{
	struct sock_fprog program;
	struct osd_step step;
	int failures;

	if (osd_daemon_filter() < 0)
		return 1;
	failures = check(denied, OSD_ARRAY_SIZE(denied), true) +
		   check(wanted, OSD_ARRAY_SIZE(wanted), false);
	if (osd_seccomp_build(4, NULL, 0, &program, &step) < 0 || osd_seccomp_install(&program, &step) < 0) {
		printf("a sandbox's filter: %s\n", step.what);
		failures++;
	}
	return failures;
}

static int be_janitor(void)
{
	if (osd_janitor_filter() < 0)
		return 1;
	return check(denied_to_janitor, OSD_ARRAY_SIZE(denied_to_janitor), true) +
	       check(wanted_by_janitor, OSD_ARRAY_SIZE(wanted_by_janitor), false);
}

static bool succeeds(int (*run)(void))
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		int failures = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? 1 : run();

		fflush(stdout);
		_exit(failures ? 1 : 0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
	bool daemon = succeeds(be_daemon), janitor = succeeds(be_janitor);

	return daemon && janitor ? 0 : 1;
}
