/* SPDX-License-Identifier: GPL-2.0-or-later */
/* object.h -- the object layer: partitions, collections and user objects, their data and
 * attributes, independent of SCSI (design D5-D10).  Used by the command layer and by the proxies
 * alike, so a script's call and an initiator's command are the same operation.
 *
 * Order of calls: osd_objects_open; then any number of threads may use everything below; then
 * osd_objects_close once no reference and no transaction is left.
 *
 * Transactions.  Whatever changes or reads records takes a struct osd_txn, owned by one thread.
 * Nothing is visible to others before osd_txn_commit returns OSD_OK; then it survives kill -9 (and,
 * with OSD_COMMIT_DURABLE, power loss).  Any call with a transaction may return OSD_E_CONFLICT
 * (it lost a deadlock): the transaction is aborted, and the whole begins again.  osd_txn_run()
 * (object/txn_run.h) does that; work in a transaction is written as a function for it.  Within a
 * transaction touch objects in ascending (partition id, object id) order.
 *
 * Data calls (osd_object_read and kin) take an open object, not a transaction; each is atomic
 * against the others on the same object.  Do not call those that change data, nor osd_object_get,
 * while holding a transaction that has changed anything or, read-only, has read anything: they may
 * commit a reservation of their own, which would wait for that transaction (an assertion says so).
 *
 * Errors: OSD_E_NO_PARTITION, OSD_E_NO_OBJECT, OSD_E_EXISTS, OSD_E_QUOTA, OSD_E_NO_SPACE, ... as
 * base/status.h explains; OSD_E_PARAM_FIELD for an attribute that does not fit the object, is
 * read-only or has a bad value. */
#ifndef OSD_OBJECT_OBJECT_H
#define OSD_OBJECT_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/histogram.h"
#include "base/status.h"
#include "wire/osd2.h"

struct osd_objects; /* the object layer over one opened store */
struct osd_txn;
struct osd_object; /* reference to an open user object */

/* Which object: (0, 0) root, (pid, 0) partition, (pid, oid) collection or user object. */
struct osd_object_id {
	uint64_t partition_id;
	uint64_t object_id;
};

/* ---- the store as a whole ---------------------------------------------------------------- */

enum osd_durability { OSD_DURABILITY_PROCESS, OSD_DURABILITY_SYNC };

enum osd_io { OSD_IO_CACHED, OSD_IO_DIRECT /* data files past the page cache */ };

/* When the second root is absent at the start: refuse it, or go on with what lies elsewhere. */
enum osd_ssd_loss { OSD_SSD_LOSS_FAIL, OSD_SSD_LOSS_READ_THROUGH };

/* Which objects have their first bytes on the SSD, where there is one. */
enum osd_heads_policy {
	OSD_HEADS_FIRST,      /* all */
	OSD_HEADS_SMALL_ONLY, /* those that are no longer than their head size */
	OSD_HEADS_OFF,	      /* no new ones, but for those that are given a head size */
};
#define OSD_HEAD_AS_FORMATTED UINT64_MAX
#define OSD_HEAD_MAX	      (UINT64_C(1) << 40)

struct osd_heads_config {
	uint64_t head_bytes; /* of new objects, at most OSD_HEAD_MAX, or OSD_HEAD_AS_FORMATTED */
	enum osd_heads_policy policy;
	/* Per cent of the SSD: above high no new heads go there, below low the mover brings some
	 * back; 0: default */
	uint64_t high_percent, low_percent;
	uint64_t move_rate; /* bytes a second that the mover copies at most; 0: default */
	/* How many commands wait for a worker; any thread; the mover lets them go first.  NULL: none */
	unsigned (*commands_queued)(void *context);
	void *context;
};

struct osd_sums_config;
struct osd_test_stores; /* testing/stores.h */

