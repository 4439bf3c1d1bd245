/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query.c -- OSD QUERY on the object layer: walks the members of a collection and tells which
 * match.  Each member is looked at in a short transaction of its own: what one object says agrees,
 * and a long query keeps nobody waiting. */
#include "object/query.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "object/internal.h"

#define STEP_MEMBERS 512u /* looked at in one step */

struct osd_query_walk {
	struct osd_query query;	  /* criteria borrowed */
	struct osd_place place;	  /* of the collection */
	uint64_t looked, members; /* members: how many there were at the beginning */
	uint64_t next_id;	  /* of the next batch; 0: this is the last one */
	uint64_t batch[STEP_MEMBERS];
	size_t batch_at, batch_count;
	uint8_t value[OSD_ATTRIBUTE_MAX];
};

/* ---- one object -------------------------------------------------------------------------- */

static int compare(const uint8_t *a, size_t a_length, const uint8_t *b, size_t b_length)
{
	int order = memcmp(a, b, OSD_MIN(a_length, b_length));

	return order ? order : (a_length > b_length) - (a_length < b_length);
}

static bool in_range(const struct osd_criterion *criterion, const uint8_t *value, size_t length)
{
	if (length == 0)
		return false;
	if (criterion->min_length &&
	    compare(value, length, criterion->min, criterion->min_length) < 0)
		return false;
	return !criterion->max_length ||
	       compare(value, length, criterion->max, criterion->max_length) <= 0;
}

