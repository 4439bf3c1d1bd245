/* SPDX-License-Identifier: GPL-2.0-or-later */
/* internal.h -- what the files of this folder share; nobody else includes it.
 *
 * Lock order, outermost first:
 *
 *   object's range lock > a store transaction > partitions_lock > cache_lock > object's mutex
 *   index_lock > a read of the store's (nobody takes it who has a transaction open)
 *
 * A transaction that holds records never waits for a range lock: what must follow a change of
 * records (truncation, removal) runs as an effect after the commit.  No other mutex is held
 * across a store call.
 *
 * Memory and records.  Counters (used bytes, object counts) live in memory only and are counted
 * again at open.  Of an object in the cache, length and times in memory are the truth and the
 * record may lag; an object not in the cache is as its record says, because only settled entries
 * leave the cache. */
#ifndef OSD_OBJECT_INTERNAL_H
#define OSD_OBJECT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "object/object.h"
#include "object/range_lock.h"
#include "object/record.h"
#include "store/media.h"
#include "store/store.h"
#include "store/tier.h"

#define OSD_NO_LIMIT	      UINT64_MAX
#define OSD_RESERVE_BYTES     (UINT64_C(1) << 20) /* step of reservations (design D7) */
#define OSD_ATTRIBUTES_MAX    65536u		  /* per object (design D26) */
#define OSD_CACHE_BUCKETS     32768u
#define OSD_CACHE_ENTRIES     32768u /* objects kept in memory after their last use */
#define OSD_CACHE_FILES	      8192u  /* of these, with open descriptors, at most */
#define OSD_PARTITION_BUCKETS 256u
#define OSD_MEMBERSHIPS_MAX   65536u /* per user object: they are attributes too */
#define OSD_PAGE_PROVIDERS    16u
#define OSD_RECORD_WEIGHT     256u /* of a change beside its value's bytes */

/* ---- partitions -------------------------------------------------------------------------- */

#define OSD_TALLIES	       16u
#define OSD_TALLY_USER_OBJECTS 0 /* of: these, or the id of a collection */
#define OSD_TALLY_COLLECTIONS  1

/* How many ids there are from one on. */
struct osd_tally {
	uint64_t of, from, count;
	uint64_t used; /* when; the oldest makes room */
	bool known, stays;
};

/* A live partition.  Atomics may be read any time; who checks a limit first adds, then compares. */
struct osd_partition {
	uint64_t id;
	uint32_t incarnation;
	_Atomic unsigned references;
	struct osd_partition *next; /* in its bucket; under partitions_lock */
	_Atomic bool removed;
	_Atomic uint64_t used_bytes;	/* sum of the objects' lengths */
	_Atomic uint64_t head_bytes[2]; /* of these in heads, by enum osd_tier_head_on */
	_Atomic uint64_t object_count;	/* user objects and collections */
	_Atomic uint64_t next_object_id;
	_Atomic uint64_t id_mark;			    /* as in OSD_META_ID_MARK */
	_Atomic uint64_t max_length, capacity, count_limit; /* quotas */
	_Atomic uint32_t collections_limit;
	_Atomic uint8_t bypass;
	_Atomic uint32_t user_tag; /* policy access tag of new user objects */
	_Atomic uint64_t times[OSD_T_COUNT];
	_Atomic bool times_dirty;
	/* tally.c */
	pthread_mutex_t tally_lock;
	struct osd_tally tallies[OSD_TALLIES]; /* under tally_lock */
	uint64_t tally_clock;		       /* under tally_lock */
	_Atomic uint64_t members_changing;     /* noted by transactions under way */
	_Atomic uint64_t member_changes;       /* committed */
	_Atomic uint64_t charges;	       /* counts changes of used_bytes and object_count */
	/* Indexed pages (value_index.h): NULL until one is declared; freed with the partition. */
	_Atomic(struct osd_index_slots *) index;
	_Atomic uint64_t index_serial; /* counts changes of what index says */
};

/* ---- the cache --------------------------------------------------------------------------- */

struct osd_version_page; /* share.c */

/* Entries in order of last use, oldest first. */
struct osd_lru {
	struct osd_object *first, *last;
};

struct osd_object {
	struct osd_objects *objects;
	struct osd_partition *partition; /* owned reference */
	struct osd_object_id id;
	uint8_t type;
	bool surrogate; /* OSD_REC_SURROGATE; constant */

	/* under cache_lock */
	struct osd_object *hash_next;
	struct osd_object *lru_previous, *lru_next; /* while references == 0 */
	struct osd_lru *lru;			    /* the one it is in */
	unsigned references;
	bool cached; /* false: removed, freed with its last reference */
	bool counted_open;

