/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_list.c -- attribute lists: checked readers, and writers that cut at the allocation
 * length. */
#include "wire/attr_list.h"

#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"
#include "wire/exec_limits.h"

#define LENGTH_AT 14 /* in a value entry, and in a group header */
#define PAIR_ID	  8  /* the object's id before an entry, in OSC's form */

/* ---- reading ------------------------------------------------------------------------------ */

/* The length of the first entry in the left bytes, with padding; 0: it extends beyond them. */
static size_t entry_bytes(const uint8_t *at, size_t left, uint8_t type)
{
	size_t bytes;

	if (type == OSD_LIST_GET)
		return left < OSD_ATTR_GET_ENTRY ? 0 : OSD_ATTR_GET_ENTRY;
	if (left < OSD_ATTR_VALUE_ENTRY)
		return 0;
	bytes = osd_round_up(OSD_ATTR_VALUE_ENTRY + osd_get_be(at + LENGTH_AT, 2), 8);
	return bytes > left ? 0 : bytes;
}

enum osd_status osd_attr_entries_open(const uint8_t *bytes, size_t length, uint8_t type,
				      struct osd_attr_list *ret_list)
{
	const uint8_t *at = bytes, *end = bytes + length;
	uint64_t count = 0;

	if (length % 8)
		return OSD_E_PARAM_LENGTH;
	while (at < end) {
		size_t entry = entry_bytes(at, (size_t)(end - at), type);

		if (!entry || ++count > osd_exec_limits[OSD_LIMIT_LIST_ENTRIES].maximum)
			return OSD_E_PARAM_LENGTH;
		if (type == OSD_LIST_SET && osd_get_be(at + LENGTH_AT, 2) > OSD_ATTRIBUTE_MAX) {
			*ret_list = (struct osd_attr_list){at, at + entry, type};
			return OSD_E_PARAM_FIELD;
		}
		at += entry;
	}
	*ret_list = (struct osd_attr_list){bytes, end, type};
	return OSD_OK;
}

enum osd_status osd_attr_list_open(const uint8_t *bytes, size_t length, uint8_t type,
				   struct osd_attr_list *ret_list)
{
	if (length < OSD_LIST_HEADER)
		return OSD_E_PARAM_LENGTH;
	/* Bits 7-4 must be 0 in lists that the target returns, and only there (osd2-wire 5.3). */
	if ((bytes[0] & 0x0f) != type)
		return OSD_E_PARAM_FIELD;
	return osd_attr_entries_open(bytes + OSD_LIST_HEADER, length - OSD_LIST_HEADER, type,
				     ret_list);
}

bool osd_attr_list_next(struct osd_attr_list *list, struct osd_attr *ret_attr)
{
	size_t entry = entry_bytes(list->at, (size_t)(list->end - list->at), list->type);

	if (!entry)
		return false;
	ret_attr->page = (uint32_t)osd_get_be(list->at, 4);
	ret_attr->number = (uint32_t)osd_get_be(list->at + 4, 4);
	ret_attr->value = NULL;
	ret_attr->length = 0;
	if (list->type == OSD_LIST_SET) {
		ret_attr->length = (uint16_t)osd_get_be(list->at + LENGTH_AT, 2);
		ret_attr->value = list->at + OSD_ATTR_VALUE_ENTRY;
	}
	list->at += entry;
	return true;
}

/* ---- writing ------------------------------------------------------------------------------ */

void osd_attr_writer_init(struct osd_attr_writer *writer, void *buffer, size_t capacity,
			  uint8_t type)
{
	*writer = (struct osd_attr_writer){.start = buffer, .capacity = capacity, .type = type};
	if (type == OSD_LIST_BARE)
		return;
	writer->needed = OSD_LIST_HEADER;
	writer->placed = OSD_MIN(capacity, OSD_LIST_HEADER);
	writer->full = capacity < OSD_LIST_HEADER;
	if (writer->placed)
		memset(buffer, 0, writer->placed);
}

/* Places the whole head or nothing, then as much of the value and its padding as fits.  The length
 * in the head stays that of the whole value (osd2-wire 5.4). */
