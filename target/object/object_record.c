/* SPDX-License-Identifier: GPL-2.0-or-later */
/* object_record.c -- the records of user objects and collections: their ids, and how a record comes and
 * goes in a transaction.  object.c and collection.c say which records. */
#include "object/internal.h"

#include "base/util.h"
#include "object/value_index.h"
#include "wire/cursor.h"

static uint64_t tally_of(uint8_t type)
{
	return type == OSD_COLLECTION ? OSD_TALLY_COLLECTIONS : OSD_TALLY_USER_OBJECTS;
}

/* Whether the object is in a list of the partition's user objects, or of its collections. */
static bool is_listed(uint64_t id, const struct osd_record *record)
{
	return record->type == OSD_COLLECTION || !osd_is_apart(id, record->flags);
}

/* The contents of the partition have changed: sets its modification time. */
static void note_contents(const struct osd_txn *txn, struct osd_partition *partition,
			  const struct osd_charge_account *account)
{
	if ((txn->flags & OSD_TXN_NO_TIMESTAMPS) || account != &partition->data ||
	    atomic_load(&partition->bypass) == OSD_TIMESTAMPS_BYPASS)
		return;
	osd_raise_to(&partition->times[OSD_T_DATA_MODIFIED], txn->now_ms);
	atomic_store(&partition->times_dirty, true);
}

/* effect: id is the first one, value the count, arg the account. */
static void run_created(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_partition *partition = effect->partition;

	if (!committed) {
		osd_count_drop(txn->objects, effect->arg, effect->value);
		return;
	}
	osd_object_count_ids(partition, effect->id.object_id, effect->value);
	if (osd_hooks_of_partition(txn->objects, partition) & OSD_HOOK_AFTER)
		osd_due_tell(txn->objects, effect->id, effect->value);
	note_contents(txn, partition, effect->arg);
}

bool osd_object_is_new(const struct osd_txn *txn, struct osd_object_id id)
{
	for (const struct osd_effect *effect = txn->effects; effect; effect = effect->next)
		if (effect->run == run_created && effect->id.partition_id == id.partition_id &&
		    id.object_id >= effect->id.object_id &&
		    id.object_id - effect->id.object_id < effect->value)
			return true;
	return false;
}

/* ---- ids --------------------------------------------------------------------------------- */

void osd_object_count_ids(struct osd_partition *partition, uint64_t first, uint64_t count)
{
	if (first < OSD_IDS_COUNTED)
		osd_raise_to(&partition->next_object_id, first + count);
}

struct gap {
	uint64_t at; /* 0: there is none */
	uint32_t count;
};

static bool find_gap(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	uint64_t id = osd_get_be((const uint8_t *)key.data + OSD_KEY_PARTITION_PART, 8);
	struct gap *gap = arg;

	(void)value;
	if (id - gap->at >= gap->count)
		return false;
	gap->at = id + 1;
	return gap->at != 0;
}

/* Finds count free ids in a row from *at on, where clients have requested ids above the mark. */
static enum osd_status skip_taken(struct osd_objects *objects, struct osd_kv_txn *kv,
				  const struct osd_partition *partition, uint32_t count,
				  uint64_t *at)
{
	struct osd_place place = {partition->id, partition->incarnation, *at};
	struct osd_key key = osd_key_object(&place);
	struct gap gap = {*at, count};
	enum osd_status status = osd_kv_scan(objects->kv, kv, OSD_KV_OBJECTS, osd_key_bytes(&key),
					     OSD_KEY_PARTITION_PART, find_gap, &gap);

	*at = gap.at;
	return status;
}

enum osd_status osd_object_take_ids(struct osd_objects *objects, struct osd_kv_txn *kv,
				    struct osd_partition *partition, uint32_t count,
				    uint64_t *ret_first)
{
	uint64_t next = atomic_load(&partition->next_object_id), first;

	do {
		enum osd_status status = OSD_OK;

		first = next;
		if (first >= OSD_IDS_COUNTED)
			status = skip_taken(objects, kv, partition, count, &first);
		if (status != OSD_OK)
			return status;
		if (first < OSD_FIRST_ID || first > UINT64_MAX - count)
			return OSD_E_NO_SPACE; /* the ids are used up */
	} while (!atomic_compare_exchange_weak(&partition->next_object_id, &next, first + count));
	*ret_first = first;
	return OSD_OK;
}

