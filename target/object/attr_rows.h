/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_rows.h -- a row of the table of standard attributes (attr_std.c), for those who get and set.
 */
#ifndef OSD_OBJECT_ATTR_ROWS_H
#define OSD_OBJECT_ATTR_ROWS_H

#include "object/internal.h"

/* Where a value comes from. */
enum osd_value_source {
	OSD_V_STORED, /* as set; def bytes of zeros until then */
	OSD_V_FIXED,  /* text */
	OSD_V_NUMBER, /* constant def */
	OSD_V_PARTITION_ID,
	OSD_V_OBJECT_ID,
	OSD_V_COLLECTION_TYPE,
	OSD_V_SYSTEM_ID,
	OSD_V_SERIAL,
	OSD_V_CAPACITY,
	OSD_V_USED,
	OSD_V_PARTITION_COUNT,
	OSD_V_OBJECT_COUNT,
	OSD_V_CLOCK,
	OSD_V_ISOLATION_MAP,
	OSD_V_LENGTH,
	OSD_V_MEMBER_COUNT,
	OSD_V_QUOTA_LENGTH,
	OSD_V_QUOTA_CAPACITY,
	OSD_V_QUOTA_COUNT,
	OSD_V_QUOTA_COLLECTIONS,
	OSD_V_QUOTA_PARTITIONS,
	OSD_V_TIME,
	OSD_V_BYPASS,
};

struct osd_std_row {
	uint8_t types, relative; /* who has it; page */
	uint32_t first, last;	 /* numbers */
	uint16_t min_length, max_length;
	bool settable; /* by clients; stored ones by the target in any case */
	enum osd_value_source source;
	uint64_t def; /* NUMBER: value; STORED: bytes of zeros when unset; TIME: which */
	const char *text;
};

/* NULL: the standard has no such attribute. */
const struct osd_std_row *osd_std_find(enum osd_object_type type, uint32_t relative,
				       uint32_t number);

#endif
