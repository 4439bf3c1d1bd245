/* SPDX-License-Identifier: GPL-2.0-or-later */
/* root.h -- the almost empty read-only file system a zygote and its sandboxes live in.
 * Inside: the interpreter's library, the shared libraries it loads, time zones, the package osd,
 * /dev/null, zero and urandom.  No /proc, no /sys, no /tmp, nothing writable. */
#ifndef OSD_SANDBOX_ROOT_H
#define OSD_SANDBOX_ROOT_H

#include "step.h"

#define OSD_ROOT_PACKAGE "/iosd/osd" /* where the package osd is, inside */

/* In a mount namespace of our own, with CAP_SYS_ADMIN over it.  package_fd: O_PATH descriptor of
 * the directory of package osd.  Returns 0 with the root and working directory changed, or
 * -errno. */
int osd_root_enter(int package_fd, struct osd_step *step);

#endif
