/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_std.c -- the values of the standard's attributes, by the source their row names
 * (attr_table.c), and the numbers of a page. */
#include "object/attr_table.h"

#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "object/key_record.h"
#include "wire/continuation.h"
#include "wire/cursor.h"

#define PRODUCT_MODEL "iosd object storage target"

static const uint8_t isolation_map[32] = {OSD_ISOLATION_METHODS};

static const char *page_name(enum osd_object_type type, uint32_t relative)
{
	const struct osd_std_page *page = osd_std_page(type, relative);

	return page ? page->name : NULL;
}

/* ---- values ------------------------------------------------------------------------------ */

/* The current length of the object at hand: its record may lag. */
static uint64_t length_of(struct osd_txn *txn)
{
	struct osd_object *object = txn->length_set ? NULL : osd_cache_find(txn->objects, txn->id);
	uint64_t length = object ? atomic_load(&object->length) : txn->record.length;

	if (object && object == txn->changing)
		length = txn->changing_length;
	osd_object_put(object);
	return length;
}

static uint64_t quota_value(struct osd_txn *txn, const struct osd_std_row *row)
{
	struct osd_objects *objects = txn->objects;
	struct osd_partition *partition = txn->partition;
	struct osd_quotas quotas;

	if (txn->id.partition_id == 0) {
		osd_read_lock(&objects->partitions_lock);
		quotas = objects->root.common.quotas;
		osd_rw_unlock(&objects->partitions_lock);
	} else if (txn->id.object_id != 0) {
		return txn->record.max_length;
	} else {
		quotas = (struct osd_quotas){.max_length = atomic_load(&partition->max_length),
					     .capacity = atomic_load(&partition->data.capacity),
					     .object_count =
						     atomic_load(&partition->data.count_limit),
					     .collections =
						     atomic_load(&partition->collections_limit)};
	}
	/* For an unlimited partition the value is the capacity of the store: exofs divides by it. */
	if (txn->id.partition_id != 0 && quotas.capacity == OSD_NO_LIMIT)
		quotas.capacity = atomic_load(&objects->capacity_bytes);
	return *osd_std_quota(row, &quotas);
}

static uint64_t used_value(struct osd_txn *txn)
{
	if (txn->id.partition_id == 0)
		return atomic_load(&txn->objects->used_bytes);
	if (txn->id.object_id == 0)
		return atomic_load(&txn->partition->data.used_bytes);
	return length_of(txn);
}

enum osd_status osd_object_used(struct osd_txn *txn, struct osd_object_id id, uint64_t *ret_used)
{
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status == OSD_OK)
		*ret_used = used_value(txn);
	return status;
}

static uint64_t bypass_value(struct osd_txn *txn)
{
	return txn->partition ? atomic_load(&txn->partition->bypass)
			      : osd_root_bypass(txn->objects);
}

/* The clock runs on from the value that was set: the stored attribute is the difference from the
 * system's clock. */
static enum osd_status adjusted_clock(struct osd_txn *txn, uint64_t *ret_clock)
{
	uint8_t bytes[8] = {0};
	size_t length;
	enum osd_status status = osd_attr_stored_get(txn, OSD_PAGE_ROOT_BASE | OSD_REL_SECURITY,
						     OSD_SEC_CLOCK, bytes, sizeof(bytes), &length);

	if (status == OSD_OK)
		*ret_clock = osd_wall_msec() + osd_get_be(bytes, sizeof(bytes));
	return status;
}

/* A store of the first release has the tag among the attributes. */
static enum osd_status policy_tag(struct osd_txn *txn, uint64_t *ret_tag)
{
	uint32_t page = osd_page_base(osd_txn_type(txn)) + OSD_REL_SECURITY;
	uint8_t bytes[4] = {0};
	size_t length;
	enum osd_status status = OSD_OK;

	if (txn->record.policy_tag == 0)
		status = osd_attr_stored_get(txn, page, OSD_SEC_TAG, bytes, sizeof(bytes),
					     &length);
	*ret_tag = txn->record.policy_tag ? txn->record.policy_tag
					  : osd_get_be(bytes, sizeof(bytes));
	return status;
}