	pthread_mutex_t mutex;
	struct osd_range_lock ranges; /* under mutex */
	uint64_t changes;	      /* under mutex: times it was locked to be changed */
	_Atomic bool removed;	      /* set with the whole range locked */
	_Atomic uint64_t length;      /* changed by who holds [min(old, new), end) exclusively */
	/* The next group is changed by who holds the end of the object exclusively. */
	_Atomic uint64_t reserved_bytes, recorded_length; /* as committed */
	_Atomic uint64_t generation, spare_generation;
	_Atomic bool has_files, length_rules;
	_Atomic bool untrimmed; /* the files may have bytes beyond length; cut before it grows */
	_Atomic bool directories_unsynced;
	_Atomic bool unfinished; /* OSD_REC_UNFINISHED, as committed */
	_Atomic uint64_t max_length;
	_Atomic uint32_t tag;	    /* policy access tag; 0: none, or among the attributes */
	_Atomic uint64_t allocated; /* bytes of blocks, when last looked at */
	struct osd_tier_file file;

	_Atomic uint64_t times[OSD_T_COUNT];
	_Atomic bool times_dirty;
	_Atomic uint64_t write_tick; /* maintenance tick of the last change */

	/* share.c, under mutex */
	struct osd_version_page *version_page; /* mapped; NULL: never shared */
	int version_fd;			       /* owned, read-only; -1 */
	_Atomic unsigned shares;
	unsigned writers;
};

/* ---- transactions ------------------------------------------------------------------------ */

struct osd_effect {
	struct osd_effect *next;
	void (*run)(struct osd_txn *txn, struct osd_effect *effect, bool committed);
	struct osd_partition *partition; /* owned reference or NULL */
	struct osd_object_id id;
	uint64_t value, generation;
	uint64_t head_part; /* bytes of its head */
	uint8_t head_on;
	void (*fn)(void *arg, bool committed);
	void *arg;
};

struct osd_index_change;
struct osd_tally_note;

struct osd_txn {
	struct osd_objects *objects;
	struct osd_kv_txn *kv; /* owned; NULL: nothing locked yet */
	unsigned flags;
	uint64_t now_ms;
	const bool *stop; /* osd_txn_watch */
	uint64_t weight;
	struct osd_effect *effects, **last_effect;
	struct {
		struct osd_index_change *list; /* owned; applied last (index_keep.c) */
		size_t count, capacity;
		bool entered, applied;
		unsigned side; /* of objects->index_users */
	} index;
	struct {
		struct osd_tally_note *list; /* owned; tally.c */
		size_t count, capacity;
		bool told;
	} notes;

	/* The object at hand; its record is written when another is taken up or at commit. */
	struct osd_object_id id;
	struct osd_place place;
	struct osd_partition *partition; /* owned reference; NULL: nothing at hand, or root */
	struct osd_record record;
	bool loaded, locked, dirty;
	bool length_set;	     /* record.length is new in this transaction */
	bool accessed;		     /* its access time is noted */
	void *kept;		     /* owned; a page provider's (osd_txn_keep) */
	struct osd_object *changing; /* borrowed: this thread has all of it locked (change.c) */
	uint64_t changing_length;    /* which it has once its data has changed */
	struct osd_membership *memberships; /* owned; by number (membership.c) */
	size_t membership_count, membership_capacity;
	bool memberships_known, member_count_known;
	bool attributes_counted; /* record.attribute_count is that of the root or partition */
	uint64_t member_count;
	uint64_t removals; /* objects->removals before the record was read */

	const struct osd_effect *last_changed_members; /* in effects (attr_time.c) */
};

/* store_page.c: page B000_0002h; head_page.c: pages 2000_0004h and B000_0003h. */
extern const struct osd_page_provider osd_store_page, osd_head_page, osd_heads_root_page;

/* ---- heads ------------------------------------------------------------------------------- */

struct osd_heads {
	/* Settings */
	_Atomic uint64_t head_bytes; /* of new objects */
	_Atomic unsigned policy;     /* enum osd_heads_policy */
	_Atomic unsigned high, low;  /* per cent of the SSD */
	_Atomic uint64_t rate;	     /* most bytes a second that the mover copies */
	_Atomic bool draining;
	unsigned (*commands_queued)(void *context); /* constant; NULL: there are none */
	void *context;
	/* State */
	_Atomic bool drained; /* draining, and no head was left on the SSD */
	_Atomic bool wanted;  /* a head may be where it should not be */
	/* Figures, by enum osd_tier_head_on: to there, since the start */
	_Atomic uint64_t moved[2], moved_bytes[2];
	_Atomic uint64_t passed_over; /* by the last pass: in use, or the move failed */
};