struct osd_objects_config {
	const char *directory;	   /* data directory (superblock, db/, data); NULL: in memory (tests) */
	const char *ssd_directory; /* second root for heads, or NULL: one root */
	enum osd_ssd_loss on_ssd_loss;
	const struct osd_heads_config *heads; /* borrowed by open; NULL: defaults */
	const struct osd_sums_config *sums;   /* the same; object/sums.h */
	enum osd_io io;
	bool create;		 /* format an empty directory on first open */
	uint64_t capacity_bytes; /* 0: that of the file system */
	uint64_t cache_bytes;	 /* Berkeley DB cache; 0: default */
	enum osd_durability durability;
	bool strict;	/* refuse unassigned user-object pages 8h-7Fh (design D4) */
	uint8_t method; /* enum osd_security_method a store begins with, when made or formatted */
	const struct osd_test_stores *test; /* borrowed by open; NULL in the product (store/stand_in.h) */
	const char *product_serial; /* attribute 9000_0001h #8, <= 64 bytes; NULL: the store id */
};

/* Opens or formats the store and runs recovery.  On failure message tells a person what to do. */
enum osd_status osd_objects_open(const struct osd_objects_config *config, char message[256],
				 struct osd_objects **ret_objects);
/* Checkpoints and closes; NULL is fine. */
void osd_objects_close(struct osd_objects *objects);
/* How many times this store has been opened, this time included. */
uint64_t osd_objects_openings(const struct osd_objects *objects);
/* Never 0, which in a capability means that it does not matter. */
uint16_t osd_objects_boot_epoch(const struct osd_objects *objects);
#define OSD_SYSTEM_ID_BYTES 20
const uint8_t *osd_objects_system_id(const struct osd_objects *objects); /* borrowed */
const char *osd_objects_serial(const struct osd_objects *objects); /* product serial number; borrowed */
/* Keeps the store's files as they are, for a copy made by another process: see store/freeze.h.
 * OSD_E_BUSY: they are frozen already, or commands did not come to a point to wait at in wait_usec. */
enum osd_status osd_objects_freeze(struct osd_objects *objects, uint64_t wait_usec,
				   uint64_t freeze_usec);
/* False: the freeze had ended before, at its deadline. */
bool osd_objects_thaw(struct osd_objects *objects);
/* The clock of timestamps and of capabilities: ms since 1970. */
uint64_t osd_now_ms(void);
/* FORMAT OSD: retires everything in the store; capacity 0 = all.  No other call may be running
 * (the dispatcher sees to it). */
enum osd_status osd_objects_format(struct osd_objects *objects, uint64_t capacity_bytes);
/* Whether it would take that capacity: OSD_E_CDB_FIELD when it is too large. */
enum osd_status osd_objects_check_format(struct osd_objects *objects, uint64_t capacity_bytes);

/* The store's seal: 32 bytes beside its records, with which they can be encrypted.  create: made where
 * there is none.  OSD_E_NO_OBJECT: there is none; a store in memory has one for its lifetime. */
#define OSD_SEAL_BYTES 32
enum osd_status osd_objects_seal(struct osd_objects *objects, bool create,
				 uint8_t seal[OSD_SEAL_BYTES]);
/* Counts the changes of what the Policy/Security pages of the root and of partitions say, of the Attributes
 * Access pages of partitions, of policy access tags, and of secret keys, from 1. */
uint64_t osd_objects_policy_changes(const struct osd_objects *objects);
/* Rights depend on something that is different from now on; for keys security/ calls it. */
void osd_note_policy_change(struct osd_objects *objects);
/* fn is called after each such change, from any thread, with locks held: it only takes note.  NULL: no more.
 * Set while no transaction is open. */
void osd_objects_watch_policies(struct osd_objects *objects, void (*fn)(void *arg), void *arg);
/* fn is called, outside of any transaction, after a partition has gone (REMOVE PARTITION, FORMAT OSD),
 * and before whoever removed it is told.  Before any other thread uses objects. */
#define OSD_PARTITION_WATCHERS 4
void osd_objects_watch_partitions(struct osd_objects *objects,
				  void (*fn)(void *arg, uint64_t partition_id), void *arg);

/* ---- transactions ------------------------------------------------------------------------ */

#define OSD_TXN_RETRIES 10

enum osd_txn_flags {
	OSD_TXN_READ_ONLY = 1,
	OSD_TXN_NO_TIMESTAMPS = 2, /* CDB byte 12 = 7Fh */
	OSD_TXN_INTERNAL = 4,	   /* the target's own work: may set read-only and vendor pages */
	OSD_TXN_NOWAIT = 8, /* read-only ones: OSD_E_WOULD_BLOCK instead of waiting for a lock */
};

