/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_query.c -- QUERY: the members of a collection whose attributes are in ranges, as ids in Data-In
 * or as the members of a tracking collection (osd2-wire 3.9).
 * Not here: the list of criteria (wire/query_list.c), finding the objects (object/query.c). */
#include <stdlib.h>

#include "base/util.h"
#include "command/authorise.h"
#include "command/commands.h"
#include "command/osc.h"
#include "command/phase.h"
#include "command/tracked.h"
#include "command/validate.h"
#include "object/query.h"
#include "object/txn_run.h"
#include "wire/cursor.h"
#include "wire/query_list.h"

enum { FIELD_BYTE11 = 11, FIELD_OBJECT_ID = 24, FIELD_ALLOCATION = 32, FIELD_MATCHES = 40 };

#define COLLECTION_INFORMATION (OSD_PAGE_COLLECTION_BASE | OSD_REL_INFORMATION)
#define COLLECTION_TYPE	       0xa

struct osd_tracked_query {
	struct osd_query query;
	struct osd_criterion *criteria; /* owned; values borrowed from the continuation */
	struct osd_query_walk *walk;	/* owned; NULL: not begun */
	bool last;			/* the result has only what the walk found last */
};

static void query_free(struct osd_tracked_query *query)
{
	if (!query)
		return;
	osd_query_end(query->walk);
	free(query->criteria);
	free(query);
}

OSD_DEFINE_CLEANUP(struct osd_tracked_query *, query_free)

/* ---- checks ---------------------------------------------------------------------------------- */

/* The checks that need only the CDB. */
static enum osd_status check_form(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->decoded;
	bool matches = cdb->matches_collection_id != 0;

	if (cdb->immed_tr && !matches)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	if (matches && cdb->allocation_length)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_ALLOCATION);
	if (matches && (cdb->matches_collection_id == cdb->object_id ||
			cdb->matches_collection_id < OSD_FIRST_ID))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_MATCHES);
	return OSD_OK;
}

/* Finds the bytes of the list: the content of one descriptor.  With a second collection, extension
 * capabilities come with it. */
static enum osd_status find_list(const struct osd_command_context *ctx, const uint8_t **ret_bytes,
				 size_t *ret_length)
{
	bool matches = ctx->request->decoded.matches_collection_id != 0;
	struct osd_descriptor descriptor;
	bool has_capabilities =
		osd_continuation_find(&ctx->continuation, OSD_DESC_EXTENSION_CAPS, &descriptor);

	if (has_capabilities != matches && !(matches && osd_osc_has_no_extensions(ctx->request)))
		return OSD_E_CDB_FIELD;
	if (!osd_continuation_find(&ctx->continuation, OSD_DESC_QUERY_LIST, &descriptor))
		return OSD_E_CDB_FIELD;
	*ret_bytes = descriptor.content;
	*ret_length = descriptor.length;
	return OSD_OK;
}

static enum osd_status load_criteria(const struct osd_query_list *list,
				     struct osd_tracked_query *query)
{
	struct osd_query_list walk = *list;

	if (list->count == 0)
		return OSD_OK;
	query->criteria = calloc(list->count, sizeof(*query->criteria));
	if (!query->criteria)
		return OSD_E_NO_MEMORY;
	for (size_t i = 0; i < list->count; i++)
		osd_query_list_next(&walk, &query->criteria[i]);
	return OSD_OK;
}

/* A match reveals the attribute, so the criteria need the permission to read it. */
static enum osd_status authorise_criteria(struct osd_command_context *ctx,
					  const struct osd_criterion *criteria, size_t count)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < count; i++)
		status = osd_authorise_touched(ctx->objects, ctx->request, criteria[i].page,
					       criteria[i].number);
	return status;
}

static enum osd_status load_query(struct osd_command_context *ctx,
				  struct osd_tracked_query **ret_query)
{
	OSD_CLEANUP(query_freep) struct osd_tracked_query *query = calloc(1, sizeof(*query));
	struct osd_query_list list;
	const uint8_t *bytes;
	size_t length;
	enum osd_status status;

	if (!query)
		return OSD_E_NO_MEMORY;
	status = find_list(ctx, &bytes, &length);
	if (status == OSD_OK)
		status = osd_query_list_open(bytes, length, &list);
	if (status != OSD_OK)
		return osd_command_fail(ctx->request, status, OSD_CONTINUATION_FIELD);
	status = load_criteria(&list, query);
	if (status == OSD_OK)
		status = authorise_criteria(ctx, query->criteria, list.count);
	if (status != OSD_OK)
		return status;
	query->query = (struct osd_query){
		.collection = ctx->request->object,
		.match_all = list.match_all,
		.criteria = query->criteria,
		.count = list.count,
		.with_tag = osd_authorise_by_tag(ctx->request),
		.sees = ctx->request->security.proof.grant.open ? NULL : osd_authorise_sees,
		.arg = ctx->request};
	*ret_query = OSD_STEAL(query);
	return OSD_OK;
}

