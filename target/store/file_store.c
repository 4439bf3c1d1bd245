/* SPDX-License-Identifier: GPL-2.0-or-later */
/* file_store.c -- object data in files under one directory.
 *
 *   <partition id>.<incarnation>/<hash>/<object id>.<generation>{h,t}[s]   all hexadecimal
 *
 * Names are made of ids and nothing else.  Files are opened relative to the directory's descriptor,
 * and symbolic links are not followed.  With direct I/O a file is open twice, once without the page
 * cache (direct.c).  The first write creates a file and its directories.  The records know which
 * objects have files, and how long they are; this file does not. */
#include "store/file_store_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/util.h"
#include "store/direct.h"

#define FILE_PATH_MAX 96 /* 16+1+8 / 2 / 16+1+16+2 and the separators */
#define SUMS_NAME     (16 + 1 + 16 + 2) /* bytes of the last component of a file of sums */

/* Lengths of the path's first one and two components follow from the ids. */
struct file_path {
	char text[FILE_PATH_MAX];
	size_t partition_length, hash_length;
};

static void make_path(const struct osd_data_name *name, struct file_path *path)
{
	uint8_t hash = (uint8_t)(name->object_id * UINT64_C(0x9e3779b97f4a7c15) >> 56);
	int length = snprintf(path->text, sizeof(path->text), "%016" PRIx64 ".%08" PRIx32,
			      name->partition_id, name->incarnation);

	path->partition_length = (size_t)length;
	length += snprintf(path->text + length, sizeof(path->text) - (size_t)length, "/%02x", hash);
	path->hash_length = (size_t)length;
	snprintf(path->text + length, sizeof(path->text) - (size_t)length,
		 "/%016" PRIx64 ".%016" PRIx64 "%c%s", name->object_id, name->generation,
		 name->tail ? 't' : 'h', name->sums ? "s" : "");
}

/* Creates the directories of the path; existing ones are fine. */
static int make_directories(int directory_fd, const struct file_path *path)
{
	const size_t lengths[] = {path->partition_length, path->hash_length};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(lengths); i++) {
		char part[FILE_PATH_MAX];

		memcpy(part, path->text, lengths[i]);
		part[lengths[i]] = '\0';
		if (mkdirat(directory_fd, part, 0700) < 0 && errno != EEXIST)
			return errno;
	}
	return 0;
}

static enum osd_status file_open(struct osd_data *base, const struct osd_data_name *name,
				 unsigned flags, struct osd_data_file **ret_file)
{
	struct file_data *data = to_data(base);
	int open_flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (flags & OSD_DATA_CREATE ? O_CREAT : 0);
	struct file *file = malloc(sizeof(*file));
	struct file_path path;
	int error = 0;

	if (!file)
		return OSD_E_NO_MEMORY;
	make_path(name, &path);
	file->fd = openat(data->directory_fd, path.text, open_flags, 0600);
	/* Only the first file of a directory comes here: the others cost no mkdir(2). */
	if (file->fd < 0 && errno == ENOENT && (flags & OSD_DATA_CREATE)) {
		error = make_directories(data->directory_fd, &path);
		if (!error)
			file->fd = openat(data->directory_fd, path.text, open_flags, 0600);
	}
	if (!error && file->fd < 0)
		error = errno;
	file->direct_fd = -1;
	/* Changes of sums are a few bytes long, too short for direct I/O. */
	if (!error && data->is_direct && !name->sums) {
		file->direct_fd =
			openat(data->directory_fd, path.text, (open_flags & ~O_CREAT) | O_DIRECT);
		error = file->direct_fd < 0 ? errno : 0;
		if (error)
			close(file->fd);
	}
	if (error) {
		free(file);
		return error == ENOENT ? OSD_E_NO_OBJECT : osd_status_from_errno(error);
	}
	file->base.data = base;
	*ret_file = &file->base;
	return OSD_OK;
}

static void file_close(struct osd_data_file *base)
{
	struct file *file = osd_container_of(base, struct file, base);

	osd_closep(&file->direct_fd);
	close(file->fd);
	free(file);
}

static bool file_can_clone(struct osd_data *data)
{
	return to_data(data)->can_clone;
}

static enum osd_status file_sync(struct osd_data_file *file)
{
	/* It includes the size.  The times that it may leave out are kept in records. */
	return result(fdatasync(fd_of(file)));
}

static enum osd_status file_share(struct osd_data_file *file, int *ret_fd)
{
	char path[32];
	int fd;

	if (direct_fd_of(file) >= 0) /* who reads it would do so by the page cache */
		return OSD_E_UNSUPPORTED;
	/* dup(2) would give the script a descriptor that can write. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd_of(file));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return osd_status_from_errno(errno);
	*ret_fd = fd;
	return OSD_OK;
}

static enum osd_status file_set_modified(struct osd_data_file *file, uint64_t modified_ms)
{
	const struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = (time_t)(modified_ms / 1000),
		 .tv_nsec = (long)(modified_ms % 1000) * 1000000},
	};

	return result(futimens(fd_of(file), times));
}

static int sync_directory(int directory_fd, const char *path)
{
	OSD_CLEANUP_CLOSE int fd = openat(directory_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : errno; /* removed meanwhile */
	return fsync(fd) < 0 ? errno : 0;
}

static enum osd_status file_sync_directories(struct osd_data *base,
					     const struct osd_data_name *name)
{
	struct file_data *data = to_data(base);
	struct file_path path;
	int error;

	/* It is not known which of these directories are new, so each of them is synced. */
	make_path(name, &path);
	path.text[path.hash_length] = '\0';
	error = sync_directory(data->directory_fd, path.text);
	path.text[path.partition_length] = '\0';
	if (!error)
		error = sync_directory(data->directory_fd, path.text);
	if (!error)
		error = sync_directory(data->directory_fd, ".");
	return osd_status_from_errno(error);
}

