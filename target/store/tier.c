/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tier.c -- see tier.h.  Here: opening the two files of an object, reading, writing, and their
 * length.  Elsewhere: extents and copies (tier_extents.c); all files by name (tier_stores.c). */
#include "store/tier_impl.h"

#include <stdatomic.h>
#include <string.h>

#include "base/lock.h"
#include "base/util.h"

void osd_tier_file_init(struct osd_tier_file *file, struct osd_tier *tier)
{
	*file = (struct osd_tier_file){.tier = tier, .head_bytes = OSD_TIER_ONE, .names_made = 1};
	osd_lock_init(&file->lock, OSD_RANK_TIER_FILE);
	osd_rwlock_init(&file->replaced, OSD_RANK_TIER_REPLACED);
}

void osd_tier_file_release(struct osd_tier_file *file)
{
	osd_tier_shut(file);
	osd_lock_destroy(&file->lock);
	osd_rwlock_destroy(&file->replaced);
}

struct osd_tier_handles osd_tier_detach(struct osd_tier_file *file)
{
	return (struct osd_tier_handles){atomic_exchange(&file->head, NULL),
					 atomic_exchange(&file->tail, NULL)};
}

void osd_tier_close_handles(struct osd_tier_handles *handles)
{
	osd_data_close_file(handles->head);
	osd_data_close_file(handles->tail);
}

void osd_tier_shut(struct osd_tier_file *file)
{
	struct osd_tier_handles handles = osd_tier_detach(file);

	osd_tier_close_handles(&handles);
}

void osd_tier_file_adopt(struct osd_tier_file *file, struct osd_tier_file *other)
{
	osd_write_lock(&file->replaced);
	osd_tier_shut(file);
	file->name = other->name;
	file->head_bytes = other->head_bytes;
	file->head_on = other->head_on;
	file->no_tail = false; /* a link may have given it one */
	atomic_store(&file->names_made, atomic_load(&other->names_made));
	atomic_store(&file->names_synced, atomic_load(&other->names_synced));
	atomic_store(&file->head, atomic_exchange(&other->head, NULL));
	atomic_store(&file->tail, atomic_exchange(&other->tail, NULL));
	osd_rw_unlock(&file->replaced);
	osd_tier_file_release(other);
}

bool osd_tier_file_is_open(struct osd_tier_file *file, uint64_t from, uint64_t to)
{
	return (from >= file->head_bytes ||
		atomic_load_explicit(&file->head, memory_order_acquire)) &&
	       (to <= file->head_bytes || atomic_load_explicit(&file->tail, memory_order_acquire));
}

enum osd_status osd_tier_open_part(struct osd_tier_file *file, bool tail, bool create,
				   struct osd_data_file **ret_file)
{
	_Atomic(struct osd_data_file *) *slot = tail ? &file->tail : &file->head;
	struct osd_data_file *open = atomic_load_explicit(slot, memory_order_acquire);
	enum osd_status status = OSD_OK;

	if (!open) {
		struct osd_data_name name = file->name;

		name.tail = tail;
		osd_lock(&file->lock);
		open = atomic_load_explicit(slot, memory_order_acquire);
		if (!open && tail && !create && file->no_tail)
			status = OSD_E_NO_OBJECT;
		else if (!open)
			status = osd_data_open_file(osd_tier_store_of(file, tail), &name,
						    create ? OSD_DATA_CREATE : 0, &open);
		if (tail)
			file->no_tail = status == OSD_E_NO_OBJECT;
		if (tail && create && status == OSD_OK) /* before another thread finds it open */
			atomic_fetch_add(&file->names_made, 1);
		if (status == OSD_OK)
			atomic_store_explicit(slot, open, memory_order_release);
		osd_unlock(&file->lock);
	}
	if (status == OSD_OK)
		*ret_file = open;
	return osd_tier_of_half(file, tail, status);
}

enum osd_status osd_tier_open_parts(struct osd_tier_file *file, bool all)
{
	struct osd_data_stat stat = {.size = UINT64_MAX};
	struct osd_data_file *part;
	enum osd_status status = osd_tier_open_part(file, false, false, &part);

