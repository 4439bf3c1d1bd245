/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mem_store.c -- records in memory: the twin of attr_bdb.c for tests and for a target without disk.
 *
 * A table is an array sorted by key.  A read-only transaction holds the store's lock for reading,
 * any other holds it for writing from its first call to its end; so there are no deadlocks, and
 * others wait.  An undo log takes an aborted transaction back. */
#include "testing/stores.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/util.h"

struct mem_record {
	size_t key_length, value_length;
	uint8_t bytes[]; /* key, value */
};

struct mem_table {
	struct mem_record **records; /* owned, sorted by key */
	size_t count, capacity;
};

struct mem_kv {
	struct osd_kv base;
	struct osd_rwlock lock;
	struct mem_table tables[OSD_KV_TABLES]; /* under lock */
	_Atomic uint64_t commits, aborts;
};

/* The value of a key before the transaction; NULL: it was absent. */
struct mem_undo {
	struct mem_undo *next;
	enum osd_kv_table table;
	struct mem_record *old; /* owned; or NULL and key below */
	struct mem_record *key; /* owned; no value */
};

struct mem_txn {
	struct osd_kv_txn base;
	bool read_only, locked; /* locked: holds the store's lock, for reading or writing */
	struct mem_undo *undo;
};

static struct mem_kv *to_mem(struct osd_kv *kv)
{
	return osd_container_of(kv, struct mem_kv, base);
}

static struct mem_txn *to_txn(struct osd_kv_txn *txn)
{
	return osd_container_of(txn, struct mem_txn, base);
}

static struct mem_record *record_new(struct osd_bytes key, struct osd_bytes value)
{
	struct mem_record *record = malloc(sizeof(*record) + key.length + value.length);

	if (!record)
		return NULL;
	record->key_length = key.length;
	record->value_length = value.length;
	memcpy(record->bytes, key.data, key.length);
	if (value.length)
		memcpy(record->bytes + key.length, value.data, value.length);
	return record;
}

static int compare(const struct mem_record *record, struct osd_bytes key)
{
	int order = memcmp(record->bytes, key.data, OSD_MIN(record->key_length, key.length));

	if (order)
		return order;
	return (record->key_length > key.length) - (record->key_length < key.length);
}

