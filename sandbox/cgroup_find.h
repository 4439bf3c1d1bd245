/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cgroup_find.h -- finds the places on this host where control groups can be made. */
#ifndef OSD_SANDBOX_CGROUP_FIND_H
#define OSD_SANDBOX_CGROUP_FIND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct osd_cgroup_place {
	unsigned layers; /* enum osd_layer bits of the controllers it serves */
	bool unified;    /* cgroup v2 */
	char base[PATH_MAX]; /* make groups below this directory */
};

/* Finds at most three places. v1 is preferred for a controller that is bound to it. parent: a path
 * inside the hierarchies; NULL: this process's own group. */
size_t osd_cgroup_find(const char *parent, struct osd_cgroup_place places[3]);

/* cgroup v2: offer the controllers to the groups below path; 0 or -errno. */
int osd_cgroup_delegate(const char *path, unsigned layers);

#endif
