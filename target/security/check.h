/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check.h -- is the capability of a request genuine, and the request fresh?  (osd2-wire 6.9 up to step 6;
 * docs/security-protocol.md.)  Not here: what the capability permits (grant.h), the other check values of
 * a command (command/integrity.h). */
#ifndef OSD_SECURITY_CHECK_H
#define OSD_SECURITY_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "security/grant.h"
#include "security/keys.h"
#include "security/mac.h"
#include "security/nonce.h"
#include "wire/inquiry.h"

#define OSD_NONCE_BYTES		 12
#define OSD_METHODS		 4 /* NOSEC to ALLDATA */

/* What requests are checked with; any thread. */
struct osd_checker {
	struct osd_keyring *keyring; /* borrowed, as the next; NULL: NOSEC is all there is */
	struct osd_nonces *nonces;
	const uint8_t *system_id;
	uint8_t token[OSD_SECURITY_TOKEN_BYTES]; /* VPD page B1h's */
};

/* A request that has been let in. */
struct osd_proof {
	struct osd_grant grant;
	enum osd_mac_algorithm algorithm;
	uint8_t key[OSD_MAC_LENGTH]; /* the capability key; secret */
	uint64_t clock_ms; /* of the target, for who sent a nonce of another time */
};

/* cdb: as sent, OSD_CDB_LENGTH bytes; service_action: what it means.  nexus: whose pending master key
 * counts.  Until the check value has been verified every refusal is OSD_E_CDB_FIELD at byte 80, after the
 * same work.  *ret_proof is written on OSD_OK, and where the check value was right although the request
 * is refused (then proof.grant.verified).
 * OSD_E_RETRY: with nowait only; nothing was noted of the request. */
enum osd_status osd_check_request(const struct osd_checker *checker, const uint8_t *cdb,
				  uint16_t service_action, uint64_t nexus, bool nowait,
				  struct osd_proof *ret_proof, uint16_t *ret_field);

/* An entry of the descriptor EXTENSION CAPABILITIES: capability, check value.  proof: of the CDB's. */
#define OSD_EXTENSION_ENTRY 136u
enum osd_status osd_check_extension(const struct osd_checker *checker,
				    const struct osd_proof *proof, const uint8_t *cdb,
				    const uint8_t entry[OSD_EXTENSION_ENTRY],
				    struct osd_grant *ret_grant);

#endif
