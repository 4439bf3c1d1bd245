/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums_page.c -- attribute page B000_0004h of the root: checksums and the scrub.  Two of its numbers can be
 * set: 2 starts and stops the scrub, 3 is its rate until the target ends. */

#include "object/internal.h"
#include "wire/cursor.h"
#include "wire/osd2.h"

/* In the order of their numbers, from 1. */
enum {
	KEPT = 1,
	STATE,
	RATE,
	INTERVAL,
	BEGAN,
	ENDED,
	OBJECTS,
	BLOCKS,
	MADE,
	DAMAGED,
	FAILED,
	AT_PARTITION,
	AT_OBJECT,
	DAMAGED_NOW,
	LIST,
	ALL_CHECKED,
	ALL_MADE,
	ALL_DAMAGED,
	ALL_FORGOTTEN,
	PAGE_END
};

#define LIST_ENTRY 24u

static uint64_t figure(const struct osd_objects *objects, const struct osd_sums_stats *stats,
		       uint32_t number)
{
	const uint64_t figures[PAGE_END] = {
		[KEPT] = stats->kept,
		[STATE] = stats->pass.state,
		[RATE] = atomic_load(&objects->sums.rate),
		[INTERVAL] = objects->sums.interval_ms,
		[BEGAN] = stats->pass.began_ms,
		[ENDED] = stats->pass.ended_ms,
		[OBJECTS] = stats->pass.objects,
		[BLOCKS] = stats->pass.blocks,
		[MADE] = stats->pass.made,
		[DAMAGED] = stats->pass.damaged,
		[FAILED] = stats->pass.failed,
		[AT_PARTITION] = stats->pass.partition_id,
		[AT_OBJECT] = stats->pass.object_id,
		[DAMAGED_NOW] = stats->damaged_now,
		[ALL_CHECKED] = stats->checked,
		[ALL_MADE] = stats->made,
		[ALL_DAMAGED] = stats->damaged,
		[ALL_FORGOTTEN] = stats->forgotten,
	};

	return figures[number];
}

/* Partition id, object id and first byte of each damaged block in the list. */
static size_t list_value(struct osd_objects *objects, uint8_t value[OSD_SUMS_LIST * LIST_ENTRY])
{
	struct osd_sums *sums = &objects->sums;
	struct osd_wr w = osd_wr_init(value, (size_t)OSD_SUMS_LIST * LIST_ENTRY);

	osd_lock(&sums->lock);
	for (size_t i = 0; i < sums->count; i++) {
		osd_wr_be(&w, sums->list[i].id.partition_id, 8);
		osd_wr_be(&w, sums->list[i].id.object_id, 8);
		osd_wr_be(&w, sums->list[i].offset, 8);
	}
	osd_unlock(&sums->lock);
	return osd_wr_used(&w);
}

static size_t value_of(struct osd_objects *objects, uint32_t number,
		       uint8_t value[OSD_SUMS_LIST * LIST_ENTRY])
{
	size_t width = number <= STATE ? 1 : 8;
	struct osd_sums_stats stats;

	if (number == LIST)
		return list_value(objects, value);
	osd_sums_stats(objects, &stats);
	osd_put_be(value, figure(objects, &stats, number), width);
	return width;
}

static enum osd_status page_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				size_t *ret_length)
{
	uint8_t value[OSD_SUMS_LIST * LIST_ENTRY];

	(void)context, (void)id, (void)page;
	*ret_length = 0;
	if (number < KEPT || number >= PAGE_END || (number != KEPT && !txn->objects->sums.kept))
		return OSD_OK;
	osd_value_put(value, value_of(txn->objects, number, value), buffer, capacity, ret_length);
	return OSD_OK;
}

/* The setting takes effect with the commit. effect: generation is its number. */
static void run_setting(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	if (!committed)
		return;
	if (effect->generation == RATE)
		atomic_store(&txn->objects->sums.rate, effect->value);
	else
		osd_scrub_tell(txn->objects, effect->value != 0);
}

static enum osd_status page_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, const uint8_t *value, size_t length)
{
	uint64_t wanted = length && length <= 8 ? osd_get_be(value, length) : 0;
	bool is_state = number == STATE && length == 1 && wanted <= 1;
	bool is_rate = number == RATE && length == 8 && wanted >= OSD_SCRUB_RATE_MIN &&
		       wanted <= OSD_SCRUB_RATE_MAX;

	(void)context, (void)id, (void)page;
	if (!txn->objects->sums.kept || !(is_state || is_rate))
		return OSD_E_PARAM_FIELD;
	return osd_txn_add_effect(
		txn,
		(struct osd_effect){.run = run_setting, .generation = number, .value = wanted});
}

const struct osd_page_provider osd_sums_root_page = {
	.page = OSD_PAGE_SUMS_ROOT,
	.page_name = "iosd checksums",
	.get = page_get,
	.last = PAGE_END - 1,
	.set = page_set,
};
