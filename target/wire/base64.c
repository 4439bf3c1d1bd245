/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base64.c -- see base64.h. */
#include "wire/base64.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* -1: the alphabet does not have it. */
static int digit_of(uint8_t character)
{
	const char *at = character ? strchr(alphabet, character) : NULL;

	return at ? (int)(at - alphabet) : -1;
}

bool osd_base64_decode(const uint8_t *text, size_t length, uint8_t *bytes, size_t capacity,
		       size_t *ret_length)
{
	uint32_t bits = 0;
	unsigned count = 0;
	size_t used = 0, padding = 0;

	if (length % 4)
		return false;
	while (padding < 2 && length > 0 && text[length - 1] == '=') {
		length--;
		padding++;
	}
	for (size_t i = 0; i < length; i++) {
		int digit = digit_of(text[i]);

		if (digit < 0)
			return false;
		bits = bits << 6 | (uint32_t)digit;
		count += 6;
		if (count < 8)
			continue;
		count -= 8;
		if (used == capacity)
			return false;
		bytes[used++] = (uint8_t)(bits >> count);
	}
	if (bits & ((1u << count) - 1))
		return false;
	*ret_length = used;
	return true;
}

void osd_base64_encode(const uint8_t *bytes, size_t length, char *text)
{
	uint32_t bits = 0;
	unsigned count = 0;

	for (size_t i = 0; i < length; i++) {
		bits = bits << 8 | bytes[i];
		for (count += 8; count >= 6; count -= 6)
			*text++ = alphabet[bits >> (count - 6) & 63];
	}
	if (count)
		*text++ = alphabet[bits << (6 - count) & 63];
	*text = '\0';
}
