/* SPDX-License-Identifier: GPL-2.0-or-later */
/* root.c -- see root.h. */
#include "root.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "scratch.h"

/* any directory that every host has: the mount on it exists in this namespace only */
#define STAGE "/tmp"
#define STAGE_INODES 192 /* in addition to the places of scratch folders */
#define COPY_BYTES (1u << 20)

struct entry {
	const char *path; /* on the host, and below the new root */
	bool directory, optional;
};

static const struct entry binds[] = {
	{"/usr/lib/x86_64-linux-gnu", true, true},
	{"/usr/lib/aarch64-linux-gnu", true, true},
	{"/usr/share/zoneinfo", true, true},
	{"/dev/null", false, false},
	{"/dev/zero", false, false},
	{"/dev/urandom", false, false},
};

/* mkdir -p of target's parents (and of target itself when it is a directory) below STAGE. */
static int make_place(const struct entry *entry, char path[PATH_MAX], struct osd_step *step)
{
	size_t length = (size_t)snprintf(path, PATH_MAX, "%s%s", STAGE, entry->path);
	int fd;

	for (size_t i = sizeof(STAGE); i <= length; i++) {
		char kept = path[i];

		if (kept != '/' && !(kept == '\0' && entry->directory))
			continue;
		path[i] = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return osd_step_failed(step, "make directory", path);
		path[i] = kept;
	}
	if (entry->directory)
		return 0;
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		return osd_step_failed(step, "make file", path);
	close(fd);
	return 0;
}

/* A read-only bind keeps the flags the host mounted with: inside a user namespace they are
 * locked. */
static int make_read_only(const char *path, unsigned long more, struct osd_step *step)
{
	unsigned long flags = MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | more;
	struct statvfs fs;

	if (statvfs(path, &fs) < 0)
		return osd_step_failed(step, "look at mount", path);
	flags |= fs.f_flag & ST_NODEV ? MS_NODEV : 0;
	flags |= fs.f_flag & ST_NOEXEC ? MS_NOEXEC : 0;
	flags |= fs.f_flag & ST_NOATIME ? MS_NOATIME : 0;
	flags |= fs.f_flag & ST_NODIRATIME ? MS_NODIRATIME : 0;
	flags |= fs.f_flag & ST_RELATIME ? MS_RELATIME : 0;
	if (mount(NULL, path, NULL, flags, NULL) < 0)
		return osd_step_failed(step, "make read-only", path);
	return 0;
}

static int bind_entry(const struct entry *entry, struct osd_step *step)
{
	char path[PATH_MAX];
	int error;

	if (entry->optional && access(entry->path, F_OK) < 0)
		return 0;
	error = make_place(entry, path, step);
	if (error)
		return error;
	if (mount(entry->path, path, NULL, MS_BIND | MS_REC, NULL) < 0)
		return osd_step_failed(step, "bind", entry->path);
	return entry->directory ? make_read_only(path, 0, step) : 0;
}

/* ---- the package osd: copied, not bound ----------------------------------------------------- */

/* It may be below a home directory that only its owner can search.  The daemon opened it as root, and
 * reads through that descriptor need no permission on the folders above.  The time stays, since byte-code
 * names that of its source. */
