/* SPDX-License-Identifier: GPL-2.0-or-later */
/* store_page.c -- page B000_0002h of the root: figures of the database and of memory, for those who watch
 * a target over time.  Counted since the target started, or as they are now; nothing here is stored. */
#include <malloc.h>
#include <string.h>

#include "base/util.h"
#include "object/internal.h"
#include "store/store.h"
#include "wire/cursor.h"
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
	HEAP, /* bytes of the process's heap that are in use */
	FIGURES_END
};

static uint64_t heap_bytes(void)
{
	struct mallinfo2 heap = mallinfo2();

	return heap.uordblks + heap.hblkhd;
}

static uint64_t figure(const struct osd_kv_stats *stats, uint32_t number)
{
	switch (number) {
	case COMMITS:
		return stats->commits;
	case ABORTS:
		return stats->aborts;
	case DEADLOCKS:
		return stats->deadlocks;
	case CHECKPOINTS:
		return stats->checkpoints;
	case LOCKERS:
		return stats->lockers;
	case LOCKS:
		return stats->locks;
	case LOCKED:
		return stats->locked_objects;
	case HEAP:
		return heap_bytes();
	default:
		return stats->transactions;
	}
}

static enum osd_status page_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				size_t *ret_length)
{
	struct osd_kv_stats stats;
	uint8_t value[8];

	(void)context, (void)id, (void)page;
	*ret_length = 0;
	if (number < COMMITS || number >= FIGURES_END)
		return OSD_OK;
	osd_kv_stats(txn->objects->kv, &stats);
	osd_put_be(value, figure(&stats, number), sizeof(value));
	*ret_length = sizeof(value);
	memcpy(buffer, value, OSD_MIN(capacity, sizeof(value)));
	return OSD_OK;
}

static enum osd_status page_each(void *context, struct osd_txn *txn, struct osd_object_id id,
				 uint32_t page, osd_attr_fn *fn, void *arg)
{
	enum osd_status status = OSD_OK;

	for (uint32_t number = COMMITS; number < FIGURES_END && status == OSD_OK; number++) {
		uint8_t value[8];
		size_t length;

		status = page_get(context, txn, id, page, number, value, sizeof(value), &length);
		if (status == OSD_OK)
			status = fn(arg, page, number, value, length);
	}
	return status;
}

static enum osd_status page_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, const uint8_t *value, size_t length)
{
	(void)context, (void)txn, (void)id, (void)page, (void)number, (void)value, (void)length;
	return OSD_E_PARAM_FIELD;
}

const struct osd_page_provider osd_store_page = {
	.page = OSD_PAGE_STORE_ROOT,
	.page_name = "iosd store",
	.get = page_get,
	.each = page_each,
	.set = page_set,
};
