/* SPDX-License-Identifier: GPL-2.0-or-later */
/* store.h -- what the object layer asks of a disk: an ordered transactional key/value store
 * (records) and a store of files (object data).  Each is a struct of functions with more than one
 * implementation:
 *
 *   records: attr_bdb.c (Berkeley DB);  data: file_store.c, absent_data.c;
 *
 * sums_data.c wraps data and keeps checksums (sums.h).
 * target/testing/ has others, for tests and benchmarks: in memory, with faults, as slow as a disk.
 *
 * Callers use the checked wrappers below, never the functions in the struct (but plain_fd,
 * both.c alone).
 *
 * Threads: everything may be called from any thread; a transaction belongs to one thread at a time.
 * Errors: enum osd_status; OSD_E_CONFLICT means that the transaction lost a deadlock: abort it and
 * begin again.  A read without a transaction never returns it. */
#ifndef OSD_STORE_STORE_H
#define OSD_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/status.h"

/* ---- records ----------------------------------------------------------------------------- */

/* Keys and records are in docs/format.md. */
enum osd_kv_table {
	OSD_KV_PARTITIONS,  /* root and partition records */
	OSD_KV_OBJECTS,	    /* user object and collection records */
	OSD_KV_ATTRIBUTES,  /* attributes that are not part of a record */
	OSD_KV_MEMBERS,	    /* collection -> member */
	OSD_KV_MEMBERSHIPS, /* member -> collection */
	OSD_KV_JOBS,
	OSD_KV_JOB_KEYS,
	OSD_KV_INDEX,	 /* values of attributes -> objects */
	OSD_KV_COMMANDS, /* commands that run in steps */
	OSD_KV_NAMES,	 /* directory, name -> object */
	OSD_KV_NAMED,	 /* object -> directory, name */
	OSD_KV_KEYS,	 /* secret keys, sealed, and times of nonces */
	OSD_KV_META,	 /* what the store itself must remember: reaper queue, id marks */
	OSD_KV_TABLES
};

struct osd_bytes {
	const void *data; /* borrowed */
	size_t length;
};

enum osd_kv_get_flags { OSD_KV_RMW = 1 /* take the write lock at once */ };
enum osd_kv_put_flags { OSD_KV_NEW = 1 /* OSD_E_EXISTS when the key is there */ };
enum osd_kv_commit {
	OSD_KV_COMMIT_NOSYNC,  /* tests only: may be lost when the process is killed */
	OSD_KV_COMMIT_PROCESS, /* survives kill -9 */
	OSD_KV_COMMIT_DURABLE, /* survives power loss */
};

enum osd_kv_access {
	OSD_KV_CHANGE,
	OSD_KV_READ,	    /* what it reads agrees, and it changes nothing */
	OSD_KV_READ_NOWAIT, /* the same, and OSD_E_WOULD_BLOCK instead of waiting for a lock */
};

struct osd_kv_stats {
	uint64_t commits, aborts, deadlocks, checkpoints;
	/* The present numbers: lockers, locks held or waited for, locked objects, open
	 * transactions. */
	uint64_t lockers, locks, locked_objects, transactions;
};

/* Why a transaction with changes was aborted. */
enum osd_kv_abort {
	OSD_KV_ABORTED_DEADLOCK,
	OSD_KV_ABORTED_NO_SPACE,
	OSD_KV_ABORTED_FAILURE,
	OSD_KV_ABORTED_CALLER, /* the caller aborted it, although no call had failed */
	OSD_KV_ABORTS
};

/* Counts transactions with changes; kept by the wrappers below; any thread. */
struct osd_kv_figures {
	struct osd_histogram seconds; /* from begin to end, either way */
	_Atomic uint64_t aborted[OSD_KV_ABORTS];
};

/* Returns false to end the scan.  Must not call the store. */
typedef bool osd_kv_scan_fn(void *arg, struct osd_bytes key, struct osd_bytes value);

struct osd_freeze; /* store/freeze.h */

struct osd_kv {
	const struct osd_kv_ops *ops;
	struct osd_freeze *freeze; /* borrowed; NULL: it cannot be frozen */
	struct osd_kv_figures figures;
};

