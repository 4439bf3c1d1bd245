/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tier.c -- see tier.h. */
#include "store/tier.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

void osd_tier_close(struct osd_tier *tier)
{
	osd_data_close(tier->head);
	osd_data_close(tier->tail);
	osd_both_close(tier->both);
	*tier = (struct osd_tier){0};
}

void osd_tier_file_init(struct osd_tier_file *file, struct osd_tier *tier)
{
	*file = (struct osd_tier_file){.tier = tier, .head_bytes = OSD_TIER_ONE};
	pthread_mutex_init(&file->lock, NULL);
	pthread_rwlock_init(&file->replaced, NULL);
}

void osd_tier_file_release(struct osd_tier_file *file)
{
	osd_tier_shut(file);
	pthread_mutex_destroy(&file->lock);
	pthread_rwlock_destroy(&file->replaced);
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
	pthread_rwlock_wrlock(&file->replaced);
	osd_tier_shut(file);
	file->name = other->name;
	file->head_bytes = other->head_bytes;
	file->head_on = other->head_on;
	file->no_tail = false; /* it may have been given one by link */
	atomic_store(&file->head, atomic_exchange(&other->head, NULL));
	atomic_store(&file->tail, atomic_exchange(&other->tail, NULL));
	pthread_rwlock_unlock(&file->replaced);
	osd_tier_file_release(other);
}

bool osd_tier_file_is_open(struct osd_tier_file *file)
{
	return atomic_load_explicit(&file->head, memory_order_acquire) != NULL;
}

static bool has_tail(const struct osd_tier_file *file)
{
	return file->head_bytes != OSD_TIER_ONE;
}

/* An empty head is a name only, and not worth another device. */
static struct osd_data *store_of(const struct osd_tier_file *file, bool tail)
{
	bool on_tail = (tail || file->head_on == OSD_HEAD_ON_TAIL || file->head_bytes == 0) &&
		       file->tier->tail;

	return on_tail ? file->tier->tail : file->tier->head;
}

/* Which half a failing device has. */
static enum osd_status of_half(const struct osd_tier_file *file, bool tail, enum osd_status status)
{
	if (status != OSD_E_MEDIUM || !has_tail(file))
		return status;
	return tail ? OSD_E_TAIL_FAILED : OSD_E_HEAD_FAILED;
}

/* One of the two files; OSD_E_NO_OBJECT when it is not there and need not be made. */
static enum osd_status open_part(struct osd_tier_file *file, bool tail, bool create,
				 struct osd_data_file **ret_file)
{
	_Atomic(struct osd_data_file *) *slot = tail ? &file->tail : &file->head;
	struct osd_data_file *open = atomic_load_explicit(slot, memory_order_acquire);
	struct osd_data_name name = file->name;
	enum osd_status status = OSD_OK;

	if (!open) {
		name.tail = tail;
		pthread_mutex_lock(&file->lock);
		open = atomic_load_explicit(slot, memory_order_acquire);
		if (!open && tail && !create && file->no_tail)
			status = OSD_E_NO_OBJECT;
		else if (!open)
			status = osd_data_open_file(store_of(file, tail), &name,
						    create ? OSD_DATA_CREATE : 0, &open);
		if (tail)
			file->no_tail = status == OSD_E_NO_OBJECT;
		if (status == OSD_OK)
			atomic_store_explicit(slot, open, memory_order_release);
		pthread_mutex_unlock(&file->lock);
	}
	if (status == OSD_OK)
		*ret_file = open;
	return of_half(file, tail, status);
}

/* Opens what is there.  Behind a short head no tail is looked for unless all: a tail is begun when
 * its head is whole, and looking in vain may take as long as a write.  OSD_E_NO_OBJECT: no file. */
static enum osd_status open_parts(struct osd_tier_file *file, bool all)
{
	struct osd_data_stat stat = {.size = UINT64_MAX};
	struct osd_data_file *part;
	enum osd_status status = open_part(file, false, false, &part);

	if (status == OSD_OK && has_tail(file) && !all)
		status = of_half(file, false, osd_data_stat(part, &stat));
	if (status != OSD_OK || !has_tail(file) || stat.size < file->head_bytes)
		return status;
	status = open_part(file, true, false, &part);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static size_t in_head(const struct osd_tier_file *file, uint64_t offset, size_t length)
{
	return offset >= file->head_bytes ? 0 : (size_t)OSD_MIN(length, file->head_bytes - offset);
}

/* Of two files each is there before the object reaches so far: without it bytes have been lost. */
static enum osd_status open_to_read(struct osd_tier_file *file, bool tail, struct osd_data_op *op)
{
	enum osd_status status = op->length ? open_part(file, tail, false, &op->file) : OSD_OK;

