/* SPDX-License-Identifier: GPL-2.0-or-later */
/* list_data.c -- parameter data of LIST and LIST COLLECTION. */
#include "wire/list_data.h"

#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"
#include "wire/list_data_layout.h"

void osd_list_writer_init(struct osd_list_writer *writer, void *buffer, size_t capacity)
{
	*writer = (struct osd_list_writer){
		.start = buffer,
		.capacity = capacity,
		.placed = capacity < OSD_LIST_DATA_HEADER ? 0 : OSD_LIST_DATA_HEADER,
		.needed = OSD_LIST_DATA_HEADER,
	};
}

size_t osd_list_writer_room(const struct osd_list_writer *writer, size_t descriptor_bytes)
{
	if (!writer->placed || writer->first_left_out)
		return 0;
	return (writer->capacity - writer->placed) / descriptor_bytes;
}

void osd_list_writer_left_out(struct osd_list_writer *writer, uint64_t bytes, uint64_t first_id)
{
	writer->needed = osd_add_capped(writer->needed, bytes);
	if (!writer->first_left_out)
		writer->first_left_out = first_id;
}

/* Room for a whole descriptor, or NULL and id is left out. */
static uint8_t *claim(struct osd_list_writer *writer, uint64_t id, size_t length)
{
	uint8_t *room;

	if (!writer->placed || writer->first_left_out ||
	    length > writer->capacity - writer->placed) {
		osd_list_writer_left_out(writer, length, id);
		return NULL;
	}
	room = writer->start + writer->placed;
	writer->placed += length;
	writer->needed += length;
	return room;
}

bool osd_list_writer_id(struct osd_list_writer *writer, uint64_t id)
{
	uint8_t *room = claim(writer, id, 8);

	if (room)
		osd_put_be(room, id, 8);
	return room;
}

bool osd_list_writer_block(struct osd_list_writer *writer, uint64_t id, uint8_t object_type,
			   const uint8_t *entries, size_t length)
{
	uint8_t *room = claim(writer, id, OSD_LIST_BLOCK + length);

	if (!room)
		return false;
	memset(room, 0, OSD_LIST_BLOCK);
	osd_put_be(room, id, 8);
	room[8] = object_type;
	osd_put_be(room + 14, length, 2);
	if (length)
		memcpy(room + OSD_LIST_BLOCK, entries, length);
	return true;
}

size_t osd_list_writer_finish(struct osd_list_writer *writer, enum osd_descriptor_format format,
			      uint32_t list_identifier, bool list_changed)
{
	uint64_t additional =
		writer->needed == UINT64_MAX ? UINT64_MAX : writer->needed - NOT_COUNTED;

	if (!writer->placed)
		return 0;
	memset(writer->start, 0, OSD_LIST_DATA_HEADER);
	osd_put_be(writer->start, additional, 8);
	osd_put_be(writer->start + AT_CONTINUATION, writer->first_left_out, 8);
	if (writer->first_left_out)
		osd_put_be(writer->start + AT_LIST_IDENTIFIER, list_identifier, 4);
	writer->start[AT_FORMAT] = (uint8_t)(format << 2 | (list_changed ? LSTCHG : 0));
	return writer->placed;
}
