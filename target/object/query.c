/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query.c -- OSD QUERY: finds the members of a collection that match.  It walks the members, or the
 * candidates from an index (query_index.c).  Each member is read in a short transaction of its own: the
 * values of one object belong together, and a long query delays no other command. */
#include "object/query.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "object/value_index.h"

#define STEP_MEMBERS	 512u /* members of one step */
#define ENTRIES_PER_LOOK 16u  /* entries of an index that are read in the time of one member */

struct osd_query_walk {
	struct osd_query query;	  /* criteria borrowed */
	struct osd_place place;	  /* of the collection, where its members are */
	uint64_t created_ms;	  /* the collection's */
	bool whole;		  /* its members are all user objects of the partition */
	uint64_t looked, members; /* members: their number at the beginning */

	/* Not indexed: members in batches. */
	uint64_t next_id; /* of the next batch; 0: this is the last one */
	uint64_t batch[STEP_MEMBERS];
	size_t batch_at, batch_count;

	bool indexed; /* instead: candidates from the index */
	struct osd_candidates candidates;
	size_t sure_at, maybe_at;

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

	/* No object has an attribute of a page that user objects cannot have. */
	*ret_matches = status == OSD_OK && in_range(criterion, walk->value, length);
	return status == OSD_E_PARAM_FIELD || status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static enum osd_status is_seen(struct osd_txn *txn, const struct osd_query *query,
			       struct osd_object_id object, bool *ret_seen)
{
	struct osd_object_facts facts;
	enum osd_status status = osd_txn_facts(txn, object, query->with_tag, &facts);

