/* SPDX-License-Identifier: GPL-2.0-or-later */
/* data.c -- a script's calls on object data: read, write and similar calls, shared descriptors, and
 * the job's result, which moves to a companion object when it is long. */
#include <string.h>

#include "base/util.h"
#include "exec/session/session.h"
#include "object/sums.h"
#include "object/txn_run.h"

/* ---- open objects ---------------------------------------------------------------------------- */

static bool same_id(struct osd_object_id a, struct osd_object_id b)
{
	return a.partition_id == b.partition_id && a.object_id == b.object_id;
}

static struct osd_session_entry *find_open(struct osd_session *session, struct osd_object_id id)
{
	for (size_t i = 0; i < OSD_SESSION_OPEN; i++)
		if (session->open[i].object && same_id(session->open[i].id, id))
			return &session->open[i];
	return NULL;
}

struct zone_check {
	struct osd_session *session;
	struct osd_object_id id;
};

static enum osd_status check_zone_in(struct osd_txn *txn, void *arg)
{
	const struct zone_check *check = arg;

	return osd_session_check_zone(check->session, txn, check->id);
}

static enum osd_status check_zone(struct osd_session *session, struct osd_object_id id)
{
	return osd_txn_run(session->objects, OSD_TXN_READ_ONLY, check_zone_in,
			   &(struct zone_check){session, id});
}

enum osd_status osd_session_open_object(struct osd_session *session, struct osd_object_id id,
					struct osd_object **ret_object)
{
	struct osd_session_entry *entry = find_open(session, id);
	struct osd_object *object;
	enum osd_status status = OSD_OK;

	/* Members of a collection may leave it: check the membership again at each call. */
	if (!entry || session->zone.type == OSD_COLLECTION)
		status = check_zone(session, id);
	if (status == OSD_OK && entry) {
		*ret_object = entry->object;
		return osd_rights_check_open(session, entry->object);
	}
	if (status == OSD_OK)
		status = osd_object_get(session->objects, id, &object);
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

	if (status != OSD_E_NO_OBJECT && status != OSD_E_NO_PARTITION)
		return status;
	entry = find_open(op->session,
			  (struct osd_object_id){op->call.partition_id, op->call.object_id});
	if (entry) {
		osd_object_put(entry->object);
		*entry = (struct osd_session_entry){0};
	}
	return status;
}

static enum osd_status open_to_read(struct osd_op *op, struct osd_object **ret_object)
{
	struct osd_object_id id = {op->call.partition_id, op->call.object_id};

	return osd_session_open_object(op->session, id, ret_object);
}

static enum osd_status open_to_change(struct osd_op *op, struct osd_object **ret_object)
{
	struct osd_object_id id = {op->call.partition_id, op->call.object_id};
	enum osd_status status = open_to_read(op, ret_object);
	struct osd_look look = {0};

	if (status == OSD_OK)
		status = forget_removed(op, osd_object_look(op->session->objects, id, &look));
	return status == OSD_OK && look.unfinished ? OSD_E_JOB_IN_WAY : status;
}

/* ---- data ------------------------------------------------------------------------------------ */

enum osd_status osd_op_read(struct osd_op *op)
{
	struct osd_object *object;
	enum osd_status status;
	size_t got = 0;

	if (op->call.b > OSD_CALL_IO_MAX)
		return OSD_E_PARAM_LENGTH;
	status = open_to_read(op, &object);
	if (status == OSD_OK)
		status = osd_object_read(object, op->call.a, op->out, op->call.b, 0, &got);
	status = forget_removed(op, status);
	if (status != OSD_OK)
		return status;
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
	memcpy(op->session->scratch, op->body, op->call.body_bytes);
	return op->session->scratch;
}

enum osd_status osd_op_write(struct osd_op *op)
{
	struct osd_object *object;
	enum osd_status status;

	if (op->call.body_bytes > OSD_CALL_IO_MAX)
		return OSD_E_PARAM_LENGTH;
	status = open_to_change(op, &object);
	if (status == OSD_OK)
		status = osd_session_count_io(op->session, &op->session->bytes_written,
					      op->call.body_bytes);
	if (status == OSD_OK)
		status = osd_object_write(object, op->call.a, settled_body(op), op->call.body_bytes,
					  0);
	return forget_removed(op, status);
}

enum osd_status osd_op_append(struct osd_op *op)
{
	struct osd_object *object;
	enum osd_status status;

