/* SPDX-License-Identifier: GPL-2.0-or-later */
/* keys_impl.h -- the keyring, which keyring.c opens; shared by keys.c, which holds the keys in memory, and
 * key_change.c, which sets them. */
#ifndef OSD_SECURITY_KEYS_IMPL_H
#define OSD_SECURITY_KEYS_IMPL_H

#include "base/lock.h"
#include "security/keys.h"

#define OSD_KEY_BUCKETS 256
#define OSD_KEYS_ABOVE	UINT64_MAX /* where master and root key are; no partition's id */

struct holder;
struct chunk;

struct osd_keyring {
	struct osd_objects *objects;
	struct osd_policies *policies;
	struct osd_exchanges *exchanges;
	uint8_t *seal; /* secret memory; NULL: none yet */
	struct osd_lock loading;
	struct osd_rwlock lock;
	struct holder *buckets[OSD_KEY_BUCKETS]; /* under lock */
	struct holder *nobody;			 /* keys that nobody has */
	struct holder *unused;			 /* under loading */
	struct chunk *chunks;			 /* under loading */
};

/* Locks and memory; false: out of memory.  release follows in any case. */
bool osd_keys_init(struct osd_keyring *keyring);
/* Reads all keys of the store.  message: for a failure that an administrator can repair. */
enum osd_status osd_keys_load(struct osd_keyring *keyring, char message[256]);
void osd_keys_release(struct osd_keyring *keyring);
/* The holder of a key of this level: its partition, or OSD_KEYS_ABOVE. */
uint64_t osd_keys_holder(enum osd_key_level level, uint64_t partition_id);
/* Reads the partition's keys again; OSD_KEYS_ABOVE: all keys. */
void osd_keyring_reload(struct osd_keyring *keyring, uint64_t partition_id);
/* Both parts of a key, from its record.  OSD_E_NO_OBJECT: there is none. */
enum osd_status osd_keyring_read(struct osd_keyring *keyring, struct osd_txn *txn,
				 const struct osd_key_name *name, struct osd_key_pair *ret_key);
/* create: the first key of a store also creates its seal.  OSD_E_NO_OBJECT: there is none. */
enum osd_status osd_keyring_ready_seal(struct osd_keyring *keyring, bool create);
/* Adopts the master key of file in a store without one; file may be NULL. */
enum osd_status osd_keyring_take_up(struct osd_keyring *keyring, const char *file,
				    char message[256]);

#endif
