/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text.c -- is this text fit to be shown and logged? */
#include "wire/text.h"

/* Continuation bytes a first byte asks for; 4: it is none. */
static unsigned continuation_count(uint8_t first)
{
	if (first < 0x80)
		return 0;
	if (first >= 0xc2 && first <= 0xdf)
		return 1;
	if ((first & 0xf0) == 0xe0)
		return 2;
	if (first >= 0xf0 && first <= 0xf4)
		return 3;
	return 4;
}

static bool allowed(uint32_t point, unsigned continuations)
{
	static const uint32_t least[] = {0x20, 0xa0, 0x800, 0x10000};

	return point >= least[continuations] && point != 0x7f && point <= 0x10ffff &&
	       (point < 0xd800 || point > 0xdfff);
}

bool osd_text_is_clean(const uint8_t *bytes, size_t length)
{
	static const uint8_t first_mask[] = {0x7f, 0x1f, 0x0f, 0x07};
	size_t i = 0;

	while (i < length) {
		unsigned continuations = continuation_count(bytes[i]);
		uint32_t point;

		if (continuations > 3 || continuations >= length - i)
			return false;
		point = bytes[i++] & first_mask[continuations];
		for (unsigned n = 0; n < continuations; n++, i++) {
			if ((bytes[i] & 0xc0) != 0x80)
				return false;
			point = point << 6 | (bytes[i] & 0x3f);
		}
		if (!allowed(point, continuations))
			return false;
	}
	return true;
}
