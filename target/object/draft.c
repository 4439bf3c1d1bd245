/* SPDX-License-Identifier: GPL-2.0-or-later */
/* draft.c -- user objects that come into being together with their data (CREATE AND WRITE, COPY USER
 * OBJECTS).
 *
 * The files are written first, under an id and a generation of their own.  Until the object exists,
 * META's N record lists them as files of a draft.  One transaction writes the object's record and
 * attributes and removes the N record, so no object has only a part of its data.  The files of a
 * failed draft are removed at once, or when the store is opened the next time. */
#include "object/internal.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/util.h"
#include "object/draft.h"
#include "object/view_impl.h"

struct osd_draft {
	struct osd_objects *objects;
	struct osd_partition *partition; /* owned reference */
	struct osd_place place;
	struct osd_record record;
	struct osd_tier_file file;
	struct osd_object *source; /* borrowed; with range locked for reading */
	struct osd_range range;
	uint64_t charged;
	bool committed;
	bool picked; /* the id is ours, and nobody has seen it */
	bool placed; /* where the head goes is decided */
};

/* ---- life -------------------------------------------------------------------------------- */

/* The id is the requested one, or the next free one.  Another command can get it only by a request for
 * it. */
static enum osd_status take_id(struct osd_draft *draft, uint64_t requested_id)
{
	struct osd_key key;
	bool taken;
	enum osd_status status;

	if (requested_id == 0) {
		status = osd_object_take_ids(draft->objects, NULL, draft->partition, 1,
					     &draft->place.object_id);
		draft->picked = status == OSD_OK;
		return status;
	}
	if (requested_id < OSD_FIRST_ID || requested_id == UINT64_MAX)
		return OSD_E_EXISTS; /* reserved */
	draft->place.object_id = requested_id;
	key = osd_key_object(&draft->place);
	status = osd_record_is_there(draft->objects, NULL, OSD_KV_OBJECTS, osd_key_bytes(&key),
				     &taken);
	return status == OSD_OK && taken ? OSD_E_EXISTS : status;
}

enum osd_status osd_draft_begin(struct osd_objects *objects, uint64_t partition_id,
				uint64_t requested_id, struct osd_draft **ret_draft)
{
	struct osd_draft *draft = calloc(1, sizeof(*draft));
	enum osd_status status;

	if (!draft)
		return OSD_E_NO_MEMORY;
	draft->objects = objects;
	osd_tier_file_init(&draft->file, &objects->tier);
	status = osd_partition_get(objects, NULL, partition_id, &draft->partition);
	if (status == OSD_OK && atomic_load(&objects->disk_full))
		status = OSD_E_NO_SPACE;
	if (status == OSD_OK) {
		draft->place = (struct osd_place){partition_id, draft->partition->incarnation, 0};
		status = take_id(draft, requested_id);
	}
	if (status != OSD_OK) {
		osd_draft_free(draft);
		return status;
	}
	osd_fresh_record(objects, draft->partition, osd_wall_msec(), &draft->record);
	draft->record.generation = atomic_fetch_add(&objects->next_generation, 1);
	draft->file.name = osd_place_data_name(&draft->place, draft->record.generation);
	draft->file.head_bytes = draft->record.head_bytes;
	*ret_draft = draft;
	return OSD_OK;
}

/* Returns the id to the free ones, unless a later one was given out or a client has used this one: no
 * id is given out twice. */
static void give_id_back(struct osd_draft *draft)
{
	uint64_t next = draft->place.object_id + 1;

	if (draft->picked && !draft->committed && atomic_load(&draft->partition->id_mark) < next)
		atomic_compare_exchange_strong(&draft->partition->next_object_id, &next,
					       draft->place.object_id);
}

struct files_note {
	struct osd_key key;
	bool there;
};

static enum osd_status put_files_note(struct osd_kv_txn *kv, void *arg)
{
	const struct files_note *note = arg;

	return note->there ? osd_key_put(kv, OSD_KV_META, &note->key, "", 0)
			   : osd_kv_remove(kv, OSD_KV_META, osd_key_bytes(&note->key));
}

enum osd_status osd_files_note(struct osd_objects *objects, const struct osd_place *place,
			       uint64_t generation, bool there)
{
	struct files_note note = {osd_key_files(OSD_META_DRAFT_FILES, place, generation), there};

	return osd_own_run(objects, 0, put_files_note, &note);
}

static enum osd_status note_files(struct osd_draft *draft, bool there)
{
	return osd_files_note(draft->objects, &draft->place, draft->record.generation, there);
}

