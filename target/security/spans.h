/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spans.h -- a few spans of time that cover all times put in: those that are near each other, or that lie
 * nearest when there is room for no more, become one. */
#ifndef OSD_SECURITY_SPANS_H
#define OSD_SECURITY_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "object/key_record.h"

/* Spans that are further apart are kept apart, as long as there is room: the clock has been set, nobody came
 * for a while, or the clock of one client goes wrong. */
#define OSD_SPANS_NEAR_MS UINT64_C(10000)

void osd_spans_add(struct osd_nonce_spans *spans, uint64_t first, uint64_t last);
bool osd_spans_cover(const struct osd_nonce_spans *spans, uint64_t time);
/* The first time from this on that no span covers. */
uint64_t osd_spans_after(const struct osd_nonce_spans *spans, uint64_t time);

#endif
