/* SPDX-License-Identifier: GPL-2.0-or-later */
/* box.c -- see box.h.  Names are those of RFC 9180. */
#include "security/box.h"

#include <gcrypt.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "security/mac.h"

#define TAG	  16
#define NONCE	  12
#define HEAD	  (sizeof(magic) - 1)
#define LEAST	  (HEAD + OSD_BOX_KEY + TAG)
#define SEAL_INFO "iosd function key"
#define BOX_INFO  "iosd function"

_Static_assert(OSD_MAC_LENGTH == OSD_BOX_KEY && OSD_SEAL_BYTES == OSD_BOX_KEY, "one length for all");

static const char magic[] = "\x89iosdbox\x01";
static const uint8_t kem_suite[] = {'K', 'E', 'M', 0x00, 0x20};
static const uint8_t hpke_suite[] = {'H', 'P', 'K', 'E', 0x00, 0x20, 0x00, 0x01, 0x00, 0x02};
static const uint8_t none[OSD_MAC_LENGTH];

struct suite {
	const uint8_t *id;
	size_t length;
};

static const struct suite kem = {kem_suite, sizeof(kem_suite)};
static const struct suite hpke = {hpke_suite, sizeof(hpke_suite)};

bool osd_box_is(const uint8_t *bytes, size_t length)
{
	return length >= HEAD && memcmp(bytes, magic, HEAD) == 0;
}

/* ---- HKDF-SHA256 with labels -------------------------------------------------------------------------- */

static void add_label(struct osd_mac *mac, struct suite suite, const char *label)
{
	osd_mac_update(mac, "HPKE-v1", 7);
	osd_mac_update(mac, suite.id, suite.length);
	osd_mac_update(mac, label, strlen(label));
}

static void labeled_extract(struct suite suite, const uint8_t salt[OSD_MAC_LENGTH],
			    const char *label, const void *ikm, size_t ikm_length,
			    uint8_t prk[OSD_MAC_LENGTH])
{
	struct osd_mac mac;

	osd_mac_init(&mac, OSD_HMAC_SHA256, salt);
	add_label(&mac, suite, label);
	osd_mac_update(&mac, ikm, ikm_length);
	osd_mac_final(&mac, prk);
}

/* length: at most a hash's, so that one block is enough. */
static void labeled_expand(struct suite suite, const uint8_t prk[OSD_MAC_LENGTH], const char *label,
			   const void *info, size_t info_length, uint8_t length, uint8_t *bytes)
{
	const uint8_t size[2] = {0, length}, block = 1;
	uint8_t whole[OSD_MAC_LENGTH];
	struct osd_mac mac;

	osd_mac_init(&mac, OSD_HMAC_SHA256, prk);
	osd_mac_update(&mac, size, sizeof(size));
	add_label(&mac, suite, label);
	osd_mac_update(&mac, info, info_length);
	osd_mac_update(&mac, &block, 1);
	osd_mac_final(&mac, whole);
	memcpy(bytes, whole, length);
	explicit_bzero(whole, sizeof(whole));
}

/* ---- keys ---------------------------------------------------------------------------------------------- */

/* The store's private key. */
static enum osd_status private_key(struct osd_objects *objects, uint8_t key[OSD_BOX_KEY])
{
	uint8_t seal[OSD_SEAL_BYTES];
	struct osd_mac mac;
	enum osd_status status = osd_objects_seal(objects, true, seal);

	if (status != OSD_OK)
		return status;
	if (!osd_crypto_init())
		return osd_internal("libgcrypt cannot be initialised");
	osd_mac_init(&mac, OSD_HMAC_SHA256, seal);
	osd_mac_update(&mac, SEAL_INFO, strlen(SEAL_INFO));
	osd_mac_final(&mac, key);
	key[0] &= 0xf8; /* RFC 7748 */
	key[31] = (key[31] & 0x7f) | 0x40;
	explicit_bzero(seal, sizeof(seal));
	return OSD_OK;
}

/* X25519 (RFC 7748) with a point, or with the base point (NULL). */
static bool multiply(const uint8_t scalar[OSD_BOX_KEY], const uint8_t *point,
		     uint8_t result[OSD_BOX_KEY])
{
	return !gcry_ecc_mul_point(GCRY_ECC_CURVE25519, result, scalar, point) &&
	       !osd_mac_equal(result, none);
}

