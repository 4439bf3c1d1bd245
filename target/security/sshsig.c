/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sshsig.c -- see sshsig.h. */
#include "security/sshsig.h"

#include <gcrypt.h>
#include <string.h>

#include "base/util.h"
#include "security/mac.h"
#include "wire/base64.h"
#include "wire/cursor.h"

#define PREFIX	   "SHA256:"
#define MAGIC	   "SSHSIG"
#define SIGNED_MAX 512 /* magic, namespace, hash's name and hash, with their lengths */

static int bytes_of(struct osd_span span)
{
	return (int)span.length;
}

/* ---- what is signed ---------------------------------------------------------------------------------- */

static void put_string(struct osd_wr *w, const void *bytes, size_t length)
{
	osd_wr_be(w, length, 4);
	osd_wr_bytes(w, bytes, length);
}

/* PROTOCOL.sshsig: the namespace and the hash of the message. */
static size_t signed_bytes(const struct osd_sshsig *signature, struct osd_span message,
			   uint8_t bytes[SIGNED_MAX])
{
	const int algorithm = signature->hash.bytes[3] == '2' ? GCRY_MD_SHA256 : GCRY_MD_SHA512;
	struct osd_wr w = osd_wr_init(bytes, SIGNED_MAX);
	uint8_t digest[64];

	gcry_md_hash_buffer(algorithm, digest, message.bytes, message.length);
	osd_wr_text(&w, MAGIC);
	put_string(&w, signature->name_space.bytes, signature->name_space.length);
	put_string(&w, NULL, 0);
	put_string(&w, signature->hash.bytes, signature->hash.length);
	put_string(&w, digest, gcry_md_get_algo_dlen(algorithm));
	return w.bad ? 0 : osd_wr_used(&w);
}

/* ---- one function for each type of key --------------------------------------------------------------- */

/* The three arguments of gcry_pk_verify. */
struct terms {
	gcry_sexp_t key, data, value;
};

static void release(struct terms *terms)
{
	gcry_sexp_release(terms->key);
	gcry_sexp_release(terms->data);
	gcry_sexp_release(terms->value);
}

static bool build_ed25519(const struct osd_sshsig *signature, const uint8_t *bytes, size_t length,
			  struct terms *terms)
{
	return !gcry_sexp_build(&terms->key, NULL,
				"(public-key (ecc (curve Ed25519) (flags eddsa) (q %b)))",
				bytes_of(signature->key.value), signature->key.value.bytes) &&
	       !gcry_sexp_build(&terms->data, NULL,
				"(data (flags eddsa) (hash-algo sha512) (value %b))", (int)length,
				bytes) &&
	       !gcry_sexp_build(&terms->value, NULL, "(sig-val (eddsa (r %b) (s %b)))",
				bytes_of(signature->r), signature->r.bytes, bytes_of(signature->s),
				signature->s.bytes);
}

static bool build_ecdsa(const struct osd_sshsig *signature, const uint8_t *bytes, size_t length,
			struct terms *terms)
{
	const bool small = signature->key.type == OSD_SSH_P256;
	const int algorithm = small ? GCRY_MD_SHA256 : GCRY_MD_SHA384;
	uint8_t digest[48];

	gcry_md_hash_buffer(algorithm, digest, bytes, length);
	return !gcry_sexp_build(&terms->key, NULL,
				small ? "(public-key (ecc (curve \"NIST P-256\") (q %b)))"
				      : "(public-key (ecc (curve \"NIST P-384\") (q %b)))",
				bytes_of(signature->key.value), signature->key.value.bytes) &&
	       !gcry_sexp_build(&terms->data, NULL, "(data (flags raw) (value %b))",
				(int)gcry_md_get_algo_dlen(algorithm), digest) &&
	       !gcry_sexp_build(&terms->value, NULL, "(sig-val (ecdsa (r %b) (s %b)))",
				bytes_of(signature->r), signature->r.bytes, bytes_of(signature->s),
				signature->s.bytes);
}

static bool build_rsa(const struct osd_sshsig *signature, const uint8_t *bytes, size_t length,
		      struct terms *terms)
{
	const bool small = signature->rsa_bits == 256;
	const int algorithm = small ? GCRY_MD_SHA256 : GCRY_MD_SHA512;
	uint8_t digest[64];

	gcry_md_hash_buffer(algorithm, digest, bytes, length);
	return !gcry_sexp_build(&terms->key, NULL, "(public-key (rsa (n %b) (e %b)))",
				bytes_of(signature->key.value), signature->key.value.bytes,
				bytes_of(signature->key.exponent), signature->key.exponent.bytes) &&
	       !gcry_sexp_build(&terms->data, NULL,
				small ? "(data (flags pkcs1) (hash sha256 %b))"
				      : "(data (flags pkcs1) (hash sha512 %b))",
				(int)gcry_md_get_algo_dlen(algorithm), digest) &&
	       !gcry_sexp_build(&terms->value, NULL, "(sig-val (rsa (s %b)))",
				bytes_of(signature->s), signature->s.bytes);
}

bool osd_sshsig_verify(const struct osd_sshsig *signature, struct osd_span message)
{
	OSD_CLEANUP(release) struct terms terms = {0};
	uint8_t bytes[SIGNED_MAX];
	size_t length;
	bool built;

	if (!osd_crypto_init())
		return false;
	length = signed_bytes(signature, message, bytes);
	if (length == 0)
		return false;
	if (signature->key.type == OSD_SSH_ED25519)
		built = build_ed25519(signature, bytes, length, &terms);
	else if (signature->key.type == OSD_SSH_RSA)
		built = build_rsa(signature, bytes, length, &terms);
	else
		built = build_ecdsa(signature, bytes, length, &terms);
	return built && !gcry_pk_verify(terms.value, terms.data, terms.key);
}

void osd_ssh_fingerprint(struct osd_span blob, char text[OSD_FINGERPRINT_SIZE])
{
	struct osd_sha256 sha;
	uint8_t digest[32];

	osd_sha256_init(&sha);
	osd_sha256_add(&sha, blob.bytes, blob.length);
	osd_sha256_end(&sha, digest);
	memcpy(text, PREFIX, strlen(PREFIX));
	osd_base64_encode(digest, sizeof(digest), text + strlen(PREFIX));
}
