/* SPDX-License-Identifier: GPL-2.0-or-later */
/* follow.c -- see follow.h.  Here: the objects that are due, and when each has its turn.  follow_run.c has the runs.
 *
 * Functions of one partition may be slow and its objects many.  So a partition has at most as many runs, and as many
 * objects in memory, as are free then, and partitions take turns. */
#include "command/follow.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/util.h"
#include "command/dispatch.h"
#include "command/follow_impl.h"
#include "object/due.h"
#include "object/hooks.h"

#define DELAY_USEC	UINT64_C(100000) /* from a change to the run that follows it */
#define RETRY_USEC	UINT64_C(500000) /* doubled with each failure in a row */
#define RETRY_DOUBLINGS 4u
#define OBJECTS_MAX	65536u /* in memory */
#define RUNS_MAX	8u     /* at a time: foreground work goes first */
#define SCAN_IDS	256u

/* ---- the table ---------------------------------------------------------------------------------- */

static struct osd_due **bucket_of(struct osd_follow *follow, struct osd_object_id id)
{
	uint64_t mixed = (id.object_id ^ id.partition_id << 20) * UINT64_C(0x9e3779b97f4a7c15);

	return &follow->buckets[mixed >> 32 & (OSD_FOLLOW_BUCKETS - 1)];
}

static struct osd_due **find(struct osd_follow *follow, struct osd_object_id id)
{
	struct osd_due **at = bucket_of(follow, id);

	osd_assert_held(&follow->lock);
	while (*at && !osd_same_id((*at)->id, id))
		at = &(*at)->hash_next;
	return at;
}

static struct osd_follow_line *line_of(struct osd_follow *follow, struct osd_object_id id)
{
	uint64_t mixed = (id.partition_id ^ follow->seed) * UINT64_C(0x9e3779b97f4a7c15);

	return &follow->lines[mixed >> 32 & (OSD_FOLLOW_LINES - 1)];
}

/* Under lock.  In the order of the times, of which most are the last one. */
static void wait_until(struct osd_follow *follow, struct osd_due *due, uint64_t usec)
{
	struct osd_follow_line *line = line_of(follow, due->id);
	struct osd_due **at = &line->waiting;

	osd_assert_held(&follow->lock);
	if (line->waiting_last && line->waiting_last->due_usec <= usec)
		at = &line->waiting_last->next;
	while (*at && (*at)->due_usec <= usec)
		at = &(*at)->next;
	due->state = OSD_DUE_WAITS;
	due->due_usec = usec;
	due->next = *at;
	*at = due;
	if (!due->next)
		line->waiting_last = due;
}

static void forget(struct osd_follow *follow, struct osd_due *due)
{
	struct osd_due **at = find(follow, due->id);

	*at = due->hash_next;
	line_of(follow, due->id)->count--;
	follow->count--;
	free(due);
}

/* Under lock.  False: there is no room. */
static bool note(struct osd_follow *follow, struct osd_object_id id, uint64_t usec)
{
	struct osd_follow_line *line = line_of(follow, id);
	struct osd_due **at = find(follow, id), *due = *at;

	if (due) {
		due->again |= due->state != OSD_DUE_WAITS;
		return true;
	}
	due = line->count < OBJECTS_MAX - follow->count ? calloc(1, sizeof(*due)) : NULL;
	if (!due)
		return false;
	due->id = id;
	due->follow = follow;
	*at = due;
	line->count++;
	follow->count++;
	wait_until(follow, due, usec);
	return true;
}

/* object/ calls this after each change, with bytes of the object locked. */
static void changed(void *arg, struct osd_object_id id)
{
	struct osd_follow *follow = arg;
	uint64_t usec = osd_monotonic_usec() + DELAY_USEC;

	bool stopping;

	osd_lock(&follow->lock);
	stopping = follow->stopping;
	if (!stopping && !note(follow, id, usec))
		follow->rescan = true;
	osd_unlock(&follow->lock);
	if (!stopping)
		osd_timer_set(osd_objects_timers(follow->objects), &follow->timer, usec);
}

