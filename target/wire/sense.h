/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sense.h -- descriptor-format sense data (osd2-wire section 7).  Order of descriptors: 06h, 02h, 01h,
 * 00h, 08h, 80h (text; this target's).  So the parts that Linux cuts after 96 bytes, or misreads, come last.  If the response is
 * proved, 07h comes before all of them: an initiator that asks for it reads sense data to its end. */
#ifndef OSD_WIRE_SENSE_H
#define OSD_WIRE_SENSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/osd2.h"

/* Command functions, for not_initiated and completed (osd2-wire 7.3). */
#define OSD_FN_VALIDATION 0x80000000u
#define OSD_FN_CMD_CAP	  0x20000000u
#define OSD_FN_COMMAND	  0x10000000u
#define OSD_FN_IMP_ST_ATT 0x00100000u
#define OSD_FN_SET_CAP	  0x00002000u
#define OSD_FN_SET_ATTR	  0x00001000u
#define OSD_FN_GET_CAP	  0x00000020u
#define OSD_FN_GET_ATTR	  0x00000010u
/* The three capability checks, which are one. */
#define OSD_FN_CAPABILITY (OSD_FN_CMD_CAP | OSD_FN_SET_CAP | OSD_FN_GET_CAP)
#define OSD_FN_ALL	  0xb0103030u /* everything: the value of "nothing was initiated" */

#define OSD_SENSE_ATTRIBUTES 16u /* in one descriptor 08h: so many fit with all others */

#define OSD_SENSE_TEXT_MAX 128u

#define OSD_SENSE_ICV_AT 10u /* where the value of descriptor 07h stands, if there is one */

struct osd_sense_attribute {
	uint32_t page, number;
};

struct osd_sense {
	uint8_t sense_key;
	uint16_t asc_ascq;
	bool has_object; /* 06h; left out only when the CDB could not be read at all */
	uint64_t partition_id, object_id;
	uint32_t not_initiated, completed;
	bool has_field; /* 02h */
	bool field_in_data_out;
	uint16_t field_pointer;
	bool has_command_information; /* 01h */
	uint64_t command_information;
	bool has_information; /* 00h */
	uint64_t information;
	bool has_response_icv; /* 07h */
	uint8_t response_icv[32];
	unsigned attribute_count; /* 08h; at most OSD_SENSE_ATTRIBUTES */
	struct osd_sense_attribute attributes[OSD_SENSE_ATTRIBUTES];
	const char *text; /* 80h, UTF-8, borrowed; not encoded beside attributes; NULL: none */
	size_t text_length; /* at most OSD_SENSE_TEXT_MAX bytes */
};

/* Returns the length, 8..OSD_SENSE_MAX. */
size_t osd_sense_encode(const struct osd_sense *sense, uint8_t bytes[OSD_SENSE_MAX]);

#endif
