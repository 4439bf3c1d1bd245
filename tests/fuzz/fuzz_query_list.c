/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_query_list.c -- invariant: a list of criteria that opens is walked inside its bytes, has as
 * many entries as it says, and names pages of user objects only. */
#include "fuzz.h"
#include "wire/osd2.h"
#include "wire/query_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct osd_query_list list;
	struct osd_criterion entry;
	size_t count = 0;

	if (osd_query_list_open(data, size, &list) != OSD_OK)
		return 0;
	HOLDS(list.end <= data + size);
	while (osd_query_list_next(&list, &entry)) {
		touch(entry.min, entry.min_length);
		touch(entry.max, entry.max_length);
		HOLDS(entry.page < OSD_PAGE_PARTITION_BASE);
		count++;
	}
	HOLDS(count == list.count);
	HOLDS(list.at == list.end);
	HOLDS(count <= (size - OSD_QUERY_LIST_HEADER) / OSD_QUERY_ENTRY_MIN);
	return 0;
}
