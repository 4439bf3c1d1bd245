/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_bdb.c -- records in Berkeley DB 5.3.  attr_bdb_open.c opens them.  Only these two and the
 * program of verify/ use its interface.
 *
 * One private transactional environment, one btree of 8 KiB pages per table.  Every open runs
 * recovery; no second process may open the directory (media.c holds the lock: measured, a second
 * opener hangs the target or destroys its log).  Commits write the log to the kernel before they
 * return (DB_TXN_WRITE_NOSYNC), durable ones also fsync it, where Berkeley DB joins committers in
 * one fsync.
 *
 * Traps for callers: locks are per page, so two records may conflict; a read without transaction
 * waits for another transaction's write lock, also for one of the same thread, which then never
 * ends. */
#include "store/attr_bdb_impl.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

#define FULL_BYTES	   (1u << 20) /* less than this is none */
#define BDB_CHECKPOINT_MIN 1u	      /* minutes */
#define BDB_SCAN_BYTES	   4096u
#define BDB_SCAN_SINGLY	   16u	       /* records read one by one before a scan reads in bulk */
#define BDB_BULK_BYTES	   (64u << 10) /* multiple of 1 KiB, larger than a page */
#define BDB_KEY_MAX	   2048u       /* longest key a scan meets */

struct bdb_txn {
	struct osd_kv_txn base;
	DB_TXN *txn;
};

#ifdef __SANITIZE_THREAD__
/* The library is not instrumented, so the sanitizer must not check its lock order and memory.  The
 * sanitizer defines this name. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "deadlock:libdb-5.3.so\nrace:libdb-5.3.so\n";
}
#endif

static struct bdb *to_bdb(struct osd_kv *kv)
{
	return osd_container_of(kv, struct bdb, base);
}

static DB_TXN *to_txn(struct osd_kv_txn *txn)
{
	return txn ? osd_container_of(txn, struct bdb_txn, base)->txn : NULL;
}

/* A cache that cannot write its pages returns EIO, whatever the cause. */
static bool is_full(struct bdb *bdb, int error)
{
	const char *home;
	struct statvfs stat;

	if (error == ENOSPC || error == EDQUOT)
		return true;
	return error == EIO && bdb->env->get_home(bdb->env, &home) == 0 &&
	       statvfs(home, &stat) == 0 && (uint64_t)stat.f_bavail * stat.f_frsize < FULL_BYTES;
}

/* The kernel reports a failed write to one sync alone, and then takes the bytes for written.  Without them the log
 * ends there for recovery, and later commits would be lost, whatever is synced.  So no later sync succeeds.  It is one
 * mark for all databases of the process, which is to be started again. */
static _Atomic bool sync_failed;

int osd_bdb_sync_file(int fd)
{
	if (atomic_load(&sync_failed))
		return EIO;
	while (fdatasync(fd) < 0) {
		if (errno == EINTR)
			continue;
		atomic_store(&sync_failed, true);
		return errno;
	}
	return 0;
}

static enum osd_status stopped(struct bdb *bdb)
{
	if (!atomic_exchange(&bdb->stopped, true))
		osd_error("the attribute database stopped working; restart the target to "
			  "recover it");
	return OSD_E_MEDIUM;
}

enum osd_status osd_bdb_status(struct bdb *bdb, int error)
{
	switch (error) {
	case 0:
		return OSD_OK;
	case DB_NOTFOUND:
		return OSD_E_NO_OBJECT;
	case DB_KEYEXIST:
		return OSD_E_EXISTS;
	case DB_LOCK_DEADLOCK:
	case DB_LOCK_NOTGRANTED:
		atomic_fetch_add(&bdb->deadlocks, 1);
		return OSD_E_CONFLICT;
	case DB_RUNRECOVERY:
		return stopped(bdb);
	default:
		if (atomic_load(&sync_failed))
			return stopped(bdb);
		if (is_full(bdb, error))
			return bdb->full && bdb->full(bdb->arg) ? OSD_E_CONFLICT : OSD_E_NO_SPACE;
		osd_error("the attribute database failed: %s", db_strerror(error));
		return error > 0 ? osd_status_from_errno(error)
				 : osd_internal("%s", db_strerror(error));
	}
}

static DBT to_dbt(struct osd_bytes bytes)
{
	DBT dbt = {.size = (u_int32_t)bytes.length};

	/* Berkeley DB does not write through keys and values given to it. */
	memcpy(&dbt.data, &bytes.data, sizeof(dbt.data));
	return dbt;
}

