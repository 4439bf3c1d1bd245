/* SPDX-License-Identifier: GPL-2.0-or-later */
/* txn.h -- transactions over records: the object at hand, effects after the commit, and the changes of
 * user objects, collections and memberships.  Not here: transactions as commands see them (object.h),
 * attributes (attributes.h). */
#ifndef OSD_OBJECT_TXN_H
#define OSD_OBJECT_TXN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/object.h"
#include "object/record.h"
#include "object/txn_run.h"
#include "store/store.h"

struct osd_partition;
struct osd_membership;

/* ---- transactions ----------------------------------------------------------------------------- */

struct osd_effect {
	struct osd_effect *next;
	void (*run)(struct osd_txn *txn, struct osd_effect *effect, bool committed);
	struct osd_partition *partition; /* owned reference or NULL */
	struct osd_object_id id;
	uint64_t value, generation;
	uint64_t head_part; /* bytes of its head, or the head size */
	uint8_t head_on;
	struct osd_data_version version; /* once its length has changed */
	void (*fn)(void *arg, bool committed);
	void *arg;
};

struct osd_index_change;
struct osd_member_change;
struct osd_tally_note;

struct osd_first {
	osd_first_fn *fn; /* NULL: there is nothing to do first */
	void *arg;
	struct osd_object_id id;
};

struct osd_txn {
	struct osd_objects *objects;
	struct osd_kv_txn *kv; /* owned; NULL: nothing locked yet */
	unsigned flags;
	uint64_t now_ms;
	const bool *stop; /* osd_txn_watch */
	const struct osd_txn_watcher *watcher; /* borrowed; NULL: none */
	const char *principal; /* osd_txn_act_for */
	uint64_t weight;
	struct osd_effect *effects, **last_effect;
	bool partitions_changed;   /* in effects: it has made or removed one (partition.c) */
	struct osd_effect *charge; /* in effects: the last one used (quota.c); NULL: none */
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
	bool loaded, locked, dirty;  /* the record */
	bool shown;		     /* it is a directory of a view (view.h) */
	struct osd_place tree;	     /* its place in the base then */
	bool flat;		     /* it is a directory that a view has without those in it */
	bool unborn;		     /* it is of a new object, and not stored yet */
	bool foreseen;		     /* it is stored as in stored */
	bool for_views; /* no quota and no check stands in the way (view.h) */
	uint8_t stored[OSD_RECORD_BYTES];
	bool length_set;	     /* record.length is new in this transaction */
	struct osd_data_version length_version; /* of the object then */
	bool accessed;		     /* its access time is noted */
	struct osd_record record;
	/* The last result of osd_stack_length, until the transaction takes something up to change it. */
	struct {
		bool there, known;
		struct osd_object_id id;
		uint64_t stored, length;
	} read_length;
	void *kept;		     /* owned; a page provider's (osd_txn_keep) */
	struct osd_object *changing; /* borrowed: this thread has all of it locked (change.c) */
	uint64_t changing_length;    /* its length once its data has changed */
	struct osd_object_id versioned; /* osd_txn_show_version; (0, 0): none */
	struct osd_data_version version;
	struct osd_membership *memberships; /* owned; by number (membership.c) */
	size_t membership_count, membership_capacity;
	bool memberships_known, member_count_known;
	bool attributes_counted; /* record.attribute_count is that of the root or partition */
	bool adds_attributes; /* the last attribute set was a new one: the next probably is, too */
	uint64_t member_count;
	uint64_t removals; /* objects->removals before the record was read */
	struct osd_place held; /* the partition whose record a change has locked; id 0: none */

	struct {
		struct osd_changed_collection {
			struct osd_place place;
			bool missed; /* no collection of the partition had a view then */
		} *list; /* owned: their members change (data_version.c) */
		size_t count, capacity;
	} collections;
	struct {
		struct osd_member_change *list; /* owned: what views follow (view_members.c) */
		size_t count, capacity;
	} members;
	const struct osd_effect *last_changed_members; /* in effects (attr_time.c) */
	struct osd_first first;			       /* osd_txn_first */
};

/* Whether long work inside txn must end (osd_txn_watch, osd_txn_watch_by).  Call it for each record. */
static inline bool osd_txn_stopped(const struct osd_txn *txn)
{
	if (txn->stop && __atomic_load_n(txn->stop, __ATOMIC_RELAXED))
		return true;
	return txn->watcher && !txn->watcher->goes_on(txn->watcher->arg);
}

/* ---- txn.c ------------------------------------------------------------------------------------ */

/* The place of the collection at hand whose members are listed. */
static inline const struct osd_place *osd_txn_members(const struct osd_txn *txn)
{
	return txn->shown ? &txn->tree : &txn->place;
}
/* Begins the store's transaction if it has not begun. */
enum osd_status osd_txn_lock_store(struct osd_txn *txn);
/* Takes up the object: root, partition, collection or user object.  write: its record is locked and
 * may be changed (then set txn->dirty).  OSD_E_CONTRACT: not that of a directory of a view. */
