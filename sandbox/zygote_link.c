/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zygote_link.c -- starts zygotes inside their namespaces, follows what they say, replaces them:
 * every rotate_after forks (children share a zygote's address layout and hash seed) and when one
 * dies. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon.h"
#include "fd_message.h"

#define SOCKET_BYTES      (1 << 20) /* every message about every slot fits */
#define FAILED_STARTS_MAX 3
#define KEEP_FROM         16 /* descriptors are parked above before 3 and 4 are laid out */

/* One linear-algebra thread would make every later fork unsafe.  Symbols are bound before the
 * forks, not by each sandbox in pages of its own. */
static const char *const zygote_environment[] = {"PATH=/nonexistent",
						 "LANG=C.UTF-8",
						 "LD_BIND_NOW=1",
						 "OPENBLAS_NUM_THREADS=1",
						 "OMP_NUM_THREADS=1",
						 "MKL_NUM_THREADS=1",
						 NULL};

struct launch {
	int program, package, control, go; /* go: read end, one byte when the id maps are written */
	const struct osd_daemon *daemon;
};

/* ---- the launcher step: between clone and exec, in the new namespaces ------------------------ */

static void become_root_inside(const struct osd_daemon *daemon)
{
	if (!(daemon->layers & OSD_LAYER_USERNS))
		return;
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		_exit(126);
}

static void lay_out_descriptors(const struct launch *launch, int *ret_program)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int control = fcntl(launch->control, F_DUPFD_CLOEXEC, KEEP_FROM);
	int package = fcntl(launch->package, F_DUPFD_CLOEXEC, KEEP_FROM);

	*ret_program = fcntl(launch->program, F_DUPFD_CLOEXEC, KEEP_FROM);
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(control, ZYGOTE_FD_CONTROL) < 0 ||
	    dup2(package, ZYGOTE_FD_PACKAGE) < 0)
		_exit(126);
	syscall(SYS_close_range, ZYGOTE_FD_PACKAGE + 1, ~0u, CLOSE_RANGE_CLOEXEC);
}

static void launch(const struct launch *launch)
{
	const struct osd_daemon *daemon = launch->daemon;
	char layers[16], slots[16], uid_base[16], go;
	const char *argv[] = {"iosd-zygote", layers, slots, uid_base, daemon->package, NULL};
	int program;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (read(launch->go, &go, 1) != 1)
		_exit(126); /* the daemon is gone */
	become_root_inside(daemon);
	lay_out_descriptors(launch, &program);
	snprintf(layers, sizeof(layers), "%x", daemon->layers);
	snprintf(slots, sizeof(slots), "%u", daemon->max);
	snprintf(uid_base, sizeof(uid_base), "%u",
		 daemon->layers & OSD_LAYER_USERNS ? 0 : daemon->uid_base);
	syscall(SYS_execveat, program, "", argv, zygote_environment, AT_EMPTY_PATH);
	_exit(127);
}

/* ---- the daemon's side of it ----------------------------------------------------------------- */

/* Ids 0..max inside are uid_base..uid_base+max outside. */
static int write_map(const struct osd_daemon *daemon, pid_t pid, const char *file)
{
	char path[64], text[64];
	int fd, length, error = 0;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	length = snprintf(text, sizeof(text), "0 %u %u\n", daemon->uid_base, daemon->max + 1);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)length) != length)
		error = -errno;
	close(fd);
	return error;
}

static int map_ids(const struct osd_daemon *daemon, pid_t pid)
{
	int error;

	if (!(daemon->layers & OSD_LAYER_USERNS))
		return 0;
	error = write_map(daemon, pid, "uid_map");
	return error ? error : write_map(daemon, pid, "gid_map");
}

static pid_t clone_into_namespaces(const struct osd_daemon *daemon)
{
	struct clone_args args = {
		.flags = osd_layers_clone_flags(daemon->layers),
		.exit_signal = SIGCHLD,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* The zygote lies beside us. */
static int open_program(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 32);
	char *slash;

	if (length < 0)
		return -1;
	path[length] = '\0';
	slash = strrchr(path, '/');
	snprintf(slash ? slash : path, 32, "/iosd-zygote");
	return open(path, O_PATH | O_CLOEXEC);
}

static int start(const struct osd_daemon *daemon, struct osd_zygote *zygote, const char **ret_what)
{
	OSD_CLEANUP_CLOSE int program = open_program();
	OSD_CLEANUP_CLOSE int package = open(daemon->package, O_PATH | O_DIRECTORY | O_CLOEXEC);
	OSD_CLEANUP_CLOSE int theirs = -1, go_read = -1;
	OSD_CLEANUP_CLOSE int go_write = -1;
	int pair[2], go[2], size = SOCKET_BYTES, error;
	pid_t pid;

	*ret_what = program < 0 ? "find iosd-zygote" : "open the package osd";
	if (program < 0 || package < 0)
		return -errno;
	*ret_what = "make a socket pair";
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	theirs = pair[1];
	zygote->socket = pair[0];
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	*ret_what = "make a pipe";
	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	go_read = go[0];
	go_write = go[1];
	*ret_what = "clone into new namespaces";
	pid = clone_into_namespaces(daemon);
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(go_write);
		launch(&(struct launch){program, package, theirs, go_read, daemon});
	}
	zygote->pid = pid;
	*ret_what = "map user ids";
	error = map_ids(daemon, pid);
	if (!error) {
		*ret_what = "put the zygote into its control group";
		error = osd_cgroups_adopt(&daemon->cgroups, pid);
	}
	if (!error && write(go_write, "", 1) != 1)
		error = -errno;
	return error;
}

