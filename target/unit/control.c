/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control.c -- see control.h: the thread of the control socket, the manager's lease, and the
 * readings pushed to watchers.  It waits in epoll alone; no peer can block it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/util.h"
#include "unit/control_impl.h"
#include "exec/exec.h"

#define SOON_USEC      UINT64_C(20000)	  /* so often while jobs wait */
/* A watcher that does not read for this long is dropped.  Until then it costs one unread answer.
 * On a busy host a manager may not run for many seconds. */
#define DEAF_USEC      UINT64_C(60000000)
#define EVENTS_AT_ONCE (OSD_CONTROL_PEERS + 2)

/* ---- the lease ------------------------------------------------------------------------------- */

static uint64_t lease_end(const struct osd_control *control)
{
	return control->manager ? control->manager->heard_usec + control->targets.lease_usec
				: OSD_NEVER;
}

/* ---- watching -------------------------------------------------------------------------------- */

void osd_control_jobs_wait(struct osd_control *control)
{
	if (atomic_load_explicit(&control->watched, memory_order_relaxed) &&
	    !atomic_exchange(&control->told, true))
		osd_wake(control->wake_fd);
}

static void hear_wake(struct osd_control *control)
{
	osd_wake_drain(control->wake_fd);
	if (!atomic_exchange(&control->told, false) || !osd_exec_jobs_wait(control->targets.exec))
		return; /* it is time to stop, or they did not wait for long */
	for (unsigned i = 0; i < OSD_CONTROL_PEERS; i++)
		control->peers[i].hurry = control->peers[i].interval_usec > 0;
}

static uint64_t next_push(const struct osd_control_peer *peer)
{
	if (peer->fd < 0 || !peer->interval_usec)
		return OSD_NEVER;
	return peer->pushed_usec +
	       (peer->hurry ? OSD_MIN(peer->interval_usec, SOON_USEC) : peer->interval_usec);
}

/* An unread reading is worthless once there is a newer one, so at most one is outstanding. */
static void push(struct osd_control *control, struct osd_control_peer *peer, uint64_t now)
{
	peer->pushed_usec = now;
	if (osd_control_unread(peer)) {
		peer->deaf_usec = peer->deaf_usec ? peer->deaf_usec : now;
		if (now >= peer->deaf_usec + DEAF_USEC)
			osd_control_drop(control, peer, "watches and does not read");
		return;
	}
	peer->deaf_usec = 0;
	peer->hurry = osd_exec_jobs_wait(control->targets.exec);
	osd_control_send_snapshot(control, peer, 0);
}

/* The connection of a peer ends. */
static void peer_left(struct osd_control *control, struct osd_control_peer *peer)
{
	osd_control_release(control, peer, "has gone");
	osd_control_melt(control, peer);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Checks everything once.  Returns the time of the next check. */
static uint64_t look_around(struct osd_control *control)
{
	uint64_t now = osd_monotonic_usec(), deadline;

	if (now >= lease_end(control))
		osd_control_release(control, control->manager, "has not been heard of");
	if (control->deaf_until_usec && now >= control->deaf_until_usec)
		osd_control_accept(control);
	deadline = lease_end(control);
	if (control->deaf_until_usec)
		deadline = OSD_MIN(deadline, control->deaf_until_usec);
	for (unsigned i = 0; i < OSD_CONTROL_PEERS; i++) {
		if (now >= next_push(&control->peers[i]))
			push(control, &control->peers[i], now);
		deadline = OSD_MIN(deadline, next_push(&control->peers[i]));
	}
	return deadline;
}

static void handle(struct osd_control *control, unsigned what)
{
	if (what == OSD_CONTROL_WAKE)
		hear_wake(control);
	else if (what == OSD_CONTROL_LISTENER)
		osd_control_accept(control);
	else if (control->peers[what].fd >= 0)
		osd_control_hear(control, &control->peers[what]);
}

static void *run(void *argument)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	struct osd_control *control = argument;

	while (!atomic_load(&control->stopping)) {
		uint64_t deadline = look_around(control);
		int count = epoll_wait(control->epoll_fd, events, EVENTS_AT_ONCE,
				       osd_msec_until(deadline));

		for (int i = 0; i < count; i++)
			handle(control, events[i].data.u32);
	}
	return NULL;
}

/* ---- start and end --------------------------------------------------------------------------- */

static void name_this_run(struct osd_control *control)
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
		osd_put_be(bytes, osd_wall_msec(), 8);
		osd_put_be(bytes + 8, osd_monotonic_usec() ^ (uint64_t)getpid() << 40, 8);
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(control->boot + 2 * i, 3, "%02x", bytes[i]);
}

struct osd_control *osd_control_create(void)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = OSD_CONTROL_WAKE};
	struct osd_control *control = calloc(1, sizeof(*control));

	if (!control)
		return NULL;
	for (unsigned i = 0; i < OSD_CONTROL_PEERS; i++)
		control->peers[i].fd = -1;
	control->listen_fd = -1;
	control->answer_to = osd_control_answer;
	control->peer_left = peer_left;
	control->started_usec = osd_monotonic_usec();
	name_this_run(control);
	control->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	control->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (control->epoll_fd >= 0 && control->wake_fd >= 0 &&
	    epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, control->wake_fd, &event) == 0)
		return control;
	osd_control_free(control);
	return NULL;
}

void osd_control_free(struct osd_control *control)
{
	if (!control)
		return;
	osd_closep(&control->epoll_fd);
	osd_closep(&control->wake_fd);
	free(control);
}

enum osd_status osd_control_start(struct osd_control *control, const char *path,
				  const struct osd_control_targets *targets, char message[256])
{
	enum osd_status status;

	control->targets = *targets;
	if (!control->targets.lease_usec)
		control->targets.lease_usec = OSD_CONTROL_LEASE_USEC;
	status = osd_control_listen(control, path, message);
	if (status != OSD_OK)
		return status;
	control->started =
		osd_thread_start(&control->thread, "iosd-control", run, control);
	if (control->started)
		return OSD_OK;
	osd_control_unlisten(control);
	return OSD_EXPLAIN(message, OSD_E_NO_MEMORY,
			   "cannot start the thread of the control socket");
}

void osd_control_stop(struct osd_control *control)
{
	if (!control || !control->started)
		return;
	atomic_store(&control->stopping, true);
	osd_wake(control->wake_fd);
	pthread_join(control->thread, NULL);
	control->started = false;
	osd_control_unlisten(control);
}
