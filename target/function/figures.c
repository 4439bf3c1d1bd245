/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures.c -- how many functions are active, and the memory that they reserve (function.h). */
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "function/impl.h"
#include "wire/exec_limits.h"

static const struct {
	const char *name;
	uint32_t first, last;
} engines[] = {
#define X(name, first, last) {name, first, last},
	OSD_FUNCTION_ENGINES(X)
#undef X
};

const char *osd_function_engine(const struct osd_function *function)
{
	return function->engine[0] ? function->engine : OSD_FUNCTION_ENGINE;
}

bool osd_function_abi_fits(const struct osd_function *function)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(engines); i++)
		if (strcmp(engines[i].name, osd_function_engine(function)) == 0)
			return !function->abi || (function->abi >= engines[i].first &&
						  function->abi <= engines[i].last);
	return false;
}

static uint64_t reserves(const struct osd_function *function)
{
	return function->memory_bytes ? function->memory_bytes
				      : osd_exec_limits[OSD_LIMIT_MEMORY].standard;
}

uint64_t osd_functions_reserved(const struct osd_functions *functions,
				const struct osd_function *next, struct osd_object_id replaced)
{
	uint64_t sum = reserves(next);

	osd_assert_held(&functions->lock);
	for (size_t i = 0; i < functions->count; i++) {
		const struct osd_function *function = &functions->entries[i].function;

		if (!osd_same_id(function->id, next->id) && !osd_same_id(function->id, replaced))
			sum = osd_add_capped(sum, reserves(function));
	}
	return sum;
}

void osd_functions_figures(struct osd_functions *functions, const char *engine,
			   struct osd_function_figures *ret_figures)
{
	struct osd_function_figures figures = {0};

	osd_lock(&functions->lock);
	figures.reserved_max = functions->memory_max;
	figures.kept_bytes = functions->kept;
	for (size_t i = 0; i < functions->count; i++) {
		const struct osd_function *function = &functions->entries[i].function;

		if (functions->entries[i].pending ||
		    (engine && strcmp(osd_function_engine(function), engine) != 0))
			continue;
		figures.active++;
		figures.reserved_bytes = osd_add_capped(figures.reserved_bytes, reserves(function));
	}
	osd_unlock(&functions->lock);
	*ret_figures = figures;
}

void osd_functions_set_memory(struct osd_functions *functions, uint64_t most)
{
	struct osd_function_figures figures;

	functions->memory_max = most;
	osd_functions_figures(functions, NULL, &figures);
	if (most && figures.reserved_bytes > most)
		osd_warning("functions: %zu are active and reserve %llu bytes of memory, more than "
			    "the %llu of function_memory: they stay active, and no other becomes so",
			    figures.active, (unsigned long long)figures.reserved_bytes,
			    (unsigned long long)most);
}