/* Values that are numbers. */
static uint64_t number_value(struct osd_txn *txn, const struct osd_std_row *row, uint32_t number)
{
	switch (row->source) {
	case OSD_V_PARTITION_ID:
		return txn->id.partition_id;
	case OSD_V_OBJECT_ID:
		return txn->id.object_id;
	case OSD_V_COLLECTION_TYPE:
		return txn->record.collection_type;
	case OSD_V_CAPACITY:
		return atomic_load(&txn->objects->capacity_bytes);
	case OSD_V_USED:
		return used_value(txn);
	case OSD_V_PARTITION_COUNT:
		return atomic_load(&txn->objects->partition_count);
	case OSD_V_OBJECT_COUNT:
		return atomic_load(&txn->partition->data.object_count);
	case OSD_V_CLOCK:
		return osd_wall_msec();
	case OSD_V_ISOLATION:
		return osd_objects_isolation(txn->objects);
	case OSD_V_DESCRIPTOR:
		return osd_descriptor_largest((uint16_t)number);
	case OSD_V_QUOTA:
		return quota_value(txn, row);
	case OSD_V_TIME:
		return osd_txn_time(txn, (enum osd_time)row->parameter);
	case OSD_V_BYPASS:
		return bypass_value(txn);
	case OSD_V_USER_TAG:
		return atomic_load(&txn->partition->user_tag);
	case OSD_V_BOOT_EPOCH:
		return osd_objects_boot_epoch(txn->objects);
	default:
		return row->parameter;
	}
}

/* Text filled up with spaces, as in INQUIRY data. */
static void put_padded(const char *text, size_t length, uint8_t *buffer, size_t capacity,
		       size_t *ret_length)
{
	uint8_t bytes[32];

	memset(bytes, ' ', sizeof(bytes));
	memcpy(bytes, text, OSD_MIN(strlen(text), length));
	osd_value_put(bytes, length, buffer, capacity, ret_length);
}

static enum osd_status stored_value(struct osd_txn *txn, const struct osd_std_row *row,
				    uint32_t number, uint8_t *buffer, size_t capacity,
				    size_t *ret_length)
{
	uint32_t page = osd_page_base(osd_txn_type(txn)) + row->relative;
	size_t length = 0;
	enum osd_status status = osd_attr_stored_get(txn, page, number, buffer, capacity, &length);

	if (status != OSD_OK)
		return status;
	if (length == 0 && row->parameter)
		osd_number_put(0, (size_t)row->parameter, buffer, capacity, &length);
	*ret_length = length;
	return OSD_OK;
}

/* Directory: number n is page n's identification. */
static enum osd_status directory_value(struct osd_txn *txn, uint32_t number, uint8_t *buffer,
				       size_t capacity, size_t *ret_length)
{
	enum osd_object_type type = osd_txn_type(txn);
	uint32_t base = osd_page_base(type);
	const struct osd_page_provider *provider = osd_objects_page(txn->objects, number);
	const char *name = number >= base ? page_name(type, number - base) : NULL;

	if (number == OSD_PAGE_CURRENT_COMMAND)
		name = "T10 Current Command";
	if (name)
		osd_identification_put("INCITS", name, buffer, capacity, ret_length);
	else if (provider && number >= base && number - base < OSD_PAGE_PARTITION_BASE)
		osd_identification_put("IOSD", provider->page_name, buffer, capacity, ret_length);
	else
		return osd_attr_identification(txn, number, buffer, capacity, ret_length);
	return OSD_OK;
}

