/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dh.c -- see dh.h.  The arithmetic is libgcrypt's. */
#include "security/dh.h"

#include <gcrypt.h>
#include <string.h>

#include "base/util.h"
#include "security/mac.h"

/* clang-format off */
/* RFC 3526.  Both begin alike: with the digits of pi. */
#define BEGIN \
	"ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b139b22" \
	"514a08798e3404ddef9519b3cd3a431b302b0a6df25f14374fe1356d6d51c245e485b576625e7ec6" \
	"f44c42e9a637ed6b0bff5cb6f406b7edee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3d" \
	"c2007cb8a163bf0598da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb" \
	"9ed529077096966d670c354e4abc9804f1746c08ca18217c32905e462e36ce3be39e772c180e8603" \
	"9b2783a2ec07a28fb5c55df06f4c52c9de2bcbf6955817183995497cea956ae515d2261898fa0510" \
	"15728e5a8a"
#define PRIME_14 /* 2^2048 - 2^1984 - 1 + 2^64 * ([2^1918 pi] + 124476) */ \
	BEGIN \
	"acaa68ffffffffffffffff"
#define PRIME_15 /* 2^3072 - 2^3008 - 1 + 2^64 * ([2^2942 pi] + 1690314) */ \
	BEGIN \
	"aac42dad33170d04507a33a85521abdf1cba64ecfb850458dbef0a8aea71575d060c7db3970f85a6" \
	"e1e4c7abf5ae8cdb0933d71e8c94e04a25619dcee3d2261ad2ee6bf12ffa06d98a0864d87602733e" \
	"c86a64521f2b18177b200cbbe117577a615d6c770988c0bad946e208e24fa074e5ab3143db5bfce0" \
	"fd108e4b82d120a93ad2caffffffffffffffff"
/* clang-format on */

static const struct {
	unsigned group;
	const char *prime; /* in hexadecimal digits */
	size_t length;	   /* bytes */
} groups[] = {{14, PRIME_14, sizeof(PRIME_14) / 2}, {15, PRIME_15, sizeof(PRIME_15) / 2}};

_Static_assert(sizeof(PRIME_15) / 2 == OSD_DH_MAX, "the longest value");

static size_t index_of(unsigned group)
{
	size_t i = 0;

	while (i < OSD_ARRAY_SIZE(groups) && groups[i].group != group)
		i++;
	return i;
}

size_t osd_dh_length(unsigned group)
{
	size_t i = index_of(group);

	return i < OSD_ARRAY_SIZE(groups) ? groups[i].length : 0;
}

OSD_DEFINE_CLEANUP(gcry_mpi_t, gcry_mpi_release)

static gcry_mpi_t number_of(const uint8_t *bytes, size_t length)
{
	gcry_mpi_t number = NULL;

	gcry_mpi_scan(&number, GCRYMPI_FMT_USG, bytes, length, NULL);
	return number;
}

/* Zeros in front. */
static bool put_number(gcry_mpi_t number, uint8_t *bytes, size_t length)
{
	size_t used = 0;

	if (gcry_mpi_print(GCRYMPI_FMT_USG, bytes, length, &used, number))
		return false;
	memmove(bytes + length - used, bytes, used);
	memset(bytes, 0, length - used);
	return true;
}

/* The order of such a group has no small factor except 2, so there are no other degenerate
 * values. */
static bool is_degenerate(gcry_mpi_t value, gcry_mpi_t prime)
{
	OSD_CLEANUP(gcry_mpi_releasep) gcry_mpi_t most = gcry_mpi_new(0);

	gcry_mpi_sub_ui(most, prime, 1);
	return gcry_mpi_cmp_ui(value, 1) <= 0 || gcry_mpi_cmp(value, most) >= 0;
}

enum osd_status osd_dh_answer(unsigned group, const uint8_t *exponent, size_t exponent_length,
			      const uint8_t *theirs, uint8_t *ours, uint8_t *shared)
{
	OSD_CLEANUP(gcry_mpi_releasep) gcry_mpi_t prime = NULL;
	OSD_CLEANUP(gcry_mpi_releasep) gcry_mpi_t value = NULL;
	OSD_CLEANUP(gcry_mpi_releasep) gcry_mpi_t secret = NULL;
	OSD_CLEANUP(gcry_mpi_releasep) gcry_mpi_t base = NULL;
	OSD_CLEANUP(gcry_mpi_releasep) gcry_mpi_t result = NULL;
	size_t i = index_of(group), length = osd_dh_length(group);

	if (!length)
		return OSD_E_CDB_FIELD;
	if (!osd_crypto_init())
		return osd_internal("libgcrypt cannot be initialised");
	gcry_mpi_scan(&prime, GCRYMPI_FMT_HEX, groups[i].prime, 0, NULL);
	value = number_of(theirs, length);
	secret = number_of(exponent, exponent_length);
	if (!prime || !value || !secret)
		return OSD_E_NO_MEMORY;
	if (is_degenerate(value, prime))
		return OSD_E_PARAM_FIELD;
	base = gcry_mpi_set_ui(NULL, 2);
	result = gcry_mpi_new(0);
	gcry_mpi_powm(result, base, secret, prime);
	if (!put_number(result, ours, length))
		return OSD_E_NO_MEMORY;
	gcry_mpi_powm(result, value, secret, prime);
	return put_number(result, shared, length) ? OSD_OK : OSD_E_NO_MEMORY;
}
