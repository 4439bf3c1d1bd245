/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_std.c -- the standard's attributes, one row each (osd2-wire 5.7-5.17): who has it, how long
 * it is, whether a client sets it, and where its value comes from.  The directory and Collections
 * pages have no rows: their numbers are pages and memberships. */
#include "object/attr_rows.h"

#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

enum { R = 1, P = 2, C = 4, U = 8 }; /* object types of a row */

#define ISOLATION_RANGE 4

static const struct osd_std_row rows[] = {
	/* information */
	{R, 1, 0x3, 0x3, 20, 20, false, OSD_V_SYSTEM_ID, 0, NULL},
	{R, 1, 0x4, 0x4, 8, 8, false, OSD_V_FIXED, 0, OSD_VENDOR_ID},
	{R, 1, 0x5, 0x5, 16, 16, false, OSD_V_FIXED, 0, OSD_PRODUCT_ID},
	{R, 1, 0x6, 0x6, 32, 32, false, OSD_V_FIXED, 0, "iosd object storage target"},
	{R, 1, 0x7, 0x7, 4, 4, false, OSD_V_FIXED, 0, OSD_PRODUCT_REV},
	{R, 1, 0x8, 0x8, 1, 64, false, OSD_V_SERIAL, 0, NULL},
	{R, 1, 0x9, 0x9, 1, 64, true, OSD_V_STORED, 0, NULL},
	{R, 1, 0xa, 0xa, 4, 4, false, OSD_V_NUMBER, 1u << 20, NULL},
	{R, 1, 0x80, 0x80, 8, 8, false, OSD_V_CAPACITY, 0, NULL},
	{R, 1, 0x81, 0x81, 8, 8, false, OSD_V_USED, 0, NULL},
	{R, 1, 0xc0, 0xc0, 8, 8, false, OSD_V_PARTITION_COUNT, 0, NULL},
	{R, 1, 0x100, 0x100, 6, 6, false, OSD_V_CLOCK, 0, NULL},
	{R, 1, 0x110, 0x110, 1, 1, false, OSD_V_NUMBER, ISOLATION_RANGE, NULL},
	{R, 1, 0x111, 0x111, 32, 32, false, OSD_V_ISOLATION_MAP, 0, NULL},
	{R, 1, 0x7000001, 0x7000001, 4, 4, false, OSD_V_NUMBER, 1, NULL}, /* scatter/gather */
	{R, 1, 0x700f081, 0x700f081, 4, 4, false, OSD_V_NUMBER, 1, NULL}, /* EXEC parameters */
	{P | C | U, 1, 0x1, 0x1, 8, 8, false, OSD_V_PARTITION_ID, 0, NULL},
	{C | U, 1, 0x2, 0x2, 8, 8, false, OSD_V_OBJECT_ID, 0, NULL},
	{P | C | U, 1, 0x9, 0x9, 1, OSD_ATTRIBUTE_MAX, true, OSD_V_STORED, 0, NULL},
	{C, 1, 0xa, 0xa, 1, 1, false, OSD_V_COLLECTION_TYPE, 0, NULL},
	{P | U, 1, 0x81, 0x81, 8, 8, false, OSD_V_USED, 0, NULL},
	{C, 1, 0x81, 0x81, 8, 8, false, OSD_V_NUMBER, 0, NULL},
	{U, 1, 0x82, 0x82, 8, 8, true, OSD_V_LENGTH, 0, NULL},
	{P, 1, 0xc1, 0xc1, 8, 8, false, OSD_V_OBJECT_COUNT, 0, NULL},
	/* quotas */
	{R | P | U, 2, 0x1, 0x1, 8, 8, true, OSD_V_QUOTA_LENGTH, 0, NULL},
	{R | P, 2, 0x10001, 0x10001, 8, 8, true, OSD_V_QUOTA_CAPACITY, 0, NULL},
	{R | P, 2, 0x10002, 0x10002, 8, 8, true, OSD_V_QUOTA_COUNT, 0, NULL},
	{R | P, 2, 0x10081, 0x10081, 4, 4, true, OSD_V_QUOTA_COLLECTIONS, 0, NULL},
	{R, 2, 0x20002, 0x20002, 8, 8, true, OSD_V_QUOTA_PARTITIONS, 0, NULL},
	/* timestamps */
	{P | C | U, 3, 1, 1, 6, 6, false, OSD_V_TIME, OSD_T_CREATED, NULL},
	{R | P | C | U, 3, 2, 2, 6, 6, false, OSD_V_TIME, OSD_T_ATTR_ACCESSED, NULL},
	{R | P | C | U, 3, 3, 3, 6, 6, false, OSD_V_TIME, OSD_T_ATTR_MODIFIED, NULL},
	{P | C | U, 3, 4, 4, 6, 6, false, OSD_V_TIME, OSD_T_DATA_ACCESSED, NULL},
	{P | C | U, 3, 5, 5, 6, 6, false, OSD_V_TIME, OSD_T_DATA_MODIFIED, NULL},
	{R | P, 3, 0xfffffffe, 0xfffffffe, 1, 1, true, OSD_V_BYPASS, 0, NULL},
	/* attributes access; command tracking (all lengths the target's own) */
	{P, 4, 1, 0xfffffffe, 8, OSD_ATTRIBUTE_MAX, true, OSD_V_STORED, 0, NULL},
	{C, 4, 0x1, 0xf, 1, OSD_SENSE_MAX, false, OSD_V_STORED, 0, NULL},
	{C, 4, 0x10, 0x10, 8, 8, false, OSD_V_MEMBER_COUNT, 0, NULL},
	{C, 4, 0x11, 0x13, 8, 8, false, OSD_V_STORED, 0, NULL},
	/* policy/security: values are kept and shown; who enforces them reads them here */
	{R, 5, 0x1, 0x1, 1, 1, true, OSD_V_STORED, 1, NULL},
	{R, 5, 0x2, 0x3, 6, 6, true, OSD_V_STORED, 0, NULL},
	{R, 5, 0x6, 0x6, 1, 1, true, OSD_V_STORED, 1, NULL},
	{R, 5, 0x7, 0x7, 2, 2, false, OSD_V_NUMBER, 1, NULL}, /* NOSEC */
	{R, 5, 0x9, 0x9, 6, 6, true, OSD_V_STORED, 0, NULL},
	{R, 5, 0x7ffd, 0x7ffe, 7, 7, false, OSD_V_STORED, 0, NULL},
	{R, 5, 0x80000000, 0x8000001f, 1, 1, false, OSD_V_NUMBER, 0, NULL},
	{P, 5, 0x1, 0x1, 1, 1, true, OSD_V_STORED, 1, NULL},
	{P, 5, 0x2, 0x3, 6, 6, true, OSD_V_STORED, 0, NULL},
	{P, 5, 0x4, 0x4, 2, 2, false, OSD_V_NUMBER, 0, NULL},
	{P, 5, 0x5, 0x5, 2, 2, true, OSD_V_STORED, 2, NULL},
	{P, 5, 0x7fff, 0x800f, 7, 7, false, OSD_V_STORED, 0, NULL},
	{P, 5, 0x40000001, 0x40000002, 4, 4, true, OSD_V_STORED, 4, NULL},
	{C | U, 5, 0x40000001, 0x40000001, 4, 4, true, OSD_V_STORED, 4, NULL},
};