	if (status == OSD_OK && osd_tier_has_tail(file) && !all)
		status = osd_tier_of_half(file, false, osd_data_stat(part, &stat));
	if (status != OSD_OK || !osd_tier_has_tail(file) || stat.size < file->head_bytes)
		return status;
	status = osd_tier_open_part(file, true, false, &part);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static size_t in_head(const struct osd_tier_file *file, uint64_t offset, size_t length)
{
	return offset >= file->head_bytes ? 0 : (size_t)OSD_MIN(length, file->head_bytes - offset);
}

/* If the object is long enough to need one of two files, that file must exist, or be a hole: otherwise
 * bytes have been lost.  Of one file the caller knows. */
static enum osd_status open_to_read(struct osd_tier_file *file, bool tail, struct osd_data_op *op,
				    bool holes)
{
	enum osd_status status =
		op->length ? osd_tier_open_part(file, tail, false, &op->file) : OSD_OK;

	if (status != OSD_E_NO_OBJECT || !osd_tier_has_tail(file))
		return status;
	op->length = 0;
	return holes ? OSD_OK : osd_tier_of_half(file, tail, OSD_E_MEDIUM);
}

static enum osd_status both_ended(const struct osd_tier_file *file, const struct osd_data_op *head,
				  const struct osd_data_op *tail)
{
	return head->status != OSD_OK ? osd_tier_of_half(file, false, head->status)
				      : osd_tier_of_half(file, true, tail->status);
}

enum osd_status osd_tier_read(struct osd_tier_file *file, uint64_t offset, void *buffer,
			      size_t length, unsigned flags, size_t *ret_read)
{
	size_t first = in_head(file, offset, length);
	unsigned data_flags = flags & ~OSD_TIER_HOLES;
	bool holes = flags & OSD_TIER_HOLES;
	struct osd_data_op head = {.act = OSD_DATA_READ,
				   .offset = offset,
				   .buffer = buffer,
				   .length = first,
				   .flags = data_flags},
			   tail = {.act = OSD_DATA_READ,
				   .offset = offset + first - file->head_bytes,
				   .buffer = (uint8_t *)buffer + first,
				   .length = length - first,
				   .flags = data_flags};
	enum osd_status status = open_to_read(file, false, &head, holes);

	if (status == OSD_OK)
		status = open_to_read(file, true, &tail, holes);
	if (status != OSD_OK)
		return status;
	osd_data_both(flags & OSD_DATA_READ_NOWAIT ? NULL : file->tier->both, &head, &tail);
	status = both_ended(file, &head, &tail);
	if (status != OSD_OK)
		return status;
	if (tail.done && head.done < first) /* a head that ends early is continued by zeros */
		memset((uint8_t *)buffer + head.done, 0, first - head.done);
	*ret_read = tail.done ? first + tail.done : head.done;
	return OSD_OK;
}

enum osd_status osd_tier_begin_tail(struct osd_tier_file *file, struct osd_data_file **ret_tail)
{
	struct osd_data_file *head;
	struct osd_data_stat stat;
	enum osd_status status;

	if (atomic_load_explicit(&file->tail, memory_order_acquire))
		return osd_tier_open_part(file, true, false, ret_tail);
	status = osd_tier_open_part(file, false, true, &head);
	if (status == OSD_E_HEAD_ABSENT) /* a tail cannot exist without its head */
		return osd_tier_open_part(file, true, false, ret_tail) == OSD_OK ? OSD_OK : status;
	if (status == OSD_OK)
		status = osd_data_stat(head, &stat);
	if (status == OSD_OK && stat.size < file->head_bytes)
		status = osd_data_truncate(head, file->head_bytes);
	status = osd_tier_of_half(file, false, status);
	return status == OSD_OK ? osd_tier_open_part(file, true, true, ret_tail) : status;
}

enum osd_status osd_tier_lost(struct osd_tier_file *file, uint64_t length)
{
	struct osd_data_file *part;
	enum osd_status status = OSD_OK;
	bool tail = false;

