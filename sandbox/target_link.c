/* SPDX-License-Identifier: GPL-2.0-or-later */
/* target_link.c -- the target's connection: checks the peer and serves its messages.  There is one
 * target at a time; the next one waits in the backlog until the sandboxes of the last one are dead. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ration.h"
#include "base/util.h"
#include "daemon.h"
#include "base/fd_message.h"
#include "rlimits.h"
#include "wire/cursor.h"

#define SOCKET_BYTES    (1 << 20)
#define LEAST_MEMORY    (32u << 20) /* with less the interpreter does not start */
#define REFUSALS_LOGGED 5u          /* a minute */
#define REFUSALS_USEC   UINT64_C(60000000)

/* The socket's mode keeps others out already; a peer may have got in before an administrator changed
 * its owner. */
static bool permitted(const struct osd_daemon *daemon, uid_t uid)
{
	struct stat status;

	if (uid == 0 || uid == geteuid() || uid == daemon->peer)
		return true;
	return lstat(daemon->socket_path, &status) == 0 && status.st_uid == uid;
}

static void log_refusal(long uid)
{
	static struct osd_ration refusals = OSD_RATION(REFUSALS_LOGGED, REFUSALS_USEC);
	unsigned withheld;

	if (!osd_ration_take(&refusals, osd_monotonic_usec(), &withheld))
		return;
	if (withheld)
		osd_warning("refused %u connections that were not logged one by one", withheld);
	osd_warning("refused a connection of uid %ld; only root and the target's user may connect",
		    uid);
}

void osd_target_drop(struct osd_daemon *daemon)
{
	osd_closep(&daemon->target_fd);
	if (!daemon->greeted)
		return; /* nothing was made for it */
	daemon->greeted = false;
	osd_slot_kill_all(daemon);
	osd_pools_unwanted(daemon);
}