static void place(struct osd_attr_writer *writer, const uint8_t *head, size_t head_length,
		  const void *value, size_t length)
{
	size_t total = osd_round_up(head_length + length, 8);
	size_t room = writer->capacity - writer->placed;
	size_t value_part, part;
	uint8_t *at;

	writer->needed += total;
	if (writer->full || room < head_length) {
		writer->full = true;
		return;
	}
	at = writer->start + writer->placed;
	part = OSD_MIN(total, room);
	value_part = OSD_MIN(length, part - head_length);
	memcpy(at, head, head_length);
	if (value_part)
		memcpy(at + head_length, value, value_part);
	memset(at + head_length + value_part, 0, part - head_length - value_part);
	writer->placed += part;
	writer->full = part < total;
}

enum osd_status osd_attr_writer_add(struct osd_attr_writer *writer, uint32_t page, uint32_t number,
				    const void *value, size_t length)
{
	uint8_t head[PAIR_ID + OSD_ATTR_VALUE_ENTRY] = {0}, *entry = head;
	size_t total;

	if (length > OSD_ATTRIBUTE_MAX)
		return OSD_E_PARAM_FIELD;
	total = osd_round_up(OSD_ATTR_VALUE_ENTRY + length, 8);
	if (writer->in_group && !writer->pairs && writer->group_bytes + total > OSD_ATTR_GROUP_MAX)
		return OSD_E_GROUP_LENGTH;
	if (writer->pairs) {
		osd_put_be(head, writer->group_id, PAIR_ID);
		entry += PAIR_ID;
	}
	osd_put_be(entry, page, 4);
	osd_put_be(entry + 4, number, 4);
	osd_put_be(entry + LENGTH_AT, length, 2);
	place(writer, head, (size_t)(entry - head) + OSD_ATTR_VALUE_ENTRY, value, length);
	writer->group_bytes += total;
	return OSD_OK;
}

void osd_attr_writer_pairs(struct osd_attr_writer *writer, uint8_t type)
{
	writer->pairs = true;
	writer->type = type;
}

void osd_attr_writer_begin_group(struct osd_attr_writer *writer, uint64_t object_id,
				 uint8_t object_type)
{
	uint8_t head[OSD_ATTR_GROUP] = {0};

	writer->group_id = object_id;
	if (writer->pairs)
		return;
	osd_put_be(head, object_id, 8);
	head[8] = object_type;
	writer->group_at = writer->placed;
	place(writer, head, sizeof(head), NULL, 0);
	writer->group_placed = writer->placed > writer->group_at;
	writer->group_bytes = 0;
	writer->in_group = true;
}

void osd_attr_writer_end_group(struct osd_attr_writer *writer)
{
	if (writer->group_placed)
		osd_put_be(writer->start + writer->group_at + LENGTH_AT, writer->group_bytes, 2);
	writer->in_group = false;
}

size_t osd_attr_writer_finish(struct osd_attr_writer *writer)
{
	uint8_t header[OSD_LIST_HEADER] = {0};
	uint64_t listed;

	if (writer->type == OSD_LIST_BARE)
		return writer->placed;
	/* Initiators find out by LIST LENGTH that something was cut (osd2-wire 5.4). */
	listed = writer->needed - OSD_LIST_HEADER;
	header[0] = writer->type;
	osd_put_be(header + 4, OSD_MIN(listed, UINT32_MAX), 4);
	if (writer->capacity)
		memcpy(writer->start, header, OSD_MIN(writer->capacity, sizeof(header)));
	return writer->placed;
}

size_t osd_page_place(const uint8_t *page, size_t page_length, void *buffer, size_t capacity)
{
	size_t placed = OSD_MIN(page_length, capacity);

	if (placed)
		memcpy(buffer, page, placed);
	return placed;
}

void osd_page_header(uint8_t bytes[8], uint32_t page, uint32_t length_after)
{
	osd_put_be(bytes, page, 4);
	osd_put_be(bytes + 4, length_after, 4);
}
