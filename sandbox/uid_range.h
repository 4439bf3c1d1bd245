/* SPDX-License-Identifier: GPL-2.0-or-later */
/* uid_range.h -- checks that no other user of this host has one of the user and group ids that
 * sandboxes run as. */
#ifndef OSD_SANDBOX_UID_RANGE_H
#define OSD_SANDBOX_UID_RANGE_H

#include <stdbool.h>
#include <stddef.h>

/* The ids of sandboxes begin behind the first one.  Debian hands out 100000 to 600100000 as subordinate
 * ids, systemd 524288 to 1879048191 to containers and some from 2147352576 on; directory services
 * (SSSD, FreeIPA) compute ids up to 2000200000.  No known program assigns those from here to
 * 2147352575. */
#define OSD_UID_BASE 2130706432u /* 0x7f000000 */

struct osd_uid_range {
	unsigned first, last; /* last: included */
};

/* Whether all user and group ids of this range are free: no account in /etc/passwd or /etc/group, no
 * subordinate range in /etc/subuid or /etc/subgid.  Otherwise why names the owner, in a sentence.
 * Directory services are not queried: they may be remote and not available. */
bool osd_uid_range_is_free(const struct osd_uid_range *range, char *why, size_t size);

#endif
