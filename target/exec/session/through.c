/* SPDX-License-Identifier: GPL-2.0-or-later */
/* through.c -- a script's calls on objects whose data pass through functions (docs/views.md).  The script gets what a
 * READ returns, and never the stored bytes.  The functions run in other sandboxes, because the script could read along
 * in its own. */
#include <string.h>

#include "exec/session/session.h"
#include "object/stack.h"
#include "wire/osd2.h"

static enum osd_status concerns_in(struct osd_txn *txn, struct osd_op *op)
{
	const struct osd_object_id id = osd_op_id(op);
	bool stacked = false, concerned = false;
	enum osd_status status = osd_stack_is_there(txn, id, &stacked);

	if (status == OSD_OK && stacked)
		status = osd_stack_concerns(txn, &concerned);
	return status == OSD_OK && concerned ? OSD_E_CONTRACT : status;
}

/* Does nothing if the object's data pass through no functions: they are plain.  Otherwise the call gives its
 * place back: it waits for functions.  A session that has no script to wait for them takes only
 * objects that they do not concern. */
static enum osd_status pass(struct osd_op *op, struct osd_object *object,
			    struct osd_exec_data *data)
{
	struct osd_session *session = op->session;
	enum osd_status status;
	uint64_t length;

	data->object = object;
	data->id = osd_op_id(op);
	data->plain = !osd_object_is_stacked(object);
	if (data->plain)
		return OSD_OK;
	osd_long_call_rest(session);
	if (session->hooks.pass) {
		status = session->hooks.pass(session->hooks.arg, data);
	} else {
		status = osd_op_transact(op, concerns_in);
		data->plain = status == OSD_OK;
	}
	if (status == OSD_OK) /* a later object with its id is another one */
		status = osd_object_length(object, &length);
	if (status == OSD_OK || !data->why[0])
		return status;
	memcpy(op->why_data, data->why, sizeof(op->why_data));
	op->why = op->why_data;
	return status;
}

/* The functions may be others at the next READ of the same version.  So no later job may be answered with what this one
 * has computed. */
static void note_read(struct osd_op *op, const struct osd_exec_data *data)
{
	if (op->session->plain)
		return;
	osd_used_read(&op->session->used, data->id, data->version, data->offset, data->available);
	osd_used_note(&op->session->used, data->id, OSD_USED_VARIED);
}

enum osd_status osd_op_read_through(struct osd_op *op, struct osd_object *object, bool *ret_plain)
{
	struct osd_exec_data data = {.offset = op->call.a,
				     .length = op->call.b,
				     .buffer = op->out,
				     .capacity = (size_t)op->call.b};
	enum osd_status status = pass(op, object, &data);

	*ret_plain = data.plain;
	if (status != OSD_OK || *ret_plain)
		return status;
	note_read(op, &data);
	op->answer.a = data.available;
	op->answer.body_bytes = (uint32_t)data.available;
	return osd_session_count_io(op->session, &op->session->bytes_read, data.available);
}

enum osd_status osd_op_length_through(struct osd_op *op, struct osd_object *object, bool *ret_plain)
{
	struct osd_exec_data data = {.length = INT64_MAX};
	enum osd_status status = pass(op, object, &data);

	*ret_plain = data.plain;
	if (status != OSD_OK || *ret_plain)
		return status;
	op->answer.a = data.available;
	data.available = 0;
	note_read(op, &data);
	return OSD_OK;
}

/* The functions may have taken long: the rights may have been revoked, and another object may have the id. */
static enum osd_status permit(struct osd_exec_data *data)
{
	struct osd_session *session = data->session;
	uint64_t length;
	enum osd_status status = osd_object_length(data->object, &length);

	if (status == OSD_OK && osd_rights_ended(session)) {
		session->fault = OSD_REASON_REVOKED;
		status = OSD_E_PERMISSION;
	}
	if (status == OSD_OK)
		status = osd_rights_enter(session, data->id.partition_id, false);
	return status == OSD_OK ? osd_session_check_object(session, data->id) : status;
}

/* The body is copied first: the script may change it meanwhile. */
enum osd_status osd_op_write_through(struct osd_op *op, struct osd_object *object, bool *ret_plain)
{
	struct osd_session *session = op->session;
	struct osd_exec_data data = {
		.offset = op->call.a,
		.length = op->call.body_bytes,
		.bytes = session->scratch,
		.permit = permit,
		.session = session,
	};
	enum osd_status status = OSD_OK;

	*ret_plain = !osd_object_is_stacked(object) || data.length == 0;
	if (*ret_plain)
		return OSD_OK;
	memmove(session->scratch, op->body, op->call.body_bytes);
	status = pass(op, object, &data);
	*ret_plain = data.plain;
	if (status == OSD_OK && data.changed && !session->plain) {
		osd_used_wrote(&session->used, data.id, data.before, data.version);
		osd_used_note(&session->used, data.id, OSD_USED_VARIED);
	}
	return status;
}

enum osd_status osd_op_check_plain(struct osd_op *op, struct osd_object *object)
{
	enum osd_status status =
		osd_object_is_stacked(object) ? osd_op_transact(op, concerns_in) : OSD_OK;

	if (status == OSD_E_CONTRACT)
		op->why = "its data pass through functions: only reads, writes and truncate(0) do";
	return status;
}

static enum osd_status empty_in(struct osd_txn *txn, struct osd_op *op)
{
	const struct osd_object_id id = osd_op_id(op);
	const uint8_t zero[8] = {0};

	return osd_attr_set(txn, id, OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH, zero, sizeof(zero));
}

enum osd_status osd_op_empty_through(struct osd_op *op)
{
	enum osd_status status = osd_op_transact(op, empty_in);

	op->why = NULL;
	if (status == OSD_OK)
		osd_op_uses(op, OSD_MADE_ATTRIBUTES | OSD_USED_VARIED);
	if (status == OSD_E_PARAM_FIELD)
		op->why = "it is an object of a view that is read-only";
	return status;
}
