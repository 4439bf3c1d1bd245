/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_sandboxd_frame.c -- invariant: a packet between target and iosd-sandboxd is refused, or
 * decodes and encodes to the very same bytes; so do the bodies that have a struct. */
#include "fuzz.h"
#include "wire/sandboxd_frame.h"

static void fuzz_bodies(const uint8_t *body, size_t length)
{
	struct osd_sandbox_limits limits;
	struct osd_sandbox_exit status;
	struct osd_pool_news news;
	uint8_t again[OSD_SANDBOXD_BODY_MAX];

	if (osd_sandbox_limits_decode(body, length, &limits)) {
		HOLDS(osd_sandbox_limits_encode(&limits, again, sizeof(again)) == length);
		HOLDS(!memcmp(body, again, length));
	}
	if (length <= sizeof(again) && osd_pool_news_decode(body, length, &news)) {
		HOLDS(osd_pool_news_encode(&news, again, sizeof(again)) == length);
		HOLDS(!memcmp(body, again, length));
	}
	if (osd_sandbox_exit_decode(body, length, &status)) {
		HOLDS(osd_sandbox_exit_encode(&status, again, sizeof(again)) == length);
		HOLDS(!memcmp(body, again, length));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[OSD_SANDBOXD_HEADER + OSD_SANDBOXD_BODY_MAX];
	struct osd_sandboxd_message message;

	fuzz_bodies(data, size);
	if (!osd_sandboxd_decode(data, size, &message))
		return 0;
	HOLDS(message.body_bytes <= OSD_SANDBOXD_BODY_MAX);
	fuzz_bodies(message.body, message.body_bytes);
	HOLDS(osd_sandboxd_encode(&message, again, sizeof(again)) == size);
	HOLDS(!memcmp(data, again, size));
	return 0;
}
