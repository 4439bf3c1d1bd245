/* SPDX-License-Identifier: GPL-2.0-or-later */
/* partition.h -- partitions in memory: the struct of a partition, its counters and quotas, and the
 * numbers of its ids.  Not here: the records of partitions (record.h), the commands on them (object.h). */
#ifndef OSD_OBJECT_PARTITION_H
#define OSD_OBJECT_PARTITION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "object/object.h"
#include "object/record.h"

struct osd_effect;

/* ---- partitions ------------------------------------------------------------------------------- */

#define OSD_TALLIES	       16u
#define OSD_TALLY_USER_OBJECTS 0 /* of: these, or the id of a collection */
#define OSD_TALLY_COLLECTIONS  1

/* The number of ids from one id on. */
struct osd_tally {
	uint64_t of, from, count;
	uint64_t used; /* time of last use; the oldest one is replaced */
	bool known, stays;
};

/* The charges of a set of objects, and their limits.  Atomics may be read at any time. */
struct osd_charge_account {
	_Atomic bool removed;		  /* with its partition */
	_Atomic uint64_t used_bytes;	  /* sum of the objects' lengths */
	_Atomic uint64_t attribute_bytes; /* charged for attributes (attr_charge.c) */
	_Atomic uint64_t record_bytes;	  /* charged for records of higher layers: jobs */
	_Atomic uint64_t charged_bytes;	  /* the sum of these three: what capacity limits */
	_Atomic uint64_t object_count;	  /* user objects and collections */
	_Atomic uint64_t charges;	  /* counts changes of these bytes and of object_count */
	_Atomic uint64_t capacity, count_limit;
};

/* Jobs that stand apart have as much space as the partition's capacity quota, but at least this. */
#define OSD_APART_BYTES_LEAST (UINT64_C(256) << 20)

/* A partition that exists.  Atomics may be read at any time.  A check of a limit first adds, then
 * compares. */
struct osd_partition {
	uint64_t id;
	uint32_t incarnation;
	_Atomic unsigned references;
	struct osd_partition *next; /* in its bucket; under partitions_lock */
	struct osd_object *entries; /* those of its objects in memory, by partition_next; under cache_lock */
	struct osd_charge_account data;    /* the one that the partition's attributes and quotas describe */
	struct osd_charge_account apart;   /* osd_is_apart */
	_Atomic uint64_t head_bytes[2]; /* of used_bytes in heads, by enum osd_tier_head_on */
	_Atomic uint64_t next_object_id;
	_Atomic uint64_t id_mark;    /* as in OSD_META_ID_MARK */
	uint64_t quotas_change;	     /* under partitions_lock: of quotas, bypass, tag */
	_Atomic uint64_t max_length; /* quota */
	_Atomic uint32_t collections_limit;
	_Atomic uint8_t bypass;
	_Atomic uint32_t user_tag; /* policy access tag of new user objects */
	_Atomic uint64_t stacked; /* stack.h */
	_Atomic bool viewed;  /* it may have views (view.h) */
	_Atomic bool parted;  /* its collections may have views */
	_Atomic bool shows;   /* it may be a view; set before the commit that makes it one */
	_Atomic uint64_t hooks; /* hooks.c */
	_Atomic uint64_t times[OSD_T_COUNT];
	_Atomic bool times_dirty;
	/* tally.c */
	struct osd_lock tally_lock;
	struct osd_tally tallies[OSD_TALLIES]; /* under tally_lock */
	uint64_t tally_clock;		       /* under tally_lock */
	_Atomic uint64_t members_changing;     /* noted by running transactions */
	_Atomic uint64_t member_changes;       /* committed */
	/* Indexed pages (value_index.h): NULL until one is declared; freed with the partition. */
	_Atomic(struct osd_index_slots *) index;
	_Atomic uint64_t index_serial; /* counts changes of what index says */
};

/* Whether it is an object of a job that stands apart from the partition's data: lists, counts and
 * quotas of the partition leave it out.  The collection of jobs is one, too. flags: enum
 * osd_record_flags. */
