/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_room.c -- a full disk: removing the ballast makes room for all transactions that met it, not for one. */
#include <errno.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "object/internal.h"
#include "object/test_support.h"
#include "object/txn_run.h"

#define PID UINT64_C(0x10000)

/* Writes of this thread find the disk full.  Berkeley DB writes its log with pwrite(), then with write(). */
static _Thread_local bool full;
static _Atomic bool no_blocks; /* what fstatvfs() says of the disk */

static bool is_full(void)
{
	errno = full ? ENOSPC : errno;
	return full;
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *bytes, size_t count,
						      off_t offset)
{
	return is_full() ? -1 : syscall(SYS_pwrite64, fd, bytes, count, offset);
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *bytes, size_t count)
{
	return is_full() ? -1 : syscall(SYS_write, fd, bytes, count);
}

int fstatvfs(int fd, struct statvfs *stat)
{
	(void)fd;
	*stat = (struct statvfs){.f_bsize = 4096, .f_frsize = 4096, .f_blocks = 1u << 15};
	stat->f_bfree = stat->f_bavail = atomic_load(&no_blocks) ? 0 : stat->f_blocks / 2;
	return 0;
}

struct removal {
	struct osd_object_id id;
	unsigned left; /* runs of the transaction that meet the full disk */
	unsigned runs;
};

static enum osd_status remove_in(struct osd_txn *txn, void *arg)
{
	struct removal *removal = arg;

	removal->runs++;
	full = removal->left > 0;
	removal->left -= full;
	return osd_user_object_remove(txn, removal->id);
}

static enum osd_status remove_on_full(struct osd_objects *objects, struct removal *removal)
{
	enum osd_status status = osd_txn_run(objects, 0, remove_in, removal);

	full = false;
	return status;
}

static void open_store(struct test_store *store, struct removal *removal)
{
	uint64_t pid;

	test_store_init(store, true);
	test_store_open(store);
	OK(test_partition(store->objects, 0, &pid));
	removal->id.partition_id = PID;
	OK(test_create(store->objects, PID, 0, &removal->id.object_id));
}

/* The second time is that of another transaction, which met the full disk when the first one did. */
static void test_both_again(void)
{
	struct removal removal = {.left = 2};
	struct test_store store;

	open_store(&store, &removal);
	OK(remove_on_full(store.objects, &removal));
	CHECK_EQ(removal.runs, 3);
	test_store_release(&store);
}

/* The ballast was not enough. */
static void test_still_full(void)
{
	struct removal removal = {.left = 2};
	struct test_store store;

	open_store(&store, &removal);
	atomic_store(&no_blocks, true);
	CHECK_EQ(remove_on_full(store.objects, &removal), OSD_E_NO_SPACE);
	CHECK_EQ(removal.runs, 2);
	atomic_store(&no_blocks, false);
	test_store_release(&store);
}

/* Nobody may use the free blocks, as where a quota of the file system is exhausted. */
static void test_quota(void)
{
	struct removal removal = {.left = UINT32_MAX};
	enum osd_status status = OSD_E_BUSY;
	struct test_store store;

	open_store(&store, &removal);
	for (int i = 0; status == OSD_E_BUSY && i < 100; i++)
		status = remove_on_full(store.objects, &removal);
	CHECK_EQ(status, OSD_E_NO_SPACE);
	test_store_release(&store);
}

int main(void)
{
	test_both_again();
	test_still_full();
	test_quota();
	return 0;
}
