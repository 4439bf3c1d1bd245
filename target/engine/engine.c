/* SPDX-License-Identifier: GPL-2.0-or-later */
/* engine.c -- see engine.h.
 * Lives here: the queue, the pool of workers, parking and resuming, the order of opening and
 * closing.
 * Not here: what a request means (command/dispatch.c).
 *
 * Locks: engine->lock guards the queue, the pool and the counters and is held for a few
 * instructions only, never across a dispatch. */
#include "engine/engine.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "command/dispatch.h"
#include "engine/control.h"
#include "engine/figures.h"
#include "engine/tasks.h"
#include "exec/exec.h"
#include "security/keys.h"
#include "security/nonce.h"
#include "wire/cursor.h"

#define INLINE_WINDOW_NS UINT64_C(100000)
#define INLINE_BUDGET_NS UINT64_C(50000)
/* Commands that follow each other this closely come from a queue, not from one round trip after the
 * other: then large ones go to the workers, and two processors copy. */
#define PIPELINED_GAP_NS UINT64_C(20000)
#define PIPELINED_BYTES	 (16u << 10)

enum worker_state { WORKER_FREE, WORKER_RUNNING, WORKER_ENDED /* to be joined */ };

struct worker {
	struct osd_engine *engine;
	pthread_t thread;
	unsigned index;
	enum worker_state state; /* under engine->lock */
};

struct osd_engine {
	struct osd_objects *objects;
	struct osd_keyring *keyring;
	struct osd_nonces *nonces;
	struct osd_exec *exec;
	struct osd_dispatcher *dispatcher;
	struct osd_figures *figures;
	struct osd_control *control; /* NULL: there is no such socket */

	pthread_mutex_t lock;
	pthread_cond_t ready; /* the queue is not empty, or a worker shall look whether to go */
	pthread_cond_t idle;  /* outstanding became 0 */
	struct osd_request *head, **tail; /* under lock; linked by request->next */
	unsigned idle_workers;		  /* under lock; waiting for work */
	bool waking;		/* under lock; one of them has been called and is on its way */
	unsigned queued;	/* changed under lock; atomic, read without it */
	size_t outstanding;	/* under lock; submitted and not done, parked ones too */
	struct osd_tasks tasks; /* under lock; the same */
	char *hold;		/* owned */
	uint8_t token[OSD_SECURITY_TOKEN_BYTES];
	pthread_t background, urgent;
	bool background_runs, urgent_runs;		/* by open, for close */
	pthread_cond_t urgent_ready;			/* urgent_head is not NULL, or stop */
	struct osd_request *urgent_head, **urgent_tail; /* under lock */
	bool stop_urgent;				/* under lock */
	unsigned wanted; /* under lock; workers with an index below stay */
	struct worker workers[OSD_WORKERS_MAX];

	/* Of the thread that calls osd_engine_try, which is one. */
	uint64_t window_start_ns, window_spent_ns, last_end_ns;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- queue ----------------------------------------------------------------------------------- */

/* Under lock.  Calls one worker, and it calls the next if it finds more than it takes: a burst
 * costs the submitter one wake-up, and no more workers run than there is work for. */
static void call_worker(struct osd_engine *engine)
{
	if (!engine->head || !engine->idle_workers || engine->waking)
		return;
	engine->waking = true;
	pthread_cond_signal(&engine->ready);
}

/* Under lock. */
static void push(struct osd_engine *engine, struct osd_request *request)
{
	request->next = NULL;
	*engine->tail = request;
	engine->tail = &request->next;
	__atomic_add_fetch(&engine->queued, 1, __ATOMIC_RELAXED);
	call_worker(engine);
}

/* Under lock; the queue is not empty. */
static struct osd_request *pop(struct osd_engine *engine)
{
	struct osd_request *request = engine->head;

	engine->head = request->next;
	if (!engine->head)
		engine->tail = &engine->head;
	request->next = NULL;
	__atomic_sub_fetch(&engine->queued, 1, __ATOMIC_RELAXED);
	return request;
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

static void requeue(struct osd_request *request)
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

/* ---- workers --------------------------------------------------------------------------------- */

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	struct osd_engine *engine = worker->engine;

