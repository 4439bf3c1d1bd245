/* SPDX-License-Identifier: GPL-2.0-or-later */
/* store_page.c -- page B000_0002h of the root: figures of the database and of memory, for monitoring.
 * They count from the start of the target, or are current values.  Nothing here is stored. */
#include <malloc.h>

#include "object/figures_page.h"
#include "object/internal.h"
#include "store/store.h"
#include "wire/osd2.h"

/* In the order of their numbers, from 1. */
enum {
	COMMITS = 1,
	ABORTS,
	DEADLOCKS,
	CHECKPOINTS,
	LOCKERS,
	LOCKS,
	LOCKED,
	TRANSACTIONS,
	HEAP,	 /* bytes of the process's heap that are in use */
	OBJECTS, /* user objects and collections of all partitions */
	CHARGED, /* bytes that count against the capacity */
	FREE,	 /* bytes that may still be charged and that the devices have */
	FIGURES_END
};

static uint64_t heap_bytes(void)
{
	struct mallinfo2 heap = mallinfo2();

	return heap.uordblks + heap.hblkhd;
}

static uint64_t space_figure(struct osd_objects *objects, uint32_t number)
{
	struct osd_space space;

	if (number == OBJECTS)
		return atomic_load(&objects->object_count);
	if (number == CHARGED)
		return atomic_load(&objects->charged_bytes);
	osd_objects_space(objects, &space);
	return space.free_bytes;
}

static uint64_t figure(struct osd_txn *txn, uint32_t number)
{
	struct osd_kv_stats stats;

	if (number > HEAP)
		return space_figure(txn->objects, number);
	if (number == HEAP)
		return heap_bytes();
	osd_kv_stats(txn->objects->kv, &stats);
	return (const uint64_t[]){
		[COMMITS] = stats.commits,	 [ABORTS] = stats.aborts,
		[DEADLOCKS] = stats.deadlocks,	 [CHECKPOINTS] = stats.checkpoints,
		[LOCKERS] = stats.lockers,	 [LOCKS] = stats.locks,
		[LOCKED] = stats.locked_objects, [TRANSACTIONS] = stats.transactions,
	}[number];
}

static struct osd_figures_page figures = {FIGURES_END - 1, figure};

const struct osd_page_provider osd_store_page =
	OSD_FIGURES_PAGE(OSD_PAGE_STORE_ROOT, "iosd store", &figures, FIGURES_END - 1);
