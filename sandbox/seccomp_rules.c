/* SPDX-License-Identifier: GPL-2.0-or-later */
/* seccomp_rules.c -- see seccomp_rules.h.
 *
 * An allow-list; whatever is not on it fails with EPERM, which Python turns into PermissionError (a
 * script sees what it did wrong, and a new kernel's new calls are denied).  The list does not contain,
 * among others: fork, vfork, execve, kill, tgkill, socket, bind, connect, ptrace, process_vm_*, mount,
 * unshare, setns, bpf, keyctl, userfaultfd, memfd_create, io_uring_*, perf_event_open, prctl, all of
 * futex but waiting and waking, flock, fadvise64, sched_set*, setpriority, shmget, mq_open, inotify,
 * and every call that changes a file system but those of `scratch_calls`. */
#include "seccomp_rules.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

#define NUMBER(name) SCMP_SYS(name)

/* Without argument rules: the kernel keeps these in a bitmap, so a call costs about 35 ns more. */
static const int always[] = {
	/* clang-format off */
	/* descriptors already open, and files below the Landlock rules */
	NUMBER(read), NUMBER(write), NUMBER(pread64), NUMBER(pwrite64), NUMBER(readv),
	NUMBER(writev), NUMBER(preadv2), NUMBER(close), NUMBER(close_range), NUMBER(fstat),
	NUMBER(newfstatat), NUMBER(statx), NUMBER(lseek), NUMBER(openat), NUMBER(access),
	NUMBER(faccessat), NUMBER(faccessat2), NUMBER(readlink), NUMBER(getdents64),
	NUMBER(getcwd), NUMBER(dup), NUMBER(dup2), NUMBER(dup3), NUMBER(poll), NUMBER(pselect6),
	/* memory */
	NUMBER(munmap), NUMBER(mremap), NUMBER(madvise), NUMBER(brk),
	/* threads of this process and time */
	NUMBER(set_robust_list), NUMBER(rseq),
	NUMBER(gettid), NUMBER(sched_yield), NUMBER(sched_getaffinity), NUMBER(getcpu),
	NUMBER(clock_gettime), NUMBER(clock_getres), NUMBER(gettimeofday), NUMBER(time),
	NUMBER(clock_nanosleep), NUMBER(restart_syscall),
	/* who am I, how much did I use */
	NUMBER(getpid), NUMBER(getppid), NUMBER(getuid), NUMBER(geteuid), NUMBER(getgid),
	NUMBER(getegid), NUMBER(getgroups), NUMBER(uname), NUMBER(getrusage), NUMBER(times),
	NUMBER(getrandom),
	/* signal handlers and masks of its own */
	NUMBER(rt_sigaction), NUMBER(rt_sigprocmask), NUMBER(rt_sigreturn), NUMBER(sigaltstack),
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

/* Adds a rule for each value of the call's second argument, of which the kernel reads the low half.  ignored: bits that
 * do not matter. */
static int add_values(scmp_filter_ctx filter, uint32_t action, int call, uint64_t ignored,
		      const uint64_t *values, size_t count)
{
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = seccomp_rule_add(
			filter, action, call, 1,
			SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX & ~ignored, values[i]));
	return error;
}

/* Memory that RLIMIT_DATA does not count is denied: shared anonymous maps, maps that grow like a stack,
 * huge pages, and kinds of maps that later kernels bring.  Executable memory would let a script bring
 * its own machine code.  An engine that compiles writes code, then makes it executable; memory is never
 * both. */
static int allow_memory(scmp_filter_ctx filter, bool executable)
{
	const uint64_t looked_at = MAP_TYPE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_HUGETLB;
	const uint64_t counted[] = {MAP_PRIVATE, MAP_SHARED, MAP_PRIVATE | MAP_ANONYMOUS};
	int error = 0;

	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]) && !error; i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, NUMBER(mmap), 2,
					 SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
					 SCMP_A3(SCMP_CMP_MASKED_EQ, looked_at, counted[i]));
	if (!error)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, NUMBER(mprotect), 1,
					 SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (!error && executable)
		error = seccomp_rule_add(
			filter, SCMP_ACT_ALLOW, NUMBER(mprotect), 1,
			SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC | PROT_WRITE, PROT_EXEC));
	return error;
}

static int allow_ioctl_and_fcntl(scmp_filter_ctx filter)
{
	static const uint64_t requests[] = {TCGETS, FIOCLEX, FIONBIO};
	static const uint64_t commands[] = {F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC, F_DUPFD};
	int error = add_values(filter, SCMP_ACT_ALLOW, NUMBER(ioctl), 0, requests,
			       OSD_ARRAY_SIZE(requests));

	return error ? error
		     : add_values(filter, SCMP_ACT_ALLOW, NUMBER(fcntl), 0, commands,
				  OSD_ARRAY_SIZE(commands));
}

/* Waiting and waking, as the C library does it.  It does not allow operations that move waiters to
 * another word (REQUEUE) or act on a second word: threads of the target wait on the words that a
 * sandbox shares with it. */
static int allow_futex(scmp_filter_ctx filter)
{
	static const uint64_t operations[] = {FUTEX_WAIT, FUTEX_WAKE, FUTEX_WAIT_BITSET,
					      FUTEX_WAKE_BITSET};

	return add_values(filter, SCMP_ACT_ALLOW, NUMBER(futex),
			  FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME, operations,
			  OSD_ARRAY_SIZE(operations));
}

