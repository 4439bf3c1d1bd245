/* SPDX-License-Identifier: GPL-2.0-or-later */
/* echo.c -- returns its arguments, up to 4 KiB of them. */
#include "osd.h"

static uint8_t text[4096];

OSD_FUNCTION(main)
{
	int64_t length = osd_args(text, sizeof(text));

	return length > (int64_t)sizeof(text) || osd_result(OSD_BYTES, text, (uint32_t)length) < 0;
}
