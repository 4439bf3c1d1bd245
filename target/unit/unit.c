/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unit.c -- see unit.h and unit_impl.h.  Here: the queue, the pool of workers, parking and
 * resuming.  Elsewhere: opening and closing (unit_open.c), what a front end submits (front.c), the meaning
 * of a request (command/dispatch.c). */
#include "unit/unit_impl.h"

#include <errno.h>

#include "base/clock.h"
#include "base/thread.h"
#include "base/util.h"
#include "command/table.h"
#include "unit/command_figures.h"

/* Workers are started when requests wait for one.  Those beyond the first two end after they have
 * waited for so long. */
#define LEAST_THREADS 2u
#define LINGER_USEC   UINT64_C(10000000)

/* ---- queue ----------------------------------------------------------------------------------- */

/* A single worker gets a second thread, which runs short commands during a long one. */
static unsigned threads_of(unsigned workers)
{
	return workers == 1 ? 2 : workers;
}

static unsigned running_long(const struct osd_unit *unit)
{
	osd_assert_held(&unit->lock);
	return unit->running_of[OSD_SPAN_LONG] + unit->running_of[OSD_SPAN_MOVES];
}

static bool may_run_short(const struct osd_unit *unit)
{
	osd_assert_held(&unit->lock);
	return unit->running < OSD_MAX(unit->wanted, running_long(unit) + 1);
}

static bool may_run_long(const struct osd_unit *unit, enum osd_command_span span)
{
	unsigned others = unit->wanted > 1 ? unit->wanted - 1 : 1;

	osd_assert_held(&unit->lock);
	return unit->running < unit->wanted && running_long(unit) < others &&
	       unit->running_of[span] < unit->most_of[span];
}

/* Under lock.  Chooses the span of the request that a free worker takes: the longest waiting of
 * those that may run.  False: there is none. */
static bool choose(const struct osd_unit *unit, enum osd_command_span *ret_span)
{
	const struct osd_request *found = osd_queue_peek(&unit->queue, OSD_SPAN_SHORT);

	osd_assert_held(&unit->lock);
	*ret_span = OSD_SPAN_SHORT;
	if (found && !may_run_short(unit))
		found = NULL;
	if (!osd_queue_count(&unit->queue, OSD_SPAN_LONG) &&
	    !osd_queue_count(&unit->queue, OSD_SPAN_MOVES))
		return found != NULL;
	for (enum osd_command_span span = OSD_SPAN_LONG; span < OSD_SPANS; span++) {
		const struct osd_request *next = osd_queue_peek(&unit->queue, span);

		if (!next || (found && found->submitted_ns <= next->submitted_ns) ||
		    !may_run_long(unit, span))
			continue;
		found = next;
		*ret_span = span;
	}
	return found != NULL;
}

static bool start_worker(struct osd_unit *unit);

/* Under lock.  Whether to wake up a worker; starts one if none is idle and there may be more.  That
 * worker calls the next one if it finds more requests than it takes.  So a burst costs the submitter
 * one wake-up, and no more workers run than there is work for. */
static bool wants_worker(struct osd_unit *unit)
{
	enum osd_command_span ignored;

	osd_assert_held(&unit->lock);
	if (unit->waking || (!unit->idle_workers && unit->threads >= threads_of(unit->wanted)) ||
	    !choose(unit, &ignored))
		return false;
	unit->waking = unit->idle_workers || start_worker(unit);
	return unit->idle_workers;
}

/* Under lock. */
static void call_worker(struct osd_unit *unit)
{
	if (wants_worker(unit))
		pthread_cond_signal(&unit->ready);
}

static void enqueue(struct osd_unit *unit, struct osd_request *request)
{
	osd_assert_held(&unit->lock);
	osd_queue_add(&unit->queue, request->span, request);
	if (request->span == OSD_SPAN_SHORT)
		__atomic_add_fetch(&unit->queued, 1, __ATOMIC_RELAXED);
}

/* Under lock.  NULL: no request may run now. */
static struct osd_request *pop(struct osd_unit *unit)
{
	enum osd_command_span span;

	osd_assert_held(&unit->lock);
	if (!choose(unit, &span))
		return NULL;
	if (span == OSD_SPAN_SHORT)
		__atomic_sub_fetch(&unit->queued, 1, __ATOMIC_RELAXED);
	unit->running_of[span]++;
	unit->running++;
	return osd_queue_take(&unit->queue, span);
}

static void resume_all(struct osd_request *resumed)
{
	while (resumed) {
		struct osd_request *request = resumed;

		resumed = request->next;
		osd_unit_resume(request);
	}
}

