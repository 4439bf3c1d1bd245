/* SPDX-License-Identifier: GPL-2.0-or-later */
/* daemon_filter.c -- the system calls that iosd-sandboxd and its janitor give up (privileges.h).
 *
 * The daemon's list says what is denied, not what is allowed: zygotes inherit the filter, and they run a
 * whole interpreter, mount, and change their root.  The janitor's says what is allowed. */
#include <errno.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/util.h"
#include "privileges.h"

#define NUMBER(name) SCMP_SYS(name)

static const int denied[] = {
	/* clang-format off */
	/* other processes' memory and descriptors */
	NUMBER(ptrace), NUMBER(process_vm_readv), NUMBER(process_vm_writev), NUMBER(process_madvise),
	NUMBER(pidfd_getfd), NUMBER(kcmp),
	/* the kernel itself */
	NUMBER(init_module), NUMBER(finit_module), NUMBER(delete_module), NUMBER(kexec_load),
	NUMBER(kexec_file_load), NUMBER(bpf), NUMBER(perf_event_open), NUMBER(userfaultfd),
	NUMBER(iopl), NUMBER(ioperm), NUMBER(modify_ldt), NUMBER(io_uring_setup),
	NUMBER(io_uring_enter), NUMBER(io_uring_register), NUMBER(personality), NUMBER(syslog),
	/* the host */
	NUMBER(reboot), NUMBER(swapon), NUMBER(swapoff), NUMBER(acct), NUMBER(quotactl),
	NUMBER(quotactl_fd), NUMBER(settimeofday), NUMBER(clock_settime), NUMBER(clock_adjtime),
	NUMBER(adjtimex), NUMBER(sethostname), NUMBER(setdomainname), NUMBER(vhangup),
	/* files without their folders; ways to mount that the zygote does not use */
	NUMBER(name_to_handle_at), NUMBER(open_by_handle_at), NUMBER(lookup_dcookie),
	NUMBER(fanotify_init), NUMBER(fanotify_mark), NUMBER(chroot), NUMBER(mknod), NUMBER(mknodat),
	NUMBER(move_mount), NUMBER(open_tree), NUMBER(fsopen), NUMBER(fsconfig), NUMBER(fsmount),
	NUMBER(fspick), NUMBER(mount_setattr),
	/* keys */
	NUMBER(keyctl), NUMBER(add_key), NUMBER(request_key),
	/* clang-format on */
};

static const int janitors[] = {
	/* clang-format off */
	NUMBER(read), NUMBER(write), NUMBER(close), NUMBER(open), NUMBER(openat), NUMBER(fstat),
	NUMBER(newfstatat), NUMBER(fcntl), NUMBER(getdents64), NUMBER(lseek), NUMBER(rmdir),
	NUMBER(unlinkat), NUMBER(kill), NUMBER(poll), NUMBER(ppoll), NUMBER(brk), NUMBER(mmap),
	NUMBER(munmap), NUMBER(getrandom), NUMBER(rt_sigreturn), NUMBER(restart_syscall),
	NUMBER(exit), NUMBER(exit_group),
	/* clang-format on */
};

static int add_all(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t count)
{
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = seccomp_rule_add(filter, action, calls[i], 0);
	return error;
}

/* error: of a rule; then it is not loaded.  Frees it. */
static int load(scmp_filter_ctx filter, int error)
{
	if (!error)
		error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (!error) /* numbers of another table, as of 32-bit programs */
		error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!error)
		error = seccomp_load(filter);
	seccomp_release(filter);
	return error;
}

int osd_daemon_filter(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int error;

	if (!filter)
		return -ENOMEM;
	error = add_all(filter, SCMP_ACT_ERRNO(EPERM), denied, OSD_ARRAY_SIZE(denied));
	if (!error) /* no network but the sockets of this host's files */
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), NUMBER(socket), 1,
					 SCMP_A0(SCMP_CMP_NE, AF_UNIX));
	return load(filter, error);
}

int osd_janitor_filter(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));

	if (!filter)
		return -ENOMEM;
	return load(filter, add_all(filter, SCMP_ACT_ALLOW, janitors, OSD_ARRAY_SIZE(janitors)));
}
