/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osd_lanes.h -- sixteen bytes at a time, which one instruction of a machine or of WebAssembly handles. */
#ifndef OSD_LANES_H
#define OSD_LANES_H

#include "osd.h"

#define OSD_LANES 16u

typedef uint8_t osd_lanes __attribute__((vector_size(16)));
/* The same at any address. */
typedef uint8_t osd_unaligned __attribute__((vector_size(16), aligned(1), may_alias));

static inline osd_lanes osd_lanes_at(const uint8_t *bytes)
{
	return *(const osd_unaligned *)bytes;
}

/* Sixteen times this byte. */
static inline osd_lanes osd_lanes_of(uint8_t byte)
{
	return (osd_lanes){0} + byte;
}

/* Whether a byte is not zero. */
static inline int osd_lanes_any(osd_lanes lanes)
{
	typedef uint64_t halves __attribute__((vector_size(16)));

	return (((halves)lanes)[0] | ((halves)lanes)[1]) != 0;
}

#endif
