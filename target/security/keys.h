/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keys.h -- the secret keys of a store: in its records (object/key_record.h), and in memory that
 * core files leave out, for checking requests.  docs/security-protocol.md describes the use of each
 * key.  Any thread.  Changes are made inside a transaction and are in force when its commit
 * returns. */
#ifndef OSD_SECURITY_KEYS_H
#define OSD_SECURITY_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "object/key_record.h"
#include "security/mac.h"
#include "security/policy.h"
#include "security/seal.h"

#define OSD_SEED_LENGTH 20 /* SET KEY's */

struct osd_keyring; /* one per store */
struct osd_exchanges;

struct osd_secret {
	uint8_t key[OSD_MAC_LENGTH];
	bool known;
	bool frozen; /* working keys: as osd_keyring_policy last said of the partition */
};

/* Loads the keys.  A store without a master key adopts the one in master_key_file, which is made if
 * it does not exist (docs/security-protocol.md); NULL: the store stays without.  On failure,
 * message has instructions for a person, and no key. */
enum osd_status osd_keyring_open(struct osd_objects *objects, const char *master_key_file,
				 char message[256], struct osd_keyring **ret_keyring);
void osd_keyring_close(struct osd_keyring *keyring); /* NULL is fine */

/* The authentication key of a level; version counts for working keys only.  If there is no such
 * key, it fills key with a random one that nobody has, in the same time. */
void osd_keyring_secret(struct osd_keyring *keyring, enum osd_key_level level,
			uint64_t partition_id, unsigned version, struct osd_secret *ret_secret);

/* The exchanges of new master keys (security/exchange.h); owned by the keyring. */
struct osd_exchanges *osd_keyring_exchanges(struct osd_keyring *keyring);

/* osd_policy_is_open and osd_policy_get of policy.h.  The third gives, for a partition that does not exist, the policy
 * of a new one, so that nobody can find out which exist.  txn: it reads in it; NULL: no transaction is open. */
bool osd_keyring_is_open(const struct osd_keyring *keyring, uint64_t partition_id);
enum osd_status osd_keyring_policy(struct osd_keyring *keyring, uint64_t partition_id, bool nowait,
				   struct osd_policy *ret_policy);
enum osd_status osd_keyring_policy_or_new(struct osd_keyring *keyring, struct osd_txn *txn,
					  uint64_t partition_id, bool nowait,
					  struct osd_policy *ret_policy);

/* generation = MAC(parent, seed | suffix), authentication the same with the lowest bit of the seed's last
 * byte inverted; suffix may be empty. */
void osd_key_derive(enum osd_mac_algorithm algorithm, const uint8_t parent[OSD_MAC_LENGTH],
		    struct osd_mac_input seed, struct osd_mac_input suffix,
		    struct osd_key_pair *ret_key);

/* SET KEY: derives the key from its parent, and invalidates all keys below it.  OSD_E_NO_OBJECT: it
 * has no parent; OSD_E_NO_PARTITION. */
enum osd_status osd_keyring_set(struct osd_keyring *keyring, struct osd_txn *txn,
				const struct osd_key_name *name, enum osd_mac_algorithm algorithm,
				const uint8_t identifier[OSD_KEY_IDENTIFIER],
				const uint8_t seed[OSD_SEED_LENGTH]);
/* SET MASTER KEY: derives the next key from the present one and a shared secret.  OSD_E_NO_OBJECT:
 * there is no master key. */
enum osd_status osd_keyring_next_master(struct osd_keyring *keyring, struct osd_txn *txn,
					enum osd_mac_algorithm algorithm,
					struct osd_mac_input shared, struct osd_key_pair *ret_key);
/* Makes it the master key, and invalidates all other keys. */
enum osd_status osd_keyring_set_master(struct osd_keyring *keyring, struct osd_txn *txn,
				       const uint8_t identifier[OSD_KEY_IDENTIFIER],
				       const struct osd_key_pair *key);

#endif
