/* SPDX-License-Identifier: GPL-2.0-or-later */
/* encrypt.c -- figure 2.5 of Runde's thesis: encrypts one object into another, near the data.
 *
 * Access: write.  Zone: the partition of both.  Arguments: ids of the source and of the destination, 8 bytes
 * big-endian each, then 32 bytes of key and 12 of nonce.  The cipher is ChaCha20 (RFC 8439), with its counter
 * from 0.  Result: the bytes encrypted, 8 bytes big-endian. */
#include "osd.h"

#define BLOCK 64u

struct indata {
	uint64_t source, destination;
	uint32_t key[8], nonce[3];
};

static uint64_t get_be64(const uint8_t *bytes)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | bytes[i];
	return value;
}

static uint32_t rotate(uint32_t value, int bits)
{
	return value << bits | value >> (32 - bits);
}

static void quarter(uint32_t s[16], int a, int b, int c, int d)
{
	s[a] += s[b], s[d] = rotate(s[d] ^ s[a], 16);
	s[c] += s[d], s[b] = rotate(s[b] ^ s[c], 12);
	s[a] += s[b], s[d] = rotate(s[d] ^ s[a], 8);
	s[c] += s[d], s[b] = rotate(s[b] ^ s[c], 7);
}

/* Words are little-endian in memory, as in the cipher: WebAssembly, x86-64 and aarch64 are. */
static void make_block(const struct indata *in, uint32_t counter, uint32_t block[16])
{
	uint32_t first[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};

	memcpy(first + 4, in->key, sizeof(in->key));
	first[12] = counter;
	memcpy(first + 13, in->nonce, sizeof(in->nonce));
	memcpy(block, first, sizeof(first));
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 4; i++)
			quarter(block, i, 4 + i, 8 + i, 12 + i);
		for (int i = 0; i < 4; i++)
			quarter(block, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
	}
	for (int i = 0; i < 16; i++)
		block[i] += first[i];
}

static void encrypt(const struct indata *in, uint8_t *bytes, uint32_t size)
{
	uint32_t block[16];

	for (uint32_t at = 0; at < size; at += BLOCK) {
		make_block(in, at / BLOCK, block);
		for (uint32_t i = 0; i < BLOCK && at + i < size; i++)
			bytes[at + i] ^= ((const uint8_t *)block)[i];
	}
}

static int read_arguments(struct indata *in)
{
	uint8_t bytes[16 + 32 + 12];

	if (osd_args(bytes, sizeof(bytes)) != (int64_t)sizeof(bytes))
		return 0;
	in->source = get_be64(bytes);
	in->destination = get_be64(bytes + 8);
	memcpy(in->key, bytes + 16, sizeof(in->key));
	memcpy(in->nonce, bytes + 48, sizeof(in->nonce));
	return 1;
}

OSD_FUNCTION(main)
{
	static const char usage[] = "arguments: source, destination, key, nonce: 60 bytes\n";
	uint64_t partition = (uint64_t)osd_zone(OSD_ZONE_PARTITION);
	struct indata in;
	uint8_t *buffer, size_bytes[8];
	int64_t size;

	if (!read_arguments(&in)) {
		osd_log(OSD_ERRORS, usage, sizeof(usage) - 1);
		return 2;
	}
	size = osd_length(partition, in.source);
	if (size < 0 || size > UINT32_MAX)
		return 1;
	buffer = osd_allocate((size_t)size);
	if (!buffer || osd_read(partition, in.source, 0, buffer, (uint32_t)size) != size)
		return 1;
	encrypt(&in, buffer, (uint32_t)size);
	if (osd_write(partition, in.destination, 0, buffer, (uint32_t)size) != size)
		return 1;
	osd_free(buffer);
	for (int i = 0; i < 8; i++)
		size_bytes[i] = (uint8_t)((uint64_t)size >> (56 - 8 * i));
	return osd_result(OSD_BYTES, size_bytes, sizeof(size_bytes)) < 0;
}
