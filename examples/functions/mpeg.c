/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mpeg.c -- a video stream of MPEG-1 or MPEG-2 at less quality, as the MPEG filter of the MVSS paper: some kinds of
 * pictures are left out.
 *
 * Parameters: pictures=I, or pictures=IP; default: I.  A player goes from one picture that is left to the next. */
#include "osd_lanes.h"
#include "osd_stage.h"

#define STEP	  64u
#define PART	  (256u << 10) /* of the data, which the cache of a processor holds */
#define CODE	  3u /* bytes 0, 0, 1 in front of the byte that says what begins */
#define LOOK	  (CODE + 2) /* bytes in front of the one that says what kind of picture begins */
#define PICTURE	  0x00u
#define SLICE_MAX 0xafu
#define USER	  0xb2u
#define EXTENSION 0xb5u

enum { KIND_I = 1, KIND_P = 2 };

struct stream {
	uint32_t kinds; /* of pictures that are kept, a bit each */
	int skips;	/* what follows belongs to a picture that is left out */
};

static osd_lanes zeroes(const uint8_t *at)
{
	return (osd_lanes)(osd_lanes_at(at) == (osd_lanes){0}) &
	       (osd_lanes)(osd_lanes_at(at + 1) == (osd_lanes){0}) &
	       (osd_lanes)(osd_lanes_at(at + 2) == osd_lanes_of(1));
}

/* Most bytes are not zero, so this is looked at first. */
static int has_zero(const uint8_t *at)
{
	const osd_lanes zero = {0};

	return osd_lanes_any((osd_lanes)(osd_lanes_at(at) == zero) |
			     (osd_lanes)(osd_lanes_at(at + 16) == zero) |
			     (osd_lanes)(osd_lanes_at(at + 32) == zero) |
			     (osd_lanes)(osd_lanes_at(at + 48) == zero));
}

/* The first start code from `at` on, whose byte is there; `end`: there is none. */
static size_t find_code(const uint8_t *data, size_t at, size_t end)
{
	const size_t last = end < CODE ? 0 : end - CODE;

	while (at < last) {
		size_t stop;

		for (; at + STEP <= last; at += STEP)
			if (has_zero(data + at) &&
			    osd_lanes_any(zeroes(data + at) | zeroes(data + at + 16) |
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
	uint32_t kind = at + LOOK < end ? data[at + LOOK] >> 3 & 7 : 0;

	return kind >= 1 && kind <= 4 && !(kinds >> kind & 1);
}

static int keep(const struct stream *stream, const uint8_t *data, size_t begin, size_t end)
{
	if (stream->skips || begin == end)
		return 0;
	return osd_result(OSD_BYTES, data + begin, (uint32_t)(end - begin)) < 0;
}

/* Keeps of the bytes before `done` those that belong to no unwanted picture: also the sequence headers and the groups
 * between them.  The bytes up to `end` say what begins before `done`. */
static int reduce(struct stream *stream, const uint8_t *data, size_t done, size_t end)
{
	size_t begin = 0, at = 0, last = done + CODE < end ? done + CODE : end;

	while ((at = find_code(data, at, last)) < last) {
		uint8_t code = data[at + CODE];
		int part =
			code != PICTURE && (code <= SLICE_MAX || code == USER || code == EXTENSION);
		int unwanted = part ? stream->skips
				    : code == PICTURE && is_unwanted(data, at, end, stream->kinds);

		if (unwanted && keep(stream, data, begin, at))
			return 1;
		if (unwanted || stream->skips)
			begin = at;
		stream->skips = unwanted;
		at += CODE;
	}
	return keep(stream, data, begin, done);
}

static int reduce_all(struct stream *stream, const struct osd_stage *stage)
{
	static uint8_t part[PART];
	size_t offset = 0;

	while (offset < stage->length) {
		size_t got = osd_stage_read(stage, offset, part, sizeof(part));
		size_t done = offset + got < stage->length ? got - LOOK : got;

		if (reduce(stream, part, done, got))
			return 1;
		offset += done;
	}
	return 0;
}

OSD_FUNCTION(main)
{
	struct osd_stage stage;
	struct stream stream = {1u << KIND_I, 0};
	size_t length;
	const char *text;

	if (osd_stage_open_parts(&stage))
		return 1;
	text = osd_stage_text(&stage, "pictures", &length);
	if (text && length == 2 && memcmp(text, "IP", 2) == 0)
		stream.kinds |= 1u << KIND_P;
	else if (text && (length != 1 || *text != 'I'))
		return osd_stage_fail("the parameter is pictures=I or pictures=IP");
	return reduce_all(&stream, &stage);
}
