/* SPDX-License-Identifier: GPL-2.0-or-later */
/* life.c -- a script's calls that check whether objects exist, create and remove them, and change
 * collections. */
#include "exec/session/session.h"
#include "object/view.h"

#define STEP_MEMBERS 64 /* members that leave a collection in one transaction */

enum osd_status osd_op_type(struct osd_txn *txn, struct osd_op *op)
{
	enum osd_object_type type = 0;
	enum osd_status status = osd_session_check_zone(op->session, txn, osd_op_id(op));

	if (status == OSD_OK)
		status = osd_object_type_of(txn, osd_op_id(op), &type);
	if (osd_status_is_gone(status))
		status = OSD_OK;
	op->answer.a = status == OSD_OK ? type : 0;
	return status;
}

enum osd_status osd_op_create_partition(struct osd_txn *txn, struct osd_op *op)
{
	const struct osd_session_host *host = op->session->host;
	enum osd_status status = osd_rights_check_made(op->session, OSD_PARTITION, osd_op_id(op));

	if (status == OSD_OK)
		status = osd_partition_create(txn, op->call.partition_id, &op->answer.a);
	if (status == OSD_OK && host)
		status = host->partition_made(host->exec, txn, op->answer.a);
	return status;
}

static enum osd_status remove_partition_in(struct osd_txn *txn, struct osd_op *op)
{
	enum osd_status status;

	if (op->call.a == 1)
		op->session->access.permissions |= OSD_PERM_GBL_REM;
	status = osd_session_check_zone(op->session, txn,
					(struct osd_object_id){op->call.partition_id, 0});
	return status == OSD_OK ? osd_partition_remove(txn, op->call.partition_id, op->call.a == 1)
				: status;
}

enum osd_status osd_op_remove_partition(struct osd_op *op)
{
	const struct osd_session_host *host = op->session->host;
	struct osd_object_id job;

	if (host && host->check_partition(host->exec, op->call.partition_id, &job) != OSD_OK)
		return OSD_E_JOB_IN_WAY;
	return osd_op_transact(op, remove_partition_in);
}

/* In a view, the base gets the object. */
static enum osd_status create_in(struct osd_txn *txn, struct osd_op *op)
{
	uint64_t partition_id = op->call.partition_id, place = 0;
	uint32_t count = (uint32_t)op->call.a;
	enum osd_status status = osd_rights_check_made(op->session, OSD_USER_OBJECT, osd_op_id(op));

	if (status == OSD_OK)
		status = osd_view_place(txn, partition_id, &place);
	if (status == OSD_E_CONTRACT) {
		op->why = "the partition is a view that is read-only";
		return OSD_E_PERMISSION;
	}
	if (status == OSD_OK)
		status = osd_user_object_create(txn, place, op->call.object_id, count,
						&op->answer.a);
	return status == OSD_OK && place != partition_id
		       ? osd_view_shows(txn, partition_id, op->answer.a, count)
		       : status;
}

enum osd_status osd_op_create(struct osd_op *op)
{
	enum osd_status status;

	if (op->call.a < 1 || op->call.a > OSD_CREATE_MAX || (op->call.a > 1 && op->call.object_id))
		return OSD_E_PARAM_FIELD;
	status = osd_op_transact(op, create_in);
	if (status == OSD_E_TASK_ABORTED)
		op->why = "the job is being ended; no object was made";
	return status;
}

enum osd_status osd_op_remove(struct osd_txn *txn, struct osd_op *op)
{
	enum osd_status status = osd_session_check_zone(op->session, txn, osd_op_id(op));

	if (status == OSD_OK)
		status = osd_session_check_free(txn, osd_op_id(op));
	if (status == OSD_OK)
		status = osd_user_object_remove(txn, osd_op_id(op));
	if (status != OSD_E_CONTRACT)
		return status;
	op->why = "it is an object of a view that is read-only";
	return OSD_E_PERMISSION;
}

enum osd_status osd_op_create_collection(struct osd_txn *txn, struct osd_op *op)
{
	enum osd_status status = osd_rights_check_made(op->session, OSD_COLLECTION, osd_op_id(op));

	return status == OSD_OK
		       ? osd_collection_create(txn, op->call.partition_id, op->call.object_id,
					       OSD_COLLECTION_LINKED, &op->answer.a)
		       : status;
}

/* Removes the first STEP_MEMBERS members; op->answer.b: there may be more. */
static enum osd_status drop_members_in(struct osd_txn *txn, struct osd_op *op)
{
	struct osd_list_request request = {OSD_LIST_MEMBERS, osd_op_id(op), 0};
	uint64_t ids[STEP_MEMBERS];
	struct osd_list_result found = {0};
	enum osd_status status = osd_session_check_zone(op->session, txn, osd_op_id(op));

	if (status == OSD_OK)
		status = osd_list_uncounted(txn, &request, ids, STEP_MEMBERS, &found);
	for (size_t i = 0; status == OSD_OK && i < found.count; i++)
		status = osd_collection_drop(txn, osd_op_id(op), ids[i]);
	op->answer.b = found.next_id != 0;
	return status;
}

static enum osd_status remove_collection_in(struct osd_txn *txn, struct osd_op *op)
{
	enum osd_status status = osd_session_check_zone(op->session, txn, osd_op_id(op));

	return status == OSD_OK ? osd_collection_remove(txn, osd_op_id(op), op->call.a == 1)
				: status;
}

/* Removes the members in steps, as the command does: a large collection then neither locks the
 * store nor fills the log.  After a stop half-way, the collection can be removed by another
 * call. */
static enum osd_status drop_members(struct osd_op *op)
{
	enum osd_status status = OSD_OK;
	bool more = true;

	while (status == OSD_OK && more) {
		if (!osd_long_call_step(op->session, 0)) {
			op->why = "the job is being ended; some members have left the collection";
			return OSD_E_TASK_ABORTED;
		}
		status = osd_op_transact(op, drop_members_in);
		osd_long_call_rest(op->session);
		more = op->answer.b;
	}
	op->answer.b = 0;
	return status;
}

enum osd_status osd_op_remove_collection(struct osd_op *op)
{
	const struct osd_session_host *host = op->session->host;
	enum osd_status status = op->call.a == 1 ? drop_members(op) : OSD_OK;

	if (status == OSD_OK)
		status = osd_op_transact(op, remove_collection_in);
	if (status == OSD_OK && host)
		host->collection_removed(host->exec, osd_op_id(op));
	return status;
}

enum osd_status osd_op_collection_add(struct osd_txn *txn, struct osd_op *op)
{
	struct osd_object_id member = {op->call.partition_id, op->call.a};
	enum osd_status status = osd_session_check_zone(op->session, txn, osd_op_id(op));

	if (status == OSD_OK)
		status = osd_rights_check_also(op->session, txn, member, osd_access_to_join());
	return status == OSD_OK ? osd_collection_add(txn, osd_op_id(op), op->call.a) : status;
}

enum osd_status osd_op_collection_drop(struct osd_txn *txn, struct osd_op *op)
{
	struct osd_object_id member = {op->call.partition_id, op->call.a};
	enum osd_status status = osd_session_check_zone(op->session, txn, osd_op_id(op));

	if (status != OSD_OK)
		return status;
	status = osd_rights_check_also(op->session, txn, member, op->session->access);
	return status == OSD_OK || osd_status_is_gone(status)
		       ? osd_collection_drop(txn, osd_op_id(op), op->call.a)
		       : status;
}
