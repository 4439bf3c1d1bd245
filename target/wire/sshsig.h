/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sshsig.h -- public keys and signatures of OpenSSH (RFC 4253, RFC 5656, RFC 8332, RFC 8709; PROTOCOL.sshsig), as
 * `ssh-keygen -Y sign` writes them.  Form alone: security/sshsig.h verifies.
 *
 * Key types: ssh-ed25519, ecdsa-sha2-nistp256, ecdsa-sha2-nistp384, and ssh-rsa of 2048 to 8192 bits with the signatures
 * rsa-sha2-256 and rsa-sha2-512. */
#ifndef OSD_WIRE_SSHSIG_H
#define OSD_WIRE_SSHSIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OSD_SSH_KEY_MAX 1088 /* bytes of a public key's blob */
#define OSD_SSHSIG_MAX	4096 /* bytes of a signature, in either form */

enum osd_ssh_type { OSD_SSH_ED25519, OSD_SSH_P256, OSD_SSH_P384, OSD_SSH_RSA, OSD_SSH_TYPES };

/* Bytes of somebody else. */
struct osd_span {
	const uint8_t *bytes;
	size_t length;
};

struct osd_ssh_key {
	enum osd_ssh_type type;
	struct osd_span value;	  /* Ed25519: the key; ECDSA: the point; RSA: the modulus */
	struct osd_span exponent; /* of RSA */
};

struct osd_sshsig {
	struct osd_span blob; /* the public key as it is in the signature, to compare with a list's */
	struct osd_ssh_key key;
	struct osd_span name_space; /* text */
	struct osd_span hash;	    /* "sha256" or "sha512", of the message */
	unsigned rsa_bits;	    /* 256 or 512: the hash under an RSA signature */
	struct osd_span r, s;	    /* RSA: s alone */
};

/* The name of a key type, "ssh-ed25519". */
const char *osd_ssh_type_name(enum osd_ssh_type type);
/* Parts of a public key; they borrow blob.  False: the form is wrong, or the type is none of ours. */
bool osd_ssh_key_parse(struct osd_span blob, struct osd_ssh_key *ret_key);
/* Parts of a signature.  text: armoured (-----BEGIN SSH SIGNATURE-----) or the bytes themselves.  buffer keeps the
 * bytes that the parts borrow.  False: the form is wrong, or the key's type is none of ours. */
bool osd_sshsig_parse(struct osd_span text, uint8_t buffer[OSD_SSHSIG_MAX],
		      struct osd_sshsig *ret_signature);

#endif
