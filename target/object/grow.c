/* SPDX-License-Identifier: GPL-2.0-or-later */
/* grow.c -- what is committed before the bytes of an open object change: a reservation, and marks of its
 * record.
 *
 * A write inside the committed reservation costs no transaction.  One that passes it first commits
 * a reservation rounded up to 1 MiB, so recovery knows whose files to look at.  The
 * bytes are charged to the quotas before they are written. */
#include "object/internal.h"

#include "base/util.h"

void osd_object_set_length(struct osd_object *object, uint64_t length)
{
	uint64_t before = atomic_exchange(&object->length, length);

	osd_version_length(object, length);
	/* This calls the mover, which reads the length. */
	osd_heads_count_length(object, before, length);
}

/* The record's part of a reservation.  While descriptors are out the record's length rules and
 * grows with the data; else the files' does again. */
static void reserve_in_record(const struct osd_object *object, uint64_t new_length,
			      uint64_t reserved, struct osd_record *record)
{
	bool shared = object->shares > 0 && object->length_rules;

	record->flags |= OSD_REC_HAS_FILES;
	/* The bytes change next.  So osd_object_make_stale needs no commit of its own. */
	record->version.counter = OSD_VERSION_STALE;
	if (shared) {
		record->flags |= OSD_REC_LENGTH_RULES;
		record->length = new_length;
		record->reserved_bytes = new_length;
	} else {
		record->flags &= (uint16_t)~OSD_REC_LENGTH_RULES;
		record->length = atomic_load(&object->length);
		record->reserved_bytes = reserved;
	}
}

enum osd_status osd_object_change_record_in(struct osd_kv_txn *kv, struct osd_object *object,
					    void (*change)(struct osd_record *record, void *arg),
					    void *arg)
{
	struct osd_place place = osd_object_place(object);
	struct osd_record record;
	enum osd_status status = osd_record_load(object->objects, kv, &place, OSD_KV_RMW, &record);

	if (status == OSD_OK && record.generation != object->generation)
		status = OSD_E_NO_OBJECT; /* a later object under the same id */
	if (status != OSD_OK)
		return status;
	change(&record, arg);
	return osd_record_store(kv, &place, &record);
}

struct record_change {
	struct osd_object *object;
	void (*change)(struct osd_record *record, void *arg);
	void *arg;
	const struct osd_key *done;
};

static enum osd_status put_record_change(struct osd_kv_txn *kv, void *arg)
{
	const struct record_change *change = arg;
	enum osd_status status =
		osd_object_change_record_in(kv, change->object, change->change, change->arg);

	if (status == OSD_OK && change->done)
		status = osd_kv_remove(kv, OSD_KV_META, osd_key_bytes(change->done));
	return status;
}

enum osd_status osd_object_change_record(struct osd_object *object, bool durable,
					 void (*change)(struct osd_record *record, void *arg),
					 void *arg, const struct osd_key *done)
{
	struct record_change work = {object, change, arg, done};

	return osd_own_run(object->objects, durable ? OSD_COMMIT_DURABLE : 0, put_record_change,
			   &work);
}

struct reservation {
	const struct osd_object *object;
	uint64_t new_length, reserved;
	struct osd_record result;
};

static void change_reservation(struct osd_record *record, void *arg)
{
	struct reservation *reservation = arg;

	if (!(record->flags & OSD_REC_HAS_FILES))
		osd_head_place(reservation->object->objects, reservation->new_length, record);
	reserve_in_record(reservation->object, reservation->new_length, reservation->reserved,
			  record);
	reservation->result = *record;
}

static enum osd_status reserve(struct osd_object *object, uint64_t new_length)
{
	struct reservation reservation = {.object = object, .new_length = new_length};
	enum osd_status status;

	reservation.reserved = new_length > UINT64_MAX - OSD_RESERVE_BYTES
				       ? new_length
				       : osd_round_up(new_length, OSD_RESERVE_BYTES);
	/* Not durable: a command that must survive a power failure ends with osd_object_finish,
	 * which flushes the log. */
	status = osd_object_change_record(object, false, change_reservation, &reservation, NULL);
	if (status != OSD_OK)
		return status;
	if (!object->has_files) {
		object->file.head_bytes = reservation.result.head_bytes;
		object->file.head_on = reservation.result.head_on;
		osd_head_placed(object->objects, &reservation.result);
	}
	object->has_files = true;
	object->reserved_bytes = reservation.result.reserved_bytes;
	object->recorded_length = reservation.result.length;
	object->length_rules = reservation.result.flags & OSD_REC_LENGTH_RULES;
	atomic_store(&object->version_stale, true);
	return OSD_OK;
}

struct marks {
	bool stale, due;
};

static void put_marks(struct osd_record *record, void *arg)
{
	const struct marks *marks = arg;

	if (marks->stale)
		record->version.counter = OSD_VERSION_STALE;
	if (marks->due)
		record->flags |= OSD_REC_DUE;
}

static enum osd_status commit_marks(struct osd_object *object, bool stale, bool due)
{
	/* Not durable: after a power failure no version of an earlier opening is valid, and hooks
	 * follow their objects again (data_version.h, has_unfollowed_version in recovery.c). */
	struct marks marks = {stale, due};
	enum osd_status status = osd_object_change_record(object, false, put_marks, &marks, NULL);

	if (status == OSD_OK && stale)
		atomic_store(&object->version_stale, true);
	if (status == OSD_OK && due)
		atomic_store(&object->due, true);
	return status;
}

enum osd_status osd_object_make_stale(struct osd_object *object)
{
	bool due = osd_object_lacks_due(object);

	if (atomic_load(&object->version_stale) && !due)
		return OSD_OK;
	return commit_marks(object, true, due);
}

enum osd_status osd_object_make_due(struct osd_object *object)
{
	return osd_object_lacks_due(object) ? commit_marks(object, false, true) : OSD_OK;
}

enum osd_status osd_object_extend(struct osd_object *object, uint64_t new_length, unsigned flags)
{
	uint64_t length = atomic_load(&object->length);
	enum osd_status status;

	if (new_length > atomic_load(&object->max_length))
		return OSD_E_QUOTA;
	status = osd_charge(object->objects, object->account, new_length - length,
			    (flags & OSD_DATA_RESERVE) && new_length <= OSD_JOB_RESERVE_BYTES);
	if (status != OSD_OK)
		return status;
	if (object->untrimmed) {
		status = osd_object_fit_files(object, length);
		object->untrimmed = status;
	}
	/* While the record's length rules, recovery would cut off bytes beyond it. */
	if (status == OSD_OK && (new_length > object->reserved_bytes || object->length_rules))
		status = reserve(object, new_length);
	if (status != OSD_OK)
		osd_uncharge(object->objects, object->account, new_length - length);
	return status;
}
