/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signers.h -- the list of signers, and the policy: which functions need a signature (docs/functions.md).
 *
 * Both come from one file, which `osd target serve` writes.  The first line is the policy, "policy WORD...".  A word
 * is a level, or ENGINE:LEVEL.  The rest has the form of allowed_signers (wire/signer_line.h).
 *
 * A list never changes.  functions->lock guards the references to it (signing.c). */
#ifndef OSD_FUNCTION_SIGNERS_H
#define OSD_FUNCTION_SIGNERS_H

#include "base/status.h"
#include "function/function.h"
#include "wire/signer_line.h"

/* The signature that functions of an engine need; a later one is stricter. */
enum osd_signing_level {
	OSD_SIGNING_UNSIGNED, /* nothing */
	OSD_SIGNING_SIGNED,   /* a signature by a listed key */
	OSD_SIGNING_NAMED     /* one by a key that is listed for this engine */
};

#define OSD_SIGNING_ENGINES 4 /* those that iosd defines, also if this target does not have them */

struct osd_signers {
	size_t references;
	uint8_t levels[OSD_SIGNING_ENGINES]; /* enum osd_signing_level */
	size_t count;
	struct osd_signer_line *lines;
};

/* file NULL: no list, and no signatures needed but for native.  OSD_E_PARAM_FIELD: message says what is wrong, and
 * where.  The list has one reference. */
enum osd_status osd_signers_read(const char *file, char message[256],
				 struct osd_signers **ret_signers);
/* Engines without a row, which no activation accepts, need the most. */
enum osd_signing_level osd_signers_level(const struct osd_signers *signers, const char *engine);
/* Whether now is looser for an engine than was; message says for which. */
bool osd_signers_are_looser(const struct osd_signers *was, const struct osd_signers *now,
			    char message[256]);
/* "python:unsigned native:named ...", for the log. */
void osd_signers_describe(const struct osd_signers *signers, char text[128]);

#endif