static inline bool osd_is_apart(uint64_t object_id, uint16_t flags)
{
	return object_id == OSD_JOBS_COLLECTION ||
	       (flags & OSD_REC_SURROGATE && object_id >= OSD_JOB_IDS_FIRST &&
		object_id <= OSD_JOB_IDS_LAST);
}

static inline struct osd_charge_account *osd_account_of(struct osd_partition *partition,
						 uint64_t object_id, uint16_t flags)
{
	return osd_is_apart(object_id, flags) ? &partition->apart : &partition->data;
}

/* ---- partition.c ------------------------------------------------------------------------------ */

/* The partition, with a reference.  With txn also one that txn has made; txn may be NULL. */
enum osd_status osd_partition_get(struct osd_objects *objects, struct osd_txn *txn, uint64_t id,
				  struct osd_partition **ret_partition);
/* Whether the partition exists whose id and incarnation a key begins with: records of another incarnation belong to a
 * removed partition of the same id.  *partition, which the caller puts in the end, is that of the last call, or NULL. */
bool osd_partition_of_key(struct osd_objects *objects, const uint8_t *key,
			  struct osd_partition **partition);
/* Another reference; NULL is fine, here and when it is put. */
static inline struct osd_partition *osd_partition_ref(struct osd_partition *partition)
{
	if (partition)
		atomic_fetch_add(&partition->references, 1);
	return partition;
}
void osd_partition_put(struct osd_partition *partition);
OSD_DEFINE_CLEANUP(struct osd_partition *, osd_partition_put)
/* Makes a partition in memory from its record. */
struct osd_partition *osd_partition_new(uint64_t id, const struct osd_partition_record *record);
/* Effects of the transaction that makes or removes effect->partition. */
void osd_partition_created(struct osd_txn *txn, struct osd_effect *effect, bool committed);
void osd_partition_removed(struct osd_txn *txn, struct osd_effect *effect, bool committed);
/* Adds the partition to the table. osd_partitions_add has counted it already. */
void osd_partition_insert(struct osd_objects *objects, struct osd_partition *partition);
/* Reads the partition's record.  OSD_E_NO_PARTITION: it was removed. */
enum osd_status osd_partition_load(struct osd_objects *objects, struct osd_kv_txn *kv,
				   const struct osd_partition *partition, unsigned flags,
				   struct osd_partition_record *ret_record);
/* Reads the partition's record in txn, so that no other transaction changes it before the end of txn. */
enum osd_status osd_partition_hold(struct osd_txn *txn, struct osd_partition *partition, bool write,
				   struct osd_partition_record *ret_record);
/* Writes the record, which is held for writing.  The caller changes memory after the commit. */
enum osd_status osd_partition_store(struct osd_txn *txn, struct osd_partition *partition,
				    const struct osd_partition_record *record);
/* Read the root record for a change, and write it. */
enum osd_status osd_root_hold(struct osd_txn *txn, struct osd_root_record *ret_root);
enum osd_status osd_root_store(struct osd_txn *txn, const struct osd_root_record *root);
/* The number of a change of the root's record or a partition's.  Called while the record is held for writing. */
uint64_t osd_record_change(struct osd_objects *objects);
/* Once committed: quotas, bypass and tag in memory become the record's, unless those of a later change have. */
void osd_partition_apply_quotas(struct osd_objects *objects, struct osd_partition *partition,
				const struct osd_partition_record *record, uint64_t change);
/* OSD_E_NOT_EMPTY: it has user objects or collections. apart_too: jobs that stand apart count, too. */
enum osd_status osd_partition_check_empty(struct osd_txn *txn,
					  const struct osd_partition *partition, bool apart_too);
/* Forgets all partitions and objects (FORMAT OSD). */
void osd_partitions_forget(struct osd_objects *objects);

/* ---- quota.c ---------------------------------------------------------------------------------- */