	if (status == OSD_E_NO_OBJECT)
		return of_half(file, tail, has_tail(file) ? OSD_E_MEDIUM : OSD_OK);
	return status;
}

static enum osd_status both_ended(const struct osd_tier_file *file, const struct osd_data_op *head,
				  const struct osd_data_op *tail)
{
	return head->status != OSD_OK ? of_half(file, false, head->status)
				      : of_half(file, true, tail->status);
}

enum osd_status osd_tier_read(struct osd_tier_file *file, uint64_t offset, void *buffer,
			      size_t length, unsigned flags, size_t *ret_read)
{
	size_t first = in_head(file, offset, length);
	struct osd_data_op head = {.act = OSD_DATA_READ,
				   .offset = offset,
				   .buffer = buffer,
				   .length = first,
				   .flags = flags},
			   tail = {.act = OSD_DATA_READ,
				   .offset = offset + first - file->head_bytes,
				   .buffer = (uint8_t *)buffer + first,
				   .length = length - first,
				   .flags = flags};
	enum osd_status status = open_to_read(file, false, &head);

	if (status == OSD_OK)
		status = open_to_read(file, true, &tail);
	if (status != OSD_OK)
		return status;
	osd_data_both(flags & OSD_DATA_READ_NOWAIT ? NULL : file->tier->both, &head, &tail);
	status = both_ended(file, &head, &tail);
	if (status != OSD_OK)
		return status;
	if (tail.done && head.done < first) /* a head that ends early goes on in zeros */
		memset((uint8_t *)buffer + head.done, 0, first - head.done);
	*ret_read = tail.done ? first + tail.done : head.done;
	return OSD_OK;
}

/* Head file of at least head_bytes, tail file open.  Whether there is a tail yet is not asked of the
 * store, where looking in vain may take as long as a write. */
static enum osd_status begin_tail(struct osd_tier_file *file, struct osd_data_file **ret_tail)
{
	struct osd_data_file *head;
	struct osd_data_stat stat;
	enum osd_status status;

	if (atomic_load_explicit(&file->tail, memory_order_acquire))
		return open_part(file, true, false, ret_tail);
	status = open_part(file, false, true, &head);
	if (status == OSD_E_HEAD_ABSENT) /* a tail that is there has its head */
		return open_part(file, true, false, ret_tail) == OSD_OK ? OSD_OK : status;
	if (status == OSD_OK)
		status = osd_data_stat(head, &stat);
	if (status == OSD_OK && stat.size < file->head_bytes)
		status = osd_data_truncate(head, file->head_bytes);
	status = of_half(file, false, status);
	return status == OSD_OK ? open_part(file, true, true, ret_tail) : status;
}

enum osd_status osd_tier_miss(struct osd_tier_file *file, uint64_t length, uint64_t from,
			      uint64_t to)
{
	uint64_t in_head = OSD_MIN(length, file->head_bytes);
	bool wants_tail = to > file->head_bytes, tail_there = false;
	struct osd_data_file *part;

	if (wants_tail && length > file->head_bytes) {
		tail_there = open_part(file, true, false, &part) != OSD_E_NO_OBJECT;
		if (!tail_there && !(from <= file->head_bytes && to >= length))
			return of_half(file, true, OSD_E_MEDIUM);
	}
	/* Who begins a tail begins with its head. */
	if (in_head > 0 && (from < file->head_bytes || (wants_tail && !tail_there)) &&
	    open_part(file, false, false, &part) == OSD_E_NO_OBJECT &&
	    !(from == 0 && to >= in_head))
		return of_half(file, false, OSD_E_MEDIUM);
	return OSD_OK;
}

/* Both files are there, with the head as long as a tail wants it, before either half is begun: a
 * crash between the halves leaves a mixture in the range of this write only. */
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
		status = open_part(file, false, true, &head.file);
	if (status == OSD_OK && tail.length)
		status = begin_tail(file, &tail.file);
	if (status != OSD_OK)
		return status;
	osd_data_both(file->tier->both, &head, &tail);
	return both_ended(file, &head, &tail);
}

/* An empty tail file must not count: the head may become shorter than head_bytes.  Where it is short
 * already there is none. */