enum osd_status osd_txn_take(struct osd_txn *txn, struct osd_object_id id, bool write);
/* The same of an object of that type.  OSD_E_NO_OBJECT: it has another. */
enum osd_status osd_txn_take_type(struct osd_txn *txn, struct osd_object_id id,
				  enum osd_object_type type, bool write);
/* Stores a record that must be new, and returns its bytes.  Its created time may become later (created.c). */
enum osd_status osd_txn_put_new(struct osd_txn *txn, const struct osd_place *place,
				struct osd_record *record, uint8_t bytes[OSD_RECORD_BYTES]);
/* Stores the record of the new object at hand, as it will be with so many attributes.  If it is not so in the end, it is
 * stored again.  OSD_E_CONFLICT: a client has requested its id meanwhile, and the next attempt takes another. */
enum osd_status osd_txn_store_new(struct osd_txn *txn, uint32_t attribute_count);
/* Writes the record at hand if it has changed, and releases it. */
enum osd_status osd_txn_let_go(struct osd_txn *txn);
/* Lets the object at hand go, finds the partition and holds it (osd_partition_hold). */
enum osd_status osd_partition_take(struct osd_txn *txn, uint64_t id, bool write,
				   struct osd_partition **ret_partition);
/* NULL: out of memory. */
struct osd_effect *osd_txn_effect(struct osd_txn *txn,
				  void (*run)(struct osd_txn *txn, struct osd_effect *effect,
					      bool committed));
/* Adds it with a reference of its own to the partition. */
enum osd_status osd_txn_add_effect(struct osd_txn *txn, struct osd_effect effect);
enum osd_object_type osd_txn_type(const struct osd_txn *txn);
/* The account of the object at hand; NULL: the root. */
struct osd_charge_account *osd_txn_account(struct osd_txn *txn);
/* Reads a record.  kv NULL: as it was committed.  flags: of osd_kv_get, such as OSD_KV_RMW.  The object at hand stays. */
enum osd_status osd_record_load(struct osd_objects *objects, struct osd_kv_txn *kv,
				const struct osd_place *place, unsigned flags,
				struct osd_record *ret_record);
enum osd_status osd_record_store(struct osd_kv_txn *kv, const struct osd_place *place,
				 const struct osd_record *record);
/* Whether the table has a record with this key. */
enum osd_status osd_record_is_there(struct osd_objects *objects, struct osd_kv_txn *kv,
				    enum osd_kv_table table, struct osd_bytes key, bool *ret_there);
/* Reads a stored attribute.  *ret_length 0: there is none. */
enum osd_status osd_attr_load(struct osd_objects *objects, struct osd_kv_txn *kv,
			      const struct osd_place *place, uint32_t page, uint32_t number,
			      uint8_t *buffer, size_t capacity, size_t *ret_length);
/* A transaction of this layer's own.  The thread must have no other one open.  Commit and abort consume
 * it. */
enum osd_status osd_own_begin(struct osd_objects *objects, enum osd_kv_access access,
			      struct osd_kv_txn **ret_kv);
enum osd_status osd_own_commit(struct osd_objects *objects, struct osd_kv_txn *kv, bool durable);
void osd_own_abort(struct osd_kv_txn *kv);
/* osd_txn_run() (txn_run.h) for such a transaction, with the same rules.  flags: OSD_TXN_READ_ONLY, or
 * OSD_COMMIT_DURABLE. */
typedef enum osd_status osd_own_fn(struct osd_kv_txn *kv, void *arg);
enum osd_status osd_own_run(struct osd_objects *objects, unsigned flags, osd_own_fn *fn, void *arg);

/* objects.c: calls osd_removal_fn, in the transaction that removes id. */
enum osd_status osd_note_removal(struct osd_txn *txn, struct osd_object_id id);

/* ---- source.c --------------------------------------------------------------------------------- */

struct osd_source_value; /* wire/stage.h */

/* The value OSD_STACK_SOURCE of the object there.  kv NULL: as it was committed.  OSD_E_NO_OBJECT: it has none. */
enum osd_status osd_source_read(struct osd_objects *objects, struct osd_kv_txn *kv,
				const struct osd_place *place, struct osd_source_value *ret_source);

/* ---- object.c --------------------------------------------------------------------------------- */

/* Called when the store is opened: ids of jobs that stand apart begin where no earlier opening has
 * given them out. */
void osd_job_ids_begin(struct osd_objects *objects, uint64_t openings);
/* osd_is_apart for a record of OSD_KV_OBJECTS and its key. */
bool osd_record_is_apart(struct osd_bytes key, struct osd_bytes value);
/* A new user object's record, without a generation. */
void osd_fresh_record(const struct osd_objects *objects, const struct osd_partition *partition,
		      uint64_t now_ms, struct osd_record *record);