static void answered(struct osd_due *due)
{
	struct osd_follow *follow = due->follow;

	osd_lock(&follow->lock);
	due->state = OSD_DUE_ANSWERED;
	due->next = follow->answered;
	follow->answered = due;
	osd_unlock(&follow->lock);
	osd_timer_set(osd_objects_timers(follow->objects), &follow->timer, 0);
}

/* ---- the helper thread -------------------------------------------------------------------------- */

/* Under lock.  OSD_NEVER: nothing of the line can begin before a run ends. */
static uint64_t begins_at(const struct osd_follow *follow, const struct osd_follow_line *line)
{
	return line->waiting && !follow->stopping && line->running < RUNS_MAX - follow->running
		       ? line->waiting->due_usec
		       : OSD_NEVER;
}

/* Under lock.  The line whose first object begins now; NULL: none. */
static struct osd_follow_line *next_line(struct osd_follow *follow)
{
	struct osd_follow_line *next = NULL;
	uint64_t now = osd_monotonic_usec();

	for (size_t i = 0; i < OSD_FOLLOW_LINES; i++) {
		struct osd_follow_line *line = &follow->lines[i];

		if (begins_at(follow, line) <= now && (!next || line->turn < next->turn))
			next = line;
	}
	return next;
}

/* Under lock. */
static uint64_t next_time(const struct osd_follow *follow)
{
	uint64_t next = OSD_NEVER;

	for (size_t i = 0; i < OSD_FOLLOW_LINES; i++)
		next = OSD_MIN(next, begins_at(follow, &follow->lines[i]));
	return next;
}

/* Under lock.  Takes the next object out of its list; *ret_begins: it begins, otherwise it has an answer.  While the
 * target stops, none begins. */
static struct osd_due *take(struct osd_follow *follow, bool *ret_begins)
{
	struct osd_due *due = follow->answered;
	struct osd_follow_line *line;

	osd_assert_held(&follow->lock);
	*ret_begins = !due;
	if (due) {
		follow->answered = due->next;
		return due;
	}
	line = next_line(follow);
	if (!line)
		return NULL;
	due = line->waiting;
	line->waiting = due->next;
	if (!line->waiting)
		line->waiting_last = NULL;
	due->state = OSD_DUE_RUNS;
	due->again = false;
	line->turn = ++follow->turns;
	line->running++;
	follow->running++;
	return due;
}

/* Under lock. */
static void ended(struct osd_follow *follow, struct osd_due *due, enum osd_follow_end how)
{
	uint64_t now = osd_monotonic_usec();

	osd_assert_held(&follow->lock);
	line_of(follow, due->id)->running--;
	follow->running--;
	due->tries = how == OSD_FOLLOW_LATER ? OSD_MIN(due->tries + 1, RETRY_DOUBLINGS) : 0;
	if (how == OSD_FOLLOW_LATER)
		wait_until(follow, due, now + (RETRY_USEC << (due->tries - 1)));
	else if (how == OSD_FOLLOW_CHANGED || due->again)
		wait_until(follow, due, now + DELAY_USEC);
	else
		forget(follow, due);
	if (follow->stopping)
		pthread_cond_broadcast(&follow->idle);
}

/* Notes ids up to the first for which there is no room.  Returns the one after which the scan goes on: it passes over the
 * rest of that partition. */
static struct osd_object_id note_all(struct osd_follow *follow, const struct osd_object_id *ids,
				     size_t count)
{
	osd_assert_held(&follow->lock);
	for (size_t i = 0; i < count; i++)
		if (!note(follow, ids[i], osd_monotonic_usec())) {
			follow->rescan = true;
			return (struct osd_object_id){ids[i].partition_id, UINT64_MAX};
		}
	return ids[count - 1];
}

/* Objects that are due in the store, as far as there is room for them. */
static void scan(struct osd_follow *follow)
{
	struct osd_object_id ids[SCAN_IDS], after = {0, 0};
	bool listed, more = true;
	size_t count;

	while (more) {
		osd_dispatch_step_in(follow->dispatcher);
		listed = osd_due_list(follow->objects, after, ids, SCAN_IDS, &count) == OSD_OK;
		osd_dispatch_step_out(follow->dispatcher);
		osd_lock(&follow->lock);
		follow->rescan |= !listed || follow->stopping;
		more = listed && count && !follow->stopping;
		if (more)
			after = note_all(follow, ids, count);
		osd_unlock(&follow->lock);
		more &= count == SCAN_IDS || after.object_id == UINT64_MAX;
	}
}

