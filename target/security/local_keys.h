/* SPDX-License-Identifier: GPL-2.0-or-later */
/* local_keys.h -- keys for the local administrator: the user that serves the store with `osd target
 * serve` (docs/security-protocol.md, "The local administrator").  A store has such keys if its root
 * key has the identifier "local".  Then the partition key and working key 0 of every partition are
 * derived from the root key and the partition's id, so the holder of the root's generation key can
 * compute them all.  A security manager that takes over the store sets another root key, which
 * invalidates them. */
#ifndef OSD_SECURITY_LOCAL_KEYS_H
#define OSD_SECURITY_LOCAL_KEYS_H

#include "security/keys.h"

/* If the store has no root key and its master key is the first one, sets a local root key.  In a
 * store with a local root key, sets the missing keys of all partitions.  Then writes file, or
 * removes it if the root key is not local.  Called before requests are served.  On failure, message
 * has instructions for a person. */
enum osd_status osd_local_keys_open(struct osd_keyring *keyring, const char *file,
				    char message[256]);

/* Sets the keys of a partition that txn has just created; does nothing if the root key is not
 * local. */
enum osd_status osd_local_keys_add(struct osd_keyring *keyring, struct osd_txn *txn,
				   uint64_t partition_id);

#endif