	if (op->call.body_bytes > OSD_CALL_IO_MAX)
		return OSD_E_PARAM_LENGTH;
	status = open_to_change(op, &object);
	if (status == OSD_OK)
		status = osd_session_count_io(op->session, &op->session->bytes_written,
					      op->call.body_bytes);
	if (status == OSD_OK)
		status = osd_object_append(object, settled_body(op), op->call.body_bytes, 0,
					   &op->answer.a);
	return forget_removed(op, status);
}

enum osd_status osd_op_truncate(struct osd_op *op)
{
	struct osd_object *object;
	enum osd_status status = open_to_change(op, &object);

	if (status == OSD_OK)
		status = osd_object_truncate(object, op->call.a, 0);
	return forget_removed(op, status);
}

enum osd_status osd_op_clear(struct osd_op *op)
{
	struct osd_object *object;
	enum osd_status status = open_to_change(op, &object);

	if (status == OSD_OK)
		status = osd_object_clear(object, op->call.a, op->call.b, 0);
	return forget_removed(op, status);
}

static bool punch_goes_on(void *arg, uint64_t bytes)
{
	return osd_long_call_step(arg, bytes);
}

static void punch_rests(void *arg)
{
	osd_long_call_rest(arg);
}

static enum osd_status punch(struct osd_op *op, struct osd_object_id id, struct osd_object *object)
{
	const struct osd_change_steps steps = {punch_goes_on, punch_rests, op->session};
	const struct osd_session_host *host = op->session->host;
	void *hold = host ? host->hold_object(host->exec, id) : NULL;
	enum osd_status status = osd_object_punch(object, op->call.a, op->call.b, &steps, 0);

	if (host)
		host->release_object(host->exec, hold);
	return status;
}

/* The data after the hole moves, and counts as written. */
enum osd_status osd_op_punch(struct osd_op *op)
{
	struct osd_object_id id = {op->call.partition_id, op->call.object_id};
	struct osd_object *object;
	enum osd_status status = open_to_change(op, &object);

	if (status == OSD_OK)
		status = punch(op, id, object);
	if (status == OSD_E_TASK_ABORTED)
		op->why = "the job is being ended; the object is as it was";
	return forget_removed(op, status);
}

enum osd_status osd_op_length(struct osd_op *op)
{
	struct osd_object *object;
	enum osd_status status = open_to_read(op, &object);

	if (status == OSD_OK)
		status = osd_object_length(object, &op->answer.a);
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

/* ---- descriptors ----------------------------------------------------------------------------- */

static struct osd_session_share **bucket_of(struct osd_session *session, struct osd_object_id id)
{
	uint64_t mixed = (id.partition_id ^ id.object_id) * UINT64_C(0x9e3779b97f4a7c15);

	return &session->shares[(mixed >> 32) % OSD_SESSION_BUCKETS];
}

/* The object's share that the script has not closed; NULL: none. */
static struct osd_session_share *find_share(struct osd_session *session, struct osd_object_id id)
{
	struct osd_session_share *share = *bucket_of(session, id);