/* ---- records ----------------------------------------------------------------------------- */

/* count records from first on.  On OSD_E_EXISTS no record was put.  After any other failure the caller
 * aborts the transaction. */
static enum osd_status put_records(struct osd_txn *txn, const struct osd_partition *partition,
				   uint64_t first, uint32_t count, struct osd_record record)
{
	struct osd_place place = {partition->id, partition->incarnation, first};
	const uint64_t generation = record.generation, now_ms = record.times[OSD_T_CREATED];
	uint8_t bytes[OSD_RECORD_BYTES];
	enum osd_status status = OSD_OK;
	uint32_t done;

	if (osd_hooks_of_new(txn->objects, partition, &record) & OSD_HOOK_AFTER)
		record.flags |= OSD_REC_DUE;
	for (done = 0; status == OSD_OK && done < count; done++) {
		place.object_id = first + done;
		if (osd_txn_stopped(txn))
			return OSD_E_TASK_ABORTED;
		if (generation == 0)
			record.generation = atomic_fetch_add(&txn->objects->next_generation, 1);
		record.version = osd_version_new(txn->objects);
		record.times[OSD_T_CREATED] = now_ms;
		status = osd_txn_put_new(txn, &place, &record, bytes);
	}
	if (status != OSD_E_EXISTS)
		return status;
	for (uint32_t i = 0; i + 1 < done; i++) {
		struct osd_key key;
		enum osd_status removed;

		place.object_id = first + i;
		key = osd_key_object(&place);
		removed = osd_kv_remove(txn->kv, OSD_KV_OBJECTS, osd_key_bytes(&key));
		if (removed != OSD_OK)
			return removed;
	}
	return OSD_E_EXISTS;
}

/* Counts new objects.  The effect has no id before they have theirs. */
static enum osd_status count_new(struct osd_txn *txn, struct osd_partition *partition,
				 struct osd_charge_account *account, uint32_t count,
				 struct osd_effect **ret_effect)
{
	enum osd_status status = osd_tally_reserve(txn);

	if (status == OSD_OK)
		status = osd_count_add(txn->objects, account, count, !txn->for_views);
	if (status != OSD_OK)
		return status;
	*ret_effect = osd_txn_effect(txn, run_created);
	if (!*ret_effect) {
		osd_count_drop(txn->objects, account, count);
		return OSD_E_NO_MEMORY;
	}
	(*ret_effect)->value = count;
	(*ret_effect)->arg = account;
	(*ret_effect)->partition = osd_partition_ref(partition);
	return OSD_OK;
}

/* The caller may continue without the objects, so the effect must have nothing left to undo. */
static void uncount_new(struct osd_txn *txn, struct osd_effect *effect)
{
	osd_count_drop(txn->objects, effect->arg, effect->value);
	effect->value = 0;
}

/* Also in the numbers of ids that the partition remembers. */
static enum osd_status note_new(struct osd_txn *txn, struct osd_effect *effect, uint64_t first,
				const struct osd_record *record)
{
	effect->id = (struct osd_object_id){effect->partition->id, first};
	return is_listed(first, record)
		       ? osd_tally_note(txn, effect->partition, tally_of(record->type), first,
					(uint32_t)effect->value, true)
		       : OSD_OK;
}

enum osd_status osd_object_put_new(struct osd_txn *txn, struct osd_partition *partition,
				   uint64_t requested_id, uint32_t count,
				   const struct osd_record *record, uint64_t *ret_first)
{
	struct osd_charge_account *account = osd_account_of(partition, requested_id, record->flags);
	struct osd_effect *effect;
	uint64_t first = requested_id;
	enum osd_status status =
		osd_txn_permitted(txn, osd_hooks_of_new(txn->objects, partition, record),
				  OSD_HOOK_CREATE);

	if (status == OSD_OK)
		status = count_new(txn, partition, account, count, &effect);
	if (status != OSD_OK)
		return status;
	do {
		if (requested_id == 0)
			status = osd_object_take_ids(txn->objects, txn->kv, partition, count,
						     &first);
		if (status == OSD_OK || status == OSD_E_EXISTS)
			status = put_records(txn, partition, first, count, *record);
	} while (status == OSD_E_EXISTS && requested_id == 0);
	if (status != OSD_OK) {
		uncount_new(txn, effect);
		return status;
	}
	for (uint32_t i = 0; requested_id && i < count; i++)
		osd_cache_supersede(txn->objects,
				    (struct osd_object_id){partition->id, first + i});
	*ret_first = first;
	return note_new(txn, effect, first, record);
}

