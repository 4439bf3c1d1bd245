/* SPDX-License-Identifier: GPL-2.0-or-later */
/* quota.c -- who may have how much (design D10).  Used bytes are the objects' lengths, counted in
 * memory and exact at any time, so a limit is checked before a byte is written and costs no
 * transaction.
 *
 * A partition that is removed takes everything charged to it off the totals at once (partition.c),
 * with partitions_lock held for writing: what is charged or given back holds it for reading, and so
 * comes before, or finds the partition removed. */
#include "object/internal.h"

#define JOB_RESERVE_PERCENT 1 /* of the capacity: kept for jobs' output (design D13) */

/* Adds to the counter unless that would pass the limit. */
static bool add_below(_Atomic uint64_t *counter, uint64_t delta, uint64_t limit)
{
	uint64_t before = atomic_load(counter);

	do {
		if (delta > limit || before > limit - delta)
			return false;
	} while (!atomic_compare_exchange_weak(counter, &before, before + delta));
	return true;
}

static enum osd_status charge(struct osd_objects *objects, struct osd_partition *partition,
			      uint64_t delta, bool use_reserve)
{
	uint64_t capacity = atomic_load(&objects->capacity_bytes);
	uint64_t quota = use_reserve ? OSD_NO_LIMIT : atomic_load(&partition->capacity);

	if (atomic_load(&partition->removed))
		return OSD_E_NO_PARTITION;
	if (!use_reserve) {
		if (atomic_load(&objects->disk_full))
			return OSD_E_NO_SPACE;
		capacity -= capacity / 100 * JOB_RESERVE_PERCENT;
	}
	atomic_fetch_add(&partition->charges, 1);
	if (!add_below(&partition->used_bytes, delta, quota))
		return OSD_E_QUOTA;
	if (add_below(&objects->used_bytes, delta, capacity))
		return OSD_OK;
	atomic_fetch_sub(&partition->used_bytes, delta);
	return OSD_E_NO_SPACE;
}

enum osd_status osd_charge(struct osd_objects *objects, struct osd_partition *partition,
			   uint64_t delta, bool use_reserve)
{
	enum osd_status status;

	if (delta == 0)
		return OSD_OK;
	pthread_rwlock_rdlock(&objects->partitions_lock);
	status = charge(objects, partition, delta, use_reserve);
	pthread_rwlock_unlock(&objects->partitions_lock);
	return status;
}

/* delta modulo 2^64: what is given back is negative. */
static void add_bytes(struct osd_objects *objects, struct osd_partition *partition, uint64_t delta)
{
	pthread_rwlock_rdlock(&objects->partitions_lock);
	if (!atomic_load(&partition->removed)) {
		atomic_fetch_add(&partition->charges, 1);
		atomic_fetch_add(&partition->used_bytes, delta);
		atomic_fetch_add(&objects->used_bytes, delta);
	}
	pthread_rwlock_unlock(&objects->partitions_lock);
}

void osd_charge_committed(struct osd_objects *objects, struct osd_partition *partition,
			  uint64_t delta)
{
	add_bytes(objects, partition, delta);
}

void osd_uncharge(struct osd_objects *objects, struct osd_partition *partition, uint64_t delta)
{
	add_bytes(objects, partition, 0 - delta);
}

static enum osd_status add_count(struct osd_objects *objects, struct osd_partition *partition,
				 uint64_t count)
{
	if (atomic_load(&partition->removed))
		return OSD_E_NO_PARTITION;
	atomic_fetch_add(&partition->charges, 1);
	if (!add_below(&partition->object_count, count, atomic_load(&partition->count_limit)))
		return OSD_E_QUOTA;
	atomic_fetch_add(&objects->object_count, count);
	return OSD_OK;
}

enum osd_status osd_count_add(struct osd_objects *objects, struct osd_partition *partition,
			      uint64_t count)
{
	enum osd_status status;

	pthread_rwlock_rdlock(&objects->partitions_lock);
	status = add_count(objects, partition, count);
	pthread_rwlock_unlock(&objects->partitions_lock);
	return status;
}

void osd_count_drop(struct osd_objects *objects, struct osd_partition *partition, uint64_t count)
{
	pthread_rwlock_rdlock(&objects->partitions_lock);
	if (!atomic_load(&partition->removed)) {
		atomic_fetch_add(&partition->charges, 1);
		atomic_fetch_sub(&partition->object_count, count);
		atomic_fetch_sub(&objects->object_count, count);
	}
	pthread_rwlock_unlock(&objects->partitions_lock);
}

enum osd_status osd_partitions_add(struct osd_objects *objects, uint64_t limit)
{
	return add_below(&objects->partition_count, 1, limit) ? OSD_OK : OSD_E_QUOTA;
}