/* ---- ids in Data-In -------------------------------------------------------------------------- */

struct listing {
	struct osd_command_context *ctx;
	const struct osd_query *query;
	uint64_t *ids;
	size_t capacity;
	struct osd_list_result result;
};

static enum osd_status list_in(struct osd_txn *txn, void *arg)
{
	struct listing *listing = arg;
	struct osd_request *request = listing->ctx->request;
	enum osd_status status = osd_validate_exists(request, txn);

	osd_txn_watch(txn, &request->aborted);
	if (status == OSD_OK)
		status = osd_tracked_check_idle(request, txn, request->object, FIELD_OBJECT_ID);
	if (status == OSD_OK)
		status = osd_query(txn, listing->query, listing->ids, listing->capacity,
				   &listing->result);
	return status;
}

/* The header, cut if need be, and whole ids. */
static void return_ids(const struct listing *listing)
{
	struct osd_request *request = listing->ctx->request;
	uint64_t allocation = request->decoded.allocation_length;
	uint8_t header[OSD_QUERY_RESULT_HEADER_OSC], id[8];
	size_t length =
		osd_query_result_header(listing->result.total_count,
						osd_osc_query_header(request), header);

	osd_command_data_in(request, header, (size_t)OSD_MIN((uint64_t)length, allocation));
	for (size_t i = 0; i < listing->result.count; i++) {
		osd_put_be(id, listing->ids[i], sizeof(id));
		osd_command_data_in(request, id, sizeof(id));
	}
}

static enum osd_status list_matches(struct osd_command_context *ctx, const struct osd_query *query)
{
	OSD_CLEANUP_FREE uint64_t *ids = NULL;
	size_t header = osd_osc_query_header(ctx->request) ? OSD_QUERY_RESULT_HEADER_OSC
							   : OSD_QUERY_RESULT_HEADER;
	uint64_t room = OSD_MIN(ctx->request->decoded.allocation_length,
				(uint64_t)ctx->request->data_in_capacity);
	struct listing listing = {.ctx = ctx, .query = query};
	enum osd_status status;

	listing.capacity = room > header ? (size_t)(room - header) / sizeof(*ids) : 0;
	ids = listing.ids = malloc((listing.capacity + 1) * sizeof(*ids));
	if (!ids)
		return OSD_E_NO_MEMORY;
	osd_command_hold(ctx);
	if (osd_command_aborted(ctx->request))
		return OSD_E_TASK_ABORTED;
	status = osd_txn_run(ctx->objects, osd_phase_txn_flags(ctx->request) | OSD_TXN_READ_ONLY,
			     list_in, &listing);
	if (status != OSD_OK)
		return status;
	return_ids(&listing);
	return osd_phase_alone(ctx->objects, ctx->request);
}

/* ---- members of the matches collection ------------------------------------------------------- */

enum { PHASE_EMPTY, PHASE_FILL };

static enum osd_status check_matches(struct osd_tracked *tracked, struct osd_txn *txn)
{
	struct osd_request *request = tracked->ctx->request;
	enum osd_object_type object_type;
	uint8_t type = OSD_COLLECTION_LINKED;
	size_t length;
	enum osd_status status = osd_txn_same(txn, tracked->tracker, tracked->other_created_ms);

	if (status == OSD_OK)
		status = osd_object_type_of(txn, tracked->tracker, &object_type);
	if (status == OSD_E_NO_OBJECT || (status == OSD_OK && object_type != OSD_COLLECTION))
		return osd_command_fail(request, OSD_E_NO_OBJECT, FIELD_MATCHES);
	if (status == OSD_OK)
		status = osd_attr_get(txn, tracked->tracker, COLLECTION_INFORMATION,
				      COLLECTION_TYPE, &type, sizeof(type), &length);
	if (status == OSD_OK && type != OSD_COLLECTION_TRACKING)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_MATCHES);
	return status;
}

static enum osd_status begin_query(struct osd_tracked *tracked, struct osd_txn *txn)
{
	struct osd_request *request = tracked->ctx->request;
	enum osd_status status = osd_validate_exists(request, txn);

	if (status == OSD_OK)
		status = osd_tracked_check_idle(request, txn, request->object, FIELD_OBJECT_ID);
	if (status == OSD_OK)
		status = check_matches(tracked, txn);
	if (status == OSD_OK)
		status = osd_tracked_note_source(tracked, txn, request->object);
	/* A background command cannot return anything later. */
	return status == OSD_OK && tracked->background ? osd_phase_set_then_get(request, txn)
						       : status;
}

