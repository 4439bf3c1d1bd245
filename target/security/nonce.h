/* SPDX-License-Identifier: GPL-2.0-or-later */
/* nonce.h -- request nonces that were used (docs/security-protocol.md): none is taken twice, whatever the
 * clock does, also after a kill -9.  One window per partition; that of partition zero is for what master, root
 * and partition zero's keys sign.  Any thread. */
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

/* OSD_OK: it is used now.  OSD_E_NONCE_TIME: before or after the partition's limits, or in a span of
 * times of which not every nonce is remembered; OSD_E_NONCE_REPEAT.  May write a record, so the thread has
 * no transaction open; with nowait OSD_E_WOULD_BLOCK instead, and nothing was taken. */
enum osd_status osd_nonces_take(struct osd_nonces *nonces, uint64_t partition_id,
				const uint8_t nonce[OSD_NONCE_LENGTH], uint64_t now_ms,
				bool nowait);
/* The first time from now on that is not refused: what a refusal tells the initiator. */
uint64_t osd_nonces_clock(struct osd_nonces *nonces, uint64_t partition_id, uint64_t now_ms);

#endif
