/* SPDX-License-Identifier: GPL-2.0-or-later */
/* txn.c -- transactions of the object layer: the store's transaction, the record at hand, and what
 * must follow a commit (effects).
 *
 * The store's transaction begins with the first change, so checks before it hold no locks.  A read-only
 * transaction holds the locks of one object at a time: the values of one object belong together, and a
 * walk over many objects cannot deadlock. */
#include "object/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "object/value_index.h"
#include "object/view_impl.h"

/* ---- begin and end ----------------------------------------------------------------------- */

enum osd_status osd_txn_begin(struct osd_objects *objects, unsigned flags, struct osd_txn **ret_txn)
{
	struct osd_txn *txn = malloc(sizeof(*txn)); /* cheaper than calloc(), see malloc's tcache */

	if (!txn)
		return OSD_E_NO_MEMORY;
	*txn = (struct osd_txn){.objects = objects,
				.flags = flags,
				.now_ms = osd_wall_msec(),
				.last_effect = &txn->effects};
	*ret_txn = txn;
	return OSD_OK;
}

struct osd_objects *osd_txn_objects(const struct osd_txn *txn)
{
	return txn->objects;
}

void osd_txn_watch(struct osd_txn *txn, const bool *stop)
{
	txn->stop = stop;
}

void osd_txn_watch_by(struct osd_txn *txn, const struct osd_txn_watcher *watcher)
{
	txn->watcher = watcher;
}

void osd_txn_act_for(struct osd_txn *txn, const char *principal)
{
	txn->principal = principal;
}

const char *osd_txn_acts_for(const struct osd_txn *txn)
{
	return txn->principal;
}

uint64_t osd_txn_weight(const struct osd_txn *txn)
{
	return txn->weight;
}

void *osd_txn_kept(const struct osd_txn *txn)
{
	return txn->kept;
}

void osd_txn_keep(struct osd_txn *txn, void *kept)
{
	free(txn->kept);
	txn->kept = kept;
}

void osd_memberships_forget(struct osd_txn *txn)
{
	free(txn->memberships);
	txn->memberships = NULL;
	txn->membership_count = txn->membership_capacity = 0;
	txn->memberships_known = false;
}

static void drop_at_hand(struct osd_txn *txn)
{
	osd_txn_keep(txn, NULL);
	osd_partition_put(txn->partition);
	txn->partition = NULL;
	osd_memberships_forget(txn);
	txn->member_count_known = txn->attributes_counted = txn->adds_attributes = false;
	txn->loaded = txn->locked = txn->dirty = txn->length_set = txn->accessed = false;
	txn->unborn = txn->foreseen = txn->shown = txn->flat = false;
}

/* Runs the effects in order; they may start transactions of their own. */
static void txn_end(struct osd_txn *txn, bool committed)
{
	drop_at_hand(txn);
	osd_index_leave(txn);
	osd_tally_settle(txn, committed);
	while (txn->effects) {
		struct osd_effect *effect = txn->effects;

		txn->effects = effect->next;
		effect->run(txn, effect, committed);
		osd_partition_put(effect->partition);
		free(effect);
	}
	free(txn->collections.list);
	free(txn->members.list);
	free(txn);
}

enum osd_status osd_txn_commit(struct osd_txn *txn, enum osd_commit how)
{
	enum osd_status status = osd_txn_let_go(txn);

	/* Views first: what they add and remove is noted for indexes and versions.  Versions last,
	 * see data_version.h. */
	if (status == OSD_OK && txn->members.count)
		status = txn->objects->follow_members(txn);
	if (status == OSD_OK && txn->index.count)
		status = osd_index_apply(txn);
	if (status == OSD_OK && txn->collections.count)
		status = osd_version_apply_members(txn);
	if (txn->kv && (status != OSD_OK || (txn->flags & OSD_TXN_READ_ONLY))) {
		osd_own_abort(OSD_STEAL(txn->kv));
	} else if (txn->kv) {
		osd_tally_tell(txn);
		status =
			osd_own_commit(txn->objects, OSD_STEAL(txn->kv), how == OSD_COMMIT_DURABLE);
	}
	txn_end(txn, status == OSD_OK);
	return status;
}

void osd_txn_abort(struct osd_txn *txn)
{
	if (!txn)
		return;
	if (txn->kv)
		osd_own_abort(OSD_STEAL(txn->kv));
	txn_end(txn, false);
}

/* ---- the object at hand ------------------------------------------------------------------ */

enum osd_object_type osd_txn_type(const struct osd_txn *txn)
{
	if (txn->id.partition_id == 0)
		return OSD_ROOT;
	if (txn->id.object_id == 0)
		return OSD_PARTITION;
	return (enum osd_object_type)txn->record.type;
}

struct osd_charge_account *osd_txn_account(struct osd_txn *txn)
{
	return txn->partition ? osd_account_of(txn->partition, txn->id.object_id, txn->record.flags)
			      : NULL;
}

