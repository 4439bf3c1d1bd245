/* SPDX-License-Identifier: GPL-2.0-or-later */
/* serve.c -- serves one call of a script: the table of operations, checks, answers (session.h).
 * Elsewhere: what the operations do (life.c, data.c, attrs.c, query.c, names.c). */
#include "exec/session/session.h"

#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "function/function.h"
#include "wire/cursor.h"
#include "wire/text.h"

enum op_flags {
	OP_BODY = 1,	  /* may have a body; the others must not */
	OP_CHANGES = 2,	  /* changes something outside the job's own output */
	OP_PARTITION = 4, /* addresses a partition, or creates in it: the zone must include the
			   * whole partition */
	OP_OBJECT = 8,	  /* addresses an object of the zone */
	OP_ROOT = 16,	  /* root zones only */
	OP_MEMBERS = 32,  /* changes a collection; collections that the target maintains are
			   * refused */
	/* The bytes of the object that it touches: from a on, b bytes, or as many as the body
	 * has. */
	OP_AT_B = 64,
	OP_AT_BODY = 128,
	OP_FROM = 256,
	OP_AHEAD = 512,	  /* may be called ahead */
	OP_LONG = 1024,	  /* may take long: outside the call gate (long_call.c) */
	OP_OWN = 2048,	  /* concerns the job itself: touches no object */
	OP_ATTRS = 4096,  /* touches attributes */
	OP_AT_END = 8192, /* bytes without an address yet, as those of APPEND in the wire
			   * protocol */
	OP_COPY = 16384,  /* its body is copied into scratch: the script may change it */
	OP_READS = 32768, /* its transactions are read-only */
};

#define PLACE_BYTES 4u	/* that say in FINISH where a result lies */
#define LONG_COUNT 256 /* a CREATE of more objects takes long */

struct op_row {
	uint16_t op, flags, permissions; /* enum osd_permission */
	osd_op_fn *run;
	osd_op_in_fn *in; /* in place of run: all of it is one transaction */
	uint32_t uses;	  /* enum osd_used_kind; 0: the function notes them */
};

/* ---- the job itself -------------------------------------------------------------------------- */

/* The result that comes with FINISH, in place of an earlier one. */
static enum osd_status finish_result(struct osd_op *op, const uint8_t *bytes)
{
	struct osd_op result = {.session = op->session,
				.call = {.op = OSD_CALL_RESULT,
					 .b = op->call.partition_id - 1,
					 .body_bytes = (uint32_t)op->call.object_id},
				.body = bytes};

	return op->call.b & OSD_FINISH_PLACED
		       ? osd_op_placed_result(op, osd_get_be(bytes, PLACE_BYTES))
		       : osd_op_result(&result);
}

/* Of a traceback that is too long, keeps the end: the last lines name the error.  r: at the line. */
static void keep_report(struct osd_session *session, const uint8_t *traceback, size_t length,
			const struct osd_rd *r)
{
	size_t kept = OSD_MIN(length, OSD_JOB_PAYLOAD_MAX);
	size_t line = OSD_MIN(osd_rd_left(r), (size_t)OSD_JOB_MESSAGE_MAX);

	session->traceback = malloc(kept + 1);
	session->traceback_length = session->traceback ? kept : 0;
	if (session->traceback)
		memcpy(session->traceback, traceback + length - kept, kept);
	if (!osd_text_is_clean(r->at, line))
		return;
	memcpy(session->line, r->at, line);
	session->line[line] = '\0';
}

static enum osd_status op_finish(struct osd_op *op)
{
	struct osd_session *session = op->session;
	uint64_t kind = op->call.b & ~(uint64_t)(OSD_FINISH_KEPT | OSD_FINISH_PLACED);
	uint64_t form = op->call.partition_id, carried = op->call.object_id;
	bool placed = op->call.b & OSD_FINISH_PLACED;
	struct osd_rd r;
	const uint8_t *traceback, *result;
	size_t length;
	enum osd_status status = OSD_OK;