	return status == OSD_OK ? query->sees(query->arg, txn, &facts, ret_seen) : status;
}

static enum osd_status look(struct osd_txn *txn, struct osd_query_walk *walk, uint64_t id,
			    bool *ret_matches)
{
	const struct osd_query *query = &walk->query;
	struct osd_object_id object = {query->collection.partition_id, id};
	enum osd_status status = osd_txn_take_type(txn, object, OSD_USER_OBJECT, false);
	bool matches = query->match_all || query->count == 0;

	if (status == OSD_OK && walk->whole && osd_is_apart(id, txn->record.flags))
		status = OSD_E_NO_OBJECT;
	for (size_t i = 0; status == OSD_OK && i < query->count; i++) {
		status = matches_one(txn, walk, &query->criteria[i], &matches);
		if (matches != query->match_all)
			break;
	}
	if (status == OSD_OK && matches && query->sees)
		status = is_seen(txn, query, object, &matches);
	*ret_matches = status == OSD_OK && matches;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status; /* gone meanwhile */
}

/* A read-only transaction holds the locks of one object only, so after a deadlock it reads that object
 * again. */
static enum osd_status look_again(struct osd_txn *txn, struct osd_query_walk *walk, uint64_t id,
				  bool *ret_matches)
{
	bool again = (txn->flags & OSD_TXN_READ_ONLY) && !(txn->flags & OSD_TXN_NOWAIT);
	enum osd_status status = look(txn, walk, id, ret_matches);

	for (int i = 0; again && status == OSD_E_CONFLICT && i < OSD_TXN_RETRIES; i++) {
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

/* Uses an index if one helps, otherwise the members.  Each continuation of a query searches the index
 * again. */
static enum osd_status choose(struct osd_txn *txn, struct osd_query_walk *walk)
{
	uint64_t look_max = walk->query.look_max, most;
	enum osd_status status = OSD_OK;

	walk->members = atomic_load(&txn->partition->data.object_count);
	if (!walk->whole)
		status = osd_member_count(txn, &walk->place, &walk->members);
	if (status != OSD_OK)
		return status;
	most = look_max && look_max < walk->members / ENTRIES_PER_LOOK ? look_max * ENTRIES_PER_LOOK
								       : walk->members;
	status = osd_index_search(txn, &walk->query, &txn->place, most, &walk->candidates,
				  &walk->indexed);
	if (status == OSD_OK && walk->indexed)
		walk->members = walk->candidates.sure.count + walk->candidates.maybe.count;
	return status;
}

OSD_DEFINE_CLEANUP(struct osd_query_walk *, osd_query_end)

enum osd_status osd_query_begin(struct osd_txn *txn, const struct osd_query *query,
				struct osd_query_walk **ret_walk)
{
	OSD_CLEANUP(osd_query_endp) struct osd_query_walk *walk = NULL;
	enum osd_status status = check_criteria(query);

	if (status == OSD_OK && query->collection.partition_id == 0)
		status = OSD_E_NO_PARTITION;
	if (status == OSD_OK)
		status = osd_txn_take_type(txn, query->collection, OSD_COLLECTION, false);
	if (status != OSD_OK)
		return status;
	walk = malloc(sizeof(*walk));
	if (!walk)
		return OSD_E_NO_MEMORY;
	memset(walk, 0, offsetof(struct osd_query_walk, value));
	walk->query = *query;
	walk->place = *osd_txn_members(txn);
	walk->created_ms = osd_txn_time(txn, OSD_T_CREATED);
	walk->whole = osd_is_objects_collection(query->collection);
	walk->next_id = OSD_MAX(query->initial_id, 1);
	osd_note_list_access(txn);
	osd_txn_release_reads(txn);
	status = choose(txn, walk);
	if (status == OSD_OK)
		*ret_walk = OSD_STEAL(walk);
	return status;
}

void osd_query_end(struct osd_query_walk *walk)
{
	if (walk)
		osd_candidates_release(&walk->candidates);
	free(walk);
}

static bool is_done(const struct osd_query_walk *walk)
{
	if (walk->indexed)
		return walk->sure_at == walk->candidates.sure.count &&
		       walk->maybe_at == walk->candidates.maybe.count;
	return walk->batch_at == walk->batch_count && walk->next_id == 0;
}

/* ---- members ----------------------------------------------------------------------------- */

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

static enum osd_status step_members(struct osd_txn *txn, struct osd_query_walk *walk, uint64_t *ids,
				    size_t capacity, size_t *count)
{
	enum osd_status status = OSD_OK;

	if (walk->batch_at == walk->batch_count && walk->next_id)
		status = next_batch(txn, walk);
	while (status == OSD_OK && *count < capacity && walk->batch_at < walk->batch_count) {
		uint64_t id = walk->batch[walk->batch_at];
		bool matches;

		status = osd_txn_stopped(txn) ? OSD_E_TASK_ABORTED
					      : look_again(txn, walk, id, &matches);
		if (status != OSD_OK)
			break;
		walk->batch_at++;
		walk->looked++;
		if (matches)
			ids[(*count)++] = id;
	}
	return status;
}

/* ---- candidates -------------------------------------------------------------------------- */

static enum osd_status is_member(struct osd_txn *txn, const struct osd_query_walk *walk,
				 uint64_t id, bool *ret_is)
{
	struct osd_key key = osd_key_member(&walk->place, id);

	return osd_record_is_there(txn->objects, txn->kv, OSD_KV_MEMBERS, osd_key_bytes(&key),
				   ret_is);
}

/* The smaller one of both lists' next ids. */
static uint64_t next_candidate(const struct osd_query_walk *walk, bool *ret_sure)
{
	const struct osd_id_list *sure = &walk->candidates.sure, *maybe = &walk->candidates.maybe;
	bool has_sure = walk->sure_at < sure->count, has_maybe = walk->maybe_at < maybe->count;

	*ret_sure =
		has_sure && (!has_maybe || sure->ids[walk->sure_at] < maybe->ids[walk->maybe_at]);
	if (*ret_sure)
		return sure->ids[walk->sure_at];
	return has_maybe ? maybe->ids[walk->maybe_at] : 0;
}

static enum osd_status try_candidate(struct osd_txn *txn, struct osd_query_walk *walk, uint64_t id,
				     bool sure, bool *ret_matches)
{
	bool enough = sure && !walk->query.sees &&
		      (walk->query.count == 1 || !walk->query.match_all) &&
		      !(walk->whole && id >= OSD_JOB_IDS_FIRST);
	enum osd_status status = OSD_OK;

	*ret_matches = true;
	if (enough && walk->whole)
		return OSD_OK;
	walk->looked++;
	osd_txn_release_reads(txn);
	if (!walk->whole)
		status = is_member(txn, walk, id, ret_matches);
	if (status == OSD_OK && *ret_matches && !enough)
		status = look_again(txn, walk, id, ret_matches);
	return status;
}

static enum osd_status step_candidates(struct osd_txn *txn, struct osd_query_walk *walk,
				       uint64_t *ids, size_t capacity, size_t *count)
{
	uint64_t last = walk->looked + STEP_MEMBERS;
	enum osd_status status = OSD_OK;

	while (status == OSD_OK && *count < capacity && walk->looked < last && !is_done(walk)) {
		bool sure, matches;
		uint64_t id = next_candidate(walk, &sure);

		status = osd_txn_stopped(txn) ? OSD_E_TASK_ABORTED
					      : try_candidate(txn, walk, id, sure, &matches);
		if (status != OSD_OK)
			break;
		++*(sure ? &walk->sure_at : &walk->maybe_at);
		if (matches)
			ids[(*count)++] = id;
	}
	return status;
}

/* ---- step by step ------------------------------------------------------------------------ */

enum osd_status osd_query_step(struct osd_txn *txn, struct osd_query_walk *walk, uint64_t *ids,
			       size_t capacity, size_t *ret_count, bool *ret_done)
{
	enum osd_status status;

	*ret_count = 0;
	status = walk->indexed ? step_candidates(txn, walk, ids, capacity, ret_count)
			       : step_members(txn, walk, ids, capacity, ret_count);
	*ret_done = is_done(walk);
	/* Matches found before a failure are returned first.  The next step fails again. */
	return *ret_count ? OSD_OK : status;
}

unsigned osd_query_percent(const struct osd_query_walk *walk)
{
	uint64_t done = walk->indexed ? walk->sure_at + walk->maybe_at : walk->looked;

	if (is_done(walk) || done >= walk->members)
		return is_done(walk) ? 100 : 99;
	return (unsigned)((double)done * 100 / (double)walk->members);
}

static uint64_t next_to_look_at(const struct osd_query_walk *walk)
{
	bool sure;

	if (walk->indexed)
		return next_candidate(walk, &sure);
	return walk->batch_at < walk->batch_count ? walk->batch[walk->batch_at] : walk->next_id;
}

/* ---- at one go --------------------------------------------------------------------------- */

/* The next candidate of an index has the value, and may be hidden.  So such a query ends behind one that is seen, or when
 * there are no more candidates, of which osd_index_search bounds the number. */
static bool has_looked_enough(const struct osd_query_walk *walk,
			      const struct osd_list_result *result)
{
	return walk->query.look_max && walk->looked >= walk->query.look_max &&
	       (result->count || !walk->query.sees || !walk->indexed);
}

static uint64_t where_to_go_on(const struct osd_query_walk *walk, const uint64_t *ids,
			       const struct osd_list_result *result)
{
	return walk->query.sees && walk->indexed && result->count ? ids[result->count - 1] + 1
								  : next_to_look_at(walk);
}

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

	while (status == OSD_OK && !done && !has_looked_enough(walk, &result)) {
		uint64_t found[STEP_MEMBERS];
		size_t count;

		status = osd_query_step(txn, walk, found, OSD_ARRAY_SIZE(found), &count, &done);
		if (status == OSD_OK)
			put_found(&result, ids, capacity, found, count);
	}
	if (status == OSD_OK && !done && result.next_id == 0)
		result.next_id = where_to_go_on(walk, ids, &result);
	/* The members of a collection that was removed meanwhile are not all that matched.  Another
	 * one may have its id by now. */
	if (status == OSD_OK)
		status = osd_txn_same(txn, query->collection, walk->created_ms);
	if (status == OSD_OK)
		*ret_result = result;
	return status;
}
