/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text.h -- text that comes over the wire. */
#ifndef OSD_WIRE_TEXT_H
#define OSD_WIRE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Well-formed UTF-8 (no overlong forms, no surrogates) without control characters (C0, DEL, C1). */
bool osd_text_is_clean(const uint8_t *bytes, size_t length);

#endif