/* DURABLE (FUA): it survives power loss.  osd_txn_run() takes it among the flags. */
enum osd_commit { OSD_COMMIT_PROCESS = 0, OSD_COMMIT_DURABLE = 16 };

enum osd_status osd_txn_begin(struct osd_objects *objects, unsigned flags,
			      struct osd_txn **ret_txn);
/* Consumes the transaction, whatever it returns. */
enum osd_status osd_txn_commit(struct osd_txn *txn, enum osd_commit how);
/* Consumes the transaction; NULL is fine. */
void osd_txn_abort(struct osd_txn *txn);
static inline void osd_txn_abortp(struct osd_txn **txn)
{
	osd_txn_abort(*txn);
}
/* Long work (listings, queries, counts, the creation of many objects) inside txn ends with OSD_E_TASK_ABORTED once *stop, which is
 * atomic, borrowed, and may be NULL. */
void osd_txn_watch(struct osd_txn *txn, const bool *stop);
/* The same once goes_on, called for each record, returns false; then it goes on returning that.  watcher is
 * borrowed. */
struct osd_txn_watcher {
	bool (*goes_on)(void *arg);
	void *arg;
};
void osd_txn_watch_by(struct osd_txn *txn, const struct osd_txn_watcher *watcher);
/* About how many bytes of attributes and memberships it has changed: what can be cut into several
 * transactions is, by this. */
uint64_t osd_txn_weight(const struct osd_txn *txn);
/* What a provider of attribute pages has found out about the object at hand, so that all that one
 * command reads of it is of one moment: NULL until kept.  keep takes ownership (free()) and drops what
 * was kept before; it goes when a transaction that may write takes up another object, too.  In one that
 * only reads it may be of another object: the provider must look. */
void *osd_txn_kept(const struct osd_txn *txn);
void osd_txn_keep(struct osd_txn *txn, void *kept);
/* Run when the transaction has committed (committed true) or was aborted; in this order. */
enum osd_status osd_txn_on_end(struct osd_txn *txn, void (*fn)(void *arg, bool committed),
			       void *arg);

/* Records of higher layers in the same database (jobs and their keys, commands that run in steps),
 * ordered bytewise.
 * *ret_length is the record's true length, also when buffer is too small (then cut).
 * OSD_E_NO_OBJECT when absent. */
enum osd_table { OSD_TABLE_JOBS, OSD_TABLE_JOB_KEYS, OSD_TABLE_COMMANDS };
enum osd_status osd_txn_record_get(struct osd_txn *txn, enum osd_table table, const void *key,
				   size_t key_length, void *buffer, size_t capacity,
				   size_t *ret_length);
enum osd_status osd_txn_record_put(struct osd_txn *txn, enum osd_table table, const void *key,
				   size_t key_length, const void *value, size_t length);
/* OSD_E_EXISTS when the key is there. */
enum osd_status osd_txn_record_insert(struct osd_txn *txn, enum osd_table table, const void *key,
				      size_t key_length, const void *value, size_t length);
enum osd_status osd_txn_record_delete(struct osd_txn *txn, enum osd_table table, const void *key,
				      size_t key_length);
/* Calls fn for each record in key order until it returns false. */
enum osd_status osd_txn_record_each(struct osd_txn *txn, enum osd_table table,
				    bool (*fn)(void *arg, const uint8_t *key, size_t key_length,
					       const uint8_t *value, size_t length),
				    void *arg);

/* What these records take is charged to the partition of the job, beside its objects' data and attributes, or,
 * of a job that stands apart, beside those of such jobs: in txn, before to after bytes.  More is taken at
 * once, less is given back with the commit.  limited: OSD_E_QUOTA, OSD_E_NO_SPACE.  A partition that has gone needs nothing given back. */
enum osd_status osd_txn_charge_records(struct osd_txn *txn, struct osd_object_id job,
				       uint64_t before, uint64_t after, bool limited);
/* The same for what is found when the higher layer is opened. */
void osd_objects_charge_records(struct osd_objects *objects, struct osd_object_id job,
				uint64_t bytes);