enum osd_status osd_object_begin_new(struct osd_txn *txn, struct osd_partition *partition,
				     const struct osd_record *record, uint64_t *ret_id)
{
	struct osd_charge_account *account = osd_account_of(partition, 0, record->flags);
	unsigned hooks = osd_hooks_of_new(txn->objects, partition, record);
	struct osd_effect *effect;
	enum osd_status status = osd_txn_permitted(txn, hooks, OSD_HOOK_CREATE);

	if (status == OSD_OK)
		status = osd_txn_let_go(txn);
	if (status == OSD_OK)
		status = count_new(txn, partition, account, 1, &effect);
	if (status != OSD_OK)
		return status;
	if (*ret_id == 0)
		status = osd_object_take_ids(txn->objects, txn->kv, partition, 1, ret_id);
	if (status != OSD_OK) {
		uncount_new(txn, effect);
		return status;
	}
	txn->id = (struct osd_object_id){partition->id, *ret_id};
	txn->place = (struct osd_place){partition->id, partition->incarnation, *ret_id};
	txn->removals = atomic_load(&txn->objects->removals);
	txn->partition = osd_partition_ref(partition);
	txn->record = *record;
	if (hooks & OSD_HOOK_AFTER)
		txn->record.flags |= OSD_REC_DUE;
	if (record->generation == 0)
		txn->record.generation = atomic_fetch_add(&txn->objects->next_generation, 1);
	txn->record.version = osd_version_new(txn->objects);
	txn->loaded = txn->locked = txn->dirty = txn->unborn = true;
	return note_new(txn, effect, *ret_id, record);
}

void osd_fresh_record(const struct osd_objects *objects, const struct osd_partition *partition,
		      uint64_t now_ms, struct osd_record *record)
{
	*record = (struct osd_record){.type = OSD_USER_OBJECT,
				      .head_bytes = osd_heads_default(objects),
				      .max_length = atomic_load(&partition->max_length),
				      .policy_tag = atomic_load(&partition->user_tag)};
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		record->times[i] = now_ms;
}

/* ---- removal ----------------------------------------------------------------------------- */

/* effect: value is the record's length, for an object that is not in memory; arg the account. */
static void run_removed(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_partition *partition = effect->partition;

	if (!committed)
		return;
	if (!osd_cache_remove(txn->objects, effect->id, effect->generation)) {
		osd_uncharge(txn->objects, effect->arg, effect->value);
		osd_heads_count(partition, effect->head_on, effect->head_part, 0);
	}
	osd_count_drop(txn->objects, effect->arg, 1);
	note_contents(txn, partition, effect->arg);
	osd_kick_reaper(txn->objects);
}

static void run_marked(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	(void)txn;
	if (committed)
		osd_raise_to(&effect->partition->id_mark, effect->value);
}

