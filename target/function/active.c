/* SPDX-License-Identifier: GPL-2.0-or-later */
/* active.c -- activation, and the active functions in memory (function.h).
 *
 * An activation first takes its place in memory (pending), which keeps its id and alias for it.  Then one transaction
 * marks the object, and the place becomes valid or goes.  Between the two, calls find the version that was.  An
 * activation that replaces the function with its alias ends that one in the same transaction. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "function/machine.h"
#include "function/signing.h"
#include "object/txn_run.h"
#include "security/box.h"
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

bool osd_function_is_active(struct osd_functions *functions, struct osd_object_id id)
{
	bool active;

	osd_lock(&functions->lock);
	active = find_entry(functions, id, false);
	osd_unlock(&functions->lock);
	return active;
}

static void drop(struct osd_functions *functions, struct entry *entry)
{
	osd_assert_held(&functions->lock);
	if (!entry)
		return;
	atomic_fetch_add(&functions->changes, 1);
	osd_function_release(functions, entry);
	free(entry->calls.report);
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
	struct osd_signing signing;    /* as it was checked */
};

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

static enum osd_status reserve(struct activation *activation, bool replace)
{
	struct osd_functions *functions = activation->functions;
	const struct osd_function *function = &activation->function;
	enum osd_status status = OSD_OK;
	const struct entry *other;
	struct entry *entry;

	osd_lock(&functions->lock);
	other = find_alias(functions, function);
	if (find_entry(functions, function->id, true) || (other && other->pending))
		status = OSD_E_BUSY; /* another activation of it, or of its alias, is under way */
	else if (functions->count >= OSD_FUNCTIONS_MAX)
		status = OSD_E_QUOTA;
	else if (other && !replace)
		status = OSD_E_FUNCTION_ALIAS;
	if (status == OSD_OK && other)
		activation->replaced = other->function.id;
	if (status == OSD_OK && functions->memory_max &&
	    osd_functions_reserved(functions, function, activation->replaced) >
		    functions->memory_max)
		status = OSD_E_QUOTA;
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
	atomic_fetch_add(&functions->changes, 1);
	osd_unlock(&functions->lock);
	if (stored)
		osd_machine_sweep(functions);
}

void osd_function_set_caps(struct osd_functions *functions, const struct osd_function *function)
{
	struct entry *entry;

	osd_lock(&functions->lock);
	entry = find_entry(functions, function->id, false);
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
	return a->access == b->access && a->abi == b->abi && strcmp(a->engine, b->engine) == 0 &&
	       strcmp(a->alias, b->alias) == 0 && strcmp(a->pool, b->pool) == 0 &&
	       strcmp(a->methods, b->methods) == 0 &&
	       strcmp(a->inverse, b->inverse) == 0 &&
	       osd_contract_same(&a->contract, &b->contract) && a->wall_usec == b->wall_usec &&
	       a->cpu_usec == b->cpu_usec && a->memory_bytes == b->memory_bytes &&
	       a->output_bytes == b->output_bytes;
}

/* The manifest may have changed since it was read, and since its signature was checked: both must be those that are
 * stored. */
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
	status = osd_signing_same(txn, &activation->function, &activation->signing);
	if (status != OSD_OK)
		return status;
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

/* A function that transforms data gets them as arguments and needs nothing else (stack.h). */
static bool is_sound(const struct osd_function *function)
{
	const struct osd_contract *contract = &function->contract;

	return osd_contract_is_sound(contract) &&
	       (!contract->size || function->access == OSD_FUNCTION_NONE) &&
	       (!contract->inverse || osd_function_has_method(function, function->inverse,
							      strlen(function->inverse)));
}

void osd_functions_set_users(struct osd_functions *functions,
			     size_t (*list_users)(void *arg, struct osd_object_id id, char *text,
						  size_t capacity),
			     void *arg)
{
	functions->list_users = list_users;
	functions->users = arg;
}

