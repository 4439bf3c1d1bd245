/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_control_frame.c -- invariant: a packet of the control socket is refused, or decodes and encodes
 * to the very same bytes; the lines of its text lie within it and, joined again, are what was read. */
#include "fuzz.h"
#include "wire/control_frame.h"

static void fuzz_text(const char *text, size_t length)
{
	struct osd_rd r = osd_rd_init(text, length);
	struct osd_control_pair pair;
	const char *at = text;

	while (osd_control_next(&r, &pair)) {
		HOLDS(pair.key == at && pair.key_bytes && pair.key_bytes <= OSD_CONTROL_KEY_MAX);
		HOLDS(pair.value == pair.key + pair.key_bytes + 1);
		touch((const uint8_t *)pair.value, pair.value_bytes);
		at = pair.value + pair.value_bytes;
		HOLDS(at < text + length && *at == '\n');
		at++;
	}
	HOLDS(r.bad || at == text + length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t again[OSD_CONTROL_MAX];
	struct osd_control_frame frame;

	fuzz_text((const char *)data, size);
	if (osd_control_decode(data, size, &frame) != OSD_CONTROL_FINE)
		return 0;
	fuzz_text(frame.payload, frame.payload_bytes);
	HOLDS(osd_control_encode(&frame, again, sizeof(again)) == size);
	HOLDS(!memcmp(data, again, size));
	return 0;
}
