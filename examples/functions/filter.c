/* SPDX-License-Identifier: GPL-2.0-or-later */
/* filter.c -- figure 2 of Oasis: of the lines of the zone, each a number, returns those below 100, or below
 * the number in the arguments.  Empty lines are left out.  Access: read. */
#include "osd.h"

#define LIMIT 100

/* The number that a line begins with, as atoi reads it; it stays within 32 bits. */
static int32_t number(const uint8_t *text, uint32_t length)
{
	int64_t value = 0;
	uint32_t i = 0;
	int minus;

	while (i < length && (text[i] == ' ' || text[i] == '\t'))
		i++;
	minus = i < length && text[i] == '-';
	i += minus || (i < length && text[i] == '+');
	for (; i < length && text[i] >= '0' && text[i] <= '9'; i++)
		if (value < INT32_MAX)
			value = value * 10 + (text[i] - '0');
	if (value > INT32_MAX)
		value = INT32_MAX;
	return (int32_t)(minus ? -value : value);
}

static int32_t limit(void)
{
	uint8_t text[24];
	int64_t length = osd_args(text, sizeof(text));

	return length > 0 && length <= (int64_t)sizeof(text) ? number(text, (uint32_t)length) : LIMIT;
}

OSD_FUNCTION(main)
{
	uint64_t partition = (uint64_t)osd_zone(OSD_ZONE_PARTITION);
	uint64_t object = (uint64_t)osd_zone(OSD_ZONE_OBJECT);
	int64_t size = osd_length(partition, object);
	int32_t below = limit();
	uint32_t begin = 0, kept = 0;
	uint8_t *text;

	if (size < 0 || size > UINT32_MAX)
		return 1;
	text = osd_allocate((size_t)size);
	if (!text || osd_read(partition, object, 0, text, (uint32_t)size) != size)
		return 1;
	for (uint32_t i = 0; i < size; i++) {
		uint32_t length;

		if (text[i] != '\n' && i + 1 < size)
			continue;
		length = i + 1 - begin;
		if (!(length == 1 && text[i] == '\n') && number(text + begin, length) < below) {
			memmove(text + kept, text + begin, length);
			kept += length;
		}
		begin = i + 1;
	}
	return osd_result(OSD_BYTES, text, kept) < 0;
}
