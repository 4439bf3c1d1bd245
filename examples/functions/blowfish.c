/* SPDX-License-Identifier: GPL-2.0-or-later */
/* blowfish.c -- objects that are stored encrypted with Blowfish, block by block, so that any range is read and
 * written: the applications of the Oasis and MVSS papers.
 *
 * Parameters: key=HEX, 4 to 56 bytes.  The object is encrypted in blocks of 4096 bytes, in CBC.  The initialisation
 * vector of a block is its number, encrypted.  Of 1 to 7 bytes at the end, as in CFB, the stored bytes differ by the
 * encrypted bytes before them.  Equal blocks at one place are stored equal, and nothing shows that stored bytes were
 * changed: use `aes-gcm` for data that need more. */
#include "blowfish_pi.h"
#include "osd_stage.h"

#define ROUNDS	 16u
#define UNIT	 8u
#define BLOCK	 4096u
#define KEY_MIN	 4u
#define KEY_MAX	 56u
#define TOGETHER 8u /* units whose rounds a processor does beside each other */

static struct {
	uint32_t p[ROUNDS + 2], s[4][256];
} state;

struct unit {
	uint32_t left, right;
};

static inline uint32_t f(uint32_t x)
{
	return ((state.s[0][x >> 24] + state.s[1][x >> 16 & 255]) ^ state.s[2][x >> 8 & 255]) +
	       state.s[3][x & 255];
}

static inline struct unit get(const uint8_t *from)
{
	uint32_t words[2];

	__builtin_memcpy(words, from, UNIT);
	return (struct unit){__builtin_bswap32(words[0]), __builtin_bswap32(words[1])};
}

static inline void put(uint8_t *to, struct unit unit)
{
	const uint32_t words[2] = {__builtin_bswap32(unit.left), __builtin_bswap32(unit.right)};

	__builtin_memcpy(to, words, UNIT);
}

static inline struct unit xor
	(struct unit a, struct unit b) {
		return (struct unit){a.left ^ b.left, a.right ^ b.right};
	}

	static struct unit encrypt_unit(struct unit u)
{
	for (uint32_t i = 0; i < ROUNDS; i += 2) {
		u.left ^= state.p[i];
		u.right ^= f(u.left) ^ state.p[i + 1];
		u.left ^= f(u.right);
	}
	return (struct unit){u.right ^ state.p[ROUNDS + 1], u.left ^ state.p[ROUNDS]};
}

static inline void decrypt_units(struct unit *units, uint32_t count)
{
	for (uint32_t i = ROUNDS + 1; i > 1; i -= 2) {
		const uint32_t p = state.p[i], q = state.p[i - 1];

		for (uint32_t k = 0; k < count; k++)
			units[k].left ^= p;
		for (uint32_t k = 0; k < count; k++)
			units[k].right ^= f(units[k].left) ^ q;
		for (uint32_t k = 0; k < count; k++)
			units[k].left ^= f(units[k].right);
	}
	for (uint32_t k = 0; k < count; k++)
		units[k] = (struct unit){units[k].right ^ state.p[0], units[k].left ^ state.p[1]};
}

/* ---- the key ------------------------------------------------------------------------------------ */

static uint32_t digit(char c)
{
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a') + 10 : 16;
}

static int set_key(const struct osd_stage *stage)
{
	struct unit unit = {0, 0};
	uint8_t key[KEY_MAX];
	size_t digits, bytes;
	const char *text = osd_stage_text(stage, "key", &digits);

	bytes = digits / 2;
	if (!text || digits % 2 || bytes < KEY_MIN || bytes > KEY_MAX)
		return 1;
	for (size_t i = 0; i < bytes; i++) {
		uint32_t high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high > 15 || low > 15)
			return 1;
		key[i] = (uint8_t)(high << 4 | low);
	}
	memcpy(state.p, BLOWFISH_PI, sizeof(state.p));
	memcpy(state.s, BLOWFISH_PI + ROUNDS + 2, sizeof(state.s));
	for (uint32_t i = 0; i < 4 * (ROUNDS + 2); i++)
		state.p[i / 4] ^= (uint32_t)key[i % bytes] << (24 - i % 4 * 8);
	for (uint32_t i = 0; i < ROUNDS + 2; i += 2) {
		unit = encrypt_unit(unit);
		state.p[i] = unit.left;
		state.p[i + 1] = unit.right;
	}
	for (uint32_t i = 0; i < 4 * 256; i += 2) {
		unit = encrypt_unit(unit);
		state.s[i / 256][i % 256] = unit.left;
		state.s[i / 256][i % 256 + 1] = unit.right;
	}
	return 0;
}

/* ---- blocks ------------------------------------------------------------------------------------- */

static void xor_end(uint8_t *data, uint32_t length, struct unit before)
{
	uint8_t mask[UNIT];

	put(mask, encrypt_unit(before));
	for (uint32_t i = 0; i < length; i++)
		data[i] ^= mask[i];
}

static void decrypt_block(uint8_t *data, uint32_t length, struct unit vector)
{
	for (; length >= TOGETHER * UNIT; length -= TOGETHER * UNIT, data += TOGETHER * UNIT) {
		struct unit units[TOGETHER], stored[TOGETHER];

		for (uint32_t k = 0; k < TOGETHER; k++)
			units[k] = stored[k] = get(data + k * UNIT);
		decrypt_units(units, TOGETHER);
		put(data, xor(units[0], vector));
		for (uint32_t k = 1; k < TOGETHER; k++)
			put(data + k * UNIT, xor(units[k], stored[k - 1]));
		vector = stored[TOGETHER - 1];
	}
	for (; length >= UNIT; length -= UNIT, data += UNIT) {
		struct unit stored = get(data), unit = stored;

		decrypt_units(&unit, 1);
		put(data, xor(unit, vector));
		vector = stored;
	}
	xor_end(data, length, vector);
}

static void encrypt_block(uint8_t *data, uint32_t length, struct unit vector)
{
	for (; length >= UNIT; length -= UNIT, data += UNIT) {
		vector = encrypt_unit(xor(get(data), vector));
		put(data, vector);
	}
	xor_end(data, length, vector);
}

static inline int each_block(void (*change)(uint8_t *data, uint32_t length, struct unit vector))
{
	struct osd_stage stage;

	if (osd_stage_open(&stage))
		return 1;
	if (set_key(&stage))
		return osd_stage_fail("the parameter is key=HEX, of 4 to 56 bytes");
	if (stage.offset % BLOCK)
		return osd_stage_fail("the contract must have blocks of 4096 bytes");
	for (size_t at = 0; at < stage.length; at += BLOCK) {
		uint64_t number = (stage.offset + at) / BLOCK;
		struct unit place = {(uint32_t)(number >> 32), (uint32_t)number};
		size_t left = stage.length - at;

		change(stage.data + at, (uint32_t)(left < BLOCK ? left : BLOCK),
		       encrypt_unit(place));
	}
	return osd_result(OSD_BYTES, stage.data, (uint32_t)stage.length) < 0;
}

OSD_FUNCTION(decrypt)
{
	return each_block(decrypt_block);
}

OSD_FUNCTION(encrypt)
{
	return each_block(encrypt_block);
}
