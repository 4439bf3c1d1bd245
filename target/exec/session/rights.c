/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rights.c -- what a session may do with its capability, or without one (session.h). */
#include "exec/session/session.h"

#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "security/decide.h"
#include "security/keys.h"
#include "security/mac.h"

/* ---- the partition --------------------------------------------------------------------------- */

static struct osd_keyring *keyring_of(const struct osd_session *session)
{
	return session->host ? session->host->keyring : NULL;
}

/* OSD_E_PERMISSION: the partition requires a stronger method than that of the job.  A job without a
 * capability has a zeroed grant, whose method is NOSEC. */
static enum osd_status ask_partition(const struct osd_session *session, uint64_t partition_id,
				     uint8_t *ret_least)
{
	enum osd_status status =
		osd_least_method(keyring_of(session), NULL, partition_id, ret_least);

	if (status != OSD_OK)
		return status;
	return osd_method_suffices(&session->rights.grant, *ret_least) ? OSD_OK : OSD_E_PERMISSION;
}

/* osd_rights_ended checks the zone's own partition. */
static enum osd_status enter_partition(struct osd_session *session, uint64_t partition_id,
				       uint64_t changes)
{
	struct osd_session_partition *entered =
		&session->entered[partition_id % OSD_SESSION_PARTITIONS];
	uint8_t least;
	enum osd_status status;

	if (session->zone.type != OSD_ROOT || partition_id == 0 ||
	    (entered->changes == changes && entered->id == partition_id))
		return OSD_OK;
	status = ask_partition(session, partition_id, &least);
	if (status == OSD_OK)
		*entered = (struct osd_session_partition){partition_id, changes};
	return status;
}

/* Reads the list of attributes that the job may touch again, when any policy has changed. */
static enum osd_status load_allowed(struct osd_session *session, uint64_t changes)
{
	const struct osd_capability *capability = &session->rights.grant.capability;
	enum osd_status status;

	if (!session->rights.limited || !capability->allowed_attributes_access ||
	    session->allowed_seen == changes)
		return OSD_OK;
	status = osd_allowed_load(session->objects, session->zone.id.partition_id, capability,
				  &session->allowed);
	if (status == OSD_OK)
		session->allowed_seen = changes;
	return status;
}

enum osd_status osd_rights_enter(struct osd_session *session, uint64_t partition_id,
				 bool attributes)
{
	uint64_t changes = osd_objects_policy_changes(session->objects);
	enum osd_status status = enter_partition(session, partition_id, changes);

	return status == OSD_OK && attributes ? load_allowed(session, changes) : status;
}

/* ---- one object ------------------------------------------------------------------------------ */

/* Whether the capability names this object, so that its range applies. */
static bool is_named(const struct osd_session *session, struct osd_object_id id)
{
	return osd_same_id(session->zone.id, id) && session->zone.type == OSD_USER_OBJECT;
}

/* The caller has checked the object's partition. */
static enum osd_status decide(const struct osd_session *session,
			      const struct osd_object_facts *facts, struct osd_access access)
{
	struct osd_act act = {
		.facts = facts, .access = access, .inside = !is_named(session, facts->id)};
	uint16_t field;

	return osd_decide(&session->rights.grant, &act, osd_wall_msec(), &field) == OSD_OK
		       ? OSD_OK
		       : OSD_E_PERMISSION;
}

static bool has_tag(const struct osd_session *session)
{
	return session->rights.grant.capability.policy_access_tag != 0;
}

/* The collection of all user objects has no tag of its own: its partition's tag applies. */
static struct osd_object_id judged_by(struct osd_object_id id)
{
	if (id.object_id == OSD_OBJECTS_COLLECTION)
		id.object_id = 0;
	return id;
}

/* A job may not read the output of other principals' jobs. */
static enum osd_status check_owner(const struct osd_session *session, struct osd_txn *txn,
				   struct osd_object_id id)
{
	const struct osd_capability *capability = &session->rights.grant.capability;
	struct osd_job_owner owner;
	const struct osd_session_host *host = session->host;
	enum osd_status status =
		host ? host->owner_in(host->exec, txn, id, &owner) : OSD_E_NO_OBJECT;

	if (status == OSD_E_NO_OBJECT || status == OSD_E_MEDIUM) /* nobody owns a damaged job */
		return OSD_E_PERMISSION;
	if (status == OSD_OK && memcmp(owner.audit, capability->audit, sizeof(owner.audit)) != 0)
		return OSD_E_PERMISSION;
	return status;
}

enum osd_status osd_rights_check_also(struct osd_session *session, struct osd_txn *txn,
				      struct osd_object_id id, struct osd_access access)
{
	struct osd_object_facts facts;
	enum osd_status status, gone = OSD_OK;

