/* SPDX-License-Identifier: GPL-2.0-or-later */
/* index_key.h -- keys of the value index (docs/format.md has the bytes): entries of one page and
 * number stand in the order of their values.  Values are kept to their first OSD_INDEX_VALUE_BYTES;
 * of longer ones with the same beginning the index cannot tell which is less, so who searches must
 * look at those whose beginning is that of a bound. */
#ifndef OSD_OBJECT_INDEX_KEY_H
#define OSD_OBJECT_INDEX_KEY_H

#include <stdbool.h>
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

/* The first OSD_INDEX_PAGE_PART or OSD_INDEX_NUMBER_PART bytes; place's object id is not in it. */
void osd_index_key_begin(const struct osd_place *place, uint32_t page, uint32_t number,
			 struct osd_index_key *ret_key);
/* Up to the object id, which is left out: the beginning of all entries with that value, or with one
 * that begins alike and is not told apart.  value: its first bytes, length: its true length. */
void osd_index_key_value(const struct osd_place *place, uint32_t page, uint32_t number,
			 const uint8_t *value, size_t length, struct osd_index_key *ret_key);
/* The entry of place's object. */
void osd_index_key_entry(const struct osd_place *place, uint32_t page, uint32_t number,
			 const uint8_t *value, size_t length, struct osd_index_key *ret_key);
/* Order of two keys, as the store has it. */
int osd_index_key_compare(const struct osd_index_key *a, const struct osd_index_key *b);

/* The object id of an entry; 0: this is no entry. */
uint64_t osd_index_entry_object(const void *key, size_t length);

static inline struct osd_bytes osd_index_key_bytes(const struct osd_index_key *key)
{
	return (struct osd_bytes){key->bytes, key->length};
}

#endif