/* ---- existence and life cycle ------------------------------------------------------------ */

/* Type of the object named; OSD_E_NO_PARTITION or OSD_E_NO_OBJECT. */
enum osd_status osd_object_type_of(struct osd_txn *txn, struct osd_object_id id,
				   enum osd_object_type *ret_type);
/* requested 0: the target picks max + 1 (ids of removed objects are not reused). */
enum osd_status osd_partition_create(struct osd_txn *txn, uint64_t requested_id, uint64_t *ret_id);
/* contents false: OSD_E_NOT_EMPTY unless empty; true: retires everything inside in O(1). */
enum osd_status osd_partition_remove(struct osd_txn *txn, uint64_t partition_id, bool contents);
/* Which of all partitions that ever had this id it is; it stays that until txn ends. */
enum osd_status osd_partition_incarnation(struct osd_txn *txn, uint64_t partition_id,
					  uint32_t *ret_incarnation);
/* count 1..OSD_CREATE_MAX consecutive ids; count > 1 needs requested_id 0.  *ret_first is the
 * lowest. */
enum osd_status osd_user_object_create(struct osd_txn *txn, uint64_t partition_id,
				       uint64_t requested_id, uint32_t count, uint64_t *ret_first);
/* Also drops its memberships.  Open references see OSD_E_NO_OBJECT from commit on. */
enum osd_status osd_user_object_remove(struct osd_txn *txn, struct osd_object_id id);
/* requested_id may be a well-known id (1000h-1081h) only inside an OSD_TXN_INTERNAL transaction. */
enum osd_status osd_collection_create(struct osd_txn *txn, uint64_t partition_id,
				      uint64_t requested_id, enum osd_collection_type type,
				      uint64_t *ret_id);
/* with_members false: OSD_E_NOT_EMPTY if it has members; true: drops memberships first (FCR). */
enum osd_status osd_collection_remove(struct osd_txn *txn, struct osd_object_id id,
				      bool with_members);
/* Membership by the target (tracking collections); clients join linked ones through page 4h. */
enum osd_status osd_collection_add(struct osd_txn *txn, struct osd_object_id collection,
				   uint64_t member);
enum osd_status osd_collection_drop(struct osd_txn *txn, struct osd_object_id collection,
				    uint64_t member);
enum osd_status osd_collection_has(struct osd_txn *txn, struct osd_object_id collection,
				   uint64_t member, bool *ret_has);

/* ---- listing ----------------------------------------------------------------------------- */

enum osd_list_kind {
	OSD_LIST_PARTITIONS,
	OSD_LIST_USER_OBJECTS,
	OSD_LIST_COLLECTIONS,
	OSD_LIST_MEMBERS
};

struct osd_list_request {
	enum osd_list_kind kind;
	struct osd_object_id in; /* partition, or for MEMBERS collection */
	uint64_t initial_id;	 /* first id wanted is >= this */
};

struct osd_list_result {
	size_t count;	  /* ids filled in, ascending */
	uint64_t next_id; /* first id that did not fit; 0: complete */
	/* All ids >= initial_id, fitted or not; UINT64_MAX: very many, of a list that is begun in
	 * the middle where no page ended.  What changes meanwhile may be counted or not. */
	uint64_t total_count;
};

enum osd_status osd_list(struct osd_txn *txn, const struct osd_list_request *request, uint64_t *ids,
			 size_t capacity, struct osd_list_result *ret_result);
/* The same without a walk over what does not fit: total_count means nothing. */
enum osd_status osd_list_uncounted(struct osd_txn *txn, const struct osd_list_request *request,
				   uint64_t *ids, size_t capacity,
				   struct osd_list_result *ret_result);

/* ---- data of user objects (no transaction; see above) ------------------------------------ */

#define OSD_JOB_RESERVE_BYTES (64u << 10)

enum osd_data_flags {
	OSD_DATA_NO_TIMESTAMPS = 1,
	OSD_DATA_FUA = 2, /* durable before return */
	OSD_DATA_NOWAIT =
		4, /* read only: OSD_E_WOULD_BLOCK instead of waiting for a lock or a disk */
	/* Output of surrogates: the first OSD_JOB_RESERVE_BYTES may come from the job reserve,
	 * whatever quotas say (design D13). */
	OSD_DATA_RESERVE = 8,
};

