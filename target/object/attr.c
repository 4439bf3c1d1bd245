/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr.c -- get, set and walk attributes: finds out whose page it is (a provider's, a standard one,
 * the application's) and keeps the application's.  Standard pages are in attr_table.c, attr_std.c
 * and attr_set.c, page forms in attr_page.c, timestamps in attr_time.c. */
#include "object/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "object/value_index.h"
#include "wire/cursor.h"

#define IDENTIFICATION_BYTES 40

/* Relative page numbers (osd2-wire 5.1). */
#define REL_STANDARD_LAST    0x7fu
#define REL_RESERVED_LAST    0x7fffu
#define REL_PUBLIC_LAST	     0xffffu
#define REL_APPLICATION_LAST 0x1fffffffu
#define REL_STD_PAGES	     7u
#define REL_COUNTERS	     7u /* what the atomic commands use (osd2-wire 3.19) */
#define REL_OPAQUE_FIRST     8u

uint32_t osd_page_base(enum osd_object_type type)
{
	switch (type) {
	case OSD_ROOT:
		return OSD_PAGE_ROOT_BASE;
	case OSD_PARTITION:
		return OSD_PAGE_PARTITION_BASE;
	case OSD_COLLECTION:
		return OSD_PAGE_COLLECTION_BASE;
	case OSD_USER_OBJECT:
		break;
	}
	return 0;
}

/* ---- whose page -------------------------------------------------------------------------- */

enum page_class {
	PAGE_STANDARD,
	PAGE_OPEN,
	PAGE_CLOSED /* kept by the target, clients read */,
	PAGE_BAD
};

static enum page_class classify(const struct osd_txn *txn, uint32_t page, uint32_t *ret_relative)
{
	enum osd_object_type type = osd_txn_type(txn);
	uint32_t base = osd_page_base(type), relative = page - base;

	if (page >= OSD_PAGE_ANY_BASE)
		return page < OSD_PAGE_CURRENT_COMMAND ? PAGE_OPEN : PAGE_BAD;
	if (page < base || relative >= OSD_PAGE_PARTITION_BASE)
		return PAGE_BAD;
	*ret_relative = relative;
	if (osd_std_has_page(type, relative))
		return PAGE_STANDARD;
	if (type == OSD_USER_OBJECT && relative == REL_COUNTERS)
		return PAGE_OPEN;
	if (relative <= REL_STANDARD_LAST)
		return type == OSD_USER_OBJECT && relative >= REL_OPAQUE_FIRST &&
				       !txn->objects->strict
			       ? PAGE_OPEN
			       : PAGE_CLOSED;
	if (relative <= REL_RESERVED_LAST)
		return PAGE_BAD;
	if (relative <= REL_PUBLIC_LAST)
		return PAGE_CLOSED;
	return relative <= REL_APPLICATION_LAST ? PAGE_OPEN : PAGE_CLOSED;
}

bool osd_attr_page_is_open(const struct osd_txn *txn, uint32_t page)
{
	uint32_t relative = 0;

	return !osd_attr_provider(txn->objects, page) &&
	       classify(txn, page, &relative) == PAGE_OPEN;
}

/* Root and partition pages stand behind their own objects only; B000_0001h is in the root's range.
 */
static bool provider_fits(const struct osd_txn *txn, uint32_t page)
{
	uint32_t base = osd_page_base(osd_txn_type(txn));

	return page >= OSD_PAGE_ANY_BASE || (page >= base && page - base < OSD_PAGE_PARTITION_BASE);
}

bool osd_attr_page_fits(const struct osd_txn *txn, uint32_t page)
{
	uint32_t relative = 0;
	const struct osd_page_provider *provider = osd_attr_provider(txn->objects, page);

	return (provider && provider_fits(txn, page)) || classify(txn, page, &relative) != PAGE_BAD;
}

/* ---- stored attributes ------------------------------------------------------------------- */

enum osd_status osd_attr_stored_get(struct osd_txn *txn, uint32_t page, uint32_t number,
				    uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	struct osd_key key = osd_key_attribute(&txn->place, page, number);
	enum osd_status status;

	status = osd_kv_get(txn->objects->kv, txn->kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&key), 0,
			    buffer, capacity, ret_length);
	if (status == OSD_E_NO_OBJECT) {
		*ret_length = 0;
		return OSD_OK;
	}
	return status;
}

