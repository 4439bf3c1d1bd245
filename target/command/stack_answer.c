/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_answer.c -- see stack_answer.h. */
#include "command/stack_answer.h"

#include <string.h>

#include "base/util.h"

/* With the end of the object locked, its length belongs to its version. */
enum osd_status osd_stack_answer_look(struct osd_object *source, unsigned data_flags,
				      const struct osd_data_version *wanted, uint64_t *ret_length,
				      struct osd_data_version *ret_version)
{
	struct osd_version_check check = {.wanted = wanted};
	size_t got = 0;
	uint8_t byte;
	enum osd_status status = osd_object_length(source, ret_length);

	if (status == OSD_OK)
		status = osd_object_read_with(source, *ret_length, &byte, 1, data_flags, &check,
					      &got);
	if (status != OSD_OK)
		return status;
	*ret_version = check.found;
	return got ? OSD_E_CONFLICT : OSD_OK;
}

enum osd_status osd_stack_answer_load(struct osd_object *source, unsigned data_flags,
				      const struct osd_data_version *version, uint64_t offset,
				      uint8_t *bytes, size_t length)
{
	struct osd_version_check check = {.wanted = version};
	size_t got = 0;
	enum osd_status status =
		osd_object_read_with(source, offset, bytes, length, data_flags, &check, &got);

	return status == OSD_E_VERSION || (status == OSD_OK && got != length) ? OSD_E_CONFLICT
									      : status;
}

/* ---- slots ------------------------------------------------------------------------------------- */

struct slot {
	uint64_t offset; /* in the object */
	uint8_t *at;
	size_t room;	    /* in Data-In */
	uint64_t available; /* bytes that the object has for it */
};

/* Moves on from a piece to the next; *at is the offset of its slot in Data-In. */
static struct slot slot_of(const struct osd_stack_answer *answer, size_t piece, uint64_t *at)
{
	const struct osd_request *request = answer->request;
	const struct osd_piece *asked = &answer->pieces[piece];
	uint64_t left = request->data_in_capacity - OSD_MIN(*at, request->data_in_capacity);
	struct slot slot = {.offset = asked->offset};

	slot.room = (size_t)OSD_MIN(asked->length, left);
	slot.at = slot.room ? request->data_in + *at : NULL;
	slot.available = asked->offset < answer->end
				 ? OSD_MIN(asked->length, answer->end - asked->offset)
				 : 0;
	*at += asked->length;
	return slot;
}

/* ---- kept results ------------------------------------------------------------------------------ */

static bool get_whole(struct osd_stack_answer *answer, const struct slot *slot, bool nowait)
{
	return osd_kept_get(answer->kept, &answer->key, 0, slot->offset, slot->at, slot->room,
			    nowait, &answer->end);
}

static bool get_units(struct osd_stack_answer *answer, const struct slot *slot, bool nowait)
{
	size_t length = (size_t)OSD_MIN((uint64_t)slot->room, slot->available), done = 0;
	bool all = true;

	while (done < length) {
		uint64_t unit = (slot->offset + done) / answer->unit, whole;
		uint64_t skipped = (slot->offset + done) % answer->unit;
		size_t part = (size_t)OSD_MIN((uint64_t)(length - done), answer->unit - skipped);

		if (!osd_kept_get(answer->kept, &answer->key, unit, skipped, slot->at + done, part,
				  nowait, &whole) ||
		    whole < skipped + part) {
			answer->first_missing = OSD_MIN(answer->first_missing, unit);
			answer->last_missing = OSD_MAX(answer->last_missing, unit);
			all = false;
		}
		done += part;
	}
	return all;
}

bool osd_stack_answer_keeps(struct osd_stack_answer *answer, bool nowait)
{
	uint64_t at = 0;
	bool all = true;

	answer->first_missing = answer->unit ? UINT64_MAX : 0;
	answer->last_missing = 0;
	for (size_t i = 0; i < answer->piece_count; i++) {
		struct slot slot = slot_of(answer, i, &at);

		if (answer->unit)
			all = get_units(answer, &slot, nowait) && all;
		else if (!get_whole(answer, &slot, nowait))
			return false;
	}
	return all;
}

void osd_stack_answer_keep(const struct osd_stack_answer *answer, uint64_t offset,
			   const uint8_t *bytes, size_t length)
{
	if (!answer->unit) {
		osd_kept_put(answer->kept, &answer->key, 0, bytes, length);
		return;
	}
	for (size_t done = 0; done < length; done += answer->unit)
		osd_kept_put(answer->kept, &answer->key, (offset + done) / answer->unit,
			     bytes + done, OSD_MIN(length - done, (size_t)answer->unit));
}

/* ---- computed bytes ---------------------------------------------------------------------------- */

void osd_stack_answer_fill(const struct osd_stack_answer *answer, uint64_t offset,
			   const uint8_t *bytes, size_t length)
{
	uint64_t at = 0;

	for (size_t i = 0; i < answer->piece_count; i++) {
		struct slot slot = slot_of(answer, i, &at);
		uint64_t from = OSD_MAX(slot.offset, offset);
		uint64_t to = OSD_MIN(slot.offset + OSD_MIN((uint64_t)slot.room, slot.available),
				      offset + length);

		if (from < to)
			memcpy(slot.at + (from - slot.offset), bytes + (from - offset),
			       (size_t)(to - from));
	}
}

enum osd_status osd_stack_answer_end(const struct osd_stack_answer *answer)
{
	struct osd_request *request = answer->request;
	uint64_t at = 0, available = 0;

	if (answer->piece_count == 1 && answer->pieces[0].length &&
	    answer->pieces[0].offset > answer->end)
		return OSD_E_BEYOND_END;
	for (size_t i = 0; i < answer->piece_count; i++) {
		struct slot slot = slot_of(answer, i, &at);

		available += slot.available;
		if (slot.available < slot.room)
			memset(slot.at + slot.available, 0, slot.room - (size_t)slot.available);
	}
	request->command_data_in = request->decoded.length;
	if (available == request->decoded.length)
		return OSD_OK;
	osd_fault_inform_command(&request->fault, available);
	return OSD_E_SHORT_READ;
}
