/* SPDX-License-Identifier: GPL-2.0-or-later */
/* code.c -- the code of functions, from the store and in memory (function.h).
 *
 * The entry of an active function keeps the code of the last call, with the version of the data that it was read
 * with.  A call that finds this version in the store neither reads nor hashes the code.  All kept code together has
 * at most OSD_FUNCTION_KEPT_MAX bytes: the code that was called the longest ago goes first. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "function/impl.h"
#include "function/machine.h"
#include "security/mac.h"
#include "wire/exec_limits.h"

void osd_function_code_put(struct osd_function_code *code)
{
	if (code && atomic_fetch_sub(&code->references, 1) == 1)
		free(code);
}

struct osd_function_code *osd_function_code_ref(struct osd_function_code *code)
{
	if (code)
		atomic_fetch_add(&code->references, 1);
	return code;
}

/* ---- from the store ---------------------------------------------------------------------------------- */

enum osd_status osd_function_fetch(struct osd_functions *functions, struct osd_object_id id,
				   struct osd_function_code **ret_code)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *code = NULL;
	size_t most = (size_t)osd_exec_limits[OSD_LIMIT_CODE].maximum;
	struct osd_version_check check = {0};
	struct osd_function_code *fitting;
	struct osd_sha256 sha;
	enum osd_status status = osd_object_get(functions->objects, id, &object);

	if (status != OSD_OK)
		return status;
	/* One read gives the bytes and their version, so the length is not known before it.  The
	 * byte beyond the longest code shows code that is too long. */
	code = malloc(sizeof(*code) + most + 1);
	if (!code)
		return OSD_E_NO_MEMORY;
	atomic_init(&code->references, 1);
	atomic_init(&code->pace, 0);
	status = osd_object_read_with(object, 0, code->bytes, most + 1, OSD_DATA_NO_TIMESTAMPS, &check,
				      &code->length);
	if (status != OSD_OK)
		return status;
	if (code->length == 0 || code->length > most)
		return OSD_E_CDB_FIELD;
	fitting = realloc(code, sizeof(*code) + code->length);
	code = fitting ? fitting : code;
	code->version = check.found;
	code->machine_length = 0;
	code->compiled = false;
	osd_sha256_init(&sha);
	osd_sha256_add(&sha, code->bytes, code->length);
	osd_sha256_end(&sha, code->sha256);
	*ret_code = OSD_STEAL(code);
	return OSD_OK;
}

/* ---- in memory --------------------------------------------------------------------------------------- */

static size_t size_of(const struct osd_function_code *code)
{
	return code->length + code->machine_length;
}

void osd_function_release(struct osd_functions *functions, struct entry *entry)
{
	osd_assert_held(&functions->lock);
	if (entry->code)
		functions->kept -= size_of(entry->code);
	osd_function_code_put(entry->code);
	entry->code = NULL;
}

static struct osd_function_code *get_kept(struct osd_functions *functions,
					  const struct osd_function *function)
{
	struct osd_function_code *code = NULL;
	struct entry *entry;

	osd_lock(&functions->lock);
	entry = find_entry(functions, function->id, function->sha256, false);
	if (entry) {
		entry->used = ++functions->uses;
		code = osd_function_code_ref(entry->code);
	}
	osd_unlock(&functions->lock);
	return code;
}

/* Releases what was called the longest ago until there is room. */
static void make_room(struct osd_functions *functions, size_t length)
{
	osd_assert_held(&functions->lock);
	while (functions->kept + length > OSD_FUNCTION_KEPT_MAX) {
		struct entry *oldest = NULL;

		for (size_t i = 0; i < functions->count; i++) {
			struct entry *entry = &functions->entries[i];

			if (entry->code && (!oldest || entry->used < oldest->used))
				oldest = entry;
		}
		if (!oldest)
			return;
		osd_function_release(functions, oldest);
	}
}

/* Two calls may have read the code at the same time: the code of the later one stays.  If it is of
 * the older version, the next call reads the code again. */
void osd_function_keep(struct osd_functions *functions, const struct osd_function *function,
		       struct osd_function_code *code)
{
	struct entry *entry;

	osd_lock(&functions->lock);
	entry = find_entry(functions, function->id, function->sha256, false);
	if (entry) {
		osd_function_release(functions, entry);
		make_room(functions, size_of(code));
		entry->code = osd_function_code_ref(code);
		entry->used = ++functions->uses;
		functions->kept += size_of(code);
	}
	osd_unlock(&functions->lock);
}

