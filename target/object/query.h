/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query.h -- which members of a collection have attributes with values in a range (OSD QUERY,
 * osd2-wire 3.9), and the index that answers without reading every member.
 *
 * Values compare as unsigned bytes (memcmp; of two with a common beginning the shorter is less),
 * bounds are inclusive.  An object without the attribute does not match.
 *
 * The index covers the pages of the user-object range that the partition declares in its attribute
 * page OSD_PAGE_INDEX: attribute number = page number, value 1 byte (enum osd_index_state).  Setting
 * 1 declares the page, length 0 drops it.  The index of a declared page is kept in the transaction
 * that changes an attribute; what was there before is indexed in the background, in transactions of
 * bounded size, across restarts.  A query uses it once it is ready and reads the members before;
 * answers are the same. */
#ifndef OSD_OBJECT_QUERY_H
#define OSD_OBJECT_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"

enum osd_index_state {
	OSD_INDEX_NONE = 0,
	OSD_INDEX_BUILDING = 1,
	OSD_INDEX_READY = 2,
};

/* Bounds are borrowed.  page < OSD_PAGE_PARTITION_BASE; else OSD_E_CDB_FIELD. */
struct osd_criterion {
	uint32_t page, number;
	const uint8_t *min, *max;
	size_t min_length, max_length; /* 0: no bound on this side */
};

struct osd_query {
	/* Any collection; OSD_OBJECTS_COLLECTION: the whole partition. */
	struct osd_object_id collection;
	bool match_all; /* every criterion, else at least one */
	const struct osd_criterion *criteria;
	size_t count; /* 0: every member that is a user object */
	/* Matches for which it says no are as if they were not there; NULL: all are.  with_tag: as in
	 * osd_txn_facts. */
	enum osd_status (*sees)(void *arg, struct osd_txn *txn,
				const struct osd_object_facts *facts, bool *ret_sees);
	void *arg;
	bool with_tag;
	uint64_t initial_id;
	/* osd_query ends after about so many members looked at, even without a match; next_id says
	 * where to go on.  0: no bound.  total_count is then of what it looked at. */
	uint64_t look_max;
};

/* Ids that match, ascending, from initial_id on; as osd_list.  In a read-only transaction that may
 * look at any number of objects: it gives its locks back as it goes. */
enum osd_status osd_query(struct osd_txn *txn, const struct osd_query *query, uint64_t *ids,
			  size_t capacity, struct osd_list_result *ret_result);

/* The same step by step, for a command that runs long, tells how far it is, and stops when told.
 * Every step may be given a transaction of its own (read-only, as above); an OSD_E_CONFLICT leaves the
 * walk where it was. */
struct osd_query_walk;
/* The criteria stay borrowed until osd_query_end.  OSD_E_NO_OBJECT: no such collection. */
enum osd_status osd_query_begin(struct osd_txn *txn, const struct osd_query *query,
				struct osd_query_walk **ret_walk);
/* The next ids that match, ascending: up to capacity (at least 1), possibly none, because a step
 * looks at a bounded number of members.  *ret_done: there are no more. */
enum osd_status osd_query_step(struct osd_txn *txn, struct osd_query_walk *walk, uint64_t *ids,
			       size_t capacity, size_t *ret_count, bool *ret_done);
/* How far it is, 0 to 100; an estimate. */
unsigned osd_query_percent(const struct osd_query_walk *walk);
void osd_query_end(struct osd_query_walk *walk); /* NULL is fine */
static inline void osd_query_endp(struct osd_query_walk **walk)
{
	osd_query_end(*walk);
}

#endif