	if (OSD_MIN(length, file->head_bytes) > 0)
		status = osd_tier_open_part(file, false, false, &part);
	if (status == OSD_OK && length > file->head_bytes) {
		tail = true;
		status = osd_tier_open_part(file, true, false, &part);
	}
	return status == OSD_E_NO_OBJECT ? osd_tier_of_half(file, tail, OSD_E_MEDIUM) : status;
}

enum osd_status osd_tier_miss(struct osd_tier_file *file, uint64_t length, uint64_t from,
			      uint64_t to)
{
	uint64_t in_head = OSD_MIN(length, file->head_bytes);
	bool wants_tail = to > file->head_bytes, tail_there = false;
	struct osd_data_file *part;

	if (wants_tail && length > file->head_bytes) {
		tail_there = osd_tier_open_part(file, true, false, &part) != OSD_E_NO_OBJECT;
		if (!tail_there && !(from <= file->head_bytes && to >= length))
			return osd_tier_of_half(file, true, OSD_E_MEDIUM);
	}
	/* The first write to a tail needs the head first. */
	if (in_head > 0 && (from < file->head_bytes || (wants_tail && !tail_there)) &&
	    osd_tier_open_part(file, false, false, &part) == OSD_E_NO_OBJECT &&
	    !(from == 0 && to >= in_head))
		return osd_tier_of_half(file, false, OSD_E_MEDIUM);
	return OSD_OK;
}

/* Before either half is written, both files exist, and the head is as long as a tail requires.  So
 * a crash between the halves mixes old and new data in the range of this write only. */
enum osd_status osd_tier_write(struct osd_tier_file *file, uint64_t offset, const void *bytes,
			       size_t length)
{
	size_t first = in_head(file, offset, length);
	struct osd_data_op head = {.act = OSD_DATA_WRITE,
				   .offset = offset,
				   .bytes = bytes,
				   .length = first},
			   tail = {.act = OSD_DATA_WRITE,
				   .offset = offset + first - file->head_bytes,
				   .bytes = (const uint8_t *)bytes + first,
				   .length = length - first};
	enum osd_status status = OSD_OK;

	if (head.length)
		status = osd_tier_open_part(file, false, true, &head.file);
	if (status == OSD_OK && tail.length)
		status = osd_tier_begin_tail(file, &tail.file);
	if (status != OSD_OK)
		return status;
	osd_data_both(file->tier->both, &head, &tail);
	return both_ended(file, &head, &tail);
}

/* An empty tail file must not count, because the head may become shorter than head_bytes.  An
 * object with a short head has no tail. */
static enum osd_status drop_tail(struct osd_tier_file *file)
{
	struct osd_data_name tail = file->name;
	enum osd_status status = osd_tier_open_parts(file, false);

	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	if (!atomic_load(&file->tail))
		return OSD_OK;
	tail.tail = true;
	osd_data_close_file(atomic_exchange(&file->tail, NULL));
	return osd_tier_of_half(file, true, osd_data_remove(osd_tier_store_of(file, true), &tail));
}

enum osd_status osd_tier_truncate(struct osd_tier_file *file, uint64_t size)
{
	struct osd_data_file *part;
	enum osd_status status;

	if (osd_tier_has_tail(file) && size > file->head_bytes) {
		status = osd_tier_begin_tail(file, &part);
		if (status == OSD_OK)
			status = osd_data_truncate(part, size - file->head_bytes);
		return osd_tier_of_half(file, true, status);
	}
	if (osd_tier_has_tail(file)) {
		status = drop_tail(file);
		if (status != OSD_OK)
			return status;
	}
	status = osd_tier_open_part(file, false, size > 0, &part);
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	return osd_tier_of_half(file, false,
				status == OSD_OK ? osd_data_truncate(part, size) : status);
}

enum osd_status osd_tier_zero(struct osd_tier_file *file, uint64_t offset, uint64_t length)
{
	uint64_t in_head =
		offset >= file->head_bytes ? 0 : OSD_MIN(length, file->head_bytes - offset);
	struct osd_data_file *part;
	enum osd_status status = OSD_OK;

