/* SPDX-License-Identifier: GPL-2.0-or-later */
/* confine.c -- see confine.h. */
#include "confine.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "rlimits.h"

/* The hard limit that leaves the daemon room to raise the soft one. */
static rlim_t room(const struct osd_rlimit *row)
{
	struct rlimit own;

	if (getrlimit((__rlimit_resource_t)row->resource, &own) < 0)
		return row->value;
	return own.rlim_max < row->ceiling ? own.rlim_max : row->ceiling;
}

int osd_confine_rlimits(const struct osd_sandbox_limits *limits, uint64_t file_bytes, bool final,
			struct osd_step *step)
{
	struct osd_rlimit table[OSD_RLIMIT_COUNT];

	osd_limits_table(limits, file_bytes, table);
	for (size_t i = 0; i < OSD_RLIMIT_COUNT; i++) {
		struct rlimit limit = {table[i].value, final ? table[i].value : room(&table[i])};

		if (setrlimit((__rlimit_resource_t)table[i].resource, &limit) < 0)
			return osd_step_failed(step, "limit", table[i].name);
	}
	return 0;
}

/* ---- Landlock: the header of Debian 12 knows ABI 2; what came later is named here ------------ */

struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net; /* ABI 4 */
	uint64_t scoped;             /* ABI 6 */
};

#define FS_ACCESS(abi)                                                                             \
	((abi) >= 5 ? UINT64_C(0xffff) : (abi) >= 3 ? UINT64_C(0x7fff)                             \
				       : (abi) >= 2 ? UINT64_C(0x3fff)                             \
						    : UINT64_C(0x1fff))
#define NET_ACCESS    UINT64_C(0x3) /* bind and connect TCP */
#define SCOPES        UINT64_C(0x3) /* abstract Unix sockets, signals */
#define READ_ACCESS   (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define DEVICE_ACCESS LANDLOCK_ACCESS_FS_READ_FILE
#define SINK          "/dev/null"

#define ACCESS_REFER    (UINT64_C(1) << 13) /* ABI 2: move between folders */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14) /* ABI 3 */
/* No links, pipes, sockets or devices. */
#define SCRATCH_ACCESS                                                                             \
	(READ_ACCESS | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |             \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | ACCESS_REFER | ACCESS_TRUNCATE)

static int allow_at(int ruleset_fd, int path_fd, uint64_t access, const char *path,
		    struct osd_step *step)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = path_fd};

	if (syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return osd_step_failed(step, "add Landlock rule for", path);
	return 0;
}

/* Devices are read-only, except /dev/null: a writable shared map of /dev/zero would be memory that
 * RLIMIT_DATA does not count. */
static int allow_reading(int ruleset_fd, const char *path, struct osd_step *step)
{
	OSD_CLEANUP_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);
	uint64_t access = READ_ACCESS;
	struct stat status;

	if (fd < 0)
		return errno == ENOENT ? 0 : osd_step_failed(step, "open", path);
	if (fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode))
		access = DEVICE_ACCESS;
	if (strcmp(path, SINK) == 0)
		access |= LANDLOCK_ACCESS_FS_WRITE_FILE;
	return allow_at(ruleset_fd, fd, access, path, step);
}

static int allow_all(int ruleset_fd, const char *const *paths, struct osd_step *step)
{
	int error = 0;

	for (; *paths && !error; paths++)
		error = allow_reading(ruleset_fd, *paths, step);
	return error;
}

static int allow_scratch(int ruleset_fd, const char *path, long abi, struct osd_step *step)
{
	OSD_CLEANUP_CLOSE int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return osd_step_failed(step, "open", path);
	return allow_at(ruleset_fd, fd, SCRATCH_ACCESS & FS_ACCESS(abi), path, step);
}

int osd_landlock_build(const char *const *folders, const char *package, const char *set,
		       const char *scratch, int *ret_ruleset_fd, struct osd_step *step)
{
	const char *const readable[] = {"/usr/share/zoneinfo", package, SINK, "/dev/zero",
					"/dev/urandom", set, NULL};
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	OSD_CLEANUP_CLOSE int fd = -1;
	struct ruleset_attr attr = {0};
	size_t size;
	int error = 0;

	if (abi < 1)
		return osd_step_failed(step, "ask for Landlock", NULL);
	attr.handled_access_fs = FS_ACCESS(abi);
	attr.handled_access_net = abi >= 4 ? NET_ACCESS : 0;
	attr.scoped = abi >= 6 ? SCOPES : 0;
	size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		return osd_step_failed(step, "make Landlock ruleset", NULL);
	error = allow_all(fd, folders, step);
	if (!error)
		error = allow_all(fd, readable, step);
	if (!error && scratch)
		error = allow_scratch(fd, scratch, abi, step);
	if (error)
		return error;
	*ret_ruleset_fd = fd;
	fd = -1;
	return 0;
}
