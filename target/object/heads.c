/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heads.c -- decides on which device the first bytes of an object go, and counts the bytes
 * of heads on each device.
 *
 * A head goes to the SSD, unless the SSD is above its high-water mark or being drained, or the policy
 * says otherwise.  The object's record has the device.  The decision is part of the transaction that
 * gives the object its first byte; until then the head size may change.  An object without a head (head
 * size 0) has one file, on the HDD.
 *
 * Not here: moves of heads (head_move.c, mover.c). */
#include "object/internal.h"

#include "base/util.h"

#define HIGH_PERCENT 95
#define LOW_PERCENT  90
#define MOVE_RATE    (UINT64_C(64) << 20)

void osd_heads_init(struct osd_objects *objects, const struct osd_heads_config *config)
{
	static const struct osd_heads_config usual = {.head_bytes = OSD_HEAD_AS_FORMATTED};
	struct osd_heads *heads = &objects->heads;

	if (!config)
		config = &usual;
	heads->head_bytes = config->head_bytes;
	heads->policy = config->policy;
	heads->high = config->high_percent ? config->high_percent : HIGH_PERCENT;
	heads->low = config->low_percent ? config->low_percent : LOW_PERCENT;
	heads->rate = config->move_rate ? config->move_rate : MOVE_RATE;
	heads->wanted = true; /* the last run may have left something */
}

bool osd_heads_two_roots(const struct osd_objects *objects)
{
	return objects->tier.tail != NULL;
}

uint64_t osd_heads_default(const struct osd_objects *objects)
{
	bool off = atomic_load(&objects->heads.policy) == OSD_HEADS_OFF;

	if (!osd_heads_two_roots(objects))
		return OSD_TIER_ONE;
	return off ? 0 : atomic_load(&objects->heads.head_bytes);
}

/* ---- where to --------------------------------------------------------------------------------- */

bool osd_heads_below(const struct osd_objects *objects, uint64_t percent, uint64_t more)
{
	uint64_t total, available, limit, used;

	if (osd_data_capacity(objects->tier.head, &total, &available) != OSD_OK || total == 0)
		return false; /* it fails, or is absent */
	limit = total / 100 * percent;
	used = total - OSD_MIN(available, total);
	return used <= limit && more <= limit - used;
}

enum osd_tier_head_on osd_head_goal(const struct osd_objects *objects, uint64_t head_bytes,
				    uint64_t length)
{
	bool small_only = atomic_load(&objects->heads.policy) == OSD_HEADS_SMALL_ONLY;

	if (atomic_load(&objects->heads.draining) || (small_only && length > head_bytes))
		return OSD_HEAD_ON_TAIL;
	return OSD_HEAD_ON_HEAD;
}

void osd_head_place(struct osd_objects *objects, uint64_t length, struct osd_record *record)
{
	uint64_t head_bytes = record->head_bytes;

	if (!osd_heads_two_roots(objects) || head_bytes == OSD_TIER_ONE)
		return;
	record->head_on = OSD_HEAD_ON_TAIL;
	if (head_bytes == 0) {
		record->head_bytes = OSD_TIER_ONE;
		return;
	}
	if (osd_head_goal(objects, head_bytes, length) != OSD_HEAD_ON_HEAD)
		return;
	if (osd_heads_below(objects, atomic_load(&objects->heads.high),
			    OSD_MIN(length, head_bytes)))
		record->head_on = OSD_HEAD_ON_HEAD;
	else
		atomic_store(&objects->heads.wanted, true);
}

void osd_head_placed(struct osd_objects *objects, const struct osd_record *record)
{
	/* The decision may be older than the drain. */
	if (record->head_on == OSD_HEAD_ON_HEAD && atomic_load(&objects->heads.draining)) {
		atomic_store(&objects->heads.wanted, true);
		atomic_store(&objects->heads.drained, false);
	}
}

/* ---- how many bytes --------------------------------------------------------------------------- */

uint64_t osd_head_part(uint64_t head_bytes, uint64_t length)
{
	return head_bytes == OSD_TIER_ONE ? 0 : OSD_MIN(head_bytes, length);
}

void osd_heads_count(struct osd_partition *partition, uint8_t head_on, uint64_t before,
		     uint64_t after)
{
	if (before != after)
		atomic_fetch_add(&partition->head_bytes[head_on == OSD_HEAD_ON_TAIL],
				 after - before);
}

void osd_heads_count_length(struct osd_object *object, uint64_t before, uint64_t after)
{
	const struct osd_tier_file *file = &object->file;
	struct osd_heads *heads = &object->objects->heads;

	osd_heads_count(object->partition, (uint8_t)file->head_on,
			osd_head_part(file->head_bytes, before),
			osd_head_part(file->head_bytes, after));
	if (atomic_load(&heads->policy) == OSD_HEADS_SMALL_ONLY &&
	    (before > file->head_bytes) != (after > file->head_bytes))
		atomic_store(&heads->wanted, true);
}

void osd_heads_bytes(struct osd_objects *objects, uint64_t ret_bytes[2])
{
	ret_bytes[0] = ret_bytes[1] = 0;
	osd_read_lock(&objects->partitions_lock);
	osd_each_partition (objects, partition, true)
		for (size_t on = 0; on < 2; on++)
			ret_bytes[on] += atomic_load(&partition->head_bytes[on]);
	osd_rw_unlock(&objects->partitions_lock);
}

/* ---- settings --------------------------------------------------------------------------------- */

enum osd_status osd_heads_load(struct osd_objects *objects)
{
	struct osd_place root = osd_root_place(objects);
	uint8_t value = 0;
	size_t length;
	enum osd_status status = osd_attr_load(objects, NULL, &root, OSD_PAGE_HEADS_ROOT,
					       OSD_HEADS_DRAIN, &value, 1, &length);

	atomic_store(&objects->heads.draining, value);
	return status;
}

void osd_heads_changed(struct osd_objects *objects)
{
	atomic_store(&objects->heads.drained, false);
	atomic_store(&objects->heads.wanted, true);
	osd_kick_mover(objects);
}