static bool count_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	(void)key;
	(void)value;
	++*(uint32_t *)arg;
	return true;
}

/* One more is there now.  Records of the root and of partitions hold no count, so theirs are counted
 * once in a transaction: after the change, whose lock two such transactions then wait for, instead
 * of standing in each other's way. */
static enum osd_status count_added(struct osd_txn *txn)
{
	struct osd_key prefix = osd_key_object(&txn->place);
	enum osd_status status = OSD_OK;

	if (txn->place.object_id || txn->attributes_counted) {
		txn->record.attribute_count++;
	} else {
		txn->record.attribute_count = 0;
		status = osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_ATTRIBUTES,
				     osd_key_bytes(&prefix), prefix.length, count_one,
				     &txn->record.attribute_count);
		txn->attributes_counted = status == OSD_OK;
	}
	if (status == OSD_OK && txn->record.attribute_count > OSD_ATTRIBUTES_MAX)
		status = OSD_E_QUOTA;
	return status;
}

/* Takes one out. */
static enum osd_status stored_clear(struct osd_txn *txn, const struct osd_key *key)
{
	enum osd_status status = osd_kv_remove(txn->kv, OSD_KV_ATTRIBUTES, osd_key_bytes(key));

	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	if (status == OSD_OK && (txn->place.object_id || txn->attributes_counted))
		txn->record.attribute_count--;
	return status;
}

static enum osd_status put_over(struct osd_txn *txn, uint32_t page, const struct osd_key *key,
				struct osd_bytes value, bool uncharged)
{
	enum osd_status status = OSD_OK;
	bool there;

	if (uncharged)
		status = osd_attr_charge_set(txn, page, key, value.length, &there);
	return status == OSD_OK
		       ? osd_kv_put(txn->kv, OSD_KV_ATTRIBUTES, osd_key_bytes(key), value, 0)
		       : status;
}

/* Putting an attribute that is not there tells that it is not: no need to ask the store before. */
static bool is_probably_new(const struct osd_txn *txn)
{
	return txn->place.object_id && txn->record.attribute_units != OSD_UNITS_UNKNOWN &&
	       (txn->adds_attributes || txn->record.attribute_count == 0);
}

enum osd_status osd_attr_stored_set(struct osd_txn *txn, uint32_t page, uint32_t number,
				    const uint8_t *value, size_t length)
{
	struct osd_key key = osd_key_attribute(&txn->place, page, number);
	struct osd_bytes bytes = {value, length};
	bool there = false, uncharged = length > 0 && is_probably_new(txn);
	enum osd_status status =
		uncharged ? OSD_OK : osd_attr_charge_set(txn, page, &key, length, &there);

	if (status != OSD_OK)
		return status;
	txn->weight += length + OSD_RECORD_WEIGHT;
	if (osd_index_keeps(txn, page, number))
		status = osd_index_note(txn, page, number, value, length);
	if (status != OSD_OK)
		return status;
	if (length == 0)
		return stored_clear(txn, &key);
	if (atomic_load(&txn->objects->disk_full) && !(txn->flags & OSD_TXN_INTERNAL))
		return OSD_E_NO_SPACE;
	status = there ? OSD_E_EXISTS
		       : osd_kv_put(txn->kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&key), bytes,
				    OSD_KV_NEW);
	txn->adds_attributes = status == OSD_OK;
	if (status == OSD_E_EXISTS)
		return put_over(txn, page, &key, bytes, uncharged);
	if (status == OSD_OK && uncharged)
		status = osd_attr_charge_added(txn, page, length);
	return status == OSD_OK ? count_added(txn) : status;
}

bool osd_numbers_add(struct osd_numbers *numbers, uint32_t number)
{
	if (numbers->count && numbers->list[numbers->count - 1] == number)
		return true;
	if (numbers->count == numbers->capacity) {
		size_t capacity = OSD_MAX(64, numbers->capacity * 2);
		uint32_t *list = realloc(numbers->list, capacity * sizeof(*list));

		if (!list)
			return false;
		numbers->list = list;
		numbers->capacity = capacity;
	}
	numbers->list[numbers->count++] = number;
	return true;
}

struct numbers_context {
	struct osd_numbers *numbers;
	size_t at; /* of the page, or of the number, in the key */
	bool no_memory;
};

