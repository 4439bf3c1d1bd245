/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures_json.c -- pools, jobs and sandboxes as SNAPSHOT shows them (docs/control.md).  Figures
 * under exec->lock are copied first, one pool at a time, so that jobs do not wait for the text. */
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/pool/pool.h"
#include "exec/run/run.h"
#include "exec/tell/tell.h"
#include "function/function.h"
#include "function/kept.h"
#include "wire/json.h"

#define SANDBOX_STATES OSD_SANDBOX_GONE

/* A pool as it is at one time. */
struct view {
	struct osd_pool_config config;
	struct osd_pool_figures figures;
	struct osd_supply_figures supply;
	enum osd_pool_mode mode;
	bool gone, serving;
	char why[OSD_POOL_WHY_MAX];
	unsigned active, busy;
	uint64_t queued, places, jobs, oldest_usec;
	uint64_t sandboxes[SANDBOX_STATES];
	uint64_t memory_used;
	uint64_t paced_bytes, held_usec;
};

/* ---- reading --------------------------------------------------------------------------------- */

static void view_sandboxes(const struct osd_exec *exec, const struct osd_pool *pool,
			   struct view *view)
{
	osd_assert_held(&exec->lock);
	for (const struct osd_sandbox *s = exec->sandboxes->list; s; s = s->next) {
		if (s->supply != &pool->supply || s->state >= SANDBOX_STATES)
			continue;
		view->sandboxes[s->state]++;
		if (s->shm && !s->dead) /* its own word: no more than it may have */
			view->memory_used +=
				OSD_MIN(atomic_load(&s->shm->peak_bytes), s->limits.memory_bytes);
	}
}

static void view_pool(const struct osd_exec *exec, const struct osd_pool *pool, struct view *view)
{
	/* since is UINT64_MAX if no job waits. */
	uint64_t now = osd_monotonic_usec(), since = osd_fair_queue_oldest(&pool->queue);

	osd_assert_held(&exec->lock);
	*view = (struct view){
		.config = pool->config,
		.mode = pool->mode,
		.gone = pool->gone,
		.serving = pool->supply.serving,
		.active = pool->supply.active,
		.busy = pool->supply.busy,
		.queued = osd_fair_queue_runnable(&pool->queue),
		.places = pool->queue.place_count,
		.jobs = pool->jobs,
		.oldest_usec = now > since ? now - since : 0,
		.paced_bytes = atomic_load(&pool->pace.bytes),
		.held_usec = atomic_load(&pool->pace.held_usec),
	};
	memcpy(&view->figures, &pool->figures, sizeof(view->figures));
	view->supply = pool->supply.figures;
	memcpy(view->why, pool->failed ? pool->why : pool->supply.lacking, sizeof(view->why));
	view_sandboxes(exec, pool, view);
}

bool osd_exec_jobs_wait(struct osd_exec *exec)
{
	bool wait = false;

	osd_lock(&exec->lock);
	for (const struct osd_pool *pool = exec->pools->first; pool && !wait; pool = pool->next)
		wait = pool->supply.serving && pool->mode != OSD_POOL_PAUSED &&
		       osd_fair_queue_runnable(&pool->queue) > 0;
	osd_unlock(&exec->lock);
	return wait;
}

