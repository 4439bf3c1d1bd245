/* SPDX-License-Identifier: GPL-2.0-or-later */
/* change.c -- the commands that change an object's bytes: WRITE (any number of pieces), APPEND, CLEAR
 * and PUNCH, alone or in one transaction with attributes.
 *
 * Order, all of it with the range locked:
 *
 *   prepare    quotas are charged and a reservation is committed (WRITE, APPEND, CLEAR), or new
 *              files are written (PUNCH in the middle): nobody sees anything of it
 *   record     what the object's record must say (PUNCH)
 *   apply      the bytes change (WRITE, APPEND, CLEAR)
 *   done       length and times in memory
 *
 * Alone, the record has a transaction of its own.  With attributes, the record and the attributes change
 * in one transaction, then the bytes change, then the transaction commits.  Until the bytes change
 * everything can be refused.  After that only a failing device makes the command fail.  A crash before
 * the commit may leave bytes without attributes, inside the range of a command that was not
 * acknowledged. */
#include "object/internal.h"

#include "base/util.h"
#include "object/txn_run.h"

#define APPLIED_ROUNDS 90 /* of osd_txn_run() when the data has changed already */

struct change_run {
	struct osd_object *object;
	struct osd_change *change;
	uint64_t offset, end; /* the range it covers; offset == end: empty */
	uint64_t old_length, new_length;
	struct osd_punch punch;
	bool full; /* a device is full; quotas would have had room */
};

/* ---- plan -------------------------------------------------------------------------------- */

/* The range from the first to the last byte of all pieces. */
static enum osd_status span_pieces(struct change_run *run)
{
	const struct osd_change *change = run->change;
	uint64_t end;

	run->offset = UINT64_MAX;
	for (size_t i = 0; i < change->piece_count; i++) {
		const struct osd_piece *piece = &change->pieces[i];

		if (!osd_add_u64(piece->offset, piece->length, &end))
			return OSD_E_CDB_FIELD;
		if (piece->length == 0)
			continue;
		run->offset = OSD_MIN(run->offset, piece->offset);
		run->end = OSD_MAX(run->end, end);
	}
	run->offset = OSD_MIN(run->offset, run->end);
	return OSD_OK;
}

static enum osd_status span(struct change_run *run)
{
	const struct osd_change *change = run->change;

	if (change->kind == OSD_CHANGE_WRITE)
		return span_pieces(run);
	run->offset = change->offset;
	if (change->kind == OSD_CHANGE_CLEAR)
		return osd_add_u64(change->offset, change->length, &run->end) ? OSD_OK
									      : OSD_E_CDB_FIELD;
	return OSD_OK; /* where the others end depends on the length */
}

/* Whether the change never writes to the object's files: it may make new ones. */
static bool of_new_files(const struct change_run *run)
{
	return run->change->kind == OSD_CHANGE_PUNCH || run->change->kind == OSD_CHANGE_REPLACE;
}

/* Before the length is known. */
static bool is_empty(const struct change_run *run)
{
	return run->offset == run->end && !run->change->wanted &&
	       (run->change->kind == OSD_CHANGE_WRITE || run->change->kind == OSD_CHANGE_CLEAR);
}

static enum osd_status lock(struct change_run *run, bool whole, struct osd_range *range)
{
	/* PUNCH replaces the files under every reader, so it locks the whole object.  A change that wants
	 * a version does, so that no other change comes between. */
	if (whole || run->change->wanted || of_new_files(run))
		return osd_object_lock(run->object, range, 0, UINT64_MAX, true);
	if (run->change->kind == OSD_CHANGE_APPEND)
		return osd_object_lock(run->object, range, UINT64_MAX, UINT64_MAX, true);
	return osd_object_lock(run->object, range, run->offset, run->end, false);
}

static enum osd_status plan(struct change_run *run)
{
	struct osd_change *change = run->change;
	uint64_t length = atomic_load(&run->object->length);