static bool add_number(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct numbers_context *context = arg;

	(void)value;
	if (key.length != OSD_KEY_OBJECT_PART + 8)
		return true;
	context->no_memory = !osd_numbers_add(
		context->numbers, (uint32_t)osd_get_be((const uint8_t *)key.data + context->at, 4));
	return !context->no_memory;
}

static enum osd_status collect_numbers(struct osd_txn *txn, uint32_t page, size_t prefix_length,
				       size_t at, struct osd_numbers *numbers)
{
	struct numbers_context context = {numbers, at, false};
	struct osd_key from = osd_key_attribute(&txn->place, page, 0);
	enum osd_status status =
		osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&from),
			    prefix_length, add_number, &context);

	return status == OSD_OK && context.no_memory ? OSD_E_NO_MEMORY : status;
}

enum osd_status osd_attr_stored_numbers(struct osd_txn *txn, uint32_t page,
					struct osd_numbers *numbers)
{
	return collect_numbers(txn, page, OSD_KEY_OBJECT_PART + 4, OSD_KEY_OBJECT_PART + 4,
			       numbers);
}

enum osd_status osd_attr_stored_pages(struct osd_txn *txn, struct osd_numbers *pages)
{
	return collect_numbers(txn, 0, OSD_KEY_OBJECT_PART, OSD_KEY_OBJECT_PART, pages);
}

static bool found_any(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	(void)value;
	*(bool *)arg = key.length == OSD_KEY_OBJECT_PART + 8;
	return !*(bool *)arg;
}

/* Whether any attribute of the page is stored. */
static enum osd_status stored_any(struct osd_txn *txn, uint32_t page, bool *ret_any)
{
	struct osd_key from = osd_key_attribute(&txn->place, page, 0);

	*ret_any = false;
	return osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_ATTRIBUTES, osd_key_bytes(&from),
			   OSD_KEY_OBJECT_PART + 4, found_any, ret_any);
}

/* ---- identification ---------------------------------------------------------------------- */

void osd_page_identification(const char *vendor, const char *name,
			     uint8_t bytes[IDENTIFICATION_BYTES])
{
	memset(bytes, ' ', 8);
	memcpy(bytes, vendor, OSD_MIN(strlen(vendor), 8));
	memset(bytes + 8, 0, 32);
	memcpy(bytes + 8, name, OSD_MIN(strlen(name), 32));
}

static void put_value(const uint8_t *value, size_t length, uint8_t *buffer, size_t capacity,
		      size_t *ret_length)
{
	if (capacity)
		memcpy(buffer, value, OSD_MIN(length, capacity));
	*ret_length = length;
}

/* Number 0 of an application page: as set, else a default when the page has attributes. */
enum osd_status osd_attr_identification(struct osd_txn *txn, uint32_t page, uint8_t *buffer,
					size_t capacity, size_t *ret_length)
{
	uint8_t bytes[IDENTIFICATION_BYTES] = {0};
	bool any = false;
	size_t length;
	enum osd_status status = osd_attr_stored_get(txn, page, 0, bytes, sizeof(bytes), &length);

	if (status == OSD_OK && length > 0) {
		put_value(bytes, sizeof(bytes), buffer, capacity, ret_length);
		return OSD_OK;
	}
	if (status == OSD_OK)
		status = stored_any(txn, page, &any);
	if (status != OSD_OK)
		return status;
	*ret_length = 0;
	if (any) {
		osd_page_identification("", "unidentified attributes page", bytes);
		put_value(bytes, sizeof(bytes), buffer, capacity, ret_length);
	}
	return OSD_OK;
}

static bool is_identification(const uint8_t *value, size_t length)
{
	return length <= IDENTIFICATION_BYTES && (length == 0 || memchr(value, '\0', length));
}

/* ---- get --------------------------------------------------------------------------------- */

static enum osd_status provider_get(const struct osd_page_provider *provider, struct osd_txn *txn,
				    uint32_t page, uint32_t number, uint8_t *buffer,
				    size_t capacity, size_t *ret_length)
{
	uint8_t bytes[IDENTIFICATION_BYTES];

	if (number != 0)
		return provider->get(provider->context, txn, txn->id, page, number, buffer,
				     capacity, ret_length);
	osd_page_identification("IOSD", provider->page_name, bytes);
	put_value(bytes, sizeof(bytes), buffer, capacity, ret_length);
	return OSD_OK;
}