static int copy_file(int from_directory, int to_directory, const char *name, struct osd_step *step)
{
	OSD_CLEANUP_CLOSE int from =
		openat(from_directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	OSD_CLEANUP_CLOSE int to =
		openat(to_directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	struct stat found;
	ssize_t copied;

	if (from < 0 || to < 0 || fstat(from, &found) < 0)
		return osd_step_failed(step, "copy", name);
	do {
		copied = sendfile(to, from, NULL, COPY_BYTES);
	} while (copied > 0);
	if (copied < 0 || futimens(to, (struct timespec[]){found.st_atim, found.st_mtim}) < 0)
		return osd_step_failed(step, "copy", name);
	return 0;
}

static bool ends_with(const char *name, const char *end)
{
	size_t length = strlen(name), of_end = strlen(end);

	return length > of_end && strcmp(name + length - of_end, end) == 0;
}

/* Source, or the byte-code that saves the interpreter a third of its start. */
static bool is_module(const char *name)
{
	return ends_with(name, ".py") || ends_with(name, OSD_PYTHON_CACHED);
}

static int copy_modules(int from_directory, int to_directory, struct osd_step *step);

/* A folder of the package; other files stay behind. */
static int copy_folder(int from_directory, int to_directory, const char *name,
		       struct osd_step *step)
{
	OSD_CLEANUP_CLOSE int from =
		openat(from_directory, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	OSD_CLEANUP_CLOSE int to = -1;

	if (from < 0)
		return errno == ENOTDIR ? 0 : osd_step_failed(step, "copy", name);
	if (mkdirat(to_directory, name, 0755) < 0)
		return osd_step_failed(step, "make folder", name);
	to = openat(to_directory, name, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return to < 0 ? osd_step_failed(step, "copy", name) : copy_modules(from, to, step);
}

static int copy_modules(int from_directory, int to_directory, struct osd_step *step)
{
	int error = 0;
	struct dirent *entry;
	DIR *from = fdopendir(openat(from_directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (!from)
		return osd_step_failed(step, "read the package osd", NULL);
	while (!error && (entry = readdir(from))) {
		if (is_module(entry->d_name))
			error = copy_file(from_directory, to_directory, entry->d_name, step);
		else if (entry->d_name[0] != '.')
			error = copy_folder(from_directory, to_directory, entry->d_name, step);
	}
	closedir(from);
	return error;
}

static int copy_package(int package_fd, struct osd_step *step)
{
	static const struct entry place = {OSD_ROOT_PACKAGE, true, false};
	OSD_CLEANUP_CLOSE int to = -1;
	char path[PATH_MAX];
	int error = make_place(&place, path, step);

	if (error)
		return error;
	to = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return to < 0 ? osd_step_failed(step, "read the package osd", NULL)
		      : copy_modules(package_fd, to, step);
}

/* ---- the package set: bound, through its descriptor ------------------------------------------ */

/* No MS_NOEXEC: the zygote maps extension modules.  Sandboxes cannot, their filter sees to that. */
static int bind_set(int set_fd, struct osd_step *step)
{
	static const struct entry place = {OSD_ROOT_SET, true, false};
	char path[PATH_MAX], from[64];
	int error = make_place(&place, path, step);

	if (error)
		return error;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", set_fd);
	if (mount(from, path, NULL, MS_BIND, NULL) < 0)
		return osd_step_failed(step, "bind", "the package set");
	return make_read_only(path, MS_NODEV, step);
}

static int link_libraries(struct osd_step *step)
{
	/* the merged /usr of Debian: the loader searches /lib/<triplet> first */
	if (symlink("usr/lib", STAGE "/lib") < 0)
		return osd_step_failed(step, "link", "/lib");
	return 0;
}

/* Makes empty folders for the mounts of scratch.c, because the root is read-only later. */
static int make_scratch_places(unsigned slots, struct osd_step *step)
{
	char path[sizeof(STAGE) + OSD_SCRATCH_PATH] = STAGE OSD_SCRATCH_PLACE;

	if (mkdir(path, 0711) < 0)
		return osd_step_failed(step, "make directory", path);
	for (unsigned i = 0; i < slots; i++) {
		osd_scratch_path(i, path + sizeof(STAGE) - 1);
		if (mkdir(path, 0) < 0)
			return osd_step_failed(step, "make directory", path);
	}
	return 0;
}

static int mount_stage(unsigned slots, struct osd_step *step)
{
	char options[64];

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return osd_step_failed(step, "make mounts private", NULL);
	snprintf(options, sizeof(options), "mode=0755,size=2m,nr_inodes=%u", STAGE_INODES + slots);
	if (mount("iosd", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return osd_step_failed(step, "mount tmpfs", NULL);
	return make_scratch_places(slots, step);
}

static int bind_all(const char *const *folders, struct osd_step *step)
{
	int error = 0;

	for (; *folders && !error; folders++)
		error = bind_entry(&(struct entry){*folders, true, false}, step);
	for (size_t i = 0; i < sizeof(binds) / sizeof(binds[0]) && !error; i++)
		error = bind_entry(&binds[i], step);
	return error;
}

int osd_root_enter(const char *const *folders, int package_fd, int set_fd, unsigned slots,
		   struct osd_step *step)
{
	int error = mount_stage(slots, step);

	if (!error)
		error = bind_all(folders, step);
	if (!error)
		error = link_libraries(step);
	if (!error)
		error = copy_package(package_fd, step);
	if (!error && set_fd >= 0)
		error = bind_set(set_fd, step);
	if (error)
		return error;
	if (chdir(STAGE) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
		return osd_step_failed(step, "change root", NULL);
	/* the old root is on top of the new one now: unmount it */
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return osd_step_failed(step, "leave the old root", NULL);
	return make_read_only("/", 0, step);
}
