/* SPDX-License-Identifier: GPL-2.0-or-later */
/* session.c -- what all calls of a script share: the zone, transactions, the list of used objects (session.h). */
#include "exec/session/session.h"

#include "base/util.h"
#include "object/names.h"
#include "object/txn_run.h"

/* ---- zone ------------------------------------------------------------------------------------ */

bool osd_session_owns_partition(const struct osd_session *session, uint64_t partition_id)
{
	return session->zone.type == OSD_ROOT || (session->zone.type == OSD_PARTITION &&
						  session->zone.id.partition_id == partition_id);
}

static enum osd_status is_in_zone(struct osd_session *session, struct osd_txn *txn,
				  struct osd_object_id id)
{
	const struct osd_zone *zone = &session->zone;
	bool member = false;
	enum osd_status status;

	if (osd_session_owns_partition(session, id.partition_id))
		return OSD_OK;
	if (id.partition_id != zone->id.partition_id || zone->type == OSD_PARTITION)
		return OSD_E_PERMISSION;
	if (id.object_id == zone->id.object_id)
		return OSD_OK;
	if (zone->type != OSD_COLLECTION || id.object_id == 0)
		return OSD_E_PERMISSION;
	status = osd_collection_has(txn, zone->id, id.object_id, &member);
	if (status == OSD_OK && !member)
		status = osd_name_is_inside(txn, id, zone->id, &member);
	if (status != OSD_OK)
		return status == OSD_E_CONFLICT ? status : OSD_E_PERMISSION;
	/* Outside the zone a script cannot learn whether an object exists. */
	return member ? OSD_OK : OSD_E_PERMISSION;
}

enum osd_status osd_session_check_zone(struct osd_session *session, struct osd_txn *txn,
				       struct osd_object_id id)
{
	enum osd_status status = is_in_zone(session, txn, id);

	return status == OSD_OK ? osd_rights_check_in(session, txn, id) : status;
}

struct zone_check {
	struct osd_session *session;
	struct osd_object_id id;
};

static enum osd_status check_zone_in(struct osd_txn *txn, void *arg)
{
	const struct zone_check *check = arg;

	osd_long_call_watch(check->session, txn);
	return osd_session_check_zone(check->session, txn, check->id);
}

enum osd_status osd_session_check_object(struct osd_session *session, struct osd_object_id id)
{
	return osd_txn_run(session->objects, OSD_TXN_READ_ONLY, check_zone_in,
			   &(struct zone_check){session, id});
}

/* It is opened first: one that is made after the check has another tag perhaps, or another owner. */
enum osd_status osd_session_open_object(struct osd_session *session, struct osd_object_id id,
					struct osd_object **ret_object)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	enum osd_status status, opened = OSD_E_PERMISSION;

	if (session->zone.type == OSD_ROOT || id.partition_id == session->zone.id.partition_id)
		opened = osd_object_get(session->objects, id, &object);
	status = osd_session_check_object(session, id);
	if (status == OSD_OK && opened == OSD_OK)
		*ret_object = OSD_STEAL(object);
	return status == OSD_OK ? opened : status;
}

enum osd_status osd_session_check_free(struct osd_txn *txn, struct osd_object_id id)
{
	bool unfinished = false;
	enum osd_status status = osd_surrogate_marked(txn, id, &unfinished);

	if (status != OSD_OK)
		return status;
	return unfinished ? OSD_E_JOB_IN_WAY : OSD_OK;
}

struct op_work {
	struct osd_op *op;
	osd_op_in_fn *fn;
};

static enum osd_status work_in(struct osd_txn *txn, void *arg)
{
	struct op_work *work = arg;

	osd_long_call_watch(work->op->session, txn);
	return work->fn(txn, work->op);
}

enum osd_status osd_op_transact(struct osd_op *op, osd_op_in_fn *fn)
{
	return osd_txn_run(op->session->objects, op->txn_flags, work_in, &(struct op_work){op, fn});
}

void osd_op_uses(struct osd_op *op, uint32_t kinds)
{
	if (!op->session->plain)
		osd_used_note(&op->session->used, osd_op_id(op), kinds);
}

void osd_op_made(struct osd_op *op, const struct osd_change *change)
{
	if (!op->session->plain && change->changed)
		osd_used_wrote(&op->session->used, osd_op_id(op), change->before, change->version);
}