void osd_exec_stats(struct osd_exec *exec, struct osd_exec_stats *ret_stats)
{
	size_t places;

	osd_lock(&exec->lock);
	places = osd_pools_places(exec);
	*ret_stats = (struct osd_exec_stats){
		/* With those that wait for other jobs, or are being accepted. */
		.queued = places - OSD_MIN(exec->held_count, places),
		.held = exec->held_count,
		.running = exec->running_count,
		.accepted = exec->pools->accepted,
		.finished = exec->pools->finished,
		.lost = exec->pools->lost,
		.retry_after_msec = osd_pool_retry_after(exec->pools->first),
		.service_connected = exec->sandboxes->welcomed,
	};
	memcpy(ret_stats->isolation, exec->sandboxes->isolation, sizeof(ret_stats->isolation));
	osd_unlock(&exec->lock);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Of struct osd_advice_push. */
static const char *const stages[] = {"admission", "dispatch"}, *const reasons[] = {"sooner",
										   "deadline"};

/* The most memory that one job may use.  Without such a limit: the memory of a job that asks for none. */
static uint64_t memory_per_slot(const struct osd_pool_config *config)
{
	/* With OSD_EXEC_SLOTS_MAX slots at most, the memory of all is a 63-bit number. */
	return config->maximum.memory_bytes <= INT64_MAX / OSD_EXEC_SLOTS_MAX
		       ? config->maximum.memory_bytes
		       : config->standard.memory_bytes;
}

static void write_load(const struct view *view, struct osd_json *json)
{
	const struct osd_pool_config *config = &view->config;

	osd_json_text(json, "name", config->name);
	osd_json_text(json, "mode", osd_pool_mode_name(view->mode));
	osd_json_bool(json, "gone", view->gone);
	osd_json_bool(json, "serving", view->serving);
	osd_json_text(json, "why", view->why);
	osd_json_number(json, "min", config->min);
	osd_json_number(json, "max", config->max);
	osd_json_number(json, "active", view->active);
	osd_json_number(json, "busy", view->busy);
	osd_json_number(json, "warm_spare", config->spares);
	osd_json_number(json, "spares", config->spares); /* as it was called at first */
	osd_json_number(json, "ready", view->sandboxes[OSD_SANDBOX_READY]);
	osd_json_number(json, "warming",
			view->sandboxes[OSD_SANDBOX_SPAWNING] +
				view->sandboxes[OSD_SANDBOX_WARMING]);
	osd_json_number(json, "queued", view->queued);
	osd_json_number(json, "places", view->places);
	osd_json_number(json, "jobs", view->jobs);
	osd_json_usec(json, "oldest", view->oldest_usec);
	osd_json_number(json, "queue_max", config->queue_max);
	osd_json_number(json, "cpu_share", config->cpu_share);
	osd_json_number(json, "bandwidth", config->bandwidth);
	osd_json_usec(json, "deadline", config->deadline_usec);
	osd_json_number(json, "memory_per_slot", memory_per_slot(config));
	osd_json_number(json, "memory_reserved", config->max * memory_per_slot(config));
	osd_json_number(json, "memory_used", view->memory_used);
}

static void write_reasons(const uint64_t counts[OSD_JOB_REASON_COUNT], bool states,
			  struct osd_json *json)
{
	for (size_t row = 0; row < OSD_JOB_REASON_COUNT; row++) {
		const struct osd_job_reason_info *info = osd_job_reason_at(row);

		if (!counts[row])
			continue;
		osd_json_open(json, NULL, '{');
		if (states)
			osd_json_text(json, "state",
				      osd_job_state_name(info->number ? info->terminal_state
								      : OSD_STATE_COMPLETED));
		osd_json_number(json, "reason", info->number);
		osd_json_number(json, "count", counts[row]);
		osd_json_close(json, '}');
	}
}

static void write_jobs(const struct osd_pool_figures *figures, struct osd_json *json)
{
	osd_json_number(json, "arrived", figures->arrived);
	osd_json_number(json, "started", figures->started);
	osd_json_number(json, "ended", figures->ended);
	osd_json_open(json, "finished", '[');
	write_reasons(figures->finished, true, json);
	osd_json_close(json, ']');
	osd_json_usec(json, "run_seconds",
		      atomic_load_explicit(&figures->run.sum_usec, memory_order_relaxed));
	osd_json_open(json, "seconds", '{');
	osd_json_histogram(json, "queue", &figures->queue);
	osd_json_histogram(json, "start", &figures->start);
	osd_json_histogram(json, "run", &figures->run);
	osd_json_histogram(json, "cancel", &figures->cancel);
	osd_json_close(json, '}');
	osd_json_usec(json, "cpu_seconds", figures->cpu_usec);
}

/* The effect of the pool's share of the host on jobs. */
static void write_share(const struct view *view, struct osd_json *json)
{
	osd_json_open(json, "pushed_back", '{');
	for (unsigned reason = 0; reason < OSD_ADVICE_REASONS; reason++)
		osd_json_number(json, reasons[reason], view->figures.pushed[reason]);
	osd_json_close(json, '}');
	osd_json_number(json, "paced_bytes", view->paced_bytes);
	osd_json_usec(json, "held_seconds", view->held_usec);
}

static void write_sandboxes(const struct view *view, struct osd_json *json)
{
	static const char *const states[SANDBOX_STATES] = {
		[OSD_SANDBOX_SPAWNING] = "spawning", [OSD_SANDBOX_WARMING] = "warming",
		[OSD_SANDBOX_READY] = "ready",	     [OSD_SANDBOX_TAKEN] = "taken",
		[OSD_SANDBOX_KEPT] = "kept",	     [OSD_SANDBOX_ENDING] = "ending",
	};
	static const char *const exits[] = {OSD_SANDBOX_EXITS(OSD_NAME_OF)};
	static const char *const recyclings[] = {OSD_SANDBOX_RECYCLINGS(OSD_NAME_OF)};
	const struct osd_supply_figures *figures = &view->supply;

	osd_json_open(json, "sandboxes", '{');
	for (size_t i = 0; i < SANDBOX_STATES; i++)
		osd_json_number(json, states[i], view->sandboxes[i]);
	osd_json_close(json, '}');
	osd_json_usec(json, "warm_seconds", figures->warm_usec);
	osd_json_number(json, "sandbox_starts", figures->starts);
	osd_json_open(json, "sandbox_exits", '{');
	for (size_t i = 0; i < OSD_SANDBOX_EXIT_COUNT; i++)
		osd_json_number(json, exits[i], figures->exits[i]);
	osd_json_close(json, '}');
	osd_json_open(json, "sandbox_recycled", '{');
	for (size_t i = 0; i < OSD_RECYCLED_COUNT; i++)
		osd_json_number(json, recyclings[i], figures->recycled[i]);
	osd_json_close(json, '}');
}

static void write_pool(const struct view *view, struct osd_json *json)
{
	osd_json_open(json, NULL, '{');
	write_load(view, json);
	write_jobs(&view->figures, json);
	write_share(view, json);
	write_sandboxes(view, json);
	osd_json_close(json, '}');
}

static void write_push(const struct osd_advice_push *push, struct osd_json *json)
{
	osd_json_open(json, NULL, '{');
	osd_json_number(json, "at_ms", push->at_msec);
	osd_json_text(json, "stage", stages[push->stage]);
	osd_json_text(json, "reason", reasons[push->reason]);
	osd_json_text(json, "pool", push->pool);
	osd_json_text(json, "name", push->name);
	osd_json_text(json, "principal", push->principal);
	osd_json_usec(json, "near", push->numbers.near_usec);
	osd_json_usec(json, "wait", push->numbers.wait_usec);
	osd_json_usec(json, "client", push->numbers.home_usec);
	osd_json_close(json, '}');
}

/* Decisions whether clients run their jobs themselves; the last push-back first. */
static void write_offload(struct osd_exec *exec, struct osd_json *json)
{
	const struct osd_advice *advice = &exec->pools->advice;
	struct osd_advice_push recent[OSD_ADVICE_RECENT];
	uint64_t pushed[OSD_ADVICE_STAGES], stayed, unknown, pushes, shown;
	double factor;

	osd_lock(&exec->lock);
	memcpy(pushed, advice->pushed, sizeof(pushed));
	memcpy(recent, advice->recent, sizeof(recent));
	stayed = advice->stayed;
	unknown = advice->unknown;
	pushes = advice->pushes;
	factor = osd_advice_factor(advice, osd_monotonic_usec());
	osd_unlock(&exec->lock);
	shown = OSD_MIN(pushes, (uint64_t)OSD_ADVICE_RECENT);
	osd_json_open(json, "offload", '{');
	osd_json_open(json, "decisions", '{');
	for (unsigned stage = 0; stage < OSD_ADVICE_STAGES; stage++)
		osd_json_number(json, stages[stage], pushed[stage]);
	osd_json_number(json, "near", stayed);
	osd_json_number(json, "unknown", unknown);
	osd_json_close(json, '}');
	osd_json_number(json, "factor_percent", (uint64_t)(100 * factor));
	osd_json_histogram(json, "error", &exec->pools->advice_error);
	osd_json_open(json, "recent", '[');
	for (uint64_t i = 1; i <= shown; i++)
		write_push(&recent[(pushes - i) % OSD_ADVICE_RECENT], json);
	osd_json_close(json, ']');
	osd_json_close(json, '}');
}

static void write_all_jobs(struct osd_exec *exec, struct osd_json *json)
{
	static const char *const refusals[] = {OSD_REFUSALS(OSD_NAME_OF)};
	uint64_t refused[OSD_REFUSAL_COUNT], retried[OSD_JOB_REASON_COUNT];
	struct osd_exec_stats stats;

	osd_exec_stats(exec, &stats);
	osd_lock(&exec->lock);
	memcpy(refused, exec->pools->refused, sizeof(refused));
	memcpy(retried, exec->pools->retried, sizeof(retried));
	osd_unlock(&exec->lock);
	osd_json_open(json, "jobs", '{');
	osd_json_bool(json, "service", stats.service_connected);
	osd_json_text(json, "isolation", stats.isolation);
	osd_json_number(json, "waiting", stats.queued);
	osd_json_number(json, "held", stats.held);
	osd_json_number(json, "running", stats.running);
	osd_json_number(json, "accepted", stats.accepted);
	osd_json_number(json, "finished", stats.finished);
	osd_json_number(json, "lost", stats.lost);
	osd_json_open(json, "refused", '{');
	for (unsigned i = 0; i < OSD_REFUSAL_COUNT; i++)
		osd_json_number(json, refusals[i], refused[i]);
	osd_json_close(json, '}');
	osd_json_open(json, "retried", '[');
	write_reasons(retried, false, json);
	osd_json_close(json, ']');
	osd_json_close(json, '}');
}

/* The calls of one operation that had this outcome. */
static void write_count(unsigned op, unsigned code, uint64_t count, struct osd_json *json)
{
	static const char *const ops[OSD_CALL_OPS] = {
#define X(number, symbol) [number] = #symbol,
		OSD_CALLS(X)
#undef X
	};
	static const char *const codes[OSD_ANSWER_CODES] = {
		[OSD_ANSWER_OK] = "ok",
		[OSD_ANSWER_NOT_FOUND] = "not_found",
		[OSD_ANSWER_EXISTS] = "exists",
		[OSD_ANSWER_PERMISSION] = "permission",
		[OSD_ANSWER_NO_SPACE] = "no_space",
		[OSD_ANSWER_INVALID] = "invalid",
		[OSD_ANSWER_IO] = "io",
		[OSD_ANSWER_NOT_EMPTY] = "not_empty",
		[OSD_ANSWER_CONFLICT] = "conflict",
		[OSD_ANSWER_STAGE] = "stage",
	};

	if (!count)
		return;
	osd_json_open(json, NULL, '{');
	osd_json_text(json, "command", ops[op]);
	osd_json_text(json, "status", codes[code]);
	osd_json_number(json, "count", count);
	osd_json_close(json, '}');
}

static void write_calls(struct osd_exec *exec, struct osd_json *json)
{
	const struct osd_call_figures *calls = &exec->runs->calls;
	static const char *const kinds[] = {OSD_CALL_KINDS(OSD_NAME_OF)};

	osd_json_open(json, "proxy_calls", '[');
	for (unsigned op = 0; op < OSD_CALL_OPS; op++)
		for (unsigned code = 0; code < OSD_ANSWER_CODES; code++)
			write_count(op, code,
				    atomic_load_explicit(&calls->counts[op][code],
							 memory_order_relaxed),
				    json);
	osd_json_close(json, ']');
	osd_json_number(json, "proxy_calls_gave_way", atomic_load(&exec->runs->gate.given));
	osd_json_open(json, "proxy_call_seconds", '{');
	for (unsigned kind = 0; kind < OSD_CALL_KIND_COUNT; kind++)
		osd_json_histogram(json, kinds[kind], &calls->seconds[kind]);
	osd_json_close(json, '}');
}

static void write_signer(const char *signer, const char *outcome, uint64_t count,
			 struct osd_json *json)
{
	osd_json_open(json, NULL, '{');
	osd_json_text(json, "signer", signer);
	osd_json_text(json, "outcome", outcome);
	osd_json_number(json, "count", count);
	osd_json_close(json, '}');
}

static void write_results(struct osd_exec *exec, struct osd_json *json)
{
	struct osd_kept_figures figures;

	osd_kept_figures(osd_functions_kept(exec->functions), &figures);
	osd_json_open(json, "results", '{');
	osd_json_number(json, "quota_bytes", figures.quota_bytes);
	osd_json_number(json, "kept_bytes", figures.kept_bytes);
	osd_json_open(json, "reads", '{');
	osd_json_number(json, "kept", figures.hits);
	osd_json_number(json, "computed", figures.misses);
	osd_json_close(json, '}');
	osd_json_number(json, "shared", figures.shared);
	osd_json_number(json, "evicted", figures.evicted);
	osd_json_number(json, "failed", figures.failed);
	osd_json_usec(json, "compute_seconds", figures.computed_usec);
	osd_json_close(json, '}');
}

static void write_functions(struct osd_exec *exec, struct osd_json *json)
{
	struct osd_signer_calls rows[OSD_FUNCTION_SIGNERS];
	struct osd_function_figures figures;
	size_t count;

	if (!exec->functions)
		return;
	osd_functions_figures(exec->functions, NULL, &figures);
	count = osd_functions_signer_calls(exec->functions, rows);
	osd_json_open(json, "functions", '{');
	osd_json_number(json, "active", figures.active);
	osd_json_number(json, "reserved_bytes", figures.reserved_bytes);
	osd_json_open(json, "calls", '[');
	for (size_t i = 0; i < count; i++) {
		write_signer(rows[i].signer, "completed", rows[i].completed, json);
		write_signer(rows[i].signer, "failed", rows[i].failed, json);
	}
	osd_json_close(json, ']');
	write_results(exec, json);
	osd_json_close(json, '}');
}

void osd_exec_write_figures(struct osd_exec *exec, struct osd_json *json)
{
	struct osd_pool *pool;
	struct view view;

	write_all_jobs(exec, json);
	write_offload(exec, json);
	write_calls(exec, json);
	write_functions(exec, json);
	osd_json_open(json, "pools", '[');
	osd_lock(&exec->lock);
	for (pool = exec->pools->first; pool; pool = pool->next) {
		if (pool->gone && !osd_pool_has_jobs(pool))
			continue;
		view_pool(exec, pool, &view);
		osd_unlock(&exec->lock); /* pools only come, at the end of the list */
		write_pool(&view, json);
		osd_lock(&exec->lock);
	}
	osd_unlock(&exec->lock);
	osd_json_close(json, ']');
}