/* A reference to the user object, which the caller puts; it stays good when the object is removed, and
 * then is answered OSD_E_NO_OBJECT. */
enum osd_status osd_object_get(struct osd_objects *objects, struct osd_object_id id,
			       struct osd_object **ret_object);
/* The same if the object is in memory, else OSD_E_WOULD_BLOCK: never waits for a disk. */
enum osd_status osd_object_get_cached(struct osd_objects *objects, struct osd_object_id id,
				      struct osd_object **ret_object);
/* What a command must know before it changes an object; from memory when the object is in use. */
struct osd_look {
	enum osd_object_type type; /* user object or collection */
	bool unfinished;	   /* osd_surrogate_marked */
};
/* Not inside a transaction, as osd_object_get. */
enum osd_status osd_object_look(struct osd_objects *objects, struct osd_object_id id,
				struct osd_look *ret_look);
void osd_object_put(struct osd_object *object); /* NULL is fine */

/* What capabilities are compared with. */
struct osd_object_facts {
	struct osd_object_id id;
	enum osd_object_type type;
	uint32_t tag;	     /* policy access tag; 0 of the root */
	uint64_t created_ms; /* 0 of the root, and of what is to be made */
	uint16_t boot_epoch; /* the store's */
	bool surrogate;	     /* it was made as that of a job */
	bool to_be_made;     /* as it will be */
	bool missing;	     /* there is none: type may be several or'ed, the rest means nothing */
};
/* Of an open object, from memory; tag as without with_tag below. */
void osd_object_facts(struct osd_object *object, struct osd_object_facts *ret_facts);
/* By id, from memory, or the record where it must.  Not inside a transaction, as osd_object_get.
 * with_tag: the tag is wanted even where it is not in memory, which is so of partitions, and of objects
 * in a store of the first release; without, it is 0 there. */
enum osd_status osd_objects_facts(struct osd_objects *objects, struct osd_object_id id,
				  bool with_tag, struct osd_object_facts *ret_facts);
/* As of the transaction. */
enum osd_status osd_txn_facts(struct osd_txn *txn, struct osd_object_id id, bool with_tag,
			      struct osd_object_facts *ret_facts);
/* Of an object that is about to be made in the partition; OSD_E_NO_PARTITION. */
enum osd_status osd_objects_facts_made(struct osd_objects *objects, enum osd_object_type type,
				       struct osd_object_id id, struct osd_object_facts *ret_facts);
static inline void osd_object_putp(struct osd_object **object)
{
	osd_object_put(*object);
}
/* Reads up to length bytes; *ret_read < length where the object ends.  OSD_OK either way. */
enum osd_status osd_object_read(struct osd_object *object, uint64_t offset, void *buffer,
				size_t length, unsigned flags, size_t *ret_read);
/* A range of the object whose bytes lie in a buffer behind those of the piece before. */
struct osd_piece {
	uint64_t offset, length;
};
/* All pieces as of one moment, each in its slot of the buffer and filled up with zeros where the
 * object ends; slots behind capacity are left out.  *ret_available: how many bytes of all pieces
 * the object has. */
enum osd_status osd_object_read_pieces(struct osd_object *object, const struct osd_piece *pieces,
				       size_t count, void *buffer, size_t capacity, unsigned flags,
				       uint64_t *ret_available);
/* Changes: offsets and lengths in bytes, flags of enum osd_data_flags, in effect a transaction each.
 * append: *ret_offset is where the data begins.  clear: zeros, and the object grows where it ends before
 * them.  punch: takes the range out, and what is behind it moves up.  truncate: also longer. */
enum osd_status osd_object_write(struct osd_object *object, uint64_t offset, const void *data,
				 size_t length, unsigned flags);
enum osd_status osd_object_append(struct osd_object *object, const void *data, size_t length,
				  unsigned flags, uint64_t *ret_offset);
enum osd_status osd_object_clear(struct osd_object *object, uint64_t offset, uint64_t length,
				 unsigned flags);
