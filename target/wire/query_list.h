/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query_list.h -- QUERY's list of criteria, the content of continuation descriptor 0002h (or, in
 * r01-r03, plain Data-Out), and its parameter data (osd2-wire 3.9).
 *
 * Entries follow each other unaligned.  An entry of length 0, or fewer than 4 bytes, end the list:
 * what follows is the padding initiators put there. */
#ifndef OSD_WIRE_QUERY_LIST_H
#define OSD_WIRE_QUERY_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define OSD_QUERY_LIST_HEADER	4u
#define OSD_QUERY_ENTRY_MIN	16u /* page, number and two empty bounds with the entry's header */
#define OSD_QUERY_CRITERIA_MAX	65536u
#define OSD_QUERY_RESULT_HEADER 12u
#define OSD_QUERY_RESULT_HEADER_OSC 13u /* r01-r04 */

struct osd_criterion {
	uint32_t page, number;
	const uint8_t *min, *max;      /* borrowed; meaningless when the length is 0 */
	size_t min_length, max_length; /* 0: no bound on this side */
};

struct osd_query_list {
	bool match_all;
	size_t count; /* of entries */
	const uint8_t *at, *end;
};

/* Checks the whole list, so walking it cannot fail.  OSD_E_CDB_FIELD: a reserved query type, an entry
 * that runs past the end or does not add up, a page that is no user object's, too many entries. */
enum osd_status osd_query_list_open(const uint8_t *bytes, size_t length,
				    struct osd_query_list *ret_list);
bool osd_query_list_next(struct osd_query_list *list, struct osd_criterion *ret_entry);

/* Parameter data: the header for count matches in all; osc: the 13-byte one.  Returns its length. */
size_t osd_query_result_header(uint64_t count, bool osc,
			       uint8_t bytes[OSD_QUERY_RESULT_HEADER_OSC]);

#endif
