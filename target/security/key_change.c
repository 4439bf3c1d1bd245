/* SPDX-License-Identifier: GPL-2.0-or-later */
/* key_change.c -- derives and sets keys: first in the records, inside a transaction, then in
 * memory, once the transaction has committed (keys.c). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "security/bootstrap.h"
#include "security/keys_impl.h"
#include "security/secret.h"

struct change {
	struct osd_keyring *keyring;
	uint64_t partition_id; /* or OSD_KEYS_ABOVE */
};

/* Commands are checked by the old keys until the commit: keys that an abort takes back were never used. */
static void changed(void *arg, bool committed)
{
	struct change *change = arg;

	if (committed) {
		osd_keyring_reload(change->keyring, change->partition_id);
		osd_note_policy_change(change->keyring->objects);
	}
	free(change);
}

/* If noting fails, osd_txn_on_end calls changed() at once, and that frees the note. */
static enum osd_status watch(struct osd_keyring *keyring, struct osd_txn *txn,
			     const struct osd_key_name *name)
{
	struct change *change = malloc(sizeof(*change));

	if (!change)
		return OSD_E_NO_MEMORY;
	*change = (struct change){keyring, osd_keys_holder(name->level, name->partition_id)};
	return osd_txn_on_end(txn, changed, change);
}

static enum osd_status put_key(struct osd_keyring *keyring, struct osd_txn *txn,
			       const struct osd_key_name *name,
			       const uint8_t identifier[OSD_KEY_IDENTIFIER],
			       const struct osd_key_pair *key)
{
	struct osd_key_record record;
	enum osd_status status;

	memcpy(record.identifier, identifier, OSD_KEY_IDENTIFIER);
	status = osd_key_seal(keyring->seal, name, key, &record);
	if (status == OSD_OK)
		status = osd_key_record_put(txn, name, &record);
	if (status == OSD_OK)
		/* The keys below are derived from the old one, which may be known to others. */
		status = osd_key_record_remove_below(txn, name);
	return status == OSD_OK ? watch(keyring, txn, name) : status;
}

enum osd_status osd_keyring_read(struct osd_keyring *keyring, struct osd_txn *txn,
				 const struct osd_key_name *name, struct osd_key_pair *ret_key)
{
	struct osd_key_record record;
	enum osd_status status = osd_key_record_get(txn, name, &record);

	if (status == OSD_OK)
		/* There are records, so there was a seal: the store has lost its file. */
		status = keyring->seal ? osd_key_unseal(keyring->seal, name, &record, ret_key)
				       : OSD_E_MEDIUM;
	return status;
}

static void derive_part(enum osd_mac_algorithm algorithm, const uint8_t parent[OSD_MAC_LENGTH],
			struct osd_mac_input seed, uint8_t inverted, struct osd_mac_input suffix,
			uint8_t part[OSD_MAC_LENGTH])
{
	const uint8_t *bytes = seed.data;
	uint8_t last = bytes[seed.length - 1] ^ inverted;
	struct osd_mac mac;

	osd_mac_init(&mac, algorithm, parent);
	osd_mac_update(&mac, bytes, seed.length - 1);
	osd_mac_update(&mac, &last, 1);
	osd_mac_update(&mac, suffix.data, suffix.length);
	osd_mac_final(&mac, part);
}

void osd_key_derive(enum osd_mac_algorithm algorithm, const uint8_t parent[OSD_MAC_LENGTH],
		    struct osd_mac_input seed, struct osd_mac_input suffix,
		    struct osd_key_pair *ret_key)
{
	assert(seed.length > 0);
	derive_part(algorithm, parent, seed, 0, suffix, ret_key->generation);
	derive_part(algorithm, parent, seed, 1, suffix, ret_key->authentication);
}

static struct osd_key_name parent_of(const struct osd_key_name *name)
{
	switch (name->level) {
	case OSD_KEY_WORKING:
		return (struct osd_key_name){OSD_KEY_PARTITION, name->partition_id, 0};
	case OSD_KEY_PARTITION:
		return (struct osd_key_name){OSD_KEY_ROOT, 0, 0};
	default:
		return (struct osd_key_name){OSD_KEY_MASTER, 0, 0};
	}
}

