/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slots.c -- sandboxes by slot: their channels, limits, kills and ends.  States: daemon.h. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "daemon.h"
#include "base/fd_message.h"
#include "manage.h"
#include "rlimits.h"
#include "scratch.h"
#include "step.h"
#include "wire/proxy_frame.h"

static const int no_fds[TARGET_FD_COUNT] = {-1, -1, -1, -1};

bool osd_slots_init(struct osd_daemon *daemon)
{
	daemon->sandboxes = calloc(daemon->max, sizeof(*daemon->sandboxes));
	if (!daemon->sandboxes)
		return false;
	for (unsigned i = 0; i < daemon->max; i++) {
		daemon->sandboxes[i].pidfd = -1;
		memcpy(daemon->sandboxes[i].target_fds, no_fds, sizeof(no_fds));
	}
	return true;
}

bool osd_slots_all_free(const struct osd_daemon *daemon)
{
	for (unsigned i = 0; i < daemon->max; i++) {
		if (daemon->sandboxes[i].state != OSD_SLOT_FREE)
			return false;
	}
	return true;
}

/* NULL: it has ended; EXITED is being sent, or was. */
static struct osd_slot *slot_by_id(struct osd_daemon *daemon, uint64_t id)
{
	for (unsigned i = 0; i < daemon->max; i++) {
		if (daemon->sandboxes[i].state != OSD_SLOT_FREE && daemon->sandboxes[i].id == id)
			return &daemon->sandboxes[i];
	}
	return NULL;
}

/* A free slot.  NULL: the target exceeds the number that it asked for in HELLO. */
static struct osd_slot *free_slot(struct osd_daemon *daemon)
{
	struct osd_slot *found = NULL;
	unsigned used = 0;

	for (unsigned i = 0; i < daemon->max; i++) {
		if (daemon->sandboxes[i].state != OSD_SLOT_FREE)
			used++;
		else if (!found)
			found = &daemon->sandboxes[i];
	}
	return used < daemon->allowed ? found : NULL;
}

static void release(struct osd_slot *sandbox)
{
	osd_fds_close(sandbox->target_fds, TARGET_FD_COUNT);
	osd_closep(&sandbox->pidfd);
	sandbox->pid = 0;
	sandbox->job_partition = sandbox->job_object = 0;
	sandbox->kill = sandbox->resizing = false;
	sandbox->state = OSD_SLOT_FREE;
}

/* ---- log ------------------------------------------------------------------------------------- */

/* Logs a line about a sandbox: at level info if its job is known, else at debug. */
static __attribute__((format(printf, 3, 4))) void
say(const struct osd_daemon *daemon, const struct osd_slot *sandbox, const char *format, ...)
{
	const struct osd_log_about about = {sandbox->job_partition, sandbox->job_object,
					    sandbox->id, daemon->pools[sandbox->pool].name};
	enum osd_log_level level = sandbox->job_object ? OSD_LOG_INFO : OSD_LOG_DEBUG;
	va_list arguments;
	char text[128];

	if (!osd_log_wants(level))
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	osd_log_about(&about, level, "%s", text);
}

