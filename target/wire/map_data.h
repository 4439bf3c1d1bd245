/* SPDX-License-Identifier: GPL-2.0-or-later */
/* map_data.h -- parameter data of READ MAP (osd2-wire 3.11): 8 bytes ADDITIONAL LENGTH, then
 * descriptors of 16 bytes in ascending order of offset.  Only whole descriptors are returned;
 * ADDITIONAL LENGTH counts all of them. */
#ifndef OSD_WIRE_MAP_DATA_H
#define OSD_WIRE_MAP_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define OSD_MAP_HEADER	   8u
#define OSD_MAP_DESCRIPTOR 16u
/* The most bytes of one descriptor: the field has 32 bits, and pieces are whole blocks. */
#define OSD_MAP_PIECE_MAX 0xfffff000u

struct osd_map_writer {
	uint8_t *start;
	size_t capacity; /* the allocation length, or less: Data-In */
	size_t placed;
	uint64_t count; /* descriptors, placed or not */
};

/* capacity 0 or >= OSD_MAP_HEADER. */
void osd_map_writer_init(struct osd_map_writer *writer, void *buffer, size_t capacity);
/* One range, in as many descriptors as it needs; one of length 0 has one. */
void osd_map_writer_add(struct osd_map_writer *writer, uint16_t type, uint64_t offset,
			uint64_t length);
/* Writes the header; returns the bytes placed. */
size_t osd_map_writer_finish(struct osd_map_writer *writer);

#endif
