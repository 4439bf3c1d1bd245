/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rights.c -- see rights.h. */
#include "exec/rights.h"

#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "exec/exec_impl.h"
#include "exec/proxy.h"
#include "security/keys.h"
#include "security/mac.h"

/* ---- one object ------------------------------------------------------------------------------ */

static bool is_zone(const struct osd_session *session, struct osd_object_id id)
{
	return id.partition_id == session->zone.id.partition_id &&
	       id.object_id == session->zone.id.object_id;
}

/* The range of a capability is one of the object it names. */
static enum osd_status check(const struct osd_session *session,
			     const struct osd_object_facts *facts)
{
	const struct osd_grant *grant = &session->rights.grant;
	uint64_t now_ms = osd_wall_msec();
	uint16_t field;
	enum osd_status status;

	status = is_zone(session, facts->id) && session->zone.type == OSD_USER_OBJECT
			 ? osd_grant_permits(grant, facts, &session->access, now_ms, &field)
			 : osd_grant_permits_inside(grant, facts, &session->access, now_ms, &field);
	return status == OSD_OK ? OSD_OK : OSD_E_PERMISSION;
}

/* The collection of all user objects has no tag: it is as its partition is. */
static struct osd_object_id judged_by(struct osd_object_id id)
{
	if (id.object_id == OSD_OBJECTS_COLLECTION)
		id.object_id = 0;
	return id;
}

/* What others' jobs have printed is not for this one. */
static enum osd_status check_owner(const struct osd_session *session, struct osd_txn *txn,
				   struct osd_object_id id)
{
	const struct osd_capability *capability = &session->rights.grant.capability;
	struct osd_job_owner owner;
	enum osd_status status = osd_exec_owner_in(session->exec, txn, id, &owner);

	if (status == OSD_E_NO_OBJECT)
		return OSD_E_PERMISSION;
	if (status == OSD_OK && memcmp(owner.audit, capability->audit, sizeof(owner.audit)) != 0)
		return OSD_E_PERMISSION;
	return status;
}

enum osd_status osd_rights_check_in(struct osd_session *session, struct osd_txn *txn,
				    struct osd_object_id id)
{
	struct osd_object_facts facts;
	enum osd_status status;

	if (!session->rights.limited)
		return OSD_OK;
	status = osd_txn_facts(txn, judged_by(id), true, &facts);
	if (status == OSD_E_NO_OBJECT || status == OSD_E_NO_PARTITION) {
		facts = (struct osd_object_facts){
			.id = id, .type = OSD_USER_OBJECT, .missing = true};
		status = OSD_OK;
	}
	if (status == OSD_OK && facts.surrogate)
		status = check_owner(session, txn, id);
	return status == OSD_OK ? check(session, &facts) : status;
}

enum osd_status osd_rights_check_open(struct osd_session *session, struct osd_object *object)
{
	struct osd_object_facts facts;

	if (!session->rights.limited)
		return OSD_OK;
	osd_object_facts(object, &facts);
	return check(session, &facts);
}

enum osd_status osd_rights_check_made(struct osd_session *session, enum osd_object_type type,
				      struct osd_object_id id)
{
	struct osd_object_facts facts;
	enum osd_status status;

	if (!session->rights.limited)
		return OSD_OK;
	status = osd_objects_facts_made(session->objects, type, id, &facts);
	return status == OSD_OK ? check(session, &facts) : status;
}

bool osd_rights_have_range(const struct osd_session *session, struct osd_object_id id)
{
	const struct osd_capability *capability = &session->rights.grant.capability;

	return session->rights.limited && is_zone(session, id) &&
	       (capability->allowed_range_length || capability->allowed_range_start);
}

enum osd_status osd_rights_filter(struct osd_session *session, struct osd_txn *txn,
				  uint64_t partition_id, uint64_t *ids, size_t *count)
{
	size_t kept = 0;

	if (!session->rights.limited || !session->rights.grant.capability.policy_access_tag)
		return OSD_OK;
	for (size_t i = 0; i < *count; i++) {
		enum osd_status status = osd_rights_check_in(
			session, txn, (struct osd_object_id){partition_id, ids[i]});

		if (status == OSD_OK)
			ids[kept++] = ids[i];
		else if (status != OSD_E_PERMISSION)
			return status;
	}
	*count = kept;
	return OSD_OK;
}

/* ---- revocation ------------------------------------------------------------------------------ */

static bool has_expired(const struct osd_session *session)
{
	uint64_t expires = session->rights.grant.capability.expiration_ms;

	return expires && expires <= osd_wall_msec();
}

