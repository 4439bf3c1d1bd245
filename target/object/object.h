/* SPDX-License-Identifier: GPL-2.0-or-later */
/* object.h -- the object layer: partitions, collections and user objects, their attributes and data (user_object.h),
 * independent of SCSI.  The command layer and the proxies both use it, so a script's
 * call and an initiator's command are the same operation.
 *
 * Order of calls: osd_objects_open; then any number of threads may use everything below; then
 * osd_objects_close once no reference and no transaction is left.
 *
 * Transactions.  A function that changes or reads records takes a struct osd_txn, which belongs to one
 * thread.  Nothing is visible to others before osd_txn_commit returns OSD_OK; then it survives kill -9
 * (and, with OSD_COMMIT_DURABLE, power loss).  Any call with a transaction may return OSD_E_CONFLICT
 * (it lost a deadlock): abort the transaction and begin again. osd_txn_run() (object/txn_run.h) does
 * that for a function that does the work.  Within a transaction, use objects in ascending (partition
 * id, object id) order.
 *
 * Data calls (osd_object_read and kin) take an open object, not a transaction; each is atomic against
 * the others on the same object.  Do not call osd_object_get, or a function that changes data, while
 * the thread holds a transaction that has changed anything, or a read-only one that has read anything.
 * They may commit a reservation of their own, which would wait for that transaction.  An assertion
 * checks this.
 *
 * Errors: base/status.h explains OSD_E_NO_PARTITION, OSD_E_NO_OBJECT, OSD_E_EXISTS and the others.
 * OSD_E_PARAM_FIELD: an attribute does not fit the object, is read-only or has a bad value. */
#ifndef OSD_OBJECT_OBJECT_H
#define OSD_OBJECT_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/histogram.h"
#include "base/status.h"
#include "base/util.h"
#include "wire/cursor.h"
#include "wire/osd2.h"

struct osd_objects; /* the object layer over one opened store */
struct osd_txn;
struct osd_object; /* reference to an open user object */

/* Names an object: (0, 0) the root, (pid, 0) a partition, (pid, oid) a collection or user object. */
struct osd_object_id {
	uint64_t partition_id;
	uint64_t object_id;
};
static inline bool osd_same_id(struct osd_object_id a, struct osd_object_id b)
{
	return a.object_id == b.object_id && a.partition_id == b.partition_id;
}

/* The version of a user object's data, or of a collection's members (object/data_version.h).  Two versions
 * are the same if both fields are.  Neither field says how many changes there were. */
struct osd_data_version {
	uint64_t counter;
	uint32_t opening;
};
static inline void osd_version_encode(struct osd_data_version version,
				      uint8_t bytes[OSD_VERSION_BYTES])
{
	osd_put_be(bytes, version.counter, 8);
	osd_put_be(bytes + 8, version.opening, 4);
}
static inline bool osd_same_version(struct osd_data_version a, struct osd_data_version b)
{
	return a.counter == b.counter && a.opening == b.opening;
}

/* ---- the store as a whole ---------------------------------------------------------------- */

enum osd_durability { OSD_DURABILITY_PROCESS, OSD_DURABILITY_SYNC };

enum osd_io { OSD_IO_CACHED, OSD_IO_DIRECT /* data files past the page cache */ };

/* If the SSD folder is absent at the start: refuse to open, or serve the data that is elsewhere. */
enum osd_ssd_loss { OSD_SSD_LOSS_FAIL, OSD_SSD_LOSS_READ_THROUGH };

/* The objects that have their first bytes on the SSD, if there is one. */
enum osd_heads_policy {
	OSD_HEADS_FIRST,      /* all */
	OSD_HEADS_SMALL_ONLY, /* those that are no longer than their head size */
	OSD_HEADS_OFF,	      /* no new ones, except those with a head size of their own */
};
#define OSD_HEAD_AS_FORMATTED UINT64_MAX
#define OSD_HEAD_MAX	      (UINT64_C(1) << 40)

struct osd_heads_config {
	uint64_t head_bytes; /* of new objects, at most OSD_HEAD_MAX, or OSD_HEAD_AS_FORMATTED */
	enum osd_heads_policy policy;
	/* Percent of the SSD: above high, new heads go elsewhere; below low, the mover brings heads
	 * back; 0: default */
	uint64_t high_percent, low_percent;
	uint64_t move_rate; /* bytes a second that the mover copies at most; 0: default */
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
	uint64_t cache_bytes;	 /* Berkeley DB cache; 0: default */
	enum osd_durability durability;
	uint8_t method; /* enum osd_security_method a store begins with, when made or formatted */
	/* The number of commands that wait for a worker, for which mover and scrub pause.  Any thread
	 * calls it.  NULL: none */
	unsigned (*commands_queued)(void *context);
	void *context;
	const struct osd_test_stores
		*test; /* borrowed by open; NULL in the product (store/stand_in.h) */
};

