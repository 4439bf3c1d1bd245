/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query_index.c -- finds candidates for a query in the value indexes.  One criterion is one range of
 * entries.  If all criteria must match, the range with the fewest entries gives the candidates, and the
 * others are checked.  If one must match, the union of the ranges gives them.  The cost grows with the
 * entries in the ranges, not with the number of objects.
 *
 * Ranges are read without locks at first.  A value that changes meanwhile can move past the scan, and
 * would be seen twice or not at all.  So a search that met a change begins again.  The last attempt locks
 * the entries while it reads. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "object/query.h"
#include "object/value_index.h"

#define FIRST_LIMIT    256u /* entries read of a range before the next range */
#define NEXT_LIMIT     4u   /* times as many in the next round */
#define UNLOCKED_TRIES 3
#define NO_LIMIT       SIZE_MAX

/* ---- lists of ids ------------------------------------------------------------------------ */

static bool add_id(struct osd_id_list *list, uint64_t id)
{
	if (!OSD_MAKE_ROOM(list->ids, list->count, list->capacity))
		return false;
	list->ids[list->count++] = id;
	return true;
}

static int ascending(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

static void sort_ids(struct osd_id_list *list)
{
	size_t kept = 0;

	if (list->count)
		qsort(list->ids, list->count, sizeof(list->ids[0]), ascending);
	for (size_t i = 0; i < list->count; i++)
		if (kept == 0 || list->ids[kept - 1] != list->ids[i])
			list->ids[kept++] = list->ids[i];
	list->count = kept;
}

/* Removes from list the ids that are in other.  Both are sorted. */
static void subtract(struct osd_id_list *list, const struct osd_id_list *other)
{
	size_t kept = 0, at = 0;

	for (size_t i = 0; i < list->count; i++) {
		while (at < other->count && other->ids[at] < list->ids[i])
			at++;
		if (at == other->count || other->ids[at] != list->ids[i])
			list->ids[kept++] = list->ids[i];
	}
	list->count = kept;
}

static size_t candidate_count(const struct osd_candidates *candidates)
{
	return candidates->sure.count + candidates->maybe.count;
}

/* Each id once. */
static void merge(struct osd_candidates *candidates)
{
	sort_ids(&candidates->sure);
	sort_ids(&candidates->maybe);
	subtract(&candidates->maybe, &candidates->sure);
}

void osd_candidates_release(struct osd_candidates *candidates)
{
	free(candidates->sure.ids);
	free(candidates->maybe.ids);
	*candidates = (struct osd_candidates){{NULL, 0, 0}, {NULL, 0, 0}};
}

/* ---- one range --------------------------------------------------------------------------- */

struct search {
	struct osd_txn *txn;
	const struct osd_query *query;
	const struct osd_place *place;
	uint64_t most;
	struct osd_candidates *candidates; /* added to */
	bool found;			   /* the whole range was read */
};

struct range {
	struct search *search;
	struct osd_index_key min, max; /* beginnings of the first and the last entries */
	bool min_cut, max_cut;	       /* entries that begin with them may be out of the range */
	size_t limit;
	bool no_memory;
};

static bool begins_with(struct osd_bytes key, const struct osd_index_key *beginning)
{
	return key.length == beginning->length + 8 &&
	       memcmp(key.data, beginning->bytes, beginning->length) == 0;
}

static bool add_entry(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct range *range = arg;
	struct search *search = range->search;
	struct osd_candidates *to = search->candidates;
	uint64_t id = osd_index_entry_object(key.data, key.length);
	bool maybe;

	(void)value;
	if (osd_txn_stopped(search->txn) ||
	    memcmp(key.data, range->max.bytes, OSD_MIN(key.length, range->max.length)) > 0)
		return false;
	if (id < search->query->initial_id)
		return true;
	if (candidate_count(to) >= range->limit) {
		search->found = false;
		return false;
	}
	maybe = (range->min_cut && begins_with(key, &range->min)) ||
		(range->max_cut && begins_with(key, &range->max));
	range->no_memory = !add_id(maybe ? &to->maybe : &to->sure, id);
	return !range->no_memory;
}

/* Adds the objects in the range of the criterion, up to limit candidates in all. */
static enum osd_status read_range(struct search *search, struct osd_kv_txn *kv,
				  const struct osd_criterion *criterion, size_t limit)
{
	struct range range = {.search = search,
			      .min_cut = criterion->min_length > OSD_INDEX_VALUE_BYTES,
			      .max_cut = criterion->max_length > OSD_INDEX_VALUE_BYTES,
			      .limit = limit};
	const struct osd_place *place = search->place;
	enum osd_status status;

	search->found = true;
	osd_index_key_begin(place, criterion->page, criterion->number, &range.min);
	range.max = range.min;
	if (criterion->min_length)
		osd_index_key_value(place, criterion->page, criterion->number, criterion->min,
				    criterion->min_length, &range.min);
	if (criterion->max_length)
		osd_index_key_value(place, criterion->page, criterion->number, criterion->max,
				    criterion->max_length, &range.max);
	status = osd_kv_scan(search->txn->objects->kv, kv, OSD_KV_INDEX,
			     osd_index_key_bytes(&range.min), OSD_INDEX_NUMBER_PART, add_entry,
			     &range);
	if (status == OSD_OK && osd_txn_stopped(search->txn))
		return OSD_E_TASK_ABORTED;
	return status == OSD_OK && range.no_memory ? OSD_E_NO_MEMORY : status;
}

/* ---- several ----------------------------------------------------------------------------- */

static bool is_indexed(const struct osd_txn *txn, const struct osd_criterion *criterion)
{
	return osd_index_takes(criterion->page, criterion->number) &&
	       osd_index_stage_of(txn->partition, criterion->page) == OSD_INDEX_DONE;
}

static bool can_search(const struct osd_txn *txn, const struct osd_query *query)
{
	size_t indexed = 0;

	for (size_t i = 0; i < query->count; i++)
		indexed += is_indexed(txn, &query->criteria[i]);
	return indexed && (query->match_all || indexed == query->count);
}

/* One criterion must match: adds all entries of all ranges.  There may be thousands of overlapping
 * ranges, so the lists are merged before they grow too long to be of use. */
static enum osd_status search_any(struct search *search, struct osd_kv_txn *kv)
{
	struct osd_candidates *candidates = search->candidates;
	size_t most = (size_t)OSD_MIN(search->most, NO_LIMIT / 2);
	enum osd_status status = OSD_OK;

	search->found = true;
	for (size_t i = 0; status == OSD_OK && search->found && i < search->query->count; i++) {
		status = read_range(search, kv, &search->query->criteria[i],
				    candidate_count(candidates) + most);
		if (candidate_count(candidates) > most)
			merge(candidates);
		search->found = search->found && candidate_count(candidates) <= most;
	}
	return status;
}

/* All criteria must match: reads each range a little further in each round, until one is at its end. */
static enum osd_status search_all(struct search *search, struct osd_kv_txn *kv)
{
	const struct osd_query *query = search->query;
	size_t limit = query->count == 1 ? NO_LIMIT : FIRST_LIMIT;
	enum osd_status status = OSD_OK;

	for (;;) {
		size_t bounded = (size_t)OSD_MIN(limit, search->most);

		for (size_t i = 0; status == OSD_OK && i < query->count; i++) {
			if (!is_indexed(search->txn, &query->criteria[i]))
				continue;
			osd_candidates_release(search->candidates);
			status = read_range(search, kv, &query->criteria[i], bounded);
			if (status == OSD_OK && search->found)
				return OSD_OK;
		}
		if (status != OSD_OK || limit >= search->most)
			return status;
		limit = limit > NO_LIMIT / NEXT_LIMIT ? NO_LIMIT : limit * NEXT_LIMIT;
	}
}

static enum osd_status search_once(struct osd_kv_txn *kv, void *arg)
{
	struct search *search = arg;

	osd_candidates_release(search->candidates);
	search->found = false;
	return search->query->match_all || search->query->count == 1 ? search_all(search, kv)
								     : search_any(search, kv);
}

/* Searches with locks on all entries it reads. */
static enum osd_status search_locked(struct search *search)
{
	if (search->txn->kv)
		return search_once(search->txn->kv, search);
	return osd_own_run(search->txn->objects, OSD_TXN_READ_ONLY, search_once, search);
}

/* Searches until no entry has changed meanwhile. */
static enum osd_status search_stable(struct search *search)
{
	struct osd_objects *objects = search->txn->objects;

	for (int i = 0; !search->txn->kv && i < UNLOCKED_TRIES; i++) {
		uint64_t begun = atomic_load(&objects->index_begun);
		enum osd_status status = OSD_E_CONFLICT;

		if (atomic_load(&objects->index_ended) == begun)
			status = search_once(NULL, search);
		if (status != OSD_OK && status != OSD_E_CONFLICT)
			return status;
		if (status == OSD_OK && atomic_load(&objects->index_begun) == begun)
			return OSD_OK;
	}
	return search_locked(search);
}

enum osd_status osd_index_search(struct osd_txn *txn, const struct osd_query *query,
				 const struct osd_place *place, uint64_t most,
				 struct osd_candidates *candidates, bool *ret_found)
{
	struct search search = {txn, query, place, most, candidates, false};
	uint64_t serial = atomic_load(&txn->partition->index_serial);
	enum osd_status status = OSD_OK;

	*ret_found = false;
	if (!can_search(txn, query))
		return OSD_OK;
	status = search_stable(&search);
	/* An index that was dropped meanwhile may have been half cleared. */
	if (atomic_load(&txn->partition->index_serial) != serial)
		search.found = false;
	if (status != OSD_OK || !search.found) {
		osd_candidates_release(candidates);
		return status;
	}
	merge(candidates);
	*ret_found = true;
	return OSD_OK;
}
