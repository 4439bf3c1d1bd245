/* SPDX-License-Identifier: GPL-2.0-or-later */
/* query.c -- a script's query.  One call inspects a bounded number of members, so that neither the
 * proxy nor ordinary commands behind it wait long.  The script continues with the next call. */
#include <string.h>

#include "exec/session/session.h"
#include "object/query.h"
#include "wire/cursor.h"
#include "wire/query_list.h"

/* Finds the partition, if the call names only its id, else the collection.  Either must be in the
 * zone. */
static enum osd_status find_collection(struct osd_txn *txn, struct osd_op *op,
				       struct osd_object_id *ret_collection)
{
	const struct osd_call *call = &op->call;

	*ret_collection = (struct osd_object_id){call->partition_id, call->object_id};
	if (call->object_id == 0)
		ret_collection->object_id = OSD_OBJECTS_COLLECTION;
	if (call->object_id == 0 && !osd_session_owns_partition(op->session, call->partition_id))
		return OSD_E_PERMISSION;
	return osd_session_check_zone(op->session, txn, *ret_collection);
}

/* Reads the criteria; their bounds point into scratch. */
static enum osd_status read_criteria(struct osd_op *op, struct osd_query *query,
				     struct osd_criterion criteria[OSD_CALL_RECORDS])
{
	struct osd_query_list list;
	struct osd_criterion entry;
	enum osd_status status =
		osd_query_list_open(op->session->scratch, op->call.body_bytes, &list);

	if (status != OSD_OK || list.count > OSD_CALL_RECORDS)
		return OSD_E_PARAM_FIELD;
	while (osd_query_list_next(&list, &entry)) {
		if (!osd_rights_may_compare(op->session, entry.page, entry.number)) {
			op->why = "the job's capability does not let it compare this attribute";
			return OSD_E_PERMISSION;
		}
		criteria[query->count++] = entry;
	}
	query->match_all = list.match_all;
	query->criteria = criteria;
	return OSD_OK;
}

/* Objects that the job may not read are not counted either, and do not say where the query goes on. */
static enum osd_status sees(void *arg, struct osd_txn *txn, const struct osd_object_facts *facts,
			    bool *ret_sees)
{
	enum osd_status status = osd_rights_check_in(arg, txn, facts->id);

	*ret_sees = status == OSD_OK;
	return status == OSD_E_PERMISSION || osd_status_is_gone(status) ? OSD_OK : status;
}

enum osd_status osd_op_query(struct osd_txn *txn, struct osd_op *op)
{
	struct osd_query query = {.initial_id = op->call.a, .look_max = OSD_CALL_LOOKS};
	struct osd_criterion criteria[OSD_CALL_RECORDS];
	struct osd_wr w = osd_wr_init(op->out, OSD_BODY_MAX);
	struct osd_list_result result = {0};
	uint64_t ids[OSD_CALL_IDS];
	enum osd_status status;

	if (op->session->rights.limited) {
		query.sees = sees;
		query.arg = op->session;
	}
	status = find_collection(txn, op, &query.collection);
	if (status == OSD_OK)
		status = read_criteria(op, &query, criteria);
	if (status == OSD_OK)
		status = osd_query(txn, &query, ids, OSD_CALL_IDS, &result);
	if (status != OSD_OK)
		return status;
	for (size_t i = 0; i < result.count; i++)
		osd_wr_be(&w, ids[i], 8);
	op->answer.body_bytes = (uint32_t)osd_wr_used(&w);
	op->answer.a = result.next_id;
	op->answer.b = result.total_count;
	return OSD_OK;
}
