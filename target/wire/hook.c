/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook.c -- see hook.h. */
#include "wire/hook.h"

#include "wire/cursor.h"
#include "wire/text.h"

#define FRAME_VERSION 1
#define METHOD_MAX    64u

enum { CHECK = 1, AFTER = 2, CHECKS = 15, AFTER_EVENT = 16 };

bool osd_hook_value_decode(const uint8_t *bytes, size_t length, struct osd_hook_value *ret_value)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	uint64_t point = osd_rd_be(&r, 1), events = osd_rd_be(&r, 1), zero = osd_rd_be(&r, 1);
	struct osd_hook_value value;

	value.method_length = (size_t)osd_rd_be(&r, 1);
	value.parameters_length = (size_t)osd_rd_be(&r, 2);
	zero |= osd_rd_be(&r, 2);
	value.partition_id = osd_rd_be(&r, 8);
	value.object_id = osd_rd_be(&r, 8);
	value.page = (uint32_t)osd_rd_be(&r, 4);
	value.events = point == AFTER ? AFTER_EVENT : (unsigned)events;
	if (r.bad || zero || value.method_length > METHOD_MAX ||
	    value.parameters_length > OSD_HOOK_PARAMETERS_MAX ||
	    osd_rd_left(&r) != value.method_length + value.parameters_length)
		return false;
	if (point == CHECK ? !events || events > CHECKS || value.page
			   : point != AFTER || events || !value.page)
		return false;
	value.method = bytes + (length - osd_rd_left(&r));
	value.parameters = value.method + value.method_length;
	if (!osd_text_is_clean(value.method, value.method_length) ||
	    !osd_text_is_clean(value.parameters, value.parameters_length))
		return false;
	*ret_value = value;
	return true;
}

size_t osd_hook_frame_length(const struct osd_hook_frame *frame)
{
	return OSD_HOOK_FRAME_BYTES + frame->parameters_length + frame->attributes_length +
	       (frame->data ? frame->data_length : 0);
}

void osd_hook_frame_encode(const struct osd_hook_frame *frame, uint8_t *bytes)
{
	struct osd_wr w = osd_wr_init(bytes, osd_hook_frame_length(frame));

	osd_wr_be(&w, FRAME_VERSION, 2);			     /* 0-1 */
	osd_wr_be(&w, frame->events, 1);			     /* 2 */
	osd_wr_be(&w, frame->data != NULL, 1);			     /* 3 */
	osd_wr_be(&w, frame->service_action, 2);		     /* 4-5 */
	osd_wr_be(&w, frame->parameters_length, 2);		     /* 6-7 */
	osd_wr_be(&w, frame->partition_id, 8);			     /* 8-15 */
	osd_wr_be(&w, frame->object_id, 8);			     /* 16-23 */
	osd_wr_be(&w, frame->offset, 8);			     /* 24-31 */
	osd_wr_be(&w, frame->length, 8);			     /* 32-39 */
	osd_wr_be(&w, frame->old_length, 8);			     /* 40-47 */
	osd_wr_be(&w, frame->created_msec, 8);			     /* 48-55 */
	osd_wr_be(&w, frame->now_msec, 8);			     /* 56-63 */
	osd_wr_be(&w, frame->attributes_length, 4);		     /* 64-67 */
	osd_wr_be(&w, frame->data ? frame->data_length : 0, 4);	     /* 68-71 */
	osd_wr_be(&w, frame->page, 4);				     /* 72-75 */
	osd_wr_zero(&w, 4);					     /* 76-79 */
	osd_wr_bytes(&w, frame->parameters, frame->parameters_length);
	osd_wr_bytes(&w, frame->attributes, frame->attributes_length);
	if (frame->data)
		osd_wr_bytes(&w, frame->data, frame->data_length);
}
