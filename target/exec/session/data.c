/* SPDX-License-Identifier: GPL-2.0-or-later */
/* data.c -- a script's calls on object data: read, write and similar calls, and the job's result,
 * which moves to a companion object when it is long.  Elsewhere: shared descriptors (share.c). */
#include <string.h>

#include "base/util.h"
#include "exec/session/session.h"
#include "object/stack.h"
#include "object/sums.h"

/* ---- open objects ---------------------------------------------------------------------------- */

static struct osd_session_entry *find_open(struct osd_session *session, struct osd_object_id id)
{
	for (size_t i = 0; i < OSD_SESSION_OPEN; i++)
		if (session->open[i].object && osd_same_id(session->open[i].id, id))
			return &session->open[i];
	return NULL;
}

/* Opened and checked on first use.  The session keeps it. */
static enum osd_status open_to_read(struct osd_op *op, struct osd_object **ret_object)
{
	struct osd_session *session = op->session;
	struct osd_object_id id = osd_op_id(op);
	struct osd_session_entry *entry = find_open(session, id);
	struct osd_object *object;
	enum osd_status status = OSD_OK;

	/* Members of a collection may leave it: check the membership again at each call. */
	if (entry && session->zone.type == OSD_COLLECTION)
		status = osd_session_check_object(session, id);
	if (status == OSD_OK && entry) {
		*ret_object = entry->object;
		return osd_rights_check_open(session, entry->object);
	}
	if (status == OSD_OK)
		status = osd_session_open_object(session, id, &object);
	if (status != OSD_OK)
		return status;
	entry = &session->open[session->next_open];
	session->next_open = (session->next_open + 1) % OSD_SESSION_OPEN;
	osd_object_put(entry->object);
	*entry = (struct osd_session_entry){id, object};
	*ret_object = object;
	return OSD_OK;
}

/* An open object that was removed must not hide a new object with the same id. */
static enum osd_status forget_removed(struct osd_op *op, enum osd_status status)
{
	struct osd_session_entry *entry;

	if (!osd_status_is_gone(status))
		return status;
	entry = find_open(op->session, osd_op_id(op));
	if (entry) {
		osd_object_put(entry->object);
		*entry = (struct osd_session_entry){0};
	}
	return status;
}

static enum osd_status open_to_change(struct osd_op *op, struct osd_object **ret_object)
{
	enum osd_status status = open_to_read(op, ret_object);

	return status == OSD_OK && osd_object_is_unfinished(*ret_object) ? OSD_E_JOB_IN_WAY
									 : status;
}

/* For changes other than writes: they do not pass through functions. */
static enum osd_status open_to_change_plain(struct osd_op *op, struct osd_object **ret_object)
{
	enum osd_status status = open_to_change(op, ret_object);

	return status == OSD_OK ? osd_op_check_plain(op, *ret_object) : status;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Notes the bytes that a call read, in the version that it read them in. */
static void note_read(struct osd_op *op, struct osd_data_version version, uint64_t length)
{
	if (!op->session->plain)
		osd_used_read(&op->session->used, osd_op_id(op), version, op->call.a, length);
}

enum osd_status osd_op_read(struct osd_op *op)
{
	struct osd_version_check check = {0};
	struct osd_object *object;
	enum osd_status status;
	size_t got = 0;
	bool plain = true;

	if (op->call.b > OSD_CALL_IO_MAX)
		return OSD_E_PARAM_LENGTH;
	status = open_to_read(op, &object);
	if (status == OSD_OK)
		status = osd_op_read_through(op, object, &plain);
	if (!plain)
		return forget_removed(op, status);
	if (status == OSD_OK)
		status = osd_object_read_with(object, op->call.a, op->out, op->call.b, 0, &check,
					      &got);
	status = forget_removed(op, status);
	if (status != OSD_OK)
		return status;
	note_read(op, check.found, got);
	op->answer.a = got;
	op->answer.body_bytes = (uint32_t)got;
	return osd_session_count_io(op->session, &op->session->bytes_read, got);
}

/* Copies the body before it is written: a script may change shared memory during the write, and the
 * checksum would then be wrong. */
static const uint8_t *settled_body(struct osd_op *op)
{
	if (!osd_objects_keep_sums(op->session->objects))
		return op->body;
	/* The body of a FINISH lies there already. */
	memmove(op->session->scratch, op->body, op->call.body_bytes);
	return op->session->scratch;
}

/* Opens the object that the body goes to, and counts the body's bytes. */
static enum osd_status begin_write(struct osd_op *op, struct osd_object **ret_object)
{
	enum osd_status status;

	if (op->call.body_bytes > OSD_CALL_IO_MAX)
		return OSD_E_PARAM_LENGTH;
	status = open_to_change(op, ret_object);
	if (status != OSD_OK)
		return forget_removed(op, status);
	return osd_session_count_io(op->session, &op->session->bytes_written, op->call.body_bytes);
}

/* Makes a change, and notes which version of the data came out of it. */
static enum osd_status change(struct osd_op *op, struct osd_object *object,
			      struct osd_change *what)
{
	enum osd_status status = osd_object_change(object, what);

