/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query.h -- finds the members of a collection with attribute values in given ranges (OSD QUERY,
 * osd2-wire 3.9).  An index makes it unnecessary to read every member.
 *
 * Values compare as unsigned bytes (memcmp); of two with a common beginning the shorter is less.  Bounds
 * are inclusive.  An object without the attribute does not match.
 *
 * The index covers the pages of the user-object range that the partition declares in its attribute page
 * OSD_PAGE_INDEX: attribute number = page number, value 1 byte (enum osd_index_state).  Setting 1
 * declares the page, length 0 drops it.  The transaction that changes an attribute of a declared page
 * also changes the index.  Existing attributes are indexed in the background, in transactions of bounded
 * size, across restarts.  A query uses the index once it is ready.  Before that it reads the members,
 * with the same answer. */
#ifndef OSD_OBJECT_QUERY_H
#define OSD_OBJECT_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"
#include "wire/query_list.h"

enum osd_index_state {
	OSD_INDEX_NONE = 0,
	OSD_INDEX_BUILDING = 1,
	OSD_INDEX_READY = 2,
};

struct osd_query {
	/* Any collection; OSD_OBJECTS_COLLECTION: the whole partition. */
	struct osd_object_id collection;
	bool match_all; /* every criterion, else at least one */
	/* Their pages are below OSD_PAGE_PARTITION_BASE; else OSD_E_CDB_FIELD. */
	const struct osd_criterion *criteria;
	size_t count; /* 0: every member that is a user object */
	/* False in *ret_sees hides a match from the answer; NULL: none is hidden. with_tag: as in
	 * osd_txn_facts. */
	enum osd_status (*sees)(void *arg, struct osd_txn *txn,
				const struct osd_object_facts *facts, bool *ret_sees);
	void *arg;
	bool with_tag;
	uint64_t initial_id;
	/* osd_query ends after about this many members, even without a match; next_id says where to
	 * continue. total_count then covers these members only. 0: no bound.  With sees and an index it ends
	 * behind a match that is not hidden, or when there are no more. */
	uint64_t look_max;
};

/* Finds the matching ids from initial_id on, ascending; results as for osd_list.  A read-only
 * transaction releases its locks from object to object, so a query may read any number of them. */
enum osd_status osd_query(struct osd_txn *txn, const struct osd_query *query, uint64_t *ids,
			  size_t capacity, struct osd_list_result *ret_result);

/* The same in steps, for a long command that reports its progress and can be aborted.  Each step may
 * have a transaction of its own (read-only, as above).  After OSD_E_CONFLICT the walk is where it was
 * before the step. */
struct osd_query_walk;
/* The criteria stay borrowed until osd_query_end.  OSD_E_NO_OBJECT: no such collection. */
enum osd_status osd_query_begin(struct osd_txn *txn, const struct osd_query *query,
				struct osd_query_walk **ret_walk);
/* The next matching ids, ascending: up to capacity (at least 1).  There may be none, because a step
 * reads a bounded number of members.  *ret_done: the walk is over. */
enum osd_status osd_query_step(struct osd_txn *txn, struct osd_query_walk *walk, uint64_t *ids,
			       size_t capacity, size_t *ret_count, bool *ret_done);
/* The estimated progress, 0 to 100. */
unsigned osd_query_percent(const struct osd_query_walk *walk);
void osd_query_end(struct osd_query_walk *walk); /* NULL is fine */

#endif