	if (in_head) {
		status = osd_tier_open_part(file, false, false, &part);
		if (status == OSD_OK)
			status =
				osd_tier_of_half(file, false, osd_data_zero(part, offset, in_head));
	}
	if (status == OSD_OK && in_head < length) {
		status = osd_tier_open_part(file, true, false, &part);
		if (status == OSD_OK)
			status = osd_tier_of_half(file, true,
						  osd_data_zero(part,
								offset + in_head - file->head_bytes,
								length - in_head));
	}
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

enum osd_status osd_tier_set_modified(struct osd_tier_file *file, uint64_t modified_ms)
{
	struct osd_data_file *parts[] = {atomic_load(&file->head), atomic_load(&file->tail)};
	enum osd_status status = OSD_OK;

	for (size_t i = 0; status == OSD_OK && i < OSD_ARRAY_SIZE(parts); i++)
		if (parts[i])
			status = osd_data_set_modified(parts[i], modified_ms);
	return status;
}

/* Opens the files that may have unwritten data.  An object with a short head has no tail, and a
 * device that is absent has nothing to write. */
static enum osd_status open_written(struct osd_tier_file *file, struct osd_data_file **ret_head,
				    struct osd_data_file **ret_tail)
{
	struct osd_data_stat stat = {.size = UINT64_MAX};
	enum osd_status status = osd_tier_open_part(file, false, false, ret_head);

	if (status == OSD_OK && osd_tier_has_tail(file))
		status = osd_tier_of_half(file, false, osd_data_stat(*ret_head, &stat));
	if (!osd_tier_has_tail(file) || (status != OSD_OK && status != OSD_E_HEAD_ABSENT) ||
	    stat.size < file->head_bytes)
		return status;
	status = osd_tier_open_part(file, true, false, ret_tail);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static enum osd_status sync_names(struct osd_tier_file *file, bool tail)
{
	return osd_tier_of_half(
		file, tail, osd_data_sync_directories(osd_tier_store_of(file, tail), &file->name));
}

/* Another thread that syncs meanwhile does not rely on this one for the names. */
static enum osd_status sync_held(struct osd_tier_file *file)
{
	struct osd_data_op head = {.act = OSD_DATA_SYNC}, tail = {.act = OSD_DATA_SYNC};
	uint64_t made = atomic_load(&file->names_made);
	bool names = atomic_load(&file->names_synced) < made;
	enum osd_status status = open_written(file, &head.file, &tail.file);

	if (status != OSD_OK)
		return status;
	osd_data_both(file->tier->both, &head, &tail);
	status = both_ended(file, &head, &tail);
	if (status == OSD_OK && names && head.file)
		status = sync_names(file, false);
	if (status == OSD_OK && names && tail.file &&
	    (!head.file || osd_tier_store_of(file, true) != osd_tier_store_of(file, false)))
		status = sync_names(file, true);
	if (status == OSD_OK && names)
		osd_raise_to(&file->names_synced, made);
	return status;
}

enum osd_status osd_tier_sync(struct osd_tier_file *file)
{
	enum osd_status status;

	osd_read_lock(&file->replaced);
	status = sync_held(file);
	osd_rw_unlock(&file->replaced);
	return status;
}

enum osd_status osd_tier_share(struct osd_tier_file *file, int *ret_head_fd, int *ret_tail_fd)
{
	OSD_CLEANUP_CLOSE int head_fd = -1;
	int tail_fd = -1;
	struct osd_data_file *tail;
	enum osd_status status = osd_tier_open_parts(file, false);

	if (status == OSD_OK)
		status = osd_data_share(atomic_load(&file->head), &head_fd);
	tail = atomic_load(&file->tail);
	if (status == OSD_OK && tail)
		status = osd_data_share(tail, &tail_fd);
	if (status != OSD_OK)
		return status;
	*ret_head_fd = head_fd;
	*ret_tail_fd = tail_fd;
	head_fd = -1;
	return OSD_OK;
}