/* The removal of an object with this id may have ended while the put waited for the lock of its record. */
enum osd_status osd_txn_put_new(struct osd_txn *txn, const struct osd_place *place,
				struct osd_record *record, uint8_t bytes[OSD_RECORD_BYTES])
{
	const struct osd_object_id id = {place->partition_id, place->object_id};
	const struct osd_key key = osd_key_object(place);
	uint64_t created_ms = osd_created_time(txn->objects, id, record->times[OSD_T_CREATED]);
	unsigned flags = OSD_KV_NEW;
	enum osd_status status;

	do {
		record->times[OSD_T_CREATED] = created_ms;
		osd_record_encode(record, bytes);
		status = osd_kv_put(txn->kv, OSD_KV_OBJECTS, osd_key_bytes(&key),
				    (struct osd_bytes){bytes, OSD_RECORD_BYTES}, flags);
		/* The record that is there now is this transaction's own, and locked. */
		flags = 0;
		created_ms = osd_created_time(txn->objects, id, created_ms);
	} while (status == OSD_OK && created_ms != record->times[OSD_T_CREATED]);
	return status;
}

enum osd_status osd_txn_store_new(struct osd_txn *txn, uint32_t attribute_count)
{
	struct osd_record record = txn->record;
	enum osd_status status;

	record.attribute_count = attribute_count;
	status = osd_txn_put_new(txn, &txn->place, &record, txn->stored);
	txn->record.times[OSD_T_CREATED] = record.times[OSD_T_CREATED];
	txn->unborn = false;
	txn->foreseen = true;
	return status == OSD_E_EXISTS ? OSD_E_CONFLICT : status;
}

static enum osd_status store_record(struct osd_txn *txn)
{
	struct osd_key key = osd_key_object(&txn->place);
	uint8_t bytes[OSD_RECORD_BYTES];

	if (txn->unborn)
		return osd_txn_store_new(txn, txn->record.attribute_count);
	osd_record_encode(&txn->record, bytes);
	if (txn->foreseen && memcmp(bytes, txn->stored, sizeof(bytes)) == 0)
		return OSD_OK;
	return osd_key_put(txn->kv, OSD_KV_OBJECTS, &key, bytes, sizeof(bytes));
}

enum osd_status osd_txn_let_go(struct osd_txn *txn)
{
	enum osd_status status = OSD_OK;

	if (txn->loaded && txn->dirty && !osd_is_objects_collection(txn->id))
		status = store_record(txn);
	drop_at_hand(txn);
	return status;
}

enum osd_status osd_partition_take(struct osd_txn *txn, uint64_t id, bool write,
				   struct osd_partition **ret_partition)
{
	enum osd_status status = osd_txn_let_go(txn);

	if (status == OSD_OK)
		status = osd_partition_get(txn->objects, txn, id, ret_partition);
	return status == OSD_OK ? osd_partition_hold(txn, *ret_partition, write, NULL) : status;
}

static enum osd_status load_record(struct osd_txn *txn, bool write)
{
	return osd_record_load(txn->objects, txn->kv, &txn->place, write ? OSD_KV_RMW : 0,
			       &txn->record);
}

static enum osd_status load_named(struct osd_txn *txn, bool write)
{
	enum osd_status status = load_record(txn, write);

	return status == OSD_E_NO_OBJECT && txn->partition && atomic_load(&txn->partition->shows)
		       ? osd_view_directory(txn, write)
		       : status;
}

/* Makes the record that the collection of all user objects would have. */
static enum osd_status load_objects_collection(struct osd_txn *txn, bool write)
{
	txn->record = (struct osd_record){.type = OSD_COLLECTION,
					  .collection_type = OSD_COLLECTION_SPONTANEOUS,
					  .head_bytes = OSD_TIER_ONE,
					  .max_length = OSD_NO_LIMIT};
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		txn->record.times[i] = atomic_load(&txn->partition->times[i]);
	return write ? osd_partition_hold(txn, txn->partition, false, NULL) : OSD_OK;
}

static bool same_object(const struct osd_txn *txn, struct osd_object_id id)
{
	return txn->loaded && osd_same_id(txn->id, id);
}

/* Begins the store's transaction if this read or write needs one: see the top of the file. */
static enum osd_status ready_store(struct osd_txn *txn, bool write)
{
	assert(!(write && (txn->flags & OSD_TXN_READ_ONLY)));
	if (txn->flags & OSD_TXN_READ_ONLY) {
		if (txn->kv)
			osd_own_abort(OSD_STEAL(txn->kv));
		return osd_txn_lock_store(txn);
	}
	return write ? osd_txn_lock_store(txn) : OSD_OK;
}

enum osd_status osd_txn_take(struct osd_txn *txn, struct osd_object_id id, bool write)
{
	enum osd_status status;
	void *kept;

