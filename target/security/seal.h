/* SPDX-License-Identifier: GPL-2.0-or-later */
/* seal.h -- keys in records are encrypted with the store's seal (AES-256-GCM).  So the database's
 * caches, logs and copies, and core files that contain them, reveal no key. */
#ifndef OSD_SECURITY_SEAL_H
#define OSD_SECURITY_SEAL_H

#include <stdint.h>

#include "base/status.h"
#include "object/key_record.h"
#include "security/mac.h"

/* The two parts of a key. */
struct osd_key_pair {
	uint8_t authentication[OSD_MAC_LENGTH];
	uint8_t generation[OSD_MAC_LENGTH]; /* working keys: zeros */
};

/* Encrypts key, bound to its name and the record's identifier, into the record. */
enum osd_status osd_key_seal(const uint8_t seal[OSD_SEAL_BYTES], const struct osd_key_name *name,
			     const struct osd_key_pair *key, struct osd_key_record *record);
/* OSD_E_MEDIUM: sealed with another seal, for another key, or damaged. */
enum osd_status osd_key_unseal(const uint8_t seal[OSD_SEAL_BYTES], const struct osd_key_name *name,
			       const struct osd_key_record *record, struct osd_key_pair *ret_key);

#endif
