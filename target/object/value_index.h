/* SPDX-License-Identifier: GPL-2.0-or-later */
/* value_index.h -- the index of attribute values inside this folder; query.h says what it is to
 * others, index_key.h what an entry looks like.
 *
 * A page's index goes through stages, kept in the store (OSD_META_INDEX) and, for a quick look, in
 * the partition:
 *
 *   declared: CLEAR (entries of an earlier index go) -> FILL (what is there gets entries) -> READY
 *   dropped:  DROP (entries go) -> forgotten
 *
 * From FILL on every transaction that changes an attribute of the page changes the index too.  The
 * builder (index_build.c) does the work of a stage only when every transaction that may have seen
 * the stage before has ended: osd_index_grace.  So no change is missed, and clearing meets nobody. */
#ifndef OSD_OBJECT_VALUE_INDEX_H
#define OSD_OBJECT_VALUE_INDEX_H

#include "object/index_key.h"
#include "object/internal.h"

#define OSD_INDEX_PAGES 64u /* declared, or being dropped, in a partition */

struct osd_index_slots {
	_Atomic uint64_t words[OSD_INDEX_PAGES]; /* page << 8 | stage; 0: free */
};

/* ---- index.c ----------------------------------------------------------------------------- */

extern const struct osd_page_provider osd_index_page;

/* Whether an index of the page can hold the attribute: one that is stored as it was set. */
bool osd_index_takes(uint32_t page, uint32_t number);
enum osd_index_stage osd_index_stage_of(const struct osd_partition *partition, uint32_t page);
static inline bool osd_index_is_kept(enum osd_index_stage stage)
{
	return stage == OSD_INDEX_FILL || stage == OSD_INDEX_DONE;
}
/* Makes what the partition says in memory that of the store.  Calls the store with index_lock held,
 * which nobody takes who holds a record. */
enum osd_status osd_index_reload(struct osd_objects *objects, struct osd_partition *partition);
/* The stage as stored, in kv or, when NULL, as committed; OSD_E_NO_OBJECT: not declared. */
enum osd_status osd_index_get(struct osd_objects *objects, struct osd_kv_txn *kv,
			      const struct osd_partition *partition, uint32_t page, bool rmw,
			      struct osd_index_record *ret_record);
enum osd_status osd_index_put(struct osd_kv_txn *kv, const struct osd_partition *partition,
			      uint32_t page, const struct osd_index_record *record);
/* At open, in the transaction that counts it; before: how often the store had been opened. */
enum osd_status osd_index_begin_run(struct osd_objects *objects, struct osd_kv_txn *kv,
				    uint64_t before, uint64_t now);
/* At open, when the partitions are there. */
enum osd_status osd_index_load(struct osd_objects *objects);

/* ---- index_keep.c ------------------------------------------------------------------------ */

/* Whether a change of the attribute of the object at hand changes the index. */
bool osd_index_keeps(const struct osd_txn *txn, uint32_t page, uint32_t number);
/* The stored attribute of the object at hand is about to get the value; length 0: none. */
enum osd_status osd_index_note(struct osd_txn *txn, uint32_t page, uint32_t number,
			       const uint8_t *value, size_t length);
/* All noted changes, in order of keys; last before the commit. */
enum osd_status osd_index_apply(struct osd_txn *txn);
/* A transaction that may change something begins and ends. */
void osd_index_enter(struct osd_txn *txn);
void osd_index_leave(struct osd_txn *txn);
/* Waits until all transactions that have begun before it are over; false: the store is closing. */
bool osd_index_grace(struct osd_objects *objects);

/* ---- query_index.c ----------------------------------------------------------------------- */

struct osd_id_list {
	uint64_t *ids; /* owned */
	size_t count, capacity;
};

/* Who may match, from the index. */
struct osd_candidates {
	struct osd_id_list sure;  /* have a value in a range asked for; ascending, each once */
	struct osd_id_list maybe; /* to be looked at; ascending, each once, none of sure */
};

struct osd_query;
/* Finds candidates for the query; *ret_found false: no index helps, or there are more than most,
 * when it is better to look at the members. */
enum osd_status osd_index_search(struct osd_txn *txn, const struct osd_query *query,
				 const struct osd_place *place, uint64_t most,
				 struct osd_candidates *candidates, bool *ret_found);
void osd_candidates_release(struct osd_candidates *candidates);

#endif
