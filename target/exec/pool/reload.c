/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reload.c -- reads the file of pools again while the target runs (admin.h).  New pools start,
 * pools that were removed from the file drain, and the others get the new values. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "exec/admin.h"
#include "exec/pool/pool.h"

#define DIFF_MAX 512

/* A text of lines; lines beyond its size are dropped. */
struct lines {
	char *text;
	size_t size, used;
};

static void add_line(struct lines *lines, const char *subject, const char *what)
{
	int length = snprintf(lines->text + lines->used, lines->size - lines->used, "%s: %s\n",
			      subject, what);

	if (length < 0 || (size_t)length >= lines->size - lines->used)
		lines->text[lines->used] = '\0';
	else
		lines->used += (size_t)length;
}

/* ---- may it be; exec->lock held -------------------------------------------------------------- */

/* Those that leave count as they are until their jobs have ended. */
static enum osd_status check(struct osd_exec *exec, const struct osd_pool_table *table,
			     char message[OSD_ADMIN_MESSAGE_MAX])
{
	OSD_CLEANUP(osd_pool_table_release)
	struct osd_pool_table claims = {.budget_bytes = table->budget_bytes};

	claims.pools = calloc(table->count + OSD_POOLS_EVER, sizeof(*claims.pools));
	if (!claims.pools)
		return OSD_E_NO_MEMORY;
	for (size_t i = 0; i < table->count; i++) {
		const char *name = table->pools[i].name;
		const struct osd_pool *pool = osd_pool_find_any(exec, name, strlen(name));

		claims.pools[claims.count++] =
			pool ? osd_pool_claim(pool, &table->pools[i]) : table->pools[i];
	}
	for (const struct osd_pool *pool = exec->pools->first; pool; pool = pool->next)
		if (!pool->gone && !osd_pool_table_find(table, pool->config.name) &&
		    osd_pool_has_jobs(pool))
			claims.pools[claims.count++] = osd_pool_claim(pool, &pool->config);
	return osd_pool_table_check(&claims, message);
}

/* Does everything that can fail first.  Pools made before a failure are marked as gone. */
static enum osd_status make_room(struct osd_exec *exec, const struct osd_pool_table *table)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; i < table->count && status == OSD_OK; i++) {
		const char *name = table->pools[i].name;

		if (!osd_pool_find_any(exec, name, strlen(name)) && !osd_pool_create(exec, name))
			status = OSD_E_NO_MEMORY;
	}
	return status;
}

/* ---- then it is; exec->lock held ------------------------------------------------------------- */

static void add(struct osd_pool *pool, const struct osd_pool_config *config, struct lines *lines)
{
	const struct osd_pool_change change = {*config, config->max, OSD_POOL_RUNNING};

	osd_assert_held(&pool->exec->lock);
	pool->gone = pool->leaving = false;
	osd_pool_apply(pool, &change);
	add_line(lines, config->name, "new");
}

static void change(struct osd_pool *pool, const struct osd_pool_config *config, struct lines *lines)
{
	const struct osd_pool_change next = {
		*config, osd_pool_active_then(&pool->config, pool->supply.active, config),
		pool->mode};
	char diff[DIFF_MAX];

	osd_pool_config_diff(&pool->config, config, diff, sizeof(diff));
	if (!diff[0])
		return;
	osd_pool_apply(pool, &next);
	add_line(lines, config->name, diff);
}

static void remove_pool(struct osd_pool *pool, struct lines *lines)
{
	if (pool->gone || pool->leaving)
		return;
	add_line(lines, pool->config.name, "removed");
	osd_pool_leave(pool);
}

static void apply(struct osd_exec *exec, const struct osd_pool_table *table, struct lines *lines)
{
	char budget[64];

	if (exec->pools->budget_bytes != table->budget_bytes) {
		snprintf(budget, sizeof(budget), "%" PRIu64 " -> %" PRIu64,
			 exec->pools->budget_bytes, table->budget_bytes);
		add_line(lines, "budget", budget);
	}
	exec->pools->budget_bytes = table->budget_bytes;
	for (struct osd_pool *pool = exec->pools->first; pool; pool = pool->next) {
		const struct osd_pool_config *config = osd_pool_table_find(table, pool->config.name);

		if (!config)
			remove_pool(pool, lines);
		else if (pool->gone || pool->leaving)
			add(pool, config, lines);
		else
			change(pool, config, lines);
	}
	osd_service_ask(exec->sandboxes); /* it may have reported them before they existed here */
}

enum osd_status osd_exec_pools_reload(struct osd_exec *exec, char *changed, size_t changed_size,
				      char message[OSD_ADMIN_MESSAGE_MAX])
{
	OSD_CLEANUP(osd_pool_table_release) struct osd_pool_table table = {0};
	struct lines lines = {changed, changed_size, 0};
	const struct osd_pools *pools = exec->pools;
	enum osd_status status;

	changed[0] = message[0] = '\0';
	if (!pools->file) {
		snprintf(message, OSD_ADMIN_MESSAGE_MAX,
			 "this target was started without a file of pools (option pools)");
		return OSD_E_PARAM_FIELD;
	}
	status = osd_pool_table_load(pools->file, pools->slots, pools->reuse, message, &table);
	osd_lock(&exec->lock);
	if (status == OSD_OK)
		status = check(exec, &table, message);
	if (status == OSD_OK)
		status = make_room(exec, &table);
	if (status == OSD_OK)
		apply(exec, &table, &lines);
	osd_unlock(&exec->lock);
	if (status != OSD_OK && !message[0])
		snprintf(message, OSD_ADMIN_MESSAGE_MAX, "%s", osd_status_info(status)->meaning);
	return status;
}
