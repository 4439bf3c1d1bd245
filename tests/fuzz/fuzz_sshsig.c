/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_sshsig.c -- invariant: the parts of a signature lie in its bytes, and its key opens alone too.  Verification
 * of any parts ends. */
#include "fuzz.h"
#include "security/sshsig.h"

static void check_span(struct osd_span span, const uint8_t buffer[OSD_SSHSIG_MAX])
{
	HOLDS(span.length == 0 ||
	      (span.bytes >= buffer && span.bytes + span.length <= buffer + OSD_SSHSIG_MAX));
	touch(span.bytes, span.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t message[] = "nobody has signed this";
	uint8_t buffer[OSD_SSHSIG_MAX];
	char fingerprint[OSD_FINGERPRINT_SIZE];
	struct osd_sshsig signature;
	struct osd_ssh_key key;

	if (!osd_sshsig_parse((struct osd_span){data, size}, buffer, &signature))
		return 0;
	check_span(signature.blob, buffer);
	check_span(signature.name_space, buffer);
	check_span(signature.hash, buffer);
	check_span(signature.r, buffer);
	check_span(signature.s, buffer);
	HOLDS(osd_ssh_key_parse(signature.blob, &key));
	HOLDS(key.type == signature.key.type);
	osd_ssh_fingerprint(signature.blob, fingerprint);
	HOLDS(strlen(fingerprint) == OSD_FINGERPRINT_SIZE - 1);
	osd_sshsig_verify(&signature, (struct osd_span){message, sizeof(message)});
	return 0;
}