	if (length < change->least ||
	    (change->wanted && !osd_same_version(*change->wanted, osd_version_of(run->object))))
		return OSD_E_VERSION;
	/* A length may be committed that waits for the bytes locked here, and would cut them. */
	if (change->wanted && atomic_load(&run->object->resizing))
		return OSD_E_VERSION;
	run->old_length = run->new_length = length;
	switch (change->kind) {
	case OSD_CHANGE_APPEND:
		change->start = run->offset = length;
		if (!osd_add_u64(length, change->length, &run->end))
			return OSD_E_QUOTA;
		break;
	case OSD_CHANGE_PUNCH:
		if (change->offset > length)
			return OSD_E_BEYOND_END;
		run->end = change->offset + OSD_MIN(change->length, length - change->offset);
		run->new_length = length - (run->end - change->offset);
		break;
	case OSD_CHANGE_REPLACE:
		run->end = run->new_length = change->length;
		break;
	case OSD_CHANGE_WRITE:
	case OSD_CHANGE_CLEAR:
		break;
	}
	if (!of_new_files(run) && run->offset < run->end)
		run->new_length = OSD_MAX(length, run->end);
	change->growth = (int64_t)(run->new_length - length);
	return OSD_OK;
}

/* Whether the change writes new files and switches to them. */
static bool switches(const struct change_run *run)
{
	return run->change->kind == OSD_CHANGE_REPLACE ||
	       (run->new_length < run->old_length && run->end < run->old_length);
}

/* Whether the commit of the record is the change. */
static bool is_of_record(const struct change_run *run)
{
	return run->new_length < run->old_length || switches(run);
}

/* ---- the steps --------------------------------------------------------------------------- */

static enum osd_status miss(const struct change_run *run)
{
	enum osd_status status = OSD_OK;

	if (run->change->kind == OSD_CHANGE_REPLACE)
		return osd_object_miss(run->object, run->old_length, 0,
				       OSD_MAX(run->old_length, run->new_length));
	if (run->change->kind != OSD_CHANGE_WRITE)
		return osd_object_miss(run->object, run->old_length, run->offset, run->end);
	for (size_t i = 0; status == OSD_OK && i < run->change->piece_count; i++) {
		const struct osd_piece *piece = &run->change->pieces[i];

		if (piece->length)
			status = osd_object_miss(run->object, run->old_length, piece->offset,
						 piece->offset + piece->length);
	}
	return status;
}

/* A PUNCH changes nothing before its record is committed, which says it, too. */
static bool must_mark_stale(const struct change_run *run)
{
	return !of_new_files(run) && run->offset < run->end &&
	       (!atomic_load(&run->object->version_stale) || osd_object_lacks_due(run->object));
}

/* Commits the stale mark, and writes new files, ahead of the change. */
static enum osd_status make_ready(struct change_run *run)
{
	enum osd_status status = must_mark_stale(run) ? osd_object_make_stale(run->object) : OSD_OK;

	if (status != OSD_OK || !switches(run))
		return status;
	status = run->change->kind == OSD_CHANGE_REPLACE
			 ? osd_replace_prepare(run->object, run->change->data, run->change->length,
					       &run->punch)
			 : osd_punch_prepare(run->object, run->offset, run->end - run->offset,
					     run->change->steps, &run->punch);
	run->full = status == OSD_E_NO_SPACE;
	return status;
}

static enum osd_status prepare(struct change_run *run)
{
	bool grows = run->new_length > run->old_length;
	enum osd_status status = miss(run);

	if (status == OSD_OK && is_of_record(run))
		status = osd_object_make_due(run->object);
	if (status == OSD_OK && grows)
		status = osd_object_extend(run->object, run->new_length, run->change->flags);
	if (status != OSD_OK)
		return status;
	status = make_ready(run);
	if (status != OSD_OK && grows)
		osd_uncharge(run->object->objects, run->object->account,
			     run->new_length - run->old_length);
	return status;
}

/* Undoes prepare and a partial apply: bytes that reached the files must not show up later. */
static void undo(struct change_run *run)
{
	struct osd_object *object = run->object;

	osd_object_set_length(object, run->old_length);
	osd_punch_undo(object, &run->punch);
	if (run->new_length > run->old_length)
		osd_growth_undo(object, run->new_length, run->old_length);
}