	txn->read_length.there &= !write;
	/* A record that was read without a lock may be out of date by now. */
	if (same_object(txn, id) && (txn->locked || !write))
		return OSD_OK;
	if (id.partition_id == 0 && id.object_id != 0)
		return OSD_E_NO_PARTITION;
	/* In a read-only transaction, a provider whose value proved that the object exists may have
	 * kept data about it. */
	kept = txn->flags & OSD_TXN_READ_ONLY ? OSD_STEAL(txn->kept) : NULL;
	status = osd_txn_let_go(txn);
	txn->kept = kept;
	if (status == OSD_OK)
		status = ready_store(txn, write);
	if (status == OSD_OK && id.partition_id != 0)
		status = osd_partition_get(txn->objects, txn, id.partition_id, &txn->partition);
	if (status != OSD_OK)
		return status;
	txn->id = id;
	txn->removals = atomic_load(&txn->objects->removals);
	txn->place = (struct osd_place){id.partition_id,
					txn->partition ? txn->partition->incarnation
						       : atomic_load(&txn->objects->epoch),
					id.object_id};
	if (osd_is_objects_collection(id))
		status = load_objects_collection(txn, write);
	else if (id.object_id != 0)
		status = load_named(txn, write);
	else if (write && txn->partition)
		status = osd_partition_hold(txn, txn->partition, false, NULL);
	if (status == OSD_OK) {
		txn->loaded = true;
		txn->locked = write;
	} else {
		drop_at_hand(txn);
	}
	return status;
}

enum osd_status osd_txn_take_type(struct osd_txn *txn, struct osd_object_id id,
				  enum osd_object_type type, bool write)
{
	enum osd_status status = osd_txn_take(txn, id, write);

	return status == OSD_OK && osd_txn_type(txn) != type ? OSD_E_NO_OBJECT : status;
}

/* ---- records of higher layers ------------------------------------------------------------ */

static const enum osd_kv_table table_of[] = {
	[OSD_TABLE_JOBS] = OSD_KV_JOBS,
	[OSD_TABLE_JOB_KEYS] = OSD_KV_JOB_KEYS,
	[OSD_TABLE_COMMANDS] = OSD_KV_COMMANDS,
};

/* If the transaction has changed nothing yet, this read is independent of it. */
enum osd_status osd_txn_record_get(struct osd_txn *txn, enum osd_table table, const void *key,
				   size_t key_length, void *buffer, size_t capacity,
				   size_t *ret_length)
{
	/* Callers may write it back: with read locks, two would wait for each other. */
	unsigned flags = txn->kv && !(txn->flags & OSD_TXN_READ_ONLY) ? OSD_KV_RMW : 0;

	return osd_kv_get(txn->objects->kv, txn->kv, table_of[table],
			  (struct osd_bytes){key, key_length}, flags, buffer, capacity, ret_length);
}

static enum osd_status record_put(struct osd_txn *txn, enum osd_table table, struct osd_bytes key,
				  struct osd_bytes value, unsigned flags)
{
	enum osd_status status = osd_txn_lock_store(txn);

	if (status != OSD_OK)
		return status;
	return osd_kv_put(txn->kv, table_of[table], key, value, flags);
}

enum osd_status osd_txn_record_put(struct osd_txn *txn, enum osd_table table, const void *key,
				   size_t key_length, const void *value, size_t length)
{
	return record_put(txn, table, (struct osd_bytes){key, key_length},
			  (struct osd_bytes){value, length}, 0);
}

enum osd_status osd_txn_record_insert(struct osd_txn *txn, enum osd_table table, const void *key,
				      size_t key_length, const void *value, size_t length)
{
	return record_put(txn, table, (struct osd_bytes){key, key_length},
			  (struct osd_bytes){value, length}, OSD_KV_NEW);
}

enum osd_status osd_txn_record_delete(struct osd_txn *txn, enum osd_table table, const void *key,
				      size_t key_length)
{
	enum osd_status status = osd_txn_lock_store(txn);

	if (status != OSD_OK)
		return status;
	return osd_kv_remove(txn->kv, table_of[table], (struct osd_bytes){key, key_length});
}

struct each_context {
	bool (*fn)(void *arg, const uint8_t *key, size_t key_length, const uint8_t *value,
		   size_t length);
	void *arg;
};

static bool each_record(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct each_context *context = arg;

	return context->fn(context->arg, key.data, key.length, value.data, value.length);
}

enum osd_status osd_txn_record_each(struct osd_txn *txn, enum osd_table table, const void *prefix,
				    size_t prefix_length,
				    bool (*fn)(void *arg, const uint8_t *key, size_t key_length,
					       const uint8_t *value, size_t length),
				    void *arg)
{
	struct each_context context = {fn, arg};

	return osd_kv_scan(txn->objects->kv, txn->kv, table_of[table],
			   (struct osd_bytes){prefix, prefix_length}, prefix_length, each_record,
			   &context);
}