/* A PUNCH that moves much asks before each piece whether it goes on. */
struct osd_change_steps {
	/* So many bytes are moved next.  False: the change ends with OSD_E_TASK_ABORTED, and the object is
	 * as it was before. */
	bool (*go_on)(void *arg, uint64_t bytes);
	/* It waits for the disk next; may be NULL. */
	void (*rest)(void *arg);
	void *arg;
};
/* OSD_E_BEYOND_END when offset > length of the object.  steps may be NULL. */
enum osd_status osd_object_punch(struct osd_object *object, uint64_t offset, uint64_t length,
				 const struct osd_change_steps *steps, unsigned flags);
enum osd_status osd_object_truncate(struct osd_object *object, uint64_t length, unsigned flags);

/* Any of these changes, described: nobody sees a part of it, whatever its size and however many
 * pieces it has. */
enum osd_change_kind {
	OSD_CHANGE_WRITE,  /* pieces, data */
	OSD_CHANGE_APPEND, /* data, length */
	OSD_CHANGE_CLEAR,  /* offset, length */
	OSD_CHANGE_PUNCH,  /* offset, length */
};
struct osd_change {
	enum osd_change_kind kind;
	unsigned flags; /* enum osd_data_flags */
	uint64_t offset, length;
	const struct osd_piece *pieces; /* borrowed, in the order in which they are written */
	size_t piece_count;
	const void *data; /* borrowed; the pieces' bytes back to back */
	const struct osd_change_steps *steps; /* borrowed; NULL: it runs through */
	/* Results */
	uint64_t start; /* where APPEND began */
	int64_t growth; /* of the length */
};
enum osd_status osd_object_change(struct osd_object *object, struct osd_change *change);

/* The same together with changes of records, in effect one transaction.  fn is called in txn before
 * the data changes (done false: change attributes, and find out whether those to be got can be) and
 * after it (done true: get them).  What fn or the change itself refuses has changed nothing.  Both
 * calls may be repeated after OSD_E_CONFLICT. */
struct osd_change_with {
	unsigned txn_flags;
	enum osd_status (*fn)(void *arg, struct osd_txn *txn, bool done);
	void *arg;
};
enum osd_status osd_object_change_with(struct osd_object *object, struct osd_change *change,
				       const struct osd_change_with *with);
/* Bytes from here on lie behind the object's head; UINT64_MAX: none do. */
uint64_t osd_object_head_bytes(struct osd_object *object);
enum osd_status osd_object_length(struct osd_object *object, uint64_t *ret_length);
enum osd_map_type {
	OSD_MAP_ALL = 0x0000, /* asked for only */
	OSD_MAP_DATA = 0x0001,
	OSD_MAP_HOLE = 0x0002,
	OSD_MAP_DAMAGED_DATA = 0x0003,
	OSD_MAP_DAMAGED_ATTRIBUTES = 0x8000,
};
struct osd_extent {
	enum osd_map_type type;
	uint64_t offset, length;
};
/* Returns false when it has seen enough.  Must not call this layer. */
typedef bool osd_map_fn(void *arg, const struct osd_extent *extent);
/* Data, holes and damage that is known of from offset to the end, in order and as of one moment; no
 * change comes between.  Damaged attributes have length 0.
 * OSD_E_BEYOND_END when offset > length of the object. */
enum osd_status osd_object_map(struct osd_object *object, uint64_t offset, osd_map_fn *fn,
			       void *arg);
enum osd_status osd_object_flush(struct osd_object *object);
/* Everything in the partition (or, id (0,0), in the store): data, directories, log. */
enum osd_status osd_objects_flush(struct osd_objects *objects, struct osd_object_id id);

/* ---- user objects that come into being together with their data -------------------------- */

/* Begin; write or copy; perhaps sync; then, in a transaction that may also set attributes of the new
 * object, put; free.  Until that transaction has committed there is no object, and if it does not,
 * there never was.  A draft belongs to one thread. */
struct osd_draft;
/* requested_id 0: the target picks.  OSD_E_EXISTS also comes from put: when the id was picked, begin
 * again. */
enum osd_status osd_draft_begin(struct osd_objects *objects, uint64_t partition_id,
				uint64_t requested_id, struct osd_draft **ret_draft);