/* Numbers of page B000_0003h. */
enum {
	OSD_HEADS_SIZE = 1,
	OSD_HEADS_POLICY,
	OSD_HEADS_HIGH,
	OSD_HEADS_LOW,
	OSD_HEADS_RATE,
	OSD_HEADS_DRAIN,
	OSD_HEADS_SSD_TOTAL,
	OSD_HEADS_SSD_FREE,
	OSD_HEADS_HDD_TOTAL,
	OSD_HEADS_HDD_FREE,
	OSD_HEADS_SSD_BYTES,
	OSD_HEADS_HDD_BYTES,
	OSD_HEADS_TO_SSD,
	OSD_HEADS_TO_HDD,
	OSD_HEADS_TO_SSD_BYTES,
	OSD_HEADS_TO_HDD_BYTES,
	OSD_HEADS_PASSED_OVER,
	OSD_HEADS_END
};
#define OSD_HEADS_PERCENT_MIN 1
#define OSD_HEADS_PERCENT_MAX 99

/* ---- the whole --------------------------------------------------------------------------- */

struct osd_objects {
	struct osd_media *media; /* owned; NULL: in memory */
	struct osd_kv *kv;	 /* owned */
	struct osd_tier tier;	 /* owned */
	struct osd_fault_plan fault;
	enum osd_kv_commit commit; /* for OSD_COMMIT_PROCESS */
	bool sync_data;		   /* durability = sync */
	bool strict;
	struct osd_heads heads;
	uint8_t method; /* methods.c */
	uint8_t system_id[OSD_MEDIA_SYSTEM_ID];
	char serial[65];
	uint64_t config_capacity;
	struct osd_page_provider const *providers[OSD_PAGE_PROVIDERS];
	size_t provider_count; /* set before threads start */

	struct {
		void (*fn)(void *arg, uint64_t partition_id);
		void *arg;
	} watchers[OSD_PARTITION_WATCHERS];
	size_t watcher_count;		 /* set before threads start */
	_Atomic uint64_t policy_changes; /* osd_objects_policy_changes() - 1 */
	uint8_t seal[OSD_SEAL_BYTES];	 /* of a store in memory */

	pthread_rwlock_t partitions_lock;
	struct osd_partition *partitions[OSD_PARTITION_BUCKETS]; /* under partitions_lock */
	struct osd_root_record root;				 /* under partitions_lock */
	_Atomic uint32_t epoch;					 /* the root record's */
	_Atomic uint8_t isolation;				 /* the same */
	_Atomic uint64_t root_times[OSD_T_COUNT];
	_Atomic bool root_times_dirty;
	_Atomic uint64_t partition_count, object_count, used_bytes, capacity_bytes;
	_Atomic uint64_t next_generation;
	double recovery_seconds;

	pthread_mutex_t cache_lock;
	struct osd_object *cache[OSD_CACHE_BUCKETS]; /* under cache_lock */
	struct osd_lru lru_open, lru_shut;	     /* unreferenced; by whether files are open */
	size_t cache_count, open_count, open_max;
	_Atomic uint64_t removals; /* changed under cache_lock: counts what makes a record read
				      earlier stale */

	pthread_t maintenance, reaper, indexer, mover;
	bool maintenance_runs, reaper_runs, indexer_runs, mover_runs;
	pthread_mutex_t work_lock;
	pthread_cond_t work;
	bool stop, settle_now, reap_now, index_now, move_now; /* under work_lock */
	_Atomic uint64_t tick;

	pthread_mutex_t index_lock;	 /* osd_index_reload */
	_Atomic unsigned index_side;	 /* transactions that begin now count on this side */
	_Atomic uint64_t index_users[2]; /* changing transactions under way */
	/* Transactions that change entries: before they do, and when they are over.  A search that
	 * sees both stand still and equal has met none. */
	_Atomic uint64_t index_begun, index_ended;
	bool unclean; /* the store was not closed: times of files may be later than those of records
		       */
	_Atomic bool disk_full; /* ballast is gone: refuse what needs space */
};

/* Whether a long walk inside txn shall end (osd_txn_watch): looked at for each record. */
static inline bool osd_txn_stopped(const struct osd_txn *txn)
{
	return txn->stop && __atomic_load_n(txn->stop, __ATOMIC_RELAXED);
}

/* ---- partition.c ------------------------------------------------------------------------- */

/* The live partition, with a reference; also one made in txn (txn may be NULL). */
enum osd_status osd_partition_get(struct osd_objects *objects, struct osd_txn *txn, uint64_t id,
				  struct osd_partition **ret_partition);
