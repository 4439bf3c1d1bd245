/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz.h -- what the fuzz targets share: the entry point's prototype and a check that stops the
 * fuzzer. */
#ifndef OSD_FUZZ_H
#define OSD_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOLDS(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #condition);    \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* Reads every byte, so that a pointer out of bounds shows. */
static inline void touch(const uint8_t *bytes, size_t length)
{
	static volatile uint8_t sink;

	for (size_t i = 0; i < length; i++)
		sink = (uint8_t)(sink ^ bytes[i]);
}

#endif
