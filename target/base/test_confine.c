/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_confine.c -- what a confined process can no longer do, and what it still can. */
#include "base/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"

#define DENIED(call, ...)                                                                          \
	do {                                                                                       \
		errno = 0;                                                                         \
		CHECK_EQ(syscall(SYS_##call, __VA_ARGS__), -1);                                    \
		CHECK_EQ(errno, EPERM);                                                            \
	} while (0)

/* Arguments that are harmless, and give another error than EPERM where a call is not denied. */
#define BAD ((void *)1)

static void *thread_main(void *arg)
{
	return arg;
}

static void check_denied(void)
{
	DENIED(execve, BAD, BAD, BAD);
	DENIED(execveat, -1, BAD, BAD, BAD, 0);
	DENIED(ptrace, 0x4200, 0, 0, 0);
	DENIED(process_vm_readv, 1, BAD, 1, BAD, 1, 0);
	DENIED(process_vm_writev, 1, BAD, 1, BAD, 1, 0);
	DENIED(bpf, -1, BAD, 0);
	DENIED(perf_event_open, BAD, 0, -1, -1, 0);
	DENIED(kexec_load, 0, 0, BAD, 0);
	DENIED(init_module, BAD, 0, BAD);
	DENIED(finit_module, -1, BAD, 0);
	DENIED(delete_module, BAD, 0);
	DENIED(mount, BAD, BAD, BAD, 0, BAD);
	DENIED(umount2, BAD, -1);
	DENIED(pivot_root, BAD, BAD);
	DENIED(fsopen, BAD, 0);
	DENIED(open_tree, -1, BAD, 0);
	DENIED(move_mount, -1, BAD, -1, BAD, 0);
	DENIED(keyctl, -1, 0, 0, 0, 0);
	DENIED(add_key, BAD, BAD, BAD, 0, 0);
	DENIED(request_key, BAD, BAD, BAD, 0);
	DENIED(userfaultfd, -1);
	DENIED(open_by_handle_at, -1, BAD, 0);
	DENIED(setns, -1, 0);
	DENIED(unshare, 0);
	DENIED(clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	DENIED(reboot, 0, 0, 0, 0);
	DENIED(swapon, BAD, 0);
	DENIED(pidfd_getfd, -1, 0, 0);
	CHECK(syscall(SYS_clone3, BAD, 0) == -1 && errno == ENOSYS);
	CHECK(socket(AF_PACKET, SOCK_RAW, 0) == -1 && errno == EAFNOSUPPORT);
	CHECK(socket(AF_VSOCK, SOCK_STREAM, 0) == -1 && errno == EAFNOSUPPORT);
}

static void check_allowed(void)
{
	static const int families[] = {AF_UNIX, AF_INET, AF_NETLINK};
	pthread_t thread;
	int fd;
	char name[32];

	for (unsigned i = 0; i < sizeof(families) / sizeof(*families); i++) {
		fd = socket(families[i], SOCK_DGRAM, 0);
		CHECK(fd >= 0);
		close(fd);
	}
	CHECK(!pthread_create(&thread, NULL, thread_main, NULL));
	pthread_join(thread, NULL);
	fd = open("/dev/null", O_RDONLY);
	CHECK(fd >= 0);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd); /* how read-only descriptors are made */
	close(open(name, O_RDONLY));
	CHECK(access(name, F_OK) == 0);
	close(fd);
}

int main(void)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child > 0) {
		CHECK(waitpid(child, &status, 0) == child && status == 0);
		return 0;
	}
	/* Other refusals than the filter's must not be taken for it. */
	CHECK(syscall(SYS_execve, BAD, BAD, BAD) == -1 && errno == EFAULT);
	CHECK_EQ(osd_confine(), 0);
	CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
	check_denied();
	check_allowed();
	_exit(0);
}
