/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_syscalls.c -- behind the filter of a sandbox, every system call that must not work is
 * tried with arguments that do no harm should it get through; the few that must work are tried,
 * too.  Python has no function for most of them; the rest of a sandbox is tested in
 * tests/sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "seccomp_rules.h"

#define JOB_SOCKET 4
#define NOTHING    (-1)
#define BAD        (-1L) /* a descriptor, pointer or id that is nobody's */

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08 /* Linux 6.11 */
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

struct attempt {
	const char *name;
	long number;
	long arguments[6];
	int expected; /* errno; 0: must not fail with EPERM; NOTHING: must not fail */
};

static const char folder[] = ".";

#define DENIED(name, ...) {#name, SYS_##name, {__VA_ARGS__}, EPERM}

/* Without the filter these fail with EBADF, EFAULT, EINVAL or ESRCH, or do nothing; with it:
 * EPERM. */
static const struct attempt attempts[] = {
	DENIED(fork), /* never reached: see main */
	DENIED(execve, BAD, BAD, BAD),
	DENIED(execveat, BAD, BAD, BAD, BAD, BAD),
	{"clone3", SYS_clone3, {BAD, 0}, ENOSYS},
	DENIED(clone, CLONE_NEWUSER | SIGCHLD, BAD, BAD, BAD, BAD),
	DENIED(clone,
	       CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWNET,
	       BAD),
	DENIED(clone, CLONE_VM | CLONE_PARENT | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWPID, BAD),
	DENIED(kill, BAD, 0),
	DENIED(tkill, BAD, 0),
	DENIED(tgkill, BAD, BAD, SIGTERM),
	DENIED(rt_sigqueueinfo, BAD, 0, BAD),
	DENIED(pidfd_open, BAD, 0),
	DENIED(pidfd_getfd, BAD, BAD, 0),
	DENIED(pidfd_send_signal, BAD, 0, 0, 0),
	DENIED(ptrace, PTRACE_ATTACH, BAD, 0, 0),
	DENIED(process_vm_readv, BAD, 0, 0, 0, 0, 0),
	DENIED(process_vm_writev, BAD, 0, 0, 0, 0, 0),
	DENIED(process_madvise, BAD, 0, 0, 0, 0),
	DENIED(kcmp, BAD, BAD, 0, 0, 0),
	DENIED(socket, AF_INET, SOCK_STREAM, 0),
	DENIED(socket, AF_ALG, SOCK_SEQPACKET, 0),
	DENIED(socketpair, AF_UNIX, SOCK_STREAM, 0, BAD),
	DENIED(bind, BAD, BAD, 0),
	DENIED(connect, BAD, BAD, 0),
	DENIED(listen, BAD, 0),
	DENIED(accept4, BAD, 0, 0, 0),
	DENIED(sendmsg, BAD, BAD, 0),
	DENIED(sendto, BAD, 0, 0, 0, 0, 0),
	DENIED(recvmsg, JOB_SOCKET + 1, BAD, 0),
	DENIED(recvfrom, BAD, 0, 0, 0, 0, 0),
	DENIED(setsockopt, BAD, 0, 0, 0, 0),
	DENIED(io_uring_setup, 0, BAD),
	DENIED(io_uring_enter, BAD, 0, 0, 0, 0, 0),
	DENIED(io_uring_register, BAD, 0, 0, 0),
	DENIED(io_setup, 0, BAD),
	DENIED(mount, BAD, BAD, BAD, 0, 0),
	DENIED(umount2, BAD, 0),
	DENIED(move_mount, BAD, BAD, BAD, BAD, 0),
	DENIED(fsopen, BAD, 0),
	DENIED(open_tree, BAD, BAD, 0),
	DENIED(pivot_root, BAD, BAD),
	DENIED(chroot, BAD),
	DENIED(unshare, 0),
	DENIED(setns, BAD, 0),
	DENIED(bpf, BAD, BAD, 0),
	DENIED(perf_event_open, BAD, BAD, BAD, BAD, BAD),
	DENIED(userfaultfd, BAD),
	DENIED(memfd_create, BAD, 0),
	DENIED(memfd_secret, BAD),
	DENIED(keyctl, BAD, 0, 0, 0, 0),
	DENIED(add_key, BAD, BAD, BAD, 0, 0),
	DENIED(request_key, BAD, BAD, BAD, 0),
	DENIED(seccomp, BAD, 0, 0),
	DENIED(prctl, BAD, 0, 0, 0, 0),
	DENIED(personality, 0xffffffff),
	DENIED(modify_ldt, BAD, 0, 0),
	DENIED(init_module, BAD, 0, BAD),
	DENIED(finit_module, BAD, BAD, 0),
	DENIED(kexec_load, BAD, BAD, BAD, BAD),
	DENIED(reboot, 0, 0, 0, 0),
	DENIED(swapon, BAD, 0),
	DENIED(iopl, 0),
	DENIED(ioperm, BAD, 0, 0),
	DENIED(quotactl, BAD, 0, 0, 0),
	DENIED(acct, BAD),
	DENIED(syslog, BAD, 0, 0),
	DENIED(name_to_handle_at, BAD, BAD, BAD, BAD, 0),
	DENIED(open_by_handle_at, BAD, BAD, 0),
	DENIED(fanotify_init, BAD, 0),
	DENIED(inotify_init1, BAD),
	DENIED(lookup_dcookie, 0, 0, 0),
	DENIED(flock, BAD, 0),
	DENIED(fadvise64, BAD, 0, 0, 0),
	DENIED(fallocate, BAD, 0, 0, 0),
	DENIED(truncate, BAD, 0),
	DENIED(statfs, BAD, BAD),
	DENIED(fstatfs, BAD, BAD),
	DENIED(chdir, BAD),
	DENIED(fchdir, BAD),
	DENIED(renameat2, BAD, BAD, BAD, BAD, 0),
	DENIED(linkat, BAD, BAD, BAD, BAD, 0),
	DENIED(symlinkat, BAD, BAD, BAD),
	DENIED(mknodat, BAD, BAD, 0, 0),
	DENIED(fchmod, BAD, 0),
	DENIED(fchmodat, BAD, BAD, 0),
	DENIED(fchown, BAD, BAD, BAD),
	DENIED(utimensat, BAD, BAD, BAD, 0),
	DENIED(fsetxattr, BAD, BAD, BAD, 0, 0),
	DENIED(syncfs, BAD),
	DENIED(copy_file_range, BAD, 0, BAD, 0, 0, 0),
	DENIED(sync_file_range, BAD, 0, 0, 0),
	DENIED(readahead, BAD, 0, 0),
	DENIED(splice, BAD, 0, BAD, 0, 0, 0),
	DENIED(vmsplice, BAD, 0, 0, 0),
	DENIED(tee, BAD, BAD, 0, 0),
	DENIED(sendfile, BAD, BAD, 0, 0),
	DENIED(shmget, 0, 0, 0),
	DENIED(shmat, BAD, 0, 0),
	DENIED(semget, 0, 0, 0),
	DENIED(msgget, 0, 0),
	DENIED(mq_open, BAD, 0, 0, 0),
	DENIED(mlock, BAD, 0),
	DENIED(mlockall, 0),
	DENIED(mbind, BAD, 0, 0, 0, 0, 0),
	DENIED(set_mempolicy, 0, 0, 0),
	DENIED(remap_file_pages, BAD, 0, 0, 0, 0),
	DENIED(pkey_mprotect, BAD, 0, 0, BAD),
	DENIED(setpriority, BAD, 0, 0),
	DENIED(sched_setaffinity, BAD, 0, BAD),
	DENIED(sched_setattr, BAD, BAD, 0),
	DENIED(ioprio_set, BAD, 0, 0),
	DENIED(setrlimit, BAD, BAD),
	DENIED(prlimit64, BAD, BAD, BAD, 0),
	DENIED(setuid, BAD),
	DENIED(setresgid, BAD, BAD, BAD),
	DENIED(capset, BAD, BAD),
	DENIED(arch_prctl, BAD, 0),
	DENIED(timer_create, BAD, 0, BAD),
	DENIED(setitimer, BAD, BAD, 0),
	DENIED(timerfd_create, BAD, 0),
	DENIED(eventfd2, 0, BAD),
	DENIED(signalfd4, BAD, BAD, 0, BAD),
	DENIED(epoll_create1, BAD),
	DENIED(landlock_create_ruleset, BAD, 0, BAD),
	DENIED(futex_waitv, BAD, 0, 0, 0, 0),
	/* would move, or wake and change, waiters of a word shared with the target */
	DENIED(futex, BAD, FUTEX_REQUEUE, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_REQUEUE | FUTEX_PRIVATE_FLAG, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_CMP_REQUEUE, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_WAKE_OP, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_LOCK_PI, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_UNLOCK_PI, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_TRYLOCK_PI, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_WAIT_REQUEUE_PI, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_CMP_REQUEUE_PI, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_LOCK_PI2, 0, 0, BAD, 0),
	DENIED(futex, BAD, FUTEX_FD, 0, 0, BAD, 0),
	DENIED(futex, BAD, (1 << 30) | FUTEX_WAIT, 0, 0, BAD, 0),
	DENIED(vhangup),
	DENIED(ioctl, BAD, 0x5412 /* TIOCSTI */, 0),
	DENIED(ioctl, BAD, 0x541c /* TIOCLINUX */, 0),
	DENIED(fcntl, BAD, F_SETOWN, 0),
	DENIED(fcntl, BAD, F_SETLEASE, 0),
	DENIED(fcntl, BAD, F_ADD_SEALS, 0),
	DENIED(fcntl, BAD, F_SETFL, 0),
	DENIED(mmap, 0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, BAD, 0),
	DENIED(mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, BAD, 0),
	DENIED(mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, BAD, 0),
	DENIED(mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_GROWSDOWN, BAD, 0),
	DENIED(mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, BAD, 0),
	DENIED(mmap, 0, 4096, PROT_READ, MAP_SHARED_VALIDATE, BAD, 0),
	DENIED(mmap, 0, 4096, PROT_READ, MAP_DROPPABLE | MAP_ANONYMOUS, BAD, 0),
	DENIED(fcntl, BAD, F_SETPIPE_SZ, 0),
	DENIED(mprotect, 0, 0, PROT_EXEC),
	{"a call of the next kernel", 1000, {0}, EPERM},
	/* what must work */
	{"read", SYS_read, {BAD, 0, 0}, 0},
	{"recvmsg on the job socket", SYS_recvmsg, {JOB_SOCKET, BAD, 0}, 0},
	{"mmap of a file", SYS_mmap, {0, 4096, PROT_READ, MAP_SHARED, BAD, 0}, 0},
	{"mmap of a thread's stack",
	 SYS_mmap,
	 {0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, BAD, 0},
	 0},
	{"fcntl F_GETFD", SYS_fcntl, {BAD, F_GETFD, 0}, 0},
	{"futex FUTEX_WAIT", SYS_futex, {BAD, FUTEX_WAIT, 0, 0}, 0},
	{"futex FUTEX_WAKE_PRIVATE", SYS_futex, {BAD, FUTEX_WAKE_PRIVATE, 1}, 0},
	{"futex FUTEX_WAIT_BITSET of the wall clock",
	 SYS_futex,
	 {BAD, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, 0, 0, -1},
	 0},
	{"futex FUTEX_WAKE_BITSET", SYS_futex, {BAD, FUTEX_WAKE_BITSET, 1, 0, 0, -1}, 0},
};

