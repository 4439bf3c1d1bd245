/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zygote_launch.c -- starts a zygote inside its new namespaces.  The child waits until the daemon has
 * written its user id maps and put it into a control group, then executes iosd-zygote. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "daemon.h"

#define SOCKET_BYTES (1 << 20) /* every message about every slot fits */
#define KEEP_FROM    16        /* descriptors are parked from here on before 3 to 6 are laid out */

/* A thread of a linear-algebra library, or of the allocator in pyarrow, would make every later fork unsafe.
 * Symbols are bound before the forks, otherwise each sandbox would do that in its own pages. */
static const char *const zygote_environment[] = {"PATH=/nonexistent",
						 "LANG=C.UTF-8",
						 "LD_BIND_NOW=1",
						 "OPENBLAS_NUM_THREADS=1",
						 "OMP_NUM_THREADS=1",
						 "MKL_NUM_THREADS=1",
						 "JE_ARROW_MALLOC_CONF=background_thread:false",
						 NULL};

struct launch {
	int program, package, library;
	int control; /* the zygote's end; a packet of one byte comes when the id maps are written */
	const struct osd_daemon *daemon;
	const struct osd_zygotes *pool;
};

/* ---- the launcher step: between clone and exec, in the new namespaces ------------------------ */

static void become_root_inside(const struct osd_daemon *daemon)
{
	if (!(daemon->layers & OSD_LAYER_USERNS))
		return;
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		_exit(126);
}

/* Opened in the new mount namespace, because only such a descriptor can be bound there, and before the
 * change of user, while root's folders can be searched. */
static int open_set(const struct launch *launch)
{
	const char *packages = launch->pool->packages;
	int fd = -1;

	if (packages) {
		fd = open(packages, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			_exit(126);
	}
	return fd;
}

static void lay_out_descriptors(const struct launch *launch, int set, int *ret_program)
{
	int null = fcntl(open("/dev/null", O_RDWR | O_CLOEXEC), F_DUPFD_CLOEXEC, KEEP_FROM);
	int control = fcntl(launch->control, F_DUPFD_CLOEXEC, KEEP_FROM);
	int package = fcntl(launch->package, F_DUPFD_CLOEXEC, KEEP_FROM);
	int library = launch->library < 0 ? null
					  : fcntl(launch->library, F_DUPFD_CLOEXEC, KEEP_FROM);

	*ret_program = fcntl(launch->program, F_DUPFD_CLOEXEC, KEEP_FROM);
	set = set < 0 ? null : fcntl(set, F_DUPFD_CLOEXEC, KEEP_FROM);
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(control, ZYGOTE_FD_CONTROL) < 0 ||
	    dup2(package, ZYGOTE_FD_PACKAGE) < 0 || dup2(set, ZYGOTE_FD_SET) < 0 ||
	    dup2(library, ZYGOTE_FD_LIBRARY) < 0)
		_exit(126);
	syscall(SYS_close_range, ZYGOTE_FD_LIBRARY + 1, ~0u, CLOSE_RANGE_CLOEXEC);
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

static void launch(const struct launch *launch)
{
	const struct osd_daemon *daemon = launch->daemon;
	const struct osd_zygotes *pool = launch->pool;
	char layers[16], slots[16], uid_base[16], go;
	const char *argv[] = {"iosd-zygote",
			      pool->engine,
			      layers,
			      slots,
			      uid_base,
			      daemon->package,
			      pool->name,
			      or_empty(pool->packages),
			      or_empty(pool->set),
			      or_empty(pool->preload),
			      NULL};
	int program, set;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (read(launch->control, &go, 1) != 1)
		_exit(126); /* the daemon is gone */
	set = open_set(launch);
	become_root_inside(daemon);
	lay_out_descriptors(launch, set, &program);
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
	OSD_CLEANUP_CLOSE int fd = -1;
	int length;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	length = snprintf(text, sizeof(text), "0 %u %u\n", daemon->uid_base, daemon->max + 1);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 || write(fd, text, (size_t)length) != length ? -errno : 0;
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

/* The zygote's program is in the same folder as the daemon's. */
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

/* -1: the engine has none, or it cannot be opened; the zygote says what is missing. */
static int open_library(const struct osd_daemon *daemon, const struct osd_zygotes *pool)
{
	if (!daemon->wasmtime || strcmp(pool->engine, "wasm") != 0)
		return -1;
	return open(daemon->wasmtime, O_RDONLY | O_CLOEXEC);
}

int osd_zygote_launch(const struct osd_daemon *daemon, const struct osd_zygotes *pool,
		      struct osd_zygote *zygote, const char **ret_what)
{
	OSD_CLEANUP_CLOSE int program = open_program();
	OSD_CLEANUP_CLOSE int package = open(daemon->package, O_PATH | O_DIRECTORY | O_CLOEXEC);
	OSD_CLEANUP_CLOSE int library = open_library(daemon, pool);
	OSD_CLEANUP_CLOSE int theirs = -1;
	int pair[2], size = SOCKET_BYTES, error;
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
	*ret_what = "clone into new namespaces";
	pid = clone_into_namespaces(daemon);
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		close(pair[0]); /* so that the end of the daemon is the end of the socket */
		launch(&(struct launch){program, package, library, theirs, daemon, pool});
	}
	zygote->pid = pid;
	*ret_what = "map user ids";
	error = map_ids(daemon, pid);
	if (!error) {
		*ret_what = "put the zygote into its control group";
		error = osd_cgroups_adopt(&daemon->cgroups, (unsigned)(pool - daemon->pools), pid);
	}
	if (!error && write(pair[0], "", 1) != 1)
		error = -errno;
	return error;
}