void osd_partition_put(struct osd_partition *partition); /* NULL is fine */
static inline void osd_partition_putp(struct osd_partition **partition)
{
	osd_partition_put(*partition);
}
/* From a record just read or made. */
struct osd_partition *osd_partition_new(uint64_t id, const struct osd_partition_record *record);
/* It is counted already (osd_partitions_add). */
void osd_partition_insert(struct osd_objects *objects, struct osd_partition *partition);
/* Reads the partition's record in txn, so that it stays until the end of the transaction. */
enum osd_status osd_partition_hold(struct osd_txn *txn, struct osd_partition *partition, bool write,
				   struct osd_partition_record *ret_record);
enum osd_status osd_partition_store(struct osd_txn *txn, struct osd_partition *partition,
				    const struct osd_partition_record *record);
/* The root record for a change. */
enum osd_status osd_root_hold(struct osd_txn *txn, struct osd_root_record *ret_root);
enum osd_status osd_root_store(struct osd_txn *txn, const struct osd_root_record *root);
void osd_partition_apply_quotas(struct osd_partition *partition,
				const struct osd_partition_record *record);
/* A Policy/Security page of the root or a partition says something else now. */
static inline void osd_note_policy_change(struct osd_objects *objects)
{
	atomic_fetch_add(&objects->policy_changes, 1);
}
/* Forgets all partitions and objects (FORMAT OSD). */
void osd_partitions_forget(struct osd_objects *objects);

/* ---- methods.c --------------------------------------------------------------------------- */

enum osd_status osd_methods_begin(struct osd_objects *objects, struct osd_kv_txn *kv,
				  uint32_t epoch);
enum osd_status osd_methods_inherit(struct osd_txn *txn, uint32_t epoch, uint64_t partition_id,
				    uint32_t incarnation);

/* ---- the collection of all user objects --------------------------------------------------- */

/* It has no record: it is there as long as its partition, and its members are the partition's user
 * objects.  Times are the partition's; only the target sets attributes of it (Command Tracking). */
static inline bool osd_is_objects_collection(struct osd_object_id id)
{
	return id.partition_id != 0 && id.object_id == OSD_OBJECTS_COLLECTION;
}

/* ---- txn.c ------------------------------------------------------------------------------- */

/* Begins the store's transaction if it has not begun. */
enum osd_status osd_txn_lock_store(struct osd_txn *txn);
/* Takes up the object: root, partition, collection or user object.  write: its record is locked and
 * may be changed (then set txn->dirty). */
enum osd_status osd_txn_take(struct osd_txn *txn, struct osd_object_id id, bool write);
/* Writes the record at hand and lets go of it. */
enum osd_status osd_txn_let_go(struct osd_txn *txn);
/* A read-only transaction gives its locks back; what it reads next is read as committed then. */
void osd_txn_release_reads(struct osd_txn *txn);
/* NULL: out of memory. */
struct osd_effect *osd_txn_effect(struct osd_txn *txn,
				  void (*run)(struct osd_txn *txn, struct osd_effect *effect,
					      bool committed));
enum osd_object_type osd_txn_type(const struct osd_txn *txn);
/* A transaction of the layer's own, not to be begun while the thread holds another. */
enum osd_status osd_own_begin(struct osd_objects *objects, enum osd_kv_access access,
			      struct osd_kv_txn **ret_kv);
enum osd_status osd_own_commit(struct osd_objects *objects, struct osd_kv_txn *kv, bool durable);
void osd_own_abort(struct osd_kv_txn *kv);

/* ---- cache.c ----------------------------------------------------------------------------- */

void osd_cache_init(struct osd_objects *objects);
void osd_cache_release(struct osd_objects *objects);
/* At the end of a transaction that changed what entries copy of the record of effect's object: entries
 * just being made are made anew.  The one that is there, with a reference, to be brought up to date;
 * NULL: none is, or nothing was committed. */
struct osd_object *osd_cache_changed(struct osd_txn *txn, const struct osd_effect *effect,
				     bool committed);
/* The entry if it is in memory, with a reference. */
struct osd_object *osd_cache_find(struct osd_objects *objects, struct osd_object_id id);
/* The entry, from the record in the store when needed; any type. */
enum osd_status osd_cache_get(struct osd_objects *objects, struct osd_object_id id,
			      struct osd_object **ret_object);
/* After the record with this generation was removed: takes the entry out and marks it removed;
 * false when there was none. */
bool osd_cache_remove(struct osd_objects *objects, struct osd_object_id id, uint64_t generation);
/* The entry if it is there, else one from the record at hand in txn; with a reference, or NULL. */
struct osd_object *osd_cache_adopt(struct osd_txn *txn);
/* Takes out and marks all of a partition. */
void osd_cache_remove_partition(struct osd_objects *objects, const struct osd_partition *partition);
/* Up to capacity entries that wait to be settled, with references; there may be more while *cursor
 * is below OSD_CACHE_BUCKETS. */