static enum osd_status get_at_hand(struct osd_txn *txn, uint32_t page, uint32_t number,
				   uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	const struct osd_page_provider *provider = osd_attr_provider(txn->objects, page);
	uint32_t relative = 0;

	if (provider && provider_fits(txn, page))
		return provider_get(provider, txn, page, number, buffer, capacity, ret_length);
	switch (classify(txn, page, &relative)) {
	case PAGE_STANDARD:
		return osd_std_get(txn, relative, number, buffer, capacity, ret_length);
	case PAGE_OPEN:
	case PAGE_CLOSED:
		return number == 0
			       ? osd_attr_identification(txn, page, buffer, capacity, ret_length)
			       : osd_attr_stored_get(txn, page, number, buffer, capacity,
						     ret_length);
	case PAGE_BAD:
		break;
	}
	return OSD_E_PARAM_FIELD;
}

enum osd_status osd_attr_peek(struct osd_txn *txn, uint32_t page, uint32_t number, uint8_t *buffer,
			      size_t capacity, size_t *ret_length)
{
	return get_at_hand(txn, page, number, buffer, capacity, ret_length);
}

/* The record of the object is not read, and that its attributes were is not noted in it. */
static bool get_vouched(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			uint32_t number, uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	const struct osd_page_provider *provider;

	if (!(txn->flags & OSD_TXN_READ_ONLY) || number == 0 || number == OSD_NUMBER_ALL)
		return false;
	provider = osd_attr_provider(txn->objects, page);
	return provider && provider->vouches &&
	       provider->get(provider->context, txn, id, page, number, buffer, capacity,
			     ret_length) == OSD_OK &&
	       *ret_length > 0;
}

enum osd_status osd_attr_get(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			     uint32_t number, uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	enum osd_status status;

	if (get_vouched(txn, id, page, number, buffer, capacity, ret_length))
		return OSD_OK;
	status = osd_txn_take(txn, id, false);
	if (status == OSD_OK && number == OSD_NUMBER_ALL)
		status = OSD_E_PARAM_FIELD;
	if (status != OSD_OK)
		return status;
	osd_note_attr_access(txn);
	return get_at_hand(txn, page, number, buffer, capacity, ret_length);
}

/* ---- set --------------------------------------------------------------------------------- */

static enum osd_status set_at_hand(struct osd_txn *txn, uint32_t page, uint32_t number,
				   const uint8_t *value, size_t length)
{
	uint32_t relative = 0;
	enum page_class class = classify(txn, page, &relative);

	if (class == PAGE_BAD)
		return OSD_E_PARAM_FIELD;
	if (class == PAGE_STANDARD)
		return osd_std_set(txn, relative, number, value, length);
	if (class == PAGE_CLOSED && !(txn->flags & OSD_TXN_INTERNAL))
		return OSD_E_PARAM_FIELD;
	if (number == 0 && !is_identification(value, length))
		return OSD_E_PARAM_FIELD;
	return osd_attr_stored_set(txn, page, number, value, length);
}

enum osd_status osd_object_hold(struct osd_txn *txn, struct osd_object_id id)
{
	return osd_txn_take(txn, id, true);
}

enum osd_status osd_attr_set(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			     uint32_t number, const uint8_t *value, size_t length)
{
	const struct osd_page_provider *provider = osd_attr_provider(txn->objects, page);
	enum osd_status status;

	if (number == OSD_NUMBER_ALL || length > OSD_ATTRIBUTE_MAX ||
	    (osd_is_objects_collection(id) && !(txn->flags & OSD_TXN_INTERNAL)))
		return OSD_E_PARAM_FIELD;
	status = osd_txn_take(txn, id, true);
	if (status != OSD_OK)
		return status;
	if (provider && provider_fits(txn, page))
		return provider->set(provider->context, txn, id, page, number, value, length);
	status = set_at_hand(txn, page, number, value, length);
	if (status != OSD_OK)
		return status;
	osd_note_attr_change(txn);
	txn->dirty = txn->place.object_id != 0;
	return OSD_OK;
}

/* ---- walk -------------------------------------------------------------------------------- */

