/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record.c -- see record.h. */
#include "object/record.h"

#include <string.h>

#include "object/partition.h"
#include "object/txn.h"
#include "wire/cursor.h"

#define RECORD_VERSION 1

static void put_times(struct osd_wr *w, const uint64_t times[OSD_T_COUNT])
{
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		osd_wr_be(w, times[i], 6);
}

static void get_times(struct osd_rd *r, uint64_t times[OSD_T_COUNT])
{
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		times[i] = osd_rd_be(r, 6);
}

void osd_record_encode(const struct osd_record *record, uint8_t bytes[OSD_RECORD_BYTES])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_RECORD_BYTES);
	/* 0: unknown.  Releases that did not count attributes have written 0. */
	uint32_t units = record->attribute_count ? record->attribute_units + 1 : 0;

	osd_wr_be(&w, RECORD_VERSION, 1);	    /* 0 */
	osd_wr_be(&w, record->type, 1);		    /* 1 */
	osd_wr_be(&w, record->collection_type, 1);  /* 2 */
	osd_wr_be(&w, record->head_on, 1);	    /* 3 */
	osd_wr_be(&w, record->flags, 2);	    /* 4-5 */
	osd_wr_be(&w, units >> 16, 2);		    /* 6-7 */
	put_times(&w, record->times);		    /* 8-37 */
	osd_wr_be(&w, units & 0xffff, 2);	    /* 38-39 */
	osd_wr_be(&w, record->length, 8);	    /* 40-47 */
	osd_wr_be(&w, record->reserved_bytes, 8);   /* 48-55 */
	osd_wr_be(&w, record->head_bytes, 8);	    /* 56-63 */
	osd_wr_be(&w, record->generation, 8);	    /* 64-71 */
	osd_wr_be(&w, record->spare_generation, 8); /* 72-79 */
	osd_wr_be(&w, record->max_length, 8);	    /* 80-87 */
	osd_wr_be(&w, record->attribute_count, 4);  /* 88-91 */
	osd_wr_be(&w, record->policy_tag, 4);	    /* 92-95 */
	osd_wr_be(&w, record->version.counter, 8);  /* 96-103 */
	osd_wr_be(&w, record->version.opening, 4);  /* 104-107 */
}

enum osd_status osd_record_decode(const void *bytes, size_t length, struct osd_record *ret_record)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	uint64_t version = osd_rd_be(&r, 1);
	struct osd_record record;
	uint32_t units;

	record.type = (uint8_t)osd_rd_be(&r, 1);
	record.collection_type = (uint8_t)osd_rd_be(&r, 1);
	record.head_on = (uint8_t)osd_rd_be(&r, 1);
	record.flags = (uint16_t)osd_rd_be(&r, 2);
	units = (uint32_t)osd_rd_be(&r, 2) << 16;
	get_times(&r, record.times);
	units |= (uint32_t)osd_rd_be(&r, 2);
	record.length = osd_rd_be(&r, 8);
	record.reserved_bytes = osd_rd_be(&r, 8);
	record.head_bytes = osd_rd_be(&r, 8);
	record.generation = osd_rd_be(&r, 8);
	record.spare_generation = osd_rd_be(&r, 8);
	record.max_length = osd_rd_be(&r, 8);
	record.attribute_count = (uint32_t)osd_rd_be(&r, 4);
	record.policy_tag = (uint32_t)osd_rd_be(&r, 4);
	record.attribute_units = record.attribute_count ? units - 1 : 0;
	record.version = (struct osd_data_version){0, 0};
	if (length != OSD_RECORD_BYTES_FIRST) {
		record.version.counter = osd_rd_be(&r, 8);
		record.version.opening = (uint32_t)osd_rd_be(&r, 4);
	}
	if (r.bad || version != RECORD_VERSION || (record.flags & ~OSD_REC_KNOWN))
		return OSD_E_MEDIUM;
	*ret_record = record;
	return OSD_OK;
}

