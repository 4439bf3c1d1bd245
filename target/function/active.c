/* SPDX-License-Identifier: GPL-2.0-or-later */
/* active.c -- activation, and the active functions in memory (function.h).
 *
 * An activation first takes its place in memory (pending), which keeps its id and alias for it.  Then one transaction
 * marks the object, and the place becomes valid or goes.  Between the two, calls find the version that was.  An
 * activation that replaces the function with its alias ends that one in the same transaction. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/util.h"
#include "function/impl.h"
#include "object/txn_run.h"
#include "wire/exec_limits.h"
#include "wire/osd2.h"

/* ---- the table ------------------------------------------------------------------------------------- */

/* functions->lock held.  NULL: there is none. */
static struct entry *find_entry(const struct osd_functions *functions, struct osd_object_id id,
				bool pending)
{
	osd_assert_held(&functions->lock);
	for (size_t i = 0; i < functions->count; i++) {
		struct entry *entry = &functions->entries[i];

		if (entry->pending == pending && osd_same_id(entry->function.id, id))
			return entry;
	}
	return NULL;
}

static void drop(struct osd_functions *functions, struct entry *entry)
{
	osd_assert_held(&functions->lock);
	if (entry)
		*entry = functions->entries[--functions->count];
}

/* Two places for each id at most: the active version and the next. */
static struct entry *add(struct osd_functions *functions)
{
	size_t capacity = functions->capacity ? 2 * functions->capacity : 16;
	struct entry *entries;

	osd_assert_held(&functions->lock);
	if (functions->count == functions->capacity) {
		entries = realloc(functions->entries, capacity * sizeof(*entries));
		if (!entries)
			return NULL;
		functions->entries = entries;
		functions->capacity = capacity;
	}
	return &functions->entries[functions->count++];
}

struct activation {
	struct osd_functions *functions;
	struct osd_function function;
	struct osd_object_id replaced; /* object 0: none */
};

/* Another function of the partition that has the alias, or is about to have it.  NULL: there is none. */
static const struct entry *find_alias(const struct osd_functions *functions,
				      const struct osd_function *function)
{
	osd_assert_held(&functions->lock);
	for (size_t i = 0; i < functions->count && function->alias[0]; i++) {
		const struct osd_function *other = &functions->entries[i].function;

		if (other->id.partition_id == function->id.partition_id &&
		    other->id.object_id != function->id.object_id &&
		    strcmp(other->alias, function->alias) == 0)
			return &functions->entries[i];
	}
	return NULL;
}

static enum osd_status reserve(struct activation *activation, bool replace)
{
	struct osd_functions *functions = activation->functions;
	const struct osd_function *function = &activation->function;
	enum osd_status status = OSD_OK;
	const struct entry *other;
	struct entry *entry;

	osd_lock(&functions->lock);
	other = find_alias(functions, function);
	if (find_entry(functions, function->id, true) || (replace && other && other->pending))
		status = OSD_E_BUSY; /* another activation of it, or of its alias, is under way */
	else if (functions->count >= OSD_FUNCTIONS_MAX)
		status = OSD_E_QUOTA;
	else if (other && !replace)
		status = OSD_E_FUNCTION_ALIAS;
	if (status == OSD_OK && other)
		activation->replaced = other->function.id;
	entry = status == OSD_OK ? add(functions) : NULL;
	if (entry)
		*entry = (struct entry){.function = *function, .pending = true};
	else if (status == OSD_OK)
		status = OSD_E_NO_MEMORY;
	osd_unlock(&functions->lock);
	return status;
}

/* The activation has been stored, or not. */
static void settle(const struct activation *activation, bool stored)
{
	struct osd_functions *functions = activation->functions;
	struct osd_object_id id = activation->function.id;
	struct entry *entry;

	osd_lock(&functions->lock);
	if (stored) {
		drop(functions, find_entry(functions, id, false));
		drop(functions, find_entry(functions, activation->replaced, false));
	}
	entry = find_entry(functions, id, true);
	if (stored && entry)
		entry->pending = false;
	else
		drop(functions, entry);
	osd_unlock(&functions->lock);
}

bool osd_function_found(struct osd_functions *functions, const struct osd_function *function)
{
	struct entry *entry;

	osd_lock(&functions->lock);
	entry = add(functions);
	if (entry)
		*entry = (struct entry){.function = *function};
	osd_unlock(&functions->lock);
	return entry;
}

/* ---- activation ------------------------------------------------------------------------------------ */

static enum osd_status read_manifest(struct osd_txn *txn, void *arg)
{
	struct activation *activation = arg;

	return osd_function_read(txn, activation->function.id, &activation->function);
}

static void settle_at_end(void *arg, bool committed)
{
	if (committed)
		settle(arg, true);
}

static bool same_manifest(const struct osd_function *a, const struct osd_function *b)
{
	return a->access == b->access && strcmp(a->engine, b->engine) == 0 &&
	       strcmp(a->alias, b->alias) == 0 && strcmp(a->pool, b->pool) == 0 &&
	       strcmp(a->methods, b->methods) == 0 && a->wall_usec == b->wall_usec &&
	       a->cpu_usec == b->cpu_usec && a->memory_bytes == b->memory_bytes &&
	       a->output_bytes == b->output_bytes;
}

