/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fn_local.c -- a function of examples/functions that data pass through, as a library of this machine for one thread:
 * what the function calls, and what its caller calls around it. */
#include <stdio.h>
#include <stdlib.h>

#include "osd_stage.h"

#define FUNCTION_CALLS_MOST 64

OSD_EXPORT(fn_input)
void fn_input(const char *parameters, size_t parameters_length, const uint8_t *data, size_t length);
OSD_EXPORT(fn_output) const uint8_t *fn_output(size_t *ret_length);

static struct osd_stage input;
static uint8_t *output;
static size_t output_bytes, output_room;
static void *allocated[FUNCTION_CALLS_MOST];
static int allocations;

/* Where arguments go. */
struct place {
	size_t skip; /* bytes in front of those wanted */
	uint8_t *to;
	size_t room;
};

/* The input of the next call, which the caller keeps until then: a whole object. */
void fn_input(const char *parameters, size_t parameters_length, const uint8_t *data, size_t length)
{
	input = (struct osd_stage){parameters, parameters_length, (uint8_t *)data, length, 0, 0};
	while (allocations)
		free(allocated[--allocations]);
	output_bytes = 0;
}

/* The result of the last call, until the next fn_input(). */
const uint8_t *fn_output(size_t *ret_length)
{
	*ret_length = output_bytes;
	return output;
}

/* The next bytes of the arguments. */
static void put(struct place *place, const void *bytes, size_t length)
{
	size_t skipped = place->skip < length ? place->skip : length;
	size_t count = length - skipped < place->room ? length - skipped : place->room;

	memcpy(place->to, (const uint8_t *)bytes + skipped, count);
	place->skip -= skipped;
	place->to += count;
	place->room -= count;
}

int64_t osd_args_from(uint32_t offset, void *to, uint32_t room)
{
	const size_t length = OSD_STAGE_FRAME + input.parameters_length + input.length;
	const uint8_t frame[OSD_STAGE_FRAME] = {0, 1, (uint8_t)(input.parameters_length >> 8),
						(uint8_t)input.parameters_length};
	struct place place = {offset, to, room};

	put(&place, frame, sizeof(frame));
	put(&place, input.parameters, input.parameters_length);
	put(&place, input.data, input.length);
	return (int64_t)(length - (offset < length ? offset : length));
}

int64_t osd_args(void *to, uint32_t room)
{
	return osd_args_from(0, to, room);
}

void *osd_allocate(size_t size)
{
	if (allocations == FUNCTION_CALLS_MOST)
		return NULL;
	return allocated[allocations++] = calloc(1, size);
}

void osd_free(void *memory)
{
	(void)memory; /* with the next input */
}

int64_t osd_result(enum osd_encoding encoding, const void *from, uint32_t length)
{
	(void)encoding;
	if (output_bytes + length > output_room) {
		size_t room = 2 * (output_bytes + length);
		uint8_t *larger = realloc(output, room);

		if (!larger)
			return OSD_NO_SPACE;
		output = larger;
		output_room = room;
	}
	memcpy(output + output_bytes, from, length);
	output_bytes += length;
	return 0;
}

int64_t osd_log(enum osd_stream stream, const void *from, uint32_t length)
{
	return fwrite(from, 1, length, stream == OSD_OUTPUT ? stdout : stderr) == length
		       ? 0
		       : OSD_STORAGE;
}
