/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sandboxd.c -- iosd-sandboxd: isolation level, start, poll loop.  The daemon makes sandboxes for one
 * target at a time.  It has the privileges for that, which the target lacks.  It has no Python and no
 * threads.  Its parts: daemon.h. */
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "daemon.h"
#include "options.h"
#include "privileges.h"
#include "uid_range.h"

#define MAX_DEFAULT     320u /* enough for a target with the largest number of slots */
#define ROTATE_DEFAULT  2000u
#define CPU_SHARE_DEFAULT 5u
#define OPEN_FILES_WANT 16384

/* ---- level ----------------------------------------------------------------------------------- */

/* Root of the zygote's user namespace, then one id for each slot. */
static struct osd_uid_range uids_of(const struct osd_daemon *daemon)
{
	return (struct osd_uid_range){daemon->uid_base, daemon->uid_base + daemon->max};
}

static void print_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		if ((unsigned char)*text >= ' ')
			putchar(*text);
	}
	putchar('"');
}

static void print_uids(const struct osd_daemon *daemon)
{
	const struct osd_uid_range range = uids_of(daemon);
	char why[256];

	osd_uid_range_is_free(&range, why, sizeof(why));
	printf("\"uids\": {\"first\": %u, \"last\": %u, \"taken\": ", range.first, range.last);
	print_string(why);
	printf("}");
}

static int print_level(struct osd_daemon *daemon, const struct osd_layer_states *states)
{
	char missing[512];
	const struct osd_level *level = osd_level_choose("best", states, missing, sizeof(missing));
	const char *separator = "";

	printf("{\"schema\": \"iosd.isolation/1\", \"level\": \"%s\", \"missing\": [",
	       level ? level->name : "none");
	for (enum osd_layer_index i = 0; i < OSD_LAYER_COUNT; i++) {
		if (!states->error[i])
			continue;
		printf("%s\"%s: %s\"", separator, osd_layer_texts[i].name,
		       strerror(states->error[i]));
		separator = ", ";
	}
	printf("], ");
	print_uids(daemon);
	printf(", \"layers\": [");
	for (enum osd_layer_index i = 0; i < OSD_LAYER_COUNT; i++)
		printf("%s\n {\"name\": \"%s\", \"available\": %s, \"what\": \"%s\"}", i ? "," : "",
		       osd_layer_texts[i].name, states->error[i] ? "false" : "true",
		       osd_layer_texts[i].what);
	printf("]}\n");
	osd_cgroups_close(&daemon->cgroups);
	return level ? 0 : 1;
}

/* Root in a container often lacks this privilege. */
static bool may_raise_limits(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) == 0 &&
	       data[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE);
}

/* A process with the id of a sandbox can kill it, and, without a user namespace, the other sandboxes of
 * its zygote. */
static bool check_uids(const struct osd_daemon *daemon)
{
	const struct osd_uid_range range = uids_of(daemon);
	char why[256];

	if (!(daemon->layers & OSD_LAYER_UID) ||
	    osd_uid_range_is_free(&range, why, sizeof(why)))
		return true;
	osd_error("the ids of sandboxes, %u to %u, are not free: %s; choose others with --uid-base "
		  "(key uid_base of iosd.toml)",
		  range.first, range.last, why);
	return false;
}

static bool choose_level(struct osd_daemon *daemon, const struct osd_options *options,
			 const struct osd_layer_states *states)
{
	daemon->level = osd_level_choose(options->isolation, states, daemon->missing,
					 sizeof(daemon->missing));
	if (!daemon->level) {
		osd_error("isolation level %s is not available here: %s; --isolation best takes "
			  "what is",
			  options->isolation, daemon->missing);
		return false;
	}
	daemon->layers = daemon->level->layers;
	if (!states->error[OSD_LAYER_INDEX_UID])
		daemon->layers |= OSD_LAYER_UID; /* never as root, whatever the level */
	if (may_raise_limits())
		daemon->layers |= OSD_LIMITS_RAISABLE;
	if (!(daemon->layers & OSD_LAYERS_CGROUP))
		osd_cgroups_close(&daemon->cgroups);
	return true;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Only the target's user can connect: connections of other users would fill the backlog and delay the
 * target. */
static bool give_socket(const struct osd_daemon *daemon)
{
	if (chmod(daemon->socket_path, 0600) < 0)
		return false;
	return daemon->peer == geteuid() ||
	       lchown(daemon->socket_path, daemon->peer, (gid_t)-1) == 0;
}

static bool listen_on(struct osd_daemon *daemon)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(daemon->socket_path) >= sizeof(address.sun_path)) {
		osd_error("socket path is longer than %zu bytes", sizeof(address.sun_path) - 1);
		return false;
	}
	memcpy(address.sun_path, daemon->socket_path, strlen(daemon->socket_path) + 1);
	daemon->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlink(daemon->socket_path);
	if (daemon->listen_fd < 0 ||
	    bind(daemon->listen_fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    !give_socket(daemon) || listen(daemon->listen_fd, 4) < 0) {
		osd_error("cannot listen on '%s': %s", daemon->socket_path, strerror(errno));
		return false;
	}
	return true;
}

