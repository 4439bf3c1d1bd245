/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mem_data.c -- object data in memory: the twin of file_store.c for tests and for a target without
 * disk.  A file lives as long as it has a name or is open, as a file of the kernel's does, and has
 * holes where nothing was written. */
#include "testing/stores.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/util.h"

#define MEM_BUCKETS  1024u
#define MEM_CAPACITY (UINT64_C(1) << 40) /* what the store says it holds */
#define MEM_FILE_MAX (UINT64_C(1) << 32)
#define MEM_BLOCK    4096u

struct mem_file {
	struct osd_data_file base;
	struct osd_data_name name;
	struct mem_file *next; /* in its bucket; under the store's lock */
	unsigned references;   /* under the store's lock: open files, and 1 for the name */
	struct osd_rwlock lock;
	uint8_t *bytes;	 /* owned; under lock */
	uint8_t *blocks; /* owned; under lock: 1 for each MEM_BLOCK bytes that is no hole */
	size_t size, capacity;
	uint64_t modified_ms;
};

struct mem_data {
	struct osd_data base;
	struct osd_lock lock;
	struct mem_file *buckets[MEM_BUCKETS]; /* under lock */
};

static struct mem_data *to_mem(struct osd_data *data)
{
	return osd_container_of(data, struct mem_data, base);
}

static struct mem_file *to_file(struct osd_data_file *file)
{
	return osd_container_of(file, struct mem_file, base);
}

static struct mem_file **bucket_of(struct mem_data *mem, const struct osd_data_name *name)
{
	uint64_t hash = (name->generation + 2 * name->object_id + name->tail + name->sums) *
			UINT64_C(0x9e3779b97f4a7c15);

	return &mem->buckets[hash >> 32 & (MEM_BUCKETS - 1)];
}

static bool same_name(const struct osd_data_name *a, const struct osd_data_name *b)
{
	return a->partition_id == b->partition_id && a->incarnation == b->incarnation &&
	       a->object_id == b->object_id && a->generation == b->generation &&
	       a->tail == b->tail && a->sums == b->sums;
}

/* Under the store's lock. */
static void file_put(struct mem_file *file)
{
	if (--file->references)
		return;
	osd_rwlock_destroy(&file->lock);
	free(file->bytes);
	free(file->blocks);
	free(file);
}

static struct mem_file *file_new(struct mem_data *mem, const struct osd_data_name *name)
{
	struct mem_file *file = calloc(1, sizeof(*file));
	struct mem_file **bucket = bucket_of(mem, name);

	if (!file)
		return NULL;
	file->base.data = &mem->base;
	file->name = *name;
	file->references = 1;
	file->modified_ms = osd_wall_msec();
	osd_rwlock_init(&file->lock, OSD_RANK_MEM_FILE);
	file->next = *bucket;
	*bucket = file;
	return file;
}

static enum osd_status mem_open_file(struct osd_data *data, const struct osd_data_name *name,
				     unsigned flags, struct osd_data_file **ret_file)
{
	struct mem_data *mem = to_mem(data);
	enum osd_status status = OSD_OK;
	struct mem_file *file;

	osd_lock(&mem->lock);
	file = *bucket_of(mem, name);
	while (file && !same_name(&file->name, name))
		file = file->next;
	if (!file && (flags & OSD_DATA_CREATE)) {
		file = file_new(mem, name);
		status = file ? OSD_OK : OSD_E_NO_MEMORY;
	} else if (!file) {
		status = OSD_E_NO_OBJECT;
	}
	if (file) {
		file->references++;
		*ret_file = &file->base;
	}
	osd_unlock(&mem->lock);
	return status;
}

static void mem_close_file(struct osd_data_file *base)
{
	struct mem_data *mem = to_mem(base->data);

	osd_lock(&mem->lock);
	file_put(to_file(base));
	osd_unlock(&mem->lock);
}

static enum osd_status mem_read(struct osd_data_file *base, uint64_t offset, void *buffer,
				size_t length, unsigned flags, size_t *ret_read)
{
	struct mem_file *file = to_file(base);
	size_t available;

	(void)flags;
	osd_read_lock(&file->lock);
	available = offset < file->size ? file->size - (size_t)offset : 0;
	available = OSD_MIN(available, length);
	if (available)
		memcpy(buffer, file->bytes + offset, available);
	osd_rw_unlock(&file->lock);
	*ret_read = available;
	return OSD_OK;
}

/* Of the blocks that lie in [start, end): all of them, or (for a hole) those that do so wholly.
 * Under the file's lock. */
