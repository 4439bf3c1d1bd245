/* SPDX-License-Identifier: GPL-2.0-or-later */
/* share.c -- descriptors of objects that a script may map: passed by SHARE, closed by UNSHARE
 * (session.h). */
#include <stdlib.h>

#include "base/util.h"
#include "exec/session/session.h"

static struct osd_session_share **bucket_of(struct osd_session *session, struct osd_object_id id)
{
	uint64_t mixed = (id.partition_id ^ id.object_id) * UINT64_C(0x9e3779b97f4a7c15);

	return &session->shares[(mixed >> 32) % OSD_SESSION_BUCKETS];
}

/* The object's share that the script has not closed; NULL: none. */
static struct osd_session_share *find_share(struct osd_session *session, struct osd_object_id id)
{
	struct osd_session_share *share = *bucket_of(session, id);

	while (share && !(share->object && osd_same_id(share->id, id)))
		share = share->next;
	return share;
}

/* The object's share that the script has closed; NULL: its descriptors were never passed. */
static struct osd_session_share *find_closed(struct osd_session *session, struct osd_object_id id,
					     uint64_t created_ms)
{
	struct osd_session_share *share = *bucket_of(session, id);

	while (share && !(osd_same_id(share->id, id) && share->created_ms == created_ms))
		share = share->next;
	return share;
}

/* The target does not see the reads through descriptors.  They found one version if it is still the present
 * one. */
static void end_use(struct osd_session *session, const struct osd_session_share *share)
{
	struct osd_data_version version;
	uint64_t length;

	if (!session->plain &&
	    osd_object_state(share->object, &length, &version) == OSD_OK)
		osd_used_read(&session->used, share->id, version, 0, 0);
	else if (!session->plain)
		osd_used_note(&session->used, share->id, OSD_USED_VARIED); /* removed */
}

void osd_session_end_uses(struct osd_session *session)
{
	for (size_t i = 0; i < OSD_SESSION_BUCKETS; i++)
		for (struct osd_session_share *share = session->shares[i]; share; share = share->next)
			if (share->object)
				end_use(session, share);
}

/* The object may be changed in any way again.  The sweep still checks it, because the script may
 * have kept a copy of the descriptor. */
static void close_share(struct osd_session *session, struct osd_session_share *share)
{
	struct osd_object *object = share->object;

	end_use(session, share);
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
	enum osd_status status;

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
	status = session->hooks.share(session->hooks.arg, fds, count);
	if (status == OSD_E_UNSUPPORTED)
		op->why = "the descriptors passed before were not received; read by calls";
	return status;
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
	return status == OSD_OK ? osd_session_check_object(session, id) : status;
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
	if (status == OSD_OK && !session->plain) {
		osd_used_read(&session->used, entry->id, share.data_version, 0, 0);
		osd_used_note(&session->used, entry->id, OSD_USED_WHOLE);
	}
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

static bool is_paced(const struct osd_session *session)
{
	return session->pace && atomic_load(&session->pace->rate);
}

enum osd_status osd_op_share(struct osd_op *op)
{
	struct osd_session *session = op->session;
	struct osd_object_id id = osd_op_id(op);
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	uint64_t changes = osd_objects_policy_changes(session->objects);
	enum osd_status status;

	if (find_share(session, id)) {
		op->why = "its descriptors have been passed already";
		return OSD_E_PARAM_FIELD;
	}
	/* A descriptor gives access to the whole object, and the target cannot see what is read
	 * through it.  A job that may read only a range, or only so many bytes, or only so fast, must
	 * therefore call for each piece. */
	if (osd_rights_have_range(session, id) || is_paced(session) ||
	    session->limits.io_bytes != osd_exec_limits[OSD_LIMIT_IO].maximum)
		return OSD_E_UNSUPPORTED;
	status = osd_session_open_object(session, id, &object);
	if (status == OSD_OK)
		status = osd_op_check_plain(op, object);
	if (status == OSD_E_CONTRACT) { /* the files have the stored bytes */
		op->why = "its data pass through functions; read by calls";
		status = OSD_E_UNSUPPORTED;
	}
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
	struct osd_object_id id = osd_op_id(op);
	struct osd_session_share *share = find_share(op->session, id);

	if (!share)
		return OSD_E_PARAM_FIELD;
	close_share(op->session, share);
	return OSD_OK;
}

void osd_session_release_shares(struct osd_session *session)
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