/* The manifest may have changed since it was read: the one that is stored counts. */
static enum osd_status mark(struct osd_txn *txn, void *arg)
{
	struct activation *activation = arg;
	struct osd_function now;
	enum osd_status status = osd_object_hold(txn, activation->function.id);

	if (status == OSD_OK)
		status = osd_function_read(txn, activation->function.id, &now);
	if (status != OSD_OK)
		return status;
	if (!same_manifest(&now, &activation->function))
		return OSD_E_BUSY;
	status = osd_function_mark(txn, now.id, &activation->function);
	if (status == OSD_OK && activation->replaced.object_id) {
		status = osd_function_mark(txn, activation->replaced, NULL);
		if (status == OSD_E_NO_OBJECT) /* removed meanwhile */
			status = OSD_OK;
	}
	return status == OSD_OK ? osd_txn_on_end(txn, settle_at_end, activation) : status;
}

void osd_functions_set_engines(struct osd_functions *functions,
			       bool (*has_engine)(void *arg, const char *engine), void *arg)
{
	functions->has_engine = has_engine;
	functions->engines = arg;
}

static enum osd_status check_engine(const struct osd_functions *functions,
				    const struct osd_function *function)
{
	if (!function->engine[0] || strcmp(function->engine, OSD_FUNCTION_ENGINE) == 0)
		return OSD_OK;
	return functions->has_engine && functions->has_engine(functions->engines, function->engine)
		       ? OSD_OK
		       : OSD_E_FUNCTION_ENGINE;
}

enum osd_status osd_function_activate(struct osd_functions *functions, struct osd_object_id id,
				      bool replace)
{
	OSD_CLEANUP_FREE uint8_t *code = NULL;
	struct activation activation = {.functions = functions, .function.id = id};
	struct osd_function *function = &activation.function;
	size_t length;
	enum osd_status status;

	status = osd_txn_run(functions->objects, OSD_TXN_READ_ONLY, read_manifest, &activation);
	if (status == OSD_OK && !osd_function_is_one(id))
		status = OSD_E_NO_OBJECT;
	if (status == OSD_OK)
		status = check_engine(functions, function);
	if (status == OSD_OK)
		status = osd_function_fetch(functions, id, &code, &length, function->sha256);
	if (status != OSD_OK)
		return status;
	function->activated_msec = osd_wall_msec();
	status = reserve(&activation, replace);
	if (status != OSD_OK)
		return status;
	status = osd_txn_run(functions->objects, OSD_COMMIT_DURABLE, mark, &activation);
	if (status != OSD_OK)
		settle(&activation, false);
	return status;
}

static void forget_at_end(void *arg, bool committed)
{
	struct activation *activation = arg;

	if (!committed)
		return;
	osd_lock(&activation->functions->lock);
	drop(activation->functions,
	     find_entry(activation->functions, activation->function.id, false));
	osd_unlock(&activation->functions->lock);
}

static enum osd_status unmark(struct osd_txn *txn, void *arg)
{
	struct activation *activation = arg;
	enum osd_status status = osd_function_mark(txn, activation->function.id, NULL);

	return status == OSD_OK ? osd_txn_on_end(txn, forget_at_end, activation) : status;
}

enum osd_status osd_function_deactivate(struct osd_functions *functions, struct osd_object_id id)
{
	struct activation activation = {.functions = functions, .function.id = id};
	enum osd_status status =
		osd_txn_run(functions->objects, OSD_TXN_READ_ONLY, read_manifest, &activation);

	if (status == OSD_OK && !osd_function_is_one(id))
		status = OSD_E_NO_OBJECT;
	return status == OSD_OK
		       ? osd_txn_run(functions->objects, OSD_COMMIT_DURABLE, unmark, &activation)
		       : status;
}

/* ---- removal --------------------------------------------------------------------------------------- */

struct removal {
	struct osd_functions *functions;
	struct osd_object_id id; /* object 0: a partition with everything in it */
};

static void removed_at_end(void *arg, bool committed)
{
	OSD_CLEANUP_FREE struct removal *removal = arg;
	struct osd_functions *functions = removal->functions;

	if (!committed)
		return;
	osd_lock(&functions->lock);
	for (size_t i = functions->count; i-- > 0;) {
		struct entry *entry = &functions->entries[i];

		if (entry->function.id.partition_id == removal->id.partition_id &&
		    (!removal->id.object_id ||
		     entry->function.id.object_id == removal->id.object_id))
			drop(functions, entry);
	}
	osd_unlock(&functions->lock);
}

enum osd_status osd_function_removed(void *arg, struct osd_txn *txn, struct osd_object_id id)
{
	struct osd_functions *functions = arg;
	struct removal *removal;
	enum osd_status status;

	if (id.partition_id > OSD_FUNCTION_PARTITION_LAST)
		return OSD_OK;
	removal = malloc(sizeof(*removal));
	if (!removal)
		return OSD_E_NO_MEMORY;
	*removal = (struct removal){functions, id};
	status = osd_txn_on_end(txn, removed_at_end, removal);
	if (status != OSD_OK)
		free(removal);
	return status;
}

void osd_functions_forget(struct osd_functions *functions)
{
	osd_lock(&functions->lock);
	functions->count = 0;
	osd_unlock(&functions->lock);
}
