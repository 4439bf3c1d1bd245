/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sshsig.c -- see sshsig.h. */
#include "wire/sshsig.h"

#include <string.h>

#include "wire/base64.h"
#include "wire/cursor.h"
#include "wire/text.h"

#define MAGIC	 "SSHSIG"
#define VERSION	 1
#define BEGIN	 "-----BEGIN SSH SIGNATURE-----\n"
#define END	 "-----END SSH SIGNATURE-----"
#define LEAST_RSA 256	/* bytes of a modulus */
#define MOST_RSA  1024
#define SPACE_MAX 255

static const struct {
	const char *name, *curve;
	size_t point; /* bytes of a key, or of a point */
} types[OSD_SSH_TYPES] = {
	[OSD_SSH_ED25519] = {"ssh-ed25519", NULL, 32},
	[OSD_SSH_P256] = {"ecdsa-sha2-nistp256", "nistp256", 65},
	[OSD_SSH_P384] = {"ecdsa-sha2-nistp384", "nistp384", 97},
	[OSD_SSH_RSA] = {"ssh-rsa", NULL, 0},
};

const char *osd_ssh_type_name(enum osd_ssh_type type)
{
	return types[type].name;
}

/* ---- pieces ---------------------------------------------------------------------------------------- */

static bool is(struct osd_span span, const char *text)
{
	return span.length == strlen(text) && memcmp(span.bytes, text, span.length) == 0;
}

/* A length and that many bytes. */
static struct osd_span string(struct osd_rd *r)
{
	size_t length = (size_t)osd_rd_be(r, 4);
	const uint8_t *bytes = osd_rd_bytes(r, length);

	return (struct osd_span){bytes, bytes ? length : 0};
}

/* A number above zero in its shortest form, without the zero byte in front of a first bit; else bad. */
static struct osd_span number(struct osd_rd *r)
{
	struct osd_span span = string(r);

	if (span.length == 0 || span.bytes[0] & 0x80) {
		r->bad = true;
		return span;
	}
	if (span.bytes[0] == 0) {
		span.bytes++;
		span.length--;
		if (span.length == 0 || !(span.bytes[0] & 0x80))
			r->bad = true;
	}
	return span;
}

static bool is_over(const struct osd_rd *r)
{
	return !r->bad && r->at == r->end;
}

/* ---- keys ------------------------------------------------------------------------------------------ */

static bool find_type(struct osd_span name, enum osd_ssh_type *ret_type)
{
	for (unsigned type = 0; type < OSD_SSH_TYPES; type++) {
		if (is(name, types[type].name)) {
			*ret_type = (enum osd_ssh_type)type;
			return true;
		}
	}
	return false;
}

static bool is_rsa_key(const struct osd_ssh_key *key)
{
	const struct osd_span *exponent = &key->exponent;

	return key->value.length >= LEAST_RSA && key->value.length <= MOST_RSA &&
	       key->value.bytes[key->value.length - 1] & 1 && exponent->length <= 8 &&
	       exponent->bytes[exponent->length - 1] & 1 &&
	       osd_get_be(exponent->bytes, exponent->length) >= 3;
}

bool osd_ssh_key_parse(struct osd_span blob, struct osd_ssh_key *ret_key)
{
	struct osd_rd r = osd_rd_init(blob.bytes, blob.length);
	struct osd_span name = string(&r);
	struct osd_ssh_key key = {0};

	if (r.bad || blob.length > OSD_SSH_KEY_MAX || !find_type(name, &key.type))
		return false;
	if (types[key.type].curve && !is(string(&r), types[key.type].curve))
		return false;
	if (key.type == OSD_SSH_RSA)
		key.exponent = number(&r);
	key.value = key.type == OSD_SSH_RSA ? number(&r) : string(&r);
	if (!is_over(&r))
		return false;
	if (key.type == OSD_SSH_RSA ? !is_rsa_key(&key)
				    : key.value.length != types[key.type].point)
		return false;
	/* Points are sent whole: 04h and two coordinates. */
	if (types[key.type].curve && key.value.bytes[0] != 4)
		return false;
	*ret_key = key;
	return true;
}

