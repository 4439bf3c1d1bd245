/* SPDX-License-Identifier: GPL-2.0-or-later */
/* principals.h -- who used how much, and what was set of whom (admin.h): one account a principal, a
 * bounded number of them.  An account that is not needed makes room for another: what it has is added
 * to that of all others like it.  Everything under exec->lock. */
#ifndef OSD_EXEC_PRINCIPALS_H
#define OSD_EXEC_PRINCIPALS_H

#include "exec/admin.h"

struct osd_exec;
struct osd_job_record;
struct osd_pool;

#define OSD_PRINCIPALS_MAX	  1024 /* with an account of their own */
#define OSD_PRINCIPALS_SHARED_MAX 512  /* of whom something was set */
#define OSD_PRINCIPALS_OTHERS	  "(others)"

struct osd_account;

struct osd_principals {
	struct osd_account **accounts; /* by name */
	size_t count, shared;
	struct osd_principal_usage others; /* name NULL: there are none */
};

void osd_principals_release(struct osd_principals *principals);

void osd_principal_accepted(struct osd_exec *exec, const char *name, uint64_t jobs);
void osd_principal_refused(struct osd_exec *exec, const char *name);
void osd_principal_ended(struct osd_exec *exec, const struct osd_job_record *record);
/* What was set holds in a new pool, too.  False: no memory. */
bool osd_principals_enter(struct osd_exec *exec, struct osd_pool *pool);

#endif
