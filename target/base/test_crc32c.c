/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_crc32c.c -- the vectors of RFC 3720, B.4, and the catalogue's check value; tables, instruction and
 * several blocks at a time agree at every length and place in memory. */
#include "base/crc32c.h"

#include <string.h>

#include "base/test.h"
#include "base/util.h"

static void test_vectors(void)
{
	uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
	static const uint8_t read_pdu[48] = {
		0x01, 0xc0, [12] = 0, [16] = 0x14, [22] = 0x04, [27] = 0x14,
		[31] = 0x18, [32] = 0x28, [40] = 0x02,
	};
	const struct {
		const void *bytes;
		size_t length;
		uint32_t crc;
	} vectors[] = {
		{"", 0, 0},
		{"123456789", 9, 0xe3069283},
		{zeros, 32, 0x8a9136aa},
		{ones, 32, 0x62a8ab43},
		{up, 32, 0x46dd794e},
		{down, 32, 0x113fdb5c},
		{read_pdu, 48, 0xd9963a56},
	};

	memset(ones, 0xff, sizeof(ones));
	for (size_t i = 0; i < 32; i++) {
		up[i] = (uint8_t)i;
		down[i] = (uint8_t)(31 - i);
	}
	for (size_t i = 0; i < OSD_ARRAY_SIZE(vectors); i++) {
		CHECK_EQ(osd_crc32c(0, vectors[i].bytes, vectors[i].length), vectors[i].crc);
		CHECK_EQ(osd_crc32c_tables(0, vectors[i].bytes, vectors[i].length), vectors[i].crc);
	}
}

static void test_agreement(void)
{
	static uint8_t bytes[11 * OSD_CRC32C_BLOCK + 8];
	uint32_t crcs[11], narrow[11];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 31 + i / 251);
	for (size_t length = 0; length < 300; length++) {
		uint32_t all = osd_crc32c_tables(0, bytes + length % 8, length);

		CHECK_EQ(osd_crc32c(0, bytes + length % 8, length), all);
		CHECK_EQ(osd_crc32c(osd_crc32c(0, bytes + length % 8, length / 3),
				    bytes + length % 8 + length / 3, length - length / 3),
			 all);
	}
	for (size_t count = 0; count <= OSD_ARRAY_SIZE(crcs); count++) {
		osd_crc32c_blocks(bytes + count % 8, count, crcs);
		osd_crc32c_blocks_narrow(bytes + count % 8, count, narrow);
		for (size_t i = 0; i < count; i++) {
			uint32_t crc = osd_crc32c_tables(
				0, bytes + count % 8 + i * OSD_CRC32C_BLOCK, OSD_CRC32C_BLOCK);

			CHECK_EQ(crcs[i], crc);
			CHECK_EQ(narrow[i], crc);
		}
	}
}

/* Lengths about the number of blocks that are joined at a time. */
static void test_many_blocks(void)
{
	static uint8_t bytes[37 * OSD_CRC32C_BLOCK + 8];
	const size_t group = 16 * OSD_CRC32C_BLOCK;
	const size_t lengths[] = {group - 1, group, group + 1, 2 * group, 2 * group + 4097, 37 * OSD_CRC32C_BLOCK};

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 131 + i / 509);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(lengths); i++)
		for (uint32_t before = 0; before < 3; before++) {
			uint32_t crc = before * 0x9e3779b9u;

			CHECK_EQ(osd_crc32c(crc, bytes + i, lengths[i]),
				 osd_crc32c_tables(crc, bytes + i, lengths[i]));
		}
}

int main(void)
{
	test_vectors();
	test_agreement();
	test_many_blocks();
	return 0;
}
