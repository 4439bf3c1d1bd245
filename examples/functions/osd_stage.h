/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osd_stage.h -- the arguments of a function that data pass through (docs/views.md). */
#ifndef OSD_STAGE_H
#define OSD_STAGE_H

#include "osd.h"

#define OSD_STAGE_FRAME 24u

struct osd_stage {
	const char *parameters; /* text of the user who attached the function; no zero byte at its end */
	size_t parameters_length;
	uint8_t *data; /* the function's own copy */
	size_t length;
	uint64_t offset; /* of the data in the object, or in the output of the stage before */
};

static inline uint64_t osd_stage_number(const uint8_t *bytes, int length)
{
	uint64_t value = 0;

	for (int i = 0; i < length; i++)
		value = value << 8 | bytes[i];
	return value;
}

/* 0, or a failure: there is no memory, or the function was called otherwise. */
static inline int osd_stage_open(struct osd_stage *stage)
{
	int64_t length = osd_args(NULL, 0);
	uint8_t *args = length < (int64_t)OSD_STAGE_FRAME ? NULL : (uint8_t *)osd_allocate((size_t)length);
	uint64_t parameters, header;

	if (!args || osd_args(args, (uint32_t)length) != length || osd_stage_number(args, 2) != 1)
		return 1;
	parameters = osd_stage_number(args + 2, 2);
	header = osd_stage_number(args + 4, 4);
	if (OSD_STAGE_FRAME + parameters + header > (uint64_t)length)
		return 1;
	stage->parameters = (const char *)args + OSD_STAGE_FRAME;
	stage->parameters_length = (size_t)parameters;
	stage->data = args + OSD_STAGE_FRAME + parameters + header;
	stage->length = (size_t)((uint64_t)length - OSD_STAGE_FRAME - parameters - header);
	stage->offset = osd_stage_number(args + 8, 8);
	return 0;
}

/* 1.  The text, a line without its end, goes to the errors of the call. */
static inline int osd_stage_fail(const char *text)
{
	osd_log(OSD_ERRORS, text, (uint32_t)strlen(text));
	osd_log(OSD_ERRORS, "\n", 1);
	return 1;
}

/* The text in parameters like "contains=error&invert=1"; the last one counts.  NULL: there is none of this name. */
static inline const char *osd_stage_text(const struct osd_stage *stage, const char *name,
					 size_t *ret_length)
{
	const char *text = stage->parameters, *end = text + stage->parameters_length, *found = NULL;
	size_t length = strlen(name);

	*ret_length = 0;
	for (const char *next; text < end; text = next + 1) {
		for (next = text; next < end && *next != '&'; next++)
			;
		if ((size_t)(next - text) < length || memcmp(text, name, length) != 0 ||
		    (text + length < next && text[length] != '='))
			continue;
		found = text + length < next ? text + length + 1 : next;
		*ret_length = (size_t)(next - found);
	}
	return found;
}

/* The number in parameters like "size=64&quality=3"; otherwise if there is none of this name. */
static inline uint32_t osd_stage_option(const struct osd_stage *stage, const char *name,
					uint32_t otherwise)
{
	const char *text = stage->parameters;
	size_t length = strlen(name), left = stage->parameters_length;
	uint64_t value = 0;

	for (size_t at = 0; at + length < left; at++) {
		if ((at && text[at - 1] != '&') || memcmp(text + at, name, length) != 0 ||
		    text[at + length] != '=')
			continue;
		for (at += length + 1; at < left && text[at] >= '0' && text[at] <= '9'; at++)
			value = value < UINT32_MAX ? value * 10 + (uint64_t)(text[at] - '0') : value;
		return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
	}
	return otherwise;
}

#endif
