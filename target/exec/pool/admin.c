/* SPDX-License-Identifier: GPL-2.0-or-later */
/* admin.c -- see admin.h: changes to pools and principals of a running target. */
#include "exec/admin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/pool/pool.h"

static struct osd_pool *find(struct osd_exec *exec, const char *name,
			     char message[OSD_ADMIN_MESSAGE_MAX])
{
	struct osd_pool *pool = osd_pool_find_named(exec, name, strlen(name));

	message[0] = '\0';
	if (!pool)
		snprintf(message, OSD_ADMIN_MESSAGE_MAX, "no pool '%.64s' is configured", name);
	return pool;
}

/* ---- together -------------------------------------------------------------------------------- */

struct osd_pool_config osd_pool_claim(const struct osd_pool *pool,
				      const struct osd_pool_config *config)
{
	const struct osd_exec *exec = pool->exec;
	struct osd_pool_config claim = *config;
	uint64_t *memory = &claim.maximum.memory_bytes;
	const struct osd_job *job = NULL;

	claim.max = OSD_MAX(claim.max, (uint64_t)pool->supply.busy - pool->supply.lent);
	while (exec->pools->budget_bytes && (job = osd_exec_next_job(exec, job)))
		if (job->pool == pool)
			*memory = OSD_MAX(*memory, job->record.limits.memory_bytes);
	return claim;
}

/* Checks all pools together, this one with its new values. */
static enum osd_status check_together(const struct osd_exec *exec, const struct osd_pool *changed,
				      const struct osd_pool_config *config,
				      char message[OSD_ADMIN_MESSAGE_MAX])
{
	OSD_CLEANUP(osd_pool_table_release)
	struct osd_pool_table table = {.budget_bytes = exec->pools->budget_bytes};
	size_t count = 0;

	for (const struct osd_pool *pool = exec->pools->first; pool; pool = pool->next)
		count++;
	table.pools = calloc(count, sizeof(*table.pools));
	if (!table.pools)
		return OSD_E_NO_MEMORY;
	for (const struct osd_pool *pool = exec->pools->first; pool; pool = pool->next)
		if (!pool->gone || pool->supply.busy > 0)
			table.pools[table.count++] =
				osd_pool_claim(pool, pool == changed ? config : &pool->config);
	return osd_pool_table_check(&table, message);
}

/* ---- one pool -------------------------------------------------------------------------------- */

void osd_pool_apply(struct osd_pool *pool, const struct osd_pool_change *change)
{
	struct osd_exec *exec = pool->exec;
	bool other_reuse = pool->config.reuse != change->config.reuse;
	bool other_share = pool->config.cpu_share != change->config.cpu_share;
	bool other_zygote = strcmp(pool->config.set, change->config.set) != 0 ||
			    strcmp(pool->config.engine, change->config.engine) != 0;

	pool->config = change->config;
	pool->supply.active = (unsigned)change->active;
	pool->mode = change->mode;
	osd_pool_settle(pool);
	osd_pool_judge(pool);
	osd_service_resize(exec->sandboxes);
	if (pool->told.heard)
		osd_service_bound(exec->sandboxes, &pool->supply);
	if (other_zygote || other_share)
		osd_supply_replace(exec->sandboxes, &pool->supply);
	else if (other_reuse)
		osd_supply_drop_kept(exec->sandboxes, &pool->supply);
	if (exec->sandboxes->welcomed)
		osd_supply_trim(exec->sandboxes, &pool->supply, osd_monotonic_usec());
	osd_sandboxes_refill(exec->sandboxes);
	/* The pool may be idle sooner: the monitor computes the time again. */
	osd_alarm_by(&exec->monitor, 0);
	/* Jobs that wait may have another deadline: the sweep computes it again. */
	exec->idle_msec = 0;
	osd_exec_sweep_by(exec, 0);
	exec->pools->work(exec);
}

enum osd_status osd_exec_pool_set(struct osd_exec *exec, const char *name, char *words,
				  char message[OSD_ADMIN_MESSAGE_MAX])
{
	struct osd_pool_change change;
	enum osd_status status = OSD_E_NO_OBJECT;
	struct osd_pool *pool;

	osd_lock(&exec->lock);
	pool = find(exec, name, message);
	if (pool) {
		change = (struct osd_pool_change){pool->config, pool->supply.active, pool->mode};
		status = osd_pool_change_parse(words, message, &change);
	}
	if (status == OSD_OK)
		status = check_together(exec, pool, &change.config, message);
	if (status == OSD_OK)
		osd_pool_apply(pool, &change);
	osd_unlock(&exec->lock);
	if (status != OSD_OK && !message[0])
		snprintf(message, OSD_ADMIN_MESSAGE_MAX, "%s", osd_status_info(status)->meaning);
	return status;
}

bool osd_exec_pool_value(struct osd_exec *exec, const char *name, const char *key,
			 char value[OSD_POOL_VALUE_MAX])
{
	struct osd_pool_change now;
	const struct osd_pool *pool;
	bool found = false;

	osd_lock(&exec->lock);
	pool = osd_pool_find_named(exec, name, strlen(name));
	if (pool) {
		now = (struct osd_pool_change){pool->config, pool->supply.active, pool->mode};
		found = osd_pool_change_value(&now, key, value);
	}
	osd_unlock(&exec->lock);
	return found;
}

enum osd_status osd_exec_pool_recycle(struct osd_exec *exec, const char *name,
				      char message[OSD_ADMIN_MESSAGE_MAX])
{
	struct osd_pool *pool;

	osd_lock(&exec->lock);
	pool = find(exec, name, message);
	/* Without a connection there is nothing to replace: all sandboxes will be new. */
	if (pool && osd_service_send(exec->sandboxes, OSD_SANDBOXD_ROTATE, 0, pool->config.name,
				     strlen(pool->config.name)))
		pool->recycling = true;
	osd_unlock(&exec->lock);
	return pool ? OSD_OK : OSD_E_NO_OBJECT;
}

void osd_exec_shed(struct osd_exec *exec, bool on)
{
	osd_lock(&exec->lock);
	exec->pools->shedding = on;
	osd_unlock(&exec->lock);
}
