/* SPDX-License-Identifier: GPL-2.0-or-later */
/* partition.c -- partitions in memory: their table, their references, and how one comes and goes. */
#include "object/internal.h"

#include <stdlib.h>

#include "base/util.h"
#include "wire/cursor.h"

static struct osd_partition **bucket_of(struct osd_objects *objects, uint64_t id)
{
	return &objects->partitions[(id * UINT64_C(0x9e3779b97f4a7c15) >> 56) %
				    OSD_PARTITION_BUCKETS];
}

/* The counts of all user objects and of all collections are known from the start. */
static void init_tallies(struct osd_partition *partition)
{
	osd_lock_init(&partition->tally_lock, OSD_RANK_TALLY);
	partition->tallies[0] =
		(struct osd_tally){.of = OSD_TALLY_USER_OBJECTS, .known = true, .stays = true};
	partition->tallies[1] =
		(struct osd_tally){.of = OSD_TALLY_COLLECTIONS, .known = true, .stays = true};
}

static void copy_quotas(struct osd_partition *partition, const struct osd_partition_record *record)
{
	atomic_store(&partition->max_length, record->quotas.max_length);
	atomic_store(&partition->data.capacity, record->quotas.capacity);
	atomic_store(&partition->data.count_limit, record->quotas.object_count);
	atomic_store(&partition->apart.capacity,
		     OSD_MAX(record->quotas.capacity, OSD_APART_BYTES_LEAST));
	atomic_store(&partition->apart.count_limit, OSD_NO_LIMIT);
	atomic_store(&partition->collections_limit, (uint32_t)record->quotas.collections);
	atomic_store(&partition->bypass, record->bypass);
	atomic_store(&partition->user_tag, record->user_tag);
}

struct osd_partition *osd_partition_new(uint64_t id, const struct osd_partition_record *record)
{
	struct osd_partition *partition = calloc(1, sizeof(*partition));

	if (!partition)
		return NULL;
	partition->id = id;
	partition->incarnation = record->incarnation;
	atomic_store(&partition->references, 1);
	atomic_store(&partition->next_object_id, OSD_FIRST_ID);
	init_tallies(partition);
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		atomic_store(&partition->times[i], record->times[i]);
	copy_quotas(partition, record);
	return partition;
}

void osd_partition_put(struct osd_partition *partition)
{
	if (!partition || atomic_fetch_sub(&partition->references, 1) != 1)
		return;
	osd_lock_destroy(&partition->tally_lock);
	free(atomic_load(&partition->index));
	free(partition);
}

uint64_t osd_record_change(struct osd_objects *objects)
{
	return atomic_fetch_add(&objects->record_changes, 1) + 1;
}

/* Two changes may come here in the other order than they were committed in. */
void osd_partition_apply_quotas(struct osd_objects *objects, struct osd_partition *partition,
				const struct osd_partition_record *record, uint64_t change)
{
	osd_write_lock(&objects->partitions_lock);
	if (change > partition->quotas_change) {
		partition->quotas_change = change;
		copy_quotas(partition, record);
	}
	osd_rw_unlock(&objects->partitions_lock);
}

void osd_partition_insert(struct osd_objects *objects, struct osd_partition *partition)
{
	struct osd_partition **bucket = bucket_of(objects, partition->id);

	osd_write_lock(&objects->partitions_lock);
	partition->next = *bucket;
	*bucket = osd_partition_ref(partition);
	osd_rw_unlock(&objects->partitions_lock);
	osd_note_policy_change(objects);
}

/* Removes the partition from the table: lookups no longer find it. */
static void take_out(struct osd_objects *objects, struct osd_partition *partition)
{
	struct osd_partition **link = bucket_of(objects, partition->id);

	osd_write_lock(&objects->partitions_lock);
	while (*link && *link != partition)
		link = &(*link)->next;
	if (*link)
		*link = partition->next;
	osd_rw_unlock(&objects->partitions_lock);
}

/* partitions_lock is held for writing. */
static void close_account(struct osd_objects *objects, struct osd_charge_account *account)
{
	osd_assert_rw_held(&objects->partitions_lock);
	atomic_store(&account->removed, true);
	atomic_fetch_sub(&objects->used_bytes, atomic_load(&account->used_bytes));
	atomic_fetch_sub(&objects->charged_bytes, atomic_load(&account->charged_bytes));
	atomic_fetch_sub(&objects->object_count, atomic_load(&account->object_count));
}

/* First waits for threads that use data of its objects, so that the counters end up exact. */
static void retire(struct osd_objects *objects, struct osd_partition *partition)
{
	take_out(objects, partition);
	objects->forget_entries(objects, partition);
	osd_write_lock(&objects->partitions_lock); /* quota.c */
	atomic_fetch_sub(&objects->partition_count, 1);
	close_account(objects, &partition->data);
	close_account(objects, &partition->apart);
	osd_rw_unlock(&objects->partitions_lock);
	osd_note_policy_change(objects);
	for (size_t i = 0; i < objects->watcher_count; i++)
		objects->watchers[i].fn(objects->watchers[i].arg, partition->id);
	osd_partition_put(partition);
}

void osd_partitions_forget(struct osd_objects *objects)
{
	for (size_t i = 0; i < OSD_PARTITION_BUCKETS; i++)
		while (objects->partitions[i])
			retire(objects, objects->partitions[i]);
}

/* ---- lookup ------------------------------------------------------------------------------ */

void osd_partition_created(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	if (committed)
		osd_partition_insert(txn->objects, effect->partition);
	else
		atomic_fetch_sub(&txn->objects->partition_count, 1);
}

void osd_partition_removed(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	if (!committed)
		return;
	retire(txn->objects, effect->partition);
	osd_kick_reaper(txn->objects);
}

/* Whether this transaction has made or removed the partition.  *ret_partition: the one it made; NULL: it
 * removed it. */
static bool find_in_txn(struct osd_txn *txn, uint64_t id, struct osd_partition **ret_partition)
{
	bool found = false;

	/* A transaction may have very many effects, and this lookup is made for each of its objects. */
	if (!txn || !txn->partitions_changed)
		return false;
	for (struct osd_effect *effect = txn->effects; effect; effect = effect->next) {
		if (!effect->partition || effect->id.partition_id != id ||
		    effect->id.object_id != 0)
			continue;
		if (effect->run == osd_partition_created || effect->run == osd_partition_removed) {
			*ret_partition = effect->run == osd_partition_created ? effect->partition : NULL;
			found = true;
		}
	}
	return found;
}

enum osd_status osd_partition_get(struct osd_objects *objects, struct osd_txn *txn, uint64_t id,
				  struct osd_partition **ret_partition)
{
	struct osd_partition *partition = NULL;

	if (find_in_txn(txn, id, &partition)) {
		osd_partition_ref(partition);
	} else {
		osd_read_lock(&objects->partitions_lock);
		partition = *bucket_of(objects, id);
		while (partition && partition->id != id)
			partition = partition->next;
		osd_partition_ref(partition);
		osd_rw_unlock(&objects->partitions_lock);
	}
	if (!partition)
		return OSD_E_NO_PARTITION;
	*ret_partition = partition;
	return OSD_OK;
}

bool osd_partition_of_key(struct osd_objects *objects, const uint8_t *key,
			  struct osd_partition **partition)
{
	uint64_t id = osd_get_be(key, 8);

	if (!*partition || (*partition)->id != id) {
		osd_partition_put(*partition);
		*partition = NULL;
		if (osd_partition_get(objects, NULL, id, partition) != OSD_OK)
			return false;
	}
	return (*partition)->incarnation == osd_get_be(key + 8, 4);
}
