/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_golden.h -- for test_*.c only: frames by name from tests/fuzz/golden, whose bytes were
 * typed from the standard's tables and are shared with the tests of the Python codec. */
#ifndef OSD_WIRE_TEST_GOLDEN_H
#define OSD_WIRE_TEST_GOLDEN_H

#include "base/test.h"

#include <stdint.h>

#define GOLDEN_MAX 1024

struct golden {
	uint8_t bytes[GOLDEN_MAX];
	size_t length;
};

static inline void golden_parse(const char *hex, struct golden *frame)
{
	unsigned byte;

	for (frame->length = 0; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
		CHECK(frame->length < GOLDEN_MAX);
		frame->bytes[frame->length++] = (uint8_t)byte;
	}
}

/* OSD_GOLDEN_FILE comes from the build. */
static inline struct golden golden(const char *name)
{
	FILE *file = fopen(OSD_GOLDEN_FILE, "r");
	size_t name_length = strlen(name);
	char line[2 * GOLDEN_MAX + 64];
	struct golden frame = {.length = 0};

	CHECK(file);
	while (!frame.length && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, name_length) && line[name_length] == ' ')
			golden_parse(line + name_length + 1, &frame);
	fclose(file);
	if (!frame.length)
		fprintf(stderr, "no golden frame %s\n", name);
	CHECK(frame.length);
	return frame;
}

#endif