static enum osd_status drop_tail(struct osd_tier_file *file)
{
	struct osd_data_name tail = file->name;
	enum osd_status status = open_parts(file, false);

	if (status != OSD_OK)
		return status == OSD_E_NO_OBJECT ? OSD_OK : status;
	if (!atomic_load(&file->tail))
		return OSD_OK;
	tail.tail = true;
	osd_data_close_file(atomic_exchange(&file->tail, NULL));
	return of_half(file, true, osd_data_remove(store_of(file, true), &tail));
}

enum osd_status osd_tier_truncate(struct osd_tier_file *file, uint64_t size)
{
	struct osd_data_file *part;
	enum osd_status status;

	if (has_tail(file) && size > file->head_bytes) {
		status = begin_tail(file, &part);
		if (status == OSD_OK)
			status = osd_data_truncate(part, size - file->head_bytes);
		return of_half(file, true, status);
	}
	if (has_tail(file)) {
		status = drop_tail(file);
		if (status != OSD_OK)
			return status;
	}
	status = open_part(file, false, size > 0, &part);
	if (status == OSD_E_NO_OBJECT)
		return OSD_OK;
	return of_half(file, false, status == OSD_OK ? osd_data_truncate(part, size) : status);
}

enum osd_status osd_tier_zero(struct osd_tier_file *file, uint64_t offset, uint64_t length)
{
	uint64_t in_head =
		offset >= file->head_bytes ? 0 : OSD_MIN(length, file->head_bytes - offset);
	struct osd_data_file *part;
	enum osd_status status = OSD_OK;

	if (in_head) {
		status = open_part(file, false, false, &part);
		if (status == OSD_OK)
			status = of_half(file, false, osd_data_zero(part, offset, in_head));
	}
	if (status == OSD_OK && in_head < length) {
		status = open_part(file, true, false, &part);
		if (status == OSD_OK)
			status = of_half(file, true,
					 osd_data_zero(part, offset + in_head - file->head_bytes,
						       length - in_head));
	}
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static enum osd_status stat_parts(struct osd_tier_file *file, bool all,
				  struct osd_data_stat *ret_stat)
{
	struct osd_data_stat head = {0}, tail = {0};
	enum osd_status status = open_parts(file, all);
	struct osd_data_file *part;

	if (status == OSD_OK)
		status = of_half(file, false, osd_data_stat(atomic_load(&file->head), &head));
	part = atomic_load(&file->tail);
	if (status == OSD_OK && part) {
		status = of_half(file, true, osd_data_stat(part, &tail));
		head.size = OSD_MAX(head.size, file->head_bytes + tail.size);
	}
	if (status == OSD_OK)
		*ret_stat = (struct osd_data_stat){head.size, head.allocated + tail.allocated,
						   OSD_MAX(head.modified_ms, tail.modified_ms)};
	return status;
}

enum osd_status osd_tier_stat(struct osd_tier_file *file, struct osd_data_stat *ret_stat)
{
	return stat_parts(file, false, ret_stat);
}

enum osd_status osd_tier_stat_all(struct osd_tier_file *file, struct osd_data_stat *ret_stat)
{
	return stat_parts(file, true, ret_stat);
}

static enum osd_status part_size(struct osd_tier_file *file, bool tail, uint64_t *ret_size)
{
	struct osd_data_file *part;
	struct osd_data_stat stat = {0};
	enum osd_status status = open_part(file, tail, false, &part);

