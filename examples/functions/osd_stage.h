/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osd_stage.h -- the arguments of a function that data pass through (docs/views.md). */
#ifndef OSD_STAGE_H
#define OSD_STAGE_H

#include "osd.h"

#define OSD_STAGE_FRAME	    24u
#define OSD_STAGE_NO_MEMORY "the function has not enough memory"

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

/* 1.  The text, a line without its end, goes to the errors of the call. */
static inline int osd_stage_fail(const char *text)
{
	osd_log(OSD_ERRORS, text, (uint32_t)strlen(text));
	osd_log(OSD_ERRORS, "\n", 1);
	return 1;
}

/* 0, or a failure: there is no memory, or the function was called otherwise. */
static inline int osd_stage_open(struct osd_stage *stage)
{
	static const char otherwise[] =
		"the function was called otherwise than with the data of an object";
	int64_t length = osd_args(NULL, 0);
	uint64_t parameters, header;
	uint8_t *args;

	if (length < (int64_t)OSD_STAGE_FRAME)
		return osd_stage_fail(otherwise);
	args = (uint8_t *)osd_allocate((size_t)length);
	if (!args)
		return osd_stage_fail(OSD_STAGE_NO_MEMORY);
	if (osd_args(args, (uint32_t)length) != length || osd_stage_number(args, 2) != 1)
		return osd_stage_fail(otherwise);
	parameters = osd_stage_number(args + 2, 2);
	header = osd_stage_number(args + 4, 4);
	if (OSD_STAGE_FRAME + parameters + header > (uint64_t)length)
		return osd_stage_fail(otherwise);
	stage->parameters = (const char *)args + OSD_STAGE_FRAME;
	stage->parameters_length = (size_t)parameters;
	stage->data = args + OSD_STAGE_FRAME + parameters + header;
	stage->length = (size_t)((uint64_t)length - OSD_STAGE_FRAME - parameters - header);
	stage->offset = osd_stage_number(args + 8, 8);
	return 0;
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

/* The number in parameters like "size=64", of a function that has no other parameter; without any, *value stays.  0,
 * or a failure: there is another parameter, or no number from least to most. */
static inline int osd_stage_number_of(const struct osd_stage *stage, const char *name, uint32_t least,
				      uint32_t most, uint32_t *value)
{
	const char *text = stage->parameters, *end = text + stage->parameters_length;
	size_t length = strlen(name);
	uint64_t found = 0;

	if (text == end)
		return 0;
	if ((size_t)(end - text) < length + 2 || memcmp(text, name, length) != 0 || text[length] != '=')
		return 1;
	for (text += length + 1; text < end; text++) {
		if (*text < '0' || *text > '9' || found > most)
			return 1;
		found = found * 10 + (uint64_t)(*text - '0');
	}
	if (found < least || found > most)
		return 1;
	*value = (uint32_t)found;
	return 0;
}

#endif
