/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_sense.c -- invariant: sense data of any target is refused, or decodes to something that
 * encodes within 252 bytes and then no longer changes. */
#include "fuzz.h"
#include "wire/sense.h"
#include "testing/initiator.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t once[OSD_SENSE_MAX], twice[OSD_SENSE_MAX];
	struct osd_sense sense, again;
	size_t length;

	if (!osd_sense_decode(data, size, &sense))
		return 0;
	length = osd_sense_encode(&sense, once);
	HOLDS(length >= 8 && length <= OSD_SENSE_MAX);
	HOLDS(osd_sense_decode(once, length, &again));
	HOLDS(osd_sense_encode(&again, twice) == length);
	HOLDS(!memcmp(once, twice, length));
	return 0;
}
