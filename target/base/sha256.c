/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sha256.c -- see sha256.h. */
#include "base/sha256.h"

#include <string.h>

#include "base/util.h"

static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void expand(const uint8_t block[64], uint32_t w[64])
{
	for (size_t i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (size_t i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

/* One round.  a to h are s[0] to s[7] of the round's number in eight: each round names the words anew, so that none
 * is moved. */
static inline void round_of(uint32_t s[8], size_t turn, uint32_t kw)
{
	uint32_t a = s[-turn & 7], b = s[(1 - turn) & 7], c = s[(2 - turn) & 7];
	uint32_t e = s[(4 - turn) & 7], f = s[(5 - turn) & 7], g = s[(6 - turn) & 7];
	uint32_t t1 = s[(7 - turn) & 7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
		      ((e & f) ^ (~e & g)) + kw;

	s[(3 - turn) & 7] += t1;
	s[(7 - turn) & 7] =
		t1 + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void compress(struct osd_sha256 *sha, const uint8_t block[64])
{
	uint32_t w[64], s[8];

	expand(block, w);
	memcpy(s, sha->state, sizeof(s));
	for (size_t i = 0; i < 64; i += 8) {
		round_of(s, 0, k[i] + w[i]);
		round_of(s, 1, k[i + 1] + w[i + 1]);
		round_of(s, 2, k[i + 2] + w[i + 2]);
		round_of(s, 3, k[i + 3] + w[i + 3]);
		round_of(s, 4, k[i + 4] + w[i + 4]);
		round_of(s, 5, k[i + 5] + w[i + 5]);
		round_of(s, 6, k[i + 6] + w[i + 6]);
		round_of(s, 7, k[i + 7] + w[i + 7]);
	}
	for (size_t i = 0; i < 8; i++)
		sha->state[i] += s[i];
}

void osd_sha256_init(struct osd_sha256 *sha)
{
	*sha = (struct osd_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void osd_sha256_add(struct osd_sha256 *sha, const void *data, size_t length)
{
	const uint8_t *bytes = data;

	while (length > 0) {
		size_t at = sha->length % 64, piece = OSD_MIN(64 - at, length);

		if (piece == 64) {
			compress(sha, bytes);
		} else {
			memcpy(sha->block + at, bytes, piece);
			if (at + piece == 64)
				compress(sha, sha->block);
		}
		sha->length += piece;
		bytes += piece;
		length -= piece;
	}
}

void osd_sha256_end(struct osd_sha256 *sha, uint8_t digest[32])
{
	static const uint8_t pad[64] = {0x80};
	uint64_t bits = sha->length * 8;
	uint8_t tail[8];

	osd_sha256_add(sha, pad, 1 + (119 - sha->length % 64) % 64);
	for (size_t i = 0; i < 8; i++)
		tail[i] = (uint8_t)(bits >> (56 - 8 * i));
	osd_sha256_add(sha, tail, 8);
	for (size_t i = 0; i < 32; i++)
		digest[i] = (uint8_t)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
}
