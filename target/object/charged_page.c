/* SPDX-License-Identifier: GPL-2.0-or-later */
/* charged_page.c -- page 5000_0002h of a partition: the bytes that its capacity quota limits, and those
 * of jobs that stand apart.  Nothing here is stored. */
#include "object/figures_page.h"
#include "object/internal.h"

/* In the order of their numbers, from 1. */
enum { CHARGED = 1, ATTRIBUTES, JOBS, APART, APART_COUNT, FIGURES_END };

static uint64_t figure(struct osd_txn *txn, uint32_t number)
{
	const struct osd_partition *partition = txn->partition;

	return (const uint64_t[]){
		[CHARGED] = atomic_load(&partition->data.charged_bytes),
		[ATTRIBUTES] = atomic_load(&partition->data.attribute_bytes),
		[JOBS] = atomic_load(&partition->data.record_bytes),
		[APART] = atomic_load(&partition->apart.charged_bytes),
		[APART_COUNT] = atomic_load(&partition->apart.object_count),
	}[number];
}

static struct osd_figures_page figures = {FIGURES_END - 1, figure};

const struct osd_page_provider osd_charged_page =
	OSD_FIGURES_PAGE(OSD_PAGE_CHARGED, "iosd charged bytes", &figures, FIGURES_END - 1);