struct osd_kv_txn {
	struct osd_kv *kv;
	/* Statistics of the wrappers. */
	uint64_t began_usec;	/* 0: it changes nothing */
	enum osd_status failed; /* the last call that did; OSD_OK: none */
	bool nowait;		/* OSD_KV_READ_NOWAIT */
};

struct osd_kv_ops {
	void (*close)(struct osd_kv *kv);
	enum osd_status (*begin)(struct osd_kv *kv, enum osd_kv_access access,
				 struct osd_kv_txn **ret_txn);
	enum osd_status (*commit)(struct osd_kv_txn *txn, enum osd_kv_commit how);
	void (*abort)(struct osd_kv_txn *txn);
	enum osd_status (*get)(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			       struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
			       size_t *ret_length);
	enum osd_status (*put)(struct osd_kv_txn *txn, enum osd_kv_table table,
			       struct osd_bytes key, struct osd_bytes value, unsigned flags);
	enum osd_status (*remove)(struct osd_kv_txn *txn, enum osd_kv_table table,
				  struct osd_bytes key);
	enum osd_status (*scan)(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
				struct osd_bytes from, size_t prefix_length, osd_kv_scan_fn *fn,
				void *arg);
	enum osd_status (*flush)(struct osd_kv *kv);
	enum osd_status (*checkpoint)(struct osd_kv *kv, bool force);
	void (*stats)(struct osd_kv *kv, struct osd_kv_stats *ret_stats);
};

/* No transaction may be open.  NULL is fine. */
void osd_kv_close(struct osd_kv *kv);
enum osd_status osd_kv_begin(struct osd_kv *kv, enum osd_kv_access access,
			     struct osd_kv_txn **ret_txn);
/* After OSD_E_CONFLICT, and after OSD_E_WOULD_BLOCK for a lock, each call and the commit fail: the caller
 * aborts the transaction.  Both consume it, whatever happens. */
enum osd_status osd_kv_commit(struct osd_kv_txn *txn, enum osd_kv_commit how);
void osd_kv_abort(struct osd_kv_txn *txn); /* NULL is fine */
/* txn NULL: a read without a transaction.  *ret_length is the full length of the value; the buffer
 * gets what fits.  OSD_E_NO_OBJECT: there is no such key. */
enum osd_status osd_kv_get(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			   struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
			   size_t *ret_length);
enum osd_status osd_kv_put(struct osd_kv_txn *txn, enum osd_kv_table table, struct osd_bytes key,
			   struct osd_bytes value, unsigned flags);
/* OSD_E_NO_OBJECT when there is no such key. */
enum osd_status osd_kv_remove(struct osd_kv_txn *txn, enum osd_kv_table table,
			      struct osd_bytes key);
/* Records in key order, from the first key >= from, as long as a key shares from's first
 * prefix_length bytes.  txn NULL: each record as committed when read. */
enum osd_status osd_kv_scan(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			    struct osd_bytes from, size_t prefix_length, osd_kv_scan_fn *fn,
			    void *arg);
/* Makes everything committed so far survive a power loss. */
enum osd_status osd_kv_flush(struct osd_kv *kv);
/* Bounds the next recovery; without force it acts only once enough log has been written. */
enum osd_status osd_kv_checkpoint(struct osd_kv *kv, bool force);
void osd_kv_stats(struct osd_kv *kv, struct osd_kv_stats *ret_stats);

struct osd_bdb_config {
	const char *directory;
	uint64_t cache_bytes; /* 0: default */
	uint64_t disk_bytes;  /* of the file system; log files are made to suit; 0: large */
	/* The disk is full: any thread, any number of times.  Whether there is room now: then the
	 * call fails with OSD_E_CONFLICT, and the transaction runs again; else OSD_E_NO_SPACE. */
	bool (*full)(void *arg);
	void *arg;
};
/* Opens the environment, or creates it, and runs its recovery.  The caller holds the store's
 * exclusive lock.  message: instructions for a person on failure. */
enum osd_status osd_bdb_open(const struct osd_bdb_config *config, char message[256],
			     struct osd_kv **ret_kv);

/* ---- data -------------------------------------------------------------------------------- */

/* A file is named by ids, never by outside data. */
struct osd_data_name {
	uint64_t partition_id;
	uint32_t incarnation; /* of the partition */
	uint64_t object_id;
	uint64_t generation; /* of the object's files; never used twice */
	bool tail;	     /* bytes from the head size on */
	bool sums;	     /* their checksums; store/sums.h alone */
};