/* Charges other than those for objects' data. */
enum osd_charge_for { OSD_CHARGE_ATTRIBUTES, OSD_CHARGE_RECORDS };

/* Charges delta bytes; OSD_E_QUOTA, OSD_E_NO_SPACE: refused. use_reserve: ignores quotas and uses the
 * job reserve, so that a job can always store its end. */
enum osd_status osd_charge(struct osd_objects *objects, struct osd_charge_account *account,
			   uint64_t delta, bool use_reserve);
/* Charges bytes that were allowed before: no limit applies. */
void osd_charge_committed(struct osd_objects *objects, struct osd_charge_account *account,
			  uint64_t delta);
/* Gives bytes back, as many as were charged for them. */
void osd_uncharge(struct osd_objects *objects, struct osd_charge_account *account, uint64_t delta);
/* Charges what is found when the store is opened, before other threads run. account NULL: the root. */
void osd_charge_found(struct osd_objects *objects, struct osd_charge_account *account,
		      enum osd_charge_for what, uint64_t bytes);
/* In txn, changes the charge to an account of partition from before to after bytes.  An increase is
 * charged now, a decrease is given back after the commit.  Both NULL: the root. limited: OSD_E_QUOTA,
 * OSD_E_NO_SPACE if that exceeds a limit. */
enum osd_status osd_charge_in(struct osd_txn *txn, struct osd_partition *partition,
			      struct osd_charge_account *account, enum osd_charge_for what,
			      uint64_t before, uint64_t after, bool limited);
/* Count user objects and collections.  limited: OSD_E_QUOTA if that exceeds the limit of their number. */
enum osd_status osd_count_add(struct osd_objects *objects, struct osd_charge_account *account,
			      uint64_t count, bool limited);
void osd_count_drop(struct osd_objects *objects, struct osd_charge_account *account,
		    uint64_t count);
/* Counts one partition more; OSD_E_QUOTA: that would exceed the limit.  The caller subtracts it again if
 * it does not make the partition. */
enum osd_status osd_partitions_add(struct osd_objects *objects, uint64_t limit);

/* ---- tally.c ---------------------------------------------------------------------------------- */

/* The number of ids >= from.  False: it is not known.  With from 0 it is exact. */
bool osd_tally_get(struct osd_partition *partition, uint64_t of, uint64_t from,
		   uint64_t *ret_count);
void osd_tally_put(struct osd_partition *partition, uint64_t of, uint64_t from, uint64_t count);
/* Enclose a count of all members.  The count is kept only if no membership changed since
 * osd_tally_begin. */
uint64_t osd_tally_begin(struct osd_partition *partition);
void osd_tally_end(struct osd_partition *partition, uint64_t begun, uint64_t of, uint64_t count);
/* Corrects the numbers: count ids from first on were added, or removed. */
void osd_tally_change(struct osd_partition *partition, uint64_t of, uint64_t first, uint64_t count,
		      bool added);
/* Makes room for the next note. */
enum osd_status osd_tally_reserve(struct osd_txn *txn);
/* Notes that the transaction adds count ids from first on, or removes them. */
enum osd_status osd_tally_note(struct osd_txn *txn, struct osd_partition *partition, uint64_t of,
			       uint64_t first, uint64_t count, bool added);
/* The ids that the transaction has added to the partition at hand, modulo 2^64. */
uint64_t osd_tally_noted(const struct osd_txn *txn, uint64_t of);
/* Apply the notes just before the commit, and release them at the end of every transaction. */
void osd_tally_tell(struct osd_txn *txn);
void osd_tally_settle(struct osd_txn *txn, bool committed);

/* ---- methods.c -------------------------------------------------------------------------------- */

/* Write the initial security method of a new root, or of a new partition. */
enum osd_status osd_methods_begin(struct osd_objects *objects, struct osd_kv_txn *kv,
				  uint32_t epoch);
enum osd_status osd_methods_inherit(struct osd_txn *txn, uint32_t epoch, uint64_t partition_id,
				    uint32_t incarnation);

#endif