static uint8_t type_bit(enum osd_object_type type)
{
	return type == OSD_ROOT ? R : type == OSD_PARTITION ? P : type == OSD_COLLECTION ? C : U;
}

const struct osd_std_row *osd_std_find(enum osd_object_type type, uint32_t relative,
				       uint32_t number)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++)
		if ((rows[i].types & type_bit(type)) && rows[i].relative == relative &&
		    number >= rows[i].first && number <= rows[i].last)
			return &rows[i];
	return NULL;
}

/* ---- pages ------------------------------------------------------------------------------- */

static const char *const page_names[4][6] = {
	{"T10 Root Directory", "T10 Root Information", "T10 Root Quotas", "T10 Root Timestamps",
	 NULL, "T10 Root Policy/Security"},
	{"T10 Partition Directory", "T10 Partition Information", "T10 Partition Quotas",
	 "T10 Partition Timestamps", "T10 Partition Attributes Access",
	 "T10 Partition Policy/Security"},
	{"T10 Collection Directory", "T10 Collection Information", NULL,
	 "T10 Collection Timestamps", "T10 Command Tracking", "T10 Collection Policy/Security"},
	{"T10 User Object Directory", "T10 User Object Information", "T10 User Object Quotas",
	 "T10 User Object Timestamps", "T10 User Object Collections",
	 "T10 User Object Policy/Security"},
};

