/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pool.c -- the pools of a running target: lookup by name, places in their queues, reports from
 * iosd-sandboxd (pool.h).  Elsewhere: their configuration (config.c), their sandboxes
 * (sandbox/). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/pool/pool.h"

/* The pool keeps no sandboxes, and no job starts in it. */
static void be_gone(struct osd_pool *pool)
{
	pool->config.max = pool->config.min = pool->config.spares = 0;
	pool->supply.active = 0;
	pool->gone = true;
	pool->leaving = false;
	pool->told = (struct osd_pool_told){.heard = false};
	osd_pool_judge(pool);
}

struct osd_pool *osd_pool_create(struct osd_exec *exec, const char *name)
{
	struct osd_pool *pool = calloc(1, sizeof(*pool)), **end = &exec->pools->first;
	unsigned count = 0;

	for (; *end; end = &(*end)->next)
		count++;
	/* Jobs keep pointers to their pool: none is freed before the end, so there is a bound. */
	if (!pool || count == OSD_POOLS_EVER ||
	    osd_fair_queue_init(&pool->queue, 1, exec->pools->queue_principal) != OSD_OK) {
		free(pool);
		return NULL;
	}
	pool->exec = exec;
	/* iosd-sandboxd may report a pool that is not configured here, and gets its share in answer. */
	pool->config.cpu_share = pool->supply.cpu_share = OSD_CPU_SHARE_WHOLE;
	snprintf(pool->config.name, sizeof(pool->config.name), "%s", name);
	if (!osd_principals_enter(exec, pool)) {
		osd_fair_queue_release(&pool->queue);
		free(pool);
		return NULL;
	}
	pool->supply.name = pool->config.name;
	pool->supply.waiting = &pool->queue.entry_count;
	osd_supply_add(exec->sandboxes, &pool->supply);
	be_gone(pool);
	*end = pool;
	return pool;
}

void osd_pool_settle(struct osd_pool *pool)
{
	const struct osd_pool_config *config = &pool->config;
	struct osd_supply *supply = &pool->supply;
	struct osd_job_limits limits = {0};

	osd_pool_settle_limits(config, &limits);
	supply->usual = osd_sandbox_limits_of(&limits);
	supply->min = (unsigned)config->min;
	supply->max = (unsigned)config->max;
	supply->spares = (unsigned)config->spares;
	supply->alive_max = (unsigned)osd_pool_alive_max(config);
	supply->idle_usec = config->idle_usec;
	supply->reuse = config->reuse;
	supply->sandbox_jobs = config->sandbox_jobs;
	supply->cpu_share = (unsigned)config->cpu_share;
	atomic_store(&pool->pace.rate, config->bandwidth);
	supply->used_usec = osd_monotonic_usec();
	pool->queue.place_max = config->queue_max;
	osd_supply_changed(pool->exec->sandboxes);
}

enum osd_status osd_pools_open(struct osd_exec *exec, const struct osd_pool_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		struct osd_pool *pool = osd_pool_create(exec, table->pools[i].name);

		if (!pool)
			return OSD_E_NO_MEMORY;
		pool->gone = false;
		pool->config = table->pools[i];
		pool->supply.active = (unsigned)pool->config.max;
		osd_pool_settle(pool);
		osd_pool_judge(pool);
	}
	exec->pools->budget_bytes = table->budget_bytes;
	return OSD_OK;
}

void osd_pools_close(struct osd_exec *exec)
{
	while (exec->pools->first) {
		struct osd_pool *pool = exec->pools->first;

		exec->pools->first = pool->next;
		osd_fair_queue_release(&pool->queue);
		free(pool);
	}
}

/* ---- by name --------------------------------------------------------------------------------- */

struct osd_pool *osd_pool_find_any(struct osd_exec *exec, const void *name, size_t length)
{
	struct osd_pool *pool = exec->pools->first;

	while (pool && (strlen(pool->config.name) != length ||
			memcmp(pool->config.name, name, length) != 0))
		pool = pool->next;
	return pool;
}

struct osd_pool *osd_pool_find_named(struct osd_exec *exec, const void *name, size_t length)
{
	struct osd_pool *pool = length ? osd_pool_find_any(exec, name, length) : exec->pools->first;

	return pool && !pool->gone && !pool->leaving ? pool : NULL;
}

static bool has_engine(const struct osd_pool *pool, const void *engine, size_t length)
{
	return strlen(pool->config.engine) == length &&
	       memcmp(pool->config.engine, engine, length) == 0;
}

