/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signing.h -- what of a function is signed, and the check of it (docs/functions.md, "Signatures").
 *
 * The signature covers a text, the statement: the SHA-256 of the code and every value of the manifest that a client
 * can set.  So signed code is never active with another access class, engine, alias or limit than its signer saw.
 * The engine of the manifest decides what is required: code must not run in another engine than that.
 * A signature is checked when the function is activated, when the store is opened, and when the list of signers is
 * read again.  The times in the list are compared with the time of the activation. */
#ifndef OSD_FUNCTION_SIGNING_H
#define OSD_FUNCTION_SIGNING_H

#include "function/impl.h"
#include "wire/sshsig.h"

#define OSD_STATEMENT_MAX 2048

struct osd_signing {
	char statement[OSD_STATEMENT_MAX];
	size_t statement_length;
	uint8_t signature[OSD_SSHSIG_MAX];
	size_t signature_length; /* 0: none */
};

/* page.c.  Reads both from the manifest, for code with this SHA-256. */
enum osd_status osd_function_signing(struct osd_txn *txn, struct osd_object_id id,
				     const uint8_t sha256[32], struct osd_signing *ret_signing);

/* signing.c.  Checks a function before its activation, and sets its signer and fingerprint.  OSD_E_FUNCTION_UNSIGNED,
 * OSD_E_FUNCTION_SIGNATURE, OSD_E_FUNCTION_SIGNER: refused, and the reason is in the log.  *ret_signing is what was
 * checked; *ret_signers the list, which the caller puts back. */
enum osd_status osd_signing_check(struct osd_functions *functions, struct osd_function *function,
				  struct osd_signing *ret_signing,
				  struct osd_signers **ret_signers);
/* Whether this still is in the manifest. */
enum osd_status osd_signing_same(struct osd_txn *txn, const struct osd_function *function,
				 const struct osd_signing *checked);
/* Checks an active function again, and deactivates it if it is refused; otherwise it gets the caps that its signer has
 * now.  OSD_E_FUNCTION_UNSIGNED, -SIGNATURE, -SIGNER, -CAPS: it was refused. */
enum osd_status osd_signing_recheck(struct osd_functions *functions,
				    struct osd_function *function);
bool osd_signing_is_refusal(enum osd_status status);

void osd_signers_put(struct osd_functions *functions, struct osd_signers *signers);
/* Whether this is the list now. */
bool osd_signers_are_current(struct osd_functions *functions, const struct osd_signers *signers);

#endif