/* ---- transactions ------------------------------------------------------------------------ */

/* Reads and writes take locks one by one, whatever the transaction is for. */
static enum osd_status bdb_begin(struct osd_kv *kv, enum osd_kv_access access,
				 struct osd_kv_txn **ret_txn)
{
	struct bdb *bdb = to_bdb(kv);
	struct bdb_txn *txn = malloc(sizeof(*txn));
	int error;

	if (!txn)
		return OSD_E_NO_MEMORY;
	error = bdb->env->txn_begin(bdb->env, NULL, &txn->txn,
				    access == OSD_KV_READ_NOWAIT ? DB_TXN_NOWAIT : 0);
	if (error) {
		free(txn);
		return osd_bdb_status(bdb, error);
	}
	txn->base.kv = kv;
	*ret_txn = &txn->base;
	return OSD_OK;
}

static void bdb_abort(struct osd_kv_txn *base)
{
	struct bdb_txn *txn = osd_container_of(base, struct bdb_txn, base);
	struct bdb *bdb = to_bdb(base->kv);

	osd_bdb_status(bdb, txn->txn->abort(txn->txn));
	free(txn);
	atomic_fetch_add(&bdb->aborts, 1);
}

static enum osd_status bdb_commit(struct osd_kv_txn *base, enum osd_kv_commit how)
{
	static const u_int32_t flags[] = {
		[OSD_KV_COMMIT_NOSYNC] = DB_TXN_NOSYNC,
		[OSD_KV_COMMIT_PROCESS] = DB_TXN_WRITE_NOSYNC,
		[OSD_KV_COMMIT_DURABLE] = DB_TXN_SYNC,
	};
	struct bdb_txn *txn = osd_container_of(base, struct bdb_txn, base);
	struct bdb *bdb = to_bdb(base->kv);
	int error;

	if (how == OSD_KV_COMMIT_DURABLE && atomic_load(&sync_failed)) {
		bdb_abort(base);
		return stopped(bdb);
	}
	error = txn->txn->commit(txn->txn, flags[how]);
	free(txn);
	atomic_fetch_add(error ? &bdb->aborts : &bdb->commits, 1);
	return osd_bdb_status(bdb, error);
}

/* ---- records ----------------------------------------------------------------------------- */

/* The value did not fit: reads it whole, and returns the part that fits. */
static int get_cut(DB *db, DB_TXN *txn, DBT *key, u_int32_t flags, void *buffer, size_t capacity,
		   size_t *ret_length)
{
	DBT value = {.flags = DB_DBT_MALLOC};
	int error = db->get(db, txn, key, &value, flags);

	if (error)
		return error;
	if (capacity)
		memcpy(buffer, value.data, OSD_MIN(capacity, value.size));
	*ret_length = value.size;
	free(value.data);
	return 0;
}

static enum osd_status get_once(struct bdb *bdb, DB_TXN *txn, enum osd_kv_table table,
				struct osd_bytes key_bytes, u_int32_t flags, void *buffer,
				size_t capacity, size_t *ret_length)
{
	DB *db = bdb->tables[table];
	DBT key = to_dbt(key_bytes);
	DBT value = {.data = buffer,
		     .ulen = (u_int32_t)OSD_MIN(capacity, UINT32_MAX),
		     .flags = DB_DBT_USERMEM};
	int error = db->get(db, txn, &key, &value, flags);

	if (error == DB_BUFFER_SMALL)
		error = get_cut(db, txn, &key, flags, buffer, capacity, ret_length);
	else if (!error)
		*ret_length = value.size;
	return osd_bdb_status(bdb, error);
}

/* A read without a transaction that lost a deadlock holds no locks any more: it is repeated. */
static enum osd_status bdb_get(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			       struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
			       size_t *ret_length)
{
	u_int32_t get_flags = flags & OSD_KV_RMW ? DB_RMW : 0;
	enum osd_status status;

	do
		status = get_once(to_bdb(kv), to_txn(txn), table, key, get_flags, buffer, capacity,
				  ret_length);
	while (status == OSD_E_CONFLICT && !txn);
	return status;
}

static enum osd_status bdb_put(struct osd_kv_txn *txn, enum osd_kv_table table,
			       struct osd_bytes key_bytes, struct osd_bytes value_bytes,
			       unsigned flags)
{
	struct bdb *bdb = to_bdb(txn->kv);
	DB *db = bdb->tables[table];
	DBT key = to_dbt(key_bytes), value = to_dbt(value_bytes);

	return osd_bdb_status(bdb, db->put(db, to_txn(txn), &key, &value,
					   flags & OSD_KV_NEW ? DB_NOOVERWRITE : 0));
}