/* Opens or formats the store and runs recovery.  On failure, message has instructions for a person. */
enum osd_status osd_objects_open(const struct osd_objects_config *config, char message[256],
				 struct osd_objects **ret_objects);
/* Checkpoints and closes; NULL is fine. */
void osd_objects_close(struct osd_objects *objects);
/* How many times this store has been opened, this time included. */
uint64_t osd_objects_openings(const struct osd_objects *objects);
/* The number of the boot epoch.  It is never 0, which in a capability means "any". */
uint16_t osd_objects_boot_epoch(const struct osd_objects *objects);
#define OSD_SYSTEM_ID_BYTES 20
const uint8_t *osd_objects_system_id(const struct osd_objects *objects); /* borrowed */
const char *
osd_objects_serial(const struct osd_objects *objects); /* product serial number; borrowed */
/* Keeps the store's files as they are, for a copy made by another process: see store/freeze.h.
 * OSD_E_BUSY: they are frozen already, or open transactions did not end within wait_usec. */
enum osd_status osd_objects_freeze(struct osd_objects *objects, uint64_t wait_usec,
				   uint64_t freeze_usec);
/* False: the freeze had ended before, at its deadline. */
bool osd_objects_thaw(struct osd_objects *objects);
/* FORMAT OSD: retires everything in the store; capacity 0 = all.  No other call may be running
 * (the dispatcher sees to it). */
enum osd_status osd_objects_format(struct osd_objects *objects, uint64_t capacity_bytes);
/* Whether osd_objects_format would accept that capacity.  OSD_E_CDB_FIELD: it is too large. */
enum osd_status osd_objects_check_format(struct osd_objects *objects, uint64_t capacity_bytes);

/* The store's seal: 32 bytes in a file beside its database, for the encryption of records. create:
 * makes one if there is none.  OSD_E_NO_OBJECT: there is none.  A store in memory has one for its
 * lifetime. */
#define OSD_SEAL_BYTES 32
enum osd_status osd_objects_seal(struct osd_objects *objects, bool create,
				 uint8_t seal[OSD_SEAL_BYTES]);
/* A counter, from 1, of changes that affect rights: in the Policy/Security pages of the root and of
 * partitions, in the Attributes Access pages of partitions, in policy access tags, and in secret keys. */
uint64_t osd_objects_policy_changes(const struct osd_objects *objects);
/* Counts such a change. security/ calls it for keys. */
void osd_note_policy_change(struct osd_objects *objects);
/* fn is called after each such change, from any thread, with locks held, so it must only set a flag.
 * NULL ends the calls.  Call this while no transaction is open. */
void osd_objects_watch_policies(struct osd_objects *objects, void (*fn)(void *arg), void *arg);
/* fn is called after a partition was removed (REMOVE PARTITION, FORMAT OSD), outside of any
 * transaction, and before the remover gets its answer.  Call this before any other thread uses objects. */
#define OSD_PARTITION_WATCHERS 4
void osd_objects_watch_partitions(struct osd_objects *objects,
				  void (*fn)(void *arg, uint64_t partition_id), void *arg);

/* fn is called in each transaction that removes a user object or, with object_id 0, a partition.  It removes what a
 * higher layer keeps of it.  The caller of the removal gets its status; osd_txn_first (txn_run.h) is possible.
 * FORMAT OSD does not call it.  Set while no transaction is open. */
typedef enum osd_status osd_removal_fn(void *arg, struct osd_txn *txn, struct osd_object_id id);
#define OSD_REMOVAL_WATCHERS 2 /* with different args */
void osd_objects_watch_removals(struct osd_objects *objects, osd_removal_fn *fn, void *arg);
/* Ends the watch that was begun with this arg; none is fine.  No transaction is under way. */
void osd_objects_unwatch_removals(struct osd_objects *objects, const void *arg);

/* The timers of the unit: a part that is opened above the store may add its own. */
struct osd_timers;
struct osd_timers *osd_objects_timers(struct osd_objects *objects);

/* ---- transactions ------------------------------------------------------------------------ */

