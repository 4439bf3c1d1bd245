/* SPDX-License-Identifier: GPL-2.0-or-later */
/* count.c -- counts the lines of the zone.  Access: read.  Result: a number, as JSON. */
#include "osd.h"

#define PIECE (1u << 20)
#define STEP  8u  /* vectors at a time: what lives from step to step may be kept in memory */
#define STEPS 31u /* until a byte of a sum may overflow */

/* Sixteen bytes, which one instruction of a machine or of WebAssembly compares or adds. */
typedef uint8_t vector __attribute__((vector_size(16)));
typedef uint64_t halves __attribute__((vector_size(16)));

static vector piece[PIECE / sizeof(vector)];

static uint64_t add_bytes(uint64_t eight)
{
	const uint64_t even = 0x00ff00ff00ff00ff;

	return ((eight & even) + (eight >> 8 & even)) * 0x0001000100010001 >> 48;
}

/* The sums stay bytes while they can, because a compiler widens bytes slowly.  Equal bytes compare as -1. */
static uint64_t count_steps(const vector *at, uint32_t steps)
{
	const vector lines = {'\n', '\n', '\n', '\n', '\n', '\n', '\n', '\n',
			      '\n', '\n', '\n', '\n', '\n', '\n', '\n', '\n'};
	vector sums = {0};

	for (uint32_t i = 0; i < steps; i++, at += STEP)
		sums -= (vector)(((at[0] == lines) + (at[1] == lines)) +
				 ((at[2] == lines) + (at[3] == lines)) +
				 (((at[4] == lines) + (at[5] == lines)) +
				  ((at[6] == lines) + (at[7] == lines))));
	return add_bytes(((halves)sums)[0]) + add_bytes(((halves)sums)[1]);
}

static uint64_t count(uint32_t length)
{
	const uint32_t step_bytes = STEP * sizeof(vector);
	const uint8_t *bytes = (const uint8_t *)piece;
	uint64_t lines = 0;
	uint32_t at = 0;

	while (length - at >= step_bytes) {
		uint32_t steps = (length - at) / step_bytes;

		steps = steps < STEPS ? steps : STEPS;
		lines += count_steps((const vector *)(bytes + at), steps);
		at += steps * step_bytes;
	}
	for (; at < length; at++)
		lines += bytes[at] == '\n';
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
