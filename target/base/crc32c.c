/* SPDX-License-Identifier: GPL-2.0-or-later */
/* crc32c.c -- see crc32c.h. */
#include "base/crc32c.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* reflected */
#define SLICES	   8u
#define LANES	   4u

static uint32_t tables[SLICES][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		tables[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (unsigned slice = 1; slice < SLICES; slice++)
			tables[slice][i] =
				tables[slice - 1][i] >> 8 ^ tables[0][tables[slice - 1][i] & 0xff];
}

static uint64_t load(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap64(value) : value;
}

uint32_t osd_crc32c_tables(uint32_t crc, const void *data, size_t length)
{
	const uint8_t *bytes = data;

	pthread_once(&tables_once, make_tables);
	crc = ~crc;
	for (; length >= 8; bytes += 8, length -= 8) {
		uint64_t word = load(bytes) ^ crc;

		crc = 0;
		for (unsigned i = 0; i < SLICES; i++)
			crc ^= tables[SLICES - 1 - i][word >> 8 * i & 0xff];
	}
	for (; length; length--)
		crc = crc >> 8 ^ tables[0][(crc ^ *bytes++) & 0xff];
	return ~crc;
}

static void blocks_by_tables(const uint8_t *bytes, size_t count, uint32_t *ret_crcs)
{
	for (size_t i = 0; i < count; i++)
		ret_crcs[i] =
			osd_crc32c_tables(0, bytes + i * OSD_CRC32C_BLOCK, OSD_CRC32C_BLOCK);
}

/* ---- the instruction --------------------------------------------------------------------- */

#if defined(__x86_64__)

#define WITH_INSTRUCTION __attribute__((target("sse4.2")))
#define STEP_WORD(crc, word) ((uint32_t)__builtin_ia32_crc32di(crc, word))
#define STEP_BYTE(crc, byte) __builtin_ia32_crc32qi(crc, byte)

static bool has_instruction(void)
{
	return __builtin_cpu_supports("sse4.2");
}

/* ---- wide multiplication ----------------------------------------------------------------- */

/* 256 bytes are carried over to the 256 behind them by one multiplication without carries for each 8, so it is
 * done as fast as they come from memory.  The two factors carry the first and the second 8 of 16 bytes over n
 * bytes: x^(8n+31) and x^(8n-33) modulo the polynomial, reflected. */
#define WIDE	 __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))
#define OVER_256 _mm512_set4_epi32(0, (int)0xb9e02b86u, 0, (int)0xdcb17aa4u)
#define OVER_64	 _mm512_set4_epi32(0, (int)0x9e4addf8u, 0, (int)0x740eef02u)
#define OVER_16	 _mm_set_epi32(0, (int)0x493c7d27u, 0, (int)0xf20c0dfeu)

WIDE static inline __m512i carry(__m512i bytes, __m512i factors, __m512i next)
{
	__m512i first = _mm512_clmulepi64_epi128(bytes, factors, 0x00);
	__m512i second = _mm512_clmulepi64_epi128(bytes, factors, 0x11);

	return _mm512_ternarylogic_epi64(first, second, next, 0x96); /* all three by exclusive or */
}

WIDE static inline __m128i carry_16(__m128i bytes, __m128i next)
{
	__m128i first = _mm_clmulepi64_si128(bytes, OVER_16, 0x00);
	__m128i second = _mm_clmulepi64_si128(bytes, OVER_16, 0x11);

	return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

WIDE static uint32_t block_by_wide(const uint8_t *bytes)
{
	__m512i a = _mm512_loadu_si512(bytes), b = _mm512_loadu_si512(bytes + 64);
	__m512i c = _mm512_loadu_si512(bytes + 128), d = _mm512_loadu_si512(bytes + 192);
	__m128i last;
	uint64_t crc;

	a = _mm512_xor_si512(a, _mm512_zextsi128_si512(_mm_cvtsi32_si128(-1)));
	for (size_t at = 256; at < OSD_CRC32C_BLOCK; at += 256) {
		a = carry(a, OVER_256, _mm512_loadu_si512(bytes + at));
		b = carry(b, OVER_256, _mm512_loadu_si512(bytes + at + 64));
		c = carry(c, OVER_256, _mm512_loadu_si512(bytes + at + 128));
		d = carry(d, OVER_256, _mm512_loadu_si512(bytes + at + 192));
	}
	d = carry(carry(carry(a, OVER_64, b), OVER_64, c), OVER_64, d);
	last = carry_16(_mm512_extracti32x4_epi32(d, 0), _mm512_extracti32x4_epi32(d, 1));
	last = carry_16(last, _mm512_extracti32x4_epi32(d, 2));
	last = carry_16(last, _mm512_extracti32x4_epi32(d, 3));
	crc = __builtin_ia32_crc32di(0, (uint64_t)_mm_extract_epi64(last, 0));
	return ~(uint32_t)__builtin_ia32_crc32di(crc, (uint64_t)_mm_extract_epi64(last, 1));
}

static bool blocks_by_wide(const uint8_t *bytes, size_t count, uint32_t *ret_crcs)
{
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("vpclmulqdq"))
		return false;
	for (; count; count--, bytes += OSD_CRC32C_BLOCK)
		*ret_crcs++ = block_by_wide(bytes);
	return true;
}

#elif defined(__aarch64__)

#define WITH_INSTRUCTION __attribute__((target("+crc")))
#define STEP_WORD(crc, word) __builtin_aarch64_crc32cx(crc, word)
#define STEP_BYTE(crc, byte) __builtin_aarch64_crc32cb(crc, byte)

static bool has_instruction(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

#endif

#ifdef WITH_INSTRUCTION

WITH_INSTRUCTION static uint32_t by_instruction(uint32_t crc, const uint8_t *bytes, size_t length)
{
	crc = ~crc;
	for (; length >= 8; bytes += 8, length -= 8)
		crc = STEP_WORD(crc, load(bytes));
	for (; length; length--)
		crc = STEP_BYTE(crc, *bytes++);
	return ~crc;
}

WITH_INSTRUCTION static void lanes(const uint8_t *bytes, uint32_t ret_crcs[LANES])
{
	uint32_t a = UINT32_MAX, b = UINT32_MAX, c = UINT32_MAX, d = UINT32_MAX;

	for (size_t at = 0; at < OSD_CRC32C_BLOCK; at += 8) {
		a = STEP_WORD(a, load(bytes + at));
		b = STEP_WORD(b, load(bytes + at + OSD_CRC32C_BLOCK));
		c = STEP_WORD(c, load(bytes + at + 2 * OSD_CRC32C_BLOCK));
		d = STEP_WORD(d, load(bytes + at + 3 * OSD_CRC32C_BLOCK));
	}
	ret_crcs[0] = ~a;
	ret_crcs[1] = ~b;
	ret_crcs[2] = ~c;
	ret_crcs[3] = ~d;
}

static void blocks_by_instruction(const uint8_t *bytes, size_t count, uint32_t *ret_crcs)
{
	for (; count >= LANES; count -= LANES, bytes += LANES * OSD_CRC32C_BLOCK, ret_crcs += LANES)
		lanes(bytes, ret_crcs);
	for (; count; count--, bytes += OSD_CRC32C_BLOCK)
		*ret_crcs++ = by_instruction(0, bytes, OSD_CRC32C_BLOCK);
}

#else

static bool has_instruction(void)
{
	return false;
}

static uint32_t by_instruction(uint32_t crc, const uint8_t *bytes, size_t length)
{
	return osd_crc32c_tables(crc, bytes, length);
}

static void blocks_by_instruction(const uint8_t *bytes, size_t count, uint32_t *ret_crcs)
{
	blocks_by_tables(bytes, count, ret_crcs);
}

#endif

#if !defined(__x86_64__)
static bool blocks_by_wide(const uint8_t *bytes, size_t count, uint32_t *ret_crcs)
{
	(void)bytes, (void)count, (void)ret_crcs;
	return false;
}

#endif

/* ---- many blocks ------------------------------------------------------------------------- */

#define GROUP 16u /* blocks at a time */

/* By byte of a checksum: what becomes of it over a block of zeros. */
static uint32_t over_block[4][256];
static pthread_once_t over_block_once = PTHREAD_ONCE_INIT;

/* A checksum is linear in its bits, but for the inversions, which the checksum of zeros has alone. */
static void make_over_block(void)
{
	static const uint8_t zeros[OSD_CRC32C_BLOCK];
	uint32_t none = osd_crc32c_tables(0, zeros, sizeof(zeros));

	for (unsigned bit = 0; bit < 32; bit++) {
		uint32_t moved = osd_crc32c_tables(1u << bit, zeros, sizeof(zeros)) ^ none;

		for (unsigned byte = 0; byte < 256; byte++)
			if (byte & 1u << bit % 8)
				over_block[bit / 8][byte] ^= moved;
	}
}

/* The checksum of bytes that a block follows, from both checksums. */
static uint32_t join_block(uint32_t crc, uint32_t block)
{
	return over_block[0][crc & 0xff] ^ over_block[1][crc >> 8 & 0xff] ^
	       over_block[2][crc >> 16 & 0xff] ^ over_block[3][crc >> 24] ^ block;
}

uint32_t osd_crc32c(uint32_t crc, const void *data, size_t length)
{
	const uint8_t *bytes = data;

	if (length >= GROUP * OSD_CRC32C_BLOCK)
		pthread_once(&over_block_once, make_over_block);
	for (; length >= GROUP * OSD_CRC32C_BLOCK; length -= GROUP * OSD_CRC32C_BLOCK) {
		uint32_t crcs[GROUP];

		osd_crc32c_blocks(bytes, GROUP, crcs);
		for (size_t i = 0; i < GROUP; i++)
			crc = join_block(crc, crcs[i]);
		bytes += GROUP * OSD_CRC32C_BLOCK;
	}
	return has_instruction() ? by_instruction(crc, bytes, length)
				 : osd_crc32c_tables(crc, bytes, length);
}

void osd_crc32c_blocks(const void *bytes, size_t count, uint32_t *ret_crcs)
{
	if (!blocks_by_wide(bytes, count, ret_crcs))
		osd_crc32c_blocks_narrow(bytes, count, ret_crcs);
}

void osd_crc32c_blocks_narrow(const void *bytes, size_t count, uint32_t *ret_crcs)
{
	if (has_instruction())
		blocks_by_instruction(bytes, count, ret_crcs);
	else
		blocks_by_tables(bytes, count, ret_crcs);
}
