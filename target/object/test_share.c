/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_share.c -- descriptors given to a sandbox: read-only, sealed, a version that is odd while a
 * writer is at work, no SIGBUS when the object is cut; objects over two roots; and a write that fails
 * meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "object/internal.h"
#include "object/test_support.h"
#include "store/stand_in.h"

#define PID UINT64_C(0x10000)

struct version_page {
	_Atomic uint64_t version, length, removed, generation;
};

static const struct version_page *map_version(int fd)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	CHECK(page != MAP_FAILED);
	return page;
}

static void check_read_only(const struct osd_share *share)
{
	int seals = fcntl(share->version_fd, F_GET_SEALS);

	CHECK(pwrite(share->head_fd, "x", 1, 0) < 0 && errno == EBADF);
	CHECK(pwrite(share->version_fd, "x", 1, 0) < 0);
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, share->version_fd, 0) ==
	      MAP_FAILED);
	CHECK((seals & F_SEAL_SHRINK) && (seals & F_SEAL_GROW) && (seals & F_SEAL_SEAL));
}

static void close_share(struct osd_object *object, struct osd_share *share)
{
	close(share->head_fd);
	if (share->tail_fd >= 0)
		close(share->tail_fd);
	close(share->version_fd);
	osd_object_unshare(object);
}

static void test_share(struct test_store *store)
{
	static uint8_t data[100000];
	const struct version_page *page;
	struct osd_object_id id = {PID, 0};
	struct osd_object *object;
	struct osd_share share;
	const uint8_t *mapped;
	uint64_t version;
	struct stat stat;
	size_t got;

	memset(data, 'a', sizeof(data));
	OK(test_create(store->objects, PID, 0, &id.object_id));
	OK(osd_object_get(store->objects, id, &object));
	OK(osd_object_share(object, &share));
	CHECK_EQ(share.head_fd, -1); /* no data yet */
	close(share.version_fd);
	osd_object_unshare(object);
	OK(osd_object_write(object, 0, data, sizeof(data), 0));
	OK(osd_object_share(object, &share));
	CHECK_EQ(share.length, sizeof(data));
	check_read_only(&share);
	page = map_version(share.version_fd);
	version = atomic_load(&page->version);
	CHECK_EQ(version % 2, 0);
	mapped = mmap(NULL, sizeof(data), PROT_READ, MAP_SHARED, share.head_fd, 0);
	CHECK(mapped != MAP_FAILED && mapped[99999] == 'a');
	/* Cut while mapped: bytes beyond read as zeros, the file stays. */
	OK(osd_object_truncate(object, 10, 0));
	CHECK_EQ(atomic_load(&page->version), version + 2);
	CHECK_EQ(atomic_load(&page->length), 10);
	CHECK_EQ(mapped[99999], 0);
	CHECK(fstat(share.head_fd, &stat) == 0 && stat.st_size == sizeof(data));
	/* It grows again over what was cut off. */
	OK(osd_object_write(object, 20, "b", 1, 0));
	OK(osd_object_read(object, 0, data, sizeof(data), 0, &got));
	CHECK_EQ(got, 21);
	CHECK(data[9] == 'a' && data[10] == 0 && data[19] == 0 && data[20] == 'b');
	munmap((void *)mapped, sizeof(data));
	/* PUNCH that moves a tail makes new files. */
	version = atomic_load(&page->generation);
	CHECK(version != 0);
	OK(test_punch(object, 0, 1, NULL));
	CHECK(atomic_load(&page->generation) != version);
	OK(test_append(object, "c", 1, 0, &version));
	CHECK_EQ(version, 20);
	close_share(object, &share);
	OK(osd_object_flush(object));
	OK(osd_object_share(object, &share));
	CHECK(fstat(share.head_fd, &stat) == 0);
	CHECK_EQ(stat.st_size, 21);
	OK(test_remove(store->objects, id));
	CHECK_EQ(atomic_load(&page->removed), 1);
	close_share(object, &share);
	munmap((void *)page, 4096);
	osd_object_put(object);
}

/* A reader that checks the version before and after never takes a mixture for whole. */
struct racer {
	struct osd_object *object;
	_Atomic bool stop;
};

static void *write_main(void *arg)
{
	static uint8_t data[20000];
	struct racer *racer = arg;

	for (int i = 0; !atomic_load(&racer->stop); i++) {
		memset(data, i, sizeof(data));
		OK(osd_object_write(racer->object, 0, data, sizeof(data), 0));
	}
	return NULL;
}