/* Once, or copy.  *ret_length: how long the object will be. */
enum osd_status osd_draft_write(struct osd_draft *draft, const struct osd_piece *pieces,
				size_t count, const void *data, uint64_t *ret_length);
enum osd_copy_method {
	OSD_COPY_ANY,	/* whatever is fastest */
	OSD_COPY_BYTES, /* no block in common */
	OSD_COPY_SHARE, /* nothing but common blocks; OSD_E_UNSUPPORTED: not in this store */
};
/* The data of source as of one moment: it cannot be changed from here until let_go or free.  stop is
 * asked now and then; true: OSD_E_TASK_ABORTED.  May be NULL.  OSD_E_NO_OBJECT: there is no source;
 * OSD_E_NO_PARTITION: the draft's is gone. */
enum osd_status osd_draft_copy(struct osd_draft *draft, struct osd_object_id source,
			       enum osd_copy_method method, bool (*stop)(void *arg), void *arg,
			       uint64_t *ret_length);
void osd_draft_let_go(struct osd_draft *draft);
/* FUA, or durability sync: data and directories. */
enum osd_status osd_draft_sync(struct osd_draft *draft, unsigned flags);
enum osd_status osd_draft_put(struct osd_txn *txn, struct osd_draft *draft, uint64_t *ret_id);
void osd_draft_free(struct osd_draft *draft); /* NULL is fine */
static inline void osd_draft_freep(struct osd_draft **draft)
{
	osd_draft_free(*draft);
}
/* Application attributes and the user name; not memberships, quotas, security. */
enum osd_status osd_copy_attributes(struct osd_txn *txn, struct osd_object_id from,
				    struct osd_object_id to);
/* Whether OSD_COPY_SHARE works here. */
bool osd_objects_can_share_blocks(struct osd_objects *objects);

/* Read-only descriptors for a sandbox (design D19).  The caller owns and closes the descriptors. */
struct osd_share {
	int head_fd;	/* bytes [0, head_bytes); -1: the object has no data yet */
	int tail_fd;	/* bytes [head_bytes, ...), or -1 */
	int version_fd; /* 4 KiB memfd: be-free native uint64 at 0, even = stable, odd = writing;
			   at 8 the logical length; at 16 nonzero once removed;
			   at 24 a number that changes when these files stop being the
			   object's (next generation): holders then ask again */
	uint64_t head_bytes; /* UINT64_MAX: everything is in the head file */
	uint64_t length;
};
/* The beginning of a tail is read ahead, into the kernel's cache. */
#define OSD_SHARE_AHEAD_BYTES (16 << 20)
/* OSD_E_UNSUPPORTED: this store has no descriptors (in memory); read through osd_object_read. */
enum osd_status osd_object_share(struct osd_object *object, struct osd_share *ret_share);
/* The holder of an osd_object_share is gone. */
void osd_object_unshare(struct osd_object *object);

/* ---- attributes -------------------------------------------------------------------------- */

/* Value of one attribute into buffer; *ret_length 0: undefined.  capacity >=
 * OSD_ATTRIBUTE_MAX always fits.  A page that does not match the object's type: OSD_E_PARAM_FIELD. */
enum osd_status osd_attr_get(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			     uint32_t number, uint8_t *buffer, size_t capacity, size_t *ret_length);
/* Keeps others from changing the object or its attributes until the transaction ends: what is read
 * of them afterwards stays true.  First of all in the transaction. */
enum osd_status osd_object_hold(struct osd_txn *txn, struct osd_object_id id);
/* length 0 makes the attribute undefined.  Setting the logical length truncates after commit. */
enum osd_status osd_attr_set(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			     uint32_t number, const uint8_t *value, size_t length);
/* Defined attributes of a page (or OSD_PAGE_ALL), in order; stops at fn's first non-OK, returns it.
 */
typedef enum osd_status osd_attr_fn(void *arg, uint32_t page, uint32_t number, const uint8_t *value,
				    size_t length);
enum osd_status osd_attr_each(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			      osd_attr_fn *fn, void *arg);
/* The attribute with that number of every page that has it, in the order of pages. */
enum osd_status osd_attr_each_page(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
				   osd_attr_fn *fn, void *arg);
