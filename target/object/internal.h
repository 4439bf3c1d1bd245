/* SPDX-License-Identifier: GPL-2.0-or-later */
/* internal.h -- struct osd_objects and the limits that all files of this folder share.  No other folder
 * includes it.  It includes the rest by topic:
 *
 *   partition.h   partitions in memory, quotas, counts of ids
 *   cache.h       objects in memory
 *   data.h        their bytes, and the records that say how many
 *   heads.h       which device has their first bytes
 *   sums.h        their checksums, and the scrub
 *   data_version.h  versions of data and members
 *   txn.h         transactions over records, collections, memberships
 *   attributes.h  attributes of a transaction's object
 *   upkeep.h      recovery, threads beside the requests
 *   key_list.h    keys copied out of a scan
 *
 * target/README.md has the order of locks, range locks and transactions.  Of this folder's locks, only
 * index_lock is held over a store call.
 *
 * Memory and records.  Counters (used bytes, object counts) live in memory only and are counted again at
 * open.  For an object in the cache, length and times in memory are the current ones, and the record may
 * lag.  Only settled entries leave the cache, so the record of any other object is current. */
#ifndef OSD_OBJECT_INTERNAL_H
#define OSD_OBJECT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/helper.h"
#include "base/lock.h"
#include "base/timer.h"
#include "object/attributes.h"
#include "object/cache.h"
#include "object/data.h"
#include "object/data_version.h"
#include "object/heads.h"
#include "object/hooks_impl.h"
#include "object/key_list.h"
#include "object/object.h"
#include "object/partition.h"
#include "object/record.h"
#include "object/space.h"
#include "object/stack.h"
#include "object/sums.h"
#include "object/txn.h"
#include "object/unsynced.h"
#include "object/upkeep.h"
#include "store/media.h"
#include "store/store.h"
#include "store/tier.h"

#define OSD_NO_LIMIT	      UINT64_MAX
#define OSD_RESERVE_BYTES     (UINT64_C(1) << 20) /* step of reservations */
#define OSD_ATTRIBUTES_MAX    65536u		  /* per object */
#define OSD_CACHE_BUCKETS     32768u
#define OSD_CACHE_ENTRIES     32768u /* objects kept in memory after their last use */
#define OSD_CACHE_FILES	      8192u  /* most of these with open descriptors */
#define OSD_PARTITION_BUCKETS 256u
#define OSD_CREATED_PLACES    1024u  /* a power of two (created.c) */
#define OSD_MEMBERSHIPS_MAX   65536u /* per user object: they are attributes too */
#define OSD_PAGE_PROVIDERS    32u
#define OSD_PAGE_PLACES	      64u
#define OSD_RECORD_WEIGHT     256u /* weight of a change, in addition to its value's bytes */

struct osd_name_cache; /* name_cache.h */

struct osd_objects {
	struct osd_media *media; /* owned; NULL: in memory */
	struct osd_kv *kv;	 /* owned */
	struct osd_tier tier;	 /* owned */
	struct osd_freeze *freeze; /* owned */
	struct osd_fault_plan *faults; /* owned; of the library for tests (store/stand_in.h) */
	enum osd_kv_commit commit; /* for OSD_COMMIT_PROCESS */
	bool sync_data;		   /* durability = sync */
	unsigned (*commands_queued)(void *context); /* constant; NULL: there are none */
	void *context;
	struct osd_heads heads;
	struct osd_sums sums;
	uint8_t method; /* methods.c */
	uint8_t system_id[OSD_MEDIA_SYSTEM_ID];
	char serial[65];
	struct osd_page_provider const *providers[OSD_PAGE_PROVIDERS];
	/* The first provider with this place (objects.c). */
	struct osd_page_provider const *provider_of[OSD_PAGE_PLACES];
	size_t provider_count; /* set before threads start */

	struct {
		void (*fn)(void *arg, uint64_t partition_id);
		void *arg;
	} watchers[OSD_PARTITION_WATCHERS];
	size_t watcher_count;		 /* set before threads start */
	_Atomic uint64_t policy_changes; /* osd_objects_policy_changes() - 1 */
	struct {
		void (*fn)(void *arg, struct osd_object_id id); /* NULL: nobody */
		void *arg;
	} due_watcher; /* due.h */
	struct {
		void (*fn)(void *arg); /* NULL: nobody */
		void *arg;
	} policy_watcher; /* changes while no transaction is open */
	struct {
		osd_removal_fn *fn; /* NULL: nobody */
		void *arg;
	} removal_watchers[OSD_REMOVAL_WATCHERS]; /* the same */
	uint8_t seal[OSD_SEAL_BYTES];	 /* of a store in memory */

