/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zygote_link.c -- serves the messages of the pools' zygotes and replaces zygotes.  A zygote is
 * replaced when it dies, and after rotate_after forks, because all forks share its address layout and
 * hash seed.  If a zygote does not start, the next attempt follows after an increasing delay; other
 * pools do not wait for it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "daemon.h"
#include "base/fd_message.h"

#define RETRY_FIRST_USEC  UINT64_C(250000)
#define RETRY_MOST_USEC   UINT64_C(30000000)
#define STEADY_USEC       UINT64_C(10000000) /* a zygote that lived this long is replaced at once */

static void bury(struct osd_zygote *zygote)
{
	if (zygote->pid > 0) {
		kill(zygote->pid, SIGKILL);
		while (waitpid(zygote->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	osd_closep(&zygote->socket);
	*zygote = (struct osd_zygote){.socket = -1};
}

/* Whether jobs of this pool can have sandboxes now. */
static bool serves(struct osd_zygotes *pool)
{
	struct osd_zygote *current = osd_zygote_current(pool);

	return current && current->ready;
}

/* Reports a change of the pool's state.  While an older zygote serves, there is none. */
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
	error = osd_zygote_launch(daemon, pool, zygote, &what);
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
	/* Old zygotes still drain.  While one serves, the next fork tries again. */
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

/* It gets no more work. */
static void retire(struct osd_zygote *zygote)
{
	const struct zygote_message message = {.type = ZYGOTE_RETIRE};

	zygote->retiring = true;
	osd_zygote_send(zygote, &message, NULL, 0);
}

/* A new zygote is ready: it serves from now on. */
static void take_over(struct osd_daemon *daemon, struct osd_zygotes *pool,
		      struct osd_zygote *zygote)
{
	if (zygote->retiring)
		return; /* it was retired before it was ready */
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
	bool expected = zygote->retiring, was_ready = zygote->ready, explained = zygote->explained;
	bool steady = osd_monotonic_usec() - zygote->born_usec >= STEADY_USEC;

	bury(zygote); /* returns when every sandbox of its namespace is dead, too */
	osd_slot_zygote_gone(daemon, (unsigned)(pool - daemon->pools), index);
	if (expected || daemon->stop)
		return;
	if (was_ready) {
		snprintf(pool->why, sizeof(pool->why), "its zygote died");
		if (steady)
			pool->failed = 0;
	} else if (!explained) {
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
			 struct osd_zygote *zygote, struct zygote_message *message)
{
	message->text[sizeof(message->text) - 1] = '\0';
	if (message->serial) {
		osd_slot_failed(daemon, message);
	} else { /* its end follows */
		memcpy(pool->why, message->text, sizeof(pool->why));
		zygote->explained = true;
	}
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
		zygote->threads = message.threads;
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
		hear_failure(daemon, pool, zygote, &message);
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
	return osd_msec_until(next);
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