	r = osd_rd_init(session->scratch, op->call.body_bytes);
	length = osd_rd_be(&r, 4);
	traceback = osd_rd_bytes(&r, length);
	if (placed)
		carried = PLACE_BYTES;
	result = osd_rd_bytes(&r, OSD_MIN(carried, (uint64_t)OSD_BODY_MAX));
	if (r.bad || kind > OSD_FINISH_FILES || form > 2 ||
	    carried > (form ? OSD_FINISH_RESULT_MAX : 0)) {
		session->fault = OSD_REASON_PROTOCOL;
		return OSD_E_PARAM_FIELD;
	}
	keep_report(session, traceback, length, &r);
	if (form)
		status = finish_result(op, result);
	if (status != OSD_OK) /* no answer can say so: the job is over */
		session->fault = session->fault ? session->fault : OSD_REASON_STORAGE;
	session->exit_code = (uint32_t)op->call.a;
	session->finish_kind = (enum osd_finish_kind)kind;
	session->kept_code = op->call.b & OSD_FINISH_KEPT;
	session->phase = OSD_PHASE_OVER;
	return status;
}

static enum osd_status op_progress(struct osd_op *op)
{
	struct osd_session *session = op->session;
	size_t length = op->call.body_bytes;

	if ((op->call.a > 1000 && op->call.a != OSD_JOB_PROGRESS_NONE) ||
	    length > OSD_JOB_MESSAGE_MAX)
		return OSD_E_PARAM_FIELD;
	if (!osd_text_is_clean(session->scratch, length))
		return OSD_E_PARAM_FIELD;
	session->hooks.progress(session->hooks.arg, (uint16_t)op->call.a, session->scratch, length);
	return OSD_OK;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* All operations here are permitted from the handover to FINISH, and none after it. */
static const struct op_row rows[] = {
	{OSD_CALL_FINISH, OP_BODY | OP_COPY | OP_OWN, 0, .run = op_finish},
	{OSD_CALL_PROGRESS, OP_BODY | OP_COPY | OP_OWN, 0, .run = op_progress},
	{OSD_CALL_RESULT, OP_BODY | OP_OWN | OP_AHEAD, 0, .run = osd_op_result},
	{OSD_CALL_TYPE, 0, 0, .in = osd_op_type, .uses = OSD_USED_TYPE},
	{OSD_CALL_CREATE_PARTITION, OP_CHANGES | OP_ROOT, OSD_PERM_CREATE,
	 .in = osd_op_create_partition, .uses = OSD_MADE_OBJECT},
	{OSD_CALL_REMOVE_PARTITION, OP_CHANGES | OP_ROOT | OP_LONG, OSD_PERM_REMOVE,
	 .run = osd_op_remove_partition, .uses = OSD_MADE_GONE},
	{OSD_CALL_CREATE, OP_CHANGES | OP_PARTITION, OSD_PERM_CREATE, .run = osd_op_create,
	 .uses = OSD_MADE_OBJECT},
	{OSD_CALL_REMOVE, OP_CHANGES | OP_OBJECT, OSD_PERM_REMOVE, .in = osd_op_remove,
	 .uses = OSD_MADE_GONE},
	{OSD_CALL_CREATE_COLLECTION, OP_CHANGES | OP_PARTITION, OSD_PERM_CREATE,
	 .in = osd_op_create_collection, .uses = OSD_MADE_OBJECT},
	{OSD_CALL_REMOVE_COLLECTION, OP_CHANGES | OP_PARTITION | OP_MEMBERS | OP_LONG,
	 OSD_PERM_REMOVE, .run = osd_op_remove_collection, .uses = OSD_MADE_GONE},
	{OSD_CALL_COLLECTION_ADD, OP_CHANGES | OP_PARTITION | OP_MEMBERS, OSD_PERM_SET_ATTR,
	 .in = osd_op_collection_add, .uses = OSD_MADE_MEMBERS},
	{OSD_CALL_COLLECTION_DROP, OP_CHANGES | OP_PARTITION | OP_MEMBERS, OSD_PERM_SET_ATTR,
	 .in = osd_op_collection_drop, .uses = OSD_MADE_MEMBERS},
	{OSD_CALL_LIST, 0, OSD_PERM_READ, .in = osd_op_list},
	{OSD_CALL_GETATTR, OP_BODY | OP_COPY | OP_ATTRS, OSD_PERM_GET_ATTR, .in = osd_op_getattr,
	 .uses = OSD_USED_ATTRIBUTES},
	{OSD_CALL_SETATTR, OP_BODY | OP_COPY | OP_CHANGES | OP_ATTRS, OSD_PERM_SET_ATTR,
	 .in = osd_op_setattr, .uses = OSD_MADE_ATTRIBUTES},
	{OSD_CALL_LISTATTR, OP_ATTRS, OSD_PERM_GET_ATTR, .in = osd_op_listattr,
	 .uses = OSD_USED_ATTRIBUTES},
	{OSD_CALL_QUERY, OP_BODY | OP_COPY | OP_READS | OP_LONG | OP_ATTRS, OSD_PERM_QUERY,
	 .in = osd_op_query, .uses = OSD_USED_QUERY},
	{OSD_CALL_SWAPATTR, OP_BODY | OP_COPY | OP_CHANGES | OP_ATTRS,
	 OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR, .run = osd_op_swapattr,
	 .uses = OSD_USED_ATTRIBUTES},
	{OSD_CALL_ADDATTR, OP_CHANGES | OP_ATTRS, OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR,
	 .in = osd_op_addattr, .uses = OSD_USED_ATTRIBUTES | OSD_MADE_ATTRIBUTES},
	{OSD_CALL_READ, OP_OBJECT | OP_AT_B, OSD_PERM_READ, .run = osd_op_read},
	{OSD_CALL_WRITE, OP_BODY | OP_CHANGES | OP_OBJECT | OP_AT_BODY | OP_AHEAD, OSD_PERM_WRITE,
	 .run = osd_op_write},
	{OSD_CALL_APPEND, OP_BODY | OP_CHANGES | OP_OBJECT | OP_AT_END | OP_AHEAD, OSD_PERM_APPEND,
	 .run = osd_op_append},
	{OSD_CALL_TRUNCATE, OP_CHANGES | OP_OBJECT | OP_FROM | OP_LONG, OSD_PERM_WRITE,
	 .run = osd_op_truncate},
	{OSD_CALL_CLEAR, OP_CHANGES | OP_OBJECT | OP_AT_B | OP_LONG, OSD_PERM_WRITE,
	 .run = osd_op_clear},
	{OSD_CALL_PUNCH, OP_CHANGES | OP_OBJECT | OP_FROM | OP_LONG, OSD_PERM_WRITE,
	 .run = osd_op_punch},
	{OSD_CALL_LENGTH, OP_OBJECT, OSD_PERM_READ, .run = osd_op_length},
	{OSD_CALL_FLUSH, OP_OBJECT | OP_LONG, OSD_PERM_WRITE, .run = osd_op_flush},
	{OSD_CALL_SHARE, OP_OBJECT | OP_FROM, OSD_PERM_READ, .run = osd_op_share},
	{OSD_CALL_UNSHARE, OP_OBJECT | OP_OWN, 0, .run = osd_op_unshare},
	{OSD_CALL_ENTER, OP_BODY | OP_COPY | OP_OWN | OP_LONG, 0, .run = osd_op_enter},
	{OSD_CALL_CODE, OP_OWN, 0, .run = osd_op_code},
	{OSD_CALL_LEAVE, OP_OWN, 0, .run = osd_op_leave},
	{OSD_CALL_NAMES, OP_BODY | OP_COPY | OP_READS, OSD_PERM_READ, .in = osd_op_names,
	 .uses = OSD_USED_NAMES},
};

static const struct op_row *find_row(uint16_t op)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++)
		if (rows[i].op == op)
			return &rows[i];
	return NULL;
}