static void test_version(struct test_store *store)
{
	static uint8_t data[20000];
	struct osd_object_id id = {PID, 0};
	struct racer racer = {.stop = false};
	const struct version_page *page;
	struct osd_share share;
	pthread_t thread;

	OK(test_create(store->objects, PID, 0, &id.object_id));
	OK(osd_object_get(store->objects, id, &racer.object));
	OK(osd_object_write(racer.object, 0, data, sizeof(data), 0));
	OK(osd_object_share(racer.object, &share));
	page = map_version(share.version_fd);
	CHECK(pthread_create(&thread, NULL, write_main, &racer) == 0);
	for (int good = 0; good < 100;) {
		uint64_t before = atomic_load(&page->version);

		CHECK(pread(share.head_fd, data, sizeof(data), 0) == sizeof(data));
		if (before % 2 || atomic_load(&page->version) != before)
			continue;
		CHECK(memcmp(data, data + 1, sizeof(data) - 1) == 0); /* all bytes are equal */
		good++;
	}
	atomic_store(&racer.stop, true);
	pthread_join(thread, NULL);
	munmap((void *)page, 4096);
	close_share(racer.object, &share);
	osd_object_put(racer.object);
}

/* ---- two roots --------------------------------------------------------------------------- */

#define HEAD (2u << 20)

/* Pages of a file that are in memory. */
static size_t resident(int fd, size_t length)
{
	static unsigned char pages[HEAD / 4096];
	void *mapped = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);
	size_t count = 0;

	CHECK(mapped != MAP_FAILED && length <= HEAD);
	CHECK(mincore(mapped, length, pages) == 0);
	for (size_t i = 0; i < length / 4096; i++)
		count += pages[i] & 1;
	munmap(mapped, length);
	return count;
}

/* A share's reader finds the beginning of the tail in memory soon.  Reading ahead is a hint: a kernel that is
 * short of memory or has a busy disk leaves some pages out. */
static void test_read_ahead(struct osd_object *object)
{
	struct osd_share share;
	struct statfs fs;

	OK(osd_object_flush(object));
	OK(osd_object_share(object, &share));
	CHECK(fstatfs(share.tail_fd, &fs) == 0);
	for (int i = 0; fs.f_type != TMPFS_MAGIC && resident(share.tail_fd, HEAD) > 0 && i < 60000;
	     i++) {
		posix_fadvise(share.tail_fd, 0, 0, POSIX_FADV_DONTNEED);
		usleep(1000);
	}
	CHECK(resident(share.tail_fd, HEAD) == 0 || fs.f_type == TMPFS_MAGIC);
	close_share(object, &share);
	OK(osd_object_share(object, &share));
	for (int i = 0; resident(share.tail_fd, HEAD) < HEAD / 4096 / 2 && i < 60000; i++)
		usleep(1000);
	CHECK(resident(share.tail_fd, HEAD) >= HEAD / 4096 / 2);
	close_share(object, &share);
}

static void test_two_roots(void)
{
	static uint8_t data[3 * HEAD], back[3 * HEAD];
	char heads[] = "/tmp/iosd-test-XXXXXX";
	struct osd_object_id id = {PID, 0};
	struct test_store store;
	struct osd_object *object;
	struct osd_share share;
	uint64_t pid;
	size_t got;

	test_store_init(&store, true);
	CHECK(mkdtemp(heads) != NULL);
	store.config.ssd_directory = heads;
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	OK(test_create(store.objects, PID, 0, &id.object_id));
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 13 + i / 4096);
	/* A tail first: the head exists and reads as zeros. */
	OK(test_write(store.objects, id, HEAD + 5, data + HEAD + 5, 10));
	CHECK_EQ(test_read(store.objects, id, HEAD - 5, back, 100), 20);
	CHECK_EQ(back[0] | back[9], 0);
	CHECK_BYTES(back + 10, 10, data + HEAD + 5, 10);
	for (uint32_t at = HEAD - 1; at <= HEAD + 1; at++)
		OK(test_write(store.objects, id, at - 100, data + at - 100, 200));
	OK(test_write(store.objects, id, 0, data, sizeof(data)));
	test_store_reopen(&store);
	CHECK_EQ(test_read(store.objects, id, 0, back, sizeof(back)), sizeof(data));
	CHECK_BYTES(back, sizeof(back), data, sizeof(data));
	OK(osd_object_get(store.objects, id, &object));
	OK(osd_object_share(object, &share));
	CHECK_EQ(share.head_bytes, HEAD);
	CHECK(pread(share.tail_fd, back, 10, 7) == 10);
	CHECK_BYTES(back, 10, data + HEAD + 7, 10);
	close_share(object, &share);
	test_read_ahead(object);
	/* Punch and cut across the boundary. */
	OK(test_punch(object, HEAD - 100, 50, NULL));
	OK(osd_object_read(object, HEAD - 110, back, 100, 0, &got));
	CHECK_BYTES(back, 10, data + HEAD - 110, 10);
	CHECK_BYTES(back + 10, 90, data + HEAD - 50, 90);
	OK(osd_object_truncate(object, HEAD - 10, 0));
	OK(osd_object_truncate(object, HEAD + 10, 0));
	OK(osd_object_read(object, HEAD - 11, back, 100, 0, &got));
	CHECK_EQ(got, 21);
	CHECK_EQ(back[0], data[HEAD - 11 + 50]);
	CHECK_EQ(back[1] | back[20], 0);
	osd_object_put(object);
	test_store_release(&store);
	test_folder_remove(heads);
}

