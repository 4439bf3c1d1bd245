/* SPDX-License-Identifier: GPL-2.0-or-later */
/* confine.c -- see confine.h.  A list of what is denied, not of what is allowed: tgtd and its libraries are
 * not ours, and have no capabilities anyway.  The filter checks arguments of two calls only, so that the
 * kernel (5.11 and later) remembers its answer for all others and they cost nothing. */
#include "base/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE AUDIT_ARCH_RISCV64
#else
#error "no seccomp filter for this processor: add its AUDIT_ARCH_"
#endif

#define X32_BIT	   0x40000000 /* of x86-64's second table of calls */
#define NAMESPACES (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
		    CLONE_NEWPID | CLONE_NEWNET | 0x80 /* CLONE_NEWTIME */)

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

static const uint32_t denied[] = {
	/* programs */
	SYS_execve, SYS_execveat,
	/* other processes */
	SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_process_madvise, SYS_kcmp,
	SYS_pidfd_getfd,
	/* the kernel itself */
	SYS_bpf, SYS_perf_event_open, SYS_kexec_load, SYS_init_module, SYS_finit_module,
	SYS_delete_module, SYS_userfaultfd, SYS_syslog, SYS_reboot, SYS_add_key, SYS_keyctl,
	SYS_request_key, SYS_personality, SYS_lookup_dcookie,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
	SYS_iopl, SYS_ioperm, SYS_modify_ldt,
#endif
	/* file systems and namespaces */
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_move_mount, SYS_open_tree, SYS_fsopen,
	SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_setns, SYS_unshare,
	SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_fanotify_init, SYS_mknodat, SYS_quotactl,
	SYS_quotactl_fd, SYS_swapon, SYS_swapoff, SYS_acct,
#ifdef SYS_mknod
	SYS_mknod,
#endif
	/* the host's clock and name */
	SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname,
	SYS_setdomainname};

static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

/* The program: a head, a pair for each denied call, the two calls with arguments, the end. */
#define PROGRAM_MOST (24 + 2 * OSD_ARRAY_SIZE(denied) + 2 * OSD_ARRAY_SIZE(families))

struct program {
	struct sock_filter code[PROGRAM_MOST];
	unsigned short length;
};

static void put(struct program *program, struct sock_filter instruction)
{
	if (program->length < PROGRAM_MOST)
		program->code[program->length] = instruction;
	program->length++;
}

static void load(struct program *program, size_t offset)
{
	put(program,
	    (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* The next `skip` instructions are for this value only. */
static void if_equal(struct program *program, uint32_t value, uint8_t skip)
{
	put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip));
}

static void end(struct program *program, uint32_t action)
{
	put(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static uint32_t refuse(int error)
{
	return SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA);
}

static void write_program(struct program *program)
{
	load(program, offsetof(struct seccomp_data, arch));
	put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0));
	end(program, SECCOMP_RET_KILL_PROCESS);
	load(program, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
	put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
	end(program, SECCOMP_RET_KILL_PROCESS);
#endif
	for (size_t i = 0; i < OSD_ARRAY_SIZE(denied); i++) {
		if_equal(program, denied[i], 1);
		end(program, refuse(EPERM));
	}
	/* Its flags lie in memory; libraries use clone where there is none. */
	if_equal(program, SYS_clone3, 1);
	end(program, refuse(ENOSYS));
	if_equal(program, SYS_clone, 4);
	load(program, offsetof(struct seccomp_data, args[0]));
	put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1));
	end(program, refuse(EPERM));
	end(program, SECCOMP_RET_ALLOW);
	if_equal(program, SYS_socket, 2 + 2 * OSD_ARRAY_SIZE(families));
	load(program, offsetof(struct seccomp_data, args[0]));
	for (size_t i = 0; i < OSD_ARRAY_SIZE(families); i++) {
		if_equal(program, families[i], 1);
		end(program, SECCOMP_RET_ALLOW);
	}
	end(program, refuse(EAFNOSUPPORT));
	end(program, SECCOMP_RET_ALLOW);
}

int osd_confine(void)
{
	struct program program = {.length = 0};
	struct sock_fprog filter;

	write_program(&program);
	if (program.length > PROGRAM_MOST)
		return E2BIG;
	filter = (struct sock_fprog){.len = program.length, .filter = program.code};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return errno;
	/* Without this flag kernels before 5.16 slow down every process that has a filter. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &filter) < 0)
		return errno;
	return 0;
}
