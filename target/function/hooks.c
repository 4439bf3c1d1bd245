/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hooks.c -- see hooks.h.  Everything here may run in a transaction: it reads active functions in memory alone. */
#include "function/hooks.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "function/impl.h"
#include "object/due.h"

/* ---- from values to hooks ----------------------------------------------------------------------- */

struct finding {
	struct osd_functions *functions;
	unsigned events;
	enum osd_status status;
	struct osd_hook *list; /* owned */
	size_t count;
};

static enum osd_status make_hook(struct osd_functions *functions,
				 const struct osd_hook_value *value, struct osd_hook *hook)
{
	const struct osd_object_id id = {value->partition_id, value->object_id};

	if (!osd_function_peek(functions, id, &hook->function) ||
	    !osd_function_choose_method(&hook->function, value->method, value->method_length,
					hook->method))
		return OSD_E_FUNCTION_INACTIVE;
	hook->events = value->events;
	hook->page = value->page;
	memcpy(hook->parameters, value->parameters, value->parameters_length);
	hook->parameters_length = value->parameters_length;
	return OSD_OK;
}

/* It follows the hooks of the same object. */
static void take_definer(struct finding *finding, enum osd_stack_level level, uint32_t number,
			 const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < finding->count && length < OSD_PRINCIPAL_MAX; i++)
		if (finding->list[i].level == level &&
		    finding->list[i].number + OSD_HOOK_DEFINERS == number)
			memcpy(finding->list[i].definer, bytes, length);
}

static void take_value(void *arg, enum osd_stack_level level, uint32_t number, const uint8_t *bytes,
		       size_t length)
{
	struct finding *finding = arg;
	struct osd_hook_value value;
	struct osd_hook *list;

	if (finding->status != OSD_OK)
		return;
	if (number > OSD_HOOK_DEFINERS) {
		take_definer(finding, level, number, bytes, length);
		return;
	}
	/* set() has decoded every value before it was stored: this one is damaged. */
	if (!osd_hook_value_decode(bytes, length, &value)) {
		finding->status = OSD_E_MEDIUM;
		return;
	}
	/* Before make_hook(): an inactive function refuses only the events of its hooks. */
	if (!(value.events & finding->events))
		return;
	list = realloc(finding->list, (finding->count + 1) * sizeof(*list));
	if (!list) {
		finding->status = OSD_E_NO_MEMORY;
		return;
	}
	finding->list = list;
	list[finding->count] = (struct osd_hook){.level = level, .number = number};
	finding->status = make_hook(finding->functions, &value, &list[finding->count]);
	if (finding->status == OSD_OK)
		finding->count++;
}

enum osd_status osd_hooks_find(struct osd_functions *functions, struct osd_txn *txn,
			       struct osd_object_id id, unsigned events,
			       struct osd_hook **ret_hooks, size_t *ret_count)
{
	struct finding finding = {.functions = functions, .events = events};
	enum osd_status status = osd_hooks_each(txn, id, take_value, &finding);

	*ret_hooks = finding.list;
	*ret_count = finding.count;
	return status == OSD_OK ? finding.status : status;
}

/* ---- the pages ---------------------------------------------------------------------------------- */

/* Attributes for applications, of user objects.  The target sets them without the rights of a user,
 * so a hook must not name a page that has a meaning for the target. */
static bool may_be_derived(uint32_t page)
{
	return page >= OSD_PAGE_DERIVED_FIRST && page <= OSD_PAGE_DERIVED_LAST;
}

static bool is_good(struct osd_functions *functions, const uint8_t *bytes, size_t length)
{
	struct osd_hook_value value;
	struct osd_hook hook;

	return osd_hook_value_decode(bytes, length, &value) &&
	       (value.events != OSD_HOOK_AFTER || may_be_derived(value.page)) &&
	       make_hook(functions, &value, &hook) == OSD_OK;
}

