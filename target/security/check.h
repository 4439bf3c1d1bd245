/* SPDX-License-Identifier: GPL-2.0-or-later */
/* check.h -- checks that the capability of a request is genuine, and that the request is fresh
 * (osd2-wire 6.9 up to step 6; docs/security-protocol.md).  Elsewhere: what the capability permits
 * (grant.h), the other check values of a command (command/integrity.h). */
#ifndef OSD_SECURITY_CHECK_H
#define OSD_SECURITY_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "security/grant.h"
#include "security/keys.h"
#include "security/mac.h"
#include "security/nonce.h"
#include "wire/cdb.h"
#include "wire/inquiry.h"

#define OSD_METHODS 4 /* NOSEC to ALLDATA */

/* The parts that check requests; any thread. */
struct osd_checker {
	struct osd_keyring *keyring; /* borrowed, as the next; NULL: only NOSEC is supported */
	struct osd_nonces *nonces;
	const uint8_t *system_id;
	uint8_t token[OSD_SECURITY_TOKEN_BYTES]; /* VPD page B1h's */
};

/* A request that has been let in. */
struct osd_proof {
	struct osd_grant grant;
	enum osd_mac_algorithm algorithm;
	uint8_t key[OSD_MAC_LENGTH]; /* the capability key; secret */
	uint64_t clock_ms; /* of the target, for a sender whose nonce had a wrong time */
};

/* The key that signs the capability of a command: a column of the command table. */
enum osd_signing {
	OSD_SIGNED_PARTITION,	   /* the working key of the partition addressed */
	OSD_SIGNED_ROOT,	   /* the working key of partition zero */
	OSD_SIGNED_SET_KEY,	   /* the key above the one that SET KEY sets */
	OSD_SIGNED_SET_MASTER_KEY, /* the master key, or the one that is about to become it */
};

/* bytes: the CDB as sent, OSD_CDB_LENGTH bytes, which the check value covers; cdb: the decoded part
 * of it.  nexus: its pending master key counts.  Until the check value has been verified, every
 * refusal is OSD_E_CDB_FIELD at byte 80, after the same amount of work.  *ret_proof is written on
 * OSD_OK.  It is also written if the request is refused although the check value was right (then
 * proof.grant.verified).  OSD_E_WOULD_BLOCK: with nowait only; nothing of the request was
 * recorded. */
enum osd_status osd_check_request(const struct osd_checker *checker, const uint8_t *bytes,
				  const struct osd_cdb *cdb, enum osd_signing signing,
				  uint64_t nexus, bool nowait, struct osd_proof *ret_proof,
				  uint16_t *ret_field);

/* An entry of the descriptor EXTENSION CAPABILITIES: capability, check value.  proof: of the CDB's. */
#define OSD_EXTENSION_ENTRY 136u
enum osd_status osd_check_extension(const struct osd_checker *checker,
				    const struct osd_proof *proof, const uint8_t *cdb,
				    const uint8_t entry[OSD_EXTENSION_ENTRY],
				    struct osd_grant *ret_grant);

#endif
