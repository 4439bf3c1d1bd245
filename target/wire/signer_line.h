/* SPDX-License-Identifier: GPL-2.0-or-later */
/* signer_line.h -- a line of a list of signers: the file allowed_signers of ssh-keygen(1), with options of our own.
 *
 *     PRINCIPALS [OPTIONS] KEYTYPE KEY [COMMENT]
 *
 * The principals are the signer's name here, so they are no patterns.  Options: namespaces="PATTERNS",
 * valid-after="TIME", valid-before="TIME".  cert-authority is refused: nothing here reads certificates.
 *
 * Options that ssh-keygen does not know cap what the signer can sign: iosd-engines="NAME,...", iosd-access="none", "read"
 * or "write", iosd-wall="DURATION", iosd-cpu="DURATION", iosd-memory="SIZE", iosd-zones="PARTITION,...". */
#ifndef OSD_WIRE_SIGNER_LINE_H
#define OSD_WIRE_SIGNER_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/sshsig.h"

#define OSD_SIGNER_NAME_MAX   128
#define OSD_SIGNER_SPACES_MAX 255

#define OSD_SIGNER_ENGINES_MAX 63
#define OSD_SIGNER_ZONES_MAX   16

/* The most that functions of a signer may be and do.  0 and "": no cap. */
struct osd_signer_caps {
	char engines[OSD_SIGNER_ENGINES_MAX + 1]; /* names, with a comma between two */
	uint8_t access;				  /* 1 + the access class (function/function.h) */
	uint8_t zone_count;
	uint64_t wall_usec, cpu_usec, memory_bytes;
	uint64_t zones[OSD_SIGNER_ZONES_MAX]; /* ids of partitions */
};

struct osd_signer_line {
	char name[OSD_SIGNER_NAME_MAX + 1];
	char spaces[OSD_SIGNER_SPACES_MAX + 1]; /* patterns, with a comma between two; "": any */
	uint64_t after_msec, before_msec;	/* since 1970; 0: no bound */
	struct osd_signer_caps caps;
	uint8_t key[OSD_SSH_KEY_MAX];		/* its blob */
	size_t key_length;
};

/* A line without its newline.  False: message says what is wrong.  *ret_blank: it has nothing but a comment. */
bool osd_signer_line_parse(const char *line, size_t length, struct osd_signer_line *ret_line,
			   bool *ret_blank, char message[128]);
/* Whether the line's patterns include a namespace; exact: one is this text, not a pattern that matches it. */
bool osd_signer_line_has_space(const struct osd_signer_line *line, const char *name_space,
			       bool exact);

#endif
