/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_heads.h -- for tests of heads: a store with two roots, what lies in them, and the settings. */
#ifndef OSD_OBJECT_TEST_HEADS_H
#define OSD_OBJECT_TEST_HEADS_H

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "object/test_model.h"

#define HEADS_ROOT ((struct osd_object_id){0, 0})

/* Numbers of pages 2000_0004h and B000_0003h (docs/tiers.md). */
enum { HEAD_SIZE = 1, HEAD_ON, HEAD_SSD_BYTES, HEAD_HDD_BYTES };
enum { ON_NONE, ON_SSD, ON_HDD };
enum {
	HEADS_SIZE = 1,
	HEADS_POLICY,
	HEADS_HIGH,
	HEADS_LOW,
	HEADS_RATE,
	HEADS_DRAIN,
	HEADS_SSD_BYTES = 11,
	HEADS_HDD_BYTES,
	HEADS_TO_SSD,
	HEADS_TO_HDD,
	HEADS_PASSED_OVER = 17,
};

struct heads_store {
	struct test_store store;
	struct osd_heads_config heads;
	char ssd[64];
};

/* The file system of these tests, whatever the machine's is full of.  It is small, so that the ballast is, and
 * the log, which each opening reads. */
static _Atomic unsigned heads_used_percent = 50;

int fstatvfs(int fd, struct statvfs *stat)
{
	(void)fd;
	*stat = (struct statvfs){.f_bsize = 4096, .f_frsize = 4096, .f_blocks = 1u << 15};
	stat->f_bfree = stat->f_blocks / 100 * (100 - heads_used_percent);
	stat->f_bavail = stat->f_bfree;
	return 0;
}

static inline void heads_init(struct heads_store *store, uint64_t head_bytes)
{
	uint64_t pid;

	test_store_init(&store->store, true);
	test_folder(store->ssd, sizeof(store->ssd));
	store->heads = (struct osd_heads_config){
		.head_bytes = head_bytes, .high_percent = 99, .low_percent = 98};
	store->store.config.ssd_directory = store->ssd;
	store->store.config.heads = &store->heads;
	test_store_open(&store->store);
	OK(test_partition(store->store.objects, MODEL_PID, &pid));
	OK(test_declare(store->store.objects, MODEL_PID, MODEL_PAGE));
}

static inline void heads_release(struct heads_store *store)
{
	test_store_release(&store->store);
	test_folder_remove(store->ssd);
}

static unsigned heads_files;

static inline int heads_count_entry(const char *path, const struct stat *stat, int type,
				    struct FTW *ftw)
{
	(void)ftw;
	if (type == FTW_F && S_ISREG(stat->st_mode) && strstr(path, "/data/") &&
	    path[strlen(path) - 1] != 's')
		heads_files++;
	return 0;
}

/* How many files of objects a root has; those of their checksums do not count. */
static inline unsigned heads_files_in(const char *directory)
{
	heads_files = 0;
	CHECK(nftw(directory, heads_count_entry, 16, FTW_PHYS) == 0);
	return heads_files;
}

static inline uint64_t heads_get(struct osd_objects *objects, uint32_t number)
{
	return test_get_number(objects, HEADS_ROOT, OSD_PAGE_HEADS_ROOT, number);
}

static inline void heads_set(struct osd_objects *objects, uint32_t number, uint64_t value)
{
	size_t width = number == HEADS_SIZE || number == HEADS_RATE ? 8 : 1;

	OK(test_set_number(objects, HEADS_ROOT, OSD_PAGE_HEADS_ROOT, number, value, width));
}

static inline uint64_t head_get(struct osd_objects *objects, struct osd_object_id id,
				uint32_t number)
{
	return test_get_number(objects, id, OSD_PAGE_HEAD, number);
}

/* 30 s are for ever.  Once the condition was true it is not evaluated again: the mover may go on. */
#define HEADS_WAIT(condition)                                                                      \
	do {                                                                                       \
		int heads_left = 30000;                                                            \
                                                                                                   \
		while (!(condition)) {                                                             \
			CHECK(heads_left-- > 0);                                                   \
			usleep(1000);                                                              \
		}                                                                                  \
	} while (0)

#endif
