/* SPDX-License-Identifier: GPL-2.0-or-later */
/* seccomp_rules.h -- the system calls a sandbox may make.  Built once, in the zygote (libseccomp
 * takes 200 us); each sandbox installs the finished program. */
#ifndef OSD_SANDBOX_SECCOMP_RULES_H
#define OSD_SANDBOX_SECCOMP_RULES_H

#include <linux/filter.h>
#include <stdbool.h>

#include "step.h"

/* job_socket: the only descriptor on which recvmsg is allowed. scratch: the path of the sandbox's
 * scratch folder, a constant; statfs is allowed for this address only, so that a script cannot read
 * figures of the host.  NULL: no folder. executable: mprotect may make memory executable and not
 * writable, for an engine that compiles.  The program is never freed. */
int osd_seccomp_build(int job_socket, const char *scratch, bool executable,
		      struct sock_fprog *ret_program, struct osd_step *step);

/* Installs the filter for all threads of the process, also running ones.  Requires no_new_privs. */
int osd_seccomp_install(const struct sock_fprog *program, struct osd_step *step);

#endif
