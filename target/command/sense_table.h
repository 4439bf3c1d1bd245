/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sense_table.h -- every condition that ends a command otherwise than GOOD, one row each: what its
 * sense data say (osd2-wire 7.4).  Key and ASC/ASCQ are those of the row's status (base/status.h);
 * field and descriptors are the row's.  docs/sense.md is made from it.
 *
 * The first row of a status decides for failures that do not say more, so it is the general one. */
#ifndef OSD_COMMAND_SENSE_TABLE_H
#define OSD_COMMAND_SENSE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/osd2.h"

#define OSD_SENSE_NO_FIELD    (-1)
#define OSD_SENSE_FIELD_GIVEN (-2) /* the byte at fault, which the failing function names */

enum osd_sense_descriptors {
	OSD_SENSE_OBJECT = 1,		   /* 06h */
	OSD_SENSE_COMMAND_INFORMATION = 2, /* 01h */
	OSD_SENSE_INFORMATION = 4,	   /* 00h */
	OSD_SENSE_ATTRIBUTE = 8,	   /* 08h */
	OSD_SENSE_TEXT = 16,		   /* 80h */
};

struct osd_sense_row {
	const char *condition;
	enum osd_status status;
	uint8_t types;	     /* only for objects of these types; 0: any */
	int16_t field;	     /* CDB byte, or one of the above */
	uint8_t descriptors; /* besides 02h, which a field brings */
	const char *value;   /* what 00h and 01h hold, or why it does not happen; or NULL */
};

/* The row that decides for a failure with that status about an object of that type; NULL: none. */
const struct osd_sense_row *osd_sense_row(enum osd_status status, enum osd_object_type type);
/* Whether sense data with that status identify the object. */
bool osd_sense_names_object(enum osd_status status);
/* The rows, for walking them; NULL behind the last. */
const struct osd_sense_row *osd_sense_row_at(size_t index);

#endif
