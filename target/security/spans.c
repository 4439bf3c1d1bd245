/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spans.c -- see spans.h.  Spans are in ascending order and do not touch. */
#include "security/spans.h"

#include <string.h>

#include "base/util.h"

static uint64_t gap_before(const struct osd_nonce_spans *spans, size_t i)
{
	return spans->span[i].first - spans->span[i - 1].last;
}

/* Joins span i with the one before it. */
static void join(struct osd_nonce_spans *spans, size_t i)
{
	spans->span[i - 1].last = OSD_MAX(spans->span[i - 1].last, spans->span[i].last);
	spans->count--;
	memmove(&spans->span[i], &spans->span[i + 1], (spans->count - i) * sizeof(spans->span[0]));
}

static void insert(struct osd_nonce_spans *spans, size_t i, uint64_t first, uint64_t last)
{
	memmove(&spans->span[i + 1], &spans->span[i], (spans->count - i) * sizeof(spans->span[0]));
	spans->span[i].first = first;
	spans->span[i].last = last;
	spans->count++;
}

static void join_nearest(struct osd_nonce_spans *spans)
{
	size_t nearest = 1;

	for (size_t i = 2; i < spans->count; i++)
		if (gap_before(spans, i) < gap_before(spans, nearest))
			nearest = i;
	join(spans, nearest);
}

static bool is_near(const struct osd_nonce_spans *spans, size_t i, uint64_t first, uint64_t last)
{
	return first <= spans->span[i].last + OSD_SPANS_NEAR_MS &&
	       spans->span[i].first <= last + OSD_SPANS_NEAR_MS;
}

static void join_touching(struct osd_nonce_spans *spans)
{
	for (size_t i = 1; i < spans->count;) {
		if (spans->span[i].first <= spans->span[i - 1].last + OSD_SPANS_NEAR_MS)
			join(spans, i);
		else
			i++;
	}
}

void osd_spans_add(struct osd_nonce_spans *spans, uint64_t first, uint64_t last)
{
	size_t i = 0;

	while (i < spans->count && !is_near(spans, i, first, last) && spans->span[i].first < first)
		i++;
	if (i < spans->count && is_near(spans, i, first, last)) {
		spans->span[i].first = OSD_MIN(spans->span[i].first, first);
		spans->span[i].last = OSD_MAX(spans->span[i].last, last);
		join_touching(spans);
		return;
	}
	if (spans->count == OSD_NONCE_SPANS) {
		join_nearest(spans);
		osd_spans_add(spans, first, last);
		return;
	}
	insert(spans, i, first, last);
}

bool osd_spans_cover(const struct osd_nonce_spans *spans, uint64_t time)
{
	return osd_spans_after(spans, time) != time;
}

uint64_t osd_spans_after(const struct osd_nonce_spans *spans, uint64_t time)
{
	for (size_t i = 0; i < spans->count; i++)
		if (time >= spans->span[i].first && time <= spans->span[i].last)
			time = spans->span[i].last + 1;
	return time;
}