static void say_exit(const struct osd_daemon *daemon, const struct osd_slot *sandbox,
		     const struct osd_sandbox_exit *status)
{
	bool exited = WIFEXITED(status->wait_status);

	say(daemon, sandbox, "sandbox exit: %s %d%s, host pid %d", exited ? "code" : "signal",
	    exited ? WEXITSTATUS(status->wait_status) : WTERMSIG(status->wait_status),
	    status->out_of_memory ? ", out of memory" : "", (int)sandbox->pid);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void signal_sandbox(const struct osd_slot *sandbox, int number)
{
	syscall(SYS_pidfd_send_signal, sandbox->pidfd, number, NULL, 0);
}

void osd_slot_nudge(struct osd_daemon *daemon, uint64_t id)
{
	const struct osd_slot *sandbox = slot_by_id(daemon, id);

	if (sandbox && sandbox->state == OSD_SLOT_LIVE)
		signal_sandbox(sandbox, OSD_NUDGE_SIGNAL);
}

static void kill_sandbox(struct osd_slot *sandbox)
{
	if (sandbox->state == OSD_SLOT_STARTING)
		sandbox->kill = true;
	else if (sandbox->state == OSD_SLOT_LIVE)
		signal_sandbox(sandbox, SIGKILL);
}

void osd_slot_kill(struct osd_daemon *daemon, uint64_t id)
{
	struct osd_slot *sandbox = slot_by_id(daemon, id);

	if (sandbox)
		kill_sandbox(sandbox);
}

void osd_slot_kill_all(struct osd_daemon *daemon)
{
	for (unsigned i = 0; i < daemon->max; i++)
		kill_sandbox(&daemon->sandboxes[i]);
}

/* ---- channels -------------------------------------------------------------------------------- */

/* Sealed, so that the sandbox cannot cut it, which would make the target's access fault. */
static int make_shared_memory(void)
{
	const uint32_t head[] = {OSD_SHM_MAGIC, OSD_PROXY_VERSION};
	int fd = memfd_create("iosd-sandbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	_Static_assert(offsetof(struct osd_shm, magic) == 0 &&
			       offsetof(struct osd_shm, version) == sizeof(head[0]),
		       "the head is as it is written");
	if (fd < 0)
		return -1;
	if (ftruncate(fd, OSD_SHM_BYTES) == 0 && write(fd, head, sizeof(head)) == sizeof(head) &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Makes the channels: the target's ends in sandbox->target_fds, the sandbox's in theirs (all -1
 * before). */
static bool make_channels(struct osd_slot *sandbox, int theirs[SPAWN_FD_CGROUPS])
{
	int pair[2];
	sandbox->target_fds[TARGET_FD_SHM] = make_shared_memory();
	theirs[SPAWN_FD_SHM] = fcntl(sandbox->target_fds[TARGET_FD_SHM], F_DUPFD_CLOEXEC, 0);
	if (theirs[SPAWN_FD_SHM] < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	sandbox->target_fds[TARGET_FD_JOB] = pair[0];
	theirs[SPAWN_FD_JOB] = pair[1];
	for (unsigned i = 0; i < 2; i++) {
		if (pipe2(pair, O_CLOEXEC) < 0)
			return false;
		sandbox->target_fds[TARGET_FD_STDOUT + i] = pair[0];
		theirs[SPAWN_FD_STDOUT + i] = pair[1];
	}
	return true;
}

/* ---- SPAWN ----------------------------------------------------------------------------------- */

/* The limits of the process: the engine's own threads come on top of the job's. */
static struct osd_sandbox_limits with_engine(const struct osd_zygote *zygote,
					     const struct osd_sandbox_limits *limits)
{
	struct osd_sandbox_limits all = *limits;

	all.processes += zygote->threads;
	return all;
}

/* Prepares control groups and channels, then sends the request to the zygote.  Returns the failed step,
 * or NULL. */
static const char *ask_zygote(struct osd_daemon *daemon, struct osd_slot *sandbox,
			      struct osd_zygote *zygote)
{
	unsigned slot = (unsigned)(sandbox - daemon->sandboxes);
	struct zygote_message message = {.type = ZYGOTE_SPAWN,
					 .slot = slot,
					 .serial = sandbox->serial,
					 .limits = sandbox->limits};
	int fds[SPAWN_FD_CGROUPS + OSD_HIERARCHIES] = {-1, -1, -1, -1};
	const struct osd_sandbox_limits all = with_engine(zygote, &sandbox->limits);
	const char *failed = NULL;
	int groups;

	groups = osd_cgroups_prepare(&daemon->cgroups, slot, sandbox->pool, &all,
				     fds + SPAWN_FD_CGROUPS);
	if (groups < 0)
		return groups == -EMFILE || groups == -ENFILE || groups == -ENOMEM
			       ? "no descriptors or memory left for its control group"
			       : "the control group refuses these limits";
	if (!make_channels(sandbox, fds))
		failed = "no descriptors or memory left for its channels";
	else if (!osd_zygote_send(zygote, &message, fds, SPAWN_FD_CGROUPS + (size_t)groups))
		failed = "the zygote does not listen";
	osd_fds_close(fds, SPAWN_FD_CGROUPS);
	return failed;
}

const char *osd_slot_spawn(struct osd_daemon *daemon, uint64_t id, const struct osd_zygotes *pool,
			   struct osd_zygote *zygote, const struct osd_sandbox_limits *limits)
{
	struct osd_slot *sandbox = free_slot(daemon);
	const char *failed;

	if (!sandbox)
		return "as many sandboxes are alive as HELLO asked for";
	if (slot_by_id(daemon, id))
		return "a sandbox of this id is alive";
	sandbox->id = id;
	sandbox->serial = ++daemon->last_serial;
	sandbox->limits = *limits;
	sandbox->pool = (unsigned)(pool - daemon->pools);
	sandbox->zygote = (unsigned)(zygote - pool->zygotes);
	failed = ask_zygote(daemon, sandbox, zygote);
	if (failed) {
		release(sandbox);
		return failed;
	}
	sandbox->state = OSD_SLOT_STARTING;
	sandbox->asked_usec = osd_monotonic_usec();
	return NULL;
}

/* ---- what zygotes say ------------------------------------------------------------------------ */

static struct osd_slot *about(struct osd_daemon *daemon, const struct zygote_message *message,
				 enum osd_slot_state state)
{
	struct osd_slot *sandbox;

	if (message->slot >= daemon->max)
		return NULL;
	sandbox = &daemon->sandboxes[message->slot];
	return sandbox->state == state && sandbox->serial == message->serial ? sandbox : NULL;
}

/* The process id in the daemon's namespace; the zygote knows only that of its own. */
static pid_t pid_of(int pidfd)
{
	char path[64], text[512];
	OSD_CLEANUP_CLOSE int fd = -1;
	const char *at;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[OSD_MAX(length, 0)] = '\0';
	at = strstr(text, "\nPid:");
	return at ? (pid_t)strtol(at + 5, NULL, 10) : 0;
}

void osd_slot_spawned(struct osd_daemon *daemon, const struct zygote_message *message, int pidfd)
{
	struct osd_slot *sandbox = about(daemon, message, OSD_SLOT_STARTING);
	int fds[1 + TARGET_FD_COUNT] = {pidfd};
	uint8_t body[4];

	if (!sandbox) {
		osd_closep(&pidfd);
		return;
	}
	sandbox->state = OSD_SLOT_LIVE;
	sandbox->pidfd = pidfd;
	sandbox->pid = pidfd < 0 ? 0 : pid_of(pidfd);
	if (sandbox->pid <= 0) { /* with its channels closed it exits, if it cannot be killed */
		osd_target_refuse(daemon, sandbox->id,
				  pidfd < 0 ? "no descriptors left for its process"
					    : "its process ended before it was ready");
		osd_fds_close(sandbox->target_fds, TARGET_FD_COUNT);
		kill_sandbox(sandbox);
		return;
	}
	memcpy(fds + 1, sandbox->target_fds, sizeof(sandbox->target_fds));
	osd_put_be(body, (uint64_t)sandbox->pid, 4);
	osd_target_send(daemon, OSD_SANDBOXD_SPAWNED, sandbox->id, body, sizeof(body), fds,
			1 + TARGET_FD_COUNT);
	osd_fds_close(sandbox->target_fds, TARGET_FD_COUNT);
	say(daemon, sandbox, "forked, host pid %d", (int)sandbox->pid);
	if (sandbox->kill)
		kill_sandbox(sandbox);
}

void osd_slot_name(struct osd_daemon *daemon, uint64_t id, uint64_t partition, uint64_t object)
{
	struct osd_slot *sandbox = slot_by_id(daemon, id);
	const struct osd_log_about about = {partition, object, id, NULL};

	if (!sandbox || sandbox->state != OSD_SLOT_LIVE) {
		osd_log_about(&about, OSD_LOG_INFO, "sandbox exit: before its job was named");
		return;
	}
	sandbox->job_partition = partition;
	sandbox->job_object = object;
	say(daemon, sandbox, "works for the job, host pid %d", (int)sandbox->pid);
}

void osd_slot_failed(struct osd_daemon *daemon, const struct zygote_message *message)
{
	struct osd_slot *sandbox = about(daemon, message, OSD_SLOT_STARTING);

	if (!sandbox)
		return;
	osd_target_refuse(daemon, sandbox->id, message->text);
	release(sandbox);
}

static void tell_exit(struct osd_daemon *daemon, struct osd_slot *sandbox,
		      struct osd_sandbox_exit status)
{
	uint8_t body[64];
	size_t length;

	osd_cgroups_usage(&daemon->cgroups, (unsigned)(sandbox - daemon->sandboxes), &status);
	length = osd_sandbox_exit_encode(&status, body, sizeof(body));
	say_exit(daemon, sandbox, &status);
	osd_target_send(daemon, OSD_SANDBOXD_EXITED, sandbox->id, body, length, NULL, 0);
	release(sandbox);
}

void osd_slot_exited(struct osd_daemon *daemon, const struct zygote_message *message)
{
	struct osd_slot *sandbox = about(daemon, message, OSD_SLOT_LIVE);

	if (sandbox)
		tell_exit(daemon, sandbox, message->status);
}

void osd_slot_zygote_gone(struct osd_daemon *daemon, unsigned pool, unsigned zygote)
{
	for (unsigned i = 0; i < daemon->max; i++) {
		struct osd_slot *sandbox = &daemon->sandboxes[i];

		if (sandbox->pool != pool || sandbox->zygote != zygote)
			continue;
		if (sandbox->state == OSD_SLOT_LIVE) {
			kill_sandbox(sandbox); /* without process namespace it may be alive */
			tell_exit(daemon, sandbox,
				  (struct osd_sandbox_exit){.wait_status = SIGKILL});
		} else if (sandbox->state == OSD_SLOT_STARTING) {
			osd_target_refuse(daemon, sandbox->id, "its zygote died");
			release(sandbox);
		}
	}
}

/* ---- LIMITS ---------------------------------------------------------------------------------- */

static int set_limits(struct osd_daemon *daemon, const struct osd_slot *sandbox,
		      const struct osd_sandbox_limits *limits, struct osd_step *step)
{
	const struct osd_zygote *zygote = &daemon->pools[sandbox->pool].zygotes[sandbox->zygote];
	unsigned slot = (unsigned)(sandbox - daemon->sandboxes);
	struct osd_sandbox_limits own = with_engine(zygote, limits);
	struct osd_rlimit table[OSD_RLIMIT_COUNT];
	int error = osd_cgroups_limit(&daemon->cgroups, slot, &own);

	if (error)
		return osd_step_end(step, error, "its control group");
	own.memory_bytes += zygote->set_bytes;
	osd_limits_table(&own, osd_scratch_file_bytes(daemon->layers, limits->memory_bytes),
			 table);
	for (size_t i = 0; i < OSD_RLIMIT_COUNT; i++) {
		struct rlimit limit = {table[i].value, table[i].value};

		if (prlimit(sandbox->pid, (__rlimit_resource_t)table[i].resource, &limit, NULL) < 0)
			return osd_step_failed(step, table[i].name, NULL);
	}
	return 0;
}

/* Sets all limits except the size of the scratch folder, which the zygote sets. */
static void finish_limits(struct osd_daemon *daemon, struct osd_slot *sandbox,
			  const struct osd_sandbox_limits *limits)
{
	struct osd_step step;
	char text[240];
	int error = set_limits(daemon, sandbox, limits, &step);

	if (error) {
		snprintf(text, sizeof(text), "cannot set the limit on %s: %s", step.what,
			 strerror(-error));
		osd_target_refuse(daemon, sandbox->id, text);
		return;
	}
	sandbox->limits = *limits;
	osd_target_send(daemon, OSD_SANDBOXD_LIMITS_SET, sandbox->id, NULL, 0, NULL, 0);
}

static bool same_scratch(const struct osd_daemon *daemon, const struct osd_slot *sandbox,
			 const struct osd_sandbox_limits *limits)
{
	return !osd_scratch_possible(daemon->layers) ||
	       osd_scratch_bytes(sandbox->limits.memory_bytes) ==
		       osd_scratch_bytes(limits->memory_bytes);
}

static bool ask_for_resize(struct osd_daemon *daemon, struct osd_slot *sandbox,
			   const struct osd_sandbox_limits *limits)
{
	struct zygote_message message = {.type = ZYGOTE_RESIZE,
					 .slot = (uint32_t)(sandbox - daemon->sandboxes),
					 .serial = sandbox->serial,
					 .limits = *limits};

	sandbox->asked = *limits;
	sandbox->asked_usec = osd_monotonic_usec();
	sandbox->resizing =
		osd_zygote_send(&daemon->pools[sandbox->pool].zygotes[sandbox->zygote], &message,
				NULL, 0);
	return sandbox->resizing;
}

void osd_slot_resized(struct osd_daemon *daemon, const struct zygote_message *message)
{
	struct osd_slot *sandbox = about(daemon, message, OSD_SLOT_LIVE);

	if (!sandbox || !sandbox->resizing)
		return;
	sandbox->resizing = false;
	if (message->text[0])
		osd_target_refuse(daemon, sandbox->id, message->text);
	else
		finish_limits(daemon, sandbox, &sandbox->asked);
}

void osd_slot_limit(struct osd_daemon *daemon, uint64_t id, const struct osd_sandbox_limits *limits)
{
	struct osd_slot *sandbox = slot_by_id(daemon, id);

	if (!sandbox || sandbox->state != OSD_SLOT_LIVE || sandbox->pid <= 0)
		osd_target_refuse(daemon, id, "no such sandbox");
	else if (sandbox->resizing)
		osd_target_refuse(daemon, id, "its limits are being set");
	else if (same_scratch(daemon, sandbox, limits))
		finish_limits(daemon, sandbox, limits);
	else if (!ask_for_resize(daemon, sandbox, limits))
		osd_target_refuse(daemon, id, "the zygote does not listen");
}