	if (status == OSD_OK)
		status = of_half(file, tail, osd_data_stat(part, &stat));
	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	*ret_size = stat.size;
	return OSD_OK;
}

enum osd_status osd_tier_tail_size(struct osd_tier_file *file, uint64_t *ret_tail)
{
	*ret_tail = 0;
	return has_tail(file) ? part_size(file, true, ret_tail) : OSD_OK;
}

enum osd_status osd_tier_part_sizes(struct osd_tier_file *file, uint64_t *ret_head,
				    uint64_t *ret_tail)
{
	enum osd_status status = part_size(file, false, ret_head);

	return status == OSD_OK ? osd_tier_tail_size(file, ret_tail) : status;
}

/* In one of the files, in its own offsets; OSD_E_BEYOND_END also when there is no such file. */
static enum osd_status part_extent(struct osd_tier_file *file, bool tail, uint64_t offset,
				   uint64_t *ret_start, uint64_t *ret_end)
{
	struct osd_data_file *part;
	enum osd_status status = open_part(file, tail, false, &part);

	if (status == OSD_OK)
		status =
			of_half(file, tail, osd_data_next_extent(part, offset, ret_start, ret_end));
	return status == OSD_E_NO_OBJECT ? OSD_E_BEYOND_END : status;
}

static enum osd_status tail_extent(struct osd_tier_file *file, uint64_t offset, uint64_t *ret_start,
				   uint64_t *ret_end)
{
	uint64_t start, end;
	enum osd_status status =
		has_tail(file) ? part_extent(file, true, offset - file->head_bytes, &start, &end)
			       : OSD_E_BEYOND_END;

	if (status != OSD_OK)
		return status;
	*ret_start = start + file->head_bytes;
	*ret_end = end + file->head_bytes;
	return OSD_OK;
}

enum osd_status osd_tier_next_extent(struct osd_tier_file *file, uint64_t offset,
				     uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t start = 0, end = 0, tail_start, tail_end;
	enum osd_status status = OSD_E_BEYOND_END;

	if (offset < file->head_bytes)
		status = part_extent(file, false, offset, &start, &end);
	if (status == OSD_OK && start >= file->head_bytes)
		status = OSD_E_BEYOND_END;
	if (status == OSD_E_BEYOND_END)
		return tail_extent(file, OSD_MAX(offset, file->head_bytes), ret_start, ret_end);
	if (status != OSD_OK)
		return status;
	end = OSD_MIN(end, file->head_bytes);
	if (end == file->head_bytes) {
		status = tail_extent(file, end, &tail_start, &tail_end);
		if (status == OSD_OK && tail_start == end)
			end = tail_end;
		else if (status != OSD_OK && status != OSD_E_BEYOND_END)
			return status;
	}
	*ret_start = start;
	*ret_end = end;
	return OSD_OK;
}

/* How far a range that begins at offset stays in one file. */
static uint64_t in_one_part(const struct osd_tier_file *file, uint64_t offset, uint64_t length)
{
	return offset < file->head_bytes ? OSD_MIN(length, file->head_bytes - offset) : length;
}

enum osd_status osd_tier_copy(struct osd_tier_file *from, uint64_t from_offset,
			      struct osd_tier_file *to, uint64_t to_offset, uint64_t length,
			      unsigned flags)
{
	enum osd_status status = OSD_OK;

	while (status == OSD_OK && length > 0) {
		bool from_tail = from_offset >= from->head_bytes,
		     to_tail = to_offset >= to->head_bytes;
		uint64_t piece = in_one_part(from, from_offset, length);
		struct osd_data_file *source, *target;

		piece = in_one_part(to, to_offset, piece);
		status = open_part(from, from_tail, false, &source);
		if (status == OSD_OK)
			status = to_tail ? begin_tail(to, &target)
					 : open_part(to, false, true, &target);
		if (status == OSD_OK)
			status = osd_data_copy(
				source, from_offset - (from_tail ? from->head_bytes : 0), target,
				to_offset - (to_tail ? to->head_bytes : 0), piece, flags);
		from_offset += piece;
		to_offset += piece;
		length -= piece;
	}
	return status;
}

enum osd_status osd_tier_clone(struct osd_tier_file *from, struct osd_tier_file *to)
{
	struct osd_data_file *source, *target;
	enum osd_status status = OSD_OK;

