/* SPDX-License-Identifier: GPL-2.0-or-later */
/* interpose.c -- preloaded into a program under test: its n-th call of one kind fails, or is the
 * last thing the process does.
 *
 * IOSD_FAULT=KIND:PHASE:N:ACTION
 *   KIND    disk: calls that change a file or a directory; memory: allocations
 *   PHASE   start: counted from the beginning; serve: from the first read of standard input
 *   N       from 1
 *   ACTION  kill: SIGKILL instead of the call; late: after it; short: a write does its first half
 *           (of other calls: nothing happens); a number: the call fails with that errno
 * IOSD_FAULT_COUNT names a file whose first 8 bytes are kept at the calls counted so far, in the
 * machine's order.
 * IOSD_FAULT_SWITCH names a file: while its first 8 bytes are an errno, changes of data files (not of
 * the database) fail with it.
 * IOSD_DEVICES=FILE:FOLDER[:FOLDER] makes each FOLDER a device that can be broken: FILE has for each, one
 * after the other, four numbers of 8 bytes: the errno that its reads fail with, that its writes, cuts
 * and syncs fail with, and that opening, making and removing names fail with (0: none), and the
 * microseconds that a read, write or sync takes longer; then how many syncs it was asked for.
 * IOSD_NO_DIRECT: no file can be opened past the page cache.
 * IOSD_SYNC_COUNT names a file whose first 8 bytes are kept at the fsyncs of data files and of whole
 * file systems, failed ones too.
 *
 * What a ring of io_uring does would pass by all this, so there are none.
 *
 * Calls go to the kernel by syscall(2), allocations to the C library's own names, so nothing here
 * allocates or looks symbols up. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The names of glibc 2.36 (Debian 12); no header declares them. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

enum kind { DISK, MEMORY };
enum verdict { PASS, FAIL, HALF, LATE };

static struct {
	enum kind kind;
	uint64_t at;
	int error; /* errno; 0: see the next three */
	bool kill, late, half;
	_Atomic bool counts; /* in this phase */
	_Atomic uint64_t *calls;
} plan;
static _Atomic uint64_t own_calls, never;
static _Atomic uint64_t *switched = &never, *syncs;

enum ask { READS, CHANGES, NAMES, DELAY, SYNCS, DEVICE_NUMBERS };

#define DEVICES 2

static struct {
	char folder[PATH_MAX];
	_Atomic uint64_t *numbers; /* DEVICE_NUMBERS of them */
} devices[DEVICES];
static unsigned device_count;