static enum osd_status check_engine(const struct osd_functions *functions,
				    const struct osd_function *function)
{
	const char *engine = osd_function_engine(function);
	bool found = strcmp(engine, OSD_FUNCTION_ENGINE) == 0 ||
		     (functions->has_engine && functions->has_engine(functions->engines, engine));

	return found && osd_function_abi_fits(function) ? OSD_OK : OSD_E_FUNCTION_ENGINE;
}

/* Calls decrypt the code when they hand it to a sandbox (exec/run/run.c): here they find out that they can. */
static enum osd_status check_box(struct osd_functions *functions, const uint8_t *box, size_t length)
{
	uint8_t *code = NULL;
	size_t code_length = 0;
	enum osd_status status = osd_box_open(functions->objects, box, length, &code, &code_length);

	osd_box_free(code, code_length);
	return status;
}

bool osd_function_same(const struct osd_function *a, const struct osd_function *b)
{
	return osd_same_id(a->id, b->id) && a->activated_msec == b->activated_msec &&
	       memcmp(a->sha256, b->sha256, sizeof(a->sha256)) == 0;
}

struct ending {
	struct osd_functions *functions;
	struct osd_object_id id;
	const struct osd_function *version; /* NULL: whichever is active */
};

static bool is_version(const struct osd_function *function, const struct osd_function *version)
{
	return !version || osd_function_same(function, version);
}

static void forget(const struct ending *ending)
{
	struct entry *entry;

	osd_lock(&ending->functions->lock);
	entry = find_entry(ending->functions, ending->id, false);
	if (entry && is_version(&entry->function, ending->version))
		drop(ending->functions, entry);
	osd_unlock(&ending->functions->lock);
	osd_machine_sweep(ending->functions);
}

/* A removal or deactivation right after the activation may have looked into memory before settle() has changed it. */
static enum osd_status confirm(const struct activation *activation)
{
	const struct osd_function *function = &activation->function;
	struct activation now = {.function.id = function->id};
	const struct ending ending = {activation->functions, function->id, function};
	enum osd_status status = osd_txn_run(activation->functions->objects, OSD_TXN_READ_ONLY,
					     read_manifest, &now);

	if (status == OSD_E_NO_OBJECT || status == OSD_E_NO_PARTITION ||
	    (status == OSD_OK && !osd_function_same(&now.function, function)))
		forget(&ending);
	else
		return status;
	return OSD_OK;
}

/* Makes a checked function active. */
static enum osd_status store(struct activation *activation, bool replace)
{
	enum osd_status status = reserve(activation, replace);

	if (status != OSD_OK)
		return status;
	status = osd_txn_run(activation->functions->objects, OSD_COMMIT_DURABLE, mark, activation);
	if (status == OSD_OK)
		return confirm(activation);
	settle(activation, false);
	return status;
}

static void log_active(const struct osd_function *function)
{
	osd_info("function 0x%" PRIx64 "/0x%" PRIx64 " is active: %s, SHA-256 %02x%02x%02x%02x..., "
		 "%s%s%s%s%s",
		 function->id.partition_id, function->id.object_id,
		 osd_function_engine(function), function->sha256[0],
		 function->sha256[1], function->sha256[2], function->sha256[3],
		 function->signer[0] ? "signed by " : "not signed", function->signer,
		 function->signer[0] ? " (" : "", function->fingerprint,
		 function->signer[0] ? ")" : "");
}

/* Exchanges the code for the same with machine code.  OSD_E_WOULD_BLOCK: there is none yet. */
static enum osd_status take_compiled(const struct osd_function *function,
				     struct osd_function_code *compiled,
				     struct osd_function_code **code,
				     struct osd_function_compile *ret_compile)
{
	if (!ret_compile || !osd_function_needs_compiler(function, *code))
		return OSD_OK;
	if (compiled && memcmp(compiled->sha256, (*code)->sha256, sizeof(compiled->sha256)) == 0) {
		osd_function_code_put(*code);
		*code = osd_function_code_ref(compiled);
		return OSD_OK;
	}
	*ret_compile = (struct osd_function_compile){*function, OSD_STEAL(*code)};
	return OSD_E_WOULD_BLOCK;
}

