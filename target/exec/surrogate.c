/* SPDX-License-Identifier: GPL-2.0-or-later */
/* surrogate.c -- the user object that represents a job.  It is created in the
 * transaction that accepts the job; its data is the script's stdout.  Elsewhere: its attribute
 * pages (tell/pages.c). */
#include "exec/target.h"
#include "security/local_keys.h"

enum osd_status osd_exec_partition_made(struct osd_exec *exec, struct osd_txn *txn,
					uint64_t partition_id)
{
	struct osd_keyring *keyring = exec->keyring;

	return keyring ? osd_local_keys_add(keyring, txn, partition_id) : OSD_OK;
}

/* The partition of the surrogate; the jobs partition is created on first use. */
static enum osd_status find_partition(struct osd_exec *exec, struct osd_txn *txn, uint64_t wanted,
				      const struct osd_zone *zone, uint64_t *ret_partition)
{
	uint64_t partition = wanted ? wanted : osd_job_usual_partition(zone->id), made;
	enum osd_object_type type;
	enum osd_status status =
		osd_object_type_of(txn, (struct osd_object_id){partition, 0}, &type);

	if (osd_status_is_gone(status) && partition == OSD_JOBS_PARTITION) {
		status = osd_partition_create(txn, OSD_JOBS_PARTITION, &made);
		if (status == OSD_OK)
			status = osd_exec_partition_made(exec, txn, made);
	}
	if (status == OSD_OK)
		*ret_partition = partition;
	return status;
}

static enum osd_status join_jobs_collection(struct osd_txn *txn, struct osd_object_id surrogate)
{
	struct osd_object_id jobs = {surrogate.partition_id, OSD_JOBS_COLLECTION};
	enum osd_object_type type;
	uint64_t made;
	enum osd_status status = osd_object_type_of(txn, jobs, &type);

	if (status == OSD_E_NO_OBJECT)
		status = osd_collection_create(txn, jobs.partition_id, jobs.object_id,
					       OSD_COLLECTION_TRACKING, &made);
	if (status != OSD_OK)
		return status;
	return osd_collection_add(txn, jobs, surrogate.object_id);
}

enum osd_status osd_surrogate_create(struct osd_exec *exec, struct osd_txn *txn,
				     uint64_t partition_id, uint64_t requested_id,
				     struct osd_job_record *record)
{
	/* If a client names a partition or an id, the surrogate is an ordinary object of that
	 * partition. */
	enum osd_job_place where =
		partition_id || requested_id ? OSD_JOB_AMONG_DATA : OSD_JOB_APART;
	struct osd_object_id id = {0};
	enum osd_status status =
		find_partition(exec, txn, partition_id, &record->zone, &id.partition_id);

	if (status == OSD_OK)
		status = osd_surrogates_create(txn, id.partition_id, where, requested_id,
					       1 + record->array.count, &id.object_id);
	/* Members of an array are found through it; the collection is for clients that search for
	 * jobs. */
	if (status == OSD_OK)
		status = join_jobs_collection(txn, id);
	if (status == OSD_OK) {
		record->id = id;
		record->array.object_id = record->array.count ? id.object_id : 0;
	}
	return status;
}