void osd_draft_free(struct osd_draft *draft)
{
	if (!draft)
		return;
	osd_draft_let_go(draft);
	osd_tier_file_release(&draft->file);
	if (!draft->committed && (draft->record.flags & OSD_REC_HAS_FILES)) {
		/* Files that cannot be removed now are removed when the store is opened. */
		if (osd_tier_remove(&draft->objects->tier, &draft->file.name) == OSD_OK)
			note_files(draft, false);
	}
	give_id_back(draft);
	if (!draft->committed && draft->partition)
		osd_uncharge(draft->objects, &draft->partition->data, draft->charged);
	osd_partition_put(draft->partition);
	free(draft);
}

/* ---- data -------------------------------------------------------------------------------- */

/* Charges for length bytes in all, before the first of them is written. */
static enum osd_status extend(struct osd_draft *draft, uint64_t length)
{
	enum osd_status status = OSD_OK;

	if (length > draft->record.max_length)
		return OSD_E_QUOTA;
	if (length > draft->charged)
		status = osd_charge(draft->objects, &draft->partition->data,
				    length - draft->charged, false);
	if (status != OSD_OK)
		return status;
	draft->charged = OSD_MAX(draft->charged, length);
	if (length > 0 && !(draft->record.flags & OSD_REC_HAS_FILES)) {
		if (!draft->placed)
			osd_head_place(draft->objects, length, &draft->record);
		draft->file.head_bytes = draft->record.head_bytes;
		draft->file.head_on = draft->record.head_on;
		status = note_files(draft, true);
		if (status == OSD_OK)
			draft->record.flags |= OSD_REC_HAS_FILES;
	}
	return status;
}

/* Whether to write the files again with the head on the HDD, because the SSD is full. */
static bool escape(struct osd_draft *draft, enum osd_status status)
{
	if (status != OSD_E_NO_SPACE || !osd_heads_two_roots(draft->objects) ||
	    draft->file.head_on == OSD_HEAD_ON_TAIL)
		return false;
	osd_tier_shut(&draft->file);
	if (osd_tier_remove(&draft->objects->tier, &draft->file.name) != OSD_OK)
		return false;
	draft->record.head_on = OSD_HEAD_ON_TAIL;
	draft->file.head_on = OSD_HEAD_ON_TAIL;
	atomic_store(&draft->objects->heads.wanted, true);
	return true;
}

static enum osd_status write_pieces(struct osd_draft *draft, const struct osd_piece *pieces,
				    size_t count, const uint8_t *bytes)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < count; i++) {
		if (pieces[i].length == 0)
			continue; /* also if there are no bytes */
		status = osd_tier_write(&draft->file, pieces[i].offset, bytes,
					(size_t)pieces[i].length);
		bytes += pieces[i].length;
	}
	return status;
}

enum osd_status osd_draft_write(struct osd_draft *draft, const struct osd_piece *pieces,
				size_t count, const void *data, uint64_t *ret_length)
{
	uint64_t length = draft->record.length, end;
	enum osd_status status;

	for (size_t i = 0; i < count; i++) {
		if (!osd_add_u64(pieces[i].offset, pieces[i].length, &end))
			return OSD_E_CDB_FIELD;
		if (pieces[i].length > 0)
			length = OSD_MAX(length, end);
	}
	status = extend(draft, length);
	if (status != OSD_OK)
		return status;
	do
		status = write_pieces(draft, pieces, count, data);
	while (escape(draft, status));
	if (status == OSD_OK)
		*ret_length = draft->record.length = length;
	return status;
}

static enum osd_status copy_files(struct osd_draft *draft, uint64_t length,
				  enum osd_copy_method method, const struct osd_copy_how *how)
{
	struct osd_object *source = draft->source;
	enum osd_status status = method == OSD_COPY_BYTES
					 ? OSD_E_UNSUPPORTED
					 : osd_tier_clone(&source->file, &draft->file);

	if (status == OSD_E_UNSUPPORTED && method != OSD_COPY_SHARE)
		status = osd_copy_extents(&source->file, 0, length, &draft->file, 0, how);
	if (status == OSD_OK)
		status = osd_tier_truncate(&draft->file, length);
	return status;
}

/* Called with the source locked.  Its files may be longer or shorter than the object.  The copy has the
 * same head size.  If it shares blocks, its head is on the same device as the source's. */
static enum osd_status copy_locked(struct osd_draft *draft, enum osd_copy_method method,
				   const struct osd_copy_how *how)
{
	const struct osd_tier_file *source = &draft->source->file;
	uint64_t length = atomic_load(&draft->source->length);
	enum osd_status status;

	draft->record.head_bytes = source->head_bytes;
	draft->record.head_on = (uint8_t)source->head_on;
	draft->placed = method == OSD_COPY_SHARE;
	status = osd_object_lost(draft->source, length);
	if (status == OSD_OK)
		status = extend(draft, length);
	if (status != OSD_OK || length == 0)
		return status;
	do
		status = copy_files(draft, length, method, how);
	while (method != OSD_COPY_SHARE && escape(draft, status));
	if (status == OSD_OK)
		draft->record.length = length;
	return status;
}