	pthread_mutex_lock(&engine->lock);
	while (worker->index < engine->wanted) {
		if (!engine->head) {
			engine->idle_workers++;
			pthread_cond_wait(&engine->ready, &engine->lock);
			engine->idle_workers--;
			engine->waking = false;
			continue;
		}
		struct osd_request *request = pop(engine);

		call_worker(engine);
		pthread_mutex_unlock(&engine->lock);
		run(engine, request);
		pthread_mutex_lock(&engine->lock);
	}
	worker->state = WORKER_ENDED;
	call_worker(engine); /* the one that was called may be this one */
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

static bool start_worker(struct osd_engine *engine, unsigned index)
{
	struct worker *worker = &engine->workers[index];
	bool started;

	worker->engine = engine;
	worker->index = index;
	worker->state = WORKER_RUNNING;
	started = osd_thread_start(&worker->thread, "iosd-worker", worker_main, worker);
	if (!started)
		worker->state = WORKER_FREE;
	return started;
}

/* Under lock; drops it while joining threads that have left their loop. */
static void join_ended(struct osd_engine *engine)
{
	for (unsigned i = 0; i < OSD_WORKERS_MAX; i++) {
		struct worker *worker = &engine->workers[i];

		if (worker->state != WORKER_ENDED)
			continue;
		worker->state = WORKER_FREE;
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
	for (unsigned i = 0; i < workers; i++) {
		if (engine->workers[i].state != WORKER_FREE)
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
	uint64_t now = now_ns();

	pthread_mutex_lock(&engine->lock);
	load.workers = engine->wanted;
	for (unsigned i = 0; i < OSD_WORKERS_MAX; i++)
		load.busy += engine->workers[i].state == WORKER_RUNNING;
	load.busy -= engine->idle_workers;
	load.queued = engine->queued;
	if (engine->head && now > engine->head->submitted_ns)
		load.oldest_usec = (now - engine->head->submitted_ns) / 1000;
	pthread_mutex_unlock(&engine->lock);
	*ret_load = load;
}

static bool has_thread(struct osd_engine *engine, unsigned index)
{
	bool has;

	pthread_mutex_lock(&engine->lock);
	has = engine->workers[index].state != WORKER_FREE;
	pthread_mutex_unlock(&engine->lock);
	return has;
}

static void stop_workers(struct osd_engine *engine)
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

/* Task management has a thread of its own: it must get through when every worker is busy with what it
 * shall end. */
static bool is_urgent(const struct osd_request *request)
{
	return request->cdb_length == OSD_CDB_LENGTH &&
	       osd_get_be(request->cdb + 8, 2) == OSD_SA_PERFORM_TASK_MANAGEMENT_FUNCTION;
}

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

static bool start_others(struct osd_engine *engine)
{
	engine->background_runs =
		osd_thread_start(&engine->background, "iosd-background", background_main, engine);
	engine->urgent_runs = osd_thread_start(&engine->urgent, "iosd-urgent", urgent_main, engine);
	return engine->background_runs && engine->urgent_runs;
}

static void stop_others(struct osd_engine *engine)
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

void osd_engine_submit(struct osd_engine *engine, struct osd_request *request)
{
	request->engine = engine;
	request->park_votes = 2;
	request->resumed = false;
	request->submitted_ns = now_ns();
	pthread_mutex_lock(&engine->lock);
	osd_tasks_add(&engine->tasks, request);
	engine->outstanding++;
	if (is_urgent(request)) {
		request->next = NULL;
		*engine->urgent_tail = request;
		engine->urgent_tail = &request->next;
		pthread_cond_signal(&engine->urgent_ready);
	} else {
		push(engine, request);
	}
	pthread_mutex_unlock(&engine->lock);
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

uint64_t osd_engine_capacity(struct osd_engine *engine)
{
	struct osd_objects_stats stats;

	osd_objects_stats(engine->objects, &stats);
	return stats.capacity_bytes;
}

/* ---- open and close -------------------------------------------------------------------------- */

/* How many ordinary commands wait for a worker: sandboxes' calls let them go first (design D22). */
static unsigned commands_queued(void *context)
{
	struct osd_engine *engine = context;

	return __atomic_load_n(&engine->queued, __ATOMIC_RELAXED);
}

static enum osd_status open_objects(struct osd_engine *engine, const struct osd_config *config,
				    char message[256])
{
	struct osd_heads_config heads = config->heads;
	struct osd_objects_config objects = {
		.directory = config->memory ? NULL : config->directory,
		.heads = &heads,
		.ssd_directory = config->ssd_directory,
		.on_ssd_loss = config->on_ssd_loss,
		.io = config->io,
		.create = config->create,
		.capacity_bytes = config->capacity_bytes,
		.cache_bytes = config->cache_bytes,
		.durability = config->durability,
		.strict = config->strict,
		.method = config->security,
		.unsafe_nosync = config->unsafe_nosync,
		.fault_at = config->fault,
		.fault_kill = config->fault_kill,
		.model = config->model,
		.product_serial = config->serial,
	};

	if (config->model)
		osd_warning(
			"the disks of this store are simulated (model=%s): it is as slow as they "
			"are",
			config->model);
	heads.commands_queued = commands_queued;
	heads.context = engine;
	return osd_objects_open(&objects, message, &engine->objects);
}

static enum osd_status open_security(struct osd_engine *engine, const struct osd_config *config,
				     char message[256])
{
	enum osd_status status =
		osd_keyring_open(engine->objects, config->master_key, message, &engine->keyring);

	if (status != OSD_OK)
		return status;
	status = osd_nonces_open(engine->objects, engine->keyring, &engine->nonces);
	if (status != OSD_OK)
		snprintf(message, 256, "cannot start the thread that keeps times of nonces");
	return status;
}

static void jobs_wait(void *context)
{
	struct osd_engine *engine = context;

	if (engine->control)
		osd_control_jobs_wait(engine->control);
}

static enum osd_status open_exec(struct osd_engine *engine, const struct osd_config *config,
				 char message[256])
{
	struct osd_exec_config exec = {
		.objects = engine->objects,
		.keyring = engine->keyring,
		.sandboxd = config->sandboxd,
		.isolation = config->isolation,
		.pools = config->pools,
		.reuse = config->reuse,
		.allow_bytecode = config->allow_bytecode,
		.queue_principal = config->queue_principal,
		.slots = (unsigned)config->slots,
		.commands_queued = commands_queued,
		.jobs_wait = jobs_wait,
		.context = engine,
	};

	return osd_exec_open(&exec, message, &engine->exec);
}

/* What beyond loopback is only done on demand: serving whom nobody knows. */
static enum osd_status check_secure(struct osd_engine *engine, const struct osd_config *config,
				    char message[256])
{
	struct osd_policy root;
	enum osd_status status = osd_keyring_policy(engine->keyring, 0, false, &root);

	if (status != OSD_OK)
		snprintf(message, 256, "cannot read the store's security methods: %s",
			 osd_status_info(status)->meaning);
	if (status != OSD_OK || !config->secure ||
	    (root.method != OSD_NOSEC && root.inside_method != OSD_NOSEC))
		return status;
	snprintf(message, 256,
		 "this store asks for no capabilities: the security method of its %s is NOSEC. "
		 "Serve it "
		 "on loopback and raise it, or say --security nosec",
		 root.method == OSD_NOSEC ? "root" : "new partitions");
	return OSD_E_PARAM_FIELD;
}

/* The one given, in hex, or one nobody has seen. */
static bool find_token(const char *hex, uint8_t token[OSD_SECURITY_TOKEN_BYTES])
{
	char byte[3] = "", *end;

	if (!hex) {
		osd_random_bytes(token, OSD_SECURITY_TOKEN_BYTES);
		return true;
	}
	for (size_t i = 0; i < OSD_SECURITY_TOKEN_BYTES; i++) {
		memcpy(byte, hex + 2 * i, 2);
		token[i] = (uint8_t)strtoul(byte, &end, 16);
		if (end != byte + 2)
			return false;
	}
	return true;
}

static enum osd_status open_dispatcher(struct osd_engine *engine, const struct osd_config *config)
{
	struct osd_dispatcher_config dispatcher = {
		.objects = engine->objects,
		.exec = engine->exec,
		.keyring = engine->keyring,
		.nonces = engine->nonces,
		.resume = osd_engine_resume,
		.requeue = requeue,
		.osc_compat = config->osc_compat,
		.strict = config->strict,
		.osc_list_e = config->osc_list_e,
		.manage_tasks = osd_engine_manage_tasks,
		.hold = engine->hold,
	};

	if (!find_token(config->token, engine->token))
		return OSD_E_PARAM_FIELD;
	memcpy(dispatcher.token, engine->token, sizeof(engine->token));
	return osd_dispatcher_create(&dispatcher, &engine->dispatcher);
}

static struct osd_engine *engine_create(void)
{
	struct osd_engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	pthread_mutex_init(&engine->lock, NULL);
	pthread_cond_init(&engine->ready, NULL);
	pthread_cond_init(&engine->idle, NULL);
	pthread_cond_init(&engine->urgent_ready, NULL);
	engine->tail = &engine->head;
	engine->urgent_tail = &engine->urgent_head;
	return engine;
}

static void engine_closep(struct osd_engine **engine)
{
	osd_engine_close(*engine);
}

/* Last: it shows all the others. */
static enum osd_status start_control(struct osd_engine *engine, const struct osd_config *config,
				     char message[256])
{
	struct osd_control_targets targets = {
		.engine = engine,
		.objects = engine->objects,
		.exec = engine->exec,
		.figures = engine->figures,
		.faults = config->fault,
	};

	if (!config->control)
		return OSD_OK;
	return osd_control_start(engine->control, config->control, &targets, message);
}

enum osd_status osd_engine_open(const struct osd_config *config, char message[256],
				struct osd_engine **ret_engine)
{
	OSD_CLEANUP(engine_closep) struct osd_engine *engine = engine_create();
	enum osd_status status;

	snprintf(message, 256, "out of memory");
	if (!engine)
		return OSD_E_NO_MEMORY;
	engine->figures = osd_figures_create();
	engine->control = config->control ? osd_control_create() : NULL;
	if (!engine->figures || (config->control && !engine->control))
		return OSD_E_NO_MEMORY;
	engine->hold = config->hold ? strdup(config->hold) : NULL;
	status = open_objects(engine, config, message);
	if (status == OSD_OK)
		status = open_security(engine, config, message);
	if (status == OSD_OK)
		status = check_secure(engine, config, message);
	if (status == OSD_OK)
		status = open_exec(engine, config, message);
	if (status != OSD_OK)
		return status;
	status = open_dispatcher(engine, config);
	if (status != OSD_OK) {
		snprintf(message, 256, "cannot start: %s", osd_status_info(status)->meaning);
		return status;
	}
	status = osd_dispatch_recover(engine->dispatcher);
	if (status != OSD_OK) {
		snprintf(message, 256, "cannot take up the commands of the last run: %s",
			 osd_status_info(status)->meaning);
		return status;
	}
	if (!start_others(engine) ||
	    osd_engine_set_workers(engine, (unsigned)config->workers) == 0) {
		snprintf(message, 256, "cannot start worker threads");
		return OSD_E_NO_MEMORY;
	}
	status = start_control(engine, config, message);
	if (status != OSD_OK)
		return status;
	message[0] = '\0';
	*ret_engine = OSD_STEAL(engine);
	return OSD_OK;
}

void osd_engine_close(struct osd_engine *engine)
{
	if (!engine)
		return;
	osd_control_stop(engine->control);
	if (engine->exec)
		osd_exec_quiesce(engine->exec); /* so that waiting commands end */
	pthread_mutex_lock(&engine->lock);
	while (engine->outstanding)
		pthread_cond_wait(&engine->idle, &engine->lock);
	pthread_mutex_unlock(&engine->lock);
	stop_workers(engine);
	stop_others(engine);
	osd_dispatcher_free(engine->dispatcher);
	osd_exec_close(engine->exec);
	osd_nonces_close(engine->nonces);
	osd_keyring_close(engine->keyring);
	osd_objects_close(engine->objects);
	osd_control_free(engine->control);
	osd_figures_free(engine->figures);
	free(engine->hold);
	pthread_cond_destroy(&engine->urgent_ready);
	pthread_cond_destroy(&engine->idle);
	pthread_cond_destroy(&engine->ready);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}
