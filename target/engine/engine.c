/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine.c -- see engine.h and engine_impl.h.
 * Lives here: the queue, the pool of workers, parking and resuming.
 * Not here: opening and closing (engine_open.c), what a request means (command/dispatch.c). */
#include "engine/engine_impl.h"

#include <time.h>

#include "base/thread.h"
#include "base/util.h"
#include "command/table.h"
#include "engine/figures.h"

#define INLINE_WINDOW_NS UINT64_C(100000)
#define INLINE_BUDGET_NS UINT64_C(50000)
/* Commands that follow each other this closely come from a queue, not from one round trip after the
 * other: then large ones go to the workers, and two processors copy. */
#define PIPELINED_GAP_NS UINT64_C(20000)
#define PIPELINED_BYTES	 (16u << 10)

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- queue ----------------------------------------------------------------------------------- */

/* A single worker has a second thread beside it, for short commands while it is at a long one. */
static unsigned threads_of(unsigned workers)
{
	return workers == 1 ? 2 : workers;
}

/* Under lock. */
static unsigned running_long(const struct osd_engine *engine)
{
	return engine->running_of[OSD_SPAN_LONG] + engine->running_of[OSD_SPAN_MOVES];
}

/* Under lock. */
static bool may_run_short(const struct osd_engine *engine)
{
	return engine->running < OSD_MAX(engine->wanted, running_long(engine) + 1);
}

/* Under lock. */
static bool may_run_long(const struct osd_engine *engine, enum osd_command_span span)
{
	unsigned others = engine->wanted > 1 ? engine->wanted - 1 : 1;

	return engine->running < engine->wanted && running_long(engine) < others &&
	       engine->running_of[span] < engine->most_of[span];
}

/* Under lock.  The span of the request that a free worker takes now: of those that may run the one that has
 * waited longest.  False: there is none. */
static bool choose(const struct osd_engine *engine, enum osd_command_span *ret_span)
{
	const struct osd_request *found = osd_queue_peek(&engine->queue, OSD_SPAN_SHORT);

	*ret_span = OSD_SPAN_SHORT;
	if (found && !may_run_short(engine))
		found = NULL;
	if (!osd_queue_count(&engine->queue, OSD_SPAN_LONG) &&
	    !osd_queue_count(&engine->queue, OSD_SPAN_MOVES))
		return found != NULL;
	for (enum osd_command_span span = OSD_SPAN_LONG; span < OSD_SPANS; span++) {
		const struct osd_request *next = osd_queue_peek(&engine->queue, span);

		if (!next || (found && found->submitted_ns <= next->submitted_ns) ||
		    !may_run_long(engine, span))
			continue;
		found = next;
		*ret_span = span;
	}
	return found != NULL;
}

/* Under lock.  Whether a worker is to be called.  One is, and it calls the next if it finds more than it
 * takes: a burst costs the submitter one wake-up, and no more workers run than there is work for. */
static bool wants_worker(struct osd_engine *engine)
{
	enum osd_command_span ignored;

	if (!engine->idle_workers || engine->waking || !choose(engine, &ignored))
		return false;
	engine->waking = true;
	return true;
}

/* Under lock. */
static void call_worker(struct osd_engine *engine)
{
	if (wants_worker(engine))
		pthread_cond_signal(&engine->ready);
}

/* Under lock. */
static void enqueue(struct osd_engine *engine, struct osd_request *request)
{
	osd_queue_add(&engine->queue, request->span, request);
	if (request->span == OSD_SPAN_SHORT)
		__atomic_add_fetch(&engine->queued, 1, __ATOMIC_RELAXED);
}

/* Under lock. */
static void push(struct osd_engine *engine, struct osd_request *request)
{
	enqueue(engine, request);
	call_worker(engine);
}

/* Under lock.  NULL: nothing waits that may run now. */
static struct osd_request *pop(struct osd_engine *engine)
{
	enum osd_command_span span;

	if (!choose(engine, &span))
		return NULL;
	if (span == OSD_SPAN_SHORT)
		__atomic_sub_fetch(&engine->queued, 1, __ATOMIC_RELAXED);
	engine->running_of[span]++;
	engine->running++;
	return osd_queue_take(&engine->queue, span);
}

