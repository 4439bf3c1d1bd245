/* SPDX-License-Identifier: GPL-2.0-or-later */
/* root_page.c -- attribute page B000_0001h of the root: what EXEC this target has. */
#include <stdio.h>
#include <string.h>

#include "exec/pool/pool.h"
#include "exec/tell/tell.h"
#include "wire/cursor.h"
#include "wire/proxy_frame.h"

#define LINE_MAX_ 1024 /* of a pool */

static uint64_t standard_of(const struct osd_exec *exec, size_t limit)
{
	switch (limit) {
	case OSD_LIMIT_QUEUE_PRINCIPAL:
		return exec->pools->queue_principal;
	case OSD_LIMIT_STORED:
		return exec->stored.most;
	default:
		return osd_exec_limits[limit].standard;
	}
}

static void put_limit_table(const struct osd_exec *exec, struct osd_wr *w)
{
	char line[160];

	for (size_t i = 0; i < OSD_LIMIT_COUNT; i++) {
		const struct osd_exec_limit_info *limit = &osd_exec_limits[i];

		snprintf(line, sizeof(line), "%s %s %llu %llu\n", limit->name, limit->unit,
			 (unsigned long long)standard_of(exec, i),
			 (unsigned long long)limit->maximum);
		osd_wr_text(w, line);
	}
}

static const char *state_of(const struct osd_pool *pool)
{
	osd_assert_held(&pool->exec->lock);
	if (pool->gone)
		return "gone";
	if (pool->leaving)
		return "leaving";
	return pool->supply.serving ? "serving" : pool->failed ? "failed" : "starting";
}

size_t osd_tell_limits(const struct osd_pool_config *config, char *text, size_t size)
{
	const struct osd_job_limits *standard = &config->standard, *maximum = &config->maximum;

#define PAIR(field) (unsigned long long)standard->field, (unsigned long long)maximum->field
	return (size_t)snprintf(
		text, size,
		" wall=%llu/%llu cpu=%llu/%llu memory=%llu/%llu threads=%llu/%llu output=%llu/%llu",
		PAIR(wall_usec), PAIR(cpu_usec), (unsigned long long)standard->memory_bytes,
		(unsigned long long)osd_pool_memory_most(config), PAIR(processes),
		PAIR(output_bytes));
#undef PAIR
}

/* The pool's share of the host, and its effect on jobs. */
static size_t put_share(const struct osd_pool *pool, char *text, size_t size)
{
	const struct osd_pool_config *config = &pool->config;
	const uint64_t *pushed = pool->figures.pushed;

	return (size_t)snprintf(
		text, size,
		" cpu_share=%llu bandwidth=%llu deadline=%llu pushed=%llu late=%llu held=%llu",
		(unsigned long long)config->cpu_share, (unsigned long long)config->bandwidth,
		(unsigned long long)config->deadline_usec,
		(unsigned long long)pushed[OSD_ADVICE_SOONER],
		(unsigned long long)pushed[OSD_ADVICE_LATE],
		(unsigned long long)atomic_load(&pool->pace.held_usec));
}

/* A line: the name, then key=value; why, if it is there, is the rest. */
static void put_pool(struct osd_exec *exec, const struct osd_pool *pool, struct osd_wr *w)
{
	const struct osd_pool_config *config = &pool->config;
	char line[LINE_MAX_];
	size_t used;

	osd_assert_held(&exec->lock);
	used = (size_t)snprintf(
		line, sizeof(line),
		"%s state=%s mode=%s min=%u max=%u active=%u spare=%u busy=%u ready=%u queued=%zu "
		"queue=%llu "
		"idle_timeout=%llu reuse=%s max_jobs_per_sandbox=%llu engine=%s set=%s",
		config->name, state_of(pool), osd_pool_mode_name(pool->mode), (unsigned)config->min,
		(unsigned)config->max, pool->supply.active, (unsigned)config->spares,
		pool->supply.busy, osd_supply_ready(exec->sandboxes, &pool->supply),
		pool->queue.place_count, (unsigned long long)config->queue_max,
		(unsigned long long)config->idle_usec, osd_reuse_name(config->reuse),
		(unsigned long long)config->sandbox_jobs, config->engine, config->set[0] ? config->set : "-");
	used += osd_tell_limits(config, line + used, sizeof(line) - used);
	used += put_share(pool, line + used, sizeof(line) - used);
	if (pool->why[0])
		snprintf(line + used, sizeof(line) - used, " why=%s", pool->why);
	osd_wr_text(w, line);
	osd_wr_text(w, "\n");
}

static void put_pools(struct osd_exec *exec, struct osd_wr *w)
{
	osd_lock(&exec->lock);
	for (const struct osd_pool *pool = exec->pools->first; pool; pool = pool->next)
		if (!pool->gone || osd_pool_has_jobs(pool))
			put_pool(exec, pool, w);
	osd_unlock(&exec->lock);
}

static bool is_earlier(const struct osd_pool *first, const struct osd_pool *pool)
{
	for (; first != pool; first = first->next)
		if (!first->gone && strcmp(first->config.engine, pool->config.engine) == 0)
			return true;
	return false;
}

/* The engines of the pools, each once. */
static void put_engines(struct osd_exec *exec, struct osd_wr *w)
{
	const char *space = "";

	osd_lock(&exec->lock);
	for (const struct osd_pool *pool = exec->pools->first; pool; pool = pool->next) {
		if (pool->gone || is_earlier(exec->pools->first, pool))
			continue;
		osd_wr_text(w, space);
		osd_wr_text(w, pool->config.engine);
		space = " ";
	}
	osd_unlock(&exec->lock);
}

static void put_root(struct osd_exec *exec, struct osd_wr *w, uint32_t number)
{
	struct osd_exec_stats stats;

	osd_exec_stats(exec, &stats);
	switch (number) {
	case 1:
		osd_wr_be(w, OSD_SA_EXEC, 2);
		break;
	case 2:
		put_engines(exec, w);
		break;
	case 3:
		put_limit_table(exec, w);
		break; /* lines: name, unit, default, maximum */
	case 4:
		osd_wr_be(w, OSD_JOB_STATUS_VERSION, 2);
		osd_wr_be(w, OSD_EXEC_PARAMS_VERSION, 2);
		osd_wr_be(w, OSD_PROXY_VERSION, 2);
		break;
	case 5:
		osd_wr_be(w, stats.queued + stats.held, 4);
		break;
	case 6:
		osd_wr_be(w, stats.retry_after_msec, 4);
		break;
	case 7:
		osd_wr_text(w, stats.isolation);
		break;
	case 8:
		put_pools(exec, w);
		break;
	default:
		break;
	}
}

enum osd_status osd_root_page_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				  uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				  size_t *ret_length)
{
	struct osd_wr w = osd_wr_init(buffer, capacity);

	(void)txn, (void)id, (void)page;
	put_root(context, &w, number);
	*ret_length = osd_wr_used(&w);
	return OSD_OK;
}