static void put_record(const struct change_run *run, struct osd_record *record)
{
	if (switches(run))
		osd_punch_record(run->object, &run->punch, record);
	else if (run->new_length < run->old_length)
		osd_shrink_record(record, run->new_length);
}

static void committed(struct change_run *run)
{
	if (run->change->kind == OSD_CHANGE_REPLACE)
		osd_unsynced_forget(&run->object->objects->unsynced, run->object->id);
	if (switches(run))
		osd_punch_done(run->object, &run->punch, run->old_length);
	else if (run->new_length < run->old_length)
		osd_shrink_done(run->object, run->old_length, run->new_length);
}

static enum osd_status write_pieces(struct change_run *run)
{
	const struct osd_change *change = run->change;
	const uint8_t *data = change->data;
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < change->piece_count; i++) {
		if (change->pieces[i].length == 0)
			continue;
		status = osd_tier_write(&run->object->file, change->pieces[i].offset, data,
					(size_t)change->pieces[i].length);
		data += change->pieces[i].length;
	}
	return status;
}

static enum osd_status clear(struct change_run *run)
{
	struct osd_tier_file *file = &run->object->file;
	enum osd_status status = OSD_OK;

	if (run->new_length > run->old_length)
		status = osd_tier_truncate(file, run->new_length);
	if (status == OSD_OK && run->offset < run->old_length)
		status = osd_tier_zero(file, run->offset,
				       OSD_MIN(run->end, run->old_length) - run->offset);
	return status;
}

static enum osd_status apply(struct change_run *run)
{
	struct osd_object *object = run->object;
	enum osd_status status = OSD_OK;

	if (run->offset == run->end && run->change->kind != OSD_CHANGE_REPLACE)
		return OSD_OK;
	run->change->changed = true;
	run->change->version = osd_version_new(object->objects);
	run->change->before = osd_version_change(object, run->change->version);
	switch (run->change->kind) {
	case OSD_CHANGE_WRITE:
		status = write_pieces(run);
		break;
	case OSD_CHANGE_APPEND:
		status = osd_tier_write(&object->file, run->offset, run->change->data,
					(size_t)run->change->length);
		break;
	case OSD_CHANGE_CLEAR:
		status = clear(run);
		break;
	case OSD_CHANGE_PUNCH:
	case OSD_CHANGE_REPLACE:
		return OSD_OK;
	}
	osd_cache_note_open(object);
	run->full = status == OSD_E_NO_SPACE;
	return status;
}

static void done(struct change_run *run)
{
	if (run->new_length != run->old_length)
		osd_object_set_length(run->object, run->new_length);
	if (run->offset < run->end || of_new_files(run))
		osd_object_touch(run->object, true, run->change->flags);
}

/* ---- alone ------------------------------------------------------------------------------- */

static void change_record(struct osd_record *record, void *arg)
{
	put_record(arg, record);
}

static enum osd_status change_locked(struct change_run *run)
{
	enum osd_status status = plan(run);

	if (status == OSD_OK)
		status = prepare(run);
	if (status != OSD_OK)
		return status;
	if (is_of_record(run))
		status = osd_object_change_record(run->object, switches(run), change_record, run,
						  NULL);
	if (status == OSD_OK)
		committed(run);
	if (status == OSD_OK)
		status = apply(run);
	if (status != OSD_OK) {
		undo(run);
		return status;
	}
	done(run);
	return osd_object_finish(run->object, run->change->flags);
}

static enum osd_status change_alone(struct change_run *run)
{
	struct osd_range range;
	enum osd_status status = span(run);

	if (status != OSD_OK)
		return status;
	if (is_empty(run))
		return atomic_load(&run->object->removed) ? OSD_E_NO_OBJECT : OSD_OK;
	status = lock(run, false, &range);
	if (status != OSD_OK)
		return status;
	status = change_locked(run);
	osd_object_unlock(run->object, &range);
	return status;
}