static void resume_all(struct osd_request *resumed)
{
	while (resumed) {
		struct osd_request *request = resumed;

		resumed = request->next;
		osd_engine_resume(request);
	}
}

static void finish(struct osd_engine *engine, struct osd_request *request)
{
	struct osd_request stand_in, *resumed = NULL;

	osd_figures_note(engine->figures, request, now_ns());
	pthread_mutex_lock(&engine->lock);
	osd_tasks_replace(&engine->tasks, request, &stand_in);
	pthread_mutex_unlock(&engine->lock);
	request->done(request); /* the front end may free it */
	pthread_mutex_lock(&engine->lock);
	osd_tasks_remove(&engine->tasks, &stand_in);
	if (engine->tasks.asking)
		osd_tasks_settle(&engine->tasks, &resumed);
	if (--engine->outstanding == 0)
		pthread_cond_broadcast(&engine->idle);
	pthread_mutex_unlock(&engine->lock);
	resume_all(resumed);
}

/* A request is resumed when both its dispatcher has finished parking it and its resumer has
 * called: the second of the two goes on with it, at once, because every hand-over between
 * threads costs the waiting initiator a wake-up.  Only where that would have to wait for FORMAT
 * OSD, which may be waiting for this very thread, a worker does. */
static void park_vote(struct osd_request *request)
{
	struct osd_engine *engine = request->engine;

	if (__atomic_sub_fetch(&request->park_votes, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	if (osd_dispatch_resumed(engine->dispatcher, request, false) == OSD_DISPATCH_DONE) {
		finish(engine, request);
		return;
	}
	pthread_mutex_lock(&engine->lock);
	request->resumed = true;
	push(engine, request);
	pthread_mutex_unlock(&engine->lock);
}

void osd_engine_requeue(struct osd_request *request)
{
	struct osd_engine *engine = request->engine;

	pthread_mutex_lock(&engine->lock);
	push(engine, request);
	pthread_mutex_unlock(&engine->lock);
}

static void run(struct osd_engine *engine, struct osd_request *request)
{
	enum osd_dispatch_result result;

	if (request->resumed)
		result = osd_dispatch_resumed(engine->dispatcher, request, true);
	else
		result = osd_dispatch(engine->dispatcher, request);
	if (result == OSD_DISPATCH_PARKED)
		park_vote(request);
	else if (result == OSD_DISPATCH_DONE)
		finish(engine, request); /* else it is not ours any more */
}

/* While it is at it, threads that want little go first. */
static void run_long(struct osd_engine *engine, struct osd_request *request)
{
	osd_thread_take_long_turns();
	run(engine, request);
	osd_thread_take_usual_turns();
}

/* ---- workers --------------------------------------------------------------------------------- */

static void *worker_main(void *argument)
{
	struct osd_worker *worker = argument;
	struct osd_engine *engine = worker->engine;

	pthread_mutex_lock(&engine->lock);
	while (worker->index < threads_of(engine->wanted)) {
		struct osd_request *request = pop(engine);
		enum osd_command_span span;

		if (!request) {
			engine->idle_workers++;
			pthread_cond_wait(&engine->ready, &engine->lock);
			engine->idle_workers--;
			engine->waking = false;
			continue;
		}
		span = request->span; /* the request may be gone when it has run */
		call_worker(engine);
		pthread_mutex_unlock(&engine->lock);
		if (span == OSD_SPAN_SHORT)
			run(engine, request);
		else
			run_long(engine, request);
		pthread_mutex_lock(&engine->lock);
		engine->running--;
		engine->running_of[span]--;
	}
	worker->state = OSD_WORKER_ENDED;
	call_worker(engine); /* the one that was called may be this one */
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

static bool start_worker(struct osd_engine *engine, unsigned index)
{
	struct osd_worker *worker = &engine->workers[index];
	bool started;

	worker->engine = engine;
	worker->index = index;
	worker->state = OSD_WORKER_RUNNING;
	started = osd_thread_start(&worker->thread, "iosd-worker", worker_main, worker);
	if (!started)
		worker->state = OSD_WORKER_FREE;
	return started;
}

/* Under lock; drops it while joining threads that have left their loop. */
static void join_ended(struct osd_engine *engine)
{
	for (unsigned i = 0; i < OSD_WORKERS_MAX; i++) {
		struct osd_worker *worker = &engine->workers[i];

		if (worker->state != OSD_WORKER_ENDED)
			continue;
		worker->state = OSD_WORKER_FREE;
		pthread_mutex_unlock(&engine->lock);
		pthread_join(worker->thread, NULL);
		pthread_mutex_lock(&engine->lock);
	}
}

unsigned osd_engine_set_workers(struct osd_engine *engine, unsigned workers)
{
	workers = OSD_MAX(1u, OSD_MIN(workers, (unsigned)OSD_WORKERS_MAX));
	pthread_mutex_lock(&engine->lock);
	engine->wanted = workers;
	join_ended(engine);
	for (unsigned i = 0; i < threads_of(workers); i++) {
		if (engine->workers[i].state != OSD_WORKER_FREE)
			continue;
		if (!start_worker(engine, i)) {
			engine->wanted = i;
			break;
		}
	}
	workers = engine->wanted;
	pthread_cond_broadcast(&engine->ready);
	pthread_mutex_unlock(&engine->lock);
	return workers;
}

void osd_engine_reject(struct osd_engine *engine, enum osd_rejection why)
{
	osd_figures_reject(engine->figures, why);
}

void osd_engine_load(struct osd_engine *engine, struct osd_engine_load *ret_load)
{
	struct osd_engine_load load = {0};
	uint64_t now = now_ns(), oldest;

	pthread_mutex_lock(&engine->lock);
	load.workers = engine->wanted;
	load.busy = engine->running;
	for (enum osd_command_span span = OSD_SPAN_SHORT; span < OSD_SPANS; span++)
		load.queued += osd_queue_count(&engine->queue, span);
	oldest = osd_queue_oldest_ns(&engine->queue);
	if (oldest < now)
		load.oldest_usec = (now - oldest) / 1000;
	pthread_mutex_unlock(&engine->lock);
	*ret_load = load;
}

static bool has_thread(struct osd_engine *engine, unsigned index)
{
	bool has;

	pthread_mutex_lock(&engine->lock);
	has = engine->workers[index].state != OSD_WORKER_FREE;
	pthread_mutex_unlock(&engine->lock);
	return has;
}

void osd_engine_stop_workers(struct osd_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	engine->wanted = 0;
	pthread_cond_broadcast(&engine->ready);
	pthread_mutex_unlock(&engine->lock);
	for (unsigned i = 0; i < OSD_WORKERS_MAX; i++) {
		if (has_thread(engine, i))
			pthread_join(engine->workers[i].thread, NULL);
	}
}

/* Runs urgent commands: task management must get through when every worker is busy with the commands that
 * it shall end. */
static void *urgent_main(void *argument)
{
	struct osd_engine *engine = argument;

	pthread_mutex_lock(&engine->lock);
	while (engine->urgent_head || !engine->stop_urgent) {
		struct osd_request *request = engine->urgent_head;

		if (!request) {
			pthread_cond_wait(&engine->urgent_ready, &engine->lock);
			continue;
		}
		engine->urgent_head = request->next;
		if (!engine->urgent_head)
			engine->urgent_tail = &engine->urgent_head;
		pthread_mutex_unlock(&engine->lock);
		run(engine, request);
		pthread_mutex_lock(&engine->lock);
	}
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

static void *background_main(void *argument)
{
	struct osd_engine *engine = argument;

	while (osd_dispatch_background(engine->dispatcher))
		;
	return NULL;
}

bool osd_engine_start_others(struct osd_engine *engine)
{
	engine->background_runs =
		osd_thread_start(&engine->background, "iosd-background", background_main, engine);
	engine->urgent_runs = osd_thread_start(&engine->urgent, "iosd-urgent", urgent_main, engine);
	return engine->background_runs && engine->urgent_runs;
}

void osd_engine_stop_others(struct osd_engine *engine)
{
	if (engine->background_runs) {
		osd_dispatch_stop_background(engine->dispatcher);
		pthread_join(engine->background, NULL);
	}
	if (!engine->urgent_runs)
		return;
	pthread_mutex_lock(&engine->lock);
	engine->stop_urgent = true;
	pthread_cond_signal(&engine->urgent_ready);
	pthread_mutex_unlock(&engine->lock);
	pthread_join(engine->urgent, NULL);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The worker is called without the lock, or it would wake up to wait for it.  Whoever submits closes the
 * engine, too, or has ended by then: the condition is still there. */
void osd_engine_submit(struct osd_engine *engine, struct osd_request *request)
{
	const struct osd_command_def *def = osd_command_of(request->cdb, request->cdb_length);
	bool call = false;

	request->engine = engine;
	request->park_votes = 2;
	request->resumed = false;
	request->submitted_ns = now_ns();
	request->span = osd_command_span(def, request);
	pthread_mutex_lock(&engine->lock);
	osd_tasks_add(&engine->tasks, request);
	engine->outstanding++;
	if (def && def->flags & OSD_CMD_URGENT) {
		request->next = NULL;
		*engine->urgent_tail = request;
		engine->urgent_tail = &request->next;
		pthread_cond_signal(&engine->urgent_ready);
	} else {
		enqueue(engine, request);
		call = wants_worker(engine);
	}
	pthread_mutex_unlock(&engine->lock);
	if (call)
		pthread_cond_signal(&engine->ready);
}

bool osd_engine_try(struct osd_engine *engine, struct osd_request *request)
{
	uint64_t start = now_ns();
	bool done;

	if (start - engine->window_start_ns > INLINE_WINDOW_NS) {
		engine->window_start_ns = start;
		engine->window_spent_ns = 0;
	}
	if (engine->window_spent_ns >= INLINE_BUDGET_NS)
		return false;
	if (request->data_in_capacity > PIPELINED_BYTES &&
	    start - engine->last_end_ns < PIPELINED_GAP_NS)
		return false;
	request->engine = engine;
	request->submitted_ns = start;
	done = osd_dispatch_inline(engine->dispatcher, request) == OSD_DISPATCH_DONE;
	engine->last_end_ns = now_ns();
	engine->window_spent_ns += engine->last_end_ns - start;
	if (done)
		osd_figures_note(engine->figures, request, engine->last_end_ns);
	return done;
}

void osd_engine_resume(struct osd_request *request)
{
	park_vote(request);
}

void osd_engine_abort(struct osd_engine *engine, struct osd_request *request)
{
	struct osd_request *resumed = NULL;

	pthread_mutex_lock(&engine->lock);
	osd_tasks_abort(&engine->tasks, request, &resumed);
	pthread_mutex_unlock(&engine->lock);
	osd_dispatch_aborted(engine->dispatcher);
	resume_all(resumed);
}

enum osd_status osd_engine_manage_tasks(struct osd_request *asker, uint8_t function, uint64_t tag,
					enum osd_task_response *ret_response)
{
	struct osd_engine *engine = asker->engine;
	struct osd_request *resumed = NULL;
	enum osd_status status;

	pthread_mutex_lock(&engine->lock);
	status = osd_tasks_manage(&engine->tasks, asker, function, tag, ret_response, &resumed);
	pthread_mutex_unlock(&engine->lock);
	osd_dispatch_aborted(engine->dispatcher);
	resume_all(resumed);
	return status;
}

const uint8_t *osd_engine_token(const struct osd_engine *engine)
{
	return engine->token;
}

const uint8_t *osd_engine_system_id(const struct osd_engine *engine)
{
	return osd_objects_system_id(engine->objects);
}

const char *osd_engine_serial(const struct osd_engine *engine)
{
	return osd_objects_serial(engine->objects);
}

uint64_t osd_engine_capacity(struct osd_engine *engine)
{
	struct osd_objects_stats stats;

	osd_objects_stats(engine->objects, &stats);
	return stats.capacity_bytes;
}
