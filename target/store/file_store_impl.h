/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file_store_impl.h -- files of object data, for file_store.c (names, directories) and file_bytes.c. */
#ifndef OSD_STORE_FILE_STORE_IMPL_H
#define OSD_STORE_FILE_STORE_IMPL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "store/store.h"

struct file_data {
	struct osd_data base;
	int directory_fd; /* borrowed */
	bool can_clone, is_direct;
};

struct file {
	struct osd_data_file base;
	int fd;	       /* owned */
	int direct_fd; /* owned; -1: through the page cache */
};

static inline struct file_data *to_data(struct osd_data *data)
{
	return osd_container_of(data, struct file_data, base);
}

static inline int fd_of(struct osd_data_file *file)
{
	return osd_container_of(file, struct file, base)->fd;
}

static inline int direct_fd_of(struct osd_data_file *file)
{
	return osd_container_of(file, struct file, base)->direct_fd;
}

/* The status of a system call that returned 0, or set errno. */
static inline enum osd_status result(int returned)
{
	return returned == 0 ? OSD_OK : osd_status_from_errno(errno);
}

/* Operations of struct osd_data_ops on a file's bytes. */
enum osd_status osd_file_read(struct osd_data_file *file, uint64_t offset, void *buffer,
			      size_t length, unsigned flags, size_t *ret_read);
enum osd_status osd_file_write(struct osd_data_file *file, uint64_t offset, const void *bytes,
			       size_t length);
enum osd_status osd_file_truncate(struct osd_data_file *file, uint64_t size);
enum osd_status osd_file_zero(struct osd_data_file *file, uint64_t offset, uint64_t length);
enum osd_status osd_file_stat(struct osd_data_file *file, struct osd_data_stat *ret_stat);
enum osd_status osd_file_next_extent(struct osd_data_file *file, uint64_t offset,
				     uint64_t *ret_start, uint64_t *ret_end);
enum osd_status osd_file_copy(struct osd_data_file *from, uint64_t from_offset,
			      struct osd_data_file *to, uint64_t to_offset, uint64_t length,
			      unsigned flags);
enum osd_status osd_file_clone(struct osd_data_file *from, struct osd_data_file *to);
/* Whether two files in the directory can share blocks. */
bool osd_file_try_clone(int directory_fd);

#endif