enum osd_status osd_keyring_set(struct osd_keyring *keyring, struct osd_txn *txn,
				const struct osd_key_name *name, enum osd_mac_algorithm algorithm,
				const uint8_t identifier[OSD_KEY_IDENTIFIER],
				const uint8_t seed[OSD_SEED_LENGTH])
{
	struct osd_key_name above = parent_of(name);
	struct osd_key_pair parent, key;
	enum osd_status status = osd_keyring_read(keyring, txn, &above, &parent);

	if (status != OSD_OK)
		return status;
	osd_key_derive(algorithm, parent.generation, (struct osd_mac_input){seed, OSD_SEED_LENGTH},
		       (struct osd_mac_input){"", 0}, &key);
	if (name->level == OSD_KEY_WORKING)
		/* No key is derived from a working key. */
		memset(key.generation, 0, sizeof(key.generation));
	status = put_key(keyring, txn, name, identifier, &key);
	explicit_bzero(&parent, sizeof(parent));
	explicit_bzero(&key, sizeof(key));
	return status;
}

enum osd_status osd_keyring_next_master(struct osd_keyring *keyring, struct osd_txn *txn,
					enum osd_mac_algorithm algorithm,
					struct osd_mac_input shared, struct osd_key_pair *ret_key)
{
	static const struct osd_key_name master = {OSD_KEY_MASTER, 0, 0};
	struct osd_key_pair old;
	enum osd_status status = osd_keyring_read(keyring, txn, &master, &old);

	if (status != OSD_OK)
		return status;
	osd_key_derive(algorithm, old.generation, shared,
		       (struct osd_mac_input){osd_objects_system_id(keyring->objects),
					      OSD_SYSTEM_ID_BYTES},
		       ret_key);
	explicit_bzero(&old, sizeof(old));
	return OSD_OK;
}

enum osd_status osd_keyring_set_master(struct osd_keyring *keyring, struct osd_txn *txn,
				       const uint8_t identifier[OSD_KEY_IDENTIFIER],
				       const struct osd_key_pair *key)
{
	static const struct osd_key_name master = {OSD_KEY_MASTER, 0, 0};

	return put_key(keyring, txn, &master, identifier, key);
}

/* ---- the first master key ---------------------------------------------------------------- */

static enum osd_status put_first_master(struct osd_keyring *keyring, const struct osd_key_pair *key)
{
	/* local_keys.c sets a root key only below a master key with this identifier. */
	static const uint8_t identifier[OSD_KEY_IDENTIFIER] = "initial";
	OSD_CLEANUP(osd_txn_abortp) struct osd_txn *txn = NULL;
	enum osd_status status = osd_keyring_ready_seal(keyring, true);

	if (status == OSD_OK)
		status = osd_txn_begin(keyring->objects, OSD_TXN_INTERNAL, &txn);
	if (status == OSD_OK)
		status = osd_keyring_set_master(keyring, txn, identifier, key);
	return status == OSD_OK ? osd_txn_commit(OSD_STEAL(txn), OSD_COMMIT_DURABLE) : status;
}

enum osd_status osd_keyring_take_up(struct osd_keyring *keyring, const char *file,
				    char message[256])
{
	struct osd_secret master;
	struct osd_key_pair *key;
	enum osd_status status;

	osd_keyring_secret(keyring, OSD_KEY_MASTER, 0, 0, &master);
	explicit_bzero(master.key, sizeof(master.key));
	if (!file || master.known)
		return OSD_OK;
	key = osd_secret_alloc(sizeof(*key));
	/* The file is on disk before the store has the key: after a crash between the two, the next
	 * start reads the file.  The other order could leave a master key that nobody knows. */
	status = key ? osd_bootstrap_master(file, osd_objects_system_id(keyring->objects), message,
					    key)
		     : OSD_E_NO_MEMORY;
	if (status == OSD_OK)
		status = put_first_master(keyring, key);
	osd_secret_free(key, sizeof(*key));
	return status;
}
