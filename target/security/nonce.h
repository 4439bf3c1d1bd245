/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nonce.h -- remembers used request nonces (docs/security-protocol.md): none is accepted twice,
 * whatever the clock does, also after a kill -9.  There is one window per partition.  That of
 * partition zero is for nonces signed with the keys of master, root and partition zero.  Any
 * thread. */
#ifndef OSD_SECURITY_NONCE_H
#define OSD_SECURITY_NONCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "security/keys.h"

#define OSD_NONCE_LENGTH 12 /* 6 bytes of time, 6 random */

struct osd_nonces;

/* Both are borrowed, and must live longer. */
enum osd_status osd_nonces_open(struct osd_objects *objects, struct osd_keyring *keyring,
				struct osd_nonces **ret_nonces);
void osd_nonces_close(struct osd_nonces *nonces); /* NULL is fine */

/* OSD_OK: the nonce is used from now on.  OSD_E_NONCE_TIME: outside the partition's limits, or in a
 * span of times whose nonces are not all remembered.  OSD_E_NONCE_REPEAT: used before.  It may
 * write a record, so the thread must have no transaction open.  With nowait it returns
 * OSD_E_WOULD_BLOCK instead, and the nonce is not used. */
enum osd_status osd_nonces_take(struct osd_nonces *nonces, uint64_t partition_id,
				const uint8_t nonce[OSD_NONCE_LENGTH], uint64_t now_ms,
				bool nowait);
/* The first time from now on that is not refused; a refusal reports it to the initiator. */
uint64_t osd_nonces_clock(struct osd_nonces *nonces, uint64_t partition_id, uint64_t now_ms);

#endif