static enum osd_status matches_one(struct osd_txn *txn, struct osd_query_walk *walk,
				   const struct osd_criterion *criterion, bool *ret_matches)
{
	size_t length = 0;
	enum osd_status status = osd_attr_peek(txn, criterion->page, criterion->number, walk->value,
					       sizeof(walk->value), &length);

	/* Of a page that no user object has, nobody has an attribute. */
	*ret_matches = status == OSD_OK && in_range(criterion, walk->value, length);
	return status == OSD_E_PARAM_FIELD || status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static enum osd_status look(struct osd_txn *txn, struct osd_query_walk *walk, uint64_t id,
			    bool *ret_matches)
{
	const struct osd_query *query = &walk->query;
	struct osd_object_id object = {query->collection.partition_id, id};
	enum osd_status status = osd_txn_take(txn, object, false);
	bool matches = query->match_all || query->count == 0;

	if (status == OSD_OK && osd_txn_type(txn) != OSD_USER_OBJECT)
		status = OSD_E_NO_OBJECT;
	for (size_t i = 0; status == OSD_OK && i < query->count; i++) {
		status = matches_one(txn, walk, &query->criteria[i], &matches);
		if (matches != query->match_all)
			break;
	}
	*ret_matches = status == OSD_OK && matches;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status; /* gone meanwhile */
}

/* A read-only transaction holds the locks of one object only, so it can begin that one again. */
static enum osd_status look_again(struct osd_txn *txn, struct osd_query_walk *walk, uint64_t id,
				  bool *ret_matches)
{
	bool again = (txn->flags & OSD_TXN_READ_ONLY) && !(txn->flags & OSD_TXN_NOWAIT);
	enum osd_status status = look(txn, walk, id, ret_matches);

	for (int i = 0; again && status == OSD_E_RETRY && i < OSD_TXN_RETRIES; i++) {
		osd_txn_let_go(txn);
		status = look(txn, walk, id, ret_matches);
	}
	return status;
}

/* ---- the walk ---------------------------------------------------------------------------- */

static enum osd_status check_criteria(const struct osd_query *query)
{
	for (size_t i = 0; i < query->count; i++)
		if (query->criteria[i].page >= OSD_PAGE_PARTITION_BASE ||
		    query->criteria[i].number == OSD_NUMBER_ALL)
			return OSD_E_CDB_FIELD;
	return OSD_OK;
}

static enum osd_status count_members(struct osd_txn *txn, struct osd_query_walk *walk)
{
	if (!osd_is_objects_collection(walk->query.collection))
		return osd_member_count(txn, &walk->place, &walk->members);
	walk->members = atomic_load(&txn->partition->object_count);
	return OSD_OK;
}

enum osd_status osd_query_begin(struct osd_txn *txn, const struct osd_query *query,
				struct osd_query_walk **ret_walk)
{
	struct osd_query_walk *walk;
	enum osd_status status = check_criteria(query);

	if (status == OSD_OK && query->collection.partition_id == 0)
		status = OSD_E_NO_PARTITION;
	if (status == OSD_OK)
		status = osd_txn_take(txn, query->collection, false);
	if (status == OSD_OK && osd_txn_type(txn) != OSD_COLLECTION)
		status = OSD_E_NO_OBJECT;
	if (status != OSD_OK)
		return status;
	walk = malloc(sizeof(*walk));
	if (!walk)
		return OSD_E_NO_MEMORY;
	walk->query = *query;
	walk->place = txn->place;
	walk->looked = walk->members = 0;
	walk->next_id = OSD_MAX(query->initial_id, 1);
	walk->batch_at = walk->batch_count = 0;
	osd_txn_release_reads(txn);
	status = count_members(txn, walk);
	if (status != OSD_OK) {
		free(walk);
		return status;
	}
	*ret_walk = walk;
	return OSD_OK;
}

static enum osd_status next_batch(struct osd_txn *txn, struct osd_query_walk *walk)
{
	uint64_t next;
	size_t count;
	enum osd_status status;

	osd_txn_release_reads(txn); /* the scan holds no locks */
	status = osd_list_members(txn, &walk->place, walk->next_id, walk->batch, STEP_MEMBERS,
				  &count, &next);
	if (status != OSD_OK)
		return status;
	walk->batch_at = 0;
	walk->batch_count = count;
	walk->next_id = next;
	return OSD_OK;
}

static bool is_done(const struct osd_query_walk *walk)
{
	return walk->batch_at == walk->batch_count && walk->next_id == 0;
}

enum osd_status osd_query_step(struct osd_txn *txn, struct osd_query_walk *walk, uint64_t *ids,
			       size_t capacity, size_t *ret_count, bool *ret_done)
{
	enum osd_status status = OSD_OK;
	size_t count = 0;

	if (walk->batch_at == walk->batch_count && walk->next_id)
		status = next_batch(txn, walk);
	while (status == OSD_OK && count < capacity && walk->batch_at < walk->batch_count) {
		uint64_t id = walk->batch[walk->batch_at];
		bool matches;

		status = osd_txn_stopped(txn) ? OSD_E_TASK_ABORTED
					      : look_again(txn, walk, id, &matches);
		if (status != OSD_OK)
			break;
		walk->batch_at++;
		walk->looked++;
		if (matches)
			ids[count++] = id;
	}
	*ret_count = count;
	*ret_done = is_done(walk);
	/* What was found before a failure is told first; the failure comes again. */
	return count ? OSD_OK : status;
}

unsigned osd_query_percent(const struct osd_query_walk *walk)
{
	if (is_done(walk) || walk->looked >= walk->members)
		return is_done(walk) ? 100 : 99;
	return (unsigned)((double)walk->looked * 100 / (double)walk->members);
}

void osd_query_end(struct osd_query_walk *walk)
{
	free(walk);
}

static uint64_t next_to_look_at(const struct osd_query_walk *walk)
{
	return walk->batch_at < walk->batch_count ? walk->batch[walk->batch_at] : walk->next_id;
}

/* ---- at one go --------------------------------------------------------------------------- */

static void put_found(struct osd_list_result *result, uint64_t *ids, size_t capacity,
		      const uint64_t *found, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (result->count < capacity)
			ids[result->count++] = found[i];
		else if (result->next_id == 0)
			result->next_id = found[i];
	}
	result->total_count += count;
}

enum osd_status osd_query(struct osd_txn *txn, const struct osd_query *query, uint64_t *ids,
			  size_t capacity, struct osd_list_result *ret_result)
{
	OSD_CLEANUP(osd_query_endp) struct osd_query_walk *walk = NULL;
	struct osd_list_result result = {0, 0, 0};
	enum osd_status status = osd_query_begin(txn, query, &walk);
	bool done = false;

	while (status == OSD_OK && !done && !(query->look_max && walk->looked >= query->look_max)) {
		uint64_t found[STEP_MEMBERS];
		size_t count;

		status = osd_query_step(txn, walk, found, OSD_ARRAY_SIZE(found), &count, &done);
		if (status == OSD_OK)
			put_found(&result, ids, capacity, found, count);
	}
	if (status == OSD_OK && !done && result.next_id == 0)
		result.next_id = next_to_look_at(walk);
	if (status == OSD_OK)
		*ret_result = result;
	return status;
}