struct osd_pool *osd_pool_find_engine(struct osd_exec *exec, struct osd_pool *named,
				      const void *engine, size_t length)
{
	osd_assert_held(&exec->lock);
	if (length == 0)
		return named ? named : osd_pool_find_named(exec, NULL, 0);
	if (named)
		return has_engine(named, engine, length) ? named : NULL;
	for (struct osd_pool *pool = exec->pools->first; pool; pool = pool->next)
		if (!pool->gone && !pool->leaving && has_engine(pool, engine, length))
			return pool;
	return NULL;
}

struct osd_pool *osd_pool_of_record(struct osd_exec *exec, const struct osd_job_record *record)
{
	const char *name = record->pool[0] ? record->pool : OSD_POOL_DEFAULT;
	struct osd_pool *pool = osd_pool_find_any(exec, name, strlen(name));

	if (pool)
		return pool;
	pool = osd_pool_create(exec, name);
	if (pool)
		osd_warning("jobs of an earlier run wait for pool %s, which is not configured",
			    name);
	return pool;
}

/* ---- slots ----------------------------------------------------------------------------------- */

struct osd_sandbox_order osd_pool_order(const struct osd_job *job)
{
	const struct osd_job_record *record = &job->record;

	return (struct osd_sandbox_order){
		.supply = &job->pool->supply,
		.principal = record->principal,
		.limits = osd_sandbox_limits_of(&record->limits),
		.function = record->function.id,
		.code_sha256 = record->function.id.object_id ? record->code_sha256 : NULL,
		.code_name = record->name,
	};
}

bool osd_pool_may_run(const struct osd_pool *pool)
{
	return !pool->failed && pool->mode != OSD_POOL_PAUSED &&
	       osd_supply_has_any(pool->exec->sandboxes, &pool->supply);
}

bool osd_pool_starts(const struct osd_pool *pool, bool lendable)
{
	const struct osd_exec *exec = pool->exec;
	const struct osd_supply *supply = &pool->supply;

	return supply->busy < supply->active + (lendable ? supply->lent : 0) &&
	       pool->mode != OSD_POOL_PAUSED && !exec->formatting && !exec->stopping;
}

struct osd_fair_entry *osd_pool_next(const struct osd_pool *pool)
{
	if (osd_pool_starts(pool, false))
		return osd_fair_queue_peek(&pool->queue, false);
	return osd_pool_starts(pool, true) ? osd_fair_queue_peek(&pool->queue, true) : NULL;
}

static void settle_lent(struct osd_pool *pool)
{
	const bool bounded = pool->exec->pools->budget_bytes;

	osd_assert_held(&pool->exec->lock);
	pool->supply.lent = bounded ? OSD_MIN(pool->lenders, 1u) : pool->lenders;
}

void osd_pool_lend(struct osd_pool *pool)
{
	pool->lenders++;
	settle_lent(pool);
	osd_sandboxes_refill(pool->exec->sandboxes);
	pool->exec->pools->work(pool->exec);
}

void osd_pool_take_back(struct osd_pool *pool)
{
	pool->lenders--;
	settle_lent(pool);
}

void osd_pool_has_work(struct osd_pool *pool)
{
	const struct osd_pools *pools = pool->exec->pools;
	unsigned idle = pool->supply.busy < pool->supply.active
				? pool->supply.active - pool->supply.busy
				: 0;

	pools->work(pool->exec);
	/* The first job may wait for a sandbox or a slot.  Further jobs behind it change
	 * nothing. */
	if ((pool->queue.entry_count == 1 || pool->queue.entry_count == idle + 1) &&
	    pools->jobs_wait)
		pools->jobs_wait(pools->context);
}

struct osd_fair_principal *osd_pool_occupy(struct osd_pool *pool,
					   const struct osd_fair_entry *entry)
{
	pool->supply.busy++;
	pool->supply.used_usec = osd_monotonic_usec();
	return osd_fair_queue_started(entry);
}

void osd_pool_vacate(struct osd_pool *pool, struct osd_fair_principal *principal)
{
	osd_fair_queue_ended(&pool->queue, principal);
	pool->supply.busy--;
	pool->supply.used_usec = osd_monotonic_usec();
	if (pool->leaving)
		osd_alarm_by(&pool->exec->monitor, 0);
}

void osd_pool_leave(struct osd_pool *pool)
{
	struct osd_exec *exec = pool->exec;
	const char *name = pool->config.name;
	bool over = !osd_pool_has_jobs(pool);

	pool->config.min = pool->config.spares = 0;
	pool->mode = OSD_POOL_DRAINING;
	pool->leaving = true;
	if (over) /* otherwise the monitor calls this again once the last job is over */
		be_gone(pool);
	osd_pool_settle(pool);
	osd_supply_trim(exec->sandboxes, &pool->supply, osd_monotonic_usec());
	if (!over)
		return;
	osd_info("pool %s is gone", name);
	osd_supply_drop_kept(exec->sandboxes, &pool->supply);
	osd_service_send(exec->sandboxes, OSD_SANDBOXD_FORGET, 0, name, strlen(name));
}

