/* SPDX-License-Identifier: GPL-2.0-or-later */
/* local_keys.h -- keys for the local administrator: the user who serves the store with `osd target serve`
 * (docs/security-protocol.md, "The local administrator").
 *
 * The identifier "local" of the root key says that a store has such keys.  Then every partition has a
 * partition key and working key 0 that follow from the root key and the partition's id, so the holder of
 * the root's generation key can compute them all.  A security manager that takes the store over sets
 * another root key, which ends this. */
#ifndef OSD_SECURITY_LOCAL_KEYS_H
#define OSD_SECURITY_LOCAL_KEYS_H

#include "security/keys.h"

/* Gives a store without a root key local keys, if its master key is the first one, and all partitions of
 * a store with a local root key that lack keys theirs.  Then writes file, or removes it when the root key
 * is not local.  Before requests are served.  On failure message tells a person what to do. */
enum osd_status osd_local_keys_open(struct osd_keyring *keyring, const char *file,
				    char message[256]);

/* Keys for a partition that txn has just made; does nothing when the root key is not local. */
enum osd_status osd_local_keys_add(struct osd_keyring *keyring, struct osd_txn *txn,
				   uint64_t partition_id);

#endif