/* Reads the mark, and locks it for this transaction.  *ret_mark 0: there is none. */
static enum osd_status lock_id_mark(struct osd_txn *txn, const struct osd_key *key,
				    uint64_t *ret_mark)
{
	uint8_t bytes[8] = {0};
	size_t length;
	enum osd_status status = osd_kv_get(txn->objects->kv, txn->kv, OSD_KV_META,
					    osd_key_bytes(key), OSD_KV_RMW, bytes, 8, &length);

	*ret_mark = osd_get_be(bytes, 8);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

/* No id is given out twice, so the store must keep the greatest one when its object is removed.  Earlier releases let
 * any requested id move the mark, so one from OSD_IDS_COUNTED on does not count (recovery.c). */
static enum osd_status keep_id_mark(struct osd_txn *txn)
{
	struct osd_partition *partition = txn->partition;
	struct osd_key key =
		osd_key_meta_partition(OSD_META_ID_MARK, partition->id, partition->incarnation);
	uint64_t next, mark;
	enum osd_status status;
	uint8_t bytes[8];

	if (txn->id.object_id < atomic_load(&partition->id_mark))
		return OSD_OK;
	if (txn->id.object_id >= OSD_IDS_COUNTED)
		return OSD_OK;
	status = lock_id_mark(txn, &key, &mark);
	if (status != OSD_OK)
		return status;
	next = OSD_MAX(atomic_load(&partition->next_object_id), txn->id.object_id + 1);
	if (mark <= OSD_IDS_COUNTED)
		next = OSD_MAX(next, mark);
	status = osd_txn_add_effect(
		txn, (struct osd_effect){.run = run_marked, .value = next, .partition = partition});
	if (status != OSD_OK)
		return status;
	osd_put_be(bytes, next, sizeof(bytes));
	return osd_key_put(txn->kv, OSD_KV_META, &key, bytes, 8);
}

static enum osd_status remove_attributes(struct osd_txn *txn)
{
	struct osd_key prefix = osd_key_object(&txn->place);
	OSD_CLEANUP(osd_key_list_release) struct osd_key_list list = {0};
	struct osd_bytes key;
	enum osd_status status;

	if (txn->record.attribute_count == 0)
		return OSD_OK;
	status = osd_key_list_collect(txn->objects, txn->kv, OSD_KV_ATTRIBUTES,
				      osd_key_bytes(&prefix), SIZE_MAX, &list);
	txn->weight += list.count * OSD_RECORD_WEIGHT;
	while (status == OSD_OK && osd_key_list_next(&list, &key)) {
		const uint8_t *bytes = key.data;
		uint32_t page = (uint32_t)osd_get_be(bytes + OSD_KEY_OBJECT_PART, 4);
		uint32_t number = (uint32_t)osd_get_be(bytes + OSD_KEY_OBJECT_PART + 4, 4);

		if (osd_index_keeps(txn, page, number))
			status = osd_index_note(txn, page, number, NULL, 0);
		if (status == OSD_OK)
			status = osd_kv_remove(txn->kv, OSD_KV_ATTRIBUTES, key);
	}
	return status;
}

static enum osd_status leave_files_to_reaper(struct osd_txn *txn, uint64_t generation)
{
	struct osd_key key = osd_key_files(OSD_META_DEAD_FILES, &txn->place, generation);

	return osd_key_put(txn->kv, OSD_KV_META, &key, "", 0);
}

enum osd_status osd_object_remove_record(struct osd_txn *txn)
{
	struct osd_key key = osd_key_object(&txn->place);
	struct osd_effect effect;
	enum osd_status status = osd_attr_uncharge_all(txn);

	osd_created_gone(txn->objects, txn->id, txn->record.times[OSD_T_CREATED]);
	if (status == OSD_OK)
		status = remove_attributes(txn);
	if (status == OSD_OK && !txn->unborn)
		status = osd_kv_remove(txn->kv, OSD_KV_OBJECTS, osd_key_bytes(&key));
	if (status == OSD_OK && (txn->record.flags & OSD_REC_HAS_FILES))
		status = leave_files_to_reaper(txn, txn->record.generation);
	if (status == OSD_OK && txn->record.spare_generation)
		status = leave_files_to_reaper(txn, txn->record.spare_generation);
	if (status == OSD_OK)
		status = keep_id_mark(txn);
	if (status == OSD_OK && is_listed(txn->id.object_id, &txn->record))
		status = osd_tally_note(txn, txn->partition, tally_of(txn->record.type),
					txn->id.object_id, 1, false);
	if (status != OSD_OK)
		return status;
	effect = (struct osd_effect){
		.run = run_removed,
		.id = txn->id,
		.value = txn->record.length,
		.generation = txn->record.generation,
		.head_part = osd_head_part(txn->record.head_bytes, txn->record.length),
		.head_on = txn->record.head_on,
		.arg = osd_txn_account(txn),
		.partition = txn->partition,
	};
	status = osd_txn_add_effect(txn, effect);
	if (status != OSD_OK)
		return status;
	txn->dirty = false;
	return osd_txn_let_go(txn);
}