static void mark_blocks(struct mem_file *file, uint64_t start, uint64_t end, bool written)
{
	size_t first =
		(size_t)(written ? start / MEM_BLOCK : osd_round_up(start, MEM_BLOCK) / MEM_BLOCK);
	size_t last =
		(size_t)(written ? osd_round_up(end, MEM_BLOCK) / MEM_BLOCK : end / MEM_BLOCK);

	if (first < last)
		memset(file->blocks + first, written, last - first);
}

/* Under the file's lock. */
static enum osd_status file_reserve(struct mem_file *file, size_t capacity)
{
	uint8_t *bytes = realloc(file->bytes, capacity);
	uint8_t *blocks;

	if (!bytes)
		return OSD_E_NO_MEMORY;
	file->bytes = bytes;
	blocks = realloc(file->blocks, capacity / MEM_BLOCK);
	if (!blocks)
		return OSD_E_NO_MEMORY;
	memset(blocks + file->capacity / MEM_BLOCK, 0, (capacity - file->capacity) / MEM_BLOCK);
	file->blocks = blocks;
	file->capacity = capacity;
	return OSD_OK;
}

/* Under the file's lock. */
static enum osd_status file_resize(struct mem_file *file, uint64_t size)
{
	enum osd_status status;

	if (size > MEM_FILE_MAX)
		return OSD_E_NO_SPACE;
	if (size > file->capacity) {
		status = file_reserve(
			file, (size_t)osd_round_up(OSD_MAX(size, file->capacity * 2), MEM_BLOCK));
		if (status != OSD_OK)
			return status;
	}
	if (size > file->size)
		memset(file->bytes + file->size, 0, (size_t)size - file->size);
	else
		mark_blocks(file, size, osd_round_up(file->size, MEM_BLOCK), false);
	file->size = (size_t)size;
	file->modified_ms = osd_wall_msec();
	return OSD_OK;
}

static enum osd_status mem_write(struct osd_data_file *base, uint64_t offset, const void *bytes,
				 size_t length)
{
	struct mem_file *file = to_file(base);
	enum osd_status status = OSD_OK;

	osd_write_lock(&file->lock);
	if (offset + length > file->size)
		status = file_resize(file, offset + length);
	if (status == OSD_OK && length) {
		memcpy(file->bytes + offset, bytes, length);
		mark_blocks(file, offset, offset + length, true);
	}
	file->modified_ms = osd_wall_msec();
	osd_rw_unlock(&file->lock);
	return status;
}

static enum osd_status mem_truncate(struct osd_data_file *base, uint64_t size)
{
	struct mem_file *file = to_file(base);
	enum osd_status status;

	osd_write_lock(&file->lock);
	status = file_resize(file, size);
	osd_rw_unlock(&file->lock);
	return status;
}

static enum osd_status mem_zero(struct osd_data_file *base, uint64_t offset, uint64_t length)
{
	struct mem_file *file = to_file(base);

	osd_write_lock(&file->lock);
	if (offset < file->size) {
		length = OSD_MIN(length, file->size - offset);
		memset(file->bytes + offset, 0, (size_t)length);
		mark_blocks(file, offset, offset + length, false);
	}
	file->modified_ms = osd_wall_msec();
	osd_rw_unlock(&file->lock);
	return OSD_OK;
}

static enum osd_status mem_stat(struct osd_data_file *base, struct osd_data_stat *ret_stat)
{
	struct mem_file *file = to_file(base);

	osd_read_lock(&file->lock);
	*ret_stat = (struct osd_data_stat){file->size, 0, file->modified_ms};
	for (size_t i = 0; i < file->capacity / MEM_BLOCK; i++)
		ret_stat->allocated += file->blocks[i] * MEM_BLOCK;
	osd_rw_unlock(&file->lock);
	return OSD_OK;
}

static enum osd_status mem_next_extent(struct osd_data_file *base, uint64_t offset,
				       uint64_t *ret_start, uint64_t *ret_end)
{
	struct mem_file *file = to_file(base);
	enum osd_status status = OSD_E_BEYOND_END;
	uint64_t start = offset, end;

	osd_read_lock(&file->lock);
	while (start < file->size && !file->blocks[start / MEM_BLOCK])
		start = (start / MEM_BLOCK + 1) * MEM_BLOCK;
	if (start < file->size) {
		for (end = start; end < file->size && file->blocks[end / MEM_BLOCK];)
			end = (end / MEM_BLOCK + 1) * MEM_BLOCK;
		*ret_start = start;
		*ret_end = OSD_MIN(end, file->size);
		status = OSD_OK;
	}
	osd_rw_unlock(&file->lock);
	return status;
}

