/* SPDX-License-Identifier: GPL-2.0-or-later */
/* initiator_lists.c -- reads lists that a target returned: attributes, ids, id blocks, maps. */
#include "base/util.h"
#include "testing/initiator.h"
#include "wire/cursor.h"
#include "wire/list_data_layout.h"

#define LENGTH_AT 14 /* in a group header */

void osd_attr_writer_ask(struct osd_attr_writer *writer, uint32_t page, uint32_t number)
{
	struct osd_wr w =
		osd_wr_init(writer->start + writer->placed, writer->capacity - writer->placed);

	osd_wr_be(&w, page, 4);
	osd_wr_be(&w, number, 4);
	writer->needed += OSD_ATTR_GET_ENTRY;
	if (!w.bad)
		writer->placed += OSD_ATTR_GET_ENTRY;
}

/* The end of a returned list: its own length, or the allocation if that cut it. */
static enum osd_status returned_end(const uint8_t *bytes, size_t length, uint8_t type,
				    const uint8_t **ret_end)
{
	uint64_t listed;

	if (length < OSD_LIST_HEADER)
		return OSD_E_PARAM_LENGTH;
	if (bytes[0] != type)
		return OSD_E_PARAM_FIELD;
	listed = osd_get_be(bytes + 4, 4);
	*ret_end = bytes + OSD_LIST_HEADER + OSD_MIN(listed, length - OSD_LIST_HEADER);
	return OSD_OK;
}

enum osd_status osd_attr_retrieved_open(const uint8_t *bytes, size_t length,
					struct osd_attr_list *ret_list)
{
	struct osd_attr_list whole = {.type = OSD_LIST_SET};
	enum osd_status status = returned_end(bytes, length, OSD_LIST_SET, &whole.end);
	struct osd_attr attr;

	if (status != OSD_OK)
		return status;
	whole.at = bytes + OSD_LIST_HEADER;
	while (osd_attr_list_next(&whole, &attr))
		;
	*ret_list = (struct osd_attr_list){bytes + OSD_LIST_HEADER, whole.at, OSD_LIST_SET};
	return OSD_OK;
}

enum osd_status osd_attr_groups_open(const uint8_t *bytes, size_t length,
				     struct osd_attr_groups *ret_groups)
{
	const uint8_t *end;
	enum osd_status status = returned_end(bytes, length, OSD_LIST_MULTI_OBJECT, &end);

	if (status == OSD_OK)
		*ret_groups = (struct osd_attr_groups){bytes + OSD_LIST_HEADER, end};
	return status;
}

bool osd_attr_groups_next(struct osd_attr_groups *groups, struct osd_attr_group *ret_group)
{
	size_t left = (size_t)(groups->end - groups->at), entries;
	const uint8_t *group = groups->at;

	if (left < OSD_ATTR_GROUP)
		return false;
	entries = (size_t)osd_get_be(group + LENGTH_AT, 2);
	if (entries > left - OSD_ATTR_GROUP ||
	    osd_attr_entries_open(group + OSD_ATTR_GROUP, entries, OSD_LIST_SET,
				  &ret_group->attributes) != OSD_OK)
		return false;
	ret_group->object_id = osd_get_be(group, 8);
	ret_group->object_type = group[8];
	groups->at += OSD_ATTR_GROUP + entries;
	return true;
}

enum osd_status osd_list_data_open(const uint8_t *bytes, size_t length,
				   struct osd_list_data *ret_list)
{
	struct osd_list_data list;
	uint64_t descriptors;

	if (length < OSD_LIST_DATA_HEADER)
		return OSD_E_PARAM_LENGTH;
	list.additional_length = osd_get_be(bytes, 8);
	if (list.additional_length < OSD_LIST_DATA_HEADER - NOT_COUNTED)
		return OSD_E_PARAM_LENGTH;
	descriptors = list.additional_length - (OSD_LIST_DATA_HEADER - NOT_COUNTED);
	list.continuation_id = osd_get_be(bytes + AT_CONTINUATION, 8);
	list.list_identifier = (uint32_t)osd_get_be(bytes + AT_LIST_IDENTIFIER, 4);
	list.format = bytes[AT_FORMAT] >> 2;
	list.list_changed = bytes[AT_FORMAT] & LSTCHG;
	list.at = bytes + OSD_LIST_DATA_HEADER;
	list.end = list.at + OSD_MIN(descriptors, length - OSD_LIST_DATA_HEADER);
	*ret_list = list;
	return OSD_OK;
}

bool osd_list_data_next_id(struct osd_list_data *list, uint64_t *ret_id)
{
	if (list->end - list->at < 8)
		return false;
	*ret_id = osd_get_be(list->at, 8);
	list->at += 8;
	return true;
}

bool osd_list_data_next_block(struct osd_list_data *list, struct osd_attr_group *ret_block)
{
	/* An id block is laid out as a group of a multi-object list (osd2-wire 5.5). */
	struct osd_attr_groups groups = {list->at, list->end};

	if (!osd_attr_groups_next(&groups, ret_block))
		return false;
	list->at = groups.at;
	return true;
}

enum osd_status osd_map_data_open(const uint8_t *bytes, size_t length, struct osd_map_data *ret_map)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	uint64_t additional = osd_rd_be(&r, 8);
	size_t there;

	if (r.bad)
		return OSD_E_PARAM_LENGTH;
	there = (size_t)OSD_MIN(additional, (uint64_t)osd_rd_left(&r));
	there -= there % OSD_MAP_DESCRIPTOR;
	*ret_map = (struct osd_map_data){additional, r.at, r.at + there};
	return OSD_OK;
}

bool osd_map_data_next(struct osd_map_data *map, struct osd_map_descriptor *ret_descriptor)
{
	struct osd_rd r = {map->at, map->end, false};

	if (osd_rd_left(&r) < OSD_MAP_DESCRIPTOR)
		return false;
	osd_rd_bytes(&r, 2);
	ret_descriptor->type = (uint16_t)osd_rd_be(&r, 2);
	ret_descriptor->length = (uint32_t)osd_rd_be(&r, 4);
	ret_descriptor->offset = osd_rd_be(&r, 8);
	map->at = r.at;
	return true;
}
