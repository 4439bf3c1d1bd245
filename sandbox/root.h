/* SPDX-License-Identifier: GPL-2.0-or-later */
/* root.h -- the almost empty read-only file system a zygote and its sandboxes live in.
 * Inside: the interpreter's library, the shared libraries it loads, time zones, the package osd,
 * the pool's package set, /dev/null, zero and urandom, and a place for the scratch folder of each slot.
 * No /proc, no /sys, no /tmp, nothing else writable. */
#ifndef OSD_SANDBOX_ROOT_H
#define OSD_SANDBOX_ROOT_H

#include "step.h"

#define OSD_ROOT_PACKAGE "/iosd/osd"	  /* where the package osd is, inside */
#define OSD_ROOT_SET	 "/iosd/packages" /* and the package set */

/* In a mount namespace of our own, with CAP_SYS_ADMIN over it.  package_fd: O_PATH descriptor of
 * the directory of package osd.  set_fd: the same of the package set, opened in this namespace;
 * -1: none.  slots: how many scratch folders have their place.  Returns 0 with the root and working directory changed, or -errno. */
int osd_root_enter(int package_fd, int set_fd, unsigned slots, struct osd_step *step);

#endif
