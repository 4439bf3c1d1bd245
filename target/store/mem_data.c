/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mem_data.c -- object data in memory: the twin of file_store.c for tests and for a target without
 * disk. A file lives as long as it has a name or is open, as a file of the kernel's does. */
#include "store/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"

#define MEM_BUCKETS  1024u
#define MEM_CAPACITY (UINT64_C(1) << 40) /* what the store says it holds */
#define MEM_FILE_MAX (UINT64_C(1) << 32)

struct mem_file {
	struct osd_data_file base;
	struct osd_data_name name;
	struct mem_file *next; /* in its bucket; under the store's lock */
	unsigned references;   /* under the store's lock: open files, and 1 for the name */
	pthread_rwlock_t lock;
	uint8_t *bytes; /* owned; under lock */
	size_t size, capacity;
	uint64_t modified_ms;
};

struct mem_data {
	struct osd_data base;
	pthread_mutex_t lock;
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

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct mem_file **bucket_of(struct mem_data *mem, const struct osd_data_name *name)
{
	uint64_t hash = (name->generation + 2 * name->object_id + name->tail) *
			UINT64_C(0x9e3779b97f4a7c15);

	return &mem->buckets[hash >> 32 & (MEM_BUCKETS - 1)];
}

static bool same_name(const struct osd_data_name *a, const struct osd_data_name *b)
{
	return a->partition_id == b->partition_id && a->incarnation == b->incarnation &&
	       a->object_id == b->object_id && a->generation == b->generation && a->tail == b->tail;
}

/* Under the store's lock. */
static void file_put(struct mem_file *file)
{
	if (--file->references)
		return;
	pthread_rwlock_destroy(&file->lock);
	free(file->bytes);
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
	file->modified_ms = now_ms();
	pthread_rwlock_init(&file->lock, NULL);
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

	pthread_mutex_lock(&mem->lock);
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
	pthread_mutex_unlock(&mem->lock);
	return status;
}

static void mem_close_file(struct osd_data_file *base)
{
	struct mem_data *mem = to_mem(base->data);

	pthread_mutex_lock(&mem->lock);
	file_put(to_file(base));
	pthread_mutex_unlock(&mem->lock);
}

static enum osd_status mem_read(struct osd_data_file *base, uint64_t offset, void *buffer,
				size_t length, unsigned flags, size_t *ret_read)
{
	struct mem_file *file = to_file(base);
	size_t available;

	(void)flags;
	pthread_rwlock_rdlock(&file->lock);
	available = offset < file->size ? file->size - (size_t)offset : 0;
	available = OSD_MIN(available, length);
	if (available)
		memcpy(buffer, file->bytes + offset, available);
	pthread_rwlock_unlock(&file->lock);
	*ret_read = available;
	return OSD_OK;
}

/* Under the file's lock. */
static enum osd_status file_resize(struct mem_file *file, uint64_t size)
{
	if (size > MEM_FILE_MAX)
		return OSD_E_NO_SPACE;
	if (size > file->capacity) {
		size_t capacity = (size_t)OSD_MAX(size, file->capacity * 2);
		uint8_t *bytes = realloc(file->bytes, capacity);

		if (!bytes)
			return OSD_E_NO_MEMORY;
		file->bytes = bytes;
		file->capacity = capacity;
	}
	if (size > file->size)
		memset(file->bytes + file->size, 0, (size_t)size - file->size);
	file->size = (size_t)size;
	file->modified_ms = now_ms();
	return OSD_OK;
}

static enum osd_status mem_write(struct osd_data_file *base, uint64_t offset, const void *bytes,
				 size_t length)
{
	struct mem_file *file = to_file(base);
	enum osd_status status = OSD_OK;

	pthread_rwlock_wrlock(&file->lock);
	if (offset + length > file->size)
		status = file_resize(file, offset + length);
	if (status == OSD_OK && length)
		memcpy(file->bytes + offset, bytes, length);
	file->modified_ms = now_ms();
	pthread_rwlock_unlock(&file->lock);
	return status;
}

static enum osd_status mem_truncate(struct osd_data_file *base, uint64_t size)
{
	struct mem_file *file = to_file(base);
	enum osd_status status;

	pthread_rwlock_wrlock(&file->lock);
	status = file_resize(file, size);
	pthread_rwlock_unlock(&file->lock);
	return status;
}

static enum osd_status mem_zero(struct osd_data_file *base, uint64_t offset, uint64_t length)
{
	struct mem_file *file = to_file(base);

	pthread_rwlock_wrlock(&file->lock);
	if (offset < file->size)
		memset(file->bytes + offset, 0, OSD_MIN(length, file->size - (size_t)offset));
	file->modified_ms = now_ms();
	pthread_rwlock_unlock(&file->lock);
	return OSD_OK;
}

static enum osd_status mem_stat(struct osd_data_file *base, struct osd_data_stat *ret_stat)
{
	struct mem_file *file = to_file(base);

	pthread_rwlock_rdlock(&file->lock);
	*ret_stat = (struct osd_data_stat){file->size, file->modified_ms};
	pthread_rwlock_unlock(&file->lock);
	return OSD_OK;
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
	return OSD_E_BUSY;
}

static enum osd_status mem_set_modified(struct osd_data_file *base, uint64_t modified_ms)
{
	struct mem_file *file = to_file(base);

	pthread_rwlock_wrlock(&file->lock);
	file->modified_ms = modified_ms;
	pthread_rwlock_unlock(&file->lock);
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

	pthread_mutex_lock(&mem->lock);
	unlink_matching(bucket_of(mem, name), name, false);
	pthread_mutex_unlock(&mem->lock);
	return OSD_OK;
}

static enum osd_status mem_remove_partition(struct osd_data *data, uint64_t partition_id,
					    uint32_t incarnation)
{
	struct osd_data_name name = {.partition_id = partition_id, .incarnation = incarnation};
	struct mem_data *mem = to_mem(data);

	pthread_mutex_lock(&mem->lock);
	for (size_t i = 0; i < MEM_BUCKETS; i++)
		unlink_matching(&mem->buckets[i], &name, true);
	pthread_mutex_unlock(&mem->lock);
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
	pthread_mutex_destroy(&mem->lock);
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
	pthread_mutex_init(&mem->lock, NULL);
	*ret_data = &mem->base;
	return OSD_OK;
}
