/* SPDX-License-Identifier: GPL-2.0-or-later */
/* root.h -- the almost empty read-only file system that a zygote and its sandboxes have as their root.
 * It holds the engine's folders, shared libraries, time zones, the engine's support folder, the pool's
 * package set, /dev/null, zero and urandom, and a place for the scratch folder of each slot.  It has no
 * /proc, no /sys and no /tmp, and nothing else in it is writable. */
#ifndef OSD_SANDBOX_ROOT_H
#define OSD_SANDBOX_ROOT_H

#include "step.h"

#define OSD_ROOT_PACKAGE "/iosd/osd"	  /* the engine's support folder, inside */
#define OSD_ROOT_SET	 "/iosd/packages" /* the package set, inside */

/* Call this in a mount namespace of our own, with CAP_SYS_ADMIN over it.
 *
 * folders: of the engine; NULL ends them.  package_fd: O_PATH descriptor of the support folder.  set_fd: the
 * same of the package set, opened in this namespace; -1: none.  slots: how many scratch folders have their
 * place.  Returns 0 with the root and working directory changed, or -errno. */
int osd_root_enter(const char *const *folders, int package_fd, int set_fd, unsigned slots,
		   struct osd_step *step);

#endif
