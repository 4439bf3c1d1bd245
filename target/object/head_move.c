/* SPDX-License-Identifier: GPL-2.0-or-later */
/* head_move.c -- moves the head of one object to the other device.
 *
 * The object gets files of the next generation: a copy of the head, and another name for the tail
 * file, which stays where it is.  In this order:
 *
 *   META's N record names the new files      recovery removes what it names
 *   the head is copied and synced            in pieces, others read and write meanwhile
 *   all of the object is locked; what was written meanwhile: copied again
 *   the tail gets its second name
 *   one durable commit: the record has the new generation and device, and the old generation as
 *   spare; N goes                            recovery removes the files of the spare
 *   the old files are removed
 *
 * So one generation is complete at every moment, and the record names it.  A sandbox that holds
 * descriptors learns from the version page that it must ask for new ones (version.c).  Its old files are
 * removed, never cut. */
#include "object/internal.h"

#include "base/util.h"

#define PIECE_BYTES (UINT64_C(256) << 10)
#define TRIES	    4 /* the last one copies with the object locked */

struct move {
	struct osd_object *object;
	struct osd_objects *objects;
	struct osd_place place;
	enum osd_tier_head_on to;
	uint64_t generation;
	struct osd_tier_file fresh;
	bool copied; /* as the object was at `changes` */
	uint64_t changes;
	uint64_t bytes; /* of the head */
};

static uint64_t head_length(const struct osd_object *object)
{
	return OSD_MIN(atomic_load(&object->length), object->file.head_bytes);
}

/* ---- copying ----------------------------------------------------------------------------------- */

static enum osd_status copy_piece(struct move *move, uint64_t at, uint64_t *ret_end)
{
	struct osd_object *object = move->object;
	uint64_t end = head_length(object);

	*ret_end = end;
	return at < end ? osd_copy_extents(&object->file, at, OSD_MIN(PIECE_BYTES, end - at),
					   &move->fresh, at, NULL)
			: OSD_OK;
}

/* Copies one piece with the object locked against writers.  OSD_E_CONFLICT: a WRITE has changed the
 * object. */
static enum osd_status copy_piece_shared(struct move *move, uint64_t at, uint64_t *ret_end)
{
	struct osd_object *object = move->object;
	struct osd_range range;
	uint64_t changes;
	enum osd_status status = osd_object_lock_read(object, &range, 0, UINT64_MAX, false);

	if (status != OSD_OK)
		return status;
	osd_lock(&object->mutex);
	changes = object->changes;
	osd_unlock(&object->mutex);
	if (at == 0)
		move->changes = changes;
	status = changes == move->changes ? copy_piece(move, at, ret_end) : OSD_E_CONFLICT;
	osd_object_unlock_read(object, &range);
	return status;
}

/* The fresh head may hold bytes of an earlier attempt. */
static enum osd_status copy_ahead(struct move *move, const struct osd_head_pace *pace)
{
	uint64_t at = 0, end = 1;
	enum osd_status status = osd_tier_truncate(&move->fresh, 0);

	while (status == OSD_OK && at < end) {
		status = copy_piece_shared(move, at, &end);
		at += PIECE_BYTES;
		if (status == OSD_OK && !pace->step(pace->arg, OSD_MIN(PIECE_BYTES, end)))
			return OSD_E_TASK_ABORTED;
	}
	/* The blocks go to the disk before the object is locked, so that no command waits for them. */
	if (status == OSD_OK) {
		status = osd_tier_sync(&move->fresh);
		if (status == OSD_E_NO_OBJECT) /* all of it is a hole */
			status = OSD_OK;
	}
	move->copied = status == OSD_OK;
	return status == OSD_E_CONFLICT ? OSD_OK : status;
}

/* With the whole object locked. */
static enum osd_status copy_locked(struct move *move)
{
	uint64_t end = head_length(move->object), at = 0;
	enum osd_status status = osd_tier_truncate(&move->fresh, 0);

	for (; status == OSD_OK && at < end; at += PIECE_BYTES)
		status = copy_piece(move, at, &end);
	return status;
}