static void raise_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur =
			limit.rlim_max < OPEN_FILES_WANT ? limit.rlim_max : OPEN_FILES_WANT;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* From the start: the pools may be changed, and the supervisor report it, before the loop runs. */
static void keep_hangups(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

static int signal_descriptor(void)
{
	sigset_t signals;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Report readiness: a line on standard output, and systemd's protocol if the environment asks for it. */
static void announce(const struct osd_daemon *daemon)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	printf("ready %s\n", daemon->level->name);
	fflush(stdout);
	if (!path || strlen(path) >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, "READY=1", 7, MSG_NOSIGNAL, (struct sockaddr *)&address,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
	close(fd);
}

/* ---- loop ------------------------------------------------------------------------------------ */

enum ready_index { READY_SIGNAL, READY_LISTEN, READY_TARGET, READY_ZYGOTES };

#define READY_MAX (READY_ZYGOTES + OSD_POOLS_MAX * OSD_ZYGOTES)

/* Only existing zygotes: poll() refuses more entries than the process may have descriptors. places[i]:
 * the index of the zygote of ready[i]. */
static size_t await_zygotes(const struct osd_daemon *daemon, struct pollfd *ready, unsigned *places)
{
	size_t count = 0;

	for (unsigned i = 0; i < OSD_POOLS_MAX * OSD_ZYGOTES; i++) {
		const struct osd_zygote *zygote =
			&daemon->pools[i / OSD_ZYGOTES].zygotes[i % OSD_ZYGOTES];

		if (!zygote->pid)
			continue;
		ready[count] = (struct pollfd){.fd = zygote->socket, .events = POLLIN};
		places[count++] = i;
	}
	return count;
}

static void heed_signal(struct osd_daemon *daemon, int signal_fd)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo != SIGHUP)
		daemon->stop = true;
	else if (!daemon->pools_file)
		osd_warning("SIGHUP: there is nothing to read again (option --pools-file)");
	else if (osd_pools_load(daemon))
		osd_zygotes_start_missing(daemon);
}

/* Zygotes first: an exit frees the slot that the target's next request needs. */
static void serve_ready(struct osd_daemon *daemon, int signal_fd)
{
	bool free_for_target = daemon->target_fd < 0 && osd_slots_all_free(daemon);
	struct pollfd ready[READY_MAX] = {
		[READY_SIGNAL] = {.fd = signal_fd, .events = POLLIN},
		[READY_LISTEN] = {.fd = free_for_target ? daemon->listen_fd : -1, .events = POLLIN},
		[READY_TARGET] = {.fd = daemon->target_fd, .events = POLLIN},
	};
	int retry_msec = osd_zygotes_retry(daemon), share_msec = osd_share_wait(daemon);
	/* the earlier one; -1 as unsigned is later than any time */
	int wait_msec = (int)OSD_MIN((unsigned)retry_msec, (unsigned)share_msec);
	unsigned places[OSD_POOLS_MAX * OSD_ZYGOTES];
	size_t zygotes = await_zygotes(daemon, ready + READY_ZYGOTES, places);

	if (poll(ready, READY_ZYGOTES + zygotes, wait_msec) < 0)
		return;
	for (size_t i = 0; i < zygotes; i++) {
		if (ready[READY_ZYGOTES + i].revents)
			osd_zygote_serve(daemon, &daemon->pools[places[i] / OSD_ZYGOTES],
					 places[i] % OSD_ZYGOTES);
	}
	if (ready[READY_TARGET].revents && daemon->target_fd == ready[READY_TARGET].fd)
		osd_target_serve(daemon);
	if (ready[READY_LISTEN].revents && daemon->target_fd < 0)
		osd_target_accept(daemon);
	if (ready[READY_SIGNAL].revents)
		heed_signal(daemon, signal_fd);
}

