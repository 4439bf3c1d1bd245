/* SPDX-License-Identifier: GPL-2.0-or-later */
/* function_page.c -- attribute page B000_0005h of the root: engines, active functions and what they reserve
 * (docs/functions.md), and kept results (docs/views.md). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exec/tell/tell.h"
#include "function/function.h"
#include "function/kept.h"
#include "wire/exec_limits.h"

/* Attributes. */
enum {
	MOST_ACTIVE = 1,
	ACTIVE,
	RESERVED,
	RESERVED_MAX,
	KEPT,
	KEPT_MAX,
	CODE_MAX,
	ENGINES,
	RESULTS_QUOTA,
	RESULTS_BYTES,
	RESULTS_HITS,
	RESULTS_COMPUTED,
	RESULTS_SHARED,
	RESULTS_EVICTED,
	RESULTS_FAILED,
	RESULTS_USEC = OSD_FUNCTIONS_PAGE_LAST,
};

#define LINE_BYTES 512 /* of an engine */

/* The limits of the first pool that has the engine, which calls use unless they name another; false: no pool has it. */
static bool find_pool(struct osd_exec *exec, const char *engine, char *text, size_t size)
{
	const struct osd_pool *pool;
	size_t used;

	osd_lock(&exec->lock);
	pool = osd_pool_find_engine(exec, NULL, (const uint8_t *)engine, strlen(engine));
	if (pool) {
		used = (size_t)snprintf(text, size, " pool=%s", pool->config.name);
		osd_tell_limits(&pool->config, text + used, size - used);
	}
	osd_unlock(&exec->lock);
	return pool;
}

/* A line of an engine that a pool has: its name, then key=value. */
static void put_engine(struct osd_exec *exec, struct osd_wr *w, const char *engine, unsigned first,
		       unsigned last)
{
	struct osd_function_figures figures;
	char limits[LINE_BYTES - 100], line[LINE_BYTES];

	if (!find_pool(exec, engine, limits, sizeof(limits)))
		return;
	osd_functions_figures(exec->functions, engine, &figures);
	snprintf(line, sizeof(line), "%s abi=%u-%u active=%zu reserved=%" PRIu64 "%s\n", engine,
		 first, last, figures.active, figures.reserved_bytes, limits);
	osd_wr_text(w, line);
}

static void put_number(struct osd_wr *w, const struct osd_function_figures *functions,
		       const struct osd_kept_figures *results, uint32_t number)
{
	const struct {
		uint64_t value;
		size_t bytes;
	} numbers[] = {
		[MOST_ACTIVE] = {OSD_FUNCTIONS_MAX, 4},
		[ACTIVE] = {functions->active, 4},
		[RESERVED] = {functions->reserved_bytes, 8},
		[RESERVED_MAX] = {functions->reserved_max, functions->reserved_max ? 8 : 0},
		[KEPT] = {functions->kept_bytes, 8},
		[KEPT_MAX] = {OSD_FUNCTION_KEPT_MAX, 8},
		[CODE_MAX] = {osd_exec_limits[OSD_LIMIT_CODE].maximum, 8},
		[RESULTS_QUOTA] = {results->quota_bytes, 8},
		[RESULTS_BYTES] = {results->kept_bytes, 8},
		[RESULTS_HITS] = {results->hits, 8},
		[RESULTS_COMPUTED] = {results->misses, 8},
		[RESULTS_SHARED] = {results->shared, 8},
		[RESULTS_EVICTED] = {results->evicted, 8},
		[RESULTS_FAILED] = {results->failed, 8},
		[RESULTS_USEC] = {results->computed_usec, 8},
	};

	if (number <= OSD_FUNCTIONS_PAGE_LAST)
		osd_wr_be(w, numbers[number].value, numbers[number].bytes);
}

static void put(struct osd_exec *exec, struct osd_wr *w, uint32_t number)
{
	struct osd_function_figures functions;
	struct osd_kept_figures results;

	if (number == ENGINES) {
#define X(name, first, last) put_engine(exec, w, name, first, last);
		OSD_FUNCTION_ENGINES(X)
#undef X
		return;
	}
	osd_functions_figures(exec->functions, NULL, &functions);
	osd_kept_figures(osd_functions_kept(exec->functions), &results);
	put_number(w, &functions, &results, number);
}

enum osd_status osd_function_page_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				      uint32_t page, uint32_t number, uint8_t *buffer,
				      size_t capacity, size_t *ret_length)
{
	struct osd_exec *exec = context;
	struct osd_wr w = osd_wr_init(buffer, capacity);

	(void)txn, (void)id, (void)page;
	if (exec->functions)
		put(exec, &w, number);
	*ret_length = osd_wr_used(&w);
	return OSD_OK;
}
