/* SPDX-License-Identifier: GPL-2.0-or-later */
/* count.c -- counts the lines of the zone.  Access: read.  Result: a number, as JSON. */
#include "osd.h"

#define PIECE (1u << 20)

static uint8_t piece[PIECE];

static uint64_t count(uint32_t length)
{
	uint32_t lines = 0;

	for (uint32_t i = 0; i < length; i++)
		lines += piece[i] == '\n';
	return lines;
}

static uint32_t write_number(uint64_t number, char text[24])
{
	char digits[24];
	uint32_t length = 0;

	do
		digits[length++] = (char)('0' + number % 10);
	while (number /= 10);
	for (uint32_t i = 0; i < length; i++)
		text[i] = digits[length - 1 - i];
	return length;
}

OSD_FUNCTION(main)
{
	uint64_t partition = (uint64_t)osd_zone(OSD_ZONE_PARTITION);
	uint64_t object = (uint64_t)osd_zone(OSD_ZONE_OBJECT), at = 0, lines = 0;
	int64_t got;
	char text[24];

	while ((got = osd_read(partition, object, at, piece, PIECE)) > 0) {
		lines += count((uint32_t)got);
		at += (uint64_t)got;
	}
	if (got < 0)
		return 1;
	return osd_result(OSD_JSON, text, write_number(lines, text)) < 0;
}