/* In pieces through a buffer, so that no two files are locked at once. */
static enum osd_status mem_copy(struct osd_data_file *from, uint64_t from_offset,
				struct osd_data_file *to, uint64_t to_offset, uint64_t length,
				unsigned flags)
{
	OSD_CLEANUP_FREE uint8_t *buffer = malloc(OSD_MIN(length, 256u << 10) + 1);
	enum osd_status status = buffer ? OSD_OK : OSD_E_NO_MEMORY;

	(void)flags;
	while (status == OSD_OK && length > 0) {
		size_t got = 0;

		status = mem_read(from, from_offset, buffer, OSD_MIN(length, 256u << 10), 0, &got);
		if (status != OSD_OK || got == 0)
			break;
		status = mem_write(to, to_offset, buffer, got);
		from_offset += got;
		to_offset += got;
		length -= got;
	}
	return status;
}

static enum osd_status mem_clone(struct osd_data_file *from, struct osd_data_file *to)
{
	(void)from;
	(void)to;
	return OSD_E_UNSUPPORTED;
}

static bool mem_can_clone(struct osd_data *data)
{
	(void)data;
	return false;
}

static enum osd_status mem_sync(struct osd_data_file *file)
{
	(void)file;
	return OSD_OK;
}

static enum osd_status mem_share(struct osd_data_file *file, int *ret_fd)
{
	(void)file;
	(void)ret_fd;
	return OSD_E_UNSUPPORTED;
}

static enum osd_status mem_set_modified(struct osd_data_file *base, uint64_t modified_ms)
{
	struct mem_file *file = to_file(base);

	osd_write_lock(&file->lock);
	file->modified_ms = modified_ms;
	osd_rw_unlock(&file->lock);
	return OSD_OK;
}

static enum osd_status mem_sync_directories(struct osd_data *data, const struct osd_data_name *name)
{
	(void)data;
	(void)name;
	return OSD_OK;
}

/* Takes out of the bucket what matches; all generations of the partition when whole_partition. */
static void unlink_matching(struct mem_file **link, const struct osd_data_name *name,
			    bool whole_partition)
{
	while (*link) {
		struct mem_file *file = *link;
		bool match = whole_partition ? file->name.partition_id == name->partition_id &&
						       file->name.incarnation == name->incarnation
					     : same_name(&file->name, name);

		if (match) {
			*link = file->next;
			file_put(file);
		} else {
			link = &file->next;
		}
	}
}

static enum osd_status mem_remove(struct osd_data *data, const struct osd_data_name *name)
{
	struct mem_data *mem = to_mem(data);

	osd_lock(&mem->lock);
	unlink_matching(bucket_of(mem, name), name, false);
	osd_unlock(&mem->lock);
	return OSD_OK;
}

static enum osd_status mem_remove_partition(struct osd_data *data, uint64_t partition_id,
					    uint32_t incarnation)
{
	struct osd_data_name name = {.partition_id = partition_id, .incarnation = incarnation};
	struct mem_data *mem = to_mem(data);

	osd_lock(&mem->lock);
	for (size_t i = 0; i < MEM_BUCKETS; i++)
		unlink_matching(&mem->buckets[i], &name, true);
	osd_unlock(&mem->lock);
	return OSD_OK;
}

static enum osd_status mem_sync_all(struct osd_data *data)
{
	(void)data;
	return OSD_OK;
}

static enum osd_status mem_capacity(struct osd_data *data, uint64_t *ret_total, uint64_t *ret_free)
{
	(void)data;
	*ret_total = *ret_free = MEM_CAPACITY;
	return OSD_OK;
}

static void mem_close(struct osd_data *data)
{
	struct mem_data *mem = to_mem(data);

	for (size_t i = 0; i < MEM_BUCKETS; i++) {
		while (mem->buckets[i]) {
			struct mem_file *file = mem->buckets[i];

			mem->buckets[i] = file->next;
			file_put(file);
		}
	}
	osd_lock_destroy(&mem->lock);
	free(mem);
}

static const struct osd_data_ops mem_ops = {
	.close = mem_close,
	.open_file = mem_open_file,
	.close_file = mem_close_file,
	.read = mem_read,
	.write = mem_write,
	.truncate = mem_truncate,
	.zero = mem_zero,
	.stat = mem_stat,
	.next_extent = mem_next_extent,
	.copy = mem_copy,
	.clone = mem_clone,
	.can_clone = mem_can_clone,
	.sync = mem_sync,
	.share = mem_share,
	.set_modified = mem_set_modified,
	.sync_directories = mem_sync_directories,
	.remove = mem_remove,
	.remove_partition = mem_remove_partition,
	.sync_all = mem_sync_all,
	.capacity = mem_capacity,
};

enum osd_status osd_mem_data_open(struct osd_data **ret_data)
{
	struct mem_data *mem = calloc(1, sizeof(*mem));

	if (!mem)
		return OSD_E_NO_MEMORY;
	mem->base.ops = &mem_ops;
	osd_lock_init(&mem->lock, OSD_RANK_MEM_DATA);
	*ret_data = &mem->base;
	return OSD_OK;
}