/* Only where the sandbox has a scratch folder. */
static const struct attempt with_scratch[] = {
	{"mkdirat", SYS_mkdirat, {BAD, BAD, 0}, 0},
	{"unlinkat", SYS_unlinkat, {BAD, BAD, 0}, 0},
	{"renameat", SYS_renameat, {BAD, BAD, BAD, BAD}, 0},
	{"ftruncate", SYS_ftruncate, {BAD, 0}, 0},
	{"statfs of the folder", SYS_statfs, {(long)folder, BAD}, 0},
	{"fcntl F_GETLK", SYS_fcntl, {BAD, F_GETLK, BAD}, 0},
	/* done without being done: not EBADF */
	{"fsync", SYS_fsync, {BAD}, NOTHING},
	{"fdatasync", SYS_fdatasync, {BAD}, NOTHING},
	{"fcntl F_SETLK", SYS_fcntl, {BAD, F_SETLK, BAD}, NOTHING},
	{"fcntl F_SETLKW", SYS_fcntl, {BAD, F_SETLKW, BAD}, NOTHING},
};

static void *run(void *argument)
{
	*(int *)argument = 1;
	return NULL;
}

static void *wait_for_ever(void *argument)
{
	for (;;)
		pause();
	return argument;
}

/* The thread a script with processes > 1 may start; glibc tries clone3 first and falls back. */
static int thread_works(void)
{
	pthread_t thread;
	int ran = 0;

	if (pthread_create(&thread, NULL, run, &ran) != 0 || pthread_join(thread, NULL) != 0)
		return 0;
	return ran;
}

