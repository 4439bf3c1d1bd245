/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osd_stage.h -- the arguments of a function that data pass through (docs/views.md). */
#ifndef OSD_STAGE_H
#define OSD_STAGE_H

#include "osd.h"

#define OSD_STAGE_FRAME	    24u
#define OSD_STAGE_NO_MEMORY "the function has not enough memory"
#define OSD_STAGE_OTHERWISE "the function was called otherwise than with the data of an object"

struct osd_stage {
	const char *parameters; /* text of the user who attached the function; no zero byte at its end */
	size_t parameters_length;
	uint8_t *data; /* the function's own copy; NULL: it reads parts */
	size_t length;
	uint64_t offset; /* of the data in the object, or in the output of the stage before */
	size_t begin;	 /* of the data in the arguments */
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

/* Takes in what the first bytes of the arguments say; length: of all of them. */
static inline int osd_stage_take(struct osd_stage *stage, const uint8_t *frame, int64_t length)
{
	stage->parameters_length = (size_t)osd_stage_number(frame + 2, 2);
	stage->begin =
		OSD_STAGE_FRAME + stage->parameters_length + (size_t)osd_stage_number(frame + 4, 4);
	if (osd_stage_number(frame, 2) != 1 || stage->begin > (uint64_t)length)
		return osd_stage_fail(OSD_STAGE_OTHERWISE);
	stage->length = (size_t)length - stage->begin;
	stage->offset = osd_stage_number(frame + 8, 8);
	return 0;
}

/* 0, or a failure: there is no memory, or the function was called otherwise. */
static inline int osd_stage_open(struct osd_stage *stage)
{
	int64_t length = osd_args(NULL, 0);
	uint8_t *args;

	if (length < (int64_t)OSD_STAGE_FRAME)
		return osd_stage_fail(OSD_STAGE_OTHERWISE);
	args = (uint8_t *)osd_allocate((size_t)length);
	if (!args)
		return osd_stage_fail(OSD_STAGE_NO_MEMORY);
	if (osd_args(args, (uint32_t)length) != length)
		return osd_stage_fail(OSD_STAGE_OTHERWISE);
	if (osd_stage_take(stage, args, length))
		return 1;
	stage->parameters = (const char *)args + OSD_STAGE_FRAME;
	stage->data = args + stage->begin;
	return 0;
}

/* The same for a function that takes the data in parts, by osd_stage_read(): stage->data is NULL.  With long data, this
 * takes less memory and less time. */
static inline int osd_stage_open_parts(struct osd_stage *stage)
{
	uint8_t frame[OSD_STAGE_FRAME];
	int64_t length = osd_args_from(0, frame, sizeof(frame));
	char *parameters;

	if (length < (int64_t)OSD_STAGE_FRAME)
		return osd_stage_fail(OSD_STAGE_OTHERWISE);
	if (osd_stage_take(stage, frame, length))
		return 1;
	parameters = (char *)osd_allocate(stage->parameters_length);
	if (!parameters)
		return osd_stage_fail(OSD_STAGE_NO_MEMORY);
	osd_args_from(OSD_STAGE_FRAME, parameters, (uint32_t)stage->parameters_length);
	stage->parameters = parameters;
	stage->data = NULL;
	return 0;
}

/* Copies the data from an offset on.  The number of bytes: fewer than `room` at their end. */
static inline size_t osd_stage_read(const struct osd_stage *stage, size_t offset, uint8_t *to,
				    size_t room)
{
	size_t length = offset < stage->length ? stage->length - offset : 0;

	length = length < room ? length : room;
	osd_args_from((uint32_t)(stage->begin + offset), to, (uint32_t)length);
	return length;
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