enum osd_status osd_draft_copy(struct osd_draft *draft, struct osd_object *source,
			       enum osd_copy_method method, bool (*stop)(void *arg), void *arg,
			       uint64_t *ret_length)
{
	struct osd_copy_how how = {.flags = method == OSD_COPY_BYTES ? OSD_DATA_COPY_BYTES : 0,
				   .stop = stop,
				   .arg = arg};
	enum osd_status status =
		osd_object_lock_read(source, &draft->range, 0, UINT64_MAX, false);

	if (status != OSD_OK)
		return status;
	draft->source = source;
	status = copy_locked(draft, method, &how);
	osd_cache_note_open(source);
	if (status == OSD_OK)
		*ret_length = draft->record.length;
	return status;
}

void osd_draft_let_go(struct osd_draft *draft)
{
	if (!draft->source)
		return;
	osd_object_unlock_read(OSD_STEAL(draft->source), &draft->range);
}

enum osd_status osd_draft_sync(struct osd_draft *draft, unsigned flags)
{
	bool wanted = (flags & OSD_DATA_FUA) || draft->objects->sync_data;

	return wanted && (draft->record.flags & OSD_REC_HAS_FILES) ? osd_tier_sync(&draft->file)
								   : OSD_OK;
}

bool osd_objects_can_share_blocks(struct osd_objects *objects)
{
	return osd_tier_can_clone(&objects->tier);
}

/* ---- the object -------------------------------------------------------------------------- */

/* effect: arg the draft. */
static void run_put(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	struct osd_draft *draft = effect->arg;

	(void)txn;
	draft->committed = committed;
	if (!committed)
		return;
	osd_heads_count(draft->partition, draft->record.head_on, 0,
			osd_head_part(draft->record.head_bytes, draft->record.length));
	osd_head_placed(draft->objects, &draft->record);
}

/* The partition is held, and the record is complete. */
static enum osd_status begin_put(struct osd_txn *txn, struct osd_draft *draft)
{
	enum osd_status status =
		osd_txn_add_effect(txn, (struct osd_effect){.run = run_put, .arg = draft});

	if (status == OSD_OK)
		status = osd_txn_let_go(txn);
	if (status != OSD_OK)
		return status;
	draft->record.reserved_bytes = draft->record.length;
	for (size_t i = 0; i < OSD_T_COUNT; i++)
		draft->record.times[i] = txn->now_ms;
	return osd_partition_hold(txn, draft->partition, false, NULL);
}

/* The files belong to an object now. */
static enum osd_status end_put(struct osd_txn *txn, const struct osd_draft *draft)
{
	struct osd_key key =
		osd_key_files(OSD_META_DRAFT_FILES, &draft->place, draft->record.generation);

	return draft->record.flags & OSD_REC_HAS_FILES
		       ? osd_kv_remove(txn->kv, OSD_KV_META, osd_key_bytes(&key))
		       : OSD_OK;
}

enum osd_status osd_draft_put(struct osd_txn *txn, struct osd_draft *draft, uint64_t *ret_id)
{
	enum osd_status status = begin_put(txn, draft);

	if (status != OSD_OK)
		return status;
	status = osd_object_put_new(txn, draft->partition, draft->place.object_id, 1,
				    &draft->record, ret_id);
	if (status == OSD_E_EXISTS)
		draft->picked = false; /* somebody asked for it */
	if (status == OSD_OK)
		status = end_put(txn, draft);
	return status == OSD_OK ? osd_views_add(txn, draft->partition, *ret_id, 1) : status;
}

enum osd_status osd_draft_begin_object(struct osd_txn *txn, struct osd_draft *draft,
				       uint64_t *ret_id)
{
	enum osd_status status = begin_put(txn, draft);

	if (status == OSD_OK)
		status = end_put(txn, draft);
	if (status != OSD_OK)
		return status;
	*ret_id = draft->place.object_id;
	draft->record.flags |= OSD_REC_NAMED;
	status = osd_object_begin_new(txn, draft->partition, &draft->record, ret_id);
	return status == OSD_OK ? osd_views_add(txn, draft->partition, *ret_id, 1) : status;
}

uint64_t osd_draft_length(const struct osd_draft *draft)
{
	return draft->record.length;
}

uint64_t osd_draft_partition(const struct osd_draft *draft)
{
	return draft->place.partition_id;
}
