/* SPDX-License-Identifier: GPL-2.0-or-later */
/* privileges.h -- the capabilities of root that the daemon, the janitor and the zygote keep, and the
 * system calls that the daemon and the janitor give up.  A sandbox keeps no capability: confine.c,
 * seccomp_rules.c. */
#ifndef OSD_SANDBOX_PRIVILEGES_H
#define OSD_SANDBOX_PRIVILEGES_H

#include <linux/capability.h>
#include <stdint.h>

#define OSD_CAPABILITY(name) (UINT64_C(1) << CAP_##name)

/* Reduces the capabilities of the process to these, and those of the programs that it executes to
 * `bounding`, which must be a subset.  Also sets no_new_privs.  Returns 0 or -errno. */
int osd_privileges_keep(uint64_t capabilities, uint64_t bounding);

/* The capabilities that the daemon needs with these layers (enum osd_layer) once its socket is made.  A
 * child tries whether root can make user namespaces on this host without CAP_SYS_ADMIN. */
uint64_t osd_daemon_capabilities(unsigned layers);
/* The capabilities that a zygote needs to fork sandboxes. */
uint64_t osd_zygote_capabilities(unsigned layers);

/* Denies system calls that an attacker in control of the daemon would use, and that the daemon does not
 * need.  Zygotes and sandboxes inherit this filter in addition to their own.  Returns 0 or -errno. */
int osd_daemon_filter(void);
/* Allows the calls that the removal of control groups needs, and no others. */
int osd_janitor_filter(void);

#endif