	while (share && !(share->object && same_id(share->id, id)))
		share = share->next;
	return share;
}

/* The object's share that the script has closed; NULL: its descriptors were never passed. */
static struct osd_session_share *find_closed(struct osd_session *session, struct osd_object_id id,
					     uint64_t created_ms)
{
	struct osd_session_share *share = *bucket_of(session, id);

	while (share && !(same_id(share->id, id) && share->created_ms == created_ms))
		share = share->next;
	return share;
}

/* The object may be changed in any way again.  The sweep still checks it, because the script may
 * have kept a copy of the descriptor. */
static void close_share(struct osd_session *session, struct osd_session_share *share)
{
	struct osd_object *object = share->object;

	osd_lock(&session->shares_lock);
	share->object = NULL;
	osd_unlock(&session->shares_lock);
	session->share_fds -= share->fd_count;
	osd_object_unshare(object);
	osd_object_put(object);
}

/* An entry for the object, not yet open; NULL: *ret_status. */
static struct osd_session_share *get_share(struct osd_op *op, struct osd_object_id id,
					   uint64_t created_ms, enum osd_status *ret_status)
{
	struct osd_session *session = op->session;
	struct osd_session_share **bucket = bucket_of(session, id);
	struct osd_session_share *share = find_closed(session, id, created_ms);

	*ret_status = OSD_OK;
	if (share)
		return share;
	*ret_status = OSD_E_UNSUPPORTED;
	op->why = "the job has been passed descriptors of as many objects as it may; read by calls";
	if (session->share_count >= OSD_JOB_SHARED_MAX)
		return NULL;
	*ret_status = OSD_E_NO_MEMORY;
	op->why = NULL;
	share = calloc(1, sizeof(*share));
	if (!share)
		return NULL;
	*ret_status = OSD_OK;
	share->id = id;
	share->created_ms = created_ms;
	share->next = *bucket;
	session->share_count++;
	osd_lock(&session->shares_lock);
	*bucket = share;
	osd_unlock(&session->shares_lock);
	return share;
}

static enum osd_status send_share(struct osd_op *op, const struct osd_share *share,
				  size_t *ret_count)
{
	struct osd_session *session = op->session;
	int fds[OSD_ANSWER_FDS];
	size_t count = 0;

	if (share->head_fd >= 0) {
		fds[count++] = share->head_fd;
		op->answer.flags |= 1;
	}
	if (share->tail_fd >= 0) {
		fds[count++] = share->tail_fd;
		op->answer.flags |= 2;
	}
	fds[count++] = share->version_fd;
	if (session->share_fds + count > OSD_JOB_SHARES_MAX) {
		op->why = "too many objects are open as descriptors; close some";
		return OSD_E_NO_SPACE;
	}
	*ret_count = count;
	op->answer.a = share->head_bytes;
	op->answer.b = share->length;
	op->answer.fd_count = (uint16_t)count;
	return session->hooks.share(session->hooks.arg, fds, count);
}

/* The script has the descriptors from now on. */
static void note_share(struct osd_session *session, struct osd_session_share *share,
		       struct osd_object *object, size_t fd_count)
{
	osd_lock(&session->shares_lock);
	share->object = object;
	osd_unlock(&session->shares_lock);
	share->fd_count = fd_count;
	session->share_fds += fd_count;
}

/* Checks the permission once more, now that the entry is in the list.  The sweep sees the entry
 * after any later change of a policy.  A change between the first check and now may already have
 * been swept. */
static enum osd_status permit_again(struct osd_session *session, struct osd_object_id id,
				    uint64_t changes)
{
	enum osd_status status;

	if (osd_objects_policy_changes(session->objects) == changes)
		return OSD_OK;
	status = osd_rights_enter(session, id.partition_id, false);
	return status == OSD_OK ? check_zone(session, id) : status;
}

/* Sets whether the sweep checks the object; returns the previous setting. */
static bool set_passed(struct osd_session *session, struct osd_session_share *share, bool passed)
{
	bool before;

	osd_lock(&session->shares_lock);
	before = share->passed;
	share->passed = passed;
	osd_unlock(&session->shares_lock);
	return before;
}

static enum osd_status pass(struct osd_op *op, struct osd_session_share *entry,
			    struct osd_object *object, uint64_t changes)
{
	struct osd_session *session = op->session;
	struct osd_share share;
	size_t count = 0;
	enum osd_status status = permit_again(session, entry->id, changes);

	if (status == OSD_OK)
		status = osd_object_share(object, &share);
	if (status != OSD_OK)
		return status;
	status = send_share(op, &share, &count);
	osd_closep(&share.head_fd);
	osd_closep(&share.tail_fd);
	osd_closep(&share.version_fd);
	if (status == OSD_OK)
		note_share(session, entry, object, count);
	else
		osd_object_unshare(object);
	return status;
}

static enum osd_status share_object(struct osd_op *op, struct osd_object_id id,
				    struct osd_object *object, uint64_t changes)
{
	struct osd_object_facts facts;
	struct osd_session_share *entry;
	enum osd_status status;
	bool before;

	osd_object_facts(object, &facts);
	entry = get_share(op, id, facts.created_ms, &status);
	if (!entry)
		return status;
	before = set_passed(op->session, entry, true);
	status = pass(op, entry, object, changes);
	if (status != OSD_OK)
		set_passed(op->session, entry, before);
	return status;
}

enum osd_status osd_op_share(struct osd_op *op)
{
	struct osd_session *session = op->session;
	struct osd_object_id id = {op->call.partition_id, op->call.object_id};
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	uint64_t changes = osd_objects_policy_changes(session->objects);
	enum osd_status status;