static void bury(struct osd_zygote *zygote)
{
	if (zygote->pid > 0) {
		kill(zygote->pid, SIGKILL);
		while (waitpid(zygote->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	if (zygote->socket >= 0)
		close(zygote->socket);
	*zygote = (struct osd_zygote){.socket = -1};
}

bool osd_zygote_start(struct osd_daemon *daemon)
{
	struct osd_zygote *zygote = NULL;
	const char *what;
	int error;

	for (unsigned i = 0; i < OSD_ZYGOTES && !zygote; i++) {
		if (!daemon->zygotes[i].pid)
			zygote = &daemon->zygotes[i];
	}
	if (!zygote)
		return true; /* old ones still drain; the next fork asks again */
	*zygote = (struct osd_zygote){.socket = -1};
	error = start(daemon, zygote, &what);
	if (!error)
		return true;
	osd_error("cannot %s: %s", what, strerror(-error));
	bury(zygote);
	return false;
}

struct osd_zygote *osd_zygote_current(struct osd_daemon *daemon)
{
	struct osd_zygote *starting = NULL;

	for (unsigned i = 0; i < OSD_ZYGOTES; i++) {
		struct osd_zygote *zygote = &daemon->zygotes[i];

		if (!zygote->pid || zygote->retiring)
			continue;
		if (zygote->ready)
			return zygote;
		starting = zygote; /* it will find the requests in its socket */
	}
	return starting;
}

bool osd_zygote_send(struct osd_zygote *zygote, const struct zygote_message *message,
		     const int *fds, size_t fd_count)
{
	return osd_fd_send(zygote->socket, message, sizeof(*message), fds, fd_count,
			   MSG_DONTWAIT) == 0;
}

/* A new zygote is warm: those before it get no more work. */
static void take_over(struct osd_daemon *daemon, struct osd_zygote *zygote)
{
	const struct zygote_message retire = {.type = ZYGOTE_RETIRE};

	zygote->ready = true;
	daemon->failed_starts = 0;
	for (unsigned i = 0; i < OSD_ZYGOTES; i++) {
		struct osd_zygote *older = &daemon->zygotes[i];

		if (older == zygote || !older->pid || !older->ready || older->retiring)
			continue;
		older->retiring = true;
		osd_zygote_send(older, &retire, NULL, 0);
	}
}

void osd_zygote_count_fork(struct osd_daemon *daemon)
{
	struct osd_zygote *current = osd_zygote_current(daemon);

	if (!current || ++current->forks < daemon->rotate_after || !current->ready)
		return;
	for (unsigned i = 0; i < OSD_ZYGOTES; i++) {
		if (daemon->zygotes[i].pid && !daemon->zygotes[i].ready)
			return; /* its successor is on the way */
	}
	osd_zygote_start(daemon);
}

static void gone(struct osd_daemon *daemon, unsigned index)
{
	struct osd_zygote *zygote = &daemon->zygotes[index];
	bool expected = zygote->retiring, was_ready = zygote->ready;

	bury(zygote); /* returns when every sandbox of its namespace is dead, too */
	osd_slot_zygote_gone(daemon, index);
	if (expected || daemon->stop)
		return;
	osd_warning("a zygote died; starting another");
	if (!was_ready && ++daemon->failed_starts >= FAILED_STARTS_MAX) {
		osd_error("zygotes do not start; giving up");
		daemon->stop = true;
	} else if (!osd_zygote_start(daemon)) {
		daemon->stop = true;
	}
}

void osd_zygote_serve(struct osd_daemon *daemon, unsigned index)
{
	struct osd_zygote *zygote = &daemon->zygotes[index];
	struct zygote_message message;
	size_t fd_count = 0;
	int fd = -1;
	ssize_t length =
		osd_fd_receive(zygote->socket, &message, sizeof(message), &fd, 1, &fd_count);

	if (length != sizeof(message)) {
		gone(daemon, index);
		return;
	}
	switch (message.type) {
	case ZYGOTE_READY:
		take_over(daemon, zygote);
		break;
	case ZYGOTE_SPAWNED:
		osd_slot_spawned(daemon, &message, fd);
		return; /* it owns the descriptor now */
	case ZYGOTE_EXITED:
		osd_slot_exited(daemon, &message);
		break;
	case ZYGOTE_FAILED:
		message.text[sizeof(message.text) - 1] = '\0';
		if (message.serial)
			osd_slot_failed(daemon, &message);
		else
			osd_error("zygote: %s", message.text);
		break;
	}
	osd_fds_close(&fd, fd_count);
}

void osd_zygotes_stop(struct osd_daemon *daemon)
{
	for (unsigned i = 0; i < OSD_ZYGOTES; i++)
		bury(&daemon->zygotes[i]);
}
