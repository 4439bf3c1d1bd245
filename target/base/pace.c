/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pace.c -- see pace.h. */
#include "base/pace.h"

#include "base/util.h"

#define NSEC_PER_SEC  1e9
#define NSEC_PER_USEC UINT64_C(1000)
#define COST_MOST     (UINT64_C(86400) * 1000000000) /* a day: longer delays count as this */

/* At least one, so that small pieces are not free. */
static uint64_t cost_of(uint64_t bytes, uint64_t rate)
{
	double nsec = (double)bytes * NSEC_PER_SEC / (double)rate;

	return nsec >= (double)COST_MOST ? COST_MOST : (uint64_t)nsec + 1;
}

uint64_t osd_pace_take(struct osd_pace *pace, uint64_t bytes, uint64_t now_usec)
{
	uint64_t rate = atomic_load_explicit(&pace->rate, memory_order_relaxed);
	uint64_t now = now_usec * NSEC_PER_USEC, due, next;

	if (!rate || !bytes)
		return 0;
	atomic_fetch_add_explicit(&pace->bytes, bytes, memory_order_relaxed);
	due = atomic_load(&pace->due_nsec);
	do {
		uint64_t least = now - OSD_MIN(now, OSD_PACE_BURST_NSEC);

		next = OSD_MIN(OSD_MAX(due, least) + cost_of(bytes, rate), now + COST_MOST);
	} while (!atomic_compare_exchange_weak(&pace->due_nsec, &due, next));
	return next <= now ? 0 : (next + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
}
