/* SPDX-License-Identifier: GPL-2.0-or-later */
/* internal.h -- what the files of this folder share, and struct osd_objects;
 * nobody else includes it.  The rest by what it is about:
 *
 *   partition.h   partitions in memory, quotas, counts of ids
 *   cache.h       objects in memory
 *   data.h        their bytes, and the records that say how many
 *   heads.h       which device has their first bytes
 *   sums.h        their checksums, and the scrub
 *   txn.h         transactions over records, collections, memberships
 *   attributes.h  attributes of a transaction's object
 *   upkeep.h      recovery, threads beside the requests
 *
 * target/README.md has the order of locks, range locks and transactions.  Of this folder's locks only
 * index_lock is held over a store call.
 *
 * Memory and records.  Counters (used bytes, object counts) live in memory only and are counted
 * again at open.  Of an object in the cache, length and times in memory are the truth and the
 * record may lag; an object not in the cache is as its record says, because only settled entries
 * leave the cache. */
#ifndef OSD_OBJECT_INTERNAL_H
#define OSD_OBJECT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/helper.h"
#include "base/lock.h"
#include "object/attributes.h"
#include "object/cache.h"
#include "object/data.h"
#include "object/heads.h"
#include "object/object.h"
#include "object/partition.h"
#include "object/record.h"
#include "object/space.h"
#include "object/sums.h"
#include "object/txn.h"
#include "object/upkeep.h"
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

struct osd_objects {
	struct osd_media *media; /* owned; NULL: in memory */
	struct osd_kv *kv;	 /* owned */
	struct osd_tier tier;	 /* owned */
	struct osd_freeze *freeze; /* owned */
	struct osd_fault_plan *faults; /* owned; of the library for tests (store/stand_in.h) */
	enum osd_kv_commit commit; /* for OSD_COMMIT_PROCESS */
	bool sync_data;		   /* durability = sync */
	bool strict;
	struct osd_heads heads;
	struct osd_sums sums;
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
	struct {
		void (*fn)(void *arg); /* NULL: nobody */
		void *arg;
	} policy_watcher; /* changes while no transaction is open */
	uint8_t seal[OSD_SEAL_BYTES];	 /* of a store in memory */

	struct osd_rwlock partitions_lock;
	struct osd_partition *partitions[OSD_PARTITION_BUCKETS]; /* under partitions_lock */
	struct osd_root_record root;				 /* under partitions_lock */
	_Atomic uint32_t epoch;					 /* the root record's */
	_Atomic uint8_t isolation;				 /* the same */
	_Atomic uint64_t root_times[OSD_T_COUNT];
	_Atomic bool root_times_dirty;
	_Atomic uint64_t partition_count, object_count, used_bytes, capacity_bytes;
	_Atomic uint64_t charged_bytes; /* of all partitions, and for attributes of the root */
	_Atomic uint64_t next_generation;
	_Atomic uint64_t next_job_id; /* of those that stand apart */
	double recovery_seconds;

	struct osd_lock cache_lock;
	struct osd_object *cache[OSD_CACHE_BUCKETS]; /* under cache_lock */
	struct osd_lru lru_open, lru_shut;	     /* unreferenced; by whether files are open */
	size_t cache_count, open_count, open_max;
	_Atomic uint64_t removals; /* changed under cache_lock: counts what makes a record read
				      earlier stale */

	struct osd_helper reaper, indexer;
	pthread_t maintenance, mover, scrub;
	bool maintenance_runs, mover_runs, scrub_runs;
	struct osd_lock work_lock;
	pthread_cond_t work;
	bool stop, settle_now, index_now, move_now, scrub_now; /* under work_lock */
	_Atomic uint64_t tick;

	struct osd_lock index_lock;	 /* osd_index_reload */
	_Atomic unsigned index_side;	 /* transactions that begin now count on this side */
	_Atomic uint64_t index_users[2]; /* changing transactions under way */
	/* Transactions that change entries: before they do, and when they are over.  A search that
	 * sees both stand still and equal has met none. */
	_Atomic uint64_t index_begun, index_ended;
	bool unclean; /* the store was not closed: times of files may be later than those of records
		       */
	_Atomic bool disk_full; /* ballast is gone: refuse what needs space */
	struct osd_space_log space;
};

#endif
