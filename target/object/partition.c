/* SPDX-License-Identifier: GPL-2.0-or-later */
/* partition.c -- partitions and the root: their records, their life in memory, ids. */
#include "object/internal.h"

#include <stdlib.h>

#include "base/util.h"

static struct osd_partition **bucket_of(struct osd_objects *objects, uint64_t id)
{
	return &objects->partitions[(id * UINT64_C(0x9e3779b97f4a7c15) >> 56) %
				    OSD_PARTITION_BUCKETS];
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
	osd_tally_init(partition);
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		atomic_store(&partition->times[i], record->times[i]);
	osd_partition_apply_quotas(partition, record);
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

void osd_partition_apply_quotas(struct osd_partition *partition,
				const struct osd_partition_record *record)
{
	atomic_store(&partition->max_length, record->quotas.max_length);
	atomic_store(&partition->data.capacity, record->quotas.capacity);
	atomic_store(&partition->data.count_limit, record->quotas.object_count);
	atomic_store(&partition->apart.capacity,
		     OSD_MAX(record->quotas.capacity, OSD_APART_BYTES_LEAST));
	atomic_store(&partition->apart.count_limit, OSD_NO_LIMIT);
	atomic_store(&partition->collections_limit, record->quotas.collections);
	atomic_store(&partition->bypass, record->bypass);
	atomic_store(&partition->user_tag, record->user_tag);
}

void osd_partition_insert(struct osd_objects *objects, struct osd_partition *partition)
{
	struct osd_partition **bucket = bucket_of(objects, partition->id);

	osd_write_lock(&objects->partitions_lock);
	atomic_fetch_add(&partition->references, 1);
	partition->next = *bucket;
	*bucket = partition;
	osd_rw_unlock(&objects->partitions_lock);
	osd_note_policy_change(objects);
}

/* No lookup finds it any more. */
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

/* Waits for users of its objects' data first, so that the counters end up exact. */
static void retire(struct osd_objects *objects, struct osd_partition *partition)
{
	take_out(objects, partition);
	osd_cache_remove_partition(objects, partition);
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

/* effect: without a partition none was made after all, and it is not counted either. */
static void run_created(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	if (!effect->partition)
		return;
	if (committed)
		osd_partition_insert(txn->objects, effect->partition);
	else
		atomic_fetch_sub(&txn->objects->partition_count, 1);
}

static void run_removed(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	if (!committed)
		return;
	retire(txn->objects, effect->partition);
	osd_kick_reaper(txn->objects);
}

/* What this transaction itself has done to the partition: found in *ret_partition, or removed. */
static bool find_in_txn(struct osd_txn *txn, uint64_t id, struct osd_partition **ret_partition)
{
	bool found = false;

	for (struct osd_effect *effect = txn ? txn->effects : NULL; effect; effect = effect->next) {
		if (!effect->partition || effect->id.partition_id != id ||
		    effect->id.object_id != 0)
			continue;
		if (effect->run == run_created || effect->run == run_removed) {
			*ret_partition = effect->run == run_created ? effect->partition : NULL;
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
		if (partition)
			atomic_fetch_add(&partition->references, 1);
	} else {
		osd_read_lock(&objects->partitions_lock);
		partition = *bucket_of(objects, id);
		while (partition && partition->id != id)
			partition = partition->next;
		if (partition)
			atomic_fetch_add(&partition->references, 1);
		osd_rw_unlock(&objects->partitions_lock);
	}
	if (!partition)
		return OSD_E_NO_PARTITION;
	*ret_partition = partition;
	return OSD_OK;
}

/* ---- records ----------------------------------------------------------------------------- */

enum osd_status osd_partition_hold(struct osd_txn *txn, struct osd_partition *partition, bool write,
				   struct osd_partition_record *ret_record)
{
	uint8_t bytes[OSD_PARTITION_RECORD_BYTES];
	struct osd_partition_record record;
	struct osd_key key = osd_key_partition(atomic_load(&txn->objects->epoch), partition->id);
	enum osd_status status = osd_txn_lock_store(txn);
	size_t length;

	if (status == OSD_OK)
		status = osd_kv_get(txn->objects->kv, txn->kv, OSD_KV_PARTITIONS,
				    osd_key_bytes(&key), write ? OSD_KV_RMW : 0, bytes,
				    sizeof(bytes), &length);
	if (status == OSD_OK)
		status =
			osd_partition_record_decode(bytes, OSD_MIN(length, sizeof(bytes)), &record);
	if (status == OSD_E_NO_OBJECT)
		return OSD_E_NO_PARTITION;
	if (status == OSD_OK && record.incarnation != partition->incarnation)
		return OSD_E_NO_PARTITION; /* removed and made again while we looked */
	if (status == OSD_OK && ret_record)
		*ret_record = record;
	return status;
}

enum osd_status osd_partition_incarnation(struct osd_txn *txn, uint64_t partition_id,
					  uint32_t *ret_incarnation)
{
	enum osd_status status = osd_txn_take(txn, (struct osd_object_id){partition_id, 0}, true);

	if (status == OSD_OK)
		*ret_incarnation = txn->place.incarnation;
	return status;
}

enum osd_status osd_partition_store(struct osd_txn *txn, struct osd_partition *partition,
				    const struct osd_partition_record *record)
{
	uint8_t bytes[OSD_PARTITION_RECORD_BYTES];
	struct osd_key key = osd_key_partition(atomic_load(&txn->objects->epoch), partition->id);

	osd_partition_record_encode(record, bytes);
	return osd_kv_put(txn->kv, OSD_KV_PARTITIONS, osd_key_bytes(&key),
			  (struct osd_bytes){bytes, sizeof(bytes)}, 0);
}

enum osd_status osd_root_hold(struct osd_txn *txn, struct osd_root_record *ret_root)
{
	uint8_t bytes[OSD_ROOT_RECORD_BYTES];
	struct osd_key key = osd_key_meta(OSD_META_ROOT);
	enum osd_status status = osd_txn_lock_store(txn);
	size_t length;

	if (status == OSD_OK)
		status = osd_kv_get(txn->objects->kv, txn->kv, OSD_KV_META, osd_key_bytes(&key),
				    OSD_KV_RMW, bytes, sizeof(bytes), &length);
	if (status == OSD_OK)
		status = osd_root_record_decode(bytes, OSD_MIN(length, sizeof(bytes)), ret_root);
	return status == OSD_E_NO_OBJECT ? OSD_E_MEDIUM : status;
}

static void run_root_changed(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_root_record *root = effect->arg;

	if (committed) {
		osd_write_lock(&txn->objects->partitions_lock);
		txn->objects->root = *root;
		atomic_store(&txn->objects->epoch, root->epoch);
		atomic_store(&txn->objects->isolation, root->isolation);
		osd_rw_unlock(&txn->objects->partitions_lock);
	}
	free(root);
}

enum osd_status osd_root_store(struct osd_txn *txn, const struct osd_root_record *root)
{
	uint8_t bytes[OSD_ROOT_RECORD_BYTES];
	struct osd_key key = osd_key_meta(OSD_META_ROOT);
	struct osd_root_record *copy = malloc(sizeof(*copy));
	struct osd_effect *effect = copy ? osd_txn_effect(txn, run_root_changed) : NULL;

	if (!effect) {
		free(copy);
		return OSD_E_NO_MEMORY;
	}
	*copy = *root;
	effect->arg = copy;
	osd_root_record_encode(root, bytes);
	return osd_kv_put(txn->kv, OSD_KV_META, osd_key_bytes(&key),
			  (struct osd_bytes){bytes, sizeof(bytes)}, 0);
}

/* ---- create ------------------------------------------------------------------------------ */

/* The mark behind which the next free id is looked for.  An id that a client asked for does not move it
 * to where ids end. */
static void count_id(struct osd_root_record *root, uint64_t id, bool requested)
{
	if (!requested)
		root->next_partition_id = id == UINT64_MAX ? OSD_FIRST_ID : id + 1;
	else if (id < OSD_IDS_COUNTED && id != OSD_JOBS_PARTITION && id != OSD_LOST_PARTITION)
		root->next_partition_id = OSD_MAX(root->next_partition_id, id + 1);
}

/* Puts the record under the id wanted, or the next free one.  Earlier versions let the mark reach the
 * end of all ids: from there the search begins again at the first. */
static enum osd_status put_new(struct osd_txn *txn, uint64_t requested_id,
			       struct osd_root_record *root,
			       const struct osd_partition_record *record, uint64_t *ret_id)
{
	uint64_t id = requested_id ? requested_id : root->next_partition_id;
	uint8_t bytes[OSD_PARTITION_RECORD_BYTES];
	enum osd_status status;

	osd_partition_record_encode(record, bytes);
	do {
		struct osd_key key = osd_key_partition(root->epoch, id);

		if (id < OSD_FIRST_ID)
			return OSD_E_EXISTS; /* reserved */
		status = osd_kv_put(txn->kv, OSD_KV_PARTITIONS, osd_key_bytes(&key),
				    (struct osd_bytes){bytes, sizeof(bytes)}, OSD_KV_NEW);
		if (status == OSD_OK)
			*ret_id = id;
		id = id == UINT64_MAX ? OSD_FIRST_ID : id + 1;
	} while (status == OSD_E_EXISTS && !requested_id);
	if (status == OSD_OK)
		count_id(root, *ret_id, requested_id != 0);
	return status;
}

static void inherit(const struct osd_root_record *root, uint64_t now_ms,
		    struct osd_partition_record *record)
{
	*record = (struct osd_partition_record){.incarnation = root->next_incarnation,
						.bypass = root->common.bypass,
						.quotas = root->common.quotas};
	record->quotas.partition_count = OSD_NO_LIMIT;
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		record->times[i] = now_ms;
}

/* The record, and what memory learns of it after the commit. */
static enum osd_status make(struct osd_txn *txn, struct osd_root_record *root,
			    uint64_t requested_id, uint64_t *ret_id)
{
	struct osd_partition_record record;
	struct osd_effect *effect;
	enum osd_status status;

	inherit(root, txn->now_ms, &record);
	root->next_incarnation++;
	status = put_new(txn, requested_id, root, &record, ret_id);
	if (status == OSD_OK)
		status = osd_methods_inherit(txn, root->epoch, *ret_id, record.incarnation);
	if (status == OSD_OK)
		status = osd_root_store(txn, root);
	if (status != OSD_OK)
		return status;
	effect = osd_txn_effect(txn, run_created);
	if (!effect)
		return OSD_E_NO_MEMORY;
	effect->id = (struct osd_object_id){*ret_id, 0};
	effect->partition = osd_partition_new(*ret_id, &record);
	return effect->partition ? OSD_OK : OSD_E_NO_MEMORY;
}

enum osd_status osd_partition_create(struct osd_txn *txn, uint64_t requested_id, uint64_t *ret_id)
{
	struct osd_root_record root;
	enum osd_status status = osd_txn_let_go(txn);
	uint64_t id = 0;

	if (status == OSD_OK)
		status = osd_root_hold(txn, &root);
	if (status == OSD_OK && atomic_load(&txn->objects->disk_full))
		status = OSD_E_NO_SPACE;
	if (status == OSD_OK)
		status = osd_partitions_add(txn->objects, root.common.quotas.partition_count);
	if (status != OSD_OK)
		return status;
	status = make(txn, &root, requested_id, &id);
	if (status == OSD_OK)
		*ret_id = id;
	else /* the caller may go on without it */
		atomic_fetch_sub(&txn->objects->partition_count, 1);
	return status;
}

/* ---- remove ------------------------------------------------------------------------------ */

/* Ids below the first are the target's own collections: they are no contents, and neither are finished jobs
 * that stand apart. */
static bool found_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	if (osd_record_is_apart(key, value))
		return true;
	*(bool *)arg = true;
	return false;
}

static enum osd_status check_empty(struct osd_txn *txn, const struct osd_partition *partition)
{
	struct osd_place first = {partition->id, partition->incarnation, OSD_FIRST_ID};
	struct osd_key key = osd_key_object(&first);
	bool found = false;
	enum osd_status status =
		osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_OBJECTS, osd_key_bytes(&key),
			    OSD_KEY_PARTITION_PART, found_one, &found);

	return status == OSD_OK && found ? OSD_E_NOT_EMPTY : status;
}

enum osd_status osd_partition_remove(struct osd_txn *txn, uint64_t partition_id, bool contents)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct osd_key key, dead;
	struct osd_effect *effect;
	enum osd_status status = osd_txn_let_go(txn);

	if (status == OSD_OK)
		status = osd_partition_get(txn->objects, txn, partition_id, &partition);
	if (status == OSD_OK)
		status = osd_partition_hold(txn, partition, true, NULL);
	if (status == OSD_OK && !contents)
		status = check_empty(txn, partition);
	if (status != OSD_OK)
		return status;
	key = osd_key_partition(atomic_load(&txn->objects->epoch), partition_id);
	dead = osd_key_meta_partition(OSD_META_DEAD_PARTITION, partition_id,
				      partition->incarnation);
	status = osd_kv_remove(txn->kv, OSD_KV_PARTITIONS, osd_key_bytes(&key));
	if (status == OSD_OK)
		status = osd_kv_put(txn->kv, OSD_KV_META, osd_key_bytes(&dead),
				    (struct osd_bytes){"", 0}, 0);
	if (status != OSD_OK)
		return status;
	effect = osd_txn_effect(txn, run_removed);
	if (!effect)
		return OSD_E_NO_MEMORY;
	effect->id = (struct osd_object_id){partition_id, 0};
	effect->partition = OSD_STEAL(partition);
	return OSD_OK;
}
