/* SPDX-License-Identifier: GPL-2.0-or-later */
/* value_index.h -- the index of attribute values inside this folder. query.h is for other folders,
 * index_key.h has the format of an entry.
 *
 * A page's index goes through stages, kept in the store (OSD_META_INDEX) and, for a quick look, in
 * the partition:
 *
 *   declared: CLEAR (entries of an earlier index go) -> FILL (what is there gets entries) -> READY
 *   dropped:  DROP (entries go) -> forgotten
 *
 * From FILL on, every transaction that changes an attribute of the page also changes the index.  The
 * builder (index_build.c) begins the work of a stage only when all transactions that may have seen the
 * previous stage have ended: osd_index_grace.  So no change is missed, and no transaction uses entries
 * that are being cleared. */
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
/* Loads the partition's indexed pages from the store.  It calls the store with index_lock held, so a
 * thread that holds a record must not call it. */
enum osd_status osd_index_reload(struct osd_objects *objects, struct osd_partition *partition);
/* The stage as stored, in kv or, when NULL, as committed; OSD_E_NO_OBJECT: not declared. */
enum osd_status osd_index_get(struct osd_objects *objects, struct osd_kv_txn *kv,
			      const struct osd_partition *partition, uint32_t page, bool rmw,
			      struct osd_index_record *ret_record);
enum osd_status osd_index_put(struct osd_kv_txn *kv, const struct osd_partition *partition,
			      uint32_t page, const struct osd_index_record *record);
/* Called when the store is opened, in the transaction that counts the opening. before: the number of
 * earlier openings. */
enum osd_status osd_index_begin_run(struct osd_objects *objects, struct osd_kv_txn *kv,
				    uint64_t before, uint64_t now);
/* Called when the store is opened, once the partitions are in memory. */
enum osd_status osd_index_load(struct osd_objects *objects);

/* ---- index_keep.c ------------------------------------------------------------------------ */

/* Whether a change of the attribute of the object at hand changes the index. */
bool osd_index_keeps(const struct osd_txn *txn, uint32_t page, uint32_t number);
/* Notes that the stored attribute of the object at hand gets the value; length 0: it becomes undefined. */
enum osd_status osd_index_note(struct osd_txn *txn, uint32_t page, uint32_t number,
			       const uint8_t *value, size_t length);
/* Applies all noted changes in order of keys.  Call it when no change is noted any more. */
enum osd_status osd_index_apply(struct osd_txn *txn);
/* Mark the begin and the end of a transaction that may change something. */
void osd_index_enter(struct osd_txn *txn);
void osd_index_leave(struct osd_txn *txn);
/* Waits until all transactions that began before the call have ended.  False: the store is being closed. */
bool osd_index_grace(struct osd_objects *objects);

/* ---- query_index.c ----------------------------------------------------------------------- */

struct osd_id_list {
	uint64_t *ids; /* owned */
	size_t count, capacity;
};

/* Candidates for a query, from the index. */
struct osd_candidates {
	struct osd_id_list sure;  /* have a value in a range; ascending, each once */
	struct osd_id_list maybe; /* may have one; ascending, each once, none of sure */
};

struct osd_query;
/* Finds candidates for the query.  *ret_found false: no index helps, or there are more than most
 * candidates, so that a walk over the members is cheaper. */
enum osd_status osd_index_search(struct osd_txn *txn, const struct osd_query *query,
				 const struct osd_place *place, uint64_t most,
				 struct osd_candidates *candidates, bool *ret_found);
void osd_candidates_release(struct osd_candidates *candidates);

#endif