static enum osd_status bdb_remove(struct osd_kv_txn *txn, enum osd_kv_table table,
				  struct osd_bytes key_bytes)
{
	struct bdb *bdb = to_bdb(txn->kv);
	DB *db = bdb->tables[table];
	DBT key = to_dbt(key_bytes);

	return osd_bdb_status(bdb, db->del(db, to_txn(txn), &key, 0));
}

struct scan {
	struct osd_bytes from;
	size_t prefix_length;
	osd_kv_scan_fn *fn;
	void *arg;
	bool more; /* else it is over */
	/* The first key not yet passed to the caller; BDB_KEY_MAX + 1 bytes, borrowed. */
	uint8_t *next;
	size_t next_length;
	/* For values: BDB_SCAN_BYTES, borrowed, then as large as the largest. */
	uint8_t *small;
	void *large; /* owned */
};

static bool scan_grow(struct scan *scan, DBT *value)
{
	void *larger = malloc(value->size);

	if (!larger)
		return false;
	free(scan->large);
	scan->large = value->data = larger;
	value->ulen = value->size;
	return true;
}

static void scan_tell(struct scan *scan, const DBT *key, const void *value, size_t length)
{
	scan->more = key->size >= scan->prefix_length &&
		     memcmp(key->data, scan->from.data, scan->prefix_length) == 0 &&
		     scan->fn(scan->arg, (struct osd_bytes){key->data, key->size},
			      (struct osd_bytes){value, length});
}

/* Sets the key that follows a key already passed to the caller; our keys are short. */
static void scan_go_on(struct scan *scan, const DBT *told)
{
	size_t length = OSD_MIN(told->size, BDB_KEY_MAX);

	if (!told->data)
		return;
	memcpy(scan->next, told->data, length);
	scan->next[length] = 0;
	scan->next_length = length + 1;
}

/* Reads many records at a time, to the end of the scan or to a record that does not fit the
 * buffer. */
static int scan_bulk(struct scan *scan, DBC *cursor)
{
	DBT key = {.flags = 0}, bulk = {.ulen = BDB_BULK_BYTES, .flags = DB_DBT_USERMEM};
	int error = 0;

	bulk.data = malloc(BDB_BULK_BYTES);
	if (!bulk.data)
		return ENOMEM;
	while (scan->more &&
	       (error = cursor->get(cursor, &key, &bulk, DB_NEXT | DB_MULTIPLE_KEY)) == 0) {
		DBT found = {.flags = 0}, told = {.flags = 0};
		void *at, *value;
		size_t length;

		DB_MULTIPLE_INIT(at, &bulk);
		for (;;) {
			DB_MULTIPLE_KEY_NEXT(at, &bulk, found.data, found.size, value, length);
			if (!at || !scan->more)
				break;
			scan_tell(scan, &found, value, length);
			told = found;
		}
		scan_go_on(scan, &told);
	}
	free(bulk.data);
	return error == DB_BUFFER_SMALL ? 0 : error;
}

/* The key is in a buffer of fixed size, so that the position survives a second attempt with a
 * larger buffer for the value. */
static int scan_cursor(struct scan *scan, DBC *cursor)
{
	uint8_t key_bytes[BDB_KEY_MAX + 1];
	DBT key = {.data = key_bytes, .ulen = sizeof(key_bytes), .flags = DB_DBT_USERMEM};
	DBT value = {.data = scan->small, .ulen = BDB_SCAN_BYTES, .flags = DB_DBT_USERMEM};
	u_int32_t move = DB_SET_RANGE;
	unsigned count = 0;
	int error = 0;

	while (!error && scan->more) {
		if (move == DB_SET_RANGE) {
			memcpy(key_bytes, scan->next, scan->next_length);
			key.size = (u_int32_t)scan->next_length;
		}
		error = cursor->get(cursor, &key, &value, move);
		if (error == DB_BUFFER_SMALL && value.size > value.ulen) {
			error = scan_grow(scan, &value) ? 0 : ENOMEM;
			continue;
		}
		if (error)
			break;
		scan_tell(scan, &key, value.data, value.size);
		scan_go_on(scan, &key);
		move = DB_NEXT;
		if (scan->more && ++count % BDB_SCAN_SINGLY == 0)
			error = scan_bulk(scan, cursor);
	}
	return error;
}