const char *osd_std_page_name(enum osd_object_type type, uint32_t relative)
{
	size_t row = type == OSD_ROOT	      ? 0
		     : type == OSD_PARTITION  ? 1
		     : type == OSD_COLLECTION ? 2
					      : 3;

	return relative < OSD_ARRAY_SIZE(page_names[0]) ? page_names[row][relative] : NULL;
}

bool osd_std_has_page(enum osd_object_type type, uint32_t relative)
{
	return osd_std_page_name(type, relative) != NULL;
}

static bool is_collections_page(const struct osd_txn *txn, uint32_t relative)
{
	return relative == OSD_REL_COLLECTIONS && osd_txn_type(txn) == OSD_USER_OBJECT;
}

/* ---- values ------------------------------------------------------------------------------ */

uint64_t osd_txn_length(struct osd_txn *txn)
{
	struct osd_object *object = txn->length_set ? NULL : osd_cache_find(txn->objects, txn->id);
	uint64_t length = object ? atomic_load(&object->length) : txn->record.length;

	osd_object_put(object);
	return length;
}

uint64_t osd_txn_time(struct osd_txn *txn, enum osd_time which)
{
	struct osd_object *object;
	uint64_t value;

	if (txn->id.partition_id == 0)
		return atomic_load(&txn->objects->root_times[which]);
	if (txn->id.object_id == 0)
		return atomic_load(&txn->partition->times[which]);
	object = osd_cache_find(txn->objects, txn->id);
	value = object ? OSD_MAX(txn->record.times[which], atomic_load(&object->times[which]))
		       : txn->record.times[which];
	osd_object_put(object);
	return value;
}

static uint64_t quota_value(struct osd_txn *txn, enum osd_value_source source)
{
	struct osd_objects *objects = txn->objects;
	struct osd_partition *partition = txn->partition;
	struct osd_quotas quotas;

	if (txn->id.partition_id == 0) {
		pthread_rwlock_rdlock(&objects->partitions_lock);
		quotas = objects->root.common.quotas;
		pthread_rwlock_unlock(&objects->partitions_lock);
	} else if (txn->id.object_id != 0) {
		return txn->record.max_length;
	} else {
		quotas = (struct osd_quotas){.max_length = atomic_load(&partition->max_length),
					     .capacity = atomic_load(&partition->capacity),
					     .object_count = atomic_load(&partition->count_limit),
					     .collections =
						     atomic_load(&partition->collections_limit)};
	}
	switch (source) {
	case OSD_V_QUOTA_LENGTH:
		return quotas.max_length;
	case OSD_V_QUOTA_CAPACITY:
		/* An unlimited partition shows what there is: exofs divides by it. */
		return txn->id.partition_id != 0 && quotas.capacity == OSD_NO_LIMIT
			       ? atomic_load(&objects->capacity_bytes)
			       : quotas.capacity;
	case OSD_V_QUOTA_COUNT:
		return quotas.object_count;
	case OSD_V_QUOTA_COLLECTIONS:
		return quotas.collections;
	default:
		return quotas.partition_count;
	}
}

