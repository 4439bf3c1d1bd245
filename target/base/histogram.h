/* SPDX-License-Identifier: GPL-2.0-or-later */
/* histogram.h -- how long things took, counted in fixed steps of 1, 2, 5 from 50 us to 60 s.
 *
 * Zeroed is empty.  Any thread adds and reads, without a lock: two relaxed additions, and a search of
 * the steps that is short because most of what is measured is.  A reader may see an addition's count
 * before its sum; each is right a moment later. */
#ifndef OSD_BASE_HISTOGRAM_H
#define OSD_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

/* Upper bounds in microseconds, each included. */
#define OSD_HISTOGRAM_BOUNDS(X)                                                                    \
	X(50)                                                                                      \
	X(100) X(200) X(500) X(1000) X(2000) X(5000) X(10000) X(20000) X(50000) X(100000)          \
		X(200000) X(500000) X(1000000) X(2000000) X(5000000) X(10000000) X(20000000)       \
			X(60000000)

#define X(usec) +1
enum { OSD_HISTOGRAM_STEPS = OSD_HISTOGRAM_BOUNDS(X) };
#undef X

extern const uint32_t osd_histogram_bounds[OSD_HISTOGRAM_STEPS];

struct osd_histogram {
	_Atomic uint64_t counts[OSD_HISTOGRAM_STEPS + 1]; /* the last: longer than all bounds */
	_Atomic uint64_t sum_usec;
};

static inline void osd_histogram_add(struct osd_histogram *histogram, uint64_t usec)
{
	unsigned step = 0;

	while (step < OSD_HISTOGRAM_STEPS && usec > osd_histogram_bounds[step])
		step++;
	atomic_fetch_add_explicit(&histogram->counts[step], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&histogram->sum_usec, usec, memory_order_relaxed);
}

#endif
