/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tgt_complete.c -- finished requests go from workers to tgtd's loop: a list and one eventfd,
 * written only when the list was empty, so that many completions share a wake-up.
 *
 * Also the watch over commands under way: tgtd tells a module nothing of task management, but
 * leaves its request at the command it waits for (mreq).  A timer in tgtd's loop looks every 20 ms
 * until it finds nothing under way; so short commands, one after the other, cost no
 * system call each. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/util.h"
#include "shim/shim.h"

#define WATCH_INTERVAL_NS 20000000l

struct shim_completions {
	struct osd_unit **unit; /* borrowed */
	void (*finish)(struct shim_command *command);
	int event_fd, timer_fd;
	struct osd_lock lock;
	struct shim_command *head, **tail; /* under lock */
	struct shim_command *watched;	   /* main thread only */
	bool armed;			   /* main thread only: the timer runs */
};

/* ---- done ------------------------------------------------------------------------------------ */

/* The command that this thread submits. */
static _Thread_local struct shim_command *submitting;

void shim_expect(struct shim_command *command)
{
	command->done = false;
	submitting = command;
}

bool shim_is_done(const struct shim_command *command)
{
	submitting = NULL;
	return command->done;
}

void shim_done(struct osd_request *request)
{
	struct shim_command *command = request->front_end;
	struct shim_completions *completions = command->lu->completions;
	bool was_empty;

	if (submitting == command) {
		command->done = true;
		return;
	}
	osd_lock(&completions->lock);
	was_empty = completions->head == NULL;
	command->next = NULL;
	*completions->tail = command;
	completions->tail = &command->next;
	osd_unlock(&completions->lock);
	/* Without the lock, which the loop takes first.  It may have finished the command by now, and
	 * close the unit; but the unit's close waits until this has returned. */
	if (was_empty && eventfd_write(completions->event_fd, 1) != 0)
		osd_error("cannot wake tgtd's loop: %m");
}

static struct shim_command *take_all(struct shim_completions *completions)
{
	struct shim_command *list;

	osd_lock(&completions->lock);
	list = completions->head;
	completions->head = NULL;
	completions->tail = &completions->head;
	osd_unlock(&completions->lock);
	return list;
}

static void drain(struct shim_completions *completions)
{
	struct shim_command *list = take_all(completions);

	while (list) {
		struct shim_command *command = list;

		list = command->next;
		completions->finish(command);
	}
}

static void on_event(int fd, int events, void *data)
{
	eventfd_t count;

	(void)events;
	if (eventfd_read(fd, &count) == 0)
		drain(data);
}

/* ---- watch ----------------------------------------------------------------------------------- */

static void set_timer(struct shim_completions *completions, long interval_ns)
{
	struct itimerspec spec = {{0, interval_ns}, {0, interval_ns}};

	if (timerfd_settime(completions->timer_fd, 0, &spec, NULL) != 0)
		osd_error("cannot set the timer of task management: %m");
	completions->armed = interval_ns != 0;
}

static void on_timer(int fd, int events, void *data)
{
	struct shim_completions *completions = data;
	uint64_t expirations;

	(void)events;
	if (read(fd, &expirations, sizeof(expirations)) < 0)
		return;
	if (!completions->watched)
		set_timer(completions, 0);
	for (struct shim_command *command = completions->watched; command;
	     command = command->watch_next) {
		if (command->cmd->mreq && !osd_command_aborted(&command->request))
			osd_unit_abort(*completions->unit, &command->request);
	}
}

void shim_watch(struct shim_completions *completions, struct shim_command *command)
{
	if (!completions->armed)
		set_timer(completions, WATCH_INTERVAL_NS);
	command->watch_next = completions->watched;
	if (command->watch_next)
		command->watch_next->watch_at = &command->watch_next;
	command->watch_at = &completions->watched;
	completions->watched = command;
}

void shim_unwatch(struct shim_command *command)
{
	if (!command->watch_at)
		return;
	*command->watch_at = command->watch_next;
	if (command->watch_next)
		command->watch_next->watch_at = command->watch_at;
	command->watch_at = NULL;
	command->watch_next = NULL;
}

/* ---- open and close -------------------------------------------------------------------------- */

static bool add_events(struct shim_completions *completions)
{
	if (tgt_event_add(completions->event_fd, EPOLLIN, on_event, completions) != 0)
		return false;
	if (tgt_event_add(completions->timer_fd, EPOLLIN, on_timer, completions) == 0)
		return true;
	tgt_event_del(completions->event_fd);
	return false;
}

static void release(struct shim_completions *completions)
{
	osd_closep(&completions->event_fd);
	osd_closep(&completions->timer_fd);
	osd_lock_destroy(&completions->lock);
	free(completions);
}

struct shim_completions *shim_completions_create(struct osd_unit **unit,
						 void (*finish)(struct shim_command *))
{
	struct shim_completions *completions = calloc(1, sizeof(*completions));

	if (!completions)
		return NULL;
	completions->unit = unit;
	completions->finish = finish;
	completions->tail = &completions->head;
	osd_lock_init(&completions->lock, OSD_RANK_COMPLETIONS);
	completions->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	completions->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (completions->event_fd < 0 || completions->timer_fd < 0 || !add_events(completions)) {
		release(completions);
		return NULL;
	}
	return completions;
}

void shim_completions_free(struct shim_completions *completions)
{
	if (!completions)
		return;
	drain(completions);
	tgt_event_del(completions->timer_fd);
	tgt_event_del(completions->event_fd);
	release(completions);
}