static uint64_t used_value(struct osd_txn *txn)
{
	if (txn->id.partition_id == 0)
		return atomic_load(&txn->objects->used_bytes);
	if (txn->id.object_id == 0)
		return atomic_load(&txn->partition->used_bytes);
	return osd_txn_length(txn);
}

static uint64_t bypass_value(struct osd_txn *txn)
{
	uint64_t value;

	if (txn->partition)
		return atomic_load(&txn->partition->bypass);
	pthread_rwlock_rdlock(&txn->objects->partitions_lock);
	value = txn->objects->root.common.bypass;
	pthread_rwlock_unlock(&txn->objects->partitions_lock);
	return value;
}

/* Values that are numbers. */
static uint64_t number_value(struct osd_txn *txn, const struct osd_std_row *row)
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
		return atomic_load(&txn->partition->object_count);
	case OSD_V_CLOCK:
		return osd_now_ms();
	case OSD_V_LENGTH:
		return osd_txn_length(txn);
	case OSD_V_QUOTA_LENGTH:
	case OSD_V_QUOTA_CAPACITY:
	case OSD_V_QUOTA_COUNT:
	case OSD_V_QUOTA_COLLECTIONS:
	case OSD_V_QUOTA_PARTITIONS:
		return quota_value(txn, row->source);
	case OSD_V_TIME:
		return osd_txn_time(txn, (enum osd_time)row->def);
	case OSD_V_BYPASS:
		return bypass_value(txn);
	default:
		return row->def;
	}
}

static void put_bytes(const void *bytes, size_t length, uint8_t *buffer, size_t capacity,
		      size_t *ret_length)
{
	if (capacity)
		memcpy(buffer, bytes, OSD_MIN(length, capacity));
	*ret_length = length;
}

static void put_number(uint64_t value, size_t length, uint8_t *buffer, size_t capacity,
		       size_t *ret_length)
{
	uint8_t bytes[8];

	osd_put_be(bytes, value, length);
	put_bytes(bytes, length, buffer, capacity, ret_length);
}

/* Text filled up with spaces, as in INQUIRY data. */
static void put_padded(const char *text, size_t length, uint8_t *buffer, size_t capacity,
		       size_t *ret_length)
{
	uint8_t bytes[32];

	memset(bytes, ' ', sizeof(bytes));
	memcpy(bytes, text, OSD_MIN(strlen(text), length));
	put_bytes(bytes, length, buffer, capacity, ret_length);
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
	if (length == 0 && row->def)
		put_number(0, (size_t)row->def, buffer, capacity, &length);
	*ret_length = length;
	return OSD_OK;
}

static enum osd_status row_value(struct osd_txn *txn, const struct osd_std_row *row,
				 uint32_t number, uint8_t *buffer, size_t capacity,
				 size_t *ret_length)
{
	uint8_t isolation[32] = {0x80 >> ISOLATION_RANGE};
	uint64_t count = 0;
	enum osd_status status;

	switch (row->source) {
	case OSD_V_STORED:
		return stored_value(txn, row, number, buffer, capacity, ret_length);
	case OSD_V_FIXED:
		put_padded(row->text, row->max_length, buffer, capacity, ret_length);
		return OSD_OK;
	case OSD_V_SYSTEM_ID:
		put_bytes(txn->objects->system_id, sizeof(txn->objects->system_id), buffer,
			  capacity, ret_length);
		return OSD_OK;
	case OSD_V_SERIAL:
		put_bytes(txn->objects->serial, strlen(txn->objects->serial), buffer, capacity,
			  ret_length);
		return OSD_OK;
	case OSD_V_ISOLATION_MAP:
		put_bytes(isolation, sizeof(isolation), buffer, capacity, ret_length);
		return OSD_OK;
	case OSD_V_MEMBER_COUNT:
		status = osd_member_count(txn, &txn->place, &count);
		if (status == OSD_OK)
			put_number(count, 8, buffer, capacity, ret_length);
		return status;
	default:
		put_number(number_value(txn, row), row->max_length, buffer, capacity, ret_length);
		return OSD_OK;
	}
}