size_t osd_cache_unsettled(struct osd_objects *objects, struct osd_object **ret_objects,
			   size_t capacity, size_t *cursor);
/* After the first open(2) of an entry. */
void osd_cache_count_open(struct osd_object *object);
/* Waits for users of the data to finish, then makes the entry say removed. */
void osd_object_mark_removed(struct osd_object *object);

/* ---- quota.c ----------------------------------------------------------------------------- */

/* Takes delta bytes for the object, or OSD_E_QUOTA, OSD_E_NO_SPACE.  use_reserve: a job must be
 * able to say how it ended, whatever quotas say. */
enum osd_status osd_charge(struct osd_objects *objects, struct osd_partition *partition,
			   uint64_t delta, bool use_reserve);
void osd_uncharge(struct osd_objects *objects, struct osd_partition *partition, uint64_t delta);
enum osd_status osd_count_add(struct osd_objects *objects, struct osd_partition *partition,
			      uint64_t count);
void osd_count_drop(struct osd_objects *objects, struct osd_partition *partition, uint64_t count);
/* One partition more, below the limit; taken back by who does not make it. */
enum osd_status osd_partitions_add(struct osd_objects *objects, uint64_t limit);

/* ---- object.c ---------------------------------------------------------------------------- */

/* A new user object's record, without a generation. */
void osd_fresh_record(const struct osd_objects *objects, const struct osd_partition *partition,
		      uint64_t now_ms, struct osd_record *record);
/* The next count ids, which nobody gets again but by asking for one. */
enum osd_status osd_object_take_ids(struct osd_partition *partition, uint32_t count,
				    uint64_t *ret_first);
/* Puts the record under the id wanted (0: the next free one); counts it.  Taken ids: OSD_E_EXISTS.
 * Generation 0: a new one. */
enum osd_status osd_object_put_new(struct osd_txn *txn, struct osd_partition *partition,
				   uint64_t requested_id, uint32_t count,
				   const struct osd_record *record, uint64_t *ret_first);
/* Whether this transaction made the object. */
bool osd_object_is_new(const struct osd_txn *txn, struct osd_object_id id);
/* With the record at hand locked: removes it, its attributes and its files. */
enum osd_status osd_object_remove_record(struct osd_txn *txn);

/* ---- data.c, change.c, resize.c, extents.c, settle.c, share.c ---------------------------- */

/* Exclusive lock on what a change of [offset, end) touches, up to the end of the object when it
 * grows or is cut; the object's version is odd until osd_object_unlock.  OSD_E_NO_OBJECT: it was
 * removed. */
enum osd_status osd_object_lock(struct osd_object *object, struct osd_range *range, uint64_t offset,
				uint64_t end, bool to_end);
void osd_object_unlock(struct osd_object *object, struct osd_range *range);
/* Shared lock on [offset, end).  OSD_E_RETRY: only with nowait. */
enum osd_status osd_object_lock_read(struct osd_object *object, struct osd_range *range,
				     uint64_t offset, uint64_t end, bool nowait);
void osd_object_unlock_read(struct osd_object *object, struct osd_range *range);
/* With [from, to) locked: osd_tier_miss of an object that has length bytes. */
enum osd_status osd_object_miss(struct osd_object *object, uint64_t length, uint64_t from,
				uint64_t to);
/* With the end locked: charges and reserves so that bytes up to new_length may be written. */
enum osd_status osd_object_extend(struct osd_object *object, uint64_t new_length, unsigned flags);
/* Changes the object's record in a transaction of its own, which also removes a record of META if
 * one is named. */
enum osd_status osd_object_change_record(struct osd_object *object, bool durable,
					 void (*change)(struct osd_record *record, void *arg),
					 void *arg, const struct osd_key *done);
/* The same in a transaction of the caller's. */
enum osd_status osd_object_change_record_in(struct osd_kv_txn *kv, struct osd_object *object,
					    void (*change)(struct osd_record *record, void *arg),
					    void *arg);
/* With the end locked: the object now has this length. */
void osd_object_set_length(struct osd_object *object, uint64_t length);
void osd_object_touch(struct osd_object *object, bool modified, unsigned flags);
/* After a change: durable when flags or configuration ask for it. */
enum osd_status osd_object_finish(struct osd_object *object, unsigned flags);
/* With the whole object locked: files are made to have length bytes (fewer only while unshared). */
enum osd_status osd_object_fit_files(struct osd_object *object, uint64_t length);
/* The committed record already has length (with OSD_REC_LENGTH_RULES): do the rest.  locked: the
 * caller has all of the object locked. */
void osd_object_truncate_after_commit(struct osd_object *object, uint64_t length, bool locked,
				      unsigned flags);
