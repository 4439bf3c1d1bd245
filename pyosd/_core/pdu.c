/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pdu.c -- see pdu.h. */
#include "pdu.h"

#define AHS_EXTENDED_CDB     0x01
#define AHS_BIDI_READ_LENGTH 0x02

uint32_t iscsi_crc32c(const uint8_t *bytes, size_t length)
{
	/* Four bits at a time: only headers are summed, a larger table would cost more cache. */
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
		0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};
	uint32_t crc = 0xffffffff;

	for (size_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

/* The digest's bytes go least significant first (RFC 7143 13.1). */
void iscsi_digest_put(uint8_t *to, const uint8_t *bytes, size_t length)
{
	uint32_t crc = iscsi_crc32c(bytes, length);

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
