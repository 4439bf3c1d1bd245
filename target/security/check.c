/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check.c -- see check.h. */
#include "security/check.h"

#include <string.h>

#include "base/clock.h"
#include "security/exchange.h"

enum {
	AT_CHECK_VALUE = 184,
	AT_NONCE = 216,
	KEY_TO_SET = 0x3,
	KEY_ROOT = 1,
	KEY_PARTITION = 2,
};

/* The key that proves a capability, and the other data of its partition. */
struct slot {
	enum osd_key_level level;
	uint64_t
		partition_id; /* of the key, of the least method, of the nonces; 0: partition zero's */
	bool pending;	      /* the master key that SET MASTER KEY is about to set */
	bool sets_key;	      /* NOSEC will not do, whatever the policy says */
};

static struct slot slot_of_set_key(uint8_t key_to_set, uint64_t partition_id)
{
	struct slot slot = {OSD_KEY_PARTITION, partition_id, false, true};

	if (key_to_set == KEY_ROOT)
		slot = (struct slot){OSD_KEY_MASTER, 0, false, true};
	else if (key_to_set == KEY_PARTITION)
		slot = (struct slot){OSD_KEY_ROOT, 0, false, true};
	return slot;
}

static struct slot slot_of(const struct osd_cdb *cdb, enum osd_signing signing)
{
	uint8_t bits = cdb->command_bits & KEY_TO_SET;

	switch (signing) {
	case OSD_SIGNED_PARTITION:
		break;
	case OSD_SIGNED_ROOT:
		return (struct slot){OSD_KEY_WORKING, 0, false, false};
	case OSD_SIGNED_SET_KEY:
		return slot_of_set_key(bits, cdb->partition_id);
	case OSD_SIGNED_SET_MASTER_KEY:
		return (struct slot){OSD_KEY_MASTER, 0, bits == 1, true};
	}
	return (struct slot){OSD_KEY_WORKING, cdb->partition_id, false, false};
}

/* ---- check values ---------------------------------------------------------------------------- */

static void find_secret(const struct osd_checker *checker, const struct slot *slot, uint64_t nexus,
			unsigned version, struct osd_secret *secret)
{
	if (slot->pending)
		osd_exchange_pending(osd_keyring_exchanges(checker->keyring), nexus, secret);
	else
		osd_keyring_secret(checker->keyring, slot->level, slot->partition_id, version,
				   secret);
}

/* Step 1 of SET MASTER KEY without a step 0.  The initiator may learn this: it knows it already,
 * and there is no key to check the request with. */
static bool is_out_of_sequence(const struct osd_checker *checker, const struct slot *slot,
			       uint64_t nexus)
{
	struct osd_secret secret;
	bool pending =
		!slot->pending ||
		osd_exchange_pending(osd_keyring_exchanges(checker->keyring), nexus, &secret);

	explicit_bzero(&secret, sizeof(secret));
	return !pending;
}

/* MAC(key, token), or over the CDB with zeros where the check value stands; that of an extension is over the CDB's. */
static void compute_check_value(const struct osd_checker *checker, const uint8_t *cdb,
				const struct osd_proof *proof, bool extension,
				uint8_t value[OSD_MAC_LENGTH])
{
	static const uint8_t zeros[OSD_MAC_LENGTH];
	struct osd_mac mac;

	osd_mac_init(&mac, proof->algorithm, proof->key);
	if (proof->grant.capability.security_method == OSD_CAPKEY) {
		osd_mac_update(&mac, checker->token, sizeof(checker->token));
	} else if (extension) {
		osd_mac_update(&mac, cdb + AT_CHECK_VALUE, OSD_MAC_LENGTH);
	} else {
		osd_mac_update(&mac, cdb, AT_CHECK_VALUE);
		osd_mac_update(&mac, zeros, sizeof(zeros));
		osd_mac_update(&mac, cdb + AT_NONCE, OSD_CDB_LENGTH - AT_NONCE);
	}
	osd_mac_final(&mac, value);
}

/* Whether a genuine capability could have these fields at all. */
static bool is_possible(const struct osd_capability *capability)
{
	return capability->format == OSD_CAPABILITY_OSD2 &&
	       capability->icv_algorithm < OSD_MAC_ALGORITHMS &&
	       capability->security_method != OSD_NOSEC &&
	       capability->security_method < OSD_METHODS;
}

/* Computes the capability key.  An impossible capability gets one, too, so that its refusal takes
 * the same time. */
static void prove(const struct osd_checker *checker, const uint8_t bytes[OSD_CAPABILITY_LENGTH],
		  const struct slot *slot, const struct osd_secret *secret, struct osd_proof *proof)
{
	uint8_t algorithm = proof->grant.capability.icv_algorithm;

	proof->algorithm = algorithm < OSD_MAC_ALGORITHMS ? (enum osd_mac_algorithm)algorithm
							  : OSD_HMAC_SHA256;
	proof->grant.level = (uint8_t)slot->level;
	proof->grant.key_partition = slot->partition_id;
	osd_capability_key(proof->algorithm, secret->key, bytes, checker->system_id, proof->key);
}

static enum osd_status refuse(uint16_t field, uint16_t *ret_field)
{
	*ret_field = field;
	return OSD_E_CDB_FIELD;
}