static enum osd_status file_link(struct osd_data *base, const struct osd_data_name *from,
				 const struct osd_data_name *to)
{
	int directory_fd = to_data(base)->directory_fd;
	struct file_path from_path, to_path;

	make_path(from, &from_path);
	make_path(to, &to_path);
	if (linkat(directory_fd, from_path.text, directory_fd, to_path.text, 0) == 0)
		return OSD_OK;
	if (errno == ENOENT)
		return OSD_E_NO_OBJECT;
	if (errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK)
		return OSD_E_UNSUPPORTED;
	return errno == EEXIST ? OSD_E_EXISTS : osd_status_from_errno(errno);
}

static enum osd_status file_remove(struct osd_data *base, const struct osd_data_name *name)
{
	struct file_path path;

	make_path(name, &path);
	if (unlinkat(to_data(base)->directory_fd, path.text, 0) < 0 && errno != ENOENT)
		return osd_status_from_errno(errno);
	return OSD_OK;
}

/* Removes files of the directory open as fd (taken over), depth levels deep: those chosen, or all with their folders
 * (chosen is NULL).  Returns an errno. */
static int remove_files(int fd, unsigned depth, bool (*chosen)(const char *name))
{
	DIR *directory = fdopendir(fd);
	struct dirent *entry;
	int error = 0;

	if (!directory) {
		error = errno;
		close(fd);
		return error;
	}
	while (!error && (entry = readdir(directory))) {
		int child;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (depth == 0) {
			if ((!chosen || chosen(entry->d_name)) &&
			    unlinkat(fd, entry->d_name, 0) < 0 && errno != ENOENT)
				error = errno;
			continue;
		}
		child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* A call that removes only some files passes over foreign files and links. */
		if (child >= 0)
			error = remove_files(child, depth - 1, chosen);
		else if (!chosen || (errno != ENOTDIR && errno != ELOOP))
			error = errno;
		if (!error && !chosen && unlinkat(fd, entry->d_name, AT_REMOVEDIR) < 0)
			error = errno;
	}
	closedir(directory);
	return error;
}

static enum osd_status file_remove_partition(struct osd_data *base, uint64_t partition_id,
					     uint32_t incarnation)
{
	struct osd_data_name name = {.partition_id = partition_id, .incarnation = incarnation};
	struct file_data *data = to_data(base);
	struct file_path path;
	int fd, error;

	make_path(&name, &path);
	path.text[path.partition_length] = '\0';
	fd = openat(data->directory_fd, path.text, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? OSD_OK : osd_status_from_errno(errno);
	error = remove_files(fd, 1, NULL);
	if (!error && unlinkat(data->directory_fd, path.text, AT_REMOVEDIR) < 0)
		error = errno;
	return osd_status_from_errno(error);
}

static bool is_sums(const char *name)
{
	return strlen(name) == SUMS_NAME && name[16] == '.' && name[SUMS_NAME - 1] == 's';
}

enum osd_status osd_file_data_remove_sums(int directory_fd)
{
	int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return osd_status_from_errno(fd < 0 ? errno : remove_files(fd, 2, is_sums));
}

static enum osd_status file_sync_all(struct osd_data *base)
{
	return result(syncfs(to_data(base)->directory_fd));
}

static enum osd_status file_capacity(struct osd_data *base, uint64_t *ret_total, uint64_t *ret_free)
{
	struct statvfs stat;

	if (fstatvfs(to_data(base)->directory_fd, &stat) < 0)
		return osd_status_from_errno(errno);
	*ret_total = (uint64_t)(stat.f_blocks - (stat.f_bfree - stat.f_bavail)) * stat.f_frsize;
	*ret_free = (uint64_t)stat.f_bavail * stat.f_frsize;
	return OSD_OK;
}

static int file_plain_fd(struct osd_data_file *file, uint64_t offset, const void *bytes,
			 size_t length)
{
	if (offset > INT64_MAX || length > INT64_MAX - offset)
		return -1;
	if (direct_fd_of(file) < 0 || !bytes)
		return fd_of(file);
	return osd_direct_fits(offset, bytes, length) ? direct_fd_of(file) : -1;
}

static void file_data_close(struct osd_data *base)
{
	free(to_data(base));
}

static const struct osd_data_ops file_ops = {
	.close = file_data_close,
	.open_file = file_open,
	.close_file = file_close,
	.read = osd_file_read,
	.write = osd_file_write,
	.truncate = osd_file_truncate,
	.zero = osd_file_zero,
	.stat = osd_file_stat,
	.next_extent = osd_file_next_extent,
	.copy = osd_file_copy,
	.clone = osd_file_clone,
	.can_clone = file_can_clone,
	.sync = file_sync,
	.share = file_share,
	.set_modified = file_set_modified,
	.sync_directories = file_sync_directories,
	.link = file_link,
	.remove = file_remove,
	.remove_partition = file_remove_partition,
	.sync_all = file_sync_all,
	.capacity = file_capacity,
	.plain_fd = file_plain_fd,
};

enum osd_status osd_file_data_open(int directory_fd, bool direct, struct osd_data **ret_data)
{
	struct file_data *data = malloc(sizeof(*data));

	if (!data)
		return OSD_E_NO_MEMORY;
	*data = (struct file_data){
		{.ops = &file_ops}, directory_fd, osd_file_try_clone(directory_fd), direct};
	*ret_data = &data->base;
	return OSD_OK;
}