/* ---- places ---------------------------------------------------------------------------------- */

size_t osd_pools_places(const struct osd_exec *exec)
{
	size_t places = 0;

	for (const struct osd_pool *pool = exec->pools->first; pool; pool = pool->next)
		places += pool->queue.place_count;
	return places;
}

bool osd_pool_is_full(const struct osd_pool *pool, size_t count)
{
	return pool->queue.place_count + count > pool->queue.place_max ||
	       osd_pools_places(pool->exec) + count > osd_exec_limits[OSD_LIMIT_QUEUE].maximum;
}

enum osd_status osd_pool_reserve(struct osd_pool *pool, const char *principal, size_t count,
				 bool force, struct osd_fair_entry *entry)
{
	if (!force && osd_pool_is_full(pool, count))
		return OSD_E_QUEUE_FULL;
	return osd_fair_queue_reserve(&pool->queue, principal, count, force, entry);
}

/* ---- iosd-sandboxd's word -------------------------------------------------------------------- */

void osd_pool_judge(struct osd_pool *pool)
{
	const struct osd_pool_told *told = &pool->told;
	char before[sizeof(pool->why)];

	memcpy(before, pool->why, sizeof(before));
	memcpy(pool->why, told->why, sizeof(pool->why));
	pool->supply.serving = told->heard && told->state == OSD_POOL_SERVING;
	pool->failed = told->heard && told->state == OSD_POOL_FAILED;
	if (pool->gone) {
		pool->supply.serving = false;
		pool->failed = true;
		snprintf(pool->why, sizeof(pool->why), "no pool of this name is configured now");
		return;
	}
	if (told->heard && strcmp(pool->config.set, told->set) != 0) {
		pool->supply.serving = false;
		pool->failed = true;
		snprintf(pool->why, sizeof(pool->why),
			 "iosd-sandboxd has another package set for it: reload both");
	}
	if (pool->failed && strcmp(before, pool->why) != 0)
		osd_warning("pool %s does not serve: %s", pool->config.name, pool->why);
}

void osd_pool_news(void *arg, const struct osd_pool_news *news)
{
	struct osd_exec *exec = arg;
	struct osd_pool *pool = osd_pool_find_any(exec, news->name, news->name_bytes);
	struct osd_pool_told *told;

	if (!pool || news->set_bytes >= sizeof(told->set))
		return; /* it may have sandboxes that were not reported */
	told = &pool->told;
	told->heard = true;
	told->state = news->state;
	memcpy(told->set, news->set, news->set_bytes);
	told->set[news->set_bytes] = '\0';
	osd_log_quote(told->why, sizeof(told->why), (const char *)news->why, news->why_bytes);
	osd_pool_judge(pool);
	osd_service_bound(exec->sandboxes, &pool->supply); /* before the next SPAWN */
	if (strcmp(pool->config.set, told->set) != 0)
		osd_supply_replace(exec->sandboxes,
				   &pool->supply); /* sandboxes with the other set run no jobs */
	osd_sandboxes_refill(exec->sandboxes);
}

void osd_pool_rotated(void *arg, const void *name, size_t length)
{
	struct osd_exec *exec = arg;
	struct osd_pool *pool = osd_pool_find_any(exec, name, length);

	if (!pool || !pool->recycling)
		return;
	pool->recycling = false;
	osd_supply_replace(exec->sandboxes, &pool->supply);
	osd_sandboxes_refill(exec->sandboxes);
}

void osd_pools_unserved(void *arg)
{
	struct osd_exec *exec = arg;

	for (struct osd_pool *pool = exec->pools->first; pool; pool = pool->next) {
		pool->told = (struct osd_pool_told){.heard = false};
		pool->recycling = false;
		/* The next iosd-sandboxd knows no shares: they are sent again. */
		pool->supply.cpu_share_sent = 0;
		osd_pool_judge(pool);
	}
}

uint32_t osd_pool_retry_after(const struct osd_pool *pool)
{
	/* A pool that is gone has no slots. */
	uint64_t slots = OSD_MAX(pool->config.max, UINT64_C(1));

	return (uint32_t)OSD_MIN(20 + 5 * pool->queue.place_count / slots, UINT64_C(5000));
}
