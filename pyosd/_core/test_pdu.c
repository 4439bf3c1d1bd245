/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_pdu.c -- digests and headers against bytes of RFC 7143 (B.4) and osd2-wire 8.2. */
#include "base/test.h"
#include "pdu.h"

static void test_crc32c(void)
{
	uint8_t bytes[32] = {0}, digest[ISCSI_DIGEST];
	/* RFC 7143 B.4, digests as they stand on the wire. */
	static const uint8_t of_zeros[] = {0xaa, 0x36, 0x91, 0x8a},
			     of_ones[] = {0x43, 0xab, 0xa8, 0x62},
			     of_ascending[] = {0x4e, 0x79, 0xdd, 0x46};

	iscsi_digest_put(digest, bytes, sizeof(bytes));
	CHECK(memcmp(digest, of_zeros, sizeof(digest)) == 0);
	memset(bytes, 0xff, sizeof(bytes));
	iscsi_digest_put(digest, bytes, sizeof(bytes));
	CHECK(memcmp(digest, of_ones, sizeof(digest)) == 0);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	CHECK(iscsi_digest_ok(of_ascending, bytes, sizeof(bytes)));
	bytes[3] ^= 1;
	CHECK(!iscsi_digest_ok(of_ascending, bytes, sizeof(bytes)));
}

static void test_cdb_lengths(void)
{
	static const struct {
		size_t cdb_length;
		uint32_t read_length;
		size_t header_length;
		uint8_t ahs_words;
	} cases[] = {
		{6, 0, 48, 0},	   {16, 0, 48, 0},    {16, 512, 56, 2},	  {17, 0, 56, 2},
		{200, 0, 236, 47}, {236, 0, 272, 56}, {236, 56, 280, 58}, {260, 1, 304, 64},
	};
	uint8_t cdb[ISCSI_CDB_MAX], header[ISCSI_TX_HEADER_MAX];

	for (size_t i = 0; i < sizeof(cdb); i++)
		cdb[i] = (uint8_t)(i + 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memset(header, 0xee, sizeof(header));
		CHECK(iscsi_put_cdb(header, cdb, cases[i].cdb_length, cases[i].read_length) ==
		      cases[i].header_length);
		CHECK(header[BHS_AHS_WORDS] == cases[i].ahs_words);
	}
}

static void test_extended_cdb_comes_first(void)
{
	static const uint8_t first[] = {0x00, 0xdd, 0x01, 0x00},
			     last[] = {0, 5, 2, 0, 0, 0, 0, 0x38};
	uint8_t cdb[236], header[ISCSI_TX_HEADER_MAX];

	for (size_t i = 0; i < sizeof(cdb); i++)
		cdb[i] = (uint8_t)i;
	iscsi_put_cdb(header, cdb, sizeof(cdb), 56);
	CHECK(memcmp(header + BHS_CDB, cdb, 16) == 0);
	CHECK(memcmp(header + 48, first, sizeof(first)) == 0);
	CHECK(memcmp(header + 52, cdb + 16, 220) == 0);
	CHECK(memcmp(header + 272, last, sizeof(last)) == 0);
}

static void test_lun(void)
{
	uint8_t bhs[ISCSI_BHS_LENGTH];
	static const uint8_t small[8] = {0, 1}, large[8] = {0x41, 0x23};

	iscsi_put_lun(bhs, 1);
	CHECK(memcmp(bhs + BHS_LUN, small, 8) == 0);
	iscsi_put_lun(bhs, 0x123);
	CHECK(memcmp(bhs + BHS_LUN, large, 8) == 0);
}

int main(void)
{
	test_crc32c();
	test_cdb_lengths();
	test_extended_cdb_comes_first();
	test_lun();
	return 0;
}
