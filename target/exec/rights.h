/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rights.h -- what a job may do with what it was submitted with, its capability or none (design D12), asked
 * again at each of its calls; and the sweep that ends jobs which hold descriptors that they would not be
 * passed now.  Each question is put to security/decide.h (docs/security.md section 10).
 *
 * A job without a capability (struct osd_job_rights: not limited) may do everything in partitions that
 * take NOSEC now.  Revoked: the partition of the zone demands more than the job has; its capability has
 * expired, its key is gone or frozen, or the object it names has another policy access tag or created
 * time. */
#ifndef OSD_EXEC_RIGHTS_H
#define OSD_EXEC_RIGHTS_H

#include "exec/proxy_ops.h"

#define OSD_RIGHTS_SWEEP_USEC 50000

struct osd_exec;

/* The job's rights have been revoked, as far as can be told at once, or as osd_rights_sweep has found.
 * Asks the store when a policy has changed since the last time.  The session's thread, as all below. */
bool osd_rights_ended(struct osd_session *session);
/* Before a call that names this partition; no transaction is open.  attributes: it touches some.
 * OSD_E_PERMISSION: the partition demands more. */
enum osd_status osd_rights_enter(struct osd_session *session, uint64_t partition_id,
				 bool attributes);
/* Whether the call under way (session->access) may touch an object of the zone: in a transaction;
 * open; of a type and partition, to be made.  OSD_OK also where there is no such object. */
enum osd_status osd_rights_check_in(struct osd_session *session, struct osd_txn *txn,
				    struct osd_object_id id);
enum osd_status osd_rights_check_open(struct osd_session *session, struct osd_object *object);
enum osd_status osd_rights_check_made(struct osd_session *session, enum osd_object_type type,
				      struct osd_object_id id);
/* The same of a second object, on which the call needs something else. */
enum osd_status osd_rights_check_also(struct osd_session *session, struct osd_txn *txn,
				      struct osd_object_id id, struct osd_access access);
/* Whether it may get or set an attribute of an object that has been checked, or compare it in a query. */
bool osd_rights_may_get(const struct osd_session *session, struct osd_object_id id, uint32_t page,
			uint32_t number);
bool osd_rights_may_set(const struct osd_session *session, struct osd_object_id id, uint32_t page,
			uint32_t number, bool empty);
bool osd_rights_may_compare(const struct osd_session *session, uint32_t page, uint32_t number);
/* Whether it may touch a range of this object, and no more. */
bool osd_rights_have_range(const struct osd_session *session, struct osd_object_id id);
/* Ids of matches that the job may know of, those of objects with its tag that are not others' jobs, moved
 * to the front; returns how many. */
enum osd_status osd_rights_filter(struct osd_session *session, struct osd_txn *txn,
				  uint64_t partition_id, uint64_t *ids, size_t *count);

/* Notes which key proves the grant, for who later asks whether it still is there. */
void osd_rights_stamp(const struct osd_exec *exec, struct osd_job_rights *rights);

/* The output thread, when a policy has changed, and every OSD_RIGHTS_SWEEP_USEC while a job with a
 * capability runs: asks those to end that must.  False: it could not find out all; to be called again. */
bool osd_rights_sweep(struct osd_exec *exec);
/* osd_objects_watch_policies' function; arg: struct osd_exec. */
void osd_rights_policy_changed(void *arg);

#endif
