/* SPDX-License-Identifier: GPL-2.0-or-later */
/* partition_create.c -- making and removing partitions.  Records change in the caller's transaction.
 * Memory changes once that has committed (osd_partition_created and osd_partition_removed). */
#include "object/internal.h"

#include "base/util.h"
#include "object/view_impl.h"

enum osd_status osd_partition_incarnation(struct osd_txn *txn, uint64_t partition_id,
					  uint32_t *ret_incarnation)
{
	enum osd_status status = osd_txn_take(txn, (struct osd_object_id){partition_id, 0}, true);

	if (status == OSD_OK)
		*ret_incarnation = txn->place.incarnation;
	return status;
}

/* ---- create ------------------------------------------------------------------------------ */

/* Moves the mark from which the next free id is searched.  A requested id near the end of all ids does
 * not move it. */
static void count_id(struct osd_root_record *root, uint64_t id, bool requested)
{
	if (!requested)
		root->next_partition_id = id == UINT64_MAX ? OSD_FIRST_ID : id + 1;
	else if (id >= OSD_FIRST_ID && id < OSD_IDS_COUNTED && id != OSD_JOBS_PARTITION && id != OSD_LOST_PARTITION)
		root->next_partition_id = OSD_MAX(root->next_partition_id, id + 1);
}

/* Puts the record under the requested id, or the next free one.  Earlier releases let the mark reach the
 * end of all ids; from there the search begins again at the first. */
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

/* Puts the record, and notes the change of memory after the commit. */
static enum osd_status make(struct osd_txn *txn, struct osd_root_record *root,
			    uint64_t requested_id, uint64_t *ret_id)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct osd_partition_record record;
	enum osd_status status;

	inherit(root, txn->now_ms, &record);
	record.times[OSD_T_CREATED] = osd_created_time(
		txn->objects, (struct osd_object_id){requested_id, 0}, txn->now_ms);
	root->next_incarnation++;
	status = put_new(txn, requested_id, root, &record, ret_id);
	if (status == OSD_OK)
		status = osd_methods_inherit(txn, root->epoch, *ret_id, record.incarnation);
	if (status == OSD_OK)
		status = osd_root_store(txn, root);
	if (status != OSD_OK)
		return status;
	partition = osd_partition_new(*ret_id, &record);
	if (!partition)
		return OSD_E_NO_MEMORY;
	txn->partitions_changed = true;
	return osd_txn_add_effect(txn, (struct osd_effect){.run = osd_partition_created,
							   .id = {*ret_id, 0},
							   .partition = partition});
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

enum osd_status osd_partition_remove(struct osd_txn *txn, uint64_t partition_id, bool contents)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	const struct osd_object_id id = {partition_id, 0};
	struct osd_key key, dead;
	enum osd_status status = osd_partition_take(txn, partition_id, true, &partition);

	if (status == OSD_OK && !contents)
		status = osd_partition_check_empty(txn, partition, false);
	if (status == OSD_OK)
		status = osd_view_removed(txn, partition);
	if (status == OSD_OK)
		status = osd_txn_take(txn, id, true);
	if (status == OSD_OK)
		status = txn->objects->unname(txn);
	if (status == OSD_OK)
		status = osd_txn_let_go(txn);
	if (status != OSD_OK)
		return status;
	osd_created_all_gone(txn->objects, txn->now_ms);
	key = osd_key_partition(atomic_load(&txn->objects->epoch), partition_id);
	dead = osd_key_meta_partition(OSD_META_DEAD_PARTITION, partition_id,
				      partition->incarnation);
	status = osd_kv_remove(txn->kv, OSD_KV_PARTITIONS, osd_key_bytes(&key));
	if (status == OSD_OK)
		status = osd_key_put(txn->kv, OSD_KV_META, &dead, "", 0);
	txn->partitions_changed = true;
	if (status == OSD_OK)
		status = osd_txn_add_effect(txn, (struct osd_effect){.run = osd_partition_removed,
								     .id = id,
								     .partition = partition});
	if (status == OSD_OK)
		status = osd_stack_removed(txn, true);
	return status == OSD_OK ? osd_note_removal(txn, id) : status;
}
