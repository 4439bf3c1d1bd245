/* SPDX-License-Identifier: GPL-2.0-or-later */
/* object.c -- making user objects, and the marks on them.  object_removal.c removes them; object_record.c has the
 * records. */
#include "object/internal.h"

#include "base/util.h"
#include "object/view_impl.h"

enum osd_status osd_object_type_of(struct osd_txn *txn, struct osd_object_id id,
				   enum osd_object_type *ret_type)
{
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status == OSD_OK)
		*ret_type = osd_txn_type(txn);
	return status;
}

/* ---- create ------------------------------------------------------------------------------ */

/* The record of new objects, in a partition that is locked. */
static enum osd_status begin(struct osd_txn *txn, uint64_t partition_id, uint16_t flags,
			     struct osd_partition **ret_partition, struct osd_record *ret_record)
{
	enum osd_status status = osd_partition_take(txn, partition_id, false, ret_partition);

	if (status == OSD_OK && atomic_load(&txn->objects->disk_full))
		status = OSD_E_NO_SPACE;
	if (status != OSD_OK)
		return status;
	osd_fresh_record(txn->objects, *ret_partition, txn->now_ms, ret_record);
	ret_record->flags |= flags;
	return OSD_OK;
}

static enum osd_status create(struct osd_txn *txn, uint64_t partition_id, uint64_t requested_id,
			      uint32_t count, uint16_t flags, uint64_t *ret_first)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct osd_record record;
	enum osd_status status;

	if (requested_id != 0 && (requested_id < OSD_FIRST_ID || requested_id > UINT64_MAX - count))
		return OSD_E_EXISTS; /* reserved */
	status = begin(txn, partition_id, flags, &partition, &record);
	if (status == OSD_OK)
		status =
			osd_object_put_new(txn, partition, requested_id, count, &record, ret_first);
	return status == OSD_OK && !flags ? osd_views_add(txn, partition, *ret_first, count)
					  : status;
}

enum osd_status osd_user_object_begin(struct osd_txn *txn, uint64_t partition_id, uint64_t *ret_id)
{
	OSD_CLEANUP(osd_partition_putp) struct osd_partition *partition = NULL;
	struct osd_record record;
	enum osd_status status = begin(txn, partition_id, OSD_REC_NAMED, &partition, &record);

	*ret_id = 0;
	if (status == OSD_OK)
		status = osd_object_begin_new(txn, partition, &record, ret_id);
	return status == OSD_OK ? osd_views_add(txn, partition, *ret_id, 1) : status;
}

enum osd_status osd_user_object_create(struct osd_txn *txn, uint64_t partition_id,
				       uint64_t requested_id, uint32_t count, uint64_t *ret_first)
{
	if (count == 0 || count > OSD_CREATE_MAX || (count > 1 && requested_id != 0))
		return OSD_E_CDB_FIELD;
	return create(txn, partition_id, requested_id, count, 0, ret_first);
}

/* ---- objects of jobs --------------------------------------------------------------------- */

enum osd_job_place osd_job_place_of(struct osd_object_id job)
{
	return osd_is_apart(job.object_id, OSD_REC_SURROGATE) ? OSD_JOB_APART : OSD_JOB_AMONG_DATA;
}

void osd_job_ids_begin(struct osd_objects *objects, uint64_t openings)
{
	uint64_t most = OSD_JOB_IDS_LAST - OSD_JOB_IDS_FIRST;

	atomic_store(&objects->next_job_id, OSD_JOB_IDS_FIRST + ((openings << 32) & most) + 1);
}

/* Ids contain the number of openings of the store, so no id is given out twice.  A client may have
 * requested one of them: then the next one is tried. */
static enum osd_status create_apart(struct osd_txn *txn, uint64_t partition_id, uint32_t count,
				    uint16_t flags, uint64_t *ret_first)
{
	enum osd_status status;

	do {
		uint64_t first = atomic_fetch_add(&txn->objects->next_job_id, count);

		if (first > OSD_JOB_IDS_LAST - count)
			return OSD_E_NO_SPACE;
		status = create(txn, partition_id, first, count, flags, ret_first);
	} while (status == OSD_E_EXISTS);
	return status;
}

static enum osd_status create_where(struct osd_txn *txn, uint64_t partition_id,
				    enum osd_job_place where, uint64_t requested_id, uint32_t count,
				    uint16_t flags, uint64_t *ret_first)
{
	return where == OSD_JOB_APART
		       ? create_apart(txn, partition_id, count, flags, ret_first)
		       : create(txn, partition_id, requested_id, count, flags, ret_first);
}

enum osd_status osd_surrogates_create(struct osd_txn *txn, uint64_t partition_id,
				      enum osd_job_place where, uint64_t requested_id,
				      uint32_t count, uint64_t *ret_first)
{
	return create_where(txn, partition_id, where, requested_id, count,
			    OSD_REC_UNFINISHED | OSD_REC_SURROGATE, ret_first);
}

enum osd_status osd_companion_create(struct osd_txn *txn, struct osd_object_id job,
				     uint64_t *ret_id)
{
	return create_where(txn, job.partition_id, osd_job_place_of(job), 0, 1, OSD_REC_SURROGATE,
			    ret_id);
}

/* ---- marks ------------------------------------------------------------------------------- */

static void run_surrogate(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_object *object = osd_cache_changed(txn, effect, committed);

	if (object)
		atomic_store(&object->unfinished, effect->value != 0);
	osd_object_put(object);
}

enum osd_status osd_surrogate_mark(struct osd_txn *txn, struct osd_object_id id, bool unfinished)
{
	enum osd_status status = osd_txn_take_type(txn, id, OSD_USER_OBJECT, true);

	if (status == OSD_OK)
		status = osd_txn_add_effect(
			txn,
			(struct osd_effect){.run = run_surrogate, .id = id, .value = unfinished});
	if (status != OSD_OK)
		return status;
	txn->record.flags = (uint16_t)(unfinished ? txn->record.flags | OSD_REC_UNFINISHED
						  : txn->record.flags & ~OSD_REC_UNFINISHED);
	txn->dirty = true;
	return OSD_OK;
}

enum osd_status osd_companion_mark(struct osd_txn *txn, struct osd_object_id id)
{
	enum osd_status status = osd_txn_take_type(txn, id, OSD_USER_OBJECT, true);

	if (status != OSD_OK)
		return status;
	txn->record.flags |= OSD_REC_SURROGATE;
	txn->dirty = true;
	return OSD_OK;
}

enum osd_status osd_surrogate_marked(struct osd_txn *txn, struct osd_object_id id,
				     bool *ret_unfinished)
{
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status == OSD_OK)
		*ret_unfinished = osd_txn_type(txn) == OSD_USER_OBJECT &&
				  (txn->record.flags & OSD_REC_UNFINISHED);
	return status;
}
