/* SPDX-License-Identifier: GPL-2.0-or-later */
/* local_keys.c -- see local_keys.h. */
#include "security/local_keys.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "security/bootstrap.h"
#include "security/keys_impl.h"
#include "wire/capability.h"
#include "wire/cursor.h"

#define PARTITIONS_AT_ONCE 64

static const uint8_t INITIAL[OSD_KEY_IDENTIFIER] = "initial";
static const uint8_t LOCAL[OSD_KEY_IDENTIFIER] = "local";
static const struct osd_key_name MASTER = {OSD_KEY_MASTER, 0, 0};
static const struct osd_key_name ROOT = {OSD_KEY_ROOT, 0, 0};

/* pyosd/security/local_credential.py computes the same keys. */
static const char PARTITION_SEED[] = "iosd local p"; /* the partition's id follows, 8 bytes */
static const uint8_t WORKING_SEED[OSD_SEED_LENGTH] = "iosd local working 0";

/* Whether the key exists and has this identifier. */
static enum osd_status has(struct osd_txn *txn, const struct osd_key_name *name,
			   const uint8_t identifier[OSD_KEY_IDENTIFIER], bool *ret_has)
{
	struct osd_key_record record;
	enum osd_status status = osd_key_record_get(txn, name, &record);

	*ret_has = status == OSD_OK &&
		   memcmp(record.identifier, identifier, OSD_KEY_IDENTIFIER) == 0;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static enum osd_status set(struct osd_keyring *keyring, struct osd_txn *txn,
			   enum osd_key_level level, uint64_t partition_id,
			   const uint8_t seed[OSD_SEED_LENGTH])
{
	struct osd_key_name name = {level, partition_id, 0};

	return osd_keyring_set(keyring, txn, &name, OSD_HMAC_SHA256, LOCAL, seed);
}

/* Sets partition key and working key 0 of a partition, or of partition zero. */
static enum osd_status set_partition(struct osd_keyring *keyring, struct osd_txn *txn,
				     uint64_t partition_id)
{
	const size_t label = sizeof(PARTITION_SEED) - 1;
	uint8_t seed[OSD_SEED_LENGTH];
	enum osd_status status;

	memcpy(seed, PARTITION_SEED, label);
	osd_put_be(seed + label, partition_id, OSD_SEED_LENGTH - label);
	status = set(keyring, txn, OSD_KEY_PARTITION, partition_id, seed);
	if (status == OSD_OK)
		status = set(keyring, txn, OSD_KEY_WORKING, partition_id, WORKING_SEED);
	return status;
}

enum osd_status osd_local_keys_add(struct osd_keyring *keyring, struct osd_txn *txn,
				   uint64_t partition_id)
{
	bool local;
	enum osd_status status = has(txn, &ROOT, LOCAL, &local);

	return status == OSD_OK && local ? set_partition(keyring, txn, partition_id) : status;
}

/* ---- when the store is opened ------------------------------------------------------------ */

static enum osd_status set_root(struct osd_keyring *keyring, struct osd_txn *txn)
{
	struct osd_key_record record;
	uint8_t seed[OSD_SEED_LENGTH];
	bool first;
	enum osd_status status = osd_key_record_get(txn, &ROOT, &record);

	if (status != OSD_E_NO_OBJECT)
		return status;
	status = has(txn, &MASTER, INITIAL, &first);
	if (status != OSD_OK || !first)
		return status;
	osd_random_bytes(seed, sizeof(seed));
	status = set(keyring, txn, OSD_KEY_ROOT, 0, seed);
	explicit_bzero(seed, sizeof(seed));
	return status == OSD_OK ? set_partition(keyring, txn, 0) : status;
}

/* Adds keys to up to PARTITIONS_AT_ONCE partitions from *from on; *from is 0 after the last. */
static enum osd_status add_missing(struct osd_keyring *keyring, struct osd_txn *txn,
				   uint64_t *from)
{
	struct osd_list_request request = {.kind = OSD_LIST_PARTITIONS, .initial_id = *from};
	uint64_t ids[PARTITIONS_AT_ONCE];
	struct osd_list_result found = {0};
	enum osd_status status =
		osd_list_uncounted(txn, &request, ids, OSD_ARRAY_SIZE(ids), &found);

	for (size_t i = 0; status == OSD_OK && i < found.count; i++) {
		struct osd_secret secret;

		osd_keyring_secret(keyring, OSD_KEY_PARTITION, ids[i], 0, &secret);
		if (!secret.known)
			status = osd_local_keys_add(keyring, txn, ids[i]);
		explicit_bzero(&secret, sizeof(secret));
	}
	*from = found.next_id;
	return status;
}

/* Sets the root key if from is NULL, else the keys of partitions from *from on.  Nothing else uses
 * the store yet, so no transaction conflicts. */
static enum osd_status set_step(struct osd_keyring *keyring, uint64_t *from)
{
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;
	enum osd_status status = osd_txn_begin(keyring->objects, OSD_TXN_INTERNAL, &txn);

	if (status == OSD_OK)
		status = from ? add_missing(keyring, txn, from) : set_root(keyring, txn);
	return status == OSD_OK ? osd_txn_commit(OSD_STEAL(txn), OSD_COMMIT_DURABLE) : status;
}

static enum osd_status set_all(struct osd_keyring *keyring)
{
	uint64_t from = 0;
	enum osd_status status = set_step(keyring, NULL);

	do {
		if (status == OSD_OK)
			status = set_step(keyring, &from);
	} while (status == OSD_OK && from);
	return status;
}

/* *ret_key holds the root key if it is local. */
static enum osd_status read_root(struct osd_keyring *keyring, bool *ret_local,
				 struct osd_key_pair *ret_key)
{
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;
	enum osd_status status =
		osd_txn_begin(keyring->objects, OSD_TXN_READ_ONLY | OSD_TXN_NO_TIMESTAMPS, &txn);

	*ret_local = false;
	if (status == OSD_OK)
		status = has(txn, &ROOT, LOCAL, ret_local);
	if (status == OSD_OK && *ret_local)
		status = osd_keyring_read(keyring, txn, &ROOT, ret_key);
	return status;
}

/* The weakest method with a capability that the root and new partitions accept. */
static unsigned method_of(const struct osd_policy *root)
{
	unsigned method = OSD_MAX(root->method, root->inside_method);

	return OSD_MAX(method, (unsigned)OSD_CAPKEY);
}

static enum osd_status leave(struct osd_keyring *keyring, const char *file, char message[256])
{
	struct osd_policy policy;
	struct osd_key_pair root;
	bool local;
	enum osd_status status = osd_keyring_policy(keyring, 0, false, &policy);

	if (status == OSD_OK)
		status = read_root(keyring, &local, &root);
	if (status != OSD_OK)
		return status;
	/* Without a capability the local user can read what everybody may read, including all jobs.
	 * With one, the jobs that the user submits are the user's own. */
	if (policy.method == OSD_NOSEC && policy.inside_method == OSD_NOSEC) {
		unlink(file);
		explicit_bzero(&root, sizeof(root));
		return OSD_OK;
	}
	if (!local) {
		unlink(file);
		osd_info("a security manager has the keys of this store: there is no local "
			 "credential");
		return OSD_OK;
	}
	status = osd_bootstrap_leave_local(file, osd_objects_system_id(keyring->objects),
					   root.generation, method_of(&policy), message);
	explicit_bzero(&root, sizeof(root));
	return status;
}

enum osd_status osd_local_keys_open(struct osd_keyring *keyring, const char *file,
				    char message[256])
{
	enum osd_status status = set_all(keyring);

	*message = '\0';
	if (status == OSD_OK)
		status = leave(keyring, file, message);
	if (status != OSD_OK && !*message)
		snprintf(message, 256, "cannot set the keys of the local administrator: %s",
			 osd_status_info(status)->meaning);
	return status;
}