#define OSD_TXN_RETRIES 10

enum osd_txn_flags {
	OSD_TXN_READ_ONLY = 1,
	OSD_TXN_NO_TIMESTAMPS = 2, /* CDB byte 12 = 7Fh */
	OSD_TXN_INTERNAL = 4,	   /* the target's own work: may set read-only and vendor pages */
	OSD_TXN_CHECKED = 32, /* the checks of what it changes were asked (hooks.h) */
	OSD_TXN_NOWAIT = 8, /* read-only ones: OSD_E_WOULD_BLOCK instead of waiting for a lock */
};

/* DURABLE (FUA): the commit survives power loss. osd_txn_run() takes it among the flags. */
enum osd_commit { OSD_COMMIT_PROCESS = 0, OSD_COMMIT_DURABLE = 16 };

enum osd_status osd_txn_begin(struct osd_objects *objects, unsigned flags,
			      struct osd_txn **ret_txn);
/* Consumes the transaction, whatever it returns. */
enum osd_status osd_txn_commit(struct osd_txn *txn, enum osd_commit how);
/* Consumes the transaction; NULL is fine. */
void osd_txn_abort(struct osd_txn *txn);
struct osd_objects *osd_txn_objects(const struct osd_txn *txn);
OSD_DEFINE_CLEANUP(struct osd_txn *, osd_txn_abort)
/* A read-only transaction releases its locks.  Its next read sees later commits. */
void osd_txn_release_reads(struct osd_txn *txn);
/* Long work inside txn (listings, queries, counts, the creation of many objects) ends with
 * OSD_E_TASK_ABORTED once *stop is true. stop is atomic and borrowed, and may be NULL. */
void osd_txn_watch(struct osd_txn *txn, const bool *stop);
/* The same once goes_on returns false, which it must then continue to do.  It is called for each
 * record. watcher is borrowed. */
struct osd_txn_watcher {
	bool (*goes_on)(void *arg);
	void *arg;
};
void osd_txn_watch_by(struct osd_txn *txn, const struct osd_txn_watcher *watcher);
/* The principal that sets or gets attributes from here on, borrowed; NULL: the target, or a script.  It is kept with each
 * function that it attaches (stack.h, hooks.h), and providers of pages may ask for it. */
void osd_txn_act_for(struct osd_txn *txn, const char *principal);
const char *osd_txn_acts_for(const struct osd_txn *txn);
/* About how many bytes of attributes and memberships the transaction has changed.  Long work uses it to
 * decide where the next transaction begins. */
uint64_t osd_txn_weight(const struct osd_txn *txn);
/* Data that a provider of attribute pages has read about the object at hand, so that all values of one
 * command are of one moment. kept: NULL if there is none. keep takes ownership (free()) and frees
 * earlier data.  A transaction that may write frees it when it takes up another object.  A read-only
 * one does not, so the provider must check which object the data is about. */
void *osd_txn_kept(const struct osd_txn *txn);
void osd_txn_keep(struct osd_txn *txn, void *kept);
/* fn runs once: after the commit (committed true) or the abort, or at once if this fails.  Several of them run in the
 * order of these calls. */
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
/* Calls fn for each record whose key begins with the prefix, in key order, until it returns false.
 * In a transaction that changes the store, what it reads stays locked until the end. */
enum osd_status osd_txn_record_each(struct osd_txn *txn, enum osd_table table, const void *prefix,
				    size_t prefix_length,
				    bool (*fn)(void *arg, const uint8_t *key, size_t key_length,
					       const uint8_t *value, size_t length),
				    void *arg);

/* In txn, changes the charge for these records from before to after bytes.  It is charged to the
 * partition of the job, or, for a job that stands apart, to the partition's account of such jobs.  An
 * increase is charged now, a decrease is given back with the commit. limited: OSD_E_QUOTA,
 * OSD_E_NO_SPACE. For a removed partition a decrease does nothing. */
enum osd_status osd_txn_charge_records(struct osd_txn *txn, struct osd_object_id job,
				       uint64_t before, uint64_t after, bool limited);
/* The same for records found when the higher layer is opened. */
void osd_objects_charge_records(struct osd_objects *objects, struct osd_object_id job,
				uint64_t bytes);

/* ---- existence and life cycle ------------------------------------------------------------ */

/* Type of the object named; OSD_E_NO_PARTITION or OSD_E_NO_OBJECT. */
enum osd_status osd_object_type_of(struct osd_txn *txn, struct osd_object_id id,
				   enum osd_object_type *ret_type);