/* ---- requests -------------------------------------------------------------------------------- */

static enum osd_status check_after(const struct osd_checker *checker, const uint8_t *cdb,
				   const struct slot *slot, const struct osd_secret *secret,
				   uint8_t required, bool nowait, struct osd_proof *proof,
				   uint16_t *ret_field)
{
	uint8_t method = proof->grant.capability.security_method;
	uint64_t now_ms = osd_wall_msec();
	enum osd_status status;

	if (method < required)
		return refuse(OSD_GRANT_FIELD_METHOD, ret_field);
	if (secret->frozen)
		return OSD_E_KEY_FROZEN;
	if (method < OSD_CMDRSP)
		return OSD_OK;
	status = osd_nonces_take(checker->nonces, slot->partition_id, cdb + AT_NONCE, now_ms,
				 nowait);
	/* A thread that may wait for the lock makes the answer. */
	if (status == OSD_E_NONCE_TIME && nowait)
		return OSD_E_WOULD_BLOCK;
	if (status == OSD_E_NONCE_TIME)
		proof->clock_ms = osd_nonces_clock(checker->nonces, slot->partition_id, now_ms);
	return status;
}

static enum osd_status check_value(const struct osd_checker *checker, const uint8_t *cdb,
				   const struct slot *slot, uint8_t required, uint64_t nexus,
				   bool nowait, struct osd_proof *proof, uint16_t *ret_field)
{
	struct osd_capability *capability = &proof->grant.capability;
	uint8_t value[OSD_MAC_LENGTH];
	struct osd_secret secret;

	find_secret(checker, slot, nexus, capability->key_version, &secret);
	prove(checker, cdb + OSD_CAPABILITY_AT, slot, &secret, proof);
	compute_check_value(checker, cdb, proof, false, value);
	proof->grant.verified = osd_mac_equal(value, cdb + AT_CHECK_VALUE) && secret.known &&
				is_possible(capability);
	explicit_bzero(secret.key, sizeof(secret.key));
	if (!proof->grant.verified) {
		explicit_bzero(proof->key, sizeof(proof->key));
		return refuse(OSD_GRANT_FIELD_CAPABILITY, ret_field);
	}
	return check_after(checker, cdb, slot, &secret, required, nowait, proof, ret_field);
}

enum osd_status osd_check_request(const struct osd_checker *checker, const uint8_t *bytes,
				  const struct osd_cdb *cdb, enum osd_signing signing,
				  uint64_t nexus, bool nowait, struct osd_proof *ret_proof,
				  uint16_t *ret_field)
{
	struct slot slot = slot_of(cdb, signing);
	struct osd_policy policy = {.method = OSD_NOSEC};
	enum osd_status status = OSD_OK;
	bool nosec;

	*ret_proof = (struct osd_proof){0};
	osd_capability_decode(bytes + OSD_CAPABILITY_AT, &ret_proof->grant.capability);
	nosec = !slot.sets_key && ret_proof->grant.capability.security_method == OSD_NOSEC;
	if (nosec && checker->keyring && osd_keyring_is_open(checker->keyring, slot.partition_id)) {
		ret_proof->grant.open = true;
		return OSD_OK;
	}
	if (checker->keyring)
		status = osd_keyring_policy_or_new(checker->keyring, NULL, slot.partition_id,
						   nowait, &policy);
	if (status != OSD_OK)
		return status;
	if (nosec && policy.method == OSD_NOSEC) {
		ret_proof->grant.open = true;
		return OSD_OK;
	}
	if (!checker->keyring)
		return refuse(OSD_GRANT_FIELD_CAPABILITY, ret_field);
	if (is_out_of_sequence(checker, &slot, nexus))
		return OSD_E_SEQUENCE;
	return check_value(checker, bytes, &slot, policy.method, nexus, nowait, ret_proof, ret_field);
}

/* ---- extension capabilities ------------------------------------------------------------------ */

enum osd_status osd_check_extension(const struct osd_checker *checker,
				    const struct osd_proof *proof, const uint8_t *cdb,
				    const uint8_t entry[OSD_EXTENSION_ENTRY],
				    struct osd_grant *ret_grant)
{
	struct osd_proof extension = {0};
	struct osd_capability *capability = &extension.grant.capability;
	uint8_t value[OSD_MAC_LENGTH];
	struct osd_secret secret;
	struct slot slot;

	osd_capability_decode(entry, capability);
	slot = (struct slot){OSD_KEY_WORKING, capability->allowed_partition_id, false, false};
	find_secret(checker, &slot, 0, capability->key_version, &secret);
	prove(checker, entry, &slot, &secret, &extension);
	compute_check_value(checker, cdb, &extension, true, value);
	extension.grant.verified =
		osd_mac_equal(value, entry + OSD_CAPABILITY_LENGTH) && secret.known &&
		is_possible(capability) &&
		capability->security_method == proof->grant.capability.security_method;
	explicit_bzero(extension.key, sizeof(extension.key));
	explicit_bzero(secret.key, sizeof(secret.key));
	if (!extension.grant.verified)
		return OSD_E_CDB_FIELD;
	*ret_grant = extension.grant;
	return secret.frozen ? OSD_E_KEY_FROZEN : OSD_OK;
}