static bool is_as_expected(int error, int expected)
{
	if (expected == NOTHING)
		return error == 0;
	return expected ? error == expected : error != EPERM && error != ENOSYS;
}

/* denied: whatever is expected, it must be. */
static int try_each(const struct attempt *list, size_t count, bool denied)
{
	int failures = 0;

	for (size_t i = 0; i < count; i++) {
		const struct attempt *a = &list[i];
		const long *x = a->arguments;
		int error, expected = denied ? EPERM : a->expected;
		long result;

		errno = 0;
		result = syscall(a->number, x[0], x[1], x[2], x[3], x[4], x[5]);
		error = result < 0 ? errno : 0;
		if (a->number == SYS_fork && result == 0)
			_exit(1); /* the child of a fork that got through */
		if (!is_as_expected(error, expected)) {
			printf("%s: %s, not %s\n", a->name, strerror(error), strerror(expected));
			failures++;
		}
	}
	return failures;
}

static int try_all(bool scratch)
{
	int failures = try_each(attempts, OSD_ARRAY_SIZE(attempts), false);

	failures += try_each(with_scratch, OSD_ARRAY_SIZE(with_scratch), !scratch);
	if (!thread_works()) {
		printf("a thread cannot be started\n");
		failures++;
	}
	return failures;
}

