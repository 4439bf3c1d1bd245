/* SPDX-License-Identifier: GPL-2.0-or-later */
/* partition_record.c -- records of partitions and of the root in a transaction, and whether a partition is empty. */
#include "object/internal.h"

#include <stdlib.h>

#include "base/util.h"

enum osd_status osd_partition_load(struct osd_objects *objects, struct osd_kv_txn *kv,
				   const struct osd_partition *partition, unsigned flags,
				   struct osd_partition_record *ret_record)
{
	uint8_t bytes[OSD_PARTITION_RECORD_BYTES];
	struct osd_key key = osd_key_partition(atomic_load(&objects->epoch), partition->id);
	size_t length;
	enum osd_status status = osd_kv_get(objects->kv, kv, OSD_KV_PARTITIONS, osd_key_bytes(&key),
					    flags, bytes, sizeof(bytes), &length);

	if (status == OSD_OK)
		status = osd_partition_record_decode(bytes, OSD_MIN(length, sizeof(bytes)),
						     ret_record);
	if (status == OSD_E_NO_OBJECT ||
	    (status == OSD_OK && ret_record->incarnation != partition->incarnation))
		return OSD_E_NO_PARTITION; /* perhaps made again meanwhile */
	return status;
}

enum osd_status osd_partition_hold(struct osd_txn *txn, struct osd_partition *partition, bool write,
				   struct osd_partition_record *ret_record)
{
	struct osd_partition_record record;
	enum osd_status status = osd_txn_lock_store(txn);

	if (!write && !ret_record && txn->held.partition_id == partition->id &&
	    txn->held.incarnation == partition->incarnation)
		return status;
	if (status == OSD_OK)
		status = osd_partition_load(txn->objects, txn->kv, partition,
					    write ? OSD_KV_RMW : 0, &record);
	if (status != OSD_OK)
		return status;
	if (!(txn->flags & OSD_TXN_READ_ONLY))
		txn->held = (struct osd_place){partition->id, partition->incarnation, 0};
	if (ret_record)
		*ret_record = record;
	return OSD_OK;
}

enum osd_status osd_partition_store(struct osd_txn *txn, struct osd_partition *partition,
				    const struct osd_partition_record *record)
{
	uint8_t bytes[OSD_PARTITION_RECORD_BYTES];
	struct osd_key key = osd_key_partition(atomic_load(&txn->objects->epoch), partition->id);

	osd_partition_record_encode(record, bytes);
	return osd_key_put(txn->kv, OSD_KV_PARTITIONS, &key, bytes, sizeof(bytes));
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
	struct osd_objects *objects = txn->objects;
	struct osd_root_record *root = effect->arg;

	if (committed) {
		osd_write_lock(&objects->partitions_lock);
		if (effect->value > objects->root_change) { /* else a later one is there */
			objects->root_change = effect->value;
			objects->root = *root;
			atomic_store(&objects->epoch, root->epoch);
			atomic_store(&objects->isolation, root->isolation);
		}
		osd_rw_unlock(&objects->partitions_lock);
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
	effect->value = osd_record_change(txn->objects);
	osd_root_record_encode(root, bytes);
	return osd_key_put(txn->kv, OSD_KV_META, &key, bytes, sizeof(bytes));
}

/* ---- contents --------------------------------------------------------------------------------- */

struct contents {
	bool apart_too, found;
};

static bool found_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct contents *contents = arg;

	contents->found = contents->apart_too || !osd_record_is_apart(key, value);
	return !contents->found;
}

/* Ids below the first are the target's own collections, which do not count as contents. */
enum osd_status osd_partition_check_empty(struct osd_txn *txn,
					  const struct osd_partition *partition, bool apart_too)
{
	struct osd_place first = {partition->id, partition->incarnation, OSD_FIRST_ID};
	struct osd_key key = osd_key_object(&first);
	struct contents contents = {apart_too, false};
	enum osd_status status =
		osd_kv_scan(txn->objects->kv, txn->kv, OSD_KV_OBJECTS, osd_key_bytes(&key),
			    OSD_KEY_PARTITION_PART, found_one, &contents);

	return status == OSD_OK && contents.found ? OSD_E_NOT_EMPTY : status;
}