enum osd_status osd_box_public(struct osd_objects *objects, uint8_t key[OSD_BOX_KEY])
{
	uint8_t secret[OSD_BOX_KEY];
	enum osd_status status = private_key(objects, secret);

	if (status == OSD_OK && !multiply(secret, NULL, key))
		status = OSD_E_NO_MEMORY;
	explicit_bzero(secret, sizeof(secret));
	return status;
}

/* ---- a box --------------------------------------------------------------------------------------------- */

struct opening {
	uint8_t key[OSD_MAC_LENGTH], nonce[NONCE];
};

/* Decap, and the key schedule of the base mode. */
static bool derive(const uint8_t secret[OSD_BOX_KEY], const uint8_t enc[OSD_BOX_KEY],
		   struct opening *opening)
{
	uint8_t dh[OSD_BOX_KEY], prk[OSD_MAC_LENGTH], shared[OSD_MAC_LENGTH];
	uint8_t context[2 * OSD_BOX_KEY], schedule[1 + 2 * OSD_MAC_LENGTH] = {0};
	bool good = multiply(secret, enc, dh) && multiply(secret, NULL, context + OSD_BOX_KEY);

	memcpy(context, enc, OSD_BOX_KEY);
	labeled_extract(kem, none, "eae_prk", dh, sizeof(dh), prk);
	labeled_expand(kem, prk, "shared_secret", context, sizeof(context), OSD_MAC_LENGTH, shared);
	labeled_extract(hpke, none, "psk_id_hash", NULL, 0, schedule + 1);
	labeled_extract(hpke, none, "info_hash", BOX_INFO, strlen(BOX_INFO),
			schedule + 1 + OSD_MAC_LENGTH);
	labeled_extract(hpke, shared, "secret", NULL, 0, prk);
	labeled_expand(hpke, prk, "key", schedule, sizeof(schedule), OSD_MAC_LENGTH, opening->key);
	labeled_expand(hpke, prk, "base_nonce", schedule, sizeof(schedule), NONCE, opening->nonce);
	explicit_bzero(dh, sizeof(dh));
	explicit_bzero(prk, sizeof(prk));
	explicit_bzero(shared, sizeof(shared));
	return good;
}

OSD_DEFINE_CLEANUP(gcry_cipher_hd_t, gcry_cipher_close)

/* text: ciphertext, with its tag behind it. */
static enum osd_status decrypt(const struct opening *opening, const uint8_t *text, size_t length,
			       uint8_t *code)
{
	OSD_CLEANUP(gcry_cipher_closep) gcry_cipher_hd_t cipher = NULL;

	if (gcry_cipher_open(&cipher, GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_GCM, 0) ||
	    gcry_cipher_setkey(cipher, opening->key, sizeof(opening->key)) ||
	    gcry_cipher_setiv(cipher, opening->nonce, sizeof(opening->nonce)) ||
	    gcry_cipher_decrypt(cipher, code, length, text, length))
		return OSD_E_NO_MEMORY;
	return gcry_cipher_checktag(cipher, text + length, TAG) ? OSD_E_FUNCTION_BOX : OSD_OK;
}

enum osd_status osd_box_open(struct osd_objects *objects, const uint8_t *box, size_t length,
			     uint8_t **ret_code, size_t *ret_length)
{
	const size_t bytes = length > LEAST ? length - LEAST : 0;
	struct opening opening = {0};
	uint8_t secret[OSD_BOX_KEY], *code;
	enum osd_status status;

	if (!osd_box_is(box, length) || bytes == 0)
		return OSD_E_FUNCTION_BOX;
	status = private_key(objects, secret);
	if (status != OSD_OK)
		return status;
	if (!derive(secret, box + HEAD, &opening))
		status = OSD_E_FUNCTION_BOX;
	explicit_bzero(secret, sizeof(secret));
	code = malloc(bytes);
	if (!code)
		status = OSD_E_NO_MEMORY;
	if (status == OSD_OK)
		status = decrypt(&opening, box + HEAD + OSD_BOX_KEY, bytes, code);
	explicit_bzero(&opening, sizeof(opening));
	if (status != OSD_OK) {
		osd_box_free(code, bytes);
		return status;
	}
	*ret_code = code;
	*ret_length = bytes;
	return OSD_OK;
}

void osd_box_free(uint8_t *code, size_t length)
{
	if (code)
		explicit_bzero(code, length);
	free(code);
}