void osd_unit_finish(struct osd_unit *unit, struct osd_request *request)
{
	struct osd_request *resumed = NULL;
	struct osd_task stand_in;

	osd_figures_note(unit->figures, request, osd_monotonic_nsec());
	osd_lock(&unit->lock);
	osd_tasks_replace(request, &stand_in);
	osd_unlock(&unit->lock);
	request->done(request); /* the front end may free it */
	osd_lock(&unit->lock);
	osd_tasks_remove(&stand_in);
	if (unit->tasks.asking)
		osd_tasks_resume_askers(&unit->tasks, &resumed);
	if (--unit->outstanding == 0)
		pthread_cond_broadcast(&unit->idle);
	osd_unlock(&unit->lock);
	resume_all(resumed);
}

void osd_unit_requeue(struct osd_request *request)
{
	struct osd_unit *unit = request->unit;

	osd_lock(&unit->lock);
	enqueue(unit, request);
	call_worker(unit);
	osd_unlock(&unit->lock);
}

/* A request is resumed once its dispatcher has finished parking it and its resumer has called.  The
 * second of the two runs it at once, because each hand-over between threads costs the waiting
 * initiator a wake-up.  The exception: if the request would wait for FORMAT OSD, which may be
 * waiting for this very thread, a worker runs it. */
