/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pool.c -- the pools of a running target: found by name, places in their queues, what
 * iosd-sandboxd says of them (pool.h).  Not here: their configuration (pool_config.c), their
 * sandboxes (sandbox_pool.c). */
#include "exec/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/exec_impl.h"

static struct osd_pool *create(struct osd_exec *exec, const struct osd_pool_config *config)
{
	struct osd_pool *pool = calloc(1, sizeof(*pool)), **end = &exec->pools;

	if (!pool)
		return NULL;
	pool->exec = exec;
	pool->config = *config;
	if (osd_fair_queue_init(&pool->queue, config->queue_max,
				exec->config.queue_principal) != OSD_OK) {
		free(pool);
		return NULL;
	}
	pthread_cond_init(&pool->work, NULL);
	while (*end)
		end = &(*end)->next;
	*end = pool;
	return pool;
}

void osd_pool_settle(struct osd_pool *pool)
{
	struct osd_job_limits limits = {0};
	struct osd_exec *exec = pool->exec;

	osd_pool_settle_limits(&pool->config, &limits);
	pool->usual = osd_sandbox_limits_of(&limits);
	pool->alive_max = (unsigned)osd_pool_alive_max(&pool->config);
	pool->queue.place_max = pool->config.queue_max;
	pool->used_usec = osd_monotonic_usec();
	exec->pool.alive_max = 0;
	for (const struct osd_pool *each = exec->pools; each; each = each->next)
		exec->pool.alive_max += each->alive_max;
}

enum osd_status osd_pools_open(struct osd_exec *exec, const struct osd_pool_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		struct osd_pool *pool = create(exec, &table->pools[i]);

		if (!pool)
			return OSD_E_NO_MEMORY;
		pool->active = (unsigned)pool->config.max;
		osd_pool_settle(pool);
	}
	exec->budget_bytes = table->budget_bytes;
	return OSD_OK;
}

void osd_pools_close(struct osd_exec *exec)
{
	while (exec->pools) {
		struct osd_pool *pool = exec->pools;

		exec->pools = pool->next;
		osd_fair_queue_release(&pool->queue);
		pthread_cond_destroy(&pool->work);
		free(pool);
	}
}

/* ---- by name --------------------------------------------------------------------------------- */

static struct osd_pool *find(struct osd_exec *exec, const void *name, size_t length)
{
	struct osd_pool *pool = exec->pools;

	while (pool && (strlen(pool->config.name) != length ||
			memcmp(pool->config.name, name, length) != 0))
		pool = pool->next;
	return pool;
}

struct osd_pool *osd_pool_find_named(struct osd_exec *exec, const void *name, size_t length)
{
	struct osd_pool *pool = length ? find(exec, name, length) : exec->pools;

	return pool && !pool->gone ? pool : NULL;
}

struct osd_pool *osd_pool_of_record(struct osd_exec *exec, const struct osd_job_record *record)
{
	const char *name = record->pool[0] ? record->pool : OSD_POOL_DEFAULT;
	struct osd_pool_config config = {.queue_max = 1};
	struct osd_pool *pool = find(exec, name, strlen(name));

	if (pool)
		return pool;
	memcpy(config.name, name, strlen(name) + 1);
	pool = create(exec, &config);
	if (!pool)
		return NULL;
	pool->gone = pool->failed = true;
	snprintf(pool->why, sizeof(pool->why), "no pool of this name is configured now");
	osd_warning("jobs of an earlier run wait for pool %s, which is not configured", name);
	return pool;
}

/* ---- slots ----------------------------------------------------------------------------------- */

bool osd_pool_starts(const struct osd_pool *pool)
{
	const struct osd_exec *exec = pool->exec;

	return pool->busy < pool->active && pool->mode != OSD_POOL_PAUSED && !exec->formatting &&
	       !exec->stopping;
}

void osd_pool_has_work(struct osd_pool *pool)
{
	const struct osd_exec_config *config = &pool->exec->config;
	unsigned idle = pool->busy < pool->active ? pool->active - pool->busy : 0;

	pthread_cond_signal(&pool->work);
	/* It may wait for a sandbox, or for a slot; those that come behind it are no news. */
	if ((pool->queue.entry_count == 1 || pool->queue.entry_count == idle + 1) &&
	    config->jobs_wait)
		config->jobs_wait(config->context);
}

void osd_pool_occupy(struct osd_pool *pool)
{
	pool->busy++;
	pool->used_usec = osd_monotonic_usec();
}

void osd_pool_vacate(struct osd_pool *pool)
{
	pool->busy--;
	pool->used_usec = osd_monotonic_usec();
}

/* ---- places ---------------------------------------------------------------------------------- */

size_t osd_pools_places(const struct osd_exec *exec)
{
	size_t places = 0;

	for (const struct osd_pool *pool = exec->pools; pool; pool = pool->next)
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
		return OSD_E_BUSY;
	return osd_fair_queue_reserve(&pool->queue, principal, count, force, entry);
}

/* ---- iosd-sandboxd's word -------------------------------------------------------------------- */

void osd_pool_news(struct osd_exec *exec, const struct osd_pool_news *news)
{
	struct osd_pool *pool = find(exec, news->name, news->name_bytes);
	char before[sizeof(pool->why)];
	const char *set;

	if (!pool || pool->gone)
		return; /* it may have more than we were told of */
	set = pool->config.set;
	memcpy(before, pool->why, sizeof(before));
	pool->serving = news->state == OSD_POOL_SERVING;
	pool->failed = news->state == OSD_POOL_FAILED;
	osd_log_quote(pool->why, sizeof(pool->why), (const char *)news->why, news->why_bytes);
	if (strlen(set) != news->set_bytes || memcmp(set, news->set, news->set_bytes) != 0) {
		pool->serving = false;
		pool->failed = true;
		snprintf(pool->why, sizeof(pool->why),
			 "iosd-sandboxd has another package set for it: restart both");
	}
	if (pool->failed && strcmp(before, pool->why) != 0)
		osd_warning("pool %s does not serve: %s", pool->config.name, pool->why);
	osd_pool_refill(exec);
}

void osd_pools_unserved(struct osd_exec *exec)
{
	for (struct osd_pool *pool = exec->pools; pool; pool = pool->next) {
		pool->serving = false;
		if (pool->gone)
			continue;
		pool->failed = false;
		pool->why[0] = '\0';
	}
}

void osd_pools_wake(struct osd_exec *exec)
{
	for (struct osd_pool *pool = exec->pools; pool; pool = pool->next)
		pthread_cond_broadcast(&pool->work);
}
