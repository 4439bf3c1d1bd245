/* SPDX-License-Identifier: GPL-2.0-or-later */
/* confine.h -- the limits of a sandbox, and its rules of file access.  Each function returns 0, or -errno with
 * step->what filled in.  Elsewhere: the order of the steps (main.c), namespaces and the root (the zygote, root.c), the
 * system-call filter (seccomp_rules.c). */
#ifndef OSD_SANDBOX_CONFINE_H
#define OSD_SANDBOX_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "step.h"
#include "wire/sandboxd_frame.h"

/* file_bytes: rlimits.h. final: hard limits equal the soft ones; otherwise they leave room. */
int osd_confine_rlimits(const struct osd_sandbox_limits *limits, uint64_t file_bytes, bool final,
			struct osd_step *step);

/* Called in the zygote.  The rules allow reading the engine's folders (NULL ends them), its support
 * folder `package` and the package set (NULL: none).  In `scratch` (NULL: none) regular files and
 * folders may be made, changed and removed.  With a kernel that supports it (ABI 4, 6) they also forbid
 * network, and signals and abstract sockets to processes outside. */
int osd_landlock_build(const char *const *folders, const char *package, const char *set,
		       const char *scratch, int *ret_ruleset_fd, struct osd_step *step);

#endif
