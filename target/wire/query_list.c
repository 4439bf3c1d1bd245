/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query_list.c -- see query_list.h. */
#include "wire/query_list.h"

#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"
#include "wire/list_data.h"
#include "wire/osd2.h"

enum { TYPE_MASK = 0x0f, TYPE_ANY = 0, TYPE_ALL = 1 };

#define ENTRY_HEADER	 4u  /* reserved and QUERY ENTRY LENGTH */
#define ENTRY_OVERHEAD	 12u /* of QUERY ENTRY LENGTH: page, number, the lengths of both bounds */
#define RESULT_NOT_COUNTED 8u /* ADDITIONAL LENGTH counts from byte 8 */

/* One entry; false at the end of the list, and r->bad where an entry is not what it says. */
static bool read_entry(struct osd_rd *r, struct osd_criterion *entry)
{
	uint64_t length;

	if (osd_rd_left(r) < ENTRY_HEADER)
		return false;
	osd_rd_bytes(r, 2);
	length = osd_rd_be(r, 2);
	if (length == 0)
		return false;
	entry->page = (uint32_t)osd_rd_be(r, 4);
	entry->number = (uint32_t)osd_rd_be(r, 4);
	entry->min_length = osd_rd_be(r, 2);
	entry->min = osd_rd_bytes(r, entry->min_length);
	entry->max_length = osd_rd_be(r, 2);
	entry->max = osd_rd_bytes(r, entry->max_length);
	if (length != ENTRY_OVERHEAD + entry->min_length + entry->max_length)
		r->bad = true;
	return !r->bad;
}

enum osd_status osd_query_list_open(const uint8_t *bytes, size_t length,
				    struct osd_query_list *ret_list)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	uint8_t type = (uint8_t)osd_rd_be(&r, 1) & TYPE_MASK;
	struct osd_query_list list = {.match_all = type == TYPE_ALL};
	struct osd_criterion entry;

	osd_rd_bytes(&r, 3);
	if (r.bad || type > TYPE_ALL)
		return OSD_E_CDB_FIELD;
	list.at = list.end = r.at;
	while (read_entry(&r, &entry)) {
		if (entry.page >= OSD_PAGE_PARTITION_BASE || list.count == OSD_QUERY_CRITERIA_MAX)
			return OSD_E_CDB_FIELD;
		list.end = r.at;
		list.count++;
	}
	if (r.bad)
		return OSD_E_CDB_FIELD;
	*ret_list = list;
	return OSD_OK;
}

bool osd_query_list_next(struct osd_query_list *list, struct osd_criterion *ret_entry)
{
	struct osd_rd r = {list->at, list->end, false};

	if (!read_entry(&r, ret_entry))
		return false;
	list->at = r.at;
	return true;
}

size_t osd_query_result_header(uint64_t count, bool osc, uint8_t bytes[OSD_QUERY_RESULT_HEADER_OSC])
{
	size_t length = osc ? OSD_QUERY_RESULT_HEADER_OSC : OSD_QUERY_RESULT_HEADER;
	uint64_t additional;

	if (!osd_mul_u64(count, 8, &additional) ||
	    !osd_add_u64(additional, length - RESULT_NOT_COUNTED, &additional))
		additional = UINT64_MAX;
	memset(bytes, 0, OSD_QUERY_RESULT_HEADER_OSC);
	osd_put_be(bytes, additional, 8);
	bytes[length - 1] = OSD_ODF_USER_OBJECTS << 2;
	return length;
}
