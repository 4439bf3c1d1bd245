/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mpeg.c -- a video stream of MPEG-1 or MPEG-2 at less quality, as the MPEG filter of the MVSS paper: some kinds of
 * pictures are left out.
 *
 * Parameters: pictures=I, or pictures=IP; default: I.  A player goes from one picture that is left to the next. */
#include "osd_lanes.h"
#include "osd_stage.h"

#define STEP	  64u
#define CODE	  3u /* bytes 0, 0, 1 in front of the byte that says what begins */
#define PICTURE	  0x00u
#define SLICE_MAX 0xafu
#define USER	  0xb2u
#define EXTENSION 0xb5u

enum { KIND_I = 1, KIND_P = 2 };

static osd_lanes zeroes(const uint8_t *at)
{
	return (osd_lanes)(osd_lanes_at(at) == (osd_lanes){0}) &
	       (osd_lanes)(osd_lanes_at(at + 1) == (osd_lanes){0}) &
	       (osd_lanes)(osd_lanes_at(at + 2) == osd_lanes_of(1));
}

/* The first start code from `at` on, whose byte is there; `end`: there is none. */
static size_t find_code(const uint8_t *data, size_t at, size_t end)
{
	const size_t last = end < CODE ? 0 : end - CODE;

	while (at < last) {
		size_t stop;

		for (; at + STEP <= last; at += STEP)
			if (osd_lanes_any(zeroes(data + at) | zeroes(data + at + 16) |
					  zeroes(data + at + 32) | zeroes(data + at + 48)))
				break;
		stop = at + STEP < last ? at + STEP : last;
		for (; at < stop; at++)
			if (!data[at] && !data[at + 1] && data[at + 2] == 1)
				return at;
	}
	return end;
}

/* Whether the picture with this start code is left out. */
static int is_unwanted(const uint8_t *data, size_t at, size_t end, uint32_t kinds)
{
	uint32_t kind = at + CODE + 2 < end ? data[at + CODE + 2] >> 3 & 7 : 0;

	return kind >= 1 && kind <= 4 && !(kinds >> kind & 1);
}

/* Keeps what belongs to no unwanted picture: also the sequence headers and the groups between them.  Returns the
 * number of bytes that are left. */
static size_t reduce(uint8_t *data, size_t end, uint32_t kinds)
{
	size_t kept = 0, begin = 0, at = 0; /* the bytes from begin on are kept, unless skipping */
	int skipping = 0;

	while ((at = find_code(data, at, end)) < end) {
		uint8_t code = data[at + CODE];
		int part =
			code != PICTURE && (code <= SLICE_MAX || code == USER || code == EXTENSION);
		int unwanted =
			part ? skipping : code == PICTURE && is_unwanted(data, at, end, kinds);

		if (unwanted && !skipping) {
			memmove(data + kept, data + begin, at - begin);
			kept += at - begin;
		} else if (!unwanted && skipping) {
			begin = at;
		}
		skipping = unwanted;
		at += CODE;
	}
	if (!skipping) {
		memmove(data + kept, data + begin, end - begin);
		kept += end - begin;
	}
	return kept;
}

OSD_FUNCTION(main)
{
	struct osd_stage stage;
	size_t length;
	const char *text;
	uint32_t kinds = 1u << KIND_I;

	if (osd_stage_open(&stage))
		return 1;
	text = osd_stage_text(&stage, "pictures", &length);
	if (text && length == 2 && memcmp(text, "IP", 2) == 0)
		kinds |= 1u << KIND_P;
	else if (text && (length != 1 || *text != 'I'))
		return osd_stage_fail("the parameter is pictures=I or pictures=IP");
	return osd_result(OSD_BYTES, stage.data,
			  (uint32_t)reduce(stage.data, stage.length, kinds)) < 0;
}
