/* SPDX-License-Identifier: GPL-2.0-or-later */
/* map_data.c -- see map_data.h. */
#include "wire/map_data.h"

#include "base/util.h"
#include "wire/cursor.h"

void osd_map_writer_init(struct osd_map_writer *writer, void *buffer, size_t capacity)
{
	*writer = (struct osd_map_writer){buffer, capacity, 0, 0};
	if (capacity >= OSD_MAP_HEADER)
		writer->placed = OSD_MAP_HEADER;
}

static void put(struct osd_map_writer *writer, uint16_t type, uint64_t offset, uint32_t length)
{
	struct osd_wr w;

	writer->count++;
	if (writer->capacity - writer->placed < OSD_MAP_DESCRIPTOR || writer->placed == 0)
		return;
	w = osd_wr_init(writer->start + writer->placed, OSD_MAP_DESCRIPTOR);
	osd_wr_zero(&w, 2);	  /* 0-1 */
	osd_wr_be(&w, type, 2);	  /* 2-3 */
	osd_wr_be(&w, length, 4); /* 4-7 */
	osd_wr_be(&w, offset, 8); /* 8-15 */
	writer->placed += OSD_MAP_DESCRIPTOR;
}

void osd_map_writer_add(struct osd_map_writer *writer, uint16_t type, uint64_t offset,
			uint64_t length)
{
	do {
		uint32_t piece = (uint32_t)OSD_MIN(length, OSD_MAP_PIECE_MAX);

		put(writer, type, offset, piece);
		offset += piece;
		length -= piece;
	} while (length > 0);
}

size_t osd_map_writer_finish(struct osd_map_writer *writer)
{
	if (writer->placed)
		osd_put_be(writer->start, writer->count * OSD_MAP_DESCRIPTOR, 8);
	return writer->placed;
}