void osd_target_accept(struct osd_daemon *daemon)
{
	int fd = accept4(daemon->listen_fd, NULL, NULL, SOCK_CLOEXEC), size = SOCKET_BYTES;
	socklen_t length = sizeof(struct ucred);
	struct ucred peer = {.uid = (uid_t)-1};
	bool known;

	if (fd < 0)
		return;
	known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0;
	if (!known || !permitted(daemon, peer.uid)) {
		log_refusal(known ? (long)peer.uid : -1);
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	osd_target_drop(daemon); /* the last one: it may have been closed just now, by osd_target_send */
	daemon->target_fd = fd;
}

/* ---- what it asks ---------------------------------------------------------------------------- */

static void welcome(struct osd_daemon *daemon)
{
	uint8_t body[OSD_SANDBOXD_BODY_MAX];
	struct osd_wr w = osd_wr_init(body, sizeof(body));

	osd_wr_be(&w, strlen(daemon->level->name), 2);
	osd_wr_text(&w, daemon->level->name);
	osd_wr_be(&w, strlen(daemon->missing), 2);
	osd_wr_text(&w, daemon->missing);
	osd_target_send(daemon, OSD_SANDBOXD_WELCOME, 0, body, osd_wr_used(&w), NULL, 0);
}

static void hello(struct osd_daemon *daemon, const struct osd_sandboxd_message *message)
{
	struct osd_rd r = osd_rd_init(message->body, message->body_bytes);
	uint32_t most = (uint32_t)osd_rd_be(&r, 4);
	char text[96];

	if (r.bad || most == 0 || most > daemon->max) {
		snprintf(text, sizeof(text), "this daemon keeps 1 to %u sandboxes (option --max)",
			 daemon->max);
		osd_target_refuse(daemon, 0, text);
		return;
	}
	daemon->allowed = most;
	daemon->greeted = true;
	welcome(daemon);
	for (unsigned i = 0; i < OSD_POOLS_MAX; i++)
		if (daemon->pools[i].name)
			osd_target_tell_pool(daemon, &daemon->pools[i]);
}

/* Decodes and checks limits.  False: the target gets the error. */
static bool get_limits(struct osd_daemon *daemon, const struct osd_sandboxd_message *message,
		       struct osd_sandbox_limits *ret_limits)
{
	size_t length = message->body_bytes;

	if (message->type == OSD_SANDBOXD_SPAWN) /* the pool's name follows */
		length = OSD_MIN(length, (size_t)OSD_SANDBOX_LIMITS_BYTES);
	if (osd_sandbox_limits_decode(message->body, length, ret_limits) &&
	    ret_limits->memory_bytes >= LEAST_MEMORY && ret_limits->memory_bytes <= INT64_MAX / 2 &&
	    ret_limits->cpu_seconds >= 1 && ret_limits->processes >= 1 &&
	    ret_limits->processes <= OSD_PROCESSES_MAX &&
	    ret_limits->open_files <= OSD_OPEN_FILES_MAX)
		return true;
	osd_target_refuse(daemon, message->sandbox_id,
			  "limits out of range: memory from 32 MiB, cpu from 1 s, 1-64 processes, "
			  "at most 4096 open files");
	return false;
}

/* The pool named by the message from this byte on; without a name the first pool. */
static struct osd_zygotes *find_pool(struct osd_daemon *daemon,
				     const struct osd_sandboxd_message *message, size_t from)
{
	size_t length = message->body_bytes - from;

	return length ? osd_zygotes_find(daemon, (const char *)message->body + from, length)
		      : &daemon->pools[0];
}

/* NULL, or the reason why not. */
static const char *spawn_from(struct osd_daemon *daemon, uint64_t id, struct osd_zygotes *pool,
			      const struct osd_sandbox_limits *limits)
{
	struct osd_zygote *zygote;
	const char *refused;

	if (!pool || (pool->leaving && !pool->wanted))
		return "no such pool";
	if (pool->unbounded)
		return osd_no_bound;
	pool->wanted = true;
	zygote = osd_zygote_current(pool);
	refused =
		zygote ? osd_slot_spawn(daemon, id, pool, zygote, limits) : "no zygote is running";
	if (!refused)
		osd_zygote_count_fork(daemon, pool);
	return refused;
}

static void spawn(struct osd_daemon *daemon, const struct osd_sandboxd_message *message)
{
	struct osd_sandbox_limits limits;
	const char *refused;

	if (!get_limits(daemon, message, &limits))
		return;
	refused = spawn_from(daemon, message->sandbox_id,
			     find_pool(daemon, message, OSD_SANDBOX_LIMITS_BYTES), &limits);
	if (refused)
		osd_target_refuse(daemon, message->sandbox_id, refused);
}

/* For a pool that may have been removed meanwhile. */
static void heed_pool(struct osd_daemon *daemon, const struct osd_sandboxd_message *message)
{
	struct osd_zygotes *pool = find_pool(daemon, message, 0);

	if (pool && message->type == OSD_SANDBOXD_ROTATE)
		osd_zygote_rotate(daemon, pool);
	else if (pool)
		pool->wanted = false;
}

static bool name(struct osd_daemon *daemon, const struct osd_sandboxd_message *message)
{
	struct osd_rd r = osd_rd_init(message->body, message->body_bytes);
	uint64_t partition = osd_rd_be(&r, 8), object = osd_rd_be(&r, 8);

	if (r.bad || osd_rd_left(&r))
		return false;
	osd_slot_name(daemon, message->sandbox_id, partition, object);
	return true;
}

static bool share(struct osd_daemon *daemon, const struct osd_sandboxd_message *message)
{
	struct osd_rd r = osd_rd_init(message->body, message->body_bytes);
	uint64_t per_mille = osd_rd_be(&r, 4);

	if (r.bad || osd_rd_left(&r))
		return false;
	osd_share_heed(daemon, per_mille);
	return true;
}

/* For a pool that may have been removed meanwhile. */
static bool bound_pool(struct osd_daemon *daemon, const struct osd_sandboxd_message *message)
{
	struct osd_rd r = osd_rd_init(message->body, message->body_bytes);
	uint64_t percent = osd_rd_be(&r, 4);
	struct osd_zygotes *pool;

	if (r.bad || percent < 1 || percent > OSD_CPU_SHARE_WHOLE)
		return false;
	pool = find_pool(daemon, message, 4);
	if (pool)
		osd_zygotes_bound(daemon, pool, (unsigned)percent);
	return true;
}

static bool answer(struct osd_daemon *daemon, const struct osd_sandboxd_message *message)
{
	struct osd_sandbox_limits limits;

	if (message->type == OSD_SANDBOXD_HELLO) {
		hello(daemon, message);
		return true;
	}
	if (!daemon->greeted)
		return false;
	switch (message->type) {
	case OSD_SANDBOXD_SPAWN:
		spawn(daemon, message);
		return true;
	case OSD_SANDBOXD_LIMITS:
		if (get_limits(daemon, message, &limits))
			osd_slot_limit(daemon, message->sandbox_id, &limits);
		return true;
	case OSD_SANDBOXD_JOB:
		return name(daemon, message);
	case OSD_SANDBOXD_SHARE:
		return share(daemon, message);
	case OSD_SANDBOXD_BOUND:
		return bound_pool(daemon, message);
	case OSD_SANDBOXD_ROTATE:
	case OSD_SANDBOXD_FORGET:
		heed_pool(daemon, message);
		return true;
	case OSD_SANDBOXD_NUDGE:
		osd_slot_nudge(daemon, message->sandbox_id);
		return true;
	case OSD_SANDBOXD_KILL:
		osd_slot_kill(daemon, message->sandbox_id);
		return true;
	default:
		return false;
	}
}

static void refuse_version(struct osd_daemon *daemon, unsigned version)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "the target speaks version %u, iosd-sandboxd %u: install both of one release",
		 version, OSD_SANDBOXD_VERSION);
	osd_warning("%s", text);
	osd_target_refuse(daemon, 0, text);
}

void osd_target_serve(struct osd_daemon *daemon)
{
	uint8_t bytes[OSD_SANDBOXD_HEADER + OSD_SANDBOXD_BODY_MAX];
	struct osd_sandboxd_message message;
	size_t fd_count = 0;
	ssize_t length =
		osd_fd_receive(daemon->target_fd, bytes, sizeof(bytes), NULL, 0, &fd_count);

	if (length > 0 && osd_sandboxd_decode(bytes, (size_t)length, &message) &&
	    answer(daemon, &message))
		return;
	if (length > 0 && osd_sandboxd_version(bytes, (size_t)length) != OSD_SANDBOXD_VERSION)
		refuse_version(daemon, osd_sandboxd_version(bytes, (size_t)length));
	else if (length < 0 && length != -EMSGSIZE && length != -EMFILE)
		osd_info("the connection to the target is lost: %s", strerror((int)-length));
	else if (length != 0)
		osd_warning(
			"the target sent something else than a request; closing its connection");
	osd_target_drop(daemon);
}