struct osd_data_stat {
	uint64_t size;
	uint64_t allocated;   /* bytes of blocks the file has; holes have none */
	uint64_t modified_ms; /* since 1970 */
};

/* Calls, not bytes; counted by the wrappers below. */
struct osd_data_figures {
	_Atomic uint64_t reads, writes, errors;
};

/* A store may wrap another one.  Operations that it does not set are those of the inner one. */
struct osd_data {
	const struct osd_data_ops *ops;
	struct osd_data *inner;	   /* owned; NULL: it wraps none */
	struct osd_freeze *freeze; /* borrowed; NULL: it cannot be frozen */
	struct osd_data_figures figures;
	struct {
		void (*fn)(void *arg, const struct osd_data *data); /* NULL: nobody */
		void *arg;
	} full; /* a call failed with OSD_E_NO_SPACE: any thread, any number of times */
};

struct osd_data_file {
	struct osd_data *data;
	struct osd_data_file *inner; /* owned; NULL: the store wraps none */
};

enum osd_data_open_flags { OSD_DATA_CREATE = 1 };
enum osd_data_read_flags {
	OSD_DATA_READ_NOWAIT = 1,
	OSD_DATA_READ_CHECKED = 2, /* compared with the checksums, where they are kept */
	OSD_DATA_READ_DEVICE = 4,  /* bypass the page cache, where possible */
};
enum osd_data_copy_flags { OSD_DATA_COPY_BYTES = 1 /* read and write: share no blocks */ };

struct osd_data_ops {
	void (*close)(struct osd_data *data);
	enum osd_status (*open_file)(struct osd_data *data, const struct osd_data_name *name,
				     unsigned flags, struct osd_data_file **ret_file);
	void (*close_file)(struct osd_data_file *file);
	enum osd_status (*read)(struct osd_data_file *file, uint64_t offset, void *buffer,
				size_t length, unsigned flags, size_t *ret_read);
	enum osd_status (*write)(struct osd_data_file *file, uint64_t offset, const void *bytes,
				 size_t length);
	enum osd_status (*truncate)(struct osd_data_file *file, uint64_t size);
	enum osd_status (*zero)(struct osd_data_file *file, uint64_t offset, uint64_t length);
	enum osd_status (*stat)(struct osd_data_file *file, struct osd_data_stat *ret_stat);
	enum osd_status (*next_extent)(struct osd_data_file *file, uint64_t offset,
				       uint64_t *ret_start, uint64_t *ret_end);
	enum osd_status (*copy)(struct osd_data_file *from, uint64_t from_offset,
				struct osd_data_file *to, uint64_t to_offset, uint64_t length,
				unsigned flags);
	enum osd_status (*clone)(struct osd_data_file *from, struct osd_data_file *to);
	bool (*can_clone)(struct osd_data *data);
	enum osd_status (*sync)(struct osd_data_file *file);
	enum osd_status (*share)(struct osd_data_file *file, int *ret_fd);
	enum osd_status (*set_modified)(struct osd_data_file *file, uint64_t modified_ms);
	enum osd_status (*sync_directories)(struct osd_data *data,
					    const struct osd_data_name *name);
	enum osd_status (*link)(struct osd_data *data, const struct osd_data_name *from,
				const struct osd_data_name *to); /* NULL: it cannot */
	enum osd_status (*remove)(struct osd_data *data, const struct osd_data_name *name);
	enum osd_status (*remove_partition)(struct osd_data *data, uint64_t partition_id,
					    uint32_t incarnation);
	enum osd_status (*sync_all)(struct osd_data *data);
	enum osd_status (*capacity)(struct osd_data *data, uint64_t *ret_total, uint64_t *ret_free);
	/* The store's own descriptor of the file, if the kernel may use it directly to read or write
	 * that range with those bytes, or to sync (bytes NULL). -1: the store must do it.  May be NULL. */
	int (*plain_fd)(struct osd_data_file *file, uint64_t offset, const void *bytes,
			size_t length);
};

void osd_data_close(struct osd_data *data); /* no file may be open; NULL is fine */
/* Without OSD_DATA_CREATE: OSD_E_NO_OBJECT when there is no such file. */
enum osd_status osd_data_open_file(struct osd_data *data, const struct osd_data_name *name,
				   unsigned flags, struct osd_data_file **ret_file);
