/* SPDX-License-Identifier: GPL-2.0-or-later */
/* index_key.h -- keys of the value index (docs/format.md has the bytes): entries of one page and number
 * stand in the order of their values.  An entry has the first OSD_INDEX_VALUE_BYTES of a value.  The
 * index cannot order longer values with the same beginning, so a search must read those that begin like
 * one of its bounds. */
#ifndef OSD_OBJECT_INDEX_KEY_H
#define OSD_OBJECT_INDEX_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "object/record.h"

#define OSD_INDEX_VALUE_BYTES 64u
#define OSD_INDEX_PAGE_PART   16u /* bytes of partition id, incarnation, page that begin a key */
#define OSD_INDEX_NUMBER_PART 20u /* and of the number */
#define OSD_INDEX_KEY_MAX     (OSD_INDEX_NUMBER_PART + 2 * OSD_INDEX_VALUE_BYTES + 2 + 8)

struct osd_index_key {
	uint8_t bytes[OSD_INDEX_KEY_MAX];
	size_t length;
};

/* The first OSD_INDEX_PAGE_PART or OSD_INDEX_NUMBER_PART bytes of keys. place's object id is not used. */
void osd_index_key_begin(const struct osd_place *place, uint32_t page, uint32_t number,
			 struct osd_index_key *ret_key);
/* The beginning, up to the object id, of the keys of all entries with that value, or with a value that
 * the index cannot distinguish from it. value: the first bytes; length: the whole length. */
void osd_index_key_value(const struct osd_place *place, uint32_t page, uint32_t number,
			 const uint8_t *value, size_t length, struct osd_index_key *ret_key);
/* The entry of place's object. */
void osd_index_key_entry(const struct osd_place *place, uint32_t page, uint32_t number,
			 const uint8_t *value, size_t length, struct osd_index_key *ret_key);
/* Compares two struct osd_index_key in the store's order, for qsort(). */
int osd_index_key_compare(const void *a, const void *b);

/* The object id of an entry; 0: this is no entry. */
uint64_t osd_index_entry_object(const void *key, size_t length);

static inline struct osd_bytes osd_index_key_bytes(const struct osd_index_key *key)
{
	return (struct osd_bytes){key->bytes, key->length};
}

#endif
