/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_continuation.c -- invariant: a continuation segment that opens is walked inside its
 * bytes; a scatter/gather list that opens adds up and does not wrap; EXEC parameters that decode
 * are within the hard limits and encode to a form that no longer changes. */
#include "base/util.h"
#include "fuzz.h"
#include "wire/continuation.h"
#include "wire/cursor.h"
#include "wire/exec_param.h"
#include "wire/index_ranges.h"
#include "testing/initiator.h"

static void fuzz_pieces(const struct osd_descriptor *descriptor)
{
	struct osd_sg_list list;
	uint64_t offset, length, sum = 0, total = 0;
	bool wraps = false;

	for (uint32_t at = 8; at + 8 <= descriptor->length; at += OSD_SG_ENTRY)
		wraps |= !osd_add_u64(total, osd_get_be(descriptor->content + at, 8), &total);
	if (osd_sg_list_open(descriptor, total, total, &list) != OSD_OK)
		return;
	HOLDS(!wraps);
	while (osd_sg_list_next(&list, &offset, &length)) {
		HOLDS(offset >= list.base && offset + length >= offset);
		sum += length;
	}
	HOLDS(sum == total);
}

/* As many indices as the list says, ascending, from its first to its last. */
static void walk_members(const struct osd_exec_params *params)
{
	struct osd_index_walk walk = osd_index_walk_begin(
		params->array_ranges.bytes, params->array_ranges.length, params->array_first);
	uint32_t members = osd_exec_array_members(params), last = 0;

	HOLDS(members <= osd_exec_limits[OSD_LIMIT_ARRAY].maximum);
	for (uint32_t i = 0; i < members; i++) {
		uint32_t index = osd_index_walk_next(&walk);

		HOLDS(i ? index > last : index == params->array_first);
		last = index;
	}
	HOLDS(!members || last == params->array_last);
}

static void fuzz_params(const uint8_t *content, size_t length)
{
	struct osd_exec_params params, again;
	size_t capacity = length + 64 * 16; /* room for the canonical form */
	uint8_t *once = malloc(2 * capacity), *twice = once + capacity;
	size_t used;

	HOLDS(once);
	if (osd_exec_params_decode(content, length, &params, NULL) == OSD_OK) {
		HOLDS(params.args.length <= osd_exec_limits[OSD_LIMIT_ARGS].maximum);
		HOLDS(params.wall_usec <= osd_exec_limits[OSD_LIMIT_WALL].maximum);
		HOLDS(params.tag_count <= OSD_EXEC_TAGS_MAX &&
		      params.after_count <= OSD_EXEC_AFTER_MAX);
		touch(params.args.bytes, params.args.length);
		touch(params.name.bytes, params.name.length);
		walk_members(&params);
		used = osd_exec_params_encode(&params, once, capacity);
		HOLDS(used && used <= length);
		HOLDS(osd_exec_params_decode(once, used, &again, NULL) == OSD_OK);
		HOLDS(again.present == params.present);
		HOLDS(osd_exec_params_encode(&again, twice, capacity) == used);
		HOLDS(!memcmp(once, twice, used));
	}
	free(once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t service_action = size < 4 ? 0 : (uint16_t)osd_get_be(data + 2, 2);
	struct osd_continuation continuation;
	struct osd_descriptor descriptor;

	fuzz_params(data, size);
	if (osd_continuation_open(data, size, service_action, &continuation) != OSD_OK)
		return 0;
	while (osd_continuation_next(&continuation, &descriptor)) {
		struct osd_copy_source source;

		if (osd_copy_source_decode(&descriptor, &source) == OSD_OK)
			HOLDS(source.time_of_duplication <= 0x0f);
		touch(descriptor.content, descriptor.length);
		if (descriptor.type == OSD_DESC_SG_LIST)
			fuzz_pieces(&descriptor);
		if (descriptor.type == OSD_DESC_EXEC_PARAMS)
			fuzz_params(descriptor.content, descriptor.length);
	}
	HOLDS(continuation.at == continuation.end);
	return 0;
}