/* The first numbers of a file, shared with whoever else has it; NULL: cannot be had. */
static _Atomic uint64_t *share_many(const char *file, size_t count)
{
	int fd = (int)syscall(SYS_open, file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *page = MAP_FAILED;

	if (fd >= 0 && syscall(SYS_ftruncate, fd, (long)(count * sizeof(uint64_t))) == 0)
		page = mmap(NULL, count * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		syscall(SYS_close, fd);
	return page == MAP_FAILED ? NULL : page;
}

static _Atomic uint64_t *share(const char *file)
{
	return share_many(file, 1);
}

static void read_devices(char *text)
{
	char *rest = NULL, *file = strtok_r(text, ":", &rest), *folder;
	_Atomic uint64_t *numbers = share_many(file, DEVICES * DEVICE_NUMBERS);

	while (numbers && device_count < DEVICES && (folder = strtok_r(NULL, ":", &rest))) {
		snprintf(devices[device_count].folder, PATH_MAX, "%s/", folder);
		devices[device_count].numbers = numbers + device_count * DEVICE_NUMBERS;
		device_count++;
	}
}

__attribute__((constructor)) static void read_plan(void)
{
	const char *text = getenv("IOSD_FAULT"), *file = getenv("IOSD_FAULT_COUNT");
	const char *by = getenv("IOSD_FAULT_SWITCH"), *counted = getenv("IOSD_SYNC_COUNT");
	_Atomic uint64_t *shared = by ? share(by) : NULL;
	char kind[16], phase[16], action[16];
	unsigned long long at;

	if (getenv("IOSD_DEVICES"))
		read_devices(getenv("IOSD_DEVICES"));
	if (shared)
		switched = shared;
	syncs = counted ? share(counted) : NULL;
	plan.calls = &own_calls;
	if (!text || sscanf(text, "%15[^:]:%15[^:]:%llu:%15s", kind, phase, &at, action) != 4)
		return;
	plan.kind = strcmp(kind, "memory") == 0 ? MEMORY : DISK;
	plan.at = at;
	plan.kill = strcmp(action, "kill") == 0;
	plan.late = strcmp(action, "late") == 0;
	plan.half = strcmp(action, "short") == 0;
	plan.error = atoi(action);
	shared = file ? share(file) : NULL;
	if (shared)
		plan.calls = shared;
	plan.counts = strcmp(phase, "start") == 0;
}

static void die(void)
{
	syscall(SYS_kill, (long)getpid(), (long)SIGKILL);
	for (;;)
		pause();
}

static enum verdict judge(enum kind kind)
{
	if (plan.kind != kind || !plan.at || !atomic_load(&plan.counts))
		return PASS;
	if (atomic_fetch_add(plan.calls, 1) + 1 != plan.at)
		return PASS;
	if (plan.kill)
		die();
	if (plan.late)
		return LATE;
	if (plan.half)
		return HALF;
	errno = plan.error;
	return FAIL;
}

/* ---- files ------------------------------------------------------------------------------------ */

/* With a / at its end, for folders; empty: it has none. */
static void path_of(int fd, char path[PATH_MAX])
{
	char link[32];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, PATH_MAX - 2);
	if (length > 0)
		path[length++] = '/';
	path[length > 0 ? length : 0] = '\0';
}

static bool is_data(int fd)
{
	char path[PATH_MAX];

	path_of(fd, path);
	return strstr(path, "/data/") != NULL;
}

/* Whether the device refuses, in errno. */
static bool device_fails_at(const char *path, enum ask ask)
{
	for (unsigned i = 0; i < device_count; i++) {
		_Atomic uint64_t *numbers = devices[i].numbers;
		uint64_t delay = ask == NAMES ? 0 : atomic_load(&numbers[DELAY]);
		struct timespec time = {(time_t)(delay / 1000000), (long)(delay % 1000000) * 1000};

		if (strncmp(path, devices[i].folder, strlen(devices[i].folder)) != 0)
			continue;
		if (delay)
			nanosleep(&time, NULL);
		errno = (int)atomic_load(&numbers[ask]);
		return errno != 0;
	}
	return false;
}

static bool device_fails(int fd, enum ask ask)
{
	char path[PATH_MAX];

	if (!device_count)
		return false;
	path_of(fd, path);
	return device_fails_at(path, ask);
}

static bool device_is_slow(int fd)
{
	char path[PATH_MAX];

	if (!device_count)
		return false;
	path_of(fd, path);
	for (unsigned i = 0; i < device_count; i++)
		if (strncmp(path, devices[i].folder, strlen(devices[i].folder)) == 0)
			return atomic_load(&devices[i].numbers[DELAY]) > 0;
	return false;
}

static bool name_fails(int fd, const char *name)
{
	char path[PATH_MAX];

	if (!device_count)
		return false;
	if (name[0] == '/' || fd == AT_FDCWD)
		snprintf(path, sizeof(path), "%.*s/", PATH_MAX - 2, name);
	else
		path_of(fd, path);
	return device_fails_at(path, NAMES);
}

static enum verdict judge_file(int fd)
{
	uint64_t error = atomic_load(switched);
	struct stat status;

	if (device_fails(fd, CHANGES))
		return FAIL;
	if (error && is_data(fd)) {
		errno = (int)error;
		return FAIL;
	}
	if (plan.kind != DISK || fd <= 2 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
		return PASS;
	return judge(DISK);
}

static long done(enum verdict verdict, long result)
{
	if (verdict == LATE)
		die();
	return result;
}

/* One system call as a change of the disk; `short` has no meaning for most and lets them be. */
#define CHANGE(verdict_, call_)                                                                    \
	do {                                                                                       \
		enum verdict verdict = (verdict_);                                                 \
		return verdict == FAIL ? -1 : (int)done(verdict, call_);                           \
	} while (0)

ssize_t write(int fd, const void *bytes, size_t length)
{
	enum verdict verdict = judge_file(fd);

	if (verdict == FAIL)
		return -1;
	if (verdict == HALF && length > 1)
		length /= 2;
	return done(verdict, syscall(SYS_write, fd, bytes, length));
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset)
{
	enum verdict verdict = judge_file(fd);

	if (verdict == FAIL)
		return -1;
	if (verdict == HALF && length > 1)
		length /= 2;
	return done(verdict, syscall(SYS_pwrite64, fd, bytes, length, offset));
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	return pwrite64(fd, bytes, length, offset);
}

static void count_sync(int fd)
{
	char path[PATH_MAX];

	if (device_count)
		path_of(fd, path);
	for (unsigned i = 0; i < device_count; i++)
		if (strncmp(path, devices[i].folder, strlen(devices[i].folder)) == 0)
			atomic_fetch_add(&devices[i].numbers[SYNCS], 1);
	if (syncs && is_data(fd))
		atomic_fetch_add(syncs, 1);
}

int fsync(int fd)
{
	count_sync(fd);
	CHANGE(judge_file(fd), syscall(SYS_fsync, fd));
}

int fdatasync(int fd)
{
	count_sync(fd);
	CHANGE(judge_file(fd), syscall(SYS_fdatasync, fd));
}

int syncfs(int fd)
{
	if (syncs && !is_data(fd))
		atomic_fetch_add(syncs, 1);
	count_sync(fd);
	CHANGE(device_fails(fd, CHANGES) ? FAIL : judge(DISK), syscall(SYS_syncfs, fd));
}

int ftruncate64(int fd, off64_t length)
{
	CHANGE(judge_file(fd), syscall(SYS_ftruncate, fd, length));
}

int ftruncate(int fd, off_t length)
{
	return ftruncate64(fd, length);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length)
{
	CHANGE(judge_file(fd), syscall(SYS_fallocate, fd, mode, offset, length));
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
	return fallocate64(fd, mode, offset, length);
}

int futimens(int fd, const struct timespec times[2])
{
	CHANGE(judge_file(fd), syscall(SYS_utimensat, fd, NULL, times, 0));
}

ssize_t copy_file_range(int in, off64_t *in_at, int out, off64_t *out_at, size_t length,
			unsigned flags)
{
	enum verdict verdict = judge_file(out);

	if (verdict == FAIL)
		return -1;
	if (verdict == HALF && length > 1)
		length /= 2;
	return done(verdict, syscall(SYS_copy_file_range, in, in_at, out, out_at, length, flags));
}

ssize_t pread64(int fd, void *bytes, size_t length, off64_t offset)
{
	return device_fails(fd, READS) ? -1 : syscall(SYS_pread64, fd, bytes, length, offset);
}

ssize_t pread(int fd, void *bytes, size_t length, off_t offset)
{
	return pread64(fd, bytes, length, offset);
}

ssize_t preadv64v2(int fd, const struct iovec *pieces, int count, off64_t offset, int flags)
{
	if (flags & RWF_NOWAIT && device_is_slow(fd)) {
		errno = EAGAIN;
		return -1;
	}
	if (device_fails(fd, READS))
		return -1;
	return syscall(SYS_preadv2, fd, pieces, count, offset, 0L, flags);
}

ssize_t preadv2(int fd, const struct iovec *pieces, int count, off_t offset, int flags)
{
	return preadv64v2(fd, pieces, count, offset, flags);
}

int rename(const char *from, const char *to)
{
	CHANGE(judge(DISK), syscall(SYS_rename, from, to));
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	CHANGE(name_fails(to_fd, to) ? FAIL : judge(DISK), syscall(SYS_renameat, from_fd, from, to_fd, to));
}

int unlink(const char *path)
{
	CHANGE(judge(DISK), syscall(SYS_unlink, path));
}

int unlinkat(int fd, const char *path, int flags)
{
	CHANGE(name_fails(fd, path) ? FAIL : judge(DISK), syscall(SYS_unlinkat, fd, path, flags));
}

int mkdir(const char *path, mode_t mode)
{
	CHANGE(judge(DISK), syscall(SYS_mkdir, path, mode));
}

int mkdirat(int fd, const char *path, mode_t mode)
{
	CHANGE(name_fails(fd, path) ? FAIL : judge(DISK), syscall(SYS_mkdirat, fd, path, mode));
}

/* The argument behind flags, which is there when a file may be made. */
#define TAKE_MODE(flags, mode)                                                                     \
	do {                                                                                       \
		va_list list;                                                                      \
                                                                                                   \
		va_start(list, flags);                                                             \
		if (flags & O_CREAT)                                                               \
			mode = va_arg(list, mode_t);                                               \
		va_end(list);                                                                      \
	} while (0)

int openat64(int fd, const char *path, int flags, ...)
{
	mode_t mode = 0;

	TAKE_MODE(flags, mode);
	if (name_fails(fd, path))
		return -1;
	if (flags & O_DIRECT && getenv("IOSD_NO_DIRECT")) {
		errno = EINVAL;
		return -1;
	}
	CHANGE(flags & O_CREAT ? judge(DISK) : PASS, syscall(SYS_openat, fd, path, flags, mode));
}

int openat(int fd, const char *path, int flags, ...)
{
	mode_t mode = 0;

	TAKE_MODE(flags, mode);
	return openat64(fd, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	mode_t mode = 0;

	TAKE_MODE(flags, mode);
	return openat64(AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	mode_t mode = 0;

	TAKE_MODE(flags, mode);
	return openat64(AT_FDCWD, path, flags, mode);
}

struct io_uring;

int io_uring_queue_init(unsigned entries, struct io_uring *ring, unsigned flags)
{
	(void)entries, (void)ring, (void)flags;
	return -ENOSYS;
}

/* ---- the phase -------------------------------------------------------------------------------- */

ssize_t read(int fd, void *bytes, size_t length)
{
	if (fd == 0)
		atomic_store(&plan.counts, true);
	return syscall(SYS_read, fd, bytes, length);
}

ssize_t readv(int fd, const struct iovec *pieces, int count)
{
	if (fd == 0)
		atomic_store(&plan.counts, true);
	return syscall(SYS_readv, fd, pieces, count);
}

/* ---- memory ----------------------------------------------------------------------------------- */

static bool refused(void)
{
	enum verdict verdict = judge(MEMORY);

	if (verdict == PASS)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t size)
{
	return refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return refused() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	return refused() ? NULL : __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return refused() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
	void *made = refused() ? NULL : __libc_memalign(alignment, size);

	if (!made)
		return ENOMEM;
	*ret = made;
	return 0;
}