static void put_partition(struct osd_wr *w, const struct osd_partition_record *record)
{
	osd_wr_be(w, RECORD_VERSION, 1);		 /* 0 */
	osd_wr_be(w, record->bypass, 1);		 /* 1 */
	osd_wr_be(w, 0, 2);				 /* 2-3 */
	osd_wr_be(w, record->incarnation, 4);		 /* 4-7 */
	put_times(w, record->times);			 /* 8-37 */
	osd_wr_be(w, 0, 2);				 /* 38-39 */
	osd_wr_be(w, record->quotas.max_length, 8);	 /* 40-47 */
	osd_wr_be(w, record->quotas.capacity, 8);	 /* 48-55 */
	osd_wr_be(w, record->quotas.object_count, 8);	 /* 56-63 */
	osd_wr_be(w, record->quotas.collections, 4);	 /* 64-67 */
	osd_wr_be(w, record->quotas.partition_count, 8); /* 68-75 */
	osd_wr_be(w, record->user_tag, 4);		 /* 76-79 */
	osd_wr_be(w, 0, 4);				 /* 80-83 */
}

static enum osd_status get_partition(struct osd_rd *r, struct osd_partition_record *record)
{
	uint64_t version = osd_rd_be(r, 1);

	record->bypass = (uint8_t)osd_rd_be(r, 1);
	osd_rd_be(r, 2);
	record->incarnation = (uint32_t)osd_rd_be(r, 4);
	get_times(r, record->times);
	osd_rd_be(r, 2);
	record->quotas.max_length = osd_rd_be(r, 8);
	record->quotas.capacity = osd_rd_be(r, 8);
	record->quotas.object_count = osd_rd_be(r, 8);
	record->quotas.collections = osd_rd_be(r, 4);
	record->quotas.partition_count = osd_rd_be(r, 8);
	record->user_tag = (uint32_t)osd_rd_be(r, 4);
	osd_rd_be(r, 4);
	return r->bad || version != RECORD_VERSION ? OSD_E_MEDIUM : OSD_OK;
}

void osd_partition_record_encode(const struct osd_partition_record *record,
				 uint8_t bytes[OSD_PARTITION_RECORD_BYTES])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_PARTITION_RECORD_BYTES);

	put_partition(&w, record);
}

enum osd_status osd_partition_record_decode(const void *bytes, size_t length,
					    struct osd_partition_record *ret_record)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	struct osd_partition_record record;
	enum osd_status status = get_partition(&r, &record);

	if (status == OSD_OK)
		*ret_record = record;
	return status;
}

void osd_root_record_encode(const struct osd_root_record *record,
			    uint8_t bytes[OSD_ROOT_RECORD_BYTES])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_ROOT_RECORD_BYTES);

	put_partition(&w, &record->common);	     /* 0-83 */
	osd_wr_be(&w, record->epoch, 4);	     /* 84-87 */
	osd_wr_be(&w, record->next_incarnation, 4);  /* 88-91 */
	osd_wr_be(&w, record->next_partition_id, 8); /* 92-99 */
	osd_wr_be(&w, record->capacity, 8);	     /* 100-107 */
	osd_wr_be(&w, record->isolation, 1);	     /* 108 */
	osd_wr_be(&w, 0, 3);			     /* 109-111 */
}

enum osd_status osd_root_record_decode(const void *bytes, size_t length,
				       struct osd_root_record *ret_record)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	struct osd_root_record record;
	enum osd_status status = get_partition(&r, &record.common);

	record.epoch = (uint32_t)osd_rd_be(&r, 4);
	record.next_incarnation = (uint32_t)osd_rd_be(&r, 4);
	record.next_partition_id = osd_rd_be(&r, 8);
	record.capacity = osd_rd_be(&r, 8);
	record.isolation = (uint8_t)osd_rd_be(&r, 1);
	osd_rd_be(&r, 3);
	if (r.bad)
		status = OSD_E_MEDIUM;
	if (status == OSD_OK)
		*ret_record = record;
	return status;
}