	if (from->head_bytes != to->head_bytes)
		return OSD_E_BUSY;
	for (int tail = 0; status == OSD_OK && tail < (has_tail(from) ? 2 : 1); tail++) {
		status = open_part(from, tail, false, &source);
		if (status == OSD_OK && store_of(from, tail) != store_of(to, tail))
			status = OSD_E_BUSY;
		if (status == OSD_OK)
			status = open_part(to, tail, true, &target);
		if (status == OSD_OK)
			status = osd_data_clone(source, target);
		if (status == OSD_E_NO_OBJECT) /* nothing of it was ever written */
			status = OSD_OK;
	}
	return status;
}

bool osd_tier_can_clone(const struct osd_tier *tier)
{
	return osd_data_can_clone(tier->head) && (!tier->tail || osd_data_can_clone(tier->tail));
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

/* Opens what may have been written to: behind a short head there is no tail to look for, and on a
 * device that is absent nothing waits to be written. */
static enum osd_status open_written(struct osd_tier_file *file, struct osd_data_file **ret_head,
				    struct osd_data_file **ret_tail)
{
	struct osd_data_stat stat = {.size = UINT64_MAX};
	enum osd_status status = open_part(file, false, false, ret_head);

	if (status == OSD_OK && has_tail(file))
		status = of_half(file, false, osd_data_stat(*ret_head, &stat));
	if (!has_tail(file) || (status != OSD_OK && status != OSD_E_HEAD_ABSENT) ||
	    stat.size < file->head_bytes)
		return status;
	status = open_part(file, true, false, ret_tail);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static enum osd_status sync_names(struct osd_tier_file *file, bool tail)
{
	return of_half(file, tail, osd_data_sync_directories(store_of(file, tail), &file->name));
}

static enum osd_status sync_held(struct osd_tier_file *file, bool directories)
{
	struct osd_data_op head = {.act = OSD_DATA_SYNC}, tail = {.act = OSD_DATA_SYNC};
	enum osd_status status = open_written(file, &head.file, &tail.file);

	if (status != OSD_OK)
		return status;
	osd_data_both(file->tier->both, &head, &tail);
	status = both_ended(file, &head, &tail);
	if (status == OSD_OK && directories && head.file)
		status = sync_names(file, false);
	if (status == OSD_OK && directories && tail.file &&
	    (!head.file || store_of(file, true) != store_of(file, false)))
		status = sync_names(file, true);
	return status;
}

enum osd_status osd_tier_sync(struct osd_tier_file *file, bool directories)
{
	enum osd_status status;

	pthread_rwlock_rdlock(&file->replaced);
	status = sync_held(file, directories);
	pthread_rwlock_unlock(&file->replaced);
	return status;
}

enum osd_status osd_tier_share(struct osd_tier_file *file, int *ret_head_fd, int *ret_tail_fd)
{
	OSD_CLEANUP_CLOSE int head_fd = -1;
	int tail_fd = -1;
	struct osd_data_file *tail;
	enum osd_status status = open_parts(file, false);

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

/* One device that fails keeps nothing on the other. */
static void note_failure(enum osd_status *first, enum osd_status status)
{
	if (*first == OSD_OK)
		*first = status;
}

enum osd_status osd_tier_remove(struct osd_tier *tier, const struct osd_data_name *name)
{
	struct osd_data *stores[] = {tier->head, tier->tail};
	enum osd_status status = OSD_OK;

	/* All four names: where the head lies is no longer known, and the tail may not exist. */
	for (size_t i = 0; i < OSD_ARRAY_SIZE(stores); i++) {
		for (int tail = 0; stores[i] && tail < 2; tail++) {
			struct osd_data_name part = *name;

			part.tail = tail != 0;
			note_failure(&status, osd_data_remove(stores[i], &part));
		}
	}
	return status;
}

enum osd_status osd_tier_remove_parts(const struct osd_tier_file *file,
				      const struct osd_data_name *name, bool tail)
{
	struct osd_data_name part = *name;
	enum osd_status status;

	part.tail = false;
	status = osd_data_remove(store_of(file, false), &part);
	part.tail = true;
	if (status == OSD_OK && tail && has_tail(file))
		status = osd_data_remove(store_of(file, true), &part);
	return status;
}

enum osd_status osd_tier_remove_partition(struct osd_tier *tier, uint64_t partition_id,
					  uint32_t incarnation)
{
	enum osd_status status = osd_data_remove_partition(tier->head, partition_id, incarnation);

	if (tier->tail)
		note_failure(&status,
			     osd_data_remove_partition(tier->tail, partition_id, incarnation));
	return status;
}

enum osd_status osd_tier_sync_all(struct osd_tier *tier)
{
	enum osd_status status = osd_data_sync_all(tier->head);

	if (status == OSD_E_MEDIUM && tier->tail)
		return OSD_E_HEAD_FAILED;
	if (status == OSD_OK && tier->tail)
		status = osd_data_sync_all(tier->tail);
	return status == OSD_E_MEDIUM && tier->tail ? OSD_E_TAIL_FAILED : status;
}

enum osd_status osd_tier_capacity(struct osd_tier *tier, uint64_t *ret_total, uint64_t *ret_free)
{
	uint64_t total, available;
	enum osd_status status = osd_data_capacity(tier->head, ret_total, ret_free);

	if (status != OSD_OK || !tier->tail || tier->one_device)
		return status;
	status = osd_data_capacity(tier->tail, &total, &available);
	if (status == OSD_OK) {
		*ret_total += total;
		*ret_free += available;
	}
	return status;
}