/* ---- a write that fails ------------------------------------------------------------------- */

/* The store's operations, of which one write fails. */
static struct osd_data_ops operations;
static enum osd_status (*write_through)(struct osd_data_file *file, uint64_t offset,
					const void *bytes, size_t length);
static unsigned failing_write; /* the first from now on is 1; 0: none */

static enum osd_status write_or_fail(struct osd_data_file *file, uint64_t offset, const void *bytes,
				     size_t length)
{
	if (failing_write && --failing_write == 0)
		return OSD_E_NO_SPACE;
	return write_through(file, offset, bytes, length);
}

static enum osd_status wrap(const struct osd_test_stores *wanted, char message[256],
			    struct osd_opened_stores *stores)
{
	(void)wanted;
	(void)message;
	stores->faults = NULL;
	operations = *stores->head->ops;
	write_through = operations.write;
	operations.write = write_or_fail;
	stores->head->ops = &operations;
	return OSD_OK;
}

static void ready(const struct osd_test_stores *wanted, struct osd_fault_plan *faults)
{
	(void)wanted;
	(void)faults;
}

/* Dies while the object is shared, or after that with one more byte. */
static void fail_and_die(struct test_store *store, struct osd_object_id id, bool while_shared)
{
	const struct osd_piece pieces[] = {{10, 10}, {30, 10}};
	struct osd_change change = {.kind = OSD_CHANGE_WRITE,
				    .pieces = pieces,
				    .piece_count = 2,
				    .data = "twenty bytes of data"};
	struct osd_object *object;
	struct osd_share share;
	uint64_t head, tail, at;

	test_store_open(store);
	OK(osd_object_get(store->objects, id, &object));
	OK(osd_object_share(object, &share));
	failing_write = 2;
	CHECK_EQ(osd_object_change(object, &change), OSD_E_NO_SPACE);
	if (while_shared)
		raise(SIGKILL);
	close_share(object, &share);
	OK(osd_object_settle(object, true, false));
	OK(osd_tier_part_sizes(&object->file, &head, &tail));
	CHECK_EQ(head, 10);
	OK(test_append(object, "x", 1, 0, &at));
	CHECK_EQ(at, 10);
	raise(SIGKILL);
}

/* The bytes that it wrote before it failed do not become the object's when the target is killed. */
static void test_failed_growth(bool while_shared)
{
	static const struct osd_stand_ins stand_ins = {.wrap = wrap, .ready = ready};
	struct osd_object_id id = {PID, 0};
	struct test_store store;
	char data[20];
	uint64_t pid;
	int ended;
	pid_t child;

	test_store_init(&store, true);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	OK(test_create(store.objects, PID, 0, &id.object_id));
	OK(test_write(store.objects, id, 0, "ten bytes!", 10));
	osd_objects_close(store.objects);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		osd_stand_ins = &stand_ins;
		fail_and_die(&store, id, while_shared);
	}
	CHECK(waitpid(child, &ended, 0) == child);
	CHECK(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
	test_store_open(&store);
	CHECK_EQ(test_read(store.objects, id, 0, data, sizeof(data)), while_shared ? 10 : 11);
	CHECK_BYTES(data, 10, "ten bytes!", 10);
	test_store_release(&store);
}

/* A sandbox would read zeros without a file. */
static void test_lost(struct test_store *store)
{
	struct osd_object_id id = {PID, 0};
	struct osd_object *object;
	struct osd_share share;
	struct osd_data_name name;

	OK(test_create(store->objects, PID, 0, &id.object_id));
	OK(osd_object_get(store->objects, id, &object));
	OK(osd_object_write(object, 0, "lost", 4, 0));
	name = object->file.name;
	osd_tier_shut(&object->file);
	OK(osd_tier_remove(&store->objects->tier, &name));
	CHECK_EQ(osd_object_share(object, &share), OSD_E_MEDIUM);
	osd_object_put(object);
}

int main(void)
{
	struct test_store store;
	uint64_t pid;

	test_store_init(&store, true);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	test_share(&store);
	test_version(&store);
	test_lost(&store);
	test_store_release(&store);
	test_two_roots();
	test_failed_growth(true);
	test_failed_growth(false);
	return 0;
}