static enum osd_status set(void *context, struct osd_txn *txn, struct osd_object_id id,
			   uint32_t page, uint32_t number, const uint8_t *value, size_t length)
{
	(void)page;
	if (number == OSD_HOOK_DUE && id.object_id && length == 1 && value[0] == 1)
		return osd_due_mark(txn, id);
	/* An empty value is not checked: a hook can be removed when its function is gone. */
	if ((id.partition_id && id.partition_id <= OSD_FUNCTION_PARTITION_LAST) || number == 0 ||
	    number > OSD_HOOKS || (length && !is_good(context, value, length)))
		return OSD_E_PARAM_FIELD;
	return osd_hook_put(txn, id, number, value, length);
}

static enum osd_status get_due(struct osd_txn *txn, struct osd_object_id id, uint8_t *buffer,
			       size_t capacity, size_t *ret_length)
{
	bool due = false;
	enum osd_status status = osd_is_due(txn, id, &due);

	*ret_length = due;
	if (due && capacity)
		buffer[0] = 1;
	return status;
}

struct comparing {
	uint32_t pages[OSD_HOOK_LEVELS * OSD_HOOKS];
	size_t count;
};

static void take_page(void *arg, enum osd_stack_level level, uint32_t number, const uint8_t *bytes,
		      size_t length)
{
	struct comparing *comparing = arg;
	struct osd_hook_value value;

	(void)level, (void)number;
	if (osd_hook_value_decode(bytes, length, &value) && value.events == OSD_HOOK_AFTER &&
	    comparing->count < OSD_ARRAY_SIZE(comparing->pages))
		comparing->pages[comparing->count++] = value.page;
}

/* All attributes that functions derive are of the version that the data have. */
static enum osd_status get_current(struct osd_txn *txn, struct osd_object_id id, uint8_t *buffer,
				   size_t capacity, size_t *ret_length)
{
	uint8_t is[OSD_VERSION_BYTES], derived[OSD_VERSION_BYTES];
	struct comparing comparing = {.count = 0};
	size_t length = 0;
	enum osd_status status = osd_hooks_each(txn, id, take_page, &comparing);
	bool current = comparing.count > 0 && id.object_id;

	if (status == OSD_OK && current)
		status = osd_page_value(txn, id, OSD_PAGE_VERSION, OSD_VERSION_NUMBER, is,
					sizeof(is), &length);
	current &= length == sizeof(is);
	for (size_t i = 0; i < comparing.count && status == OSD_OK && current; i++) {
		status = osd_page_kept_get(txn, id, comparing.pages[i], OSD_DERIVED_VERSION,
					   derived, sizeof(derived), &length);
		current = length == sizeof(derived) && memcmp(is, derived, sizeof(is)) == 0;
	}
	*ret_length = current;
	if (current && capacity)
		buffer[0] = 1;
	return status;
}

static enum osd_status get(void *context, struct osd_txn *txn, struct osd_object_id id,
			   uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
			   size_t *ret_length)
{
	(void)context;
	*ret_length = 0;
	if (number == OSD_HOOK_DUE)
		return get_due(txn, id, buffer, capacity, ret_length);
	if (number == OSD_HOOK_CURRENT)
		return get_current(txn, id, buffer, capacity, ret_length);
	if (number == 0 || number > OSD_HOOKS)
		return OSD_OK;
	return osd_page_kept_get(txn, id, page, number, buffer, capacity, ret_length);
}

void osd_hooks_add_pages(struct osd_functions *functions)
{
	static const enum osd_object_type types[OSD_HOOK_LEVELS] = {OSD_USER_OBJECT, OSD_PARTITION,
								    OSD_ROOT};

	for (size_t i = 0; i < OSD_HOOK_LEVELS; i++) {
		functions->hook_pages[i] =
			(struct osd_page_provider){.page = osd_hook_page(types[i]),
						   .page_name = "iosd hooks",
						   .context = functions,
						   .get = get,
						   .last = OSD_HOOK_NUMBERS,
						   .set = set};
		osd_objects_add_page(functions->objects, &functions->hook_pages[i]);
	}
}