/* Allows a thread of this process, with the flags of pthread_create, and no namespaces. clone3 hides
 * its flags behind a pointer, so it returns ENOSYS, and the C library then uses clone. */
static int allow_threads(scmp_filter_ctx filter)
{
	const uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
	const uint64_t namespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
				    CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	int error;

	error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, NUMBER(clone), 1,
				 SCMP_A0(SCMP_CMP_MASKED_EQ, thread | namespaces, thread));
	if (!error)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), NUMBER(clone3), 0);
	return error;
}

/* Files and folders may be made, moved, cut and removed, within the Landlock rules and the file
 * permissions.  Links, pipes, sockets, modes, owners, times, attributes and another working directory
 * are not on the list. */
static const int scratch_calls[] = {
	/* clang-format off */
	NUMBER(mkdir), NUMBER(mkdirat), NUMBER(unlink), NUMBER(unlinkat), NUMBER(rmdir),
	NUMBER(rename), NUMBER(renameat), NUMBER(ftruncate),
	/* clang-format on */
};

/* Calls that SQLite makes on its files.  They return success without effect: files in memory need no
 * sync, no other process has them, so they need no lock, and a script must not sync or lock objects'
 * files. */
static int allow_scratch(scmp_filter_ctx filter, const char *path)
{
	static const int done[] = {NUMBER(fsync), NUMBER(fdatasync)};
	static const uint64_t locks[] = {F_SETLK, F_SETLKW}, asks[] = {F_GETLK};
	int error = add_all(filter, SCMP_ACT_ALLOW, scratch_calls, OSD_ARRAY_SIZE(scratch_calls));

	if (!error)
		error = add_all(filter, SCMP_ACT_ERRNO(0), done, OSD_ARRAY_SIZE(done));
	if (!error)
		error = add_values(filter, SCMP_ACT_ERRNO(0), NUMBER(fcntl), 0, locks,
				   OSD_ARRAY_SIZE(locks));
	if (!error)
		error = add_values(filter, SCMP_ACT_ALLOW, NUMBER(fcntl), 0, asks,
				   OSD_ARRAY_SIZE(asks));
	if (!error)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, NUMBER(statfs), 1,
					 SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)(uintptr_t)path));
	return error;
}

/* A further filter can only deny more.  Flags 0: no listener that other processes could serve. */
static int allow_narrowing(scmp_filter_ctx filter)
{
	return seccomp_rule_add(filter, SCMP_ACT_ALLOW, NUMBER(seccomp), 2,
				SCMP_A0(SCMP_CMP_EQ, SECCOMP_SET_MODE_FILTER),
				SCMP_A1(SCMP_CMP_EQ, 0));
}

static int add_rules(scmp_filter_ctx filter, int job_socket, const char *scratch, unsigned rules)
{
	/* a binary tree: shorter to install, which every sandbox does */
	int error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);

	if (!error) /* numbers of another table, as of 32-bit programs */
		error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (!error)
		error = add_all(filter, SCMP_ACT_ALLOW, always, OSD_ARRAY_SIZE(always));
	if (!error)
		error = allow_memory(filter, rules & OSD_SECCOMP_EXECUTABLE);
	if (!error && rules & OSD_SECCOMP_NARROW)
		error = allow_narrowing(filter);
	if (!error)
		error = allow_ioctl_and_fcntl(filter);
	if (!error)
		error = allow_futex(filter);
	if (!error)
		error = allow_threads(filter);
	if (!error && scratch)
		error = allow_scratch(filter, scratch);
	if (!error)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, NUMBER(recvmsg), 1,
					 SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)job_socket));
	return error;
}

static int export_program(scmp_filter_ctx filter, struct sock_fprog *ret_program)
{
	OSD_CLEANUP_CLOSE int fd = memfd_create("seccomp", MFD_CLOEXEC);
	int error = fd < 0 ? -errno : seccomp_export_bpf(filter, fd);
	OSD_CLEANUP_FREE void *bytes = NULL;
	struct stat status;

	if (error)
		return error;
	if (fstat(fd, &status) < 0)
		return -errno;
	bytes = malloc((size_t)status.st_size);
	if (!bytes || pread(fd, bytes, (size_t)status.st_size, 0) != status.st_size)
		return -EIO;
	ret_program->filter = OSD_STEAL(bytes);
	ret_program->len = (unsigned short)((size_t)status.st_size / sizeof(struct sock_filter));
	return 0;
}

int osd_seccomp_build(int job_socket, const char *scratch, unsigned rules,
		      struct sock_fprog *ret_program, struct osd_step *step)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int error = -ENOMEM;

	if (filter)
		error = add_rules(filter, job_socket, scratch, rules);
	if (!error)
		error = export_program(filter, ret_program);
	if (filter)
		seccomp_release(filter);
	return osd_step_end(step, error, "build the system-call filter");
}

int osd_seccomp_install(const struct sock_fprog *program, struct osd_step *step)
{
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program) != 0)
		return osd_step_failed(step, "install the system-call filter", NULL);
	return 0;
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

/* The first filter denies calls of other tables, so the number is enough.  PROT_EXEC is in the low half of the
 * argument, which comes first on little-endian machines. */
int osd_seccomp_narrow(struct osd_step *step)
{
	static struct sock_filter rules[] = {
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 3, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	static const struct sock_fprog program = {OSD_ARRAY_SIZE(rules), rules};

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
		return osd_step_failed(step, "narrow the system-call filter", NULL);
	return 0;
}
