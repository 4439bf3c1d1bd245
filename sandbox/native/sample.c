/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sample.c -- a library that test_library.c loads: imports, own symbols, tables of addresses, variables,
 * constructors. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int osd_function_main(void);
EXPORTED int variable = 3;
extern int missing(void) __attribute__((weak));
int64_t osd_zone(uint32_t part);

static uint8_t zeroed[100000];
static int constructed;

static int add(int value)
{
	return value + 1;
}

static int twice(int value)
{
	return value * 2;
}

static int (*const table[])(int) = {add, twice};
static int *const pointer = &variable;

__attribute__((constructor)) static void construct(void)
{
	constructed++;
}

int osd_function_main(void)
{
	char *text = malloc(16);
	int good = text && !missing && constructed == 1 && zeroed[99999] == 0 && *pointer == 3;

	if (!good)
		return 1;
	memcpy(text, "0x2a", 5);
	good = strtol(text, NULL, 16) == 42 && table[0](1) == 2 && table[1](4) == 8;
	free(text);
	zeroed[99999] = 1;
	return good ? (int)osd_zone(5) : 2;
}
