/* SPDX-License-Identifier: GPL-2.0-or-later */
/* policy.h -- the Policy/Security pages of the root and of partitions, kept in memory until a page
 * changes.  Any thread. */
#ifndef OSD_SECURITY_POLICY_H
#define OSD_SECURITY_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"

struct osd_policy {
	uint8_t method;	 /* #1: the least that a request must have */
	uint8_t inside_method; /* root: #6, which new partitions begin with */
	uint16_t frozen; /* #5: bit n, working key n must not be used */
	uint64_t oldest_ms, newest_ms; /* #2, #3: how far a nonce's time may be from the clock */
};

struct osd_policies;

/* objects is borrowed.  NULL: out of memory. */
struct osd_policies *osd_policies_new(struct osd_objects *objects);
void osd_policies_free(struct osd_policies *policies); /* NULL is fine */
/* True: osd_policy_get has returned to this thread that requests without a capability are accepted,
 * and no policy has changed since.  False: unknown. */
bool osd_policy_is_open(const struct osd_policies *policies, uint64_t partition_id);
/* The policy of a partition, or of the root (0), which is partition zero.  The thread has no
 * transaction open.  OSD_E_NO_PARTITION; OSD_E_WOULD_BLOCK: with nowait only, it must be read
 * first. */
enum osd_status osd_policy_get(struct osd_policies *policies, uint64_t partition_id, bool nowait,
			       struct osd_policy *ret_policy);
/* The same inside a transaction, which reads the policy if it is not in memory. */
enum osd_status osd_policy_get_in(struct osd_policies *policies, struct osd_txn *txn,
				  uint64_t partition_id, struct osd_policy *ret_policy);

#endif
