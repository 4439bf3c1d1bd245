/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osd.c -- the part of osd.h that is no import of a module: memory, and what compilers call. */
#include "osd.h"

#define PAGE  65536u
#define ALIGN 16u

extern unsigned char __heap_base; /* set by the linker */

static uintptr_t next_free, last, used; /* memory behind `used` is still zero, as each call finds it */

void *osd_allocate(size_t size)
{
	uintptr_t begin = next_free ? next_free : ((uintptr_t)&__heap_base + ALIGN - 1) / ALIGN * ALIGN;
	uint64_t end = ((uint64_t)begin + size + ALIGN - 1) / ALIGN * ALIGN;
	uint64_t pages = __builtin_wasm_memory_size(0), wanted = (end + PAGE - 1) / PAGE;

	if (wanted > PAGE || (wanted > pages && __builtin_wasm_memory_grow(0, wanted - pages) == (size_t)-1))
		return NULL;
	if (used > begin)
		memset((void *)begin, 0, (used < end ? used : end) - begin);
	next_free = (uintptr_t)end;
	used = next_free > used ? next_free : used;
	last = begin;
	return (void *)begin;
}

void osd_free(void *memory)
{
	if (memory && (uintptr_t)memory == last)
		next_free = last;
}

void *memcpy(void *to, const void *from, size_t length)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	while (length--)
		*t++ = *f++;
	return to;
}

void *memmove(void *to, const void *from, size_t length)
{
	unsigned char *t = to;
	const unsigned char *f = from;

	if (t <= f)
		return memcpy(to, from, length);
	while (length--)
		t[length] = f[length];
	return to;
}

void *memset(void *to, int byte, size_t length)
{
	unsigned char *t = to;

	while (length--)
		*t++ = (unsigned char)byte;
	return to;
}

int memcmp(const void *a, const void *b, size_t length)
{
	const unsigned char *x = a, *y = b;

	for (; length; length--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

size_t strlen(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}
