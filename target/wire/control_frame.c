/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_frame.c -- see control_frame.h. */
#include "wire/control_frame.h"

#include "wire/text.h"

static const char magic[4] = {'O', 'S', 'D', 'C'};

size_t osd_control_encode(const struct osd_control_frame *frame, uint8_t *bytes, size_t capacity)
{
	struct osd_wr w = osd_wr_init(bytes, capacity);

	if (frame->payload_bytes > OSD_CONTROL_MAX - OSD_CONTROL_HEADER)
		return 0;
	osd_wr_bytes(&w, magic, sizeof(magic));
	osd_wr_be(&w, OSD_CONTROL_VERSION, 2);
	osd_wr_be(&w, frame->type, 2);
	osd_wr_be(&w, frame->serial, 4);
	osd_wr_be(&w, frame->payload_bytes, 4);
	osd_wr_bytes(&w, frame->payload, frame->payload_bytes);
	return w.bad ? 0 : osd_wr_used(&w);
}

enum osd_control_fault osd_control_decode(const uint8_t *bytes, size_t length,
					  struct osd_control_frame *ret_frame)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	const uint8_t *first = osd_rd_bytes(&r, sizeof(magic));
	struct osd_control_frame frame = {0};
	uint16_t version = (uint16_t)osd_rd_be(&r, 2);

	frame.type = (uint16_t)osd_rd_be(&r, 2);
	frame.serial = (uint32_t)osd_rd_be(&r, 4);
	frame.payload_bytes = (uint32_t)osd_rd_be(&r, 4);
	if (r.bad || memcmp(first, magic, sizeof(magic)) || length > OSD_CONTROL_MAX)
		return OSD_CONTROL_NO_FRAME;
	if (version != OSD_CONTROL_VERSION) {
		*ret_frame = (struct osd_control_frame){.serial = frame.serial};
		return OSD_CONTROL_OTHER_VERSION;
	}
	if (frame.payload_bytes != osd_rd_left(&r))
		return OSD_CONTROL_NO_FRAME;
	frame.payload = (const char *)r.at;
	*ret_frame = frame;
	return OSD_CONTROL_FINE;
}

static bool is_key(const uint8_t *key, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!(key[i] >= 'a' && key[i] <= 'z') && !(key[i] >= '0' && key[i] <= '9') &&
		    key[i] != '_')
			return false;
	return length > 0 && length <= OSD_CONTROL_KEY_MAX;
}

bool osd_control_next(struct osd_rd *payload, struct osd_control_pair *ret_pair)
{
	size_t left = osd_rd_left(payload);
	const uint8_t *line = payload->at, *end, *equals;

	if (!left)
		return false;
	end = memchr(line, '\n', left);
	equals = end ? memchr(line, '=', (size_t)(end - line)) : NULL;
	if (!equals || !is_key(line, (size_t)(equals - line)) ||
	    !osd_text_is_clean(equals + 1, (size_t)(end - equals - 1))) {
		payload->bad = true;
		return false;
	}
	payload->at = end + 1;
	*ret_pair = (struct osd_control_pair){
		.key = (const char *)line,
		.key_bytes = (size_t)(equals - line),
		.value = (const char *)equals + 1,
		.value_bytes = (size_t)(end - equals - 1),
	};
	return true;
}