static bool must_scan(struct osd_follow *follow)
{
	bool must;

	osd_lock(&follow->lock);
	must = follow->rescan && !follow->stopping && follow->count < OBJECTS_MAX / 2;
	if (must)
		follow->rescan = false;
	osd_unlock(&follow->lock);
	return must;
}

static void work(void *arg)
{
	struct osd_follow *follow = arg;
	uint64_t next;
	struct osd_due *due;
	bool begins;

	if (must_scan(follow))
		scan(follow);
	osd_lock(&follow->lock);
	while ((due = take(follow, &begins))) {
		enum osd_follow_end how;

		osd_unlock(&follow->lock);
		osd_dispatch_step_in(follow->dispatcher);
		how = begins ? osd_follow_begin(due) : osd_follow_proceed(due);
		osd_dispatch_step_out(follow->dispatcher);
		osd_lock(&follow->lock);
		if (how != OSD_FOLLOW_CALLED)
			ended(follow, due, how);
	}
	next = next_time(follow);
	osd_unlock(&follow->lock);
	osd_timer_set(osd_objects_timers(follow->objects), &follow->timer, next);
}

/* The timer: what is due now is the helper's. */
static uint64_t wake(void *arg)
{
	struct osd_follow *follow = arg;
	uint64_t now = osd_monotonic_usec(), next;
	bool call;

	osd_lock(&follow->lock);
	call = follow->answered || (follow->rescan && follow->count < OBJECTS_MAX / 2);
	next = next_time(follow);
	call |= next <= now;
	next = OSD_MAX(next, now + DELAY_USEC / 10);
	osd_unlock(&follow->lock);
	if (call && !osd_helper_call(&follow->helper))
		return now + RETRY_USEC;
	return next;
}

/* ---- open and close ----------------------------------------------------------------------------- */

enum osd_status osd_follow_create(struct osd_objects *objects, struct osd_functions *functions,
				  struct osd_exec *exec, struct osd_dispatcher *dispatcher,
				  struct osd_follow **ret_follow)
{
	struct osd_follow *follow = calloc(1, sizeof(*follow));

	if (!follow || getrandom(&follow->seed, sizeof(follow->seed), 0) != sizeof(follow->seed)) {
		free(follow);
		return OSD_E_NO_MEMORY;
	}
	follow->objects = objects;
	follow->functions = functions;
	follow->exec = exec;
	follow->dispatcher = dispatcher;
	follow->on_answer = answered;
	osd_lock_init(&follow->lock, OSD_RANK_FOLLOW);
	pthread_cond_init(&follow->idle, NULL);
	osd_helper_init(&follow->helper, "iosd-follow", work, follow);
	follow->timer = (struct osd_timer){.run = wake, .arg = follow};
	follow->rescan = osd_hooks_any(objects);
	osd_timer_add(osd_objects_timers(objects), &follow->timer);
	osd_objects_watch_due(objects, changed, follow);
	*ret_follow = follow;
	return OSD_OK;
}

static void free_all(struct osd_follow *follow)
{
	for (size_t i = 0; i < OSD_FOLLOW_BUCKETS; i++)
		while (follow->buckets[i]) {
			struct osd_due *due = follow->buckets[i];

			follow->buckets[i] = due->hash_next;
			osd_follow_run_free(due->run);
			free(due);
		}
}

void osd_follow_stop(struct osd_follow *follow)
{
	if (!follow)
		return;
	osd_lock(&follow->lock);
	follow->stopping = true;
	while (follow->running)
		osd_cond_wait(&follow->idle, &follow->lock);
	osd_unlock(&follow->lock);
	osd_timer_remove(osd_objects_timers(follow->objects), &follow->timer);
	osd_helper_stop(&follow->helper);
}

void osd_follow_free(struct osd_follow *follow)
{
	if (!follow)
		return;
	osd_objects_watch_due(follow->objects, NULL, NULL);
	free_all(follow);
	osd_helper_release(&follow->helper);
	pthread_cond_destroy(&follow->idle);
	osd_lock_destroy(&follow->lock);
	free(follow);
}