/* Whether the script may send this call ahead, without waiting for the answer to the last: only
 * calls on data, and none longer than its area. */
static bool may_follow(const struct osd_session *session, const struct op_row *row,
		       const struct osd_call *call)
{
	if (!session->ahead && !call->flags)
		return true;
	return (call->flags & ~OSD_CALL_AHEAD) == 0 && row->flags & OP_AHEAD &&
	       call->body_bytes <= OSD_AHEAD_BYTES;
}

/* Checks the access class of a function (docs/functions.md). */
static bool may_at_all(const struct osd_session *session, const struct op_row *row)
{
	if (row->flags & OP_OWN || session->running.denied == OSD_DENIES_NOTHING)
		return true;
	return session->running.denied == OSD_DENIES_CHANGES && !(row->flags & OP_CHANGES);
}

static enum osd_status check(struct osd_op *op, const struct op_row *row)
{
	struct osd_session *session = op->session;

	if (op->call.body_bytes && !(row->flags & OP_BODY))
		return OSD_E_PARAM_LENGTH;
	if (!may_at_all(session, row)) {
		op->why = "the function's access class does not permit it: 'osd fn put --access' sets it";
		return OSD_E_PERMISSION;
	}
	if (row->flags & OP_ROOT && session->zone.type != OSD_ROOT)
		return OSD_E_PERMISSION;
	if (row->flags & OP_PARTITION &&
	    !osd_session_owns_partition(session, op->call.partition_id))
		return OSD_E_PERMISSION;
	if (row->flags & OP_OBJECT && op->call.object_id == 0)
		return OSD_E_PARAM_FIELD;
	if (row->flags & OP_MEMBERS && op->call.object_id < OSD_FIRST_ID) {
		op->why = "the target keeps this collection itself";
		return OSD_E_PERMISSION;
	}
	return OSD_OK;
}

