/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_stored.c -- attributes that are kept as records of their own, of the object at hand. */
#include "object/internal.h"

#include <string.h>

#include "base/util.h"
#include "object/value_index.h"
#include "wire/cursor.h"

enum osd_status osd_attr_stored_get(struct osd_txn *txn, uint32_t page, uint32_t number,
				    uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	return osd_attr_load(txn->objects, txn->kv, &txn->place, page, number, buffer, capacity,
			     ret_length);
}

static bool count_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	(void)key;
	(void)value;
	++*(uint32_t *)arg;
	return true;
}

/* Counts an attribute that was just added.  The records of the root and of partitions hold no count, so
 * their attributes are counted once in a transaction.  The count comes after the change: two such
 * transactions then wait for the lock of the change, and do not deadlock over the count. */
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

/* Inserting a new attribute also proves that it was absent, so a read before it is unnecessary. */
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

enum osd_status osd_attr_definer_set(struct osd_txn *txn, uint32_t page, uint32_t number,
				     bool there)
{
	const char *definer = there && txn->principal ? txn->principal : "";

	return osd_attr_stored_set(txn, page, number, (const uint8_t *)definer, strlen(definer));
}

bool osd_numbers_add(struct osd_numbers *numbers, uint32_t number)
{
	if (numbers->count && numbers->list[numbers->count - 1] == number)
		return true;
	if (!OSD_MAKE_ROOM(numbers->list, numbers->count, numbers->capacity))
		return false;
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

/* Whether any attribute of the page is stored. */
static enum osd_status stored_any(struct osd_txn *txn, uint32_t page, bool *ret_any)
{
	struct osd_key key = osd_key_attribute(&txn->place, page, 0);

	return osd_key_any(txn->objects, txn->kv, OSD_KV_ATTRIBUTES,
			   (struct osd_bytes){key.bytes, OSD_KEY_OBJECT_PART + 4}, ret_any);
}

/* ---- identification ---------------------------------------------------------------------- */

void osd_value_put(const void *value, size_t length, uint8_t *buffer, size_t capacity,
		   size_t *ret_length)
{
	if (capacity)
		memcpy(buffer, value, OSD_MIN(length, capacity));
	*ret_length = length;
}

void osd_number_put(uint64_t value, size_t width, uint8_t *buffer, size_t capacity,
		    size_t *ret_length)
{
	uint8_t bytes[8];

	osd_put_be(bytes, value, width);
	osd_value_put(bytes, width, buffer, capacity, ret_length);
}

void osd_identification_put(const char *vendor, const char *name, uint8_t *buffer, size_t capacity,
			    size_t *ret_length)
{
	uint8_t bytes[OSD_PAGE_IDENTIFICATION] = {0};

	memset(bytes, ' ', 8);
	memcpy(bytes, vendor, OSD_MIN(strlen(vendor), 8));
	memcpy(bytes + 8, name, OSD_MIN(strlen(name), 32));
	osd_value_put(bytes, sizeof(bytes), buffer, capacity, ret_length);
}

enum osd_status osd_attr_identification(struct osd_txn *txn, uint32_t page, uint8_t *buffer,
					size_t capacity, size_t *ret_length)
{
	uint8_t bytes[OSD_PAGE_IDENTIFICATION] = {0};
	bool any = false;
	size_t length;
	enum osd_status status = osd_attr_stored_get(txn, page, 0, bytes, sizeof(bytes), &length);

	if (status == OSD_OK && length > 0) {
		osd_value_put(bytes, sizeof(bytes), buffer, capacity, ret_length);
		return OSD_OK;
	}
	if (status == OSD_OK)
		status = stored_any(txn, page, &any);
	if (status != OSD_OK)
		return status;
	*ret_length = 0;
	if (any)
		osd_identification_put("", "unidentified attributes page", buffer, capacity,
				       ret_length);
	return OSD_OK;
}