static void go_behind_the_filter(bool scratch, unsigned rules)
{
	struct sock_fprog program;
	struct osd_step step;

	if (osd_seccomp_build(JOB_SOCKET, scratch ? folder : NULL, rules, &program, &step) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    osd_seccomp_install(&program, &step) < 0) {
		printf("cannot %s: %s\n", step.what, strerror(errno));
		exit(1);
	}
}

static bool all_is_well(bool scratch)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		go_behind_the_filter(scratch, 0);
		exit(try_all(scratch) ? 1 : 0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static void call_by_the_32_bit_table(void)
{
	long result = 20; /* getpid */

	__asm__ volatile("int $0x80" : "+a"(result) : : "memory");
}

static void call_by_the_x32_table(void)
{
	syscall(0x40000000 + SYS_getpid);
}

/* Numbers of other tables mean other calls: the process ends, with all its threads. */
static bool is_ended_by(void (*call)(void))
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		pthread_t thread;

		pthread_create(&thread, NULL, wait_for_ever, NULL);
		go_behind_the_filter(true, 0);
		call();
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

/* With an engine that compiles: memory becomes executable only by mprotect, and is not writable then. */
static bool code_is_not_writable(void)
{
	const size_t size = 4096;
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		go_behind_the_filter(true, OSD_SECCOMP_EXECUTABLE);
		_exit(page == MAP_FAILED ||
		      mprotect(page, size, PROT_READ | PROT_WRITE | PROT_EXEC) == 0 ||
		      mprotect(page, size, PROT_READ | PROT_EXEC) < 0 ||
		      mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
			      MAP_FAILED);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

/* With an engine that narrows the filter: once that is done, memory does not become executable, code that is
 * there runs on, and no filter is added.  Before it, no filter with a listener or for other threads. */
static bool narrowing_is_final(void)
{
	const size_t size = 4096;
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct osd_step step;

		go_behind_the_filter(true, OSD_SECCOMP_EXECUTABLE | OSD_SECCOMP_NARROW);
		_exit(page == MAP_FAILED ||
		      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, BAD) == 0 ||
		      errno != EPERM ||
		      syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL) == 0 || errno != EPERM ||
		      mprotect(page, size, PROT_READ | PROT_EXEC) < 0 || osd_seccomp_narrow(&step) < 0 ||
		      osd_seccomp_narrow(&step) != -EPERM ||
		      mprotect(page, size, PROT_READ | PROT_WRITE) < 0 ||
		      mprotect(page, size, PROT_READ | PROT_EXEC) == 0 || errno != EPERM ||
		      getppid() == 0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

int main(void)
{
	if (!narrowing_is_final()) {
		printf("an engine that narrows the filter gets more or less than that\n");
		return 1;
	}
	if (!code_is_not_writable()) {
		printf("an engine that compiles gets more or less than executable code\n");
		return 1;
	}
	if (!is_ended_by(call_by_the_32_bit_table) || !is_ended_by(call_by_the_x32_table)) {
		printf("a call by another table came through\n");
		return 1;
	}
	return all_is_well(true) && all_is_well(false) ? 0 : 1;
}
