/* SPDX-License-Identifier: GPL-2.0-or-later */
/* active.c -- the active functions in memory (function.h).
 *
 * An activation first takes a place (pending), which keeps its id and alias for it.  Once its transaction has ended, the
 * place becomes valid or goes.  Until then, calls find the version that was.
 *
 * Transactions of several threads may end in another order than their threads go on.  So each command, once it has
 * changed the store, makes memory say what the store says now (osd_function_match). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "function/impl.h"
#include "function/machine.h"
#include "object/txn_run.h"
#include "wire/osd2.h"

#define ACTIVATIONS 16 /* that are stored at a time */

/* ---- the table ------------------------------------------------------------------------------------- */

bool osd_function_is_active(struct osd_functions *functions, struct osd_object_id id)
{
	bool active;

	osd_lock(&functions->lock);
	active = find_entry(functions, id, NULL, false);
	osd_unlock(&functions->lock);
	return active;
}

static void drop(struct osd_functions *functions, struct entry *entry)
{
	osd_assert_held(&functions->lock);
	if (!entry)
		return;
	atomic_fetch_add(&functions->changes, 1);
	if (strcmp(entry->function.engine, OSD_FUNCTION_COMPILED) == 0)
		atomic_store(&functions->machine_due, true);
	osd_function_release(functions, entry);
	osd_function_calls_release(&entry->calls);
	*entry = functions->entries[--functions->count];
}

/* Two places for each id at most: the active version and the next. */
static struct entry *add(struct osd_functions *functions)
{
	osd_assert_held(&functions->lock);
	return OSD_MAKE_ROOM(functions->entries, functions->count, functions->capacity)
		       ? &functions->entries[functions->count++]
		       : NULL;
}

/* Another function of the partition that is about to have the alias, or else has it.  NULL: there is none. */
static const struct entry *find_alias(const struct osd_functions *functions,
				      const struct osd_function *function)
{
	const struct entry *found = NULL;

	osd_assert_held(&functions->lock);
	for (size_t i = 0; i < functions->count && function->alias[0]; i++) {
		const struct osd_function *other = &functions->entries[i].function;

		if (other->id.partition_id == function->id.partition_id &&
		    other->id.object_id != function->id.object_id &&
		    strcmp(other->alias, function->alias) == 0 && !(found && found->pending))
			found = &functions->entries[i];
	}
	return found;
}

static size_t count_pending(const struct osd_functions *functions)
{
	size_t count = 0;

	osd_assert_held(&functions->lock);
	for (size_t i = 0; i < functions->count; i++)
		count += functions->entries[i].pending;
	return count;
}

/* Whether there is a place for a function: a partition may have as many as are free.  So one whose functions are many
 * leaves places for those of others. */
static bool has_place(const struct osd_functions *functions, struct osd_object_id id)
{
	size_t own = 0, left = OSD_FUNCTIONS_MAX - OSD_MIN(functions->count, OSD_FUNCTIONS_MAX);

	osd_assert_held(&functions->lock);
	for (size_t i = 0; i < functions->count; i++)
		own += functions->entries[i].function.id.partition_id == id.partition_id;
	return left > 0 && (own < left || find_entry(functions, id, NULL, false));
}

enum osd_status osd_function_replaced(struct osd_functions *functions, struct osd_object_id id,
				      struct osd_function *ret_other)
{
	struct osd_function function = {.id = id};
	enum osd_status status = osd_function_load(functions, &function);
	const struct entry *other;

	*ret_other = (struct osd_function){.activated_msec = 0};
	if (status != OSD_OK)
		return status;
	osd_lock(&functions->lock);
	other = find_alias(functions, &function);
	if (other && !other->pending)
		*ret_other = other->function;
	osd_unlock(&functions->lock);
	return OSD_OK;
}

enum osd_status osd_function_reserve(struct osd_functions *functions,
				     const struct osd_function *function,
				     const struct osd_function *replace,
				     struct osd_object_id *ret_replaced)
{
	struct osd_object_id replaced = {0, 0};
	enum osd_status status = OSD_OK;
	const struct entry *other;
	struct entry *entry;

	osd_lock(&functions->lock);
	other = find_alias(functions, function);
	if (find_entry(functions, function->id, NULL, true) || (other && other->pending) ||
	    count_pending(functions) == ACTIVATIONS)
		status = OSD_E_BUSY; /* another activation of it, or of its alias, is under way */
	else if (!has_place(functions, function->id))
		status = OSD_E_QUOTA;
	else if (other && !replace)
		status = OSD_E_FUNCTION_ALIAS;
	else if (other && !osd_function_same(&other->function, replace))
		status = OSD_E_BUSY;
	if (status == OSD_OK && other)
		replaced = other->function.id;
	if (status == OSD_OK && functions->memory_max &&
	    osd_functions_reserved(functions, function, replaced) > functions->memory_max)
		status = OSD_E_QUOTA;
	entry = status == OSD_OK ? add(functions) : NULL;
	if (entry)
		*entry = (struct entry){.function = *function, .pending = true};
	else if (status == OSD_OK)
		status = OSD_E_NO_MEMORY;
	osd_unlock(&functions->lock);
	*ret_replaced = replaced;
	return status;
}

/* ---- memory and store ------------------------------------------------------------------------------ */

struct versions {
	struct osd_function list[1 + ACTIVATIONS];
	size_t count;
	uint64_t matches; /* functions->matches, before they were read */
};