/* The standard attributes, a line each, tab separated: page, its name, numbers, bytes of a value,
 * settable (no, yes, inherited), what it is. */
void osd_attr_print_table(FILE *out);
/* What its used capacity is in the transaction. */
enum osd_status osd_object_used(struct osd_txn *txn, struct osd_object_id id, uint64_t *ret_used);
/* What isolation method 0 of a CDB means (root information 110h). */
uint8_t osd_objects_isolation(struct osd_objects *objects);
/* The page's own fixed form from its byte 0 (osd2-wire 5.6), as much as fits; *ret_length all of
 * it, 8 with PAGE LENGTH 0 where the page has none.  OSD_E_PARAM_FIELD: no page of this object. */
enum osd_status osd_attr_page_form(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				   uint8_t *buffer, size_t capacity, size_t *ret_length);

/* Damage (Error Recovery pages, relative number 6, of every type): who finds or mends it sets the
 * page's attributes (OSD_DAMAGE_*) in an OSD_TXN_INTERNAL transaction; unset ones read as zero. */

/* ---- jobs' marks on objects (design D13): kept in the object record ---------------------- */

/* Where a job's objects are: among the partition's data, or apart.  Those that stand apart have ids from
 * OSD_JOB_IDS_FIRST to OSD_JOB_IDS_LAST, none of which is given out twice.  Lists of the partition's user
 * objects, queries of all of them, counts and quotas leave them out; commands that name them, and the
 * collection of jobs, do not. */
enum osd_job_place { OSD_JOB_AMONG_DATA, OSD_JOB_APART };
enum osd_job_place osd_job_place_of(struct osd_object_id job);

/* Makes count 1.. consecutive user objects that are marked; requested_id as for one, 0 of those apart.
 * *ret_first is the lowest. */
enum osd_status osd_surrogates_create(struct osd_txn *txn, uint64_t partition_id,
				      enum osd_job_place where, uint64_t requested_id,
				      uint32_t count, uint64_t *ret_first);
/* An object, where the job's are, for a result that is too long for its record; mark: for one made before these
 * had a mark.  Only those may read it who may read the surrogate. */
enum osd_status osd_companion_create(struct osd_txn *txn, struct osd_object_id job,
				     uint64_t *ret_id);
enum osd_status osd_companion_mark(struct osd_txn *txn, struct osd_object_id id);
/* While marked, the object is an unfinished surrogate: every client change but page 2000_0003h is
 * refused by the dispatcher with OSD_E_JOB_IN_WAY. */
enum osd_status osd_surrogate_mark(struct osd_txn *txn, struct osd_object_id id, bool unfinished);
enum osd_status osd_surrogate_marked(struct osd_txn *txn, struct osd_object_id id,
				     bool *ret_unfinished);

/* ---- structure check --------------------------------------------------------------------- */

struct osd_check_result {
	uint64_t objects;    /* damaged user objects and collections */
	uint64_t containers; /* partitions damaged themselves: counters, records of no object */
};
/* Looks at every object of the partition (0: of the store) while others go on, and keeps what it
 * finds in the Error Recovery pages.  stop: as in osd_draft_copy. */
enum osd_status osd_objects_check(struct osd_objects *objects, uint64_t partition_id,
				  bool (*stop)(void *arg), void *arg,
				  struct osd_check_result *ret_result);

/* ---- figures ----------------------------------------------------------------------------- */

struct osd_objects_stats {
	uint64_t capacity_bytes, used_bytes;
	uint64_t partition_count, object_count;
	uint64_t commits, aborts, retries, checkpoints;
	double recovery_seconds;
};

/* What a control socket shows of the store, since it was opened; borrowed until it is closed. */
struct osd_objects_figures {
	const struct osd_histogram *transactions; /* those that were to change something */
	struct {
		const char *why;
		uint64_t count;
	} aborted[4];
	struct {
		const char *tier;
		uint64_t reads, writes, errors; /* calls of the file system */
		uint64_t bytes;			/* of heads there */
	} tiers[2];				/* a NULL tier: there is none */
};
void osd_objects_figures(struct osd_objects *objects, struct osd_objects_figures *ret_figures);
void osd_objects_stats(struct osd_objects *objects, struct osd_objects_stats *ret_stats);

#endif