enum osd_status osd_function_activate(struct osd_functions *functions, struct osd_object_id id,
				      bool replace, struct osd_function_code *compiled,
				      struct osd_function_compile *ret_compile)
{
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *code = NULL;
	struct activation activation = {.functions = functions, .function.id = id};
	struct osd_function *function = &activation.function;
	struct osd_signers *signers;
	bool current;
	enum osd_status status;

	status = osd_txn_run(functions->objects, OSD_TXN_READ_ONLY, read_manifest, &activation);
	if (status == OSD_OK && !osd_function_is_one(id))
		status = OSD_E_NO_OBJECT;
	if (status == OSD_OK)
		status = is_sound(function) ? check_engine(functions, function) : OSD_E_CONTRACT;
	if (status == OSD_OK)
		status = osd_function_fetch(functions, id, &code);
	if (status == OSD_OK && osd_box_is(code->bytes, code->length))
		status = check_box(functions, code->bytes, code->length);
	if (status != OSD_OK)
		return status;
	memcpy(function->sha256, code->sha256, sizeof(function->sha256));
	function->activated_msec = osd_wall_msec();
	status = osd_signing_check(functions, function, &activation.signing, &signers);
	if (status != OSD_OK)
		return status;
	status = take_compiled(function, compiled, &code, ret_compile);
	if (status == OSD_OK)
		status = store(&activation, replace);
	current = osd_signers_are_current(functions, signers);
	osd_signers_put(functions, signers);
	if (status != OSD_OK)
		return status;
	if (code->machine_length) {
		osd_function_keep(functions, function, code);
		osd_machine_put(functions, function, code);
	}
	log_active(function);
	return current ? OSD_OK : osd_signing_recheck(functions, function);
}

static void forget_at_end(void *arg, bool committed)
{
	if (committed)
		forget(arg);
}

static enum osd_status unmark(struct osd_txn *txn, void *arg)
{
	struct ending *ending = arg;
	struct osd_function now;
	enum osd_status status = osd_object_hold(txn, ending->id);

	if (status == OSD_OK)
		status = osd_function_read(txn, ending->id, &now);
	if (status != OSD_OK || !is_version(&now, ending->version))
		return status;
	status = osd_function_mark(txn, ending->id, NULL);
	return status == OSD_OK ? osd_txn_on_end(txn, forget_at_end, ending) : status;
}

enum osd_status osd_function_end(struct osd_functions *functions,
				 const struct osd_function *version)
{
	struct ending ending = {functions, version->id, version};
	enum osd_status status =
		osd_txn_run(functions->objects, OSD_COMMIT_DURABLE, unmark, &ending);

	if (status != OSD_OK)
		forget(&ending);
	return status;
}

enum osd_status osd_function_deactivate(struct osd_functions *functions, struct osd_object_id id)
{
	struct ending ending = {functions, id, NULL};
	struct activation activation = {.functions = functions, .function.id = id};
	enum osd_status status =
		osd_txn_run(functions->objects, OSD_TXN_READ_ONLY, read_manifest, &activation);

	if (status == OSD_OK && !osd_function_is_one(id))
		status = OSD_E_NO_OBJECT;
	return status == OSD_OK
		       ? osd_txn_run(functions->objects, OSD_COMMIT_DURABLE, unmark, &ending)
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

		if (!entry->pending &&
		    entry->function.id.partition_id == removal->id.partition_id &&
		    (!removal->id.object_id ||
		     entry->function.id.object_id == removal->id.object_id))
			drop(functions, entry);
	}
	osd_unlock(&functions->lock);
	osd_machine_sweep(functions);
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
	atomic_fetch_add(&functions->changes, 1);
	while (functions->count)
		drop(functions, &functions->entries[functions->count - 1]);
	osd_unlock(&functions->lock);
	osd_machine_sweep(functions);
}
