/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rights.h -- what a job may do under the capability that it was submitted with (design D12), asked again
 * at each of its calls; and the sweep that ends jobs whose capability has been revoked while they hold
 * descriptors.  Everything here permits everything to jobs without limits (struct osd_job_rights).
 *
 * Revoked: it has expired, its key is gone or frozen, or the object it names has another policy access
 * tag or created time.  An object of the zone that has another tag is not the job's, and no more. */
#ifndef OSD_EXEC_RIGHTS_H
#define OSD_EXEC_RIGHTS_H

#include "exec/proxy_ops.h"

#define OSD_RIGHTS_SWEEP_USEC 50000

struct osd_exec;

/* The capability has been revoked, as far as can be told at once, or as osd_rights_sweep has found.
 * Reads the store when a policy has changed since the last time.  The session's thread. */
bool osd_rights_ended(struct osd_session *session);
/* Whether the call under way (session->access) may touch an object of the zone: in a transaction;
 * open; of a type and partition, to be made.  OSD_OK also where there is no such object. */
enum osd_status osd_rights_check_in(struct osd_session *session, struct osd_txn *txn,
				    struct osd_object_id id);
enum osd_status osd_rights_check_open(struct osd_session *session, struct osd_object *object);
enum osd_status osd_rights_check_made(struct osd_session *session, enum osd_object_type type,
				      struct osd_object_id id);
/* Whether it may touch a range of this object, and no more. */
bool osd_rights_have_range(const struct osd_session *session, struct osd_object_id id);
/* Ids the job may know of, those of objects with its tag, moved to the front; returns how many. */
enum osd_status osd_rights_filter(struct osd_session *session, struct osd_txn *txn,
				  uint64_t partition_id, uint64_t *ids, size_t *count);

/* Notes which key proves the grant, for who later asks whether it still is there. */
void osd_rights_stamp(const struct osd_exec *exec, struct osd_job_rights *rights);

/* The output thread, every OSD_RIGHTS_SWEEP_USEC while a job with limits runs: asks those to end that
 * must. */
void osd_rights_sweep(struct osd_exec *exec);

#endif