/* Index of the first record >= key. */
static size_t lower_bound(const struct mem_table *table, struct osd_bytes key, bool *ret_equal)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(table->records[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_equal = low < table->count && compare(table->records[low], key) == 0;
	return low;
}

static bool table_grow(struct mem_table *table)
{
	size_t capacity = OSD_MAX(64, table->capacity * 2);
	struct mem_record **records;

	if (table->count < table->capacity)
		return true;
	records = realloc(table->records, capacity * sizeof(struct mem_record *));
	if (!records)
		return false;
	table->records = records;
	table->capacity = capacity;
	return true;
}

static void table_insert(struct mem_table *table, size_t at, struct mem_record *record)
{
	memmove(table->records + at + 1, table->records + at,
		(table->count - at) * sizeof(struct mem_record *));
	table->records[at] = record;
	table->count++;
}

static struct mem_record *table_take(struct mem_table *table, size_t at)
{
	struct mem_record *record = table->records[at];

	table->count--;
	memmove(table->records + at, table->records + at + 1,
		(table->count - at) * sizeof(struct mem_record *));
	return record;
}

/* ---- locking ----------------------------------------------------------------------------- */

static void lock_for(struct mem_txn *txn)
{
	if (txn->locked)
		return;
	if (txn->read_only)
		osd_read_lock(&to_mem(txn->base.kv)->lock);
	else
		osd_write_lock(&to_mem(txn->base.kv)->lock);
	txn->locked = true;
}

/* Whether the caller must unlock.  A read of its own inside a writing transaction of the same
 * thread would hang in Berkeley DB; here the order of locks refuses it. */
static bool read_lock(struct mem_kv *mem, struct osd_kv_txn *txn)
{
	if (txn) {
		lock_for(to_txn(txn));
		return false;
	}
	osd_read_lock(&mem->lock);
	return true;
}

static void read_unlock(struct mem_kv *mem, bool locked)
{
	if (locked)
		osd_rw_unlock(&mem->lock);
}

/* ---- transactions ------------------------------------------------------------------------ */

static enum osd_status mem_begin(struct osd_kv *kv, enum osd_kv_access access,
				 struct osd_kv_txn **ret_txn)
{
	struct mem_txn *txn = calloc(1, sizeof(*txn));

	if (!txn)
		return OSD_E_NO_MEMORY;
	txn->base.kv = kv;
	txn->read_only = access != OSD_KV_CHANGE;
	if (access == OSD_KV_READ_NOWAIT) {
		if (!osd_try_read_lock(&to_mem(kv)->lock)) {
			free(txn);
			return OSD_E_WOULD_BLOCK;
		}
		txn->locked = true;
	}
	*ret_txn = &txn->base;
	return OSD_OK;
}

static void undo_one(struct mem_kv *mem, struct mem_undo *undo)
{
	struct mem_table *table = &mem->tables[undo->table];
	struct osd_bytes key = {undo->key->bytes, undo->key->key_length};
	bool equal;
	size_t at = lower_bound(table, key, &equal);

	if (equal)
		free(table_take(table, at));
	if (undo->old) /* there is room: the table held it before */
		table_insert(table, at, OSD_STEAL(undo->old));
}

static void txn_end(struct mem_txn *txn, bool committed)
{
	struct mem_kv *mem = to_mem(txn->base.kv);

	while (txn->undo) {
		struct mem_undo *undo = txn->undo;

		txn->undo = undo->next;
		if (!committed)
			undo_one(mem, undo);
		free(undo->old);
		free(undo->key);
		free(undo);
	}
	if (txn->locked)
		osd_rw_unlock(&mem->lock);
	free(txn);
}

static enum osd_status mem_commit(struct osd_kv_txn *txn, enum osd_kv_commit how)
{
	(void)how;
	atomic_fetch_add(&to_mem(txn->kv)->commits, 1);
	txn_end(to_txn(txn), true);
	return OSD_OK;
}

static void mem_abort(struct osd_kv_txn *txn)
{
	atomic_fetch_add(&to_mem(txn->kv)->aborts, 1);
	txn_end(to_txn(txn), false);
}

/* ---- records ----------------------------------------------------------------------------- */

static enum osd_status mem_get(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			       struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
			       size_t *ret_length)
{
	struct mem_kv *mem = to_mem(kv);
	enum osd_status status = OSD_E_NO_OBJECT;
	bool locked, equal;
	size_t at;

	(void)flags; /* a transaction that may write has the lock already */
	locked = read_lock(mem, txn);
	at = lower_bound(&mem->tables[table], key, &equal);
	if (equal) {
		const struct mem_record *record = mem->tables[table].records[at];
		size_t length = OSD_MIN(capacity, record->value_length);

		if (length)
			memcpy(buffer, record->bytes + record->key_length, length);
		*ret_length = record->value_length;
		status = OSD_OK;
	}
	read_unlock(mem, locked);
	return status;
}

/* Remembers the key, and gives the undo entry the record it had (moved in by the caller). */
static struct mem_undo *undo_new(struct mem_txn *txn, enum osd_kv_table table, struct osd_bytes key)
{
	struct mem_undo *undo = calloc(1, sizeof(*undo));

	if (!undo)
		return NULL;
	undo->table = table;
	undo->key = record_new(key, (struct osd_bytes){NULL, 0});
	if (!undo->key) {
		free(undo);
		return NULL;
	}
	undo->next = txn->undo;
	txn->undo = undo;
	return undo;
}

/* The table, locked for a change where the key is or belongs. */
static struct mem_table *table_for(struct mem_txn *txn, enum osd_kv_table number,
				   struct osd_bytes key, size_t *ret_at, bool *ret_equal)
{
	struct mem_table *table = &to_mem(txn->base.kv)->tables[number];

	assert(!txn->read_only);
	lock_for(txn);
	*ret_at = lower_bound(table, key, ret_equal);
	return table;
}

static enum osd_status mem_put(struct osd_kv_txn *base, enum osd_kv_table number,
			       struct osd_bytes key, struct osd_bytes value, unsigned flags)
{
	struct mem_txn *txn = to_txn(base);
	struct mem_record *record;
	struct mem_undo *undo;
	bool equal;
	size_t at;
	struct mem_table *table = table_for(txn, number, key, &at, &equal);

	if (equal && (flags & OSD_KV_NEW))
		return OSD_E_EXISTS;
	record = record_new(key, value);
	undo = record && table_grow(table) ? undo_new(txn, number, key) : NULL;
	if (!undo) {
		free(record);
		return OSD_E_NO_MEMORY;
	}
	if (equal)
		undo->old = table_take(table, at);
	table_insert(table, at, record);
	return OSD_OK;
}

static enum osd_status mem_remove(struct osd_kv_txn *base, enum osd_kv_table number,
				  struct osd_bytes key)
{
	struct mem_txn *txn = to_txn(base);
	struct mem_undo *undo;
	bool equal;
	size_t at;
	struct mem_table *table = table_for(txn, number, key, &at, &equal);

	if (!equal)
		return OSD_E_NO_OBJECT;
	undo = undo_new(txn, number, key);
	if (!undo)
		return OSD_E_NO_MEMORY;
	undo->old = table_take(table, at);
	return OSD_OK;
}

static enum osd_status mem_scan(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table number,
				struct osd_bytes from, size_t prefix_length, osd_kv_scan_fn *fn,
				void *arg)
{
	struct mem_kv *mem = to_mem(kv);
	const struct mem_table *table = &mem->tables[number];
	bool locked = read_lock(mem, txn), equal, more = true;

	for (size_t i = lower_bound(table, from, &equal); more && i < table->count; i++) {
		const struct mem_record *record = table->records[i];

		if (record->key_length < prefix_length ||
		    memcmp(record->bytes, from.data, prefix_length) != 0)
			break;
		more = fn(arg, (struct osd_bytes){record->bytes, record->key_length},
			  (struct osd_bytes){record->bytes + record->key_length,
					     record->value_length});
	}
	read_unlock(mem, locked);
	return OSD_OK;
}

static enum osd_status mem_flush(struct osd_kv *kv)
{
	(void)kv;
	return OSD_OK;
}

static enum osd_status mem_checkpoint(struct osd_kv *kv, bool force)
{
	(void)kv;
	(void)force;
	return OSD_OK;
}

static void mem_stats(struct osd_kv *kv, struct osd_kv_stats *ret_stats)
{
	struct mem_kv *mem = to_mem(kv);

	*ret_stats = (struct osd_kv_stats){.commits = atomic_load(&mem->commits),
					   .aborts = atomic_load(&mem->aborts)};
}

static void mem_close(struct osd_kv *kv)
{
	struct mem_kv *mem = to_mem(kv);

	for (size_t i = 0; i < OSD_KV_TABLES; i++) {
		for (size_t j = 0; j < mem->tables[i].count; j++)
			free(mem->tables[i].records[j]);
		free(mem->tables[i].records);
	}
	osd_rwlock_destroy(&mem->lock);
	free(mem);
}

static const struct osd_kv_ops mem_ops = {
	.close = mem_close,
	.begin = mem_begin,
	.commit = mem_commit,
	.abort = mem_abort,
	.get = mem_get,
	.put = mem_put,
	.remove = mem_remove,
	.scan = mem_scan,
	.flush = mem_flush,
	.checkpoint = mem_checkpoint,
	.stats = mem_stats,
};

enum osd_status osd_mem_kv_open(struct osd_kv **ret_kv)
{
	struct mem_kv *mem = calloc(1, sizeof(*mem));

	if (!mem)
		return OSD_E_NO_MEMORY;
	mem->base.ops = &mem_ops;
	osd_rwlock_init(&mem->lock, OSD_RANK_MEM_STORE);
	*ret_kv = &mem->base;
	return OSD_OK;
}