/* ---- with attributes --------------------------------------------------------------------- */

/* effect: arg the run. */
static void run_committed(struct osd_txn *txn, struct osd_effect *effect, bool was_committed)
{
	(void)txn;
	if (was_committed)
		committed(effect->arg);
}

struct change_work {
	struct change_run *run;
	const struct osd_change_with *with;
	bool applied; /* the data has changed */
};

static enum osd_status change_in(struct osd_txn *txn, void *arg)
{
	struct change_work *work = arg;
	struct change_run *run = work->run;
	const struct osd_change_with *with = work->with;
	enum osd_status status = osd_txn_take(txn, run->object->id, true);

	if (status == OSD_OK && txn->record.generation != run->object->generation)
		status = OSD_E_NO_OBJECT; /* a later object under the same id */
	if (status == OSD_OK)
		status = osd_txn_add_effect(txn,
					    (struct osd_effect){.run = run_committed, .arg = run});
	if (status != OSD_OK)
		return status;
	put_record(run, &txn->record);
	txn->dirty = true;
	txn->changing = run->object;
	txn->changing_length = run->new_length;
	status = with->fn(with->arg, txn, false);
	if (status == OSD_OK && !work->applied) {
		status = apply(run);
		work->applied = status == OSD_OK;
		if (work->applied)
			done(run);
	}
	return status == OSD_OK ? with->fn(with->arg, txn, true) : status;
}

/* FUA syncs data, then directories, then the log (osd_object_finish).  The files that PUNCH replaced
 * must not be needed after that. */
static enum osd_status change_with_locked(struct change_run *run,
					  const struct osd_change_with *with)
{
	struct change_work work = {.run = run, .with = with};
	enum osd_status status = plan(run);
	unsigned rounds = 0;

	if (status == OSD_OK)
		status = prepare(run);
	if (status != OSD_OK)
		return status;
	do
		status = osd_txn_run(run->object->objects,
				     with->txn_flags | (switches(run) ? OSD_COMMIT_DURABLE : 0),
				     change_in, &work);
	while (status == OSD_E_BUSY && work.applied && ++rounds < APPLIED_ROUNDS);
	if (status == OSD_OK)
		return osd_object_finish(run->object, run->change->flags);
	undo(run);
	return status;
}

/* The whole object is locked, because the attributes may cut or extend it. */
static enum osd_status change_with(struct change_run *run, const struct osd_change_with *with)
{
	struct osd_range range;
	enum osd_status status = span(run);

	if (status == OSD_OK)
		status = lock(run, true, &range);
	if (status != OSD_OK)
		return status;
	status = change_with_locked(run, with);
	osd_object_unlock(run->object, &range);
	return status;
}

/* ---- all changes ------------------------------------------------------------------------- */

static enum osd_status change(struct change_run *run, const struct osd_change_with *with)
{
	if (!osd_data_change_permitted(run->object, run->change->flags))
		return OSD_E_CHECK;
	return with ? change_with(run, with) : change_alone(run);
}

/* Runs once more if a device was full and the head could move to the other device. */
enum osd_status osd_object_change_with(struct osd_object *object, struct osd_change *wanted,
				       const struct osd_change_with *with)
{
	struct change_run run = {.object = object, .change = wanted};
	enum osd_status status = change(&run, with);

	if (run.full && object->objects->heads.escape(object)) {
		run = (struct change_run){.object = object, .change = wanted};
		status = change(&run, with);
	}
	return status;
}

enum osd_status osd_object_change(struct osd_object *object, struct osd_change *wanted)
{
	return osd_object_change_with(object, wanted, NULL);
}

enum osd_status osd_object_write(struct osd_object *object, uint64_t offset, const void *data,
				 size_t length, unsigned flags)
{
	struct osd_piece piece = {offset, length};
	struct osd_change change = {.kind = OSD_CHANGE_WRITE,
				    .flags = flags,
				    .pieces = &piece,
				    .piece_count = 1,
				    .data = data};

	return osd_object_change(object, &change);
}
