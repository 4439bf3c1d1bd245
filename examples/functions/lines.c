/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lines.c -- the lines of a text that contain a text, as the function `lines` that comes with iosd, and faster.
 *
 * Parameters: contains=TEXT, and invert=1 for the other lines.  A line ends with LF, CR or CR LF, and keeps its end.
 * Only lines that contain the text are looked at from end to end. */
#include "osd_lanes.h"
#include "osd_stage.h"

#define STEP 64u

/* The bytes [0, end) of which lines are selected, and those [0, kept) that were. */
struct lines {
	uint8_t *data;
	size_t end, kept;
};

/* A text to find.  Places are looked at where its first byte and the one at `second` are. */
struct wanted {
	const uint8_t *text;
	size_t length, second;
};

static osd_lanes both(const uint8_t *at, const struct wanted *wanted)
{
	return (osd_lanes)(osd_lanes_at(at) == osd_lanes_of(wanted->text[0])) &
	       (osd_lanes)(osd_lanes_at(at + wanted->second) ==
			   osd_lanes_of(wanted->text[wanted->second]));
}

static int is_here(const uint8_t *at, const struct wanted *wanted)
{
	return at[0] == wanted->text[0] && at[wanted->second] == wanted->text[wanted->second] &&
	       memcmp(at, wanted->text, wanted->length) == 0;
}

/* The first place from `at` on where the text is; lines->end: there is none. */
static size_t find(const struct lines *lines, size_t at, const struct wanted *wanted)
{
	const size_t last = lines->end < wanted->length ? 0 : lines->end - wanted->length + 1;
	size_t stop;

	while (at < last) {
		for (; at + STEP <= last; at += STEP) {
			const uint8_t *here = lines->data + at;

			if (osd_lanes_any(both(here, wanted) | both(here + 16, wanted) |
					  both(here + 32, wanted) | both(here + 48, wanted)))
				break;
		}
		stop = at + STEP < last ? at + STEP : last;
		for (; at < stop; at++)
			if (is_here(lines->data + at, wanted))
				return at;
	}
	return lines->end;
}

static osd_lanes ends(const uint8_t *at)
{
	osd_lanes lanes = osd_lanes_at(at);

	return (osd_lanes)(lanes == osd_lanes_of('\n')) | (osd_lanes)(lanes == osd_lanes_of('\r'));
}

/* The end of the line that has this place: behind its last byte. */
static size_t line_end(const struct lines *lines, size_t at)
{
	const uint8_t *data = lines->data;

	while (at + OSD_LANES <= lines->end && !osd_lanes_any(ends(data + at)))
		at += OSD_LANES;
	while (at < lines->end && data[at] != '\n' && data[at] != '\r')
		at++;
	if (at + 1 < lines->end && data[at] == '\r' && data[at + 1] == '\n')
		at++;
	return at < lines->end ? at + 1 : at;
}

static int is_begin(const uint8_t *data, size_t at)
{
	return data[at - 1] == '\n' || (data[at - 1] == '\r' && data[at] != '\n');
}

/* The begin of the line that has this place, which is not before `first`, the begin of a line. */
static size_t line_begin(const struct lines *lines, size_t first, size_t at)
{
	while (at > first && !is_begin(lines->data, at)) {
		at--;
		while (at >= first + OSD_LANES &&
		       !osd_lanes_any(ends(lines->data + at - OSD_LANES)))
			at -= OSD_LANES;
	}
	return at;
}

/* Add the bytes [begin, end) to those that are kept. */
static void keep(struct lines *lines, size_t begin, size_t end)
{
	uint8_t *to = lines->data + lines->kept;
	const uint8_t *from = lines->data + begin;
	size_t left = end - begin;

	lines->kept += left;
	if (to == from)
		return;
	for (; left >= OSD_LANES; left -= OSD_LANES, to += OSD_LANES, from += OSD_LANES)
		*(osd_unaligned *)to = osd_lanes_at(from);
	while (left--)
		*to++ = *from++;
}

static void select_lines(struct lines *lines, const struct wanted *wanted, int others)
{
	size_t done = 0, at = 0;

	while ((at = find(lines, at, wanted)) < lines->end) {
		size_t begin = line_begin(lines, done, at), end = line_end(lines, at);

		if (at + wanted->length > end) { /* it reaches into the next line */
			at++;
			continue;
		}
		if (others)
			keep(lines, done, begin);
		else
			keep(lines, begin, end);
		at = done = end;
	}
	if (others)
		keep(lines, done, lines->end);
}

OSD_FUNCTION(main)
{
	struct osd_stage stage;
	struct wanted wanted;
	struct lines lines;
	const char *inverted;
	size_t length;
	int others;

	if (osd_stage_open(&stage))
		return 1;
	wanted.text = (const uint8_t *)osd_stage_text(&stage, "contains", &wanted.length);
	inverted = osd_stage_text(&stage, "invert", &length);
	if (!wanted.text)
		return osd_stage_fail("the parameter contains=TEXT is missing");
	if (inverted && (length != 1 || (*inverted != '0' && *inverted != '1')))
		return osd_stage_fail("the parameter invert is 0 or 1");
	others = inverted && *inverted == '1';
	lines = (struct lines){stage.data, stage.length, 0};
	if (!wanted.length) /* each line contains nothing */
		return osd_result(OSD_BYTES, lines.data, others ? 0 : (uint32_t)lines.end) < 0;
	for (wanted.second = wanted.length - 1;
	     wanted.second && wanted.text[wanted.second] == wanted.text[0];)
		wanted.second--;
	if (!wanted.second)
		wanted.second = wanted.length - 1;
	select_lines(&lines, &wanted, others);
	return osd_result(OSD_BYTES, lines.data, (uint32_t)lines.kept) < 0;
}