static void serve_once(struct osd_daemon *daemon, int signal_fd)
{
	if (daemon->target_fd < 0)
		osd_target_drop(daemon); /* what was made for the last one, which did not read */
	osd_pools_leave(daemon);
	serve_ready(daemon, signal_fd);
}

/* Before the target may connect, the zygote of `default` is ready: an unavailable level is detected
 * here.  A defect of a package set does not keep the other pools from being served. */
static bool start_pools(struct osd_daemon *daemon)
{
	struct osd_zygotes *first = &daemon->pools[0];

	osd_share_init(daemon);
	osd_zygote_start(daemon, first);
	while (first->zygotes[0].pid && !first->zygotes[0].ready)
		osd_zygote_serve(daemon, first, 0);
	if (!first->zygotes[0].ready && !first->packages)
		return false;
	osd_zygotes_start_missing(daemon);
	return true;
}

static bool given_up(int error)
{
	if (error)
		osd_error("cannot give up privileges: %s", strerror(-error));
	return !error;
}

/* Privileges are given up before anything from outside is read, and after the socket's owner has
 * changed, which needs one more capability. */
static bool start_without_privileges(struct osd_daemon *daemon)
{
	uint64_t kept = osd_daemon_capabilities(daemon->layers);

	return given_up(osd_privileges_keep(kept | OSD_CAPABILITY(CHOWN), kept)) &&
	       given_up(osd_daemon_filter()) && start_pools(daemon) && listen_on(daemon) &&
	       given_up(osd_privileges_keep(kept, kept));
}

static int run(struct osd_daemon *daemon)
{
	int signal_fd = signal_descriptor();
	int result = 1;

	if (signal_fd >= 0 && osd_janitor_start(daemon) && osd_slots_init(daemon) &&
	    start_without_privileges(daemon)) {
		announce(daemon);
		while (!daemon->stop)
			serve_once(daemon, signal_fd);
		unlink(daemon->socket_path);
		result = 0;
	}
	osd_target_drop(daemon);
	osd_zygotes_stop(daemon);
	osd_janitor_finish(daemon);
	osd_cgroups_close(&daemon->cgroups);
	osd_pools_release(daemon);
	free(daemon->sandboxes);
	return result;
}

int main(int argc, char **argv)
{
	struct osd_daemon daemon = {.max = MAX_DEFAULT,
				    .peer = geteuid(),
				    .uid_base = OSD_UID_BASE,
				    .rotate_after = ROTATE_DEFAULT,
				    .cpu_share = CPU_SHARE_DEFAULT,
				    .listen_fd = -1,
				    .target_fd = -1};
	struct osd_options options = {.isolation = "full", .pool.name = "default"};
	struct osd_layer_states states = {{0}};

	keep_hangups();
	osd_log_init(STDERR_FILENO, "iosd-sandboxd", OSD_LOG_INFO);
	for (unsigned i = 0; i < OSD_POOLS_MAX * OSD_ZYGOTES; i++)
		daemon.pools[i / OSD_ZYGOTES].zygotes[i % OSD_ZYGOTES].socket = -1;
	osd_zygotes_add(&daemon, &options.pool); /* the first */
	if (!osd_options_parse(&daemon, &options, argc, argv))
		return 2;
	if (daemon.pools_file && !osd_pools_load(&daemon))
		return 1;
	raise_open_files();
	osd_layers_probe(daemon.uid_base, &states);
	osd_cgroups_open(&daemon.cgroups, daemon.cgroup_parent,
			 options.print_level ? 1 : daemon.max, &states);
	if (options.print_level)
		return print_level(&daemon, &states);
	if (!choose_level(&daemon, &options, &states) || !check_uids(&daemon)) {
		osd_cgroups_close(&daemon.cgroups);
		return 1;
	}
	return run(&daemon);
}
