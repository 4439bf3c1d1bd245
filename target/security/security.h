/* SPDX-License-Identifier: GPL-2.0-or-later */
/* security.h -- the principal of a request, for queues and records.  Elsewhere: its
 * permissions (check.h, grant.h). */
#ifndef OSD_SECURITY_SECURITY_H
#define OSD_SECURITY_SECURITY_H

#include <stdbool.h>

#include "security/grant.h"

#define OSD_PRINCIPAL_MAX 512

/* The owner of a job.  verified: the name was proven, by CHAP, or by the AUDIT value of a verified
 * capability, which the security manager put there.  Queues count by key: the verified name, else
 * the source address, so that invented initiator names share one allowance.  The hardened tgtd
 * gives the module addresses and CHAP names, a stock one addresses only (shim/tgt_peer.c). */
struct osd_principal {
	bool verified;
	char name
		[OSD_PRINCIPAL_MAX]; /* "audit:VALUE", "chap:NAME" or "unverified:INITIATOR NAME" */
	char key[OSD_PRINCIPAL_MAX]; /* "audit:VALUE", "chap:NAME" or "addr:ADDRESS" */
};

/* An AUDIT of zeros names nobody; NULL or "" as chap_name: not verified.  The bytes come from
 * outside: unprintable ones are escaped, zeros at the end of AUDIT are dropped.  A CHAP name that
 * is too long is not used: after a cut, two users could have the same name. */
void osd_principal_derive(const struct osd_grant *grant, const char *chap_name,
			  const char *initiator_name, const char *address,
			  struct osd_principal *ret_principal);
/* Whether the key is of a user whom a capability names.  All commands of such a user have that key. */
bool osd_principal_is_named(const char *key);

#endif