/* A requested id from here on does not move the mark from which free ids are searched: one object with
 * the highest id must not use up all ids. */
#define OSD_IDS_COUNTED (UINT64_C(1) << 62)
/* Takes the next count ids.  Only a request for one of them can give it out again. kv: of the caller's
 * transaction; NULL: it has none. */
enum osd_status osd_object_take_ids(struct osd_objects *objects, struct osd_kv_txn *kv,
				    struct osd_partition *partition, uint32_t count,
				    uint64_t *ret_first);
/* Moves the mark after these ids were given out or requested.  Ids that do not count do not move it. */
void osd_object_count_ids(struct osd_partition *partition, uint64_t first, uint64_t count);
/* The created time of an object that is made now: later than that of every removed one with its id. */
uint64_t osd_created_time(struct osd_objects *objects, struct osd_object_id id, uint64_t now_ms);
/* Called before the commit that removes an object, or a partition with all that is in it. */
void osd_created_gone(struct osd_objects *objects, struct osd_object_id id, uint64_t created_ms);
void osd_created_all_gone(struct osd_objects *objects, uint64_t now_ms);
/* Puts count records from the requested id on (0: the next free ones) and counts them.  OSD_E_EXISTS: an
 * id is taken.  A generation of 0 in record is replaced by a new one, the created time by one that is late
 * enough. */
enum osd_status osd_object_put_new(struct osd_txn *txn, struct osd_partition *partition,
				   uint64_t requested_id, uint32_t count,
				   const struct osd_record *record, uint64_t *ret_first);
/* Makes one object, with the id *ret_id or, if that is 0, the next free one, and takes it up.  Its record is stored by
 * osd_txn_store_new(), or when the object is released.  A generation of 0 in record is replaced by a new one. */
enum osd_status osd_object_begin_new(struct osd_txn *txn, struct osd_partition *partition,
				     const struct osd_record *record, uint64_t *ret_id);
/* Whether this transaction made the object. */
bool osd_object_is_new(const struct osd_txn *txn, struct osd_object_id id);
/* Removes the record at hand, which is locked, with its attributes and its files. */
enum osd_status osd_object_remove_record(struct osd_txn *txn);

/* ---- the collection of all user objects ------------------------------------------------------- */

/* It has no record: it exists as long as its partition, and its members are the partition's user
 * objects.  Its times are the partition's.  Only the target sets attributes of it (Command Tracking). */
static inline bool osd_is_objects_collection(struct osd_object_id id)
{
	return id.partition_id != 0 && id.object_id == OSD_OBJECTS_COLLECTION;
}

/* ---- collection.c ----------------------------------------------------------------------------- */

/* Put or remove both records of a membership, and note that the collection's data is modified.
 * number: the attribute number that joined it; 0: the target did.  OSD_E_EXISTS: the member is in it already. */
enum osd_status osd_member_pair_put(struct osd_txn *txn, const struct osd_place *collection,
				    uint64_t member, uint32_t number);
enum osd_status osd_member_pair_remove(struct osd_txn *txn, const struct osd_place *collection,
				       uint64_t member);
enum osd_status osd_member_count(struct osd_txn *txn, const struct osd_place *collection,
				 uint64_t *ret_count);

/* ---- membership.c ----------------------------------------------------------------------------- */

/* Memberships of the user object at hand, by the number of the attribute of page 4h that joined it.
 * drop_all: it leaves every collection. get: OSD_E_NO_OBJECT without such a membership. set: it leaves
 * the collection of that number, if any; OSD_E_PARAM_FIELD when it may not join the collection, or is
 * in it. */
enum osd_status osd_memberships_drop_all(struct osd_txn *txn);
enum osd_status osd_membership_get(struct osd_txn *txn, uint32_t number, uint64_t *ret_collection);
enum osd_status osd_membership_set(struct osd_txn *txn, uint32_t number, uint64_t collection);
enum osd_status osd_membership_clear(struct osd_txn *txn, uint32_t number);
struct osd_membership {
	uint32_t number; /* 0: by the target */
	uint64_t collection;
};
/* All memberships in ascending order of numbers, with those of number 0.  The list is borrowed until the
 * next call that takes up another object or changes a membership. */
enum osd_status osd_memberships(struct osd_txn *txn, const struct osd_membership **ret_list,
				size_t *ret_count);
/* Frees the list, because another object is taken up. */
void osd_memberships_forget(struct osd_txn *txn);

/* ---- list.c ----------------------------------------------------------------------------------- */

/* Up to capacity members of the collection, ascending, from initial_id on; *ret_next 0: no more. */
enum osd_status osd_list_members(struct osd_txn *txn, const struct osd_place *collection,
				 uint64_t initial_id, uint64_t *ids, size_t capacity,
				 size_t *ret_count, uint64_t *ret_next);

#endif
