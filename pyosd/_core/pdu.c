/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pdu.c -- see pdu.h. */
#include "pdu.h"

#include "base/crc32c.h"

#define AHS_EXTENDED_CDB     0x01
#define AHS_BIDI_READ_LENGTH 0x02

/* The digest's bytes go least significant first (RFC 7143 13.1). */
void iscsi_digest_put(uint8_t *to, const uint8_t *bytes, size_t length)
{
	uint32_t crc = osd_crc32c(0, bytes, length);

	for (size_t i = 0; i < ISCSI_DIGEST; i++)
		to[i] = (uint8_t)(crc >> 8 * i);
}

bool iscsi_digest_ok(const uint8_t *digest, const uint8_t *bytes, size_t length)
{
	uint8_t expected[ISCSI_DIGEST];

	iscsi_digest_put(expected, bytes, length);
	return memcmp(digest, expected, ISCSI_DIGEST) == 0;
}

void iscsi_put_lun(uint8_t *bhs, uint16_t lun)
{
	memset(bhs + BHS_LUN, 0, 8);
	/* Peripheral addressing below 256, flat space addressing above (SAM). */
	bhs[BHS_LUN] = lun < 256 ? 0 : (uint8_t)(0x40 | lun >> 8);
	bhs[BHS_LUN + 1] = (uint8_t)lun;
}

size_t iscsi_put_cdb(uint8_t *header, const uint8_t *cdb, size_t cdb_length, uint32_t read_length)
{
	struct osd_wr w =
		osd_wr_init(header + ISCSI_BHS_LENGTH, ISCSI_TX_HEADER_MAX - ISCSI_BHS_LENGTH);
	size_t in_bhs = cdb_length < 16 ? cdb_length : 16;

	memset(header + BHS_CDB, 0, 16);
	memcpy(header + BHS_CDB, cdb, in_bhs);
	if (cdb_length > 16) {
		osd_wr_be(&w, cdb_length - 15, 2); /* counts the reserved byte too */
		osd_wr_be(&w, AHS_EXTENDED_CDB, 1);
		osd_wr_be(&w, 0, 1);
		osd_wr_bytes(&w, cdb + 16, cdb_length - 16);
		osd_wr_zero(&w, iscsi_pad((uint32_t)cdb_length));
	}
	if (read_length) {
		osd_wr_be(&w, 5, 2);
		osd_wr_be(&w, AHS_BIDI_READ_LENGTH, 1);
		osd_wr_be(&w, 0, 1);
		osd_wr_be(&w, read_length, 4);
	}
	header[BHS_AHS_WORDS] = (uint8_t)(osd_wr_used(&w) / 4);
	return ISCSI_BHS_LENGTH + osd_wr_used(&w);
}