/* Numbers of one page, then their values; the values are read when their turn comes. */
static enum osd_status each_number(struct osd_txn *txn, uint32_t page,
				   const struct osd_numbers *numbers, uint8_t *buffer,
				   osd_attr_fn *fn, void *arg)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < numbers->count; i++) {
		size_t length = 0;

		if (osd_txn_stopped(txn))
			return OSD_E_TASK_ABORTED;
		status = get_at_hand(txn, page, numbers->list[i], buffer, OSD_ATTRIBUTE_MAX,
				     &length);
		if (status == OSD_OK && length > 0) /* a damaged record can be longer */
			status = fn(arg, page, numbers->list[i], buffer,
				    OSD_MIN(length, OSD_ATTRIBUTE_MAX));
	}
	return status;
}

static enum osd_status each_on_page(struct osd_txn *txn, uint32_t page, uint8_t *buffer,
				    osd_attr_fn *fn, void *arg)
{
	const struct osd_page_provider *provider = osd_attr_provider(txn->objects, page);
	struct osd_numbers numbers = {NULL, 0, 0};
	uint32_t relative = 0;
	enum page_class class = classify(txn, page, &relative);
	enum osd_status status;

	if (provider && provider_fits(txn, page))
		return provider->each(provider->context, txn, txn->id, page, fn, arg);
	if (class == PAGE_BAD)
		return OSD_E_PARAM_FIELD;
	if (class == PAGE_STANDARD)
		status = osd_std_numbers(txn, relative, &numbers);
	else
		status = osd_attr_stored_numbers(txn, page, &numbers);
	if (status == OSD_OK)
		status = each_number(txn, page, &numbers, buffer, fn, arg);
	free(numbers.list);
	return status;
}

static int ascending(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

enum osd_status osd_attr_pages(struct osd_txn *txn, struct osd_numbers *pages)
{
	enum osd_object_type type = osd_txn_type(txn);
	struct osd_numbers found = {NULL, 0, 0};
	bool fits = true;
	enum osd_status status = osd_attr_stored_pages(txn, &found);

	for (uint32_t i = 0; fits && i < REL_STD_PAGES; i++)
		if (osd_std_has_page(type, i))
			fits = osd_numbers_add(&found, osd_page_base(type) + i);
	for (size_t i = 0; fits && i < txn->objects->provider_count; i++)
		if (provider_fits(txn, txn->objects->providers[i]->page))
			fits = osd_numbers_add(&found, txn->objects->providers[i]->page);
	if (found.count)
		qsort(found.list, found.count, sizeof(*found.list), ascending);
	/* A record with a damaged key must not keep the others from being read. */
	for (size_t i = 0; fits && i < found.count; i++)
		if (osd_attr_page_fits(txn, found.list[i]))
			fits = osd_numbers_add(pages, found.list[i]);
	free(found.list);
	if (status != OSD_OK)
		return status;
	return fits ? OSD_OK : OSD_E_NO_MEMORY;
}

/* One number of every page, or all. */
static enum osd_status each_on_all_pages(struct osd_txn *txn, uint32_t number, uint8_t *buffer,
					 osd_attr_fn *fn, void *arg)
{
	struct osd_numbers pages = {NULL, 0, 0}, one = {&number, 1, 1};
	enum osd_status status = osd_attr_pages(txn, &pages);

	for (size_t i = 0; status == OSD_OK && i < pages.count; i++)
		status = number == OSD_NUMBER_ALL
				 ? each_on_page(txn, pages.list[i], buffer, fn, arg)
				 : each_number(txn, pages.list[i], &one, buffer, fn, arg);
	free(pages.list);
	return status;
}

static enum osd_status each(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			    uint32_t number, osd_attr_fn *fn, void *arg)
{
	OSD_CLEANUP_FREE uint8_t *buffer = NULL;
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status != OSD_OK)
		return status;
	osd_note_attr_access(txn);
	buffer = malloc(OSD_ATTRIBUTE_MAX);
	if (!buffer)
		return OSD_E_NO_MEMORY;
	return page == OSD_PAGE_ALL ? each_on_all_pages(txn, number, buffer, fn, arg)
				    : each_on_page(txn, page, buffer, fn, arg);
}

enum osd_status osd_attr_each(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			      osd_attr_fn *fn, void *arg)
{
	return each(txn, id, page, OSD_NUMBER_ALL, fn, arg);
}

enum osd_status osd_attr_each_page(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
				   osd_attr_fn *fn, void *arg)
{
	return each(txn, id, OSD_PAGE_ALL, number, fn, arg);
}