/* Cutting the end off, with the end locked: what the record says, and what follows its commit. */
void osd_shrink_record(struct osd_record *record, uint64_t length);
void osd_shrink_done(struct osd_object *object, uint64_t old_length, uint64_t length);
/* Taking a range out of the middle, with the whole object locked: new files, the record, then done
 * or undo. */
struct osd_punch {
	uint64_t generation, length;
	bool is_open;
	struct osd_tier_file fresh; /* while is_open */
};
enum osd_status osd_punch_prepare(struct osd_object *object, uint64_t offset, uint64_t length,
				  struct osd_punch *punch);
void osd_punch_record(const struct osd_object *object, const struct osd_punch *punch,
		      struct osd_record *record);
void osd_punch_done(struct osd_object *object, struct osd_punch *punch, uint64_t old_length);
void osd_punch_undo(struct osd_object *object, struct osd_punch *punch); /* after done: nothing */
/* Brings the record up to what is in memory; with close, ends the open reservation. */
enum osd_status osd_object_settle(struct osd_object *object, bool close, bool durable);
bool osd_object_is_settled(struct osd_object *object);
enum osd_status osd_partition_settle(struct osd_objects *objects, struct osd_partition *partition);
enum osd_status osd_root_settle(struct osd_objects *objects);
void osd_settle_all(struct osd_objects *objects, bool everything);
/* Copies data and leaves holes, in pieces; to need not be as long afterwards.  how may be NULL. */
struct osd_copy_how {
	unsigned flags;		 /* enum osd_data_copy_flags */
	bool (*stop)(void *arg); /* asked between pieces: then OSD_E_TASK_ABORTED; may be NULL */
	void *arg;
};
enum osd_status osd_copy_extents(struct osd_tier_file *from, uint64_t from_offset, uint64_t length,
				 struct osd_tier_file *to, uint64_t to_offset,
				 const struct osd_copy_how *how);
/* Bytes of blocks the object at hand has: less than its length where it has holes, which quotas
 * count (docs/format.md).  Last known where somebody changes it just now. */
enum osd_status osd_txn_allocated(struct osd_txn *txn, uint64_t *ret_bytes);
void osd_version_begin(struct osd_object *object); /* under mutex */
void osd_version_end(struct osd_object *object);   /* under mutex */
void osd_version_length(struct osd_object *object, uint64_t length);
void osd_version_generation(struct osd_object *object); /* with the whole object locked */
void osd_version_removed(struct osd_object *object);	/* under mutex */
void osd_version_release(struct osd_object *object);
struct osd_data_name osd_object_data_name(const struct osd_object *object, uint64_t generation);

/* ---- heads.c, head_move.c, mover.c ------------------------------------------------------- */

void osd_heads_init(struct osd_objects *objects, const struct osd_heads_config *config);
/* What the store remembers of them; once its epoch is known. */
enum osd_status osd_heads_load(struct osd_objects *objects);
bool osd_heads_two_roots(const struct osd_objects *objects);
/* Head size of a new object; OSD_TIER_ONE with one root. */
uint64_t osd_heads_default(const struct osd_objects *objects);
/* Whether the SSD stays below so many per cent with more bytes on it. */
bool osd_heads_below(const struct osd_objects *objects, unsigned percent, uint64_t more);
/* Where a head should be, room or not. */
enum osd_tier_head_on osd_head_goal(const struct osd_objects *objects, uint64_t head_bytes,
				    uint64_t length);
/* The record's object gets its first bytes: up to length. */
void osd_head_place(struct osd_objects *objects, uint64_t length, struct osd_record *record);
/* What osd_head_place decided is committed. */
void osd_head_placed(struct osd_objects *objects, const struct osd_record *record);
/* How much of an object is head: nothing with one root, or where it is wholly on the HDD. */
uint64_t osd_head_part(uint64_t head_bytes, uint64_t length);
void osd_heads_count(struct osd_partition *partition, uint8_t head_on, uint64_t before,
		     uint64_t after);
void osd_heads_count_length(struct osd_object *object, uint64_t before, uint64_t after);
/* Of all heads, by enum osd_tier_head_on. */
void osd_heads_bytes(struct osd_objects *objects, uint64_t ret_bytes[2]);
/* After a change of settings. */
void osd_heads_changed(struct osd_objects *objects);
/* Asked after each piece that was copied, without a lock; false: stop. */
struct osd_head_pace {
	bool (*step)(void *arg, uint64_t bytes);
	void *arg;
};
/* Without pace: at once, and also while a sandbox holds descriptors.  OSD_E_EXISTS: it is there;
 * OSD_E_BUSY: not now; OSD_E_TASK_ABORTED: told to stop.  No lock may be held. */
enum osd_status osd_head_move(struct osd_object *object, enum osd_tier_head_on to,
			      const struct osd_head_pace *pace, uint64_t *ret_bytes);
