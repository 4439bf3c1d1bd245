/* SPDX-License-Identifier: GPL-2.0-or-later */
/* security.h -- who is it, for queues and records?  (Design D16.)  Not here: whether he may (check.h,
 * grant.h). */
#ifndef OSD_SECURITY_SECURITY_H
#define OSD_SECURITY_SECURITY_H

#include <stdbool.h>
#include <stdint.h>

#include "security/grant.h"

#define OSD_PRINCIPAL_MAX 512

/* Who a job belongs to.  verified: the name was proven, by the AUDIT value of a verified capability,
 * which the security manager put there, or by CHAP.  key is what queues count by: the verified name,
 * else the source address, so that made-up initiator names share one allowance.  The hardened tgtd gives
 * the module addresses and CHAP names, a stock one addresses only (shim/tgt_peer.c). */
struct osd_principal {
	bool verified;
	char name
		[OSD_PRINCIPAL_MAX]; /* "audit:VALUE", "chap:NAME" or "unverified:INITIATOR NAME" */
	char key[OSD_PRINCIPAL_MAX]; /* "audit:VALUE", "chap:NAME" or "addr:ADDRESS" */
};

/* An AUDIT of zeros says nobody; NULL or "" as chap_name: not verified.  Bytes come from outside:
 * unprintable ones are escaped, zeros at the end of AUDIT left out.  A CHAP name that does not fit is not
 * used: cut, two users could have the same. */
void osd_principal_derive(const struct osd_grant *grant, const char *chap_name,
			  const char *initiator_name, const char *address,
			  struct osd_principal *ret_principal);

#endif
