/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bootstrap.h -- files with keys: the master key that a store begins with, and the key of the local
 * administrator (docs/security-protocol.md). */
#ifndef OSD_SECURITY_BOOTSTRAP_H
#define OSD_SECURITY_BOOTSTRAP_H

#include "object/object.h"
#include "security/seal.h"

/* Reads the file, or makes one with a new key if there is none.  The file must belong to the user
 * of the target, and no other user may be able to read it.  message: instructions for a person on
 * failure. */
enum osd_status osd_bootstrap_master(const char *path,
				     const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
				     char message[256], struct osd_key_pair *ret_key);

/* Writes the generation part of the root key for the program that serves the store, with mode 0600.  A file
 * of an earlier start is replaced. */
enum osd_status osd_bootstrap_leave_local(const char *path,
					  const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
					  const uint8_t generation[OSD_MAC_LENGTH],
					  unsigned method, char message[256]);

#endif