	if (!session->rights.limited)
		return OSD_OK;
	status = osd_txn_facts(txn, judged_by(id), has_tag(session), &facts);
	if (osd_status_is_gone(status)) {
		gone = status;
		facts = (struct osd_object_facts){.id = id,
						  .type = OSD_USER_OBJECT,
						  .boot_epoch =
							  osd_objects_boot_epoch(session->objects),
						  .missing = true};
		status = OSD_OK;
	}
	if (status == OSD_OK && facts.surrogate)
		status = check_owner(session, txn, id);
	if (status == OSD_OK)
		status = decide(session, &facts, access);
	return status == OSD_OK ? gone : status;
}

enum osd_status osd_rights_check_in(struct osd_session *session, struct osd_txn *txn,
				    struct osd_object_id id)
{
	return osd_rights_check_also(session, txn, id, session->access);
}

enum osd_status osd_rights_check_open(struct osd_session *session, struct osd_object *object)
{
	struct osd_object_facts facts;

	if (!session->rights.limited)
		return OSD_OK;
	osd_object_facts(object, &facts);
	return decide(session, &facts, session->access);
}

enum osd_status osd_rights_check_made(struct osd_session *session, enum osd_object_type type,
				      struct osd_object_id id)
{
	struct osd_object_facts facts;
	enum osd_status status;

	if (!session->rights.limited)
		return OSD_OK;
	status = osd_objects_facts_made(session->objects, type, id, &facts);
	return status == OSD_OK ? decide(session, &facts, session->access) : status;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static bool may_use(const struct osd_session *session, struct osd_object_id id, uint32_t page,
		    uint32_t number, struct osd_access access)
{
	struct osd_attribute_act act = {
		.page = page, .number = number, .access = access, .named = is_named(session, id)};
	uint16_t field;

	return !session->rights.limited ||
	       osd_decide_attribute(&session->rights.grant, &session->allowed, &act, &field) ==
		       OSD_OK;
}

bool osd_rights_may_get(const struct osd_session *session, struct osd_object_id id, uint32_t page,
			uint32_t number)
{
	return may_use(session, id, page, number, osd_access_to_get(page, number));
}

bool osd_rights_may_set(const struct osd_session *session, struct osd_object_id id, uint32_t page,
			uint32_t number, bool empty)
{
	return osd_page_is_for_scripts(page) &&
	       may_use(session, id, page, number, osd_access_to_set(page, number, empty));
}

bool osd_rights_may_compare(const struct osd_session *session, uint32_t page, uint32_t number)
{
	return !session->rights.limited || osd_allowed_has(&session->allowed, page, number);
}

/* ---- ranges --------------------------------------------------------------------------------- */

bool osd_rights_have_range(const struct osd_session *session, struct osd_object_id id)
{
	const struct osd_capability *capability = &session->rights.grant.capability;

	return session->rights.limited && osd_same_id(session->zone.id, id) &&
	       (capability->allowed_range_length || capability->allowed_range_start);
}

/* ---- revocation ------------------------------------------------------------------------------ */

bool osd_rights_expired(const struct osd_session *session)
{
	uint64_t expires = session->rights.grant.capability.expiration_ms;

	return expires && expires <= osd_wall_msec();
}

/* False: no capability signed with this key is valid now. */
static bool stamp_of(struct osd_keyring *keyring, const struct osd_grant *grant,
		     uint8_t stamp[OSD_KEY_STAMP])
{
	static const char what[] = "iosd job";
	uint8_t value[OSD_MAC_LENGTH];
	struct osd_secret secret;
	struct osd_mac mac;

	if (!keyring)
		return false;
	osd_keyring_secret(keyring, grant->level, grant->key_partition,
			   grant->capability.key_version, &secret);
	osd_mac_init(&mac, OSD_HMAC_SHA256, secret.key);
	osd_mac_update(&mac, what, sizeof(what));
	osd_mac_final(&mac, value);
	explicit_bzero(&secret.key, sizeof(secret.key));
	memcpy(stamp, value, OSD_KEY_STAMP);
	return secret.known && !secret.frozen;
}

void osd_rights_stamp(struct osd_keyring *keyring, struct osd_job_rights *rights)
{
	stamp_of(keyring, &rights->grant, rights->key_stamp);
}

static bool key_is_lost(struct osd_keyring *keyring, const struct osd_job_rights *rights)
{
	uint8_t stamp[OSD_KEY_STAMP];

	return !stamp_of(keyring, &rights->grant, stamp) ||
	       memcmp(stamp, rights->key_stamp, sizeof(stamp)) != 0;
}

/* Checks three things: the zone's partition accepts the job's method, the job's key is still there,
 * and its capability permits it to run a script there. */
static enum osd_status look_at_zone(const struct osd_session *session)
{
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;
	struct osd_object_facts facts;
	struct osd_act act = {.facts = &facts, .access = {.permissions = OSD_PERM_FUN_EXE}};
	uint16_t field;
	enum osd_status status;