/* A device is full: whether the object's head is on the other one now, so that it is worth another
 * try.  No lock may be held. */
bool osd_head_escape(struct osd_object *object);
void *osd_mover_main(void *objects);
void osd_kick_mover(struct osd_objects *objects);
/* Until kicked, told to stop (then false), or so long. */
bool osd_mover_wait(struct osd_objects *objects, uint64_t usec);
/* The same, and it may not be kicked. */
bool osd_mover_pause(struct osd_objects *objects, uint64_t usec);

/* ---- collection.c ------------------------------------------------------------------------ */

/* Both records of a membership; the collection's data is modified.  put: OSD_E_EXISTS.  number: the
 * one by which it was joined, 0: the target did it. */
enum osd_status osd_member_pair_put(struct osd_txn *txn, const struct osd_place *collection,
				    uint64_t member, uint32_t number);
enum osd_status osd_member_pair_remove(struct osd_txn *txn, const struct osd_place *collection,
				       uint64_t member);
enum osd_status osd_member_count(struct osd_txn *txn, const struct osd_place *collection,
				 uint64_t *ret_count);

/* ---- membership.c ------------------------------------------------------------------------ */

/* The record at hand is the user object: leaves every collection. */
enum osd_status osd_memberships_drop_all(struct osd_txn *txn);
enum osd_status osd_membership_get(struct osd_txn *txn, uint32_t number, uint64_t *ret_collection);
enum osd_status osd_membership_set(struct osd_txn *txn, uint32_t number, uint64_t collection);
enum osd_status osd_membership_clear(struct osd_txn *txn, uint32_t number);
struct osd_membership {
	uint32_t number; /* 0: by the target */
	uint64_t collection;
};
/* In ascending order of numbers, those with number 0 too; borrowed until the next call that takes
 * up another object or changes a membership. */
enum osd_status osd_memberships(struct osd_txn *txn, const struct osd_membership **ret_list,
				size_t *ret_count);
void osd_memberships_forget(struct osd_txn *txn);

/* ---- attr_time.c ------------------------------------------------------------------------- */

/* Of the object at hand, as it is, not as last settled. */
uint64_t osd_txn_time(struct osd_txn *txn, enum osd_time which);
/* Attributes of the object at hand were read; or changed; or what it contains was listed. */
void osd_note_attr_access(struct osd_txn *txn);
void osd_note_attr_change(struct osd_txn *txn);
/* The user object's data changes with the commit. */
void osd_note_data_change(struct osd_txn *txn);
void osd_note_list_access(struct osd_txn *txn);
/* Once committed, a collection has other members. */
enum osd_status osd_note_members_change(struct osd_txn *txn, const struct osd_place *collection);
uint8_t osd_root_bypass(struct osd_objects *objects);

/* ---- tally.c ----------------------------------------------------------------------------- */

void osd_tally_init(struct osd_partition *partition);
/* How many ids >= from; false: not known.  from 0: exact. */
bool osd_tally_get(struct osd_partition *partition, uint64_t of, uint64_t from,
		   uint64_t *ret_count);
void osd_tally_put(struct osd_partition *partition, uint64_t of, uint64_t from, uint64_t count);
/* About a count of all members: it is kept when nothing changed since osd_tally_begin. */
uint64_t osd_tally_begin(struct osd_partition *partition);
void osd_tally_end(struct osd_partition *partition, uint64_t begun, uint64_t of, uint64_t count);
/* count ids from first on have come, or gone. */
void osd_tally_change(struct osd_partition *partition, uint64_t of, uint64_t first, uint64_t count,
		      bool added);
/* That the next note finds room. */
enum osd_status osd_tally_reserve(struct osd_txn *txn);
/* The transaction adds count ids from first on, or takes them away. */
enum osd_status osd_tally_note(struct osd_txn *txn, struct osd_partition *partition, uint64_t of,
			       uint64_t first, uint64_t count, bool added);
/* What the transaction itself adds in the partition at hand, modulo 2^64. */
uint64_t osd_tally_noted(const struct osd_txn *txn, uint64_t of);
/* Just before the commit, and at the end of every transaction. */
void osd_tally_tell(struct osd_txn *txn);
void osd_tally_settle(struct osd_txn *txn, bool committed);

/* ---- list.c ------------------------------------------------------------------------------ */

/* Up to capacity members of the collection, ascending, from initial_id on; *ret_next 0: no more. */
enum osd_status osd_list_members(struct osd_txn *txn, const struct osd_place *collection,
				 uint64_t initial_id, uint64_t *ids, size_t capacity,
				 size_t *ret_count, uint64_t *ret_next);

/* ---- attr.c, attr_std.c ------------------------------------------------------------------ */

