/* SPDX-License-Identifier: GPL-2.0-or-later */
/* privileges.h -- what the daemon, the janitor and the zygote keep of root's capabilities, and the
 * system calls the daemon and the janitor give up.  A sandbox keeps no capability: confine.c,
 * seccomp_rules.c. */
#ifndef OSD_SANDBOX_PRIVILEGES_H
#define OSD_SANDBOX_PRIVILEGES_H

#include <linux/capability.h>
#include <stdint.h>

#define OSD_CAPABILITY(name) (UINT64_C(1) << CAP_##name)

/* Of the capabilities that the process has it keeps these, and what it executes can have no more than
 * those of `bounding`, which must be among them.  Also no_new_privs.  0 or -errno. */
int osd_privileges_keep(uint64_t capabilities, uint64_t bounding);

/* The capabilities that the daemon needs at these layers (enum osd_layer) once its socket is made.  Tries,
 * in a child, whether this host lets root without CAP_SYS_ADMIN make user namespaces. */
uint64_t osd_daemon_capabilities(unsigned layers);
/* The capabilities that a zygote needs to fork sandboxes. */
uint64_t osd_zygote_capabilities(unsigned layers);

/* Denies system calls that a daemon in the wrong hands would use and that no part of ours needs.  Zygotes
 * and sandboxes inherit this filter, below their own.  0 or -errno. */
int osd_daemon_filter(void);
/* Allows what removing control groups takes, and nothing else. */
int osd_janitor_filter(void);

#endif