static enum osd_status finish_query(struct osd_tracked *tracked, struct osd_txn *txn)
{
	return osd_phase_set_then_get(tracked->ctx->request, txn);
}

static enum osd_status look_in(struct osd_txn *txn, void *arg)
{
	struct osd_tracked *tracked = arg;
	struct osd_tracked_query *query = tracked->query;
	enum osd_status status = OSD_OK;

	osd_txn_watch(txn, &tracked->ctx->request->aborted);
	if (!query->walk)
		status = osd_query_begin(txn, &query->query, &query->walk);
	if (status == OSD_OK)
		status = osd_query_step(txn, query->walk, tracked->ids, OSD_STEP_MEMBERS,
					&tracked->count, &query->last);
	return status;
}

/* Finds the next matches.  After a restart the query continues after the last object that it
 * added. */
static enum osd_status find_matches(struct osd_tracked *tracked)
{
	enum osd_status status = OSD_OK;

	if (tracked->state.phase != PHASE_FILL)
		return OSD_OK;
	if (!tracked->query)
		status = load_query(tracked->ctx, &tracked->query);
	if (status != OSD_OK)
		return status;
	tracked->query->query.initial_id = tracked->state.next_id;
	status = osd_txn_run(tracked->ctx->objects,
			     osd_phase_txn_flags(tracked->ctx->request) | OSD_TXN_READ_ONLY,
			     look_in, tracked);
	return status == OSD_E_NO_OBJECT
		       ? osd_command_fail(tracked->ctx->request, status, FIELD_OBJECT_ID)
		       : status;
}

/* Removes the former members; they do not count as processed objects. */
static enum osd_status empty_step(struct osd_tracked *tracked, struct osd_txn *txn)
{
	struct osd_list_request list = {OSD_LIST_MEMBERS, tracked->tracker, 0};
	struct osd_list_result batch;
	enum osd_status status =
		osd_list_uncounted(txn, &list, tracked->ids, OSD_STEP_MEMBERS, &batch);

	for (size_t i = 0; status == OSD_OK && i < batch.count; i++)
		status = osd_collection_drop(txn, tracked->tracker, tracked->ids[i]);
	if (status == OSD_OK && batch.next_id == 0)
		tracked->next.phase = PHASE_FILL;
	return status;
}

static enum osd_status query_step(struct osd_tracked *tracked, struct osd_txn *txn)
{
	struct osd_request *request = tracked->ctx->request;
	enum osd_object_type type;
	unsigned percent;
	enum osd_status status;

	if (tracked->state.phase == PHASE_EMPTY)
		return empty_step(tracked, txn);
	/* If the collection was removed meanwhile, the absence of members does not mean the end of
	 * the matches. */
	status = osd_tracked_same_source(tracked, txn, request->object);
	if (status == OSD_OK)
		status = osd_object_type_of(txn, request->object, &type);
	if (status == OSD_E_NO_OBJECT)
		return osd_command_fail(request, status, FIELD_OBJECT_ID);
	if (status != OSD_OK)
		return status;
	status = osd_tracked_each(tracked, txn, tracked->ids, tracked->count, osd_tracked_add);
	if (status != OSD_OK)
		return status;
	percent = osd_query_percent(tracked->query->walk);
	if (tracked->count)
		tracked->next.next_id = tracked->ids[tracked->count - 1] + 1;
	tracked->next.percent = (uint8_t)OSD_MAX(percent, (unsigned)tracked->state.percent);
	tracked->next.done = tracked->query->last;
	return OSD_OK;
}

static void query_release(struct osd_tracked *tracked)
{
	query_free(OSD_STEAL(tracked->query));
}

const struct osd_tracked_def osd_tracked_query = {.begin = begin_query,
						  .prepare = find_matches,
						  .step = query_step,
						  .finish = finish_query,
						  .release = query_release};

enum osd_status osd_cmd_query(struct osd_command_context *ctx)
{
	OSD_CLEANUP(query_freep) struct osd_tracked_query *query = NULL;
	struct osd_object_id matches = {ctx->request->object.partition_id,
					ctx->request->decoded.matches_collection_id};
	enum osd_status status = check_form(ctx->request);

	if (status == OSD_OK)
		status = load_query(ctx, &query);
	if (status != OSD_OK)
		return status;
	if (!matches.object_id)
		return list_matches(ctx, &query->query);
	status = osd_authorise_other(ctx, matches, OSD_COLLECTION, OSD_PERM_WRITE, OSD_USES_NONE,
				     NULL);
	if (status == OSD_E_NO_OBJECT)
		return osd_command_fail(ctx->request, status, FIELD_MATCHES);
	if (status != OSD_OK)
		return status;
	return osd_tracked_run(ctx, &osd_tracked_query, matches, FIELD_MATCHES);
}