	if (find_share(session, id)) {
		op->why = "its descriptors have been passed already";
		return OSD_E_PARAM_FIELD;
	}
	/* A descriptor gives access to the whole object, and the target cannot see what is read
	 * through it.  A job that may read only a range, or only so many bytes, must therefore call
	 * for each piece. */
	if (osd_rights_have_range(session, id) ||
	    session->limits.io_bytes != osd_exec_limits[OSD_LIMIT_IO].maximum)
		return OSD_E_UNSUPPORTED;
	status = check_zone(session, id);
	if (status == OSD_OK)
		status = osd_object_get(session->objects, id, &object);
	if (status == OSD_OK)
		status = share_object(op, id, object, changes);
	if (status != OSD_OK)
		return status;
	(void)OSD_STEAL(object); /* the entry's */
	/* The whole length counts as read, because reads through the descriptor cannot be
	 * counted. */
	return osd_session_count_io(session, &session->bytes_read, op->answer.b);
}

enum osd_status osd_op_unshare(struct osd_op *op)
{
	struct osd_object_id id = {op->call.partition_id, op->call.object_id};
	struct osd_session_share *share = find_share(op->session, id);

	if (!share)
		return OSD_E_PARAM_FIELD;
	close_share(op->session, share);
	return OSD_OK;
}

static void release_shares(struct osd_session *session)
{
	for (size_t i = 0; i < OSD_SESSION_BUCKETS; i++) {
		struct osd_session_share *share, *next;

		osd_lock(&session->shares_lock);
		share = session->shares[i];
		session->shares[i] = NULL;
		osd_unlock(&session->shares_lock);
		for (; share; share = next) {
			next = share->next;
			if (share->object)
				osd_object_unshare(share->object);
			osd_object_put(share->object);
			free(share);
		}
	}
}

void osd_session_release_data(struct osd_session *session)
{
	release_shares(session);
	for (size_t i = 0; i < OSD_SESSION_OPEN; i++)
		osd_object_put(session->open[i].object);
	osd_object_put(session->companion);
}

/* ---- the result ------------------------------------------------------------------------------ */

static enum osd_status create_companion(struct osd_txn *txn, struct osd_op *op)
{
	struct osd_session *session = op->session;
	enum osd_status status = osd_companion_create(txn, session->job, &session->result_object);

	if (status == OSD_OK)
		status = session->hooks.spilled(session->hooks.arg, txn, session->result_object);
	return status;
}

/* Moves the result so far into a companion object.  All further pieces go there, too. */
static enum osd_status spill(struct osd_op *op, uint64_t length)
{
	struct osd_session *session = op->session;
	struct osd_object_id id = {session->job.partition_id, 0};
	enum osd_status status = osd_op_transact(op, create_companion);

	id.object_id = session->result_object;
	if (status == OSD_OK)
		status = osd_object_get(session->objects, id, &session->companion);
	if (status == OSD_OK && length)
		status = osd_object_write(session->companion, 0, session->result, length, 0);
	return status;
}

static enum osd_status restart_result(struct osd_session *session)
{
	atomic_store(&session->result_length, 0);
	return session->companion ? osd_object_truncate(session->companion, 0, 0) : OSD_OK;
}

enum osd_status osd_op_result(struct osd_op *op)
{
	struct osd_session *session = op->session;
	uint64_t piece = op->call.body_bytes, length, end;
	enum osd_status status = OSD_OK;

	if (piece > OSD_CALL_IO_MAX || op->call.b > 1)
		return OSD_E_PARAM_LENGTH;
	if (op->call.a == 0)
		status = restart_result(session);
	length = atomic_load(&session->result_length);
	if (status != OSD_OK)
		return status;
	if (op->call.a != length)
		return OSD_E_PARAM_FIELD;
	end = length + piece;
	if (end > session->limits.result_bytes) {
		session->fault = OSD_REASON_RESULT_LIMIT;
		return OSD_E_PARAM_FIELD;
	}
	if (!session->result)
		session->result = malloc(OSD_JOB_PAYLOAD_MAX);
	if (!session->result)
		return OSD_E_NO_MEMORY;
	if (end > OSD_JOB_PAYLOAD_MAX && !session->companion)
		status = spill(op, length);
	if (status == OSD_OK && session->companion)
		status = osd_object_write(session->companion, length, settled_body(op), piece, 0);
	else if (status == OSD_OK)
		memcpy(session->result + length, op->body, piece);
	if (status == OSD_OK) {
		session->result_json = op->call.b == 1;
		atomic_store(&session->result_length, end);
	}
	return status;
}