bool osd_function_same(const struct osd_function *a, const struct osd_function *b)
{
	return osd_same_id(a->id, b->id) && a->activated_msec == b->activated_msec &&
	       memcmp(a->sha256, b->sha256, sizeof(a->sha256)) == 0;
}

/* The function, and all that are about to be active: one of these may have replaced it.  These are read after it, so
 * that one of the two is found active. */
static void list_unsure(struct osd_functions *functions, struct osd_object_id id,
			struct versions *versions)
{
	versions->list[0].id = id;
	versions->count = 1;
	osd_lock(&functions->lock);
	versions->matches = functions->matches;
	for (size_t i = 0; i < functions->count; i++)
		if (functions->entries[i].pending)
			versions->list[versions->count++].id = functions->entries[i].function.id;
	osd_unlock(&functions->lock);
}

/* A function that cannot be read is not active until the next start. */
static void read_stored(struct osd_functions *functions, struct osd_function *function)
{
	struct osd_object_id id = function->id;
	enum osd_status status;

	do
		status = osd_function_load(functions, function);
	while (status == OSD_E_BUSY);
	if (status == OSD_OK)
		return;
	*function = (struct osd_function){.id = id};
	if (!osd_status_is_gone(status))
		osd_error("function 0x%" PRIx64 "/0x%" PRIx64
			  " cannot be read, calls do not find it: %s",
			  id.partition_id, id.object_id, osd_status_info(status)->meaning);
}

/* A version in memory that is not the stored one goes; the stored one becomes valid. */
static void match_one(struct osd_functions *functions, const struct osd_function *stored)
{
	struct entry *entry = find_entry(functions, stored->id, NULL, false);

	if (entry && osd_function_same(&entry->function, stored))
		return;
	drop(functions, entry);
	entry = find_entry(functions, stored->id, NULL, true);
	if (entry && osd_function_same(&entry->function, stored))
		entry->pending = false;
}

static bool match_all(struct osd_functions *functions, const struct versions *versions)
{
	bool newest;

	osd_lock(&functions->lock);
	newest = functions->matches == versions->matches;
	for (size_t i = 0; newest && i < versions->count; i++)
		match_one(functions, &versions->list[i]);
	if (newest) {
		functions->matches++;
		atomic_fetch_add(&functions->changes, 1);
	}
	osd_unlock(&functions->lock);
	return newest;
}

/* The record read here may be old if another thread has matched meanwhile; then it is read again. */
void osd_function_match(struct osd_functions *functions, struct osd_object_id id)
{
	struct versions versions;

	do {
		list_unsure(functions, id, &versions);
		for (size_t i = 0; i < versions.count; i++)
			read_stored(functions, &versions.list[i]);
	} while (!match_all(functions, &versions));
	osd_machine_sweep(functions);
}

void osd_function_set_caps(struct osd_functions *functions, const struct osd_function *function)
{
	struct entry *entry;

	osd_lock(&functions->lock);
	entry = find_entry(functions, function->id, NULL, false);
	if (entry && osd_function_same(&entry->function, function))
		entry->function.caps = function->caps;
	atomic_fetch_add(&functions->changes, 1);
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

void osd_function_drop(struct osd_functions *functions, const struct osd_function *version,
		       bool pending)
{
	struct entry *entry;

	osd_lock(&functions->lock);
	entry = find_entry(functions, version->id, NULL, pending);
	if (entry && osd_function_same(&entry->function, version))
		drop(functions, entry);
	osd_unlock(&functions->lock);
	osd_machine_sweep(functions);
}

/* ---- removal --------------------------------------------------------------------------------------- */

struct removal {
	struct osd_functions *functions;
	struct osd_object_id id; /* object 0: a partition with everything in it */
};

/* The function with the lowest id above *id that is removed, if it is in memory. */
static bool find_removed(const struct removal *removal, struct osd_object_id *id)
{
	struct osd_functions *functions = removal->functions;
	uint64_t above = id->object_id;
	bool found = false;

	osd_lock(&functions->lock);
	for (size_t i = 0; i < functions->count; i++) {
		struct osd_object_id other = functions->entries[i].function.id;

		if (other.partition_id != id->partition_id || other.object_id <= above ||
		    (removal->id.object_id && other.object_id != removal->id.object_id) ||
		    (found && other.object_id >= id->object_id))
			continue;
		*id = other;
		found = true;
	}
	osd_unlock(&functions->lock);
	return found;
}

static void removed_at_end(void *arg, bool committed)
{
	OSD_CLEANUP_FREE struct removal *removal = arg;
	struct osd_object_id id = {removal->id.partition_id, 0};

	while (committed && find_removed(removal, &id))
		osd_function_match(removal->functions, id);
}

enum osd_status osd_function_removed(void *arg, struct osd_txn *txn, struct osd_object_id id)
{
	struct osd_functions *functions = arg;
	struct removal *removal;

	if (id.partition_id > OSD_FUNCTION_PARTITION_LAST)
		return OSD_OK;
	removal = malloc(sizeof(*removal));
	if (!removal)
		return OSD_E_NO_MEMORY;
	*removal = (struct removal){functions, id};
	return osd_txn_on_end(txn, removed_at_end, removal);
}

void osd_functions_forget(struct osd_functions *functions)
{
	osd_lock(&functions->lock);
	atomic_fetch_add(&functions->changes, 1);
	while (functions->count)
		drop(functions, &functions->entries[functions->count - 1]);
	osd_unlock(&functions->lock);
	osd_machine_sweep(functions);
}
