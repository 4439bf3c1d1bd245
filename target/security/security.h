/* SPDX-License-Identifier: GPL-2.0-or-later */
/* security.h -- may this initiator do this?  And who is it, for queues and records? This release
 * knows the method NOSEC: every request that asks for no protection is accepted whatever its
 * capability says (osd2-wire 6.4), and one that names a stronger method is refused, because
 * accepting it unchecked would promise what is not kept. */
#ifndef OSD_SECURITY_SECURITY_H
#define OSD_SECURITY_SECURITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"
#include "wire/capability.h"

/* What the command is about to do. */
struct osd_access {
	enum osd_object_type type;
	struct osd_object_id object;
	uint16_t permissions; /* enum osd_permission, all of them needed */
	uint64_t start, length; /* byte range of data commands; length 0: none */
};

/* OSD_OK, or the refusal with *ret_field at the CDB byte that is at fault. */
enum osd_status osd_security_check(const struct osd_capability *capability,
				   const struct osd_access *access, uint16_t *ret_field);

#define OSD_PRINCIPAL_MAX 512

/* Who a job belongs to (design D16).  verified: the name was proven by CHAP.  key is what queues
 * count by: the verified name, else the source address, so that made-up initiator names share
 * one allowance.  tgtd tells the module addresses (shim/tgt_peer.c), and no CHAP names. */
struct osd_principal {
	bool verified;
	char name[OSD_PRINCIPAL_MAX]; /* for people: "chap:NAME" or "unverified:INITIATOR NAME" */
	char key[OSD_PRINCIPAL_MAX];  /* "chap:NAME" or "addr:ADDRESS" */
};

/* chap_name NULL or "": not verified.  Strings come from outside: unprintable bytes are escaped. */
void osd_principal_derive(const char *chap_name, const char *initiator_name, const char *address,
			  struct osd_principal *ret_principal);

#endif