/* False: no capability of this key is good now. */
static bool stamp_of(const struct osd_exec *exec, const struct osd_grant *grant,
		     uint8_t stamp[OSD_KEY_STAMP])
{
	static const char what[] = "iosd job";
	uint8_t value[OSD_MAC_LENGTH];
	struct osd_secret secret;
	struct osd_mac mac;

	if (!exec->config.keyring)
		return false;
	osd_keyring_secret(exec->config.keyring, grant->level, grant->key_partition,
			   grant->capability.key_version, &secret);
	osd_mac_init(&mac, OSD_HMAC_SHA256, secret.key);
	osd_mac_update(&mac, what, sizeof(what));
	osd_mac_final(&mac, value);
	explicit_bzero(&secret.key, sizeof(secret.key));
	memcpy(stamp, value, OSD_KEY_STAMP);
	return secret.known && !secret.frozen;
}

void osd_rights_stamp(const struct osd_exec *exec, struct osd_job_rights *rights)
{
	stamp_of(exec, &rights->grant, rights->key_stamp);
}

static bool key_is_lost(const struct osd_exec *exec, const struct osd_job_rights *rights)
{
	uint8_t stamp[OSD_KEY_STAMP];

	return !stamp_of(exec, &rights->grant, stamp) ||
	       memcmp(stamp, rights->key_stamp, sizeof(stamp)) != 0;
}

/* Does the capability still permit to run a script in the zone? */
static enum osd_status look_at_zone(const struct osd_session *session)
{
	static const struct osd_access run = {.permissions = OSD_PERM_FUN_EXE};
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;
	struct osd_object_facts facts;
	uint16_t field;
	enum osd_status status = osd_txn_begin(session->objects, OSD_TXN_READ_ONLY, &txn);

	if (status == OSD_OK)
		status = osd_txn_facts(txn, session->zone.id, true, &facts);
	if (status != OSD_OK)
		return status;
	status = osd_grant_permits(&session->rights.grant, &facts, &run, osd_wall_msec(), &field);
	return status == OSD_OK ? OSD_OK : OSD_E_PERMISSION;
}

/* A zone that is gone leaves the job nothing to do harm to; it finds that out by itself. */
static bool zone_is_lost(const struct osd_session *session, uint64_t *seen)
{
	uint64_t changes = osd_objects_policy_changes(session->objects);
	enum osd_status status;

	if (changes == *seen)
		return false;
	status = look_at_zone(session);
	if (status == OSD_OK)
		*seen = changes;
	return status == OSD_E_PERMISSION;
}

bool osd_rights_ended(struct osd_session *session)
{
	if (!session->rights.limited)
		return false;
	return atomic_load_explicit(&session->revoked, memory_order_relaxed) ||
	       has_expired(session) || zone_is_lost(session, &session->policy_seen);
}

/* ---- the sweep ------------------------------------------------------------------------------- */

/* Of an object it holds descriptors of. */
static bool share_is_lost(struct osd_session *session)
{
	static const struct osd_access read = {.permissions = OSD_PERM_READ};
	bool lost = false;

	pthread_mutex_lock(&session->shares_lock);
	for (struct osd_session_share *share = session->shares; share && !lost;
	     share = share->next) {
		struct osd_object_facts facts;
		uint16_t field;

		osd_object_facts(share->object, &facts);
		lost = osd_grant_permits_inside(&session->rights.grant, &facts, &read,
						osd_wall_msec(), &field) != OSD_OK;
	}
	pthread_mutex_unlock(&session->shares_lock);
	return lost;
}

static void look_at(struct osd_exec *exec, struct osd_run *run)
{
	struct osd_session *session = &run->session;

	if (!has_expired(session) && !key_is_lost(exec, &session->rights) &&
	    !zone_is_lost(session, &run->policy_swept) && !share_is_lost(session))
		return;
	atomic_store(&session->revoked, true);
	pthread_mutex_lock(&exec->lock);
	if (run->job->run == run)
		osd_exec_request_end(exec, run->job, OSD_REASON_REVOKED);
	pthread_mutex_unlock(&exec->lock);
}

void osd_rights_sweep(struct osd_exec *exec)
{
	struct osd_run *runs[OSD_EXEC_SLOTS_MAX];
	size_t count = 0;

	pthread_mutex_lock(&exec->lock);
	for (struct osd_sandbox *sandbox = exec->pool.list; sandbox; sandbox = sandbox->next) {
		struct osd_run *run = sandbox->job ? sandbox->job->run : NULL;

		if (run && run->session.rights.limited && count < OSD_ARRAY_SIZE(runs))
			runs[count++] = osd_run_ref(run);
	}
	pthread_mutex_unlock(&exec->lock);
	for (size_t i = 0; i < count; i++)
		look_at(exec, runs[i]);
	pthread_mutex_lock(&exec->lock);
	for (size_t i = 0; i < count; i++)
		osd_run_unref(runs[i]);
	pthread_mutex_unlock(&exec->lock);
}
