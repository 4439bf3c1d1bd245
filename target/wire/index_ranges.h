/* SPDX-License-Identifier: GPL-2.0-or-later */
/* index_ranges.h -- the indices of an array of jobs as a list of ranges: entries of {be32 first, be32
 * last, be32 step}. EXEC parameter ARRAY, the store and attribute 2Fh of page 2000_0001h have this
 * form.
 *
 * In a valid list, each range has a step of at least 1 that leads from its first to its last index, and
 * begins above the last index of the range before it.  So indices are in ascending order and occur
 * once.  Any two indices make a range: 5,000 ranges can hold any 10,000 indices. */
#ifndef OSD_WIRE_INDEX_RANGES_H
#define OSD_WIRE_INDEX_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OSD_INDEX_RANGE_BYTES 12u
#define OSD_INDEX_RANGES_MAX  5000u

/* Whether the bytes are a valid list of 1 to OSD_INDEX_RANGES_MAX ranges with at most `most` indices;
 * the first index, the last, and how many there are. */
bool osd_index_ranges_check(const uint8_t *bytes, size_t length, uint32_t most,
			    uint32_t *ret_first, uint32_t *ret_last, uint32_t *ret_count);

/* Walks the indices of a valid list in order; without a list the indices from `first` on. */
struct osd_index_walk {
	const uint8_t *at, *end; /* borrowed: the range that `next` is in, and the end of the list */
	uint64_t next;
};

struct osd_index_walk osd_index_walk_begin(const uint8_t *bytes, size_t length, uint32_t first);
/* Not to be called more often than there are indices. */
uint32_t osd_index_walk_next(struct osd_index_walk *walk);

#endif
