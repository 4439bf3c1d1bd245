/* SPDX-License-Identifier: GPL-2.0-or-later */
/* partition.h -- partitions in memory: what the files of this folder know of each, its counters, its
 * quotas, and how many ids it has from one on.
 * Not here: the records of partitions (record.h), the commands on them (object.h). */
#ifndef OSD_OBJECT_PARTITION_H
#define OSD_OBJECT_PARTITION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "object/object.h"
#include "object/record.h"

/* ---- partitions ------------------------------------------------------------------------------- */

#define OSD_TALLIES	       16u
#define OSD_TALLY_USER_OBJECTS 0 /* of: these, or the id of a collection */
#define OSD_TALLY_COLLECTIONS  1

/* How many ids there are from one on. */
struct osd_tally {
	uint64_t of, from, count;
	uint64_t used; /* when; the oldest makes room */
	bool known, stays;
};

/* What a set of objects takes, and how much it may.  Atomics may be read at any time. */
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

/* Jobs that stand apart have as much space as the partition's quota of capacity, but at least this. */
#define OSD_APART_BYTES_LEAST (UINT64_C(256) << 20)

/* A live partition.  Atomics may be read any time; who checks a limit first adds, then compares. */
struct osd_partition {
	uint64_t id;
	uint32_t incarnation;
	_Atomic unsigned references;
	struct osd_partition *next; /* in its bucket; under partitions_lock */
	struct osd_charge_account data;    /* what attributes and quotas of the partition are about */
	struct osd_charge_account apart;   /* osd_is_apart */
	_Atomic uint64_t head_bytes[2]; /* of used_bytes in heads, by enum osd_tier_head_on */
	_Atomic uint64_t next_object_id;
	_Atomic uint64_t id_mark;    /* as in OSD_META_ID_MARK */
	_Atomic uint64_t max_length; /* quota */
	_Atomic uint32_t collections_limit;
	_Atomic uint8_t bypass;
	_Atomic uint32_t user_tag; /* policy access tag of new user objects */
	_Atomic uint64_t times[OSD_T_COUNT];
	_Atomic bool times_dirty;
	/* tally.c */
	struct osd_lock tally_lock;
	struct osd_tally tallies[OSD_TALLIES]; /* under tally_lock */
	uint64_t tally_clock;		       /* under tally_lock */
	_Atomic uint64_t members_changing;     /* noted by transactions under way */
	_Atomic uint64_t member_changes;       /* committed */
	/* Indexed pages (value_index.h): NULL until one is declared; freed with the partition. */
	_Atomic(struct osd_index_slots *) index;
	_Atomic uint64_t index_serial; /* counts changes of what index says */
};

/* Whether it is an object of a job that stands apart from the partition's data: no list of the partition's
 * objects has it, and no quota or count of them.  The collection of jobs is one, too.  flags: enum
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
/* With its record held for writing; what is in memory is for the caller to change, once committed. */
enum osd_status osd_partition_store(struct osd_txn *txn, struct osd_partition *partition,
				    const struct osd_partition_record *record);
/* The root record for a change. */
enum osd_status osd_root_hold(struct osd_txn *txn, struct osd_root_record *ret_root);
enum osd_status osd_root_store(struct osd_txn *txn, const struct osd_root_record *root);
/* Once committed: quotas, bypass and tag in memory become the record's. */
void osd_partition_apply_quotas(struct osd_partition *partition,
				const struct osd_partition_record *record);
/* Forgets all partitions and objects (FORMAT OSD). */
void osd_partitions_forget(struct osd_objects *objects);

/* ---- quota.c ---------------------------------------------------------------------------------- */

/* What is charged for beside the objects' data. */
enum osd_charge_for { OSD_CHARGE_ATTRIBUTES, OSD_CHARGE_RECORDS };

/* Takes delta bytes for the object, or OSD_E_QUOTA, OSD_E_NO_SPACE.  use_reserve: a job must be
 * able to say how it ended, whatever quotas say. */
enum osd_status osd_charge(struct osd_objects *objects, struct osd_charge_account *account,
			   uint64_t delta, bool use_reserve);
/* For what was allowed before: no limit is asked. */
void osd_charge_committed(struct osd_objects *objects, struct osd_charge_account *account,
			  uint64_t delta);
/* Gives bytes back, as many as were charged for them. */
void osd_uncharge(struct osd_objects *objects, struct osd_charge_account *account, uint64_t delta);
/* At open, before there are other threads: what is found to be stored.  NULL: of the root. */
void osd_charge_found(struct osd_objects *objects, struct osd_charge_account *account,
		      enum osd_charge_for what, uint64_t bytes);
/* In txn, what is charged to an account of partition changes from before to after bytes: more is taken
 * now, less is given back when txn has committed.  Both NULL: of the root.  limited: OSD_E_QUOTA,
 * OSD_E_NO_SPACE where that is more than there may be. */
enum osd_status osd_charge_in(struct osd_txn *txn, struct osd_partition *partition,
			      struct osd_charge_account *account, enum osd_charge_for what,
			      uint64_t before, uint64_t after, bool limited);
/* The same for user objects and collections: OSD_E_QUOTA beyond the limit of their number. */
enum osd_status osd_count_add(struct osd_objects *objects, struct osd_charge_account *account,
			      uint64_t count);
void osd_count_drop(struct osd_objects *objects, struct osd_charge_account *account,
		    uint64_t count);
/* One partition more, below the limit; taken back by who does not make it. */
enum osd_status osd_partitions_add(struct osd_objects *objects, uint64_t limit);

/* ---- tally.c ---------------------------------------------------------------------------------- */

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

/* ---- methods.c -------------------------------------------------------------------------------- */

/* A new root, or partition, gets the security method that it begins with. */
enum osd_status osd_methods_begin(struct osd_objects *objects, struct osd_kv_txn *kv,
				  uint32_t epoch);
enum osd_status osd_methods_inherit(struct osd_txn *txn, uint32_t epoch, uint64_t partition_id,
				    uint32_t incarnation);

#endif