/* ---- the switch; with the whole object locked --------------------------------------------------- */

/* Gives the head its length, makes it durable, and sets its time to that of the last write: a move is
 * no write. */
static enum osd_status finish_head(struct move *move)
{
	struct osd_object *object = move->object;
	enum osd_status status = osd_tier_truncate(&move->fresh, move->bytes);

	if (status == OSD_OK && move->bytes > 0) {
		osd_tier_set_modified(&move->fresh,
				      atomic_load(&object->times[OSD_T_DATA_MODIFIED]));
		status = osd_tier_sync(&move->fresh);
	}
	return status;
}

static enum osd_status link_tail(struct move *move)
{
	struct osd_data *store = move->objects->tier.tail;
	struct osd_data_name from = move->object->file.name, to = move->fresh.name;
	enum osd_status status;

	if (atomic_load(&move->object->length) <= move->object->file.head_bytes)
		return OSD_OK;
	from.tail = to.tail = true;
	status = osd_data_link(store, &from, &to);
	if (status == OSD_OK)
		return osd_data_sync_directories(store, &to);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status; /* a hole to the end */
}

static void change_moved(struct osd_record *record, void *arg)
{
	struct move *move = arg;

	record->spare_generation = record->generation;
	record->generation = move->generation;
	record->head_on = (uint8_t)move->to;
}

static void adopt(struct move *move)
{
	struct osd_object *object = move->object;
	struct osd_data_name old_name = object->file.name;
	uint64_t part = osd_head_part(object->file.head_bytes, atomic_load(&object->length));

	osd_heads_count(object->partition, (uint8_t)move->to, 0, part);
	osd_heads_count(object->partition, (uint8_t)object->file.head_on, part, 0);
	osd_tier_file_adopt(&object->file, &move->fresh);
	osd_tier_file_init(&move->fresh, object->file.tier); /* nothing is left in it */
	object->generation = move->generation;		     /* first: see commit() */
	object->spare_generation = old_name.generation;
	osd_version_generation(object);
	osd_object_remove_spare(object); /* else when settled, or at recovery */
}

static enum osd_status commit(struct move *move)
{
	struct osd_object *object = move->object;
	struct osd_key note = osd_key_files(OSD_META_DRAFT_FILES, &move->place, move->generation);
	enum osd_status status;

	/* Set before the commit: a thread that removes the object right after the commit finds the
	 * entry by this generation. */
	object->spare_generation = move->generation;
	status = osd_object_change_record(object, true, change_moved, move, &note);
	if (status == OSD_OK)
		adopt(move);
	else
		object->spare_generation = 0;
	return status;
}

/* copy_now: bytes written since the copy are copied here.  Otherwise such a write gives OSD_E_CONFLICT. */
static enum osd_status switch_locked(struct move *move, bool copy_now, bool forced)
{
	struct osd_object *object = move->object;
	enum osd_status status = OSD_OK;

	if (object->file.head_on == move->to)
		return OSD_E_EXISTS;
	/* A write may have changed the length since the mover looked at it. */
	if (!forced && osd_head_goal(move->objects, move->fresh.head_bytes,
				     atomic_load(&object->length)) != move->to)
		return OSD_E_EXISTS;
	if (object->spare_generation || object->untrimmed ||
	    (!forced && atomic_load(&object->shares) > 0))
		return OSD_E_BUSY;
	if (!move->copied || object->changes != move->changes + 1) /* ours is the last */
		status = copy_now ? copy_locked(move) : OSD_E_CONFLICT;
	move->bytes = head_length(object);
	if (status == OSD_OK)
		status = finish_head(move);
	if (status == OSD_OK)
		status = link_tail(move);
	return status == OSD_OK ? commit(move) : status;
}

static enum osd_status switch_over(struct move *move, bool copy_now, bool forced)
{
	struct osd_object *object = move->object;
	struct osd_range range;
	enum osd_status status = osd_object_settle(object, true, false);

	if (status == OSD_OK)
		status = osd_object_lock(object, &range, 0, UINT64_MAX, true);
	if (status != OSD_OK)
		return status;
	status = switch_locked(move, copy_now, forced);
	osd_object_unlock(object, &range);
	return status;
}