	/* osd_cache_remove_partition.  open.c sets it, since cache.c itself uses partition.c. */
	void (*forget_entries)(struct osd_objects *objects, const struct osd_partition *partition);
	/* osd_unname.  open.c sets it, since names.c itself uses collection.c. */
	enum osd_status (*unname)(struct osd_txn *txn);
	/* osd_views_follow_members.  The same: it uses txn.c. */
	enum osd_status (*follow_members)(struct osd_txn *txn);
	struct osd_stack_ops stack_ops; /* set before threads start */
	struct osd_rwlock partitions_lock;
	struct osd_partition *partitions[OSD_PARTITION_BUCKETS]; /* under partitions_lock */
	struct osd_root_record root;				 /* under partitions_lock */
	_Atomic uint32_t epoch;					 /* the root record's */
	_Atomic uint8_t isolation;				 /* the same */
	_Atomic uint64_t stacked, stack_numbers; /* stack.h */
	_Atomic uint64_t hooks, hook_changes;			 /* hooks.c */
	/* Numbers of changes of the root's record and of partitions', each taken while the record is locked. */
	_Atomic uint64_t record_changes;
	uint64_t root_change; /* under partitions_lock: the one that root is of */
	_Atomic bool hooked; /* some object, partition or the root may have hooks */
	_Atomic uint64_t stack_changes;				 /* the same */
	_Atomic uint64_t root_times[OSD_T_COUNT];
	_Atomic bool root_times_dirty;
	_Atomic uint64_t partition_count, object_count, used_bytes, capacity_bytes;
	_Atomic uint64_t charged_bytes; /* of all partitions, and for attributes of the root */
	_Atomic uint64_t next_generation;
	_Atomic uint64_t next_job_id; /* of those that stand apart */
	_Atomic uint64_t created_next[OSD_CREATED_PLACES]; /* created.c */
	_Atomic uint64_t next_version;	 /* data_version.h */
	uint32_t opening, version_floor; /* constant after recovery */
	double recovery_seconds;

	struct osd_lock cache_lock;
	struct osd_object *cache[OSD_CACHE_BUCKETS]; /* under cache_lock */
	struct osd_lru lru_open, lru_shut;	     /* unreferenced; by whether files are open */
	size_t cache_count, open_count, open_max;
	/* changed under cache_lock: counts events that make a record read earlier stale */
	_Atomic uint64_t removals;

	struct osd_unsynced unsynced;
	struct osd_name_cache *names; /* owned */

	struct osd_timers timers; /* of the unit: the thread iosd-upkeep */
	struct osd_timer settle_timer, mover_timer, scrub_timer;
	struct osd_helper reaper, indexer, mover, scrub;
	struct osd_lock work_lock;
	pthread_cond_t work;
	bool stop, index_now; /* under work_lock */
	_Atomic uint64_t tick;

	struct osd_lock index_lock;	 /* osd_index_reload */
	_Atomic unsigned index_side;	 /* transactions that begin now count on this side */
	_Atomic uint64_t index_users[2]; /* changing transactions under way */
	/* Count transactions that change entries: before the change, and after the end.  A search during
	 * which both stay equal and unchanged has met no change. */
	_Atomic uint64_t index_begun, index_ended;
	bool unclean; /* the store was not closed: times of files may be later than those of records
		       */
	_Atomic bool disk_full; /* the ballast is gone: refuse commands that need space */
	_Atomic unsigned room_tries; /* calls of the database that may still run again since then */
	struct osd_space_log space;
};

/* The partitions in memory, while the condition holds: under partitions_lock, or before other threads run. */
#define osd_each_partition(objects, partition, condition)                                          \
	for (size_t bucket_ = 0; bucket_ < OSD_PARTITION_BUCKETS; bucket_++)                       \
		for (struct osd_partition *partition = (objects)->partitions[bucket_];             \
		     partition && (condition); partition = partition->next)

static inline struct osd_place osd_root_place(const struct osd_objects *objects)
{
	return (struct osd_place){0, atomic_load(&objects->epoch), 0};
}

static inline struct osd_place osd_partition_place(const struct osd_partition *partition)
{
	return (struct osd_place){partition->id, partition->incarnation, 0};
}

#endif
