/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exchange.h -- the two steps of SET MASTER KEY: keeps the state between them, for a few I_T
 * nexuses at a time and for a limited time.  Any thread. */
#ifndef OSD_SECURITY_EXCHANGE_H
#define OSD_SECURITY_EXCHANGE_H

#include "security/dh.h"
#include "security/keys.h"

#define OSD_EXCHANGE_SECONDS 10

struct osd_exchanges;

/* seconds: the most between the steps.  keyring is borrowed.  NULL: out of memory. */
struct osd_exchanges *osd_exchanges_new(struct osd_keyring *keyring, unsigned seconds);
void osd_exchanges_free(struct osd_exchanges *exchanges); /* NULL is fine */

/* Step 0.  theirs and ours are as long as the group's values.  Replaces an exchange that the nexus
 * had begun.  OSD_E_PARAM_FIELD: theirs is degenerate; OSD_E_NO_OBJECT: there is no master key. */
enum osd_status osd_exchange_begin(struct osd_exchanges *exchanges, struct osd_txn *txn,
				   uint64_t nexus, unsigned group,
				   enum osd_mac_algorithm algorithm, const uint8_t *theirs,
				   uint8_t *ours);
/* The authentication part of the master key that step 1 of this nexus would set.  False: the nexus
 * has begun no exchange, or it has timed out. */
bool osd_exchange_pending(struct osd_exchanges *exchanges, uint64_t nexus,
			  struct osd_secret *ret_secret);
/* Step 1.  The key is in force once txn has committed.  OSD_E_SEQUENCE: see pending;
 * OSD_E_PARAM_FIELD: these are not the values of step 0. */
enum osd_status osd_exchange_end(struct osd_exchanges *exchanges, struct osd_txn *txn,
				 uint64_t nexus, unsigned group, const uint8_t *theirs,
				 const uint8_t *ours,
				 const uint8_t identifier[OSD_KEY_IDENTIFIER]);

#endif