void osd_data_close_file(struct osd_data_file *file); /* NULL is fine */
/* Returns fewer bytes than requested only at the end of the file.  NOWAIT: OSD_E_WOULD_BLOCK
 * instead of waiting for the device.  OSD_E_SUM: the bytes are not those that were written. */
enum osd_status osd_data_read(struct osd_data_file *file, uint64_t offset, void *buffer,
			      size_t length, unsigned flags, size_t *ret_read);
/* Writes all, or fails; after a failure the file may hold a part of it. */
enum osd_status osd_data_write(struct osd_data_file *file, uint64_t offset, const void *bytes,
			       size_t length);
/* Sets the length, also to a larger one: new bytes read as zeros. */
enum osd_status osd_data_truncate(struct osd_data_file *file, uint64_t size);
/* Makes the range read as zeros; the size does not change. */
enum osd_status osd_data_zero(struct osd_data_file *file, uint64_t offset, uint64_t length);
enum osd_status osd_data_stat(struct osd_data_file *file, struct osd_data_stat *ret_stat);
/* The first range at or after offset that is not a hole; OSD_E_BEYOND_END: there is none.  It ends
 * at a block of the store or at the end of the file, so the next range may adjoin it. */
enum osd_status osd_data_next_extent(struct osd_data_file *file, uint64_t offset,
				     uint64_t *ret_start, uint64_t *ret_end);
/* Both files belong to the same kind of store, not necessarily to the same store.  Nothing is
 * written beyond the end of from; after a failure, to may hold a part of the bytes. */
enum osd_status osd_data_copy(struct osd_data_file *from, uint64_t from_offset,
			      struct osd_data_file *to, uint64_t to_offset, uint64_t length,
			      unsigned flags);
/* `to`, which is empty, becomes a copy of from.  The two share blocks until either is written.
 * OSD_E_UNSUPPORTED: cannot clone these files. */
enum osd_status osd_data_clone(struct osd_data_file *from, struct osd_data_file *to);
bool osd_data_can_clone(struct osd_data *data);
/* Makes its bytes and size survive a power loss; for its name see osd_data_sync_directories. */
enum osd_status osd_data_sync(struct osd_data_file *file);
/* A read-only descriptor of the same file, to be closed by the caller.  OSD_E_UNSUPPORTED: not with
 * this store. */
enum osd_status osd_data_share(struct osd_data_file *file, int *ret_fd);
enum osd_status osd_data_set_modified(struct osd_data_file *file, uint64_t modified_ms);
/* Makes the names of all files created so far survive a power loss. */
enum osd_status osd_data_sync_directories(struct osd_data *data, const struct osd_data_name *name);
/* Gives the file a second name; either may be removed.  OSD_E_NO_OBJECT: there is no such file;
 * OSD_E_EXISTS; OSD_E_UNSUPPORTED: not in this store. */
enum osd_status osd_data_link(struct osd_data *data, const struct osd_data_name *from,
			      const struct osd_data_name *to);
/* Removing an absent file is not an error. */
enum osd_status osd_data_remove(struct osd_data *data, const struct osd_data_name *name);
enum osd_status osd_data_remove_partition(struct osd_data *data, uint64_t partition_id,
					  uint32_t incarnation);
enum osd_status osd_data_sync_all(struct osd_data *data);
/* Bytes of the file system, without those it keeps back from ordinary users (as df(1) counts its
 * per cent), and how many of them are free. */
enum osd_status osd_data_capacity(struct osd_data *data, uint64_t *ret_total, uint64_t *ret_free);

/* Counts a read or write that was done on a plain descriptor. */
void osd_data_note(struct osd_data *data, bool is_write, enum osd_status status);

/* The caller keeps directory_fd open as long as the store.  direct: bypass the page cache, if
 * osd_direct_works (store/direct.h). */
enum osd_status osd_file_data_open(int directory_fd, bool direct, struct osd_data **ret_data);
/* Removes all files of checksums below the directory: turns checksums off. */
enum osd_status osd_file_data_remove_sums(int directory_fd);
/* A store for an absent device: every call fails with OSD_E_HEAD_ABSENT. */
enum osd_status osd_absent_data_open(struct osd_data **ret_data);

#endif
