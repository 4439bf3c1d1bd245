/* SPDX-License-Identifier: GPL-2.0-or-later */
/* uid_range.h -- the user and group ids that sandboxes run as: whether somebody else of this host has
 * some of them. */
#ifndef OSD_SANDBOX_UID_RANGE_H
#define OSD_SANDBOX_UID_RANGE_H

#include <stdbool.h>
#include <stddef.h>

/* The ids of sandboxes begin behind the first one.  Debian hands out 100000 to 600100000 as subordinate
 * ids, systemd 524288 to 1879048191 to containers and some from 2147352576 on; directory services
 * (SSSD, FreeIPA) compute ids up to 2000200000.  Nothing we know of hands out those from here to
 * 2147352575. */
#define OSD_UID_BASE 2130706432u /* 0x7f000000 */

struct osd_uid_range {
	unsigned first, last; /* last: included */
};

/* Whether nobody has an id of this range, user or group: no account in /etc/passwd or /etc/group, no
 * subordinate range in /etc/subuid or /etc/subgid.  Else why says who has, in a sentence.  Directory
 * services are not asked: they may be far away, and down. */
bool osd_uid_range_is_free(const struct osd_uid_range *range, char *why, size_t size);

#endif
