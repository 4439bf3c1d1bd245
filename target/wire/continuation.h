/* SPDX-License-Identifier: GPL-2.0-or-later */
/* continuation.h -- the CDB continuation segment at the start of Data-Out (osd2-wire section 4):
 * header, descriptors, scatter/gather lists.
 *
 * osd_continuation_open checks the whole segment (format, service action, each descriptor's
 * length, pad and type, and that this service action may carry it, once), so walking it cannot
 * fail.  Every fault is OSD_E_CDB_FIELD, to be reported with field pointer
 * OSD_CONTINUATION_FIELD. */
#ifndef OSD_WIRE_CONTINUATION_H
#define OSD_WIRE_CONTINUATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/cursor.h"
#include "wire/osd2.h"

#define OSD_CONTINUATION_FIELD       48 /* CDB byte */
#define OSD_CONTINUATION_MAX         (1u << 20)
#define OSD_DESCRIPTOR_HEADER        8u
#define OSD_SG_ENTRY                 16u
#define OSD_DESC_COPY_SOURCE         0x0101
#define OSD_COPY_SOURCE_BYTES        20u
#define OSD_DESC_PRECONDITION	     0xf082 /* this target's */
#define OSD_PRECONDITION_BYTES	     32u
#define OSD_CONTINUATION_DESCRIPTORS 16 /* most in one segment */

struct osd_descriptor {
	uint16_t type;
	const uint8_t *content; /* borrowed, without header and pad */
	uint32_t length;
};

struct osd_continuation {
	const uint8_t *at, *end;
};

/* segment: the CDB CONTINUATION LENGTH bytes at Data-Out 0; the caller has checked that Data-Out
 * holds them.  A segment of length 0 opens as one without descriptors. */
enum osd_status osd_continuation_open(const uint8_t *segment, size_t length,
				      uint16_t service_action,
				      struct osd_continuation *ret_continuation);
bool osd_continuation_next(struct osd_continuation *continuation,
			   struct osd_descriptor *ret_descriptor);
/* The descriptor of that type, if there is one; does not move the walk. */
bool osd_continuation_find(const struct osd_continuation *continuation, uint16_t type,
			   struct osd_descriptor *ret_descriptor);

/* Content bytes the largest descriptor of that type may have (root information 7000000h + type);
 * 0: the type is not supported. */
uint32_t osd_descriptor_largest(uint16_t type);

/* COPY USER OBJECT SOURCE (osd2-wire 4.3). */
struct osd_copy_source {
	uint64_t partition_id, object_id;
	bool attributes; /* CPY_ATTR */
	bool freeze;
	uint8_t time_of_duplication;
};
/* With or without its two reserved bytes: 18 or 20 bytes of content. */
enum osd_status osd_copy_source_decode(const struct osd_descriptor *descriptor,
				       struct osd_copy_source *ret_source);

/* PRECONDITION: the value that an attribute must have, laid out as an entry of a retrieved attributes list.
 * The versions of data and of members are the attributes that can be named. */
struct osd_precondition {
	uint32_t page, number;
	uint64_t counter; /* of the value */
	uint32_t opening;
};
enum osd_status osd_precondition_decode(const struct osd_descriptor *descriptor,
					struct osd_precondition *ret_precondition);

/* Writes a segment: begin, then its descriptors.  writer->bad: it does not fit. */
void osd_continuation_begin(struct osd_wr *writer, uint16_t service_action);
void osd_continuation_add(struct osd_wr *writer, uint16_t type, const void *content, size_t length);

/* A scatter/gather list: pieces of the object, in the order their bytes lie in the data buffer. */
struct osd_sg_list {
	const uint8_t *at, *end;
	uint64_t base; /* the CDB's starting byte address, added to every piece */
};

/* Checks that the pieces add up to length (the CDB's) and that none runs past 2^64. */
enum osd_status osd_sg_list_open(const struct osd_descriptor *descriptor, uint64_t base,
				 uint64_t length, struct osd_sg_list *ret_list);
bool osd_sg_list_next(struct osd_sg_list *list, uint64_t *ret_offset, uint64_t *ret_length);

#endif
