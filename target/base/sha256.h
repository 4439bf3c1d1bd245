/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sha256.h -- SHA-256 (FIPS 180-4): fingerprints of job code and content.  Not for keys or
 * signatures: nothing here runs in constant time. */
#ifndef OSD_BASE_SHA256_H
#define OSD_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct osd_sha256 {
	uint32_t state[8];
	uint64_t length;
	uint8_t block[64];
};

void osd_sha256_init(struct osd_sha256 *sha);
void osd_sha256_add(struct osd_sha256 *sha, const void *bytes, size_t length);
void osd_sha256_end(struct osd_sha256 *sha, uint8_t digest[32]);

#endif
