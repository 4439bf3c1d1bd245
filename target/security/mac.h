/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mac.h -- check values: HMAC as docs/security-protocol.md specifies; and SHA-256, for fingerprints of
 * code and content.  Both are computed piece by piece.  The hash functions are libgcrypt's.  Any thread;
 * a struct osd_mac or osd_sha256 is used by one at a time. */
#ifndef OSD_SECURITY_MAC_H
#define OSD_SECURITY_MAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/object.h"

#define OSD_MAC_LENGTH 32 /* HMAC-SHA1's 20 bytes are followed by zeros */

/* Values of INTEGRITY CHECK VALUE ALGORITHM: indices into 9000_0005h #8000_0000h... */
enum osd_mac_algorithm { OSD_HMAC_SHA256 = 0, OSD_HMAC_SHA1 = 1, OSD_MAC_ALGORITHMS };

struct osd_mac_state;

/* Bytes that go into a check value. */
struct osd_mac_input {
	const void *data; /* borrowed */
	size_t length;
};

struct osd_mac {
	enum osd_mac_algorithm algorithm;
	struct osd_mac_state *state; /* between init and final; NULL: out of memory */
	uint8_t key[OSD_MAC_LENGTH];
};

/* Initialises libgcrypt; all functions here also do it.  False: the library is too old. */
bool osd_crypto_init(void);
/* Fills bytes with unpredictable random data. */
void osd_random_bytes(void *bytes, size_t length);

/* Every init needs its final, which also wipes the traces of the key.  If memory is short, the
 * result is a random value. */
void osd_mac_init(struct osd_mac *mac, enum osd_mac_algorithm algorithm,
		  const uint8_t key[OSD_MAC_LENGTH]);
void osd_mac_update(struct osd_mac *mac, const void *bytes, size_t length);
void osd_mac_final(struct osd_mac *mac, uint8_t value[OSD_MAC_LENGTH]);

struct osd_sha256 {
	struct osd_mac_state *state; /* between init and end; NULL: out of memory */
};

/* Every init needs its end.  If memory is short, the digest is a random value. */
void osd_sha256_init(struct osd_sha256 *sha);
void osd_sha256_add(struct osd_sha256 *sha, const void *bytes, size_t length);
void osd_sha256_end(struct osd_sha256 *sha, uint8_t digest[32]);

/* In constant time. */
bool osd_mac_equal(const uint8_t a[OSD_MAC_LENGTH], const uint8_t b[OSD_MAC_LENGTH]);

/* The capability key of a capability (as in the CDB) under a secret key. */
void osd_capability_key(enum osd_mac_algorithm algorithm, const uint8_t secret[OSD_MAC_LENGTH],
			const uint8_t capability[OSD_CAPABILITY_LENGTH],
			const uint8_t system_id[OSD_SYSTEM_ID_BYTES],
			uint8_t key[OSD_MAC_LENGTH]);

#endif
