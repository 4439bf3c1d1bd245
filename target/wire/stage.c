/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stage.c -- see stage.h. */
#include "wire/stage.h"

#include "wire/cursor.h"
#include "wire/text.h"

#define FRAME_VERSION 1
#define METHOD_MAX    64u

bool osd_stage_value_decode(const uint8_t *bytes, size_t length, struct osd_stage_value *ret_value)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	uint64_t kind = osd_rd_be(&r, 1), inherited = osd_rd_be(&r, 1), point = osd_rd_be(&r, 1);
	struct osd_stage_value value = {.none = kind == 0, .inherited = inherited == 1};
	uint64_t zero;

	value.method_length = (size_t)osd_rd_be(&r, 1);
	value.parameters_length = (size_t)osd_rd_be(&r, 2);
	zero = osd_rd_be(&r, 2);
	value.partition_id = osd_rd_be(&r, 8);
	value.object_id = osd_rd_be(&r, 8);
	if (r.bad || kind > 1 || inherited > 1 || point || zero ||
	    value.method_length > METHOD_MAX ||
	    value.parameters_length > OSD_STAGE_PARAMETERS_MAX ||
	    osd_rd_left(&r) != value.method_length + value.parameters_length)
		return false;
	value.method = bytes + (length - osd_rd_left(&r));
	value.parameters = value.method + value.method_length;
	if (value.none && (value.partition_id || value.object_id || osd_rd_left(&r)))
		return false;
	if (!osd_text_is_clean(value.method, value.method_length) ||
	    !osd_text_is_clean(value.parameters, value.parameters_length))
		return false;
	*ret_value = value;
	return true;
}

void osd_source_value_encode(const struct osd_source_value *value, uint8_t bytes[OSD_SOURCE_BYTES])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_SOURCE_BYTES);

	osd_wr_be(&w, value->partition_id, 8); /* 0-7 */
	osd_wr_be(&w, value->object_id, 8);    /* 8-15 */
	osd_wr_be(&w, value->created_msec, 6); /* 16-21 */
	osd_wr_be(&w, value->writable, 1);     /* 22 */
}

bool osd_source_value_decode(const uint8_t *bytes, size_t length, struct osd_source_value *ret_value)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	struct osd_source_value value = {.partition_id = osd_rd_be(&r, 8)};
	uint64_t flags = 0;

	value.object_id = osd_rd_be(&r, 8);
	if (length > OSD_SOURCE_GIVEN)
		value.created_msec = osd_rd_be(&r, 6);
	if (length != OSD_SOURCE_IDS)
		flags = osd_rd_be(&r, 1);
	value.writable = flags;
	if (r.bad || osd_rd_left(&r) || !value.partition_id || !value.object_id || flags > 1)
		return false;
	*ret_value = value;
	return true;
}

size_t osd_stage_frame_encode(const struct osd_stage_frame *frame,
			      uint8_t bytes[OSD_STAGE_FRAME_MAX])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_STAGE_FRAME_MAX);

	osd_wr_be(&w, FRAME_VERSION, 2);	    /* 0-1 */
	osd_wr_be(&w, frame->parameters_length, 2); /* 2-3 */
	osd_wr_be(&w, frame->header_length, 4);	    /* 4-7 */
	osd_wr_be(&w, frame->offset, 8);	    /* 8-15 */
	osd_wr_be(&w, frame->whole, 8);		    /* 16-23 */
	osd_wr_bytes(&w, frame->parameters, frame->parameters_length);
	return osd_wr_used(&w);
}
