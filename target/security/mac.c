/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mac.c -- HMAC (RFC 2104) over libgcrypt's hashes, and SHA-256.  Hash states are reused, not allocated each
 * time.  A state holds nothing of a key between uses.  The states of libgcrypt's own HMAC do, and
 * could end up in a core file. */
#include "security/mac.h"

#include <gcrypt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/util.h"

#define BLOCK	    64 /* of both hash functions */
#define OLDEST_GCRY "1.8.0"

struct osd_mac_state {
	struct osd_mac_state *next;
	gcry_md_hd_t hash;
};

static const struct {
	int hash;
	size_t length;
} algorithms[OSD_MAC_ALGORITHMS] = {
	[OSD_HMAC_SHA256] = {GCRY_MD_SHA256, 32},
	[OSD_HMAC_SHA1] = {GCRY_MD_SHA1, 20},
};

static struct osd_lock lock = OSD_LOCK_INITIALIZER(OSD_RANK_MAC);
static struct osd_mac_state *unused[OSD_MAC_ALGORITHMS]; /* under lock */

/* ---- the library ------------------------------------------------------------------------- */

static bool ready;

/* libgcrypt's secure memory is not used: keys are in memory of security/secret.h, and copies that
 * pass through the library are wiped. */
static void start(void)
{
	ready = gcry_check_version(OLDEST_GCRY) != NULL;
	if (ready && !gcry_control(GCRYCTL_INITIALIZATION_FINISHED_P)) {
		gcry_control(GCRYCTL_DISABLE_SECMEM, 0);
		gcry_control(GCRYCTL_INITIALIZATION_FINISHED, 0);
	}
	if (!ready)
		osd_error("libgcrypt is older than %s", OLDEST_GCRY);
}

bool osd_crypto_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
	return ready;
}

void osd_random_bytes(void *bytes, size_t length)
{
	osd_crypto_init();
	gcry_randomize(bytes, length, GCRY_STRONG_RANDOM);
}

/* ---- hash states ------------------------------------------------------------------------- */

static struct osd_mac_state *new_state(enum osd_mac_algorithm algorithm)
{
	struct osd_mac_state *state = osd_crypto_init() ? calloc(1, sizeof(*state)) : NULL;

	if (state && gcry_md_open(&state->hash, algorithms[algorithm].hash, 0)) {
		free(state);
		state = NULL;
	}
	return state;
}

static struct osd_mac_state *take_state(enum osd_mac_algorithm algorithm)
{
	struct osd_mac_state *state;

	osd_lock(&lock);
	state = unused[algorithm];
	if (state)
		unused[algorithm] = state->next;
	osd_unlock(&lock);
	return state ? state : new_state(algorithm);
}

static void give_back(struct osd_mac_state *state, enum osd_mac_algorithm algorithm)
{
	gcry_md_reset(state->hash);
	osd_lock(&lock);
	state->next = unused[algorithm];
	unused[algorithm] = state;
	osd_unlock(&lock);
}

/* ---- SHA-256 ----------------------------------------------------------------------------- */

void osd_sha256_init(struct osd_sha256 *sha)
{
	sha->state = take_state(OSD_HMAC_SHA256);
}

void osd_sha256_add(struct osd_sha256 *sha, const void *bytes, size_t length)
{
	if (sha->state && length)
		gcry_md_write(sha->state->hash, bytes, length);
}

void osd_sha256_end(struct osd_sha256 *sha, uint8_t digest[32])
{
	if (!sha->state) {
		osd_random_bytes(digest, 32);
		return;
	}
	memcpy(digest, gcry_md_read(sha->state->hash, 0), 32);
	give_back(sha->state, OSD_HMAC_SHA256);
}

/* ---- HMAC -------------------------------------------------------------------------------- */

/* RFC 2104 fills a key that is shorter than a block with zeros.  So the zeros that follow a key of
 * 20 bytes change nothing. */
static void write_pad(const struct osd_mac *mac, uint8_t value)
{
	uint8_t pad[BLOCK];

	memset(pad, value, sizeof(pad));
	for (size_t i = 0; i < OSD_MAC_LENGTH; i++)
		pad[i] ^= mac->key[i];
	gcry_md_write(mac->state->hash, pad, sizeof(pad));
	explicit_bzero(pad, sizeof(pad));
}

void osd_mac_init(struct osd_mac *mac, enum osd_mac_algorithm algorithm,
		  const uint8_t key[OSD_MAC_LENGTH])
{
	mac->algorithm = algorithm;
	mac->state = take_state(algorithm);
	memcpy(mac->key, key, sizeof(mac->key));
	if (mac->state)
		write_pad(mac, 0x36);
}

void osd_mac_update(struct osd_mac *mac, const void *bytes, size_t length)
{
	if (mac->state && length)
		gcry_md_write(mac->state->hash, bytes, length);
}

static void finish(struct osd_mac *mac, uint8_t value[OSD_MAC_LENGTH])
{
	gcry_md_hd_t hash = mac->state->hash;
	size_t length = algorithms[mac->algorithm].length;
	uint8_t inner[OSD_MAC_LENGTH];

	memcpy(inner, gcry_md_read(hash, 0), length);
	gcry_md_reset(hash);
	write_pad(mac, 0x5c);
	gcry_md_write(hash, inner, length);
	memset(value, 0, OSD_MAC_LENGTH);
	memcpy(value, gcry_md_read(hash, 0), length);
	give_back(mac->state, mac->algorithm);
	explicit_bzero(inner, sizeof(inner));
}

void osd_mac_final(struct osd_mac *mac, uint8_t value[OSD_MAC_LENGTH])
{
	/* Without memory, a constant would be a check value that anybody can send. */
	if (mac->state)
		finish(mac, value);
	else
		osd_random_bytes(value, OSD_MAC_LENGTH);
	explicit_bzero(mac, sizeof(*mac));
}

bool osd_mac_equal(const uint8_t a[OSD_MAC_LENGTH], const uint8_t b[OSD_MAC_LENGTH])
{
	/* volatile: the compiler must not leave the loop at the first difference. */
	volatile uint8_t different = 0;

	for (size_t i = 0; i < OSD_MAC_LENGTH; i++)
		different |= a[i] ^ b[i];
	return different == 0;
}

void osd_capability_key(enum osd_mac_algorithm algorithm, const uint8_t secret[OSD_MAC_LENGTH],
			const uint8_t capability[OSD_CAPABILITY_LENGTH],
			const uint8_t system_id[OSD_SYSTEM_ID_BYTES], uint8_t key[OSD_MAC_LENGTH])
{
	struct osd_mac mac;

	osd_mac_init(&mac, algorithm, secret);
	osd_mac_update(&mac, capability, OSD_CAPABILITY_LENGTH);
	osd_mac_update(&mac, system_id, OSD_SYSTEM_ID_BYTES);
	osd_mac_final(&mac, key);
}
