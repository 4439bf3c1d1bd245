/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_attr_list.c -- invariant: a list that opens is walked to its end inside its bytes,
 * whatever it says about its size; written again it keeps its entries; and a writer stays within
 * any allocation, telling the same full length at each. */
#include "fuzz.h"
#include "wire/attr_list.h"
#include "wire/list_data.h"
#include "wire/map_data.h"
#include "testing/initiator.h"

static size_t walk(struct osd_attr_list list)
{
	struct osd_attr attr;
	size_t count = 0;

	for (; osd_attr_list_next(&list, &attr); count++)
		touch(attr.value, attr.length);
	HOLDS(list.at == list.end);
	return count;
}

/* Writes the list's entries into capacity bytes; returns what the whole would need. */
static uint64_t rewrite(struct osd_attr_list list, size_t capacity, size_t count)
{
	uint8_t *buffer = malloc(capacity + 1);
	struct osd_attr_writer writer;
	struct osd_attr_list again;
	struct osd_attr attr;
	size_t placed;

	HOLDS(buffer);
	osd_attr_writer_init(&writer, buffer, capacity, OSD_LIST_SET);
	while (osd_attr_list_next(&list, &attr))
		HOLDS(osd_attr_writer_add(&writer, attr.page, attr.number, attr.value,
					  attr.length) == OSD_OK);
	placed = osd_attr_writer_finish(&writer);
	HOLDS(placed <= capacity);
	if (placed >= OSD_LIST_HEADER) {
		HOLDS(osd_attr_retrieved_open(buffer, placed, &again) == OSD_OK);
		HOLDS(walk(again) <= count);
		HOLDS(placed < writer.needed || walk(again) == count);
	}
	free(buffer);
	return writer.needed;
}

static void fuzz_set_list(const uint8_t *data, size_t size)
{
	struct osd_attr_list list;
	uint64_t needed;
	size_t count;

	if (osd_attr_list_open(data, size, OSD_LIST_SET, &list) != OSD_OK)
		return;
	count = walk(list);
	needed = rewrite(list, size, count);
	HOLDS(needed <= size);
	for (size_t cut = 0; cut < size; cut += 1 + size / 16)
		HOLDS(rewrite(list, cut, count) == needed);
}

static void fuzz_groups(const uint8_t *data, size_t size)
{
	struct osd_attr_groups groups;
	struct osd_attr_group group;

	if (osd_attr_groups_open(data, size, &groups) == OSD_OK)
		while (osd_attr_groups_next(&groups, &group))
			walk(group.attributes);
}

static void fuzz_list_data(const uint8_t *data, size_t size)
{
	struct osd_list_data ids, blocks;
	struct osd_attr_group block;
	uint64_t id;

	if (osd_list_data_open(data, size, &ids) != OSD_OK)
		return;
	blocks = ids;
	while (osd_list_data_next_id(&ids, &id))
		HOLDS(ids.at <= data + size);
	while (osd_list_data_next_block(&blocks, &block))
		walk(block.attributes);
}

static void fuzz_map_data(const uint8_t *data, size_t size)
{
	struct osd_map_descriptor descriptor;
	struct osd_map_data map;

	if (osd_map_data_open(data, size, &map) != OSD_OK)
		return;
	while (osd_map_data_next(&map, &descriptor))
		HOLDS(map.at <= data + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct osd_attr_list list;

	if (osd_attr_list_open(data, size, OSD_LIST_GET, &list) == OSD_OK)
		HOLDS(walk(list) == (size - OSD_LIST_HEADER) / OSD_ATTR_GET_ENTRY);
	if (osd_attr_entries_open(data, size, OSD_LIST_SET, &list) == OSD_OK)
		walk(list);
	if (osd_attr_retrieved_open(data, size, &list) == OSD_OK)
		walk(list);
	fuzz_set_list(data, size);
	fuzz_groups(data, size);
	fuzz_list_data(data, size);
	fuzz_map_data(data, size);
	return 0;
}
