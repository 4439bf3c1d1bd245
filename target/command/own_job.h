/* SPDX-License-Identifier: GPL-2.0-or-later */
/* own_job.h -- access to one's own jobs.  No credential can name a surrogate, because its id is
 * created later.  So the submitter of a job follows it with the credential for EXEC;
 * another user of the partition cannot.  For authorise.c and authorise_others.c alone. */
#ifndef OSD_COMMAND_OWN_JOB_H
#define OSD_COMMAND_OWN_JOB_H

#include "command/context.h"

/* Whether the object addressed is the surrogate of a job that the capability's holder submitted, and
 * the command one of those that follow a job.  Reads ctx->facts.  OSD_E_WOULD_BLOCK: with
 * OSD_DATA_NOWAIT only. */
enum osd_status osd_own_job(const struct osd_command_context *ctx, uint16_t permissions,
			    bool *ret_own);
/* The same of a surrogate that the command reaches through another object, such as the collection of
 * jobs. */
enum osd_status osd_own_job_inside(const struct osd_request *request, struct osd_txn *txn,
				   struct osd_object_id id, bool *ret_own);

#endif