	if (status == OSD_OK)
		osd_op_made(op, what);
	return forget_removed(op, status);
}

enum osd_status osd_op_write(struct osd_op *op)
{
	struct osd_piece piece = {op->call.a, op->call.body_bytes};
	struct osd_change what = {.kind = OSD_CHANGE_WRITE, .pieces = &piece, .piece_count = 1};
	struct osd_object *object;
	bool plain = true;
	enum osd_status status = begin_write(op, &object);

	if (status == OSD_OK)
		status = osd_op_write_through(op, object, &plain);
	if (!plain)
		return forget_removed(op, status);
	if (status != OSD_OK)
		return status;
	what.data = settled_body(op);
	return change(op, object, &what);
}

enum osd_status osd_op_append(struct osd_op *op)
{
	struct osd_change what = {.kind = OSD_CHANGE_APPEND, .length = op->call.body_bytes};
	struct osd_object *object;
	enum osd_status status = begin_write(op, &object);

	if (status == OSD_OK)
		status = osd_op_check_plain(op, object);
	if (status != OSD_OK)
		return status;
	what.data = settled_body(op);
	status = change(op, object, &what);
	op->answer.a = what.start;
	return status;
}

enum osd_status osd_op_truncate(struct osd_op *op)
{
	struct osd_change what = {.length = op->call.a};
	struct osd_object *object;
	enum osd_status status = open_to_change_plain(op, &object);

	if (status == OSD_E_CONTRACT && op->call.a == 0)
		return forget_removed(op, osd_op_empty_through(op));
	if (status == OSD_OK)
		status = osd_object_truncate_with(object, &what);
	if (status == OSD_OK)
		osd_op_made(op, &what);
	return forget_removed(op, status);
}

enum osd_status osd_op_clear(struct osd_op *op)
{
	struct osd_change what = {
		.kind = OSD_CHANGE_CLEAR, .offset = op->call.a, .length = op->call.b};
	struct osd_object *object;
	enum osd_status status = open_to_change_plain(op, &object);

	return status == OSD_OK ? change(op, object, &what) : forget_removed(op, status);
}

static enum osd_status punch(struct osd_op *op, struct osd_object *object)
{
	const struct osd_change_steps steps = {osd_long_call_step, osd_long_call_rest, op->session};
	const struct osd_session_host *host = op->session->host;
	struct osd_change what = {.kind = OSD_CHANGE_PUNCH,
				  .offset = op->call.a,
				  .length = op->call.b,
				  .steps = &steps};
	void *hold =
		host && host->hold_object ? host->hold_object(host->context, osd_op_id(op)) : NULL;
	enum osd_status status = change(op, object, &what);

	if (host && host->release_object)
		host->release_object(host->context, hold);
	return status;
}

/* The data after the hole moves, and counts as written. */
enum osd_status osd_op_punch(struct osd_op *op)
{
	struct osd_object *object;
	enum osd_status status = open_to_change_plain(op, &object);

	status = status == OSD_OK ? punch(op, object) : forget_removed(op, status);
	if (status == OSD_E_TASK_ABORTED)
		op->why = "the job is being ended; the object is as it was";
	return status;
}

enum osd_status osd_op_length(struct osd_op *op)
{
	struct osd_object *object;
	struct osd_data_version version;
	bool plain = true;
	enum osd_status status = open_to_read(op, &object);

	if (status == OSD_OK)
		status = osd_op_length_through(op, object, &plain);
	if (status == OSD_OK && plain)
		status = osd_object_state(object, &op->answer.a, &version);
	if (status == OSD_OK && plain)
		note_read(op, version, 0);
	return forget_removed(op, status);
}

enum osd_status osd_op_flush(struct osd_op *op)
{
	struct osd_object *object;
	enum osd_status status = open_to_read(op, &object);

	if (status == OSD_OK)
		status = osd_object_flush(object);
	return forget_removed(op, status);
}

void osd_session_release_data(struct osd_session *session)
{
	osd_session_release_shares(session);
	for (size_t i = 0; i < OSD_SESSION_OPEN; i++)
		osd_object_put(session->open[i].object);
	osd_object_put(session->companion);
}

/* ---- the result ------------------------------------------------------------------------------ */

/* answer.a: its id, which counts once the transaction is committed. */
static enum osd_status create_companion(struct osd_txn *txn, struct osd_op *op)
{
	struct osd_session *session = op->session;
	enum osd_status status = osd_companion_create(txn, session->job, &op->answer.a);

	if (status == OSD_OK)
		status = session->hooks.spilled(session->hooks.arg, txn, op->answer.a);
	return status;
}

static enum osd_status open_companion(struct osd_session *session)
{
	struct osd_object_id id = {session->job.partition_id, session->result_object};