/* Checks the policy of the partition that the call names.  Creating and removing partitions needs
 * the root's. */
static enum osd_status check_policy(struct osd_op *op, const struct op_row *row)
{
	uint64_t partition_id = row->flags & OP_ROOT ? 0 : op->call.partition_id;
	enum osd_status status;

	if (row->flags & OP_OWN)
		return OSD_OK;
	status = osd_rights_enter(op->session, partition_id, row->flags & OP_ATTRS);
	if (status == OSD_E_PERMISSION)
		op->why = "the partition demands a capability, or a stronger method, by now";
	return status;
}

/* An end past the last offset is refused later. */
static struct osd_access access_of(const struct op_row *row, const struct osd_call *call)
{
	struct osd_access access = {.permissions = row->permissions, .start = call->a};

	if (row->flags & OP_AT_B)
		access.end = osd_add_capped(call->a, call->b);
	else if (row->flags & OP_AT_BODY)
		access.end = osd_add_capped(call->a, call->body_bytes);
	else if (row->flags & OP_FROM)
		access.end = UINT64_MAX;
	else if (row->flags & OP_AT_END)
		access.start = access.end = UINT64_MAX;
	else
		access.start = 0;
	return access;
}

static enum osd_status note_write(struct osd_session *session)
{
	enum osd_status status = OSD_OK;

	if (!session->wrote)
		status = session->hooks.wrote(session->hooks.arg);
	if (status == OSD_OK)
		session->wrote = true;
	return status;
}