void osd_unit_resume(struct osd_request *request)
{
	struct osd_unit *unit = request->unit;

	if (__atomic_sub_fetch(&request->park_votes, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	if (request->again) {
		request->again = false;
		request->park_votes = 2;
		osd_unit_requeue(request);
		return;
	}
	if (osd_dispatch_resumed(unit->dispatcher, request, false) == OSD_DISPATCH_DONE) {
		osd_unit_finish(unit, request);
		return;
	}
	request->resumed = true;
	osd_unit_requeue(request);
}

static void run(struct osd_unit *unit, struct osd_request *request)
{
	enum osd_dispatch_result result;

	if (request->resumed)
		result = osd_dispatch_resumed(unit->dispatcher, request, true);
	else
		result = osd_dispatch(unit->dispatcher, request);
	if (result == OSD_DISPATCH_PARKED)
		osd_unit_resume(request);
	else if (result == OSD_DISPATCH_DONE)
		osd_unit_finish(unit, request); /* otherwise the request is not ours any more */
}

/* Runs a long command.  Threads with short work go first meanwhile. */
static void run_long(struct osd_unit *unit, struct osd_request *request)
{
	osd_thread_take_long_turns();
	run(unit, request);
	osd_thread_take_usual_turns();
}

/* ---- workers --------------------------------------------------------------------------------- */

/* Under lock, released meanwhile.  False: the worker has waited for long, and may end. */
static bool wait_for_work(struct osd_unit *unit)
{
	struct timespec until;
	int error = 0;

	osd_assert_held(&unit->lock);
	unit->idle_workers++;
	if (unit->threads <= LEAST_THREADS) {
		osd_cond_wait(&unit->ready, &unit->lock);
	} else {
		until = osd_timespec(osd_monotonic_usec() + LINGER_USEC);
		error = osd_cond_timedwait(&unit->ready, &unit->lock, &until);
	}
	unit->idle_workers--;
	unit->waking = false;
	return error != ETIMEDOUT || unit->threads <= LEAST_THREADS;
}

static void *worker_main(void *argument)
{
	struct osd_worker *worker = argument;
	struct osd_unit *unit = worker->unit;
	bool stays = true;

	osd_lock(&unit->lock);
	unit->waking = false;
	while (unit->threads <= threads_of(unit->wanted)) {
		struct osd_request *request = pop(unit);
		enum osd_command_span span;

		if (!request && !stays)
			break;
		stays = request || wait_for_work(unit);
		if (!request)
			continue;
		span = request->span; /* the request may have been freed when run() returns */
		call_worker(unit);
		osd_unlock(&unit->lock);
		if (span == OSD_SPAN_SHORT)
			run(unit, request);
		else
			run_long(unit, request);
		osd_lock(&unit->lock);
		unit->running--;
		unit->running_of[span]--;
	}
	worker->state = OSD_WORKER_ENDED;
	unit->threads--;
	call_worker(unit); /* the worker that was woken up may be this one */
	pthread_cond_broadcast(&unit->idle);
	osd_unlock(&unit->lock);
	return NULL;
}

/* Under lock.  A thread that has ended takes it no more. */
static void join_worker(struct osd_worker *worker)
{
	if (worker->state == OSD_WORKER_ENDED)
		pthread_join(worker->thread, NULL);
	worker->state = OSD_WORKER_FREE;
}

/* Under lock.  Starts another worker.  False: there can be no more. */
static bool start_worker(struct osd_unit *unit)
{
	struct osd_worker *worker = unit->workers;

	osd_assert_held(&unit->lock);
	while (worker->state == OSD_WORKER_RUNNING)
		worker++;
	join_worker(worker);
	worker->unit = unit;
	if (!osd_thread_start(&worker->thread, "iosd-worker", worker_main, worker))
		return false;
	worker->state = OSD_WORKER_RUNNING;
	unit->threads++;
	return true;
}

unsigned osd_unit_set_workers(struct osd_unit *unit, unsigned workers)
{
	bool good = true;

	osd_lock(&unit->lock);
	unit->wanted = OSD_MAX(1u, OSD_MIN(workers, (unsigned)OSD_WORKERS_MAX));
	while (good && unit->threads < LEAST_THREADS)
		good = start_worker(unit);
	if (unit->threads == 0)
		unit->wanted = 0;
	workers = unit->wanted;
	pthread_cond_broadcast(&unit->ready);
	call_worker(unit); /* a request may wait only because there were too few */
	osd_unlock(&unit->lock);
	return workers;
}

void osd_unit_reject(struct osd_unit *unit, enum osd_rejection why)
{
	osd_figures_reject(unit->figures, why);
}

void osd_unit_load(struct osd_unit *unit, struct osd_unit_load *ret_load)
{
	struct osd_unit_load load = {0};
	uint64_t now = osd_monotonic_nsec(), oldest;

	osd_lock(&unit->lock);
	load.workers = unit->wanted;
	load.busy = unit->running;
	for (enum osd_command_span span = OSD_SPAN_SHORT; span < OSD_SPANS; span++)
		load.queued += osd_queue_count(&unit->queue, span);
	oldest = osd_queue_oldest_ns(&unit->queue);
	if (oldest < now)
		load.oldest_usec = (now - oldest) / 1000;
	osd_unlock(&unit->lock);
	*ret_load = load;
}

void osd_unit_stop_workers(struct osd_unit *unit)
{
	osd_lock(&unit->lock);
	unit->wanted = 0;
	pthread_cond_broadcast(&unit->ready);
	while (unit->threads)
		osd_cond_wait(&unit->idle, &unit->lock);
	for (unsigned i = 0; i < OSD_WORKERS_MAX; i++)
		join_worker(&unit->workers[i]);
	osd_unlock(&unit->lock);
}

/* Runs urgent commands.  Task management must run even when all workers are busy with the commands
 * that it is to end. */
void osd_unit_urgent_work(void *argument)
{
	struct osd_unit *unit = argument;

	osd_lock(&unit->lock);
	while (unit->urgent_head) {
		struct osd_request *request = unit->urgent_head;

		unit->urgent_head = request->next;
		if (!unit->urgent_head)
			unit->urgent_tail = &unit->urgent_head;
		osd_unlock(&unit->lock);
		run(unit, request);
		osd_lock(&unit->lock);
	}
	osd_unlock(&unit->lock);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Calls the worker after releasing the lock: otherwise it would wake up only to wait for the lock.
 * The condition still exists then, because the submitter also closes the unit, or has ended before
 * that. */
void osd_unit_queue(struct osd_unit *unit, const struct osd_command_def *def,
		    struct osd_request *request)
{
	bool call = false;

	osd_lock(&unit->lock);
	/* The helper takes the lock first.  Without a helper thread the command is queued like any
	 * other. */
	if (def && def->flags & OSD_CMD_URGENT && osd_helper_call(&unit->urgent)) {
		request->next = NULL;
		*unit->urgent_tail = request;
		unit->urgent_tail = &request->next;
	} else {
		enqueue(unit, request);
		call = wants_worker(unit);
	}
	osd_unlock(&unit->lock);
	if (call)
		pthread_cond_signal(&unit->ready);
}

void osd_unit_abort(struct osd_unit *unit, struct osd_request *request)
{
	struct osd_request *resumed = NULL;

	osd_lock(&unit->lock);
	osd_tasks_abort(&unit->tasks, request, &resumed);
	osd_unlock(&unit->lock);
	osd_dispatch_aborted(unit->dispatcher);
	resume_all(resumed);
}

enum osd_status osd_unit_manage_tasks(struct osd_request *asker, uint8_t function, uint64_t tag,
					enum osd_task_response *ret_response)
{
	struct osd_unit *unit = asker->unit;
	struct osd_request *resumed = NULL;
	enum osd_status status;

	osd_lock(&unit->lock);
	status = osd_tasks_manage(&unit->tasks, asker, function, tag, ret_response, &resumed);
	osd_unlock(&unit->lock);
	osd_dispatch_aborted(unit->dispatcher);
	resume_all(resumed);
	return status;
}

const uint8_t *osd_unit_token(const struct osd_unit *unit)
{
	return unit->token;
}

const uint8_t *osd_unit_system_id(const struct osd_unit *unit)
{
	return osd_objects_system_id(unit->objects);
}

const char *osd_unit_serial(const struct osd_unit *unit)
{
	return osd_objects_serial(unit->objects);
}

uint64_t osd_unit_capacity(struct osd_unit *unit)
{
	struct osd_objects_stats stats;

	osd_objects_stats(unit->objects, &stats);
	return stats.capacity_bytes;
}
