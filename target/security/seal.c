/* SPDX-License-Identifier: GPL-2.0-or-later */
/* seal.c -- see seal.h.  sealed: 12 random bytes, 64 bytes of ciphertext, 16 bytes of tag. */
#include "security/seal.h"

#include <gcrypt.h>
#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

#define IV_BYTES  12
#define TAG_BYTES 16

_Static_assert(OSD_KEY_SEALED == IV_BYTES + sizeof(struct osd_key_pair) + TAG_BYTES,
	       "a sealed key");

OSD_DEFINE_CLEANUP(gcry_cipher_hd_t, gcry_cipher_close)

static bool start(gcry_cipher_hd_t *cipher, const uint8_t seal[OSD_SEAL_BYTES],
		  const struct osd_key_name *name, const struct osd_key_record *record)
{
	uint8_t bound[10 + OSD_KEY_IDENTIFIER] = {(uint8_t)name->level, name->version};

	osd_put_be(bound + 2, name->partition_id, 8);
	memcpy(bound + 10, record->identifier, OSD_KEY_IDENTIFIER);
	return osd_crypto_init() &&
	       !gcry_cipher_open(cipher, GCRY_CIPHER_AES256, GCRY_CIPHER_MODE_GCM, 0) &&
	       !gcry_cipher_setkey(*cipher, seal, OSD_SEAL_BYTES) &&
	       !gcry_cipher_setiv(*cipher, record->sealed, IV_BYTES) &&
	       !gcry_cipher_authenticate(*cipher, bound, sizeof(bound));
}

enum osd_status osd_key_seal(const uint8_t seal[OSD_SEAL_BYTES], const struct osd_key_name *name,
			     const struct osd_key_pair *key, struct osd_key_record *record)
{
	OSD_CLEANUP(gcry_cipher_closep) gcry_cipher_hd_t cipher = NULL;

	osd_random_bytes(record->sealed, IV_BYTES);
	if (!start(&cipher, seal, name, record) ||
	    gcry_cipher_encrypt(cipher, record->sealed + IV_BYTES, sizeof(*key), key,
				sizeof(*key)) ||
	    gcry_cipher_gettag(cipher, record->sealed + IV_BYTES + sizeof(*key), TAG_BYTES))
		return OSD_E_NO_MEMORY;
	return OSD_OK;
}

enum osd_status osd_key_unseal(const uint8_t seal[OSD_SEAL_BYTES], const struct osd_key_name *name,
			       const struct osd_key_record *record, struct osd_key_pair *ret_key)
{
	OSD_CLEANUP(gcry_cipher_closep) gcry_cipher_hd_t cipher = NULL;

	if (!start(&cipher, seal, name, record) ||
	    gcry_cipher_decrypt(cipher, ret_key, sizeof(*ret_key), record->sealed + IV_BYTES,
				sizeof(*ret_key)))
		return OSD_E_NO_MEMORY;
	if (gcry_cipher_checktag(cipher, record->sealed + IV_BYTES + sizeof(*ret_key), TAG_BYTES)) {
		explicit_bzero(ret_key, sizeof(*ret_key));
		return OSD_E_MEDIUM;
	}
	return OSD_OK;
}
