/* SPDX-License-Identifier: GPL-2.0-or-later */
/* histogram.c -- see histogram.h. */
#include "base/histogram.h"

const uint32_t osd_histogram_bounds[OSD_HISTOGRAM_STEPS] = {
#define X(usec) usec,
	OSD_HISTOGRAM_BOUNDS(X)
#undef X
};
