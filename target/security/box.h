/* SPDX-License-Identifier: GPL-2.0-or-later */
/* box.h -- code of functions that is encrypted to the key of a target (docs/functions.md, "Encrypted code").
 *
 * A box is "\x89iosdbox", a version byte (1), and what HPKE (RFC 9180) makes of the code in base mode:
 * DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM, info "iosd function", no associated data.  The target's
 * private key follows from the seal of its store, so a box opens where the store is.
 *
 * Any thread. */
#ifndef OSD_SECURITY_BOX_H
#define OSD_SECURITY_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"

#define OSD_BOX_KEY 32 /* bytes of a public key */

bool osd_box_is(const uint8_t *bytes, size_t length);
/* The public key of the store, which gets a seal if it has none. */
enum osd_status osd_box_public(struct osd_objects *objects, uint8_t key[OSD_BOX_KEY]);
/* Decrypts; osd_box_free frees the code.  OSD_E_FUNCTION_BOX: it is damaged, or for another key. */
enum osd_status osd_box_open(struct osd_objects *objects, const uint8_t *box, size_t length,
			     uint8_t **ret_code, size_t *ret_length);
/* Overwrites the code and frees it.  NULL is fine. */
void osd_box_free(uint8_t *code, size_t length);

#endif