static enum osd_status membership_value(struct osd_txn *txn, uint32_t number, uint8_t *buffer,
					size_t capacity, size_t *ret_length)
{
	uint64_t collection;
	enum osd_status status = osd_membership_get(txn, number, &collection);

	if (status == OSD_OK)
		osd_number_put(collection, 8, buffer, capacity, ret_length);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

/* The members are counted once while the collection is at hand. */
static enum osd_status member_count(struct osd_txn *txn, uint64_t *ret_count)
{
	enum osd_status status = OSD_OK;

	if (!txn->member_count_known)
		status = osd_member_count(txn, osd_txn_members(txn), &txn->member_count);
	txn->member_count_known = status == OSD_OK;
	*ret_count = txn->member_count;
	return status;
}

/* *ret_limit is in ms; 0 means that it was never set. */
static enum osd_status limit_set(struct osd_txn *txn, const struct osd_place *place,
				 uint32_t page, uint32_t number, uint64_t *ret_limit)
{
	uint8_t bytes[8];
	size_t length;
	enum osd_status status =
		osd_attr_load(txn->objects, txn->kv, place, page | OSD_REL_SECURITY, number, bytes,
			      sizeof(bytes), &length);

	*ret_limit = osd_get_be(bytes, OSD_MIN(length, sizeof(bytes)));
	return status;
}

enum osd_status osd_nonce_limit(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
				uint64_t *ret_limit)
{
	struct osd_place root = osd_root_place(txn->objects);
	uint64_t own = 0, most;
	enum osd_status status = limit_set(txn, &root, OSD_PAGE_ROOT_BASE, number, &most);

	if (status == OSD_OK && id.partition_id != 0)
		status = limit_set(txn, &txn->place, OSD_PAGE_PARTITION_BASE, number, &own);
	if (most == 0)
		most = osd_std_find(OSD_ROOT, OSD_REL_SECURITY, number)->parameter;
	*ret_limit = own ? OSD_MIN(own, most) : most;
	return status;
}

/* Numbers that have to be looked up. */
static enum osd_status looked_up(struct osd_txn *txn, const struct osd_std_row *row,
				 uint32_t number, uint8_t *buffer, size_t capacity,
				 size_t *ret_length)
{
	uint64_t value = 0;
	bool known = true;
	enum osd_status status;

	if (row->source == OSD_V_MEMBER_COUNT)
		status = member_count(txn, &value);
	else if (row->source == OSD_V_ADJUSTED_CLOCK)
		status = adjusted_clock(txn, &value);
	else if (row->source == OSD_V_DATA_SPACE)
		status = osd_txn_allocated(txn, &value);
	else if (row->source == OSD_V_NONCE_LIMIT)
		status = osd_nonce_limit(txn, txn->id, number, &value);
	else if (row->source == OSD_V_LENGTH)
		status = osd_stack_length(txn, length_of(txn), &value, &known);
	else
		status = policy_tag(txn, &value);
	if (status == OSD_OK && known)
		osd_number_put(value, row->max_length, buffer, capacity, ret_length);
	return status;
}

/* Copies share space only where the file system can. */
static bool can_duplicate(const struct osd_objects *objects, uint8_t method)
{
	return osd_duplication_supported(method) &&
	       (method != OSD_DUPLICATION_SPACE_EFFICIENT || osd_tier_can_clone(&objects->tier));
}

/* An invalid key has no identifier. */
static enum osd_status key_identifier(struct osd_txn *txn, const struct osd_std_row *row,
				      uint32_t number, uint8_t *buffer, size_t capacity,
				      size_t *ret_length)
{
	struct osd_key_name name = {(enum osd_key_level)row->parameter, txn->id.partition_id,
				    (uint8_t)(number - row->first)};
	struct osd_key_record record;
	enum osd_status status = osd_key_record_get(txn, &name, &record);

	if (status == OSD_OK)
		osd_value_put(record.identifier, sizeof(record.identifier), buffer, capacity,
			  ret_length);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static void put_identity(struct osd_txn *txn, const struct osd_std_row *row, uint8_t *buffer,
			 size_t capacity, size_t *ret_length)
{
	const struct osd_objects *objects = txn->objects;
	const char *text = row->source == OSD_V_VENDOR	  ? OSD_VENDOR_ID
			   : row->source == OSD_V_PRODUCT ? OSD_PRODUCT_ID
			   : row->source == OSD_V_MODEL	  ? PRODUCT_MODEL
							  : OSD_PRODUCT_REV;

	if (row->source == OSD_V_SYSTEM_ID)
		osd_value_put(objects->system_id, sizeof(objects->system_id), buffer, capacity,
			  ret_length);
	else if (row->source == OSD_V_SERIAL)
		osd_value_put(objects->serial, strlen(objects->serial), buffer, capacity, ret_length);
	else
		put_padded(text, row->max_length, buffer, capacity, ret_length);
}

static enum osd_status row_value(struct osd_txn *txn, const struct osd_std_row *row,
				 uint32_t number, uint8_t *buffer, size_t capacity,
				 size_t *ret_length)
{
	switch (row->source) {
	case OSD_V_ABSENT:
		return OSD_OK;
	case OSD_V_STORED:
		return stored_value(txn, row, number, buffer, capacity, ret_length);
	case OSD_V_DIRECTORY:
		return directory_value(txn, number, buffer, capacity, ret_length);
	case OSD_V_MEMBERSHIP:
		return membership_value(txn, number, buffer, capacity, ret_length);
	case OSD_V_VENDOR:
	case OSD_V_PRODUCT:
	case OSD_V_MODEL:
	case OSD_V_REVISION:
	case OSD_V_SERIAL:
	case OSD_V_SYSTEM_ID:
		put_identity(txn, row, buffer, capacity, ret_length);
		return OSD_OK;
	case OSD_V_ISOLATION_MAP:
		osd_value_put(isolation_map, sizeof(isolation_map), buffer, capacity, ret_length);
		return OSD_OK;
	case OSD_V_DUPLICATION:
		if (can_duplicate(txn->objects, (uint8_t)number))
			osd_number_put(1, row->max_length, buffer, capacity, ret_length);
		return OSD_OK;
	case OSD_V_MEMBER_COUNT:
	case OSD_V_ADJUSTED_CLOCK:
	case OSD_V_DATA_SPACE:
	case OSD_V_TAG:
	case OSD_V_NONCE_LIMIT:
	case OSD_V_LENGTH:
		return looked_up(txn, row, number, buffer, capacity, ret_length);
	case OSD_V_KEY_IDENTIFIER:
		return key_identifier(txn, row, number, buffer, capacity, ret_length);
	default:
		osd_number_put(number_value(txn, row, number), row->max_length, buffer, capacity,
			       ret_length);
		return OSD_OK;
	}
}

enum osd_status osd_std_get(struct osd_txn *txn, uint32_t relative, uint32_t number,
			    uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	enum osd_object_type type = osd_txn_type(txn);
	const struct osd_std_row *row = osd_std_find(type, relative, number);

	*ret_length = 0;
	if (number == 0) {
		osd_identification_put("INCITS", page_name(type, relative), buffer, capacity,
				       ret_length);
		return OSD_OK;
	}
	return row ? row_value(txn, row, number, buffer, capacity, ret_length) : OSD_OK;
}

/* ---- numbers of a page ------------------------------------------------------------------- */

static enum osd_status membership_numbers(struct osd_txn *txn, struct osd_numbers *numbers)
{
	const struct osd_membership *list;
	size_t count;
	enum osd_status status = osd_memberships(txn, &list, &count);

	for (size_t i = 0; status == OSD_OK && i < count; i++)
		if (list[i].number && !osd_numbers_add(numbers, list[i].number))
			status = OSD_E_NO_MEMORY;
	return status;
}

static enum osd_status directory_numbers(struct osd_txn *txn, struct osd_numbers *numbers)
{
	enum osd_status status = osd_attr_pages(txn, numbers);

	if (status == OSD_OK && !osd_numbers_add(numbers, OSD_PAGE_CURRENT_COMMAND))
		status = OSD_E_NO_MEMORY;
	return status;
}

/* The numbers of one row.  A row with a wide range looks up which exist. */
static enum osd_status row_numbers(struct osd_txn *txn, const struct osd_std_row *row,
				   struct osd_numbers *numbers)
{
	if (row->source == OSD_V_ABSENT)
		return OSD_OK;
	if (row->source == OSD_V_DIRECTORY)
		return directory_numbers(txn, numbers);
	if (row->source == OSD_V_MEMBERSHIP)
		return membership_numbers(txn, numbers);
	if (row->last - row->first > 0xff)
		return osd_attr_stored_numbers(
			txn, osd_page_base(osd_txn_type(txn)) + row->relative, numbers);
	for (uint32_t n = row->first; n <= row->last; n++)
		if (!osd_numbers_add(numbers, n))
			return OSD_E_NO_MEMORY;
	return OSD_OK;
}

enum osd_status osd_std_numbers(struct osd_txn *txn, uint32_t relative, struct osd_numbers *numbers)
{
	enum osd_object_type type = osd_txn_type(txn);
	const struct osd_std_row *row = NULL;
	enum osd_status status = osd_numbers_add(numbers, 0) ? OSD_OK : OSD_E_NO_MEMORY;

	while (status == OSD_OK && (row = osd_std_next(type, relative, row)))
		status = row_numbers(txn, row, numbers);
	return status;
}