/* ---- what others see ---------------------------------------------------------------------------- */

static enum osd_status run(struct move *move, const struct osd_head_pace *pace)
{
	enum osd_status status = OSD_E_CONFLICT;

	for (int i = 1; status == OSD_E_CONFLICT && i <= TRIES; i++) {
		status = pace ? copy_ahead(move, pace) : OSD_OK;
		if (status == OSD_OK)
			status = switch_over(move, !pace || i == TRIES, !pace);
	}
	return status;
}

/* The device and the head size of the object.  OSD_E_BUSY: it has no head, or none yet. */
static enum osd_status look(struct osd_object *object, enum osd_tier_head_on *ret_on,
			    uint64_t *ret_head_bytes, uint64_t *ret_length)
{
	struct osd_range range;
	enum osd_status status = osd_object_lock_read(object, &range, 0, UINT64_MAX, false);

	if (status != OSD_OK)
		return status;
	*ret_on = object->file.head_on;
	*ret_head_bytes = object->file.head_bytes;
	*ret_length = head_length(object);
	if (!object->has_files || *ret_head_bytes == OSD_TIER_ONE)
		status = OSD_E_BUSY;
	if (status == OSD_OK)
		status = osd_object_lost(object, *ret_length);
	osd_object_unlock_read(object, &range);
	return status;
}

/* Files that cannot be removed now are removed when the store is opened. */
static void give_up(struct move *move)
{
	struct osd_objects *objects = move->objects;
	const struct osd_partition *partition = move->object->partition;

	if (osd_tier_remove(&objects->tier, &move->fresh.name) != OSD_OK)
		return;
	if (atomic_load(&partition->data.removed)) /* its directories may be gone already */
		osd_tier_remove_partition(&objects->tier, partition->id, partition->incarnation);
	osd_files_note(objects, &move->place, move->generation, false);
}

enum osd_status osd_head_move(struct osd_object *object, enum osd_tier_head_on to,
			      const struct osd_head_pace *pace, uint64_t *ret_bytes)
{
	struct osd_objects *objects = object->objects;
	struct move move = {
		.object = object,
		.objects = objects,
		.to = to,
		.place = osd_object_place(object),
		.generation = atomic_fetch_add(&objects->next_generation, 1),
	};
	enum osd_tier_head_on on;
	uint64_t head_bytes, length;
	enum osd_status status = look(object, &on, &head_bytes, &length);

	if (status == OSD_OK)
		status = osd_files_note(objects, &move.place, move.generation, true);
	if (status != OSD_OK)
		return status;
	osd_tier_file_init(&move.fresh, &objects->tier);
	move.fresh.name = osd_object_data_name(object, move.generation);
	move.fresh.head_bytes = head_bytes;
	move.fresh.head_on = to;
	status = run(&move, pace);
	if (status == OSD_OK) {
		atomic_fetch_add(&objects->heads.moved[to], 1);
		atomic_fetch_add(&objects->heads.moved_bytes[to], move.bytes);
		*ret_bytes = move.bytes;
	} else {
		osd_tier_shut(&move.fresh);
		give_up(&move);
	}
	osd_tier_file_release(&move.fresh);
	return status;
}

/* A head on the wrong device is better than a write that fails. */
bool osd_head_escape(struct osd_object *object)
{
	struct osd_objects *objects = object->objects;
	enum osd_tier_head_on on, to;
	uint64_t head_bytes, length, bytes;

	if (!osd_heads_two_roots(objects) || look(object, &on, &head_bytes, &length) != OSD_OK)
		return false;
	to = on == OSD_HEAD_ON_TAIL ? OSD_HEAD_ON_HEAD : OSD_HEAD_ON_TAIL;
	if (to == OSD_HEAD_ON_HEAD &&
	    (atomic_load(&objects->heads.draining) || !osd_heads_below(objects, 100, length)))
		return false;
	if (osd_head_move(object, to, NULL, &bytes) != OSD_OK)
		return false;
	atomic_store(&objects->heads.wanted, true);
	return true;
}