	return session->companion ? OSD_OK
				  : osd_object_get(session->objects, id, &session->companion);
}

/* Moves the result so far into a companion object.  All further pieces go there, too. */
static enum osd_status spill(struct osd_op *op, uint64_t length)
{
	struct osd_session *session = op->session;
	enum osd_status status = osd_op_transact(op, create_companion);

	if (status == OSD_OK)
		session->result_object = op->answer.a;
	op->answer.a = 0;
	if (status == OSD_OK)
		status = open_companion(session);
	if (status == OSD_OK && length)
		status = osd_object_write(session->companion, 0, session->result, length, 0);
	return status;
}

/* Begins the result anew, also after a piece of it could not be kept. */
static enum osd_status restart_result(struct osd_session *session)
{
	enum osd_status status = OSD_OK;

	session->placed = NULL;
	atomic_store(&session->result_length, 0);
	if (session->result_object)
		status = open_companion(session);
	if (session->companion)
		status = osd_object_truncate(session->companion, 0, 0);
	session->result_status = status;
	return status;
}

/* The most that the result of a call without a surrogate can have, bytes. */
static size_t plain_most(const struct osd_session *session)
{
	return session->stage ? OSD_STAGE_DATA_MAX : OSD_JOB_PLAIN_MAX;
}

/* Room in memory for all of a plain call's result, and for the first OSD_JOB_PAYLOAD_MAX bytes of another: a longer one
 * moves to a companion.  The room of a stage grows with its result. */
static bool has_result_room(struct osd_session *session, uint64_t end)
{
	size_t room = OSD_JOB_PAYLOAD_MAX;
	uint8_t *result;

	if (session->plain && end > OSD_JOB_PAYLOAD_MAX)
		room = OSD_MAX((size_t)OSD_JOB_PLAIN_MAX, session->result_hint);
	while (session->plain && room < end && room < plain_most(session))
		room *= 2;
	if (session->result_room >= room)
		return true;
	result = realloc(session->result, room);
	if (!result)
		return false;
	session->result = result;
	session->result_room = room;
	return true;
}

/* Stores a piece that follows the first length bytes. */
static enum osd_status keep_piece(struct osd_op *op, uint64_t length)
{
	struct osd_session *session = op->session;
	uint64_t piece = op->call.body_bytes, end = length + piece;
	enum osd_status status = OSD_OK;

	if (!has_result_room(session, end))
		return OSD_E_NO_MEMORY;
	if (end > OSD_JOB_PAYLOAD_MAX && !session->companion && !session->plain)
		status = spill(op, length);
	if (status == OSD_OK && session->companion)
		status = osd_object_write(session->companion, length, settled_body(op), piece, 0);
	else if (status == OSD_OK)
		memcpy(session->result + length, op->body, piece);
	return status;
}

enum osd_status osd_op_result(struct osd_op *op)
{
	struct osd_session *session = op->session;
	uint64_t piece = op->call.body_bytes, length, end;

	if (piece > OSD_CALL_IO_MAX || op->call.b > 1)
		return OSD_E_PARAM_LENGTH;
	if (op->call.a == 0)
		restart_result(session);
	if (session->result_status != OSD_OK) /* of this piece, or of one before it */
		return session->result_status;
	length = atomic_load(&session->result_length);
	if (op->call.a != length)
		return OSD_E_PARAM_FIELD;
	end = length + piece;
	if (end > session->limits.result_bytes || (session->plain && end > plain_most(session))) {
		session->fault = OSD_REASON_RESULT_LIMIT;
		return OSD_E_PARAM_FIELD;
	}
	session->result_status = keep_piece(op, length);
	if (session->result_status == OSD_OK) {
		session->result_json = op->call.b == 1;
		atomic_store(&session->result_length, end);
	}
	return session->result_status;
}

enum osd_status osd_op_placed_result(struct osd_op *op, uint64_t place)
{
	struct osd_session *session = op->session;
	uint64_t length = op->call.object_id, end;
	enum osd_status status = restart_result(session);

	if (status != OSD_OK)
		return status;
	if (!session->texts || !session->stage || !session->plain ||
	    !osd_add_u64(place, length, &end) || end > OSD_SHM_PLACES_BYTES) {
		session->fault = OSD_REASON_PROTOCOL;
		return OSD_E_PARAM_FIELD;
	}
	if (length > session->limits.result_bytes || length > plain_most(session)) {
		session->fault = OSD_REASON_RESULT_LIMIT;
		return OSD_E_PARAM_FIELD;
	}
	if (session->placed_stays)
		session->placed = session->texts + place;
	else if (!has_result_room(session, length))
		return OSD_E_NO_MEMORY;
	else
		memcpy(session->result, session->texts + place, (size_t)length);
	session->result_json = op->call.partition_id == 2;
	atomic_store(&session->result_length, length);
	return OSD_OK;
}
