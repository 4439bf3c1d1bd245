/* SPDX-License-Identifier: GPL-2.0-or-later */
/* seccomp_rules.h -- the system calls a sandbox may make.  Built once, in the zygote (libseccomp
 * takes 200 us); each sandbox installs the finished program. */
#ifndef OSD_SANDBOX_SECCOMP_RULES_H
#define OSD_SANDBOX_SECCOMP_RULES_H

#include <linux/filter.h>

#include "step.h"

/* Calls in addition, for engines that need them. */
enum osd_seccomp_rules {
	OSD_SECCOMP_EXECUTABLE = 1, /* mprotect may make memory executable, if it is not writable then */
	OSD_SECCOMP_NARROW = 2,	    /* osd_seccomp_narrow */
};

/* job_socket: the only descriptor on which recvmsg is allowed. scratch: the path of the sandbox's
 * scratch folder, a constant; statfs is allowed for this address only, so that a script cannot read
 * figures of the host.  NULL: no folder. rules: enum osd_seccomp_rules.  The program is never freed. */
int osd_seccomp_build(int job_socket, const char *scratch, unsigned rules,
		      struct sock_fprog *ret_program, struct osd_step *step);

/* Installs the filter for all threads of the process, also running ones.  Requires no_new_privs. */
int osd_seccomp_install(const struct sock_fprog *program, struct osd_step *step);

/* Installs a second filter, for a process with one thread: no memory becomes executable from now on, and no filter
 * is added.  Executable pages stay so. */
int osd_seccomp_narrow(struct osd_step *step);

#endif