static enum osd_answer_code answer_code(enum osd_status status)
{
	switch (status) {
	case OSD_OK:
	case OSD_E_SHORT_READ:
		return OSD_ANSWER_OK;
	case OSD_E_NO_OBJECT:
	case OSD_E_NO_PARTITION:
	case OSD_E_NO_FUNCTION:
	case OSD_E_FUNCTION_INACTIVE:
	case OSD_E_NO_NAME:
		return OSD_ANSWER_NOT_FOUND;
	case OSD_E_EXISTS:
		return OSD_ANSWER_EXISTS;
	case OSD_E_PERMISSION:
	case OSD_E_FUNCTION_CAPS:
	case OSD_E_POOL_ACCESS:
		return OSD_ANSWER_PERMISSION;
	case OSD_E_QUOTA:
	case OSD_E_NO_SPACE:
		return OSD_ANSWER_NO_SPACE;
	case OSD_E_NOT_EMPTY:
		return OSD_ANSWER_NOT_EMPTY;
	case OSD_E_STAGE:
		return OSD_ANSWER_STAGE;
	case OSD_E_JOB_IN_WAY:
	case OSD_E_FUNCTION_IN_USE:
		return OSD_ANSWER_CONFLICT;
	case OSD_E_CDB_FIELD:
	case OSD_E_PARAM_FIELD:
	case OSD_E_PARAM_LENGTH:
	case OSD_E_BEYOND_END:
	case OSD_E_FUNCTION_ENGINE:
	case OSD_E_NOT_DIRECTORY:
	case OSD_E_CONTRACT:
		return OSD_ANSWER_INVALID;
	default:
		return OSD_ANSWER_IO;
	}
}

static void explain(struct osd_op *op, enum osd_status status)
{
	const char *meaning = op->why ? op->why : osd_status_info(status)->meaning;
	char text[160];
	int length;

	if (!op->why && status == OSD_E_PERMISSION)
		meaning = op->session->rights.limited
				  ? "outside the job's zone, or its capability does not permit it"
				  : "outside the job's zone";
	if (!op->why && (status == OSD_E_PARAM_FIELD || status == OSD_E_PARAM_LENGTH))
		meaning = "invalid argument, or an attribute that is read-only or does not fit the "
			  "object";
	length = snprintf(text, sizeof(text), "%#llx/%#llx: %s",
			  (unsigned long long)op->call.partition_id,
			  (unsigned long long)op->call.object_id, meaning);
	op->answer = (struct osd_answer){.code = (uint16_t)answer_code(status)};
	op->answer.body_bytes = (uint32_t)OSD_MIN((size_t)length, sizeof(text) - 1);
	memcpy(op->out, text, op->answer.body_bytes);
}

static enum osd_served fault(struct osd_session *session, uint16_t reason)
{
	session->fault = reason;
	session->phase = OSD_PHASE_OVER;
	return OSD_SERVED_FAULT;
}

static bool is_long(const struct op_row *row, const struct osd_call *call)
{
	return row->flags & OP_LONG || (row->op == OSD_CALL_CREATE && call->a > LONG_COUNT);
}

static enum osd_status run_row(struct osd_op *op, const struct op_row *row)
{
	enum osd_status status;

	osd_session_enter(op->session, is_long(row, &op->call));
	status = check(op, row);
	if (status == OSD_OK)
		status = check_policy(op, row);
	if (status == OSD_OK && row->flags & OP_CHANGES)
		status = note_write(op->session);
	if (row->flags & OP_COPY)
		memcpy(op->session->scratch, op->body, op->call.body_bytes);
	op->txn_flags = row->flags & OP_READS ? OSD_TXN_READ_ONLY : 0;
	if (status == OSD_OK)
		status = row->in ? osd_op_transact(op, row->in) : row->run(op);
	osd_session_leave(op->session);
	return status;
}

static enum osd_status zone_in(struct osd_txn *txn, struct osd_op *op)
{
	return osd_session_check_zone(op->session, txn, osd_op_id(op));
}

static enum osd_status check_again(struct osd_op *op, const struct op_row *row)
{
	enum osd_status status = OSD_OK;

	if (osd_rights_ended(op->session)) {
		op->session->fault = OSD_REASON_REVOKED;
		return OSD_E_PERMISSION;
	}
	status = check_policy(op, row);
	if (status == OSD_OK)
		status = osd_op_transact(op, zone_in);
	return osd_status_is_gone(status) ? OSD_OK : status;
}

/* Checks a call that reads a second time, before it is answered.  A policy may have changed after
 * the first check, and the call may have read data written after that change.  These lie in memory that
 * the script can read. */
static enum osd_status judge_again(struct osd_op *op, const struct op_row *row)
{
	enum osd_status status = check_again(op, row);

