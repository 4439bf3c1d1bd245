/* SPDX-License-Identifier: GPL-2.0-or-later */
/* index_ranges.c -- see index_ranges.h. */
#include "wire/index_ranges.h"

#include "wire/cursor.h"

struct range {
	uint32_t first, last, step;
};

static struct range range_at(const uint8_t *bytes)
{
	return (struct range){(uint32_t)osd_get_be(bytes, 4), (uint32_t)osd_get_be(bytes + 4, 4),
			      (uint32_t)osd_get_be(bytes + 8, 4)};
}

bool osd_index_ranges_check(const uint8_t *bytes, size_t length, uint32_t most,
			    uint32_t *ret_first, uint32_t *ret_last, uint32_t *ret_count)
{
	size_t ranges = length / OSD_INDEX_RANGE_BYTES;
	uint64_t count = 0, above = 0; /* the next range begins there or later */

	if (length % OSD_INDEX_RANGE_BYTES != 0 || ranges == 0 || ranges > OSD_INDEX_RANGES_MAX)
		return false;
	for (size_t i = 0; i < ranges; i++) {
		struct range range = range_at(bytes + i * OSD_INDEX_RANGE_BYTES);

		if (range.step == 0 || range.first < above || range.last < range.first ||
		    (range.last - range.first) % range.step != 0)
			return false;
		count += (uint64_t)(range.last - range.first) / range.step + 1;
		above = (uint64_t)range.last + 1;
	}
	if (count > most)
		return false;
	*ret_first = range_at(bytes).first;
	*ret_last = (uint32_t)(above - 1);
	*ret_count = (uint32_t)count;
	return true;
}

struct osd_index_walk osd_index_walk_begin(const uint8_t *bytes, size_t length, uint32_t first)
{
	if (length == 0)
		return (struct osd_index_walk){.next = first};
	return (struct osd_index_walk){bytes, bytes + length, range_at(bytes).first};
}

uint32_t osd_index_walk_next(struct osd_index_walk *walk)
{
	uint32_t index = (uint32_t)walk->next;
	struct range range;

	if (!walk->at) {
		walk->next++;
		return index;
	}
	range = range_at(walk->at);
	walk->next += range.step;
	if (walk->next > range.last) {
		walk->at += OSD_INDEX_RANGE_BYTES;
		if (walk->at < walk->end)
			walk->next = range_at(walk->at).first;
		else
			walk->at = walk->end - OSD_INDEX_RANGE_BYTES;
	}
	return index;
}