void osd_index_record_encode(const struct osd_index_record *record,
			     uint8_t bytes[OSD_INDEX_RECORD_BYTES])
{
	memset(bytes, 0, OSD_INDEX_RECORD_BYTES);
	bytes[0] = (uint8_t)record->stage;
	osd_put_be(bytes + 4, record->next_number, 4);
	osd_put_be(bytes + 8, record->next_object, 8);
}

enum osd_status osd_index_record_decode(const void *bytes, size_t length,
					struct osd_index_record *ret_record)
{
	const uint8_t *at = bytes;

	if (length != OSD_INDEX_RECORD_BYTES || at[0] < OSD_INDEX_CLEAR || at[0] > OSD_INDEX_DROP)
		return OSD_E_MEDIUM;
	*ret_record = (struct osd_index_record){.stage = (enum osd_index_stage)at[0],
						.next_object = osd_get_be(at + 8, 8),
						.next_number = (uint32_t)osd_get_be(at + 4, 4)};
	return OSD_OK;
}

/* ---- keys -------------------------------------------------------------------------------- */

static void add(struct osd_key *key, uint64_t value, size_t width)
{
	osd_put_be(key->bytes + key->length, value, width);
	key->length += width;
}

static void add_place(struct osd_key *key, const struct osd_place *place)
{
	add(key, place->partition_id, 8);
	add(key, place->incarnation, 4);
	add(key, place->object_id, 8);
}

struct osd_key osd_key_partition(uint32_t epoch, uint64_t partition_id)
{
	struct osd_key key;

	key.length = 0;
	add(&key, epoch, 4);
	add(&key, partition_id, 8);
	return key;
}

struct osd_key osd_key_object(const struct osd_place *place)
{
	struct osd_key key;

	key.length = 0;
	add_place(&key, place);
	return key;
}

struct osd_key osd_key_attribute(const struct osd_place *place, uint32_t page, uint32_t number)
{
	struct osd_key key = osd_key_object(place);

	add(&key, page, 4);
	add(&key, number, 4);
	return key;
}

struct osd_key osd_key_member(const struct osd_place *place, uint64_t id)
{
	struct osd_key key = osd_key_object(place);

	add(&key, id, 8);
	return key;
}

struct osd_key osd_key_meta(enum osd_meta_kind kind)
{
	return (struct osd_key){{(uint8_t)kind}, 1};
}

struct osd_key osd_key_meta_partition(enum osd_meta_kind kind, uint64_t partition_id,
				      uint32_t incarnation)
{
	struct osd_key key = osd_key_meta(kind);

	add(&key, partition_id, 8);
	add(&key, incarnation, 4);
	return key;
}

struct osd_key osd_key_index_stage(uint64_t partition_id, uint32_t incarnation, uint32_t page)
{
	struct osd_key key = osd_key_meta_partition(OSD_META_INDEX, partition_id, incarnation);

	add(&key, page, 4);
	return key;
}

struct osd_key osd_key_files(enum osd_meta_kind kind, const struct osd_place *place,
			     uint64_t generation)
{
	struct osd_key key = osd_key_meta(kind);

	add_place(&key, place);
	add(&key, generation, 8);
	return key;
}

struct osd_key osd_key_dead_epoch(uint32_t epoch)
{
	struct osd_key key = osd_key_meta(OSD_META_DEAD_EPOCH);

	add(&key, epoch, 4);
	return key;
}

struct osd_place osd_key_place(const uint8_t *bytes)
{
	return (struct osd_place){osd_get_be(bytes, 8), (uint32_t)osd_get_be(bytes + 8, 4),
				  osd_get_be(bytes + OSD_KEY_PARTITION_PART, 8)};
}

bool osd_record_is_apart(struct osd_bytes key, struct osd_bytes value)
{
	struct osd_record record;

	return key.length == OSD_KEY_OBJECT_PART &&
	       osd_record_decode(value.data, value.length, &record) == OSD_OK &&
	       osd_is_apart(osd_get_be((const uint8_t *)key.data + OSD_KEY_PARTITION_PART, 8),
			    record.flags);
}