/* ---- machine code ------------------------------------------------------------------------------------ */

struct osd_function_code *osd_function_machine(struct osd_functions *functions,
					       struct osd_object_id id, const uint8_t sha256[32])
{
	struct osd_function_code *code = NULL;
	const struct entry *entry;

	osd_lock(&functions->lock);
	entry = find_entry(functions, id, sha256, false);
	if (entry && entry->code && entry->code->machine_length)
		code = osd_function_code_ref(entry->code);
	osd_unlock(&functions->lock);
	return code;
}

/* The mark is in the entry: calls that have read the code separately share nothing else. */
bool osd_function_compile_begins(struct osd_functions *functions,
				 const struct osd_function *function,
				 const struct osd_function_code *code)
{
	struct entry *entry;
	bool begins;

	if (!osd_function_needs_compiler(function, code))
		return false;
	osd_lock(&functions->lock);
	entry = find_entry(functions, function->id, function->sha256, false);
	begins = entry && !entry->compiling;
	if (begins)
		entry->compiling = true;
	osd_unlock(&functions->lock);
	return begins;
}

void osd_function_compile_ends(struct osd_functions *functions, const struct osd_function *function,
			       struct osd_function_code *compiled)
{
	struct entry *entry;

	osd_lock(&functions->lock);
	entry = find_entry(functions, function->id, function->sha256, false);
	if (entry)
		entry->compiling = false;
	osd_unlock(&functions->lock);
	if (!compiled)
		return;
	osd_function_keep(functions, function, compiled);
	osd_machine_put(functions, function, compiled);
}

/* ---- calls ------------------------------------------------------------------------------------------- */

/* Whether the object's data still are those that the code was read from. */
static enum osd_status is_current(struct osd_functions *functions, struct osd_object_id id,
				  const struct osd_function_code *code)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_version_check check = {.wanted = &code->version};
	enum osd_status status = osd_object_get(functions->objects, id, &object);
	size_t none;

	return status == OSD_OK ? osd_object_read_with(object, 0, NULL, 0, OSD_DATA_NO_TIMESTAMPS,
						       &check, &none)
				: status;
}

bool osd_function_code_is_current(struct osd_functions *functions, struct osd_object_id id,
				  const struct osd_data_version *version)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_version_check check = {.wanted = version};
	size_t none;

	return osd_object_get_cached(functions->objects, id, &object) == OSD_OK &&
	       osd_object_read_with(object, 0, NULL, 0, OSD_DATA_NO_TIMESTAMPS | OSD_DATA_NOWAIT,
				    &check, &none) == OSD_OK;
}

enum osd_status osd_function_find_at_once(struct osd_functions *functions,
					  const struct osd_function_name *name,
					  struct osd_function *ret_function,
					  struct osd_function_code **ret_code)
{
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *code = NULL;

	if (osd_function_find_active(functions, name, ret_function) != OSD_OK)
		return OSD_E_WOULD_BLOCK;
	code = get_kept(functions, ret_function);
	if (!code || !osd_function_code_is_current(functions, ret_function->id, &code->version))
		return OSD_E_WOULD_BLOCK;
	*ret_code = OSD_STEAL(code);
	return OSD_OK;
}

enum osd_status osd_function_code(struct osd_functions *functions,
				  const struct osd_function *function,
				  struct osd_function_code **ret_code)
{
	OSD_CLEANUP(osd_function_code_putp)
	struct osd_function_code *code = get_kept(functions, function);
	struct osd_function_code *whole; /* with the machine code that is kept in the store */
	enum osd_status status = code ? is_current(functions, function->id, code) : OSD_E_VERSION;

	if (status == OSD_E_VERSION) {
		osd_function_code_put(OSD_STEAL(code));
		status = osd_function_fetch(functions, function->id, &code);
		/* The same bytes may have been written again: the function stays active.  Code that
		 * is empty or too long is not the code that was activated. */
		if (status == OSD_E_CDB_FIELD ||
		    (status == OSD_OK &&
		     memcmp(code->sha256, function->sha256, sizeof(code->sha256)) != 0))
			return OSD_E_FUNCTION_INACTIVE;
		whole = status == OSD_OK ? osd_machine_get(functions, function, code) : NULL;
		if (whole) {
			osd_function_code_put(code);
			code = whole;
		}
		if (status == OSD_OK)
			osd_function_keep(functions, function, code);
	}
	if (status == OSD_OK)
		*ret_code = OSD_STEAL(code);
	return osd_status_is_gone(status) ? OSD_E_NO_FUNCTION : status;
}