	if (session->stage)
		return OSD_OK;
	status = ask_partition(session, session->zone.id.partition_id, &act.least_method);
	if (status != OSD_OK || !session->rights.limited)
		return status;
	if (session->host && key_is_lost(session->host->keyring, &session->rights))
		return OSD_E_PERMISSION;
	status = osd_txn_begin(session->objects, OSD_TXN_READ_ONLY, &txn);
	if (status == OSD_OK)
		status = osd_txn_facts(txn, session->zone.id, has_tag(session), &facts);
	if (status != OSD_OK)
		return status;
	return osd_decide(&session->rights.grant, &act, osd_wall_msec(), &field) == OSD_OK
		       ? OSD_OK
		       : OSD_E_PERMISSION;
}

/* If the zone has been removed, the job can do no harm.  Its next call fails, so it need not be
 * revoked. */
static bool zone_is_lost(struct osd_session *session)
{
	uint64_t changes = osd_objects_policy_changes(session->objects);
	enum osd_status status;

	if (changes == session->policy_seen)
		return false;
	status = look_at_zone(session);
	if (status == OSD_OK)
		session->policy_seen = changes;
	return status == OSD_E_PERMISSION;
}

bool osd_rights_ended(struct osd_session *session)
{
	return atomic_load_explicit(&session->revoked, memory_order_relaxed) ||
	       osd_rights_expired(session) || zone_is_lost(session);
}

/* ---- for the sweep (run/rights_sweep.c) ------------------------------------------------------ */

#define SHARES_AT_ONCE 16

/* Copied from a share: the store has locks of its own, and no call of the script waits for it. */
struct passed {
	struct osd_object_id id;
	uint64_t created_ms;
	bool open;
	struct osd_object_facts facts; /* of one that is open */
};

/* Checks an object whose descriptors the job has been passed.  If the object was removed, there is
 * nothing to revoke, even if another object now has its id. */
static enum osd_status look_at_passed(struct osd_session *session, struct passed *passed)
{
	struct osd_object_facts *facts = &passed->facts;
	uint8_t least;
	enum osd_status status = ask_partition(session, passed->id.partition_id, &least);

	if (status != OSD_OK || !session->rights.limited)
		return status;
	if (!passed->open)
		status = osd_objects_facts(session->objects, passed->id, has_tag(session), facts);
	if (osd_status_is_gone(status) ||
	    (status == OSD_OK && facts->created_ms != passed->created_ms))
		return OSD_OK;
	if (status != OSD_OK)
		return status;
	return decide(session, facts, osd_access_whole(OSD_PERM_READ));
}

/* Copies shares of a bucket, without the first *at, to which it adds those that it has seen.  A share that
 * is new comes first, so none is left out. */
static size_t copy_passed(struct osd_session *session, size_t bucket, size_t *at,
			  struct passed list[SHARES_AT_ONCE])
{
	size_t seen = 0, count = 0;

	osd_lock(&session->shares_lock);
	for (const struct osd_session_share *share = session->shares[bucket];
	     share && count < SHARES_AT_ONCE; share = share->next) {
		if (seen++ < *at || !share->passed)
			continue;
		list[count] = (struct passed){
			.id = share->id, .created_ms = share->created_ms, .open = share->object};
		if (share->object)
			osd_object_facts(share->object, &list[count].facts);
		count++;
	}
	osd_unlock(&session->shares_lock);
	*at = seen;
	return count;
}

static enum osd_status look_at_bucket(struct osd_session *session, size_t bucket)
{
	struct passed list[SHARES_AT_ONCE];
	enum osd_status status = OSD_OK;
	size_t count, at = 0;

	do {
		count = copy_passed(session, bucket, &at, list);
		for (size_t i = 0; i < count && status == OSD_OK; i++)
			status = look_at_passed(session, &list[i]);
	} while (status == OSD_OK && count == SHARES_AT_ONCE);
	return status;
}

static enum osd_status look_at_shares(struct osd_session *session)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; i < OSD_SESSION_BUCKETS && status == OSD_OK; i++)
		status = look_at_bucket(session, i);
	return status;
}

enum osd_status osd_rights_look_again(struct osd_session *session, uint64_t *seen)
{
	uint64_t changes = osd_objects_policy_changes(session->objects);
	enum osd_status status;

	if (changes == *seen)
		return OSD_OK;
	status = look_at_zone(session);
	if (osd_status_is_gone(status))
		status = OSD_OK; /* as in zone_is_lost */
	if (status == OSD_OK)
		status = look_at_shares(session);
	if (status == OSD_OK)
		*seen = changes;
	return status;
}