/* Attributes kept as they are, of the object at hand.  get: *ret_length 0 when there is none. */
enum osd_status osd_attr_stored_get(struct osd_txn *txn, uint32_t page, uint32_t number,
				    uint8_t *buffer, size_t capacity, size_t *ret_length);
enum osd_status osd_attr_stored_set(struct osd_txn *txn, uint32_t page, uint32_t number,
				    const uint8_t *value, size_t length);
/* Value of an attribute of the object at hand, without a trace of the access. */
enum osd_status osd_attr_peek(struct osd_txn *txn, uint32_t page, uint32_t number, uint8_t *buffer,
			      size_t capacity, size_t *ret_length);
/* Numbers stored on the page in ascending order (pages, when all_pages), each once. */
struct osd_numbers {
	uint32_t *list;
	size_t count, capacity;
};
enum osd_status osd_attr_stored_numbers(struct osd_txn *txn, uint32_t page,
					struct osd_numbers *numbers);
enum osd_status osd_attr_stored_pages(struct osd_txn *txn, struct osd_numbers *pages);
bool osd_numbers_add(struct osd_numbers *numbers, uint32_t number);
/* Whether the page is kept for the application, and is not the target's or the standard's. */
bool osd_attr_page_is_open(const struct osd_txn *txn, uint32_t page);
const struct osd_page_provider *osd_attr_provider(const struct osd_objects *objects, uint32_t page);
uint32_t osd_page_base(enum osd_object_type type);

/* Whether the object at hand may have that page. */
bool osd_attr_page_fits(const struct osd_txn *txn, uint32_t page);

/* Standard pages: relative number 0-6 of the object's own range, as far as the type has them. */
bool osd_std_has_page(enum osd_object_type type, uint32_t relative);
enum osd_status osd_std_get(struct osd_txn *txn, uint32_t relative, uint32_t number,
			    uint8_t *buffer, size_t capacity, size_t *ret_length);
enum osd_status osd_std_set(struct osd_txn *txn, uint32_t relative, uint32_t number,
			    const uint8_t *value, size_t length);
/* Numbers that may have a value, ascending. */
enum osd_status osd_std_numbers(struct osd_txn *txn, uint32_t relative,
				struct osd_numbers *numbers);
/* 40 bytes: vendor (8) and name (32). */
void osd_page_identification(const char *vendor, const char *name, uint8_t bytes[40]);
enum osd_status osd_attr_identification(struct osd_txn *txn, uint32_t page, uint8_t *buffer,
					size_t capacity, size_t *ret_length);
/* Every page the object has, ascending. */
enum osd_status osd_attr_pages(struct osd_txn *txn, struct osd_numbers *pages);

/* ---- recovery.c, reaper.c, maintenance.c ------------------------------------------------- */

enum osd_status osd_recover(struct osd_objects *objects, char message[256]);
void *osd_reaper_main(void *objects);
void *osd_maintenance_main(void *objects);
void osd_kick_reaper(struct osd_objects *objects);
void osd_kick_settle(struct osd_objects *objects);
/* index_build.c: makes and clears value indexes. */
void *osd_indexer_main(void *objects);
void osd_kick_indexer(struct osd_objects *objects);
/* Until kicked, told to stop (then false), or, with_timeout, a second is over. */
bool osd_indexer_wait(struct osd_objects *objects, bool with_timeout);
bool osd_should_stop(struct osd_objects *objects);
/* Puts META's N record: recovery removes these files; or takes it away.  draft.c */
enum osd_status osd_files_note(struct osd_objects *objects, const struct osd_place *place,
			       uint64_t generation, bool there);
/* At open: removes the files of drafts that came to nothing. */
enum osd_status osd_remove_drafts(struct osd_objects *objects);
/* Removes all records of the table whose key begins so, in transactions of their own. */
enum osd_status osd_clear_prefix(struct osd_objects *objects, enum osd_kv_table table,
				 struct osd_bytes prefix);
/* Keys copied out of a scan, because a scan must not call the store. */
struct osd_key_list {
	uint8_t *bytes; /* owned: for each key 2 bytes of length in the machine's order, key */
	size_t used, capacity, count;
};
/* Up to limit keys that begin so; inside txn or NULL.  The list needs osd_key_list_release. */
enum osd_status osd_key_list_collect(struct osd_objects *objects, struct osd_kv_txn *kv,
				     enum osd_kv_table table, struct osd_bytes prefix, size_t limit,
				     struct osd_key_list *list);
/* Walks the list: *at 0 at first; false at its end. */
bool osd_key_list_next(const struct osd_key_list *list, size_t *at, struct osd_bytes *ret_key);
void osd_key_list_release(struct osd_key_list *list);

#endif