/* Directory: number n is page n's identification. */
static enum osd_status directory_value(struct osd_txn *txn, uint32_t number, uint8_t *buffer,
				       size_t capacity, size_t *ret_length)
{
	enum osd_object_type type = osd_txn_type(txn);
	uint32_t base = osd_page_base(type);
	const struct osd_page_provider *provider = osd_attr_provider(txn->objects, number);
	const char *name = number >= base ? osd_std_page_name(type, number - base) : NULL;
	uint8_t bytes[40];

	if (number == OSD_PAGE_CURRENT_COMMAND)
		name = "T10 Current Command";
	if (name)
		osd_page_identification("INCITS", name, bytes);
	else if (provider && number >= base && number - base < OSD_PAGE_PARTITION_BASE)
		osd_page_identification("IOSD", provider->page_name, bytes);
	else
		return osd_attr_identification(txn, number, buffer, capacity, ret_length);
	put_bytes(bytes, sizeof(bytes), buffer, capacity, ret_length);
	return OSD_OK;
}

enum osd_status osd_std_get(struct osd_txn *txn, uint32_t relative, uint32_t number,
			    uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	const struct osd_std_row *row = osd_std_find(osd_txn_type(txn), relative, number);
	uint8_t identification[40];
	uint64_t collection;
	enum osd_status status;

	if (number == 0) {
		osd_page_identification("INCITS", osd_std_page_name(osd_txn_type(txn), relative),
					identification);
		put_bytes(identification, sizeof(identification), buffer, capacity, ret_length);
		return OSD_OK;
	}
	if (relative == OSD_REL_DIRECTORY)
		return directory_value(txn, number, buffer, capacity, ret_length);
	*ret_length = 0;
	if (is_collections_page(txn, relative)) {
		status = osd_membership_get(txn, number, &collection);
		if (status == OSD_OK)
			put_number(collection, 8, buffer, capacity, ret_length);
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	}
	return row ? row_value(txn, row, number, buffer, capacity, ret_length) : OSD_OK;
}

/* ---- numbers of a page ------------------------------------------------------------------- */

static enum osd_status membership_numbers(struct osd_txn *txn, struct osd_numbers *numbers)
{
	OSD_CLEANUP_FREE struct osd_membership *list = NULL;
	size_t count;
	enum osd_status status = osd_memberships(txn, &list, &count);

	for (size_t i = 0; status == OSD_OK && i < count; i++)
		if (list[i].number && !osd_numbers_add(numbers, list[i].number))
			status = OSD_E_NO_MEMORY;
	return status;
}

/* Rows are in ascending order; a wide range of stored ones is looked up instead. */
static enum osd_status row_numbers(struct osd_txn *txn, uint32_t relative,
				   struct osd_numbers *numbers)
{
	uint8_t bit = type_bit(osd_txn_type(txn));
	bool fits = true;

	for (size_t i = 0; fits && i < OSD_ARRAY_SIZE(rows); i++) {
		if (!(rows[i].types & bit) || rows[i].relative != relative)
			continue;
		if (rows[i].last - rows[i].first > 0xffff)
			return osd_attr_stored_numbers(
				txn, osd_page_base(osd_txn_type(txn)) + relative, numbers);
		for (uint32_t n = rows[i].first; fits && n <= rows[i].last; n++)
			fits = osd_numbers_add(numbers, n);
	}
	return fits ? OSD_OK : OSD_E_NO_MEMORY;
}

enum osd_status osd_std_numbers(struct osd_txn *txn, uint32_t relative, struct osd_numbers *numbers)
{
	if (!osd_numbers_add(numbers, 0))
		return OSD_E_NO_MEMORY;
	if (relative == OSD_REL_DIRECTORY)
		return osd_attr_pages(txn, numbers);
	if (is_collections_page(txn, relative))
		return membership_numbers(txn, numbers);
	return row_numbers(txn, relative, numbers);
}