	if (status != OSD_OK) {
		memset(op->out, 0, op->answer.body_bytes);
		op->answer = (struct osd_answer){0};
	}
	return status;
}

/* Notes the objects that the call has read or changed. A refusal counts as read. */
static void note_uses(struct osd_op *op, const struct op_row *row, enum osd_status status)
{
	struct osd_object_id made = {op->call.partition_id, op->answer.a};
	uint64_t count = row->op == OSD_CALL_CREATE ? op->call.a : 1;

	if (op->session->plain)
		return;
	if (row->op == OSD_CALL_CREATE_PARTITION)
		made = (struct osd_object_id){op->answer.a, 0};
	if (status != OSD_OK && !(row->flags & OP_OWN))
		osd_op_uses(op, OSD_USED_REFUSED);
	else if (status == OSD_OK && row->uses == OSD_MADE_OBJECT)
		for (; count; count--, made.object_id++)
			osd_used_note(&op->session->used, made, OSD_MADE_OBJECT);
	else if (status == OSD_OK && row->uses)
		osd_op_uses(op, row->uses);
}

static enum osd_status run_and_judge(struct osd_op *op, const struct op_row *row, uint64_t changes)
{
	enum osd_status status = run_row(op, row);

	if (status == OSD_OK && !(row->flags & (OP_CHANGES | OP_OWN)) &&
	    osd_objects_policy_changes(op->session->objects) != changes)
		status = judge_again(op, row);
	note_uses(op, row, status);
	return status;
}

enum osd_served osd_session_serve(struct osd_session *session, const uint8_t frame[OSD_FRAME_BYTES],
				  const uint8_t *body, uint8_t answer_frame[OSD_FRAME_BYTES],
				  uint8_t *answer_body)
{
	struct osd_op op = {.session = session, .body = body, .out = answer_body};
	uint8_t copy[OSD_FRAME_BYTES];
	uint64_t changes = osd_objects_policy_changes(session->objects);
	const struct op_row *row;
	enum osd_answer_code code;
	enum osd_status status;

	memcpy(copy, frame, sizeof(copy));
	if (!osd_call_decode(copy, &op.call))
		return fault(session, OSD_REASON_PROTOCOL);
	row = find_row(op.call.op);
	if (!row || session->phase != OSD_PHASE_RUN || !may_follow(session, row, &op.call))
		return fault(session, OSD_REASON_PROTOCOL);
	if (row->op != OSD_CALL_FINISH && osd_rights_ended(session))
		return fault(session, OSD_REASON_REVOKED);
	atomic_fetch_add_explicit(&session->calls, 1, memory_order_relaxed);
	session->access = access_of(row, &op.call);
	status = session->ahead ? session->ahead_status : OSD_OK;
	if (status == OSD_OK)
		status = run_and_judge(&op, row, changes);
	if (session->fault)
		return fault(session, session->fault);
	session->last_op = op.call.op;
	session->ahead = op.call.flags & OSD_CALL_AHEAD;
	session->ahead_status = status;
	code = answer_code(status);
	if (session->host)
		atomic_fetch_add_explicit(&session->host->calls->counts[op.call.op][code], 1,
					  memory_order_relaxed);
	if (code != OSD_ANSWER_OK)
		explain(&op, status);
	osd_answer_encode(&op.answer, answer_frame);
	return session->phase == OSD_PHASE_OVER ? OSD_SERVED_LAST : OSD_SERVED;
}

enum osd_status osd_session_init(struct osd_session *session)
{
	session->phase = OSD_PHASE_RUN;
	session->scratch = malloc(OSD_BODY_MAX);
	return session->scratch ? OSD_OK : OSD_E_NO_MEMORY;
}

void osd_session_release(struct osd_session *session)
{
	osd_session_release_data(session);
	osd_used_release(&session->used);
	osd_allowed_release(&session->allowed);
	free(session->result);
	free(session->traceback);
	osd_function_code_put(session->code);
	free(session->scratch);
}
