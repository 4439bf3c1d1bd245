/* SPDX-License-Identifier: GPL-2.0-or-later */
/* index_key.c -- see index_key.h.
 *
 * A 00h byte of a value becomes 00h FFh.  The end of a value is 00h 01h, or 00h 02h if the value was cut
 * off.  An end is less than any byte that could follow, so keys sort as the values do. */
#include "object/index_key.h"

#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

#define ZERO_FOLLOWED_BY 0xff
#define END		 0x01
#define CUT		 0x02

void osd_index_key_begin(const struct osd_place *place, uint32_t page, uint32_t number,
			 struct osd_index_key *ret_key)
{
	osd_put_be(ret_key->bytes, place->partition_id, 8);
	osd_put_be(ret_key->bytes + 8, place->incarnation, 4);
	osd_put_be(ret_key->bytes + 12, page, 4);
	osd_put_be(ret_key->bytes + OSD_INDEX_PAGE_PART, number, 4);
	ret_key->length = OSD_INDEX_NUMBER_PART;
}

void osd_index_key_value(const struct osd_place *place, uint32_t page, uint32_t number,
			 const uint8_t *value, size_t length, struct osd_index_key *ret_key)
{
	uint8_t *at = ret_key->bytes + OSD_INDEX_NUMBER_PART;

	osd_index_key_begin(place, page, number, ret_key);
	for (size_t i = 0; i < OSD_MIN(length, OSD_INDEX_VALUE_BYTES); i++) {
		*at++ = value[i];
		if (value[i] == 0)
			*at++ = ZERO_FOLLOWED_BY;
	}
	*at++ = 0;
	*at++ = length > OSD_INDEX_VALUE_BYTES ? CUT : END;
	ret_key->length = (size_t)(at - ret_key->bytes);
}

void osd_index_key_entry(const struct osd_place *place, uint32_t page, uint32_t number,
			 const uint8_t *value, size_t length, struct osd_index_key *ret_key)
{
	osd_index_key_value(place, page, number, value, length, ret_key);
	osd_put_be(ret_key->bytes + ret_key->length, place->object_id, 8);
	ret_key->length += 8;
}

int osd_index_key_compare(const void *a, const void *b)
{
	const struct osd_index_key *left = a, *right = b;
	int order = memcmp(left->bytes, right->bytes, OSD_MIN(left->length, right->length));

	return order ? order : (left->length > right->length) - (left->length < right->length);
}

uint64_t osd_index_entry_object(const void *key, size_t length)
{
	if (length < OSD_INDEX_NUMBER_PART + 2 + 8)
		return 0;
	return osd_get_be((const uint8_t *)key + length - 8, 8);
}
