/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spans.h -- a few spans of time that together cover all times added.  Spans near each other are
 * joined; if there is no room for another span, the two nearest are joined. */
#ifndef OSD_SECURITY_SPANS_H
#define OSD_SECURITY_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "object/key_record.h"

/* Spans further apart than this stay separate while there is room.  Such a gap comes from a clock
 * that was set, from a pause, or from a client with a wrong clock. */
#define OSD_SPANS_NEAR_MS UINT64_C(10000)

void osd_spans_add(struct osd_nonce_spans *spans, uint64_t first, uint64_t last);
bool osd_spans_cover(const struct osd_nonce_spans *spans, uint64_t time);
/* The first time, from this one on, that no span covers. */
uint64_t osd_spans_after(const struct osd_nonce_spans *spans, uint64_t time);

#endif