/* requested 0: the target picks max + 1 (ids of removed objects are not reused). */
enum osd_status osd_partition_create(struct osd_txn *txn, uint64_t requested_id, uint64_t *ret_id);
/* contents false: OSD_E_NOT_EMPTY unless empty; true: retires everything inside in O(1).  Calls
 * osd_removal_fn for the partition alone. */
enum osd_status osd_partition_remove(struct osd_txn *txn, uint64_t partition_id, bool contents);
/* The incarnation: it distinguishes the partition from all others that ever had this id.  The partition
 * is not removed before txn ends. */
enum osd_status osd_partition_incarnation(struct osd_txn *txn, uint64_t partition_id,
					  uint32_t *ret_incarnation);
/* count 1..OSD_CREATE_MAX consecutive ids; count > 1 needs requested_id 0.  *ret_first is the
 * lowest. */
enum osd_status osd_user_object_create(struct osd_txn *txn, uint64_t partition_id,
				       uint64_t requested_id, uint32_t count, uint64_t *ret_first);
/* Makes one with the next free id, which osd_name_put() is to give its first name. */
enum osd_status osd_user_object_begin(struct osd_txn *txn, uint64_t partition_id, uint64_t *ret_id);
/* Also drops its memberships and calls osd_removal_fn.  Open references see OSD_E_NO_OBJECT from commit
 * on. */
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
	/* The number of all ids >= initial_id, also of those that did not fit.  UINT64_MAX: very many,
	 * if the listing begins in the middle where no page ended.  Changes meanwhile may be counted or
	 * not. */
	uint64_t total_count;
};

enum osd_status osd_list(struct osd_txn *txn, const struct osd_list_request *request, uint64_t *ids,
			 size_t capacity, struct osd_list_result *ret_result);
/* The same without a count of the ids that do not fit: total_count is undefined. */
enum osd_status osd_list_uncounted(struct osd_txn *txn, const struct osd_list_request *request,
				   uint64_t *ids, size_t capacity,
				   struct osd_list_result *ret_result);

/* ---- attributes -------------------------------------------------------------------------- */

/* Reads the value of one attribute; *ret_length 0: undefined.  A capacity of OSD_ATTRIBUTE_MAX always
 * suffices.  OSD_E_PARAM_FIELD: the page does not match the object's type. */
enum osd_status osd_attr_get(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			     uint32_t number, uint8_t *buffer, size_t capacity, size_t *ret_length);
/* Locks the object and its attributes against changes by other transactions until this one ends, so
 * that values read afterwards stay valid.  It must be the first call of the transaction. */
enum osd_status osd_object_hold(struct osd_txn *txn, struct osd_object_id id);
/* Keeps the data of a user object, or of its source, as they are while a transaction compares their version, and until it
 * has committed.  The caller begins and ends it outside of transactions. */
struct osd_pin;
/* Waits for changes under way.  OSD_E_NO_OBJECT: it or its source has been removed.  The object is borrowed until the
 * end. */
enum osd_status osd_pin_begin(struct osd_object *object, struct osd_pin **ret_pin);
/* In each attempt of the transaction, after osd_object_hold and before anything else: when the transaction has
 * committed, data may change again.  OSD_E_BUSY: a length that another transaction has set is about to take effect;
 * only the end of the pin lets it. */
enum osd_status osd_pin_hold(struct osd_pin *pin, struct osd_txn *txn);
void osd_pin_end(struct osd_pin *pin); /* NULL is fine */
/* length 0 makes the attribute undefined.  Setting the logical length truncates after commit. */
enum osd_status osd_attr_set(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			     uint32_t number, const uint8_t *value, size_t length);
/* Calls fn for the defined attributes of a page, or of all pages (OSD_PAGE_ALL), in order.  The first
 * status of fn other than OSD_OK ends the walk and is returned. */
typedef enum osd_status osd_attr_fn(void *arg, uint32_t page, uint32_t number, const uint8_t *value,
				    size_t length);
enum osd_status osd_attr_each(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			      osd_attr_fn *fn, void *arg);
/* Calls fn for the attribute with that number of every page that has it, in the order of pages. */
enum osd_status osd_attr_each_page(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
				   osd_attr_fn *fn, void *arg);
/* Prints the standard attributes, one per line, separated by tabs: page, its name, numbers, bytes of a
 * value, settable (no, yes, inherited), meaning. */