/* ---- signatures ------------------------------------------------------------------------------------ */

static bool parse_ecdsa(struct osd_span value, struct osd_sshsig *signature)
{
	const size_t most = (types[signature->key.type].point - 1) / 2;
	struct osd_rd r = osd_rd_init(value.bytes, value.length);

	signature->r = number(&r);
	signature->s = number(&r);
	return is_over(&r) && signature->r.length <= most && signature->s.length <= most;
}

static bool parse_value(struct osd_span bytes, struct osd_sshsig *signature)
{
	struct osd_rd r = osd_rd_init(bytes.bytes, bytes.length);
	struct osd_span name = string(&r), value = string(&r);
	enum osd_ssh_type type = signature->key.type;

	if (!is_over(&r))
		return false;
	if (type == OSD_SSH_RSA) {
		signature->rsa_bits = is(name, "rsa-sha2-256") ? 256 : 512;
		signature->s = value;
		return (is(name, "rsa-sha2-256") || is(name, "rsa-sha2-512")) &&
		       value.length == signature->key.value.length;
	}
	if (!is(name, types[type].name))
		return false;
	if (type != OSD_SSH_ED25519)
		return parse_ecdsa(value, signature);
	if (value.length != 64)
		return false;
	signature->r = (struct osd_span){value.bytes, 32};
	signature->s = (struct osd_span){value.bytes + 32, 32};
	return true;
}

static bool parse_blob(struct osd_span bytes, struct osd_sshsig *signature)
{
	struct osd_rd r = osd_rd_init(bytes.bytes, bytes.length);
	const uint8_t *magic = osd_rd_bytes(&r, strlen(MAGIC));
	struct osd_span reserved, value;

	if (!magic || memcmp(magic, MAGIC, strlen(MAGIC)) != 0 || osd_rd_be(&r, 4) != VERSION)
		return false;
	signature->blob = string(&r);
	signature->name_space = string(&r);
	reserved = string(&r);
	signature->hash = string(&r);
	value = string(&r);
	return is_over(&r) && reserved.length == 0 && signature->name_space.length > 0 &&
	       signature->name_space.length <= SPACE_MAX &&
	       osd_text_is_clean(signature->name_space.bytes, signature->name_space.length) &&
	       (is(signature->hash, "sha256") || is(signature->hash, "sha512")) &&
	       osd_ssh_key_parse(signature->blob, &signature->key) && parse_value(value, signature);
}

/* Takes the lines between the two marks as one text of Base64. */
static bool unarmour(struct osd_span text, uint8_t buffer[OSD_SSHSIG_MAX], size_t *ret_length)
{
	const uint8_t *end = memmem(text.bytes, text.length, END, strlen(END));
	size_t used = 0, rest;

	if (!end)
		return false;
	for (const uint8_t *at = text.bytes + strlen(BEGIN); at < end; at++) {
		if (*at == '\n' || *at == '\r')
			continue;
		if (used == OSD_SSHSIG_MAX)
			return false;
		buffer[used++] = *at;
	}
	rest = text.length - (size_t)(end - text.bytes) - strlen(END);
	for (size_t i = 0; i < rest; i++)
		if (end[strlen(END) + i] != '\n' && end[strlen(END) + i] != '\r')
			return false;
	return osd_base64_decode(buffer, used, buffer, OSD_SSHSIG_MAX, ret_length);
}

bool osd_sshsig_parse(struct osd_span text, uint8_t buffer[OSD_SSHSIG_MAX],
		      struct osd_sshsig *ret_signature)
{
	struct osd_sshsig signature = {0};
	struct osd_span bytes = {buffer, text.length};

	if (text.length == 0 || text.length > OSD_SSHSIG_MAX)
		return false;
	if (text.length > strlen(BEGIN) && memcmp(text.bytes, BEGIN, strlen(BEGIN)) == 0) {
		if (!unarmour(text, buffer, &bytes.length))
			return false;
	} else {
		memcpy(buffer, text.bytes, text.length);
	}
	if (!parse_blob(bytes, &signature))
		return false;
	*ret_signature = signature;
	return true;
}
