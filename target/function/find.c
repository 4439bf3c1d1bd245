/* SPDX-License-Identifier: GPL-2.0-or-later */
/* find.c -- the function that a call names (function.h). */
#include <string.h>

#include "base/util.h"
#include "function/impl.h"

static bool has_alias(const struct osd_function *function, const struct osd_function_name *name)
{
	return name->length && strlen(function->alias) == name->length &&
	       memcmp(function->alias, name->text, name->length) == 0;
}

/* Whether the name is the first digits of the function's SHA-256, in lower case. */
static bool has_digits(const struct osd_function *function, const struct osd_function_name *name)
{
	static const char digits[] = "0123456789abcdef";

	if (name->length < OSD_FUNCTION_DIGITS || name->length > 2 * sizeof(function->sha256))
		return false;
	for (size_t i = 0; i < name->length; i++) {
		unsigned nibble =
			i % 2 ? function->sha256[i / 2] & 0xf : function->sha256[i / 2] >> 4;

		if (name->text[i] != (uint8_t)digits[nibble])
			return false;
	}
	return true;
}

/* functions->lock held.  A name that fits the digits of several functions names none of them: a call must not take
 * the first one found. */
static enum osd_status find_named(const struct osd_functions *functions,
				  const struct osd_function_name *name,
				  struct osd_function *ret_function)
{
	const struct osd_function *found = NULL;
	size_t count = 0;

	osd_assert_held(&functions->lock);
	for (size_t i = 0; i < functions->count; i++) {
		const struct osd_function *function = &functions->entries[i].function;

		if (functions->entries[i].pending ||
		    function->id.partition_id != name->partition_id)
			continue;
		if (name->object_id ? function->id.object_id == name->object_id
				    : has_alias(function, name)) {
			*ret_function = *function;
			return OSD_OK;
		}
		if (!name->object_id && has_digits(function, name)) {
			found = function;
			count++;
		}
	}
	if (count == 1)
		*ret_function = *found;
	return count == 0 ? OSD_E_NO_FUNCTION : count == 1 ? OSD_OK : OSD_E_CDB_FIELD;
}

enum osd_status osd_function_find_active(struct osd_functions *functions,
					 const struct osd_function_name *name,
					 struct osd_function *ret_function)
{
	enum osd_status status;

	osd_lock(&functions->lock);
	status = find_named(functions, name, ret_function);
	osd_unlock(&functions->lock);
	return status;
}

enum osd_status osd_function_find(struct osd_functions *functions,
				  const struct osd_function_name *name,
				  struct osd_function *ret_function)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_object_id id = {name->partition_id, name->object_id};
	enum osd_status status;

	status = osd_function_find_active(functions, name, ret_function);
	if (status != OSD_E_NO_FUNCTION || !osd_function_is_one(id) ||
	    osd_object_get(functions->objects, id, &object) != OSD_OK)
		return status;
	return OSD_E_FUNCTION_INACTIVE;
}

bool osd_function_peek(struct osd_functions *functions, struct osd_object_id id,
		       struct osd_function *ret_function)
{
	const struct osd_function_name name = {id.partition_id, id.object_id, NULL, 0};

	return id.object_id && osd_function_find_active(functions, &name, ret_function) == OSD_OK;
}

enum osd_status osd_function_partition(struct osd_functions *functions, uint64_t *ret_partition_id)
{
	enum osd_status status = OSD_E_NO_FUNCTION;

	osd_lock(&functions->lock);
	for (size_t i = 0; i < functions->count && status != OSD_E_CDB_FIELD; i++) {
		uint64_t partition_id = functions->entries[i].function.id.partition_id;

		if (functions->entries[i].pending)
			continue;
		if (status == OSD_OK && partition_id != *ret_partition_id)
			status = OSD_E_CDB_FIELD;
		else
			status = OSD_OK;
		*ret_partition_id = partition_id;
	}
	osd_unlock(&functions->lock);
	return status;
}

void osd_function_first_method(const struct osd_function *function,
			       char method[OSD_FUNCTION_WORD_MAX + 1])
{
	const char *methods = function->methods + strspn(function->methods, " ");
	size_t length = OSD_MIN(strcspn(methods, " "), (size_t)OSD_FUNCTION_WORD_MAX);

	if (length == 0) {
		memcpy(method, OSD_FUNCTION_METHOD, sizeof(OSD_FUNCTION_METHOD));
		return;
	}
	memcpy(method, methods, length);
	method[length] = '\0';
}

bool osd_function_has_method(const struct osd_function *function, const void *method, size_t length)
{
	const char *methods = function->methods[0] ? function->methods : OSD_FUNCTION_METHOD;

	return osd_has_word(methods, ' ', method, length);
}

bool osd_function_choose_method(const struct osd_function *function, const void *method,
				size_t length, char ret_method[OSD_FUNCTION_WORD_MAX + 1])
{
	osd_function_first_method(function, ret_method);
	if (length == 0)
		return true;
	if (!osd_function_has_method(function, method, length))
		return false;
	memcpy(ret_method, method, length);
	ret_method[length] = '\0';
	return true;
}