void osd_attr_print_table(FILE *out);
/* Makes this the version that an attribute of the object shows in the transaction: that of the data which
 * the same command has read or written, whatever has changed since. */
void osd_txn_show_version(struct osd_txn *txn, struct osd_object_id id,
			  struct osd_data_version version);
/* The used capacity of the object, as the transaction sees it. */
enum osd_status osd_object_used(struct osd_txn *txn, struct osd_object_id id, uint64_t *ret_used);
/* The method that isolation method 0 of a CDB stands for (root information 110h). */
uint8_t osd_objects_isolation(struct osd_objects *objects);
/* Reads the fixed form of a page from its byte 0 (osd2-wire 5.6), as much as fits.  *ret_length is the
 * whole length, or 8 with PAGE LENGTH 0 if the page has no form.  OSD_E_PARAM_FIELD: the object has no
 * such page. */
enum osd_status osd_attr_page_form(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				   uint8_t *buffer, size_t capacity, size_t *ret_length);

/* Damage is in the Error Recovery pages, relative number 6, of every type.  The code that finds or
 * repairs it sets attributes OSD_DAMAGE_* in an OSD_TXN_INTERNAL transaction.  Unset ones read as zero. */

/* ---- jobs' marks on objects: kept in the object record ---------------------- */

/* The place of a job's objects: among the partition's data, or apart.  Those that stand apart have ids
 * from OSD_JOB_IDS_FIRST to OSD_JOB_IDS_LAST, and no id is given out twice.  Lists of the partition's
 * user objects, queries of all of them, counts and quotas leave them out.  Commands can name them, and
 * the collection of jobs contains them. */
enum osd_job_place { OSD_JOB_AMONG_DATA, OSD_JOB_APART };
enum osd_job_place osd_job_place_of(struct osd_object_id job);

/* Makes count (at least 1) marked user objects with consecutive ids. requested_id is as for one object;
 * it is 0 for those that stand apart.  *ret_first is the lowest id. */
enum osd_status osd_surrogates_create(struct osd_txn *txn, uint64_t partition_id,
				      enum osd_job_place where, uint64_t requested_id,
				      uint32_t count, uint64_t *ret_first);
/* Makes an object for a result that is too long for the job's record, in the same place as the
 * surrogate.  The permission to read it is that of the surrogate. mark: for one that an earlier release
 * made without the mark. */
enum osd_status osd_companion_create(struct osd_txn *txn, struct osd_object_id job,
				     uint64_t *ret_id);
enum osd_status osd_companion_mark(struct osd_txn *txn, struct osd_object_id id);
/* A marked object is an unfinished surrogate.  The dispatcher refuses every change by a client, except
 * of page 2000_0003h, with OSD_E_JOB_IN_WAY. */
enum osd_status osd_surrogate_mark(struct osd_txn *txn, struct osd_object_id id, bool unfinished);
enum osd_status osd_surrogate_marked(struct osd_txn *txn, struct osd_object_id id,
				     bool *ret_unfinished);

/* ---- structure check --------------------------------------------------------------------- */

struct osd_check_result {
	uint64_t objects;    /* damaged user objects and collections */
	uint64_t containers; /* partitions damaged themselves: counters, records of no object */
};
/* Checks every object of the partition (0: of the store) while other commands run, and stores its
 * findings in the Error Recovery pages. stop: as in osd_draft_copy. */
enum osd_status osd_objects_check(struct osd_objects *objects, uint64_t partition_id,
				  bool (*stop)(void *arg), void *arg,
				  struct osd_check_result *ret_result);

/* ---- figures ----------------------------------------------------------------------------- */

struct osd_objects_stats {
	uint64_t capacity_bytes, used_bytes;
	uint64_t partition_count, object_count;
	uint64_t commits, aborts, checkpoints;
	double recovery_seconds;
};

/* Figures of the store for the control socket, counted since it was opened; borrowed until it is
 * closed. */
struct osd_objects_figures {
	const struct osd_histogram *transactions; /* transactions that change something */
	struct {
		const char *why;
		uint64_t count;
	} aborted[4];
	struct {
		const char *tier;
		uint64_t reads, writes, errors; /* system calls on files */
		uint64_t bytes;			/* of heads there */
	} tiers[2];				/* a NULL tier: there is none */
};
void osd_objects_figures(struct osd_objects *objects, struct osd_objects_figures *ret_figures);
void osd_objects_stats(struct osd_objects *objects, struct osd_objects_stats *ret_stats);

#include "object/user_object.h"

#endif
