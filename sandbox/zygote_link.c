/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zygote_link.c -- starts the pools' zygotes inside their namespaces, follows what they say, replaces
 * them: every rotate_after forks (children share a zygote's address layout and hash seed) and when
 * one dies.  A pool whose zygotes do not come up is tried again, less and less often; it costs the
 * others nothing. */
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

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "daemon.h"
#include "fd_message.h"

#define SOCKET_BYTES      (1 << 20) /* every message about every slot fits */
#define KEEP_FROM         16 /* descriptors are parked above before 3 to 5 are laid out */
#define RETRY_FIRST_USEC  UINT64_C(250000)
#define RETRY_MOST_USEC   UINT64_C(30000000)
#define STEADY_USEC       UINT64_C(10000000) /* who has lived so long is replaced at once */

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

/* In the new mount namespace, for only what is opened there can be bound there; and before the
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
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int control = fcntl(launch->control, F_DUPFD_CLOEXEC, KEEP_FROM);
	int package = fcntl(launch->package, F_DUPFD_CLOEXEC, KEEP_FROM);
	unsigned used = ZYGOTE_FD_PACKAGE + 1;

	*ret_program = fcntl(launch->program, F_DUPFD_CLOEXEC, KEEP_FROM);
	if (set >= 0)
		set = fcntl(set, F_DUPFD_CLOEXEC, KEEP_FROM);
	if (dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(control, ZYGOTE_FD_CONTROL) < 0 ||
	    dup2(package, ZYGOTE_FD_PACKAGE) < 0)
		_exit(126);
	if (set >= 0) {
		if (dup2(set, ZYGOTE_FD_SET) < 0)
			_exit(126);
		used = ZYGOTE_FD_SET + 1;
	}
	syscall(SYS_close_range, used, ~0u, CLOSE_RANGE_CLOEXEC);
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
	if (read(launch->go, &go, 1) != 1)
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

static int start(const struct osd_daemon *daemon, const struct osd_zygotes *pool,
		 struct osd_zygote *zygote, const char **ret_what)
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
		launch(&(struct launch){program, package, theirs, go_read, daemon, pool});
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

/* Whether jobs of this pool can have sandboxes now. */
static bool serves(struct osd_zygotes *pool)
{
	struct osd_zygote *current = osd_zygote_current(pool);

	return current && current->ready;
}

/* What has changed is told; while an older zygote serves nothing has. */
static void tell(struct osd_daemon *daemon, struct osd_zygotes *pool, enum osd_pool_state state)
{
	pool->state = serves(pool) ? OSD_POOL_SERVING : state;
	if (pool->state == OSD_POOL_SERVING)
		pool->why[0] = '\0';
	osd_target_tell_pool(daemon, pool);
}

static void fail(struct osd_daemon *daemon, struct osd_zygotes *pool)
{
	unsigned doublings = OSD_MIN(pool->failed, 10u);
	uint64_t delay = OSD_MIN(RETRY_FIRST_USEC << doublings, RETRY_MOST_USEC);

	pool->failed++;
	pool->retry_usec = osd_monotonic_usec() + delay;
	osd_error("pool %s: no zygote: %s; again in %.1f s", pool->name, pool->why,
		  (double)delay / 1e6);
	tell(daemon, pool, OSD_POOL_FAILED);
}

static void start_at(struct osd_daemon *daemon, struct osd_zygotes *pool,
		     struct osd_zygote *zygote)
{
	const char *what;
	int error;

	*zygote = (struct osd_zygote){.socket = -1, .born_usec = osd_monotonic_usec()};
	if (pool->packages && !osd_package_set_check(pool->packages, pool->why)) {
		fail(daemon, pool);
		return;
	}
	error = start(daemon, pool, zygote, &what);
	if (!error)
		return;
	snprintf(pool->why, sizeof(pool->why), "cannot %s: %s", what, strerror(-error));
	bury(zygote);
	fail(daemon, pool);
}

void osd_zygote_start(struct osd_daemon *daemon, struct osd_zygotes *pool)
{
	pool->retry_usec = 0;
	for (unsigned i = 0; i < OSD_ZYGOTES; i++) {
		if (!pool->zygotes[i].pid) {
			start_at(daemon, pool, &pool->zygotes[i]);
			return;
		}
	}
	/* Old ones still drain.  As long as one serves the next fork asks again. */
	pool->retry_usec = osd_monotonic_usec() + RETRY_FIRST_USEC;
}

struct osd_zygote *osd_zygote_current(struct osd_zygotes *pool)
{
	struct osd_zygote *starting = NULL;

	for (unsigned i = 0; i < OSD_ZYGOTES; i++) {
		struct osd_zygote *zygote = &pool->zygotes[i];

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

/* It gets no more work. */
static void retire(struct osd_zygote *zygote)
{
	const struct zygote_message message = {.type = ZYGOTE_RETIRE};

	zygote->retiring = true;
	osd_zygote_send(zygote, &message, NULL, 0);
}

/* A new zygote is warm: it serves from now on. */
static void take_over(struct osd_daemon *daemon, struct osd_zygotes *pool,
		      struct osd_zygote *zygote)
{
	if (zygote->retiring)
		return; /* it was not wanted any more before it was warm */
	zygote->ready = true;
	for (unsigned i = 0; i < OSD_ZYGOTES; i++) {
		struct osd_zygote *older = &pool->zygotes[i];

		if (older != zygote && older->pid && older->ready && !older->retiring)
			retire(older);
	}
	if (pool->failed)
		osd_info("pool %s serves again", pool->name);
	tell(daemon, pool, OSD_POOL_SERVING);
	if (!pool->rotate)
		return;
	pool->rotate = false;
	osd_target_send(daemon, OSD_SANDBOXD_ROTATED, 0, pool->name, strlen(pool->name), NULL, 0);
}

static bool has_successor(const struct osd_zygotes *pool)
{
	for (unsigned i = 0; i < OSD_ZYGOTES; i++) {
		const struct osd_zygote *zygote = &pool->zygotes[i];

		if (zygote->pid && !zygote->ready && !zygote->retiring)
			return true;
	}
	return false;
}

void osd_zygote_rotate(struct osd_daemon *daemon, struct osd_zygotes *pool)
{
	pool->rotate = true;
	if (!has_successor(pool) && !pool->retry_usec)
		osd_zygote_start(daemon, pool);
}

void osd_zygote_count_fork(struct osd_daemon *daemon, struct osd_zygotes *pool)
{
	struct osd_zygote *current = osd_zygote_current(pool);

	if (!current || ++current->forks < daemon->rotate_after || !current->ready ||
	    osd_monotonic_usec() < pool->retry_usec || has_successor(pool))
		return;
	osd_zygote_start(daemon, pool);
}

static void gone(struct osd_daemon *daemon, struct osd_zygotes *pool, unsigned index)
{
	struct osd_zygote *zygote = &pool->zygotes[index];
	bool expected = zygote->retiring, was_ready = zygote->ready;
	bool steady = osd_monotonic_usec() - zygote->born_usec >= STEADY_USEC;

	bury(zygote); /* returns when every sandbox of its namespace is dead, too */
	osd_slot_zygote_gone(daemon, (unsigned)(pool - daemon->pools), index);
	if (expected)
		osd_pool_leave(daemon, pool);
	if (expected || daemon->stop)
		return;
	if (was_ready) {
		snprintf(pool->why, sizeof(pool->why), "its zygote died");
		if (steady)
			pool->failed = 0;
	} else if (!pool->why[0]) {
		snprintf(pool->why, sizeof(pool->why), "it ended without a word");
	}
	if (was_ready && pool->failed == 0) {
		osd_warning("pool %s: a zygote died; starting another", pool->name);
		pool->failed = 1;
		tell(daemon, pool, OSD_POOL_STARTING);
		osd_zygote_start(daemon, pool);
	} else {
		fail(daemon, pool);
	}
}

void osd_zygotes_retire(struct osd_daemon *daemon, struct osd_zygotes *pool)
{
	pool->retry_usec = 0;
	for (unsigned i = 0; i < OSD_ZYGOTES; i++) {
		struct osd_zygote *zygote = &pool->zygotes[i];

		if (!zygote->pid || zygote->retiring)
			continue;
		if (zygote->ready) {
			retire(zygote);
			continue;
		}
		bury(zygote);
		osd_slot_zygote_gone(daemon, (unsigned)(pool - daemon->pools), i);
	}
}

static void hear_failure(struct osd_daemon *daemon, struct osd_zygotes *pool,
			 struct zygote_message *message)
{
	message->text[sizeof(message->text) - 1] = '\0';
	if (message->serial)
		osd_slot_failed(daemon, message);
	else /* its end follows */
		memcpy(pool->why, message->text, sizeof(pool->why));
}

void osd_zygote_serve(struct osd_daemon *daemon, struct osd_zygotes *pool, unsigned index)
{
	struct osd_zygote *zygote = &pool->zygotes[index];
	struct zygote_message message = {0};
	size_t fd_count = 0;
	int fd = -1;
	ssize_t length =
		osd_fd_receive(zygote->socket, &message, sizeof(message), &fd, 1, &fd_count);

	if (length == -EMFILE && message.type == ZYGOTE_SPAWNED) {
		osd_slot_spawned(daemon, &message, -1);
		return;
	}
	if (length != sizeof(message)) {
		gone(daemon, pool, index);
		return;
	}
	switch (message.type) {
	case ZYGOTE_READY:
		zygote->set_bytes = message.set_bytes;
		take_over(daemon, pool, zygote);
		break;
	case ZYGOTE_SPAWNED:
		osd_slot_spawned(daemon, &message, fd);
		return; /* it owns the descriptor now */
	case ZYGOTE_EXITED:
		osd_slot_exited(daemon, &message);
		break;
	case ZYGOTE_RESIZED:
		message.text[sizeof(message.text) - 1] = '\0';
		osd_slot_resized(daemon, &message);
		break;
	case ZYGOTE_FAILED:
		hear_failure(daemon, pool, &message);
		break;
	}
	osd_fds_close(&fd, fd_count);
}

/* ---- all pools ------------------------------------------------------------------------------- */

int osd_zygotes_retry(struct osd_daemon *daemon)
{
	uint64_t now = osd_monotonic_usec(), next = OSD_NEVER;

	for (unsigned i = 0; i < OSD_POOLS_MAX; i++) {
		struct osd_zygotes *pool = &daemon->pools[i];

		if (!pool->retry_usec)
			continue;
		if (pool->retry_usec <= now && osd_zygote_current(pool) &&
		    (!pool->rotate || has_successor(pool)))
			pool->retry_usec = 0; /* a fork will start the successor */
		else if (pool->retry_usec <= now)
			osd_zygote_start(daemon, pool);
		if (pool->retry_usec)
			next = OSD_MIN(next, pool->retry_usec);
	}
	return next == OSD_NEVER ? -1 : (int)((OSD_MAX(next, now) - now + 999) / 1000);
}

void osd_zygotes_start_missing(struct osd_daemon *daemon)
{
	for (unsigned i = 0; i < OSD_POOLS_MAX; i++) {
		struct osd_zygotes *pool = &daemon->pools[i];

		if (pool->name && !pool->leaving && !osd_zygote_current(pool) && !pool->retry_usec)
			osd_zygote_start(daemon, pool);
	}
}

void osd_zygotes_stop(struct osd_daemon *daemon)
{
	for (unsigned i = 0; i < OSD_POOLS_MAX; i++) {
		for (unsigned j = 0; j < OSD_ZYGOTES; j++)
			bury(&daemon->pools[i].zygotes[j]);
	}
}
