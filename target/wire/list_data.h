/* SPDX-License-Identifier: GPL-2.0-or-later */
/* list_data.h -- parameter data of LIST and LIST COLLECTION (osd2-wire 3.8): a 24-byte header,
 * then ids, or id blocks with attributes.  Only whole descriptors are returned; ADDITIONAL
 * LENGTH counts all of them. */
#ifndef OSD_WIRE_LIST_DATA_H
#define OSD_WIRE_LIST_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/attr_list.h"

#define OSD_LIST_DATA_HEADER 24u
#define OSD_LIST_BLOCK	     16u /* id block before its attributes */

enum osd_descriptor_format {
	OSD_ODF_PARTITIONS = 0x01,
	OSD_ODF_PARTITION_ATTRS = 0x02,
	OSD_ODF_COLLECTIONS = 0x11,
	OSD_ODF_COLLECTION_ATTRS = 0x12,
	OSD_ODF_USER_OBJECTS = 0x21,
	OSD_ODF_USER_OBJECT_ATTRS = 0x22,
};

struct osd_list_writer {
	uint8_t *start;
	size_t capacity; /* the allocation length */
	size_t placed;
	uint64_t needed;	 /* saturates */
	uint64_t first_left_out; /* id of the first descriptor that did not fit; 0: all did */
};

/* capacity 0 or >= OSD_LIST_DATA_HEADER (the dispatcher refuses 1..23). */
void osd_list_writer_init(struct osd_list_writer *writer, void *buffer, size_t capacity);
/* Whole ids that still fit: how many the object layer needs to be asked for. */
size_t osd_list_writer_room(const struct osd_list_writer *writer, size_t descriptor_bytes);
/* One id.  false: it did not fit and is counted as left out. */
bool osd_list_writer_id(struct osd_list_writer *writer, uint64_t id);
/* One id block; entries are type 9 entries (OSD_LIST_BARE writer), at most OSD_ATTR_GROUP_MAX
 * bytes. */
bool osd_list_writer_block(struct osd_list_writer *writer, uint64_t id, uint8_t object_type,
			   const uint8_t *entries, size_t length);
/* Descriptors that exist beyond those offered: their bytes, and the first one's id. */
void osd_list_writer_left_out(struct osd_list_writer *writer, uint64_t bytes, uint64_t first_id);
/* Writes the header; list_identifier counts only while the list is incomplete; list_changed is
 * LSTCHG.
 * Returns the bytes placed. */
size_t osd_list_writer_finish(struct osd_list_writer *writer, enum osd_descriptor_format format,
			      uint32_t list_identifier, bool list_changed);

#endif