static enum osd_status scan_once(struct bdb *bdb, DB_TXN *txn, enum osd_kv_table table,
				 struct scan *scan)
{
	DB *db = bdb->tables[table];
	enum osd_status status, closed;
	DBC *cursor;
	int error = db->cursor(db, txn, &cursor, 0);

	if (error)
		return osd_bdb_status(bdb, error);
	error = scan_cursor(scan, cursor);
	status = error == DB_NOTFOUND ? OSD_OK : osd_bdb_status(bdb, error);
	closed = osd_bdb_status(bdb, cursor->close(cursor));
	return status != OSD_OK ? status : closed;
}

/* A scan without a transaction that lost a deadlock holds no locks.  It continues after the last
 * record that it has passed on. */
static enum osd_status bdb_scan(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
				struct osd_bytes from, size_t prefix_length, osd_kv_scan_fn *fn,
				void *arg)
{
	uint8_t next[BDB_KEY_MAX + 1], small[BDB_SCAN_BYTES];
	struct scan scan = {.from = from,
			    .prefix_length = prefix_length,
			    .fn = fn,
			    .arg = arg,
			    .more = true,
			    .next = next,
			    .next_length = from.length,
			    .small = small};
	enum osd_status status;

	if (from.length > BDB_KEY_MAX)
		return osd_internal("a scan begins at a key of %zu bytes", from.length);
	memcpy(scan.next, from.data, from.length);
	do
		status = scan_once(to_bdb(kv), to_txn(txn), table, &scan);
	while (status == OSD_E_CONFLICT && !txn);
	free(scan.large);
	return status;
}

/* ---- environment ------------------------------------------------------------------------- */

static enum osd_status bdb_flush(struct osd_kv *kv)
{
	struct bdb *bdb = to_bdb(kv);

	return atomic_load(&sync_failed) ? stopped(bdb)
					 : osd_bdb_status(bdb, bdb->env->log_flush(bdb->env, NULL));
}

static enum osd_status bdb_checkpoint(struct osd_kv *kv, bool force)
{
	struct bdb *bdb = to_bdb(kv);
	int error = force ? bdb->env->txn_checkpoint(bdb->env, 0, 0, DB_FORCE)
			  : bdb->env->txn_checkpoint(bdb->env, bdb->log_file_bytes >> 10,
						     BDB_CHECKPOINT_MIN, 0);

	if (!error)
		atomic_fetch_add(&bdb->checkpoints, 1);
	return osd_bdb_status(bdb, error);
}

static void bdb_stats(struct osd_kv *kv, struct osd_kv_stats *ret_stats)
{
	struct bdb *bdb = to_bdb(kv);
	DB_LOCK_STAT *lock;
	DB_TXN_STAT *txn;

	*ret_stats = (struct osd_kv_stats){
		.commits = atomic_load(&bdb->commits),
		.aborts = atomic_load(&bdb->aborts),
		.deadlocks = atomic_load(&bdb->deadlocks),
		.checkpoints = atomic_load(&bdb->checkpoints),
	};
	if (bdb->env->lock_stat(bdb->env, &lock, 0) == 0) {
		ret_stats->lockers = lock->st_nlockers;
		ret_stats->locks = lock->st_nlocks;
		ret_stats->locked_objects = lock->st_nobjects;
		free(lock);
	}
	if (bdb->env->txn_stat(bdb->env, &txn, 0) == 0) {
		ret_stats->transactions = txn->st_nactive;
		free(txn);
	}
}

static void bdb_close(struct osd_kv *kv)
{
	struct bdb *bdb = to_bdb(kv);

	if (bdb->env)
		bdb->env->txn_checkpoint(bdb->env, 0, 0, DB_FORCE);
	for (size_t i = 0; i < OSD_KV_TABLES; i++)
		if (bdb->tables[i])
			bdb->tables[i]->close(bdb->tables[i], DB_NOSYNC);
	if (bdb->env)
		bdb->env->close(bdb->env, 0);
	free(bdb);
}

const struct osd_kv_ops osd_bdb_ops = {
	.close = bdb_close,
	.begin = bdb_begin,
	.commit = bdb_commit,
	.abort = bdb_abort,
	.get = bdb_get,
	.put = bdb_put,
	.remove = bdb_remove,
	.scan = bdb_scan,
	.flush = bdb_flush,
	.checkpoint = bdb_checkpoint,
	.stats = bdb_stats,
};
