/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_store.c -- both stores of records behave alike; both stores of data behave alike; the data
 * directory refuses what it must, with a message. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"
#include "store/direct.h"
#include "store/media.h"
#include "store/store.h"
#include "testing/stores.h"
#include "wire/cursor.h"

static struct osd_bytes text(const char *string)
{
	return (struct osd_bytes){string, strlen(string)};
}

/* ---- records ----------------------------------------------------------------------------- */

static void put(struct osd_kv *kv, const char *key, const char *value)
{
	struct osd_kv_txn *txn;

	OK(osd_kv_begin(kv, OSD_KV_CHANGE, &txn));
	OK(osd_kv_put(txn, OSD_KV_JOBS, text(key), text(value), 0));
	OK(osd_kv_commit(txn, OSD_KV_COMMIT_PROCESS));
}

static enum osd_status get(struct osd_kv *kv, struct osd_kv_txn *txn, const char *key,
			   char value[16])
{
	size_t length = 0;
	enum osd_status status;

	memset(value, 0, 16);
	status = osd_kv_get(kv, txn, OSD_KV_JOBS, text(key), 0, value, 15, &length);
	CHECK(status != OSD_OK || length <= 15);
	return status;
}

struct found {
	char keys[64];
	unsigned stop_after;
};

static bool see(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct found *found = arg;

	(void)value;
	snprintf(found->keys + strlen(found->keys), sizeof(found->keys) - strlen(found->keys),
		 "%.*s ", (int)key.length, (const char *)key.data);
	return --found->stop_after > 0;
}

static void check_scan(struct osd_kv *kv, struct osd_kv_txn *txn, const char *from, size_t prefix,
		       unsigned stop_after, const char *wanted)
{
	struct found found = {"", stop_after};

	OK(osd_kv_scan(kv, txn, OSD_KV_JOBS, text(from), prefix, see, &found));
	CHECK(strcmp(found.keys, wanted) == 0);
}

/* Another transaction has changed the record and has not ended.  A caller that goes on gets the same answer. */
static void check_would_block(struct osd_kv *kv, const char *key)
{
	struct found found = {"", 1};
	struct osd_kv_txn *txn;
	char value[16];
	enum osd_status status = osd_kv_begin(kv, OSD_KV_READ_NOWAIT, &txn);

	if (status != OSD_OK) {
		CHECK_EQ(status, OSD_E_WOULD_BLOCK);
		return;
	}
	for (int i = 0; i < 2; i++)
		CHECK_EQ(get(kv, txn, key, value), OSD_E_WOULD_BLOCK);
	CHECK_EQ(osd_kv_scan(kv, txn, OSD_KV_JOBS, text(key), 0, see, &found), OSD_E_WOULD_BLOCK);
	CHECK_EQ(osd_kv_commit(txn, OSD_KV_COMMIT_NOSYNC), OSD_E_CONFLICT);
}

static void test_records(struct osd_kv *kv)
{
	static uint8_t large[200000];
	struct osd_kv_txn *txn;
	char value[16];
	size_t length;

	put(kv, "b1", "one");
	put(kv, "b2", "two");
	put(kv, "a", "zero");
	put(kv, "c", "three");
	OK(get(kv, NULL, "b1", value));
	CHECK(strcmp(value, "one") == 0);
	CHECK_EQ(get(kv, NULL, "b", value), OSD_E_NO_OBJECT);
	check_scan(kv, NULL, "", 0, 99, "a b1 b2 c ");
	check_scan(kv, NULL, "b", 1, 99, "b1 b2 ");
	check_scan(kv, NULL, "b2", 1, 99, "b2 ");
	check_scan(kv, NULL, "b2", 0, 99, "b2 c ");
	check_scan(kv, NULL, "", 0, 2, "a b1 ");
	check_scan(kv, NULL, "d", 0, 99, "");

	OK(osd_kv_begin(kv, OSD_KV_CHANGE, &txn));
	CHECK_EQ(osd_kv_put(txn, OSD_KV_JOBS, text("a"), text("x"), OSD_KV_NEW), OSD_E_EXISTS);
	OK(osd_kv_put(txn, OSD_KV_JOBS, text("a"), text("x"), 0));
	OK(osd_kv_remove(txn, OSD_KV_JOBS, text("b1")));
	CHECK_EQ(osd_kv_remove(txn, OSD_KV_JOBS, text("b1")), OSD_E_NO_OBJECT);
	OK(osd_kv_put(txn, OSD_KV_JOBS, text("b0"), text("new"), OSD_KV_NEW));
	OK(get(kv, txn, "a", value));
	CHECK(strcmp(value, "x") == 0);
	check_scan(kv, txn, "", 0, 99, "a b0 b2 c ");
	check_would_block(kv, "a");
	osd_kv_abort(txn);
	check_scan(kv, NULL, "", 0, 99, "a b1 b2 c ");
	OK(get(kv, NULL, "a", value));
	CHECK(strcmp(value, "zero") == 0);

	OK(osd_kv_begin(kv, OSD_KV_CHANGE, &txn));
	memset(large, 7, sizeof(large));
	OK(osd_kv_put(txn, OSD_KV_JOBS, text("big"), (struct osd_bytes){large, sizeof(large)}, 0));
	OK(osd_kv_put(txn, OSD_KV_JOBS, text("empty"), text(""), 0));
	OK(osd_kv_commit(txn, OSD_KV_COMMIT_DURABLE));
	OK(osd_kv_get(kv, NULL, OSD_KV_JOBS, text("big"), 0, value, 15, &length));
	CHECK_EQ(length, sizeof(large));
	CHECK_EQ(value[14], 7);
	OK(osd_kv_get(kv, NULL, OSD_KV_JOBS, text("empty"), 0, NULL, 0, &length));
	CHECK_EQ(length, 0);
	check_scan(kv, NULL, "", 0, 99, "a b1 b2 big c empty ");
	OK(osd_kv_flush(kv));
	OK(osd_kv_checkpoint(kv, true));
}

/* ---- reads without a transaction --------------------------------------------------------- */

#define WIDE_KEYS  400u
#define WIDE_VALUE 3000u /* a page holds two */
#define READERS	   4u
#define LOOKS	   10u /* at least, of each */
#define DEADLOCKS  40u

struct busy {
	struct osd_kv *kv;
	uint64_t deadlocks; /* go on until there have been so many */
	atomic_bool stop;
};

static enum osd_status put_wide(struct osd_kv_txn *txn, unsigned number)
{
	static const uint8_t value[WIDE_VALUE];
	uint8_t key[2];

	osd_put_be(key, number, sizeof(key));
	return osd_kv_put(txn, OSD_KV_INDEX, (struct osd_bytes){key, sizeof(key)},
			  (struct osd_bytes){value, sizeof(value)}, 0);
}

/* Against the direction of a scan. */
static void *write_backwards(void *arg)
{
	struct busy *busy = arg;

	while (!atomic_load(&busy->stop)) {
		enum osd_status status = OSD_OK;
		struct osd_kv_txn *txn;

		OK(osd_kv_begin(busy->kv, OSD_KV_CHANGE, &txn));
		for (unsigned i = WIDE_KEYS; status == OSD_OK && i-- > 0;)
			status = put_wide(txn, i);
		if (status == OSD_OK) {
			OK(osd_kv_commit(txn, OSD_KV_COMMIT_NOSYNC));
			continue;
		}
		CHECK_EQ(status, OSD_E_CONFLICT);
		CHECK_EQ(put_wide(txn, 0), OSD_E_CONFLICT);
		CHECK_EQ(osd_kv_commit(txn, OSD_KV_COMMIT_NOSYNC), OSD_E_CONFLICT);
	}
	return NULL;
}

static bool see_wide(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	unsigned *next = arg;

	CHECK_EQ(osd_get_be(key.data, 2), (*next)++);
	CHECK_EQ(value.length, WIDE_VALUE);
	return true;
}

static void *read_wide(void *arg)
{
	static const uint8_t key[2] = {0, 100};
	struct osd_kv_stats stats = {0};
	struct busy *busy = arg;

	for (unsigned i = 0; i < LOOKS || stats.deadlocks < busy->deadlocks; i++) {
		unsigned next = 0;
		size_t length;

		OK(osd_kv_scan(busy->kv, NULL, OSD_KV_INDEX, (struct osd_bytes){"", 0}, 0, see_wide,
			       &next));
		CHECK_EQ(next, WIDE_KEYS);
		OK(osd_kv_get(busy->kv, NULL, OSD_KV_INDEX, (struct osd_bytes){key, sizeof(key)}, 0,
			      NULL, 0, &length));
		CHECK_EQ(length, WIDE_VALUE);
		osd_kv_stats(busy->kv, &stats);
	}
	return NULL;
}

/* They answer, and tell every record once, also if they are victims of deadlocks.  Berkeley DB picks
 * the victim by the age of what is at odds: of several readers some are. */
static void test_reads_of_their_own(struct osd_kv *kv, uint64_t deadlocks)
{
	struct busy busy = {.kv = kv, .deadlocks = deadlocks};
	pthread_t writer, readers[READERS];
	struct osd_kv_txn *txn;

	OK(osd_kv_begin(kv, OSD_KV_CHANGE, &txn));
	for (unsigned i = 0; i < WIDE_KEYS; i++)
		OK(put_wide(txn, i));
	OK(osd_kv_commit(txn, OSD_KV_COMMIT_NOSYNC));
	CHECK_EQ(pthread_create(&writer, NULL, write_backwards, &busy), 0);
	for (unsigned i = 0; i < READERS; i++)
		CHECK_EQ(pthread_create(&readers[i], NULL, read_wide, &busy), 0);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	atomic_store(&busy.stop, true);
	pthread_join(writer, NULL);
}

/* ---- data -------------------------------------------------------------------------------- */

static void test_data(struct osd_data *data)
{
	struct osd_data_name name = {0x10000, 1, 0x10001, UINT64_C(0x100000007), false, false};
	struct osd_data_file *file, *again;
	struct osd_data_stat stat;
	uint64_t total, available;
	char bytes[64];
	size_t got;

	CHECK_EQ(osd_data_open_file(data, &name, 0, &file), OSD_E_NO_OBJECT);
	OK(osd_data_open_file(data, &name, OSD_DATA_CREATE, &file));
	OK(osd_data_write(file, 10, "hello", 5));
	OK(osd_data_read(file, 8, bytes, sizeof(bytes), 0, &got));
	CHECK_BYTES(bytes, got, "\0\0hello", 7);
	OK(osd_data_read(file, 100, bytes, sizeof(bytes), 0, &got));
	CHECK_EQ(got, 0);
	OK(osd_data_zero(file, 11, 2));
	OK(osd_data_truncate(file, 14));
	OK(osd_data_truncate(file, 16));
	OK(osd_data_read(file, 10, bytes, sizeof(bytes), 0, &got));
	CHECK_BYTES(bytes, got, "h\0\0l\0\0", 6);
	OK(osd_data_stat(file, &stat));
	CHECK_EQ(stat.size, 16);
	OK(osd_data_set_modified(file, 1234567));
	OK(osd_data_stat(file, &stat));
	CHECK_EQ(stat.modified_ms, 1234567);
	CHECK_EQ(osd_data_write(file, UINT64_MAX - 2, "x", 1), OSD_E_NO_SPACE);
	OK(osd_data_sync(file));
	OK(osd_data_sync_directories(data, &name));
	OK(osd_data_open_file(data, &name, 0, &again));
	osd_data_close_file(again);
	/* Without a name it lives on while open. */
	OK(osd_data_remove(data, &name));
	OK(osd_data_remove(data, &name));
	CHECK_EQ(osd_data_open_file(data, &name, 0, &again), OSD_E_NO_OBJECT);
	OK(osd_data_read(file, 10, bytes, 1, 0, &got));
	CHECK_EQ(got, 1);
	osd_data_close_file(file);
	for (unsigned i = 0; i < 300; i++) {
		name.object_id++;
		OK(osd_data_open_file(data, &name, OSD_DATA_CREATE, &file));
		osd_data_close_file(file);
	}
	OK(osd_data_sync_all(data));
	OK(osd_data_remove_partition(data, name.partition_id, name.incarnation));
	OK(osd_data_remove_partition(data, name.partition_id, name.incarnation));
	CHECK_EQ(osd_data_open_file(data, &name, 0, &file), OSD_E_NO_OBJECT);
	OK(osd_data_capacity(data, &total, &available));
	CHECK(available <= total);
}

/* What a file system keeps back from ordinary users is neither room nor in use. */
static void test_capacity(struct osd_data *data, int fd)
{
	uint64_t total, available;
	struct statvfs stat;

	OK(osd_data_capacity(data, &total, &available));
	CHECK(fstatvfs(fd, &stat) == 0);
	CHECK_EQ(total, (stat.f_blocks - stat.f_bfree + stat.f_bavail) * stat.f_frsize);
}

/* ---- the data directory ------------------------------------------------------------------ */

static void expect_refusal(const char *directory, const char *words)
{
	const struct osd_media_config config = {.directory = directory};
	struct osd_media *media;
	char message[256] = "";

	CHECK(osd_media_open(&config, message, &media) != OSD_OK);
	if (!strstr(message, words))
		fprintf(stderr, "message: %s\n", message);
	CHECK(strstr(message, words) != NULL);
	CHECK(strstr(message, directory) != NULL);
}

static void patch(const char *directory, off_t at, uint8_t byte)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/superblock", directory);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0 && pwrite(fd, &byte, 1, at) == 1);
	close(fd);
}

static void touch(const char *directory, const char *name)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0);
	close(fd);
}

#define SEALERS 4

static void *seal_main(void *arg)
{
	uint8_t *seal = malloc(OSD_MEDIA_SEAL);

	CHECK(seal != NULL);
	OK(osd_media_seal(arg, true, seal));
	return seal;
}

/* All threads that need the first seal get the same one, which stays. */
static void test_first_seal(struct osd_media *media)
{
	pthread_t threads[SEALERS];
	uint8_t kept[OSD_MEDIA_SEAL];
	void *seal;

	CHECK_EQ(osd_media_seal(media, false, kept), OSD_E_NO_OBJECT);
	for (size_t i = 0; i < SEALERS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, seal_main, media), 0);
	for (size_t i = 0; i < SEALERS; i++) {
		CHECK_EQ(pthread_join(threads[i], &seal), 0);
		OK(osd_media_seal(media, false, kept));
		CHECK_BYTES(seal, OSD_MEDIA_SEAL, kept, sizeof(kept));
		free(seal);
	}
}

static void test_media(const char *directory)
{
	char message[256], other[] = "/tmp/iosd-test-XXXXXX";
	struct osd_media_config config = {.directory = directory};
	uint8_t store_id[OSD_MEDIA_STORE_ID];
	struct osd_media *media;

	expect_refusal("/nonexistent/iosd", "cannot open");
	OK(osd_media_open(&config, message, &media));
	memcpy(store_id, media->store_id, sizeof(store_id));
	expect_refusal(directory, "in use");
	CHECK(osd_media_ballast_restore(media));
	CHECK(osd_media_ballast_release(media));
	CHECK(!osd_media_ballast_release(media));
	test_first_seal(media);
	osd_media_close(media);
	OK(osd_media_open(&config, message, &media));
	CHECK_BYTES(media->store_id, sizeof(store_id), store_id, sizeof(store_id));
	osd_media_close(media);
	patch(directory, 11, 99);
	expect_refusal(directory, "version");
	patch(directory, 11, OSD_MEDIA_VERSION);
	patch(directory, 30, (uint8_t)~store_id[6]);
	expect_refusal(directory, "damaged");
	patch(directory, 0, 'X');
	expect_refusal(directory, "not iosd's");
	CHECK(mkdtemp(other) != NULL);
	touch(other, "precious");
	expect_refusal(other, "not empty");
	test_folder_remove(other);
}

/* ---- two roots --------------------------------------------------------------------------- */

struct pair {
	char main[40], heads[40], saved[64];
};

static void refuse_pair(const struct pair *pair, bool without_heads, const char *words)
{
	const struct osd_media_config config = {.directory = pair->main,
						.ssd_directory = pair->heads,
						.head_bytes = 4096,
						.without_heads = without_heads};
	struct osd_media *media;
	char message[256] = "";

	CHECK(osd_media_open(&config, message, &media) != OSD_OK);
	if (!strstr(message, words))
		fprintf(stderr, "message: %s\n", message);
	CHECK(strstr(message, words) != NULL);
}

static struct osd_media *open_pair(const struct pair *pair, bool without_heads)
{
	const struct osd_media_config config = {.directory = pair->main,
						.ssd_directory = pair->heads,
						.head_bytes = 4096,
						.without_heads = without_heads};
	struct osd_media *media;
	char message[256] = "";
	enum osd_status status = osd_media_open(&config, message, &media);

	if (status != OSD_OK)
		fprintf(stderr, "message: %s\n", message);
	OK(status);
	return media;
}

/* A root comes to be as it was when saved. */
static void superblock(const char *directory, char bytes[OSD_MEDIA_SUPERBLOCK], bool save)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/superblock", directory);
	fd = open(path, save ? O_RDONLY : O_WRONLY);
	CHECK(fd >= 0);
	CHECK_EQ(save ? pread(fd, bytes, OSD_MEDIA_SUPERBLOCK, 0)
		      : pwrite(fd, bytes, OSD_MEDIA_SUPERBLOCK, 0),
		 OSD_MEDIA_SUPERBLOCK);
	close(fd);
}

static void swap_heads(const struct pair *pair)
{
	if (access(pair->heads, F_OK) == 0)
		CHECK_EQ(0, rename(pair->heads, pair->saved));
	else
		CHECK_EQ(0, rename(pair->saved, pair->heads));
}

/* What the second opening wrote before it was cut off: a crash between any two superblocks. */
static void test_stamps_after_crash(const struct pair *pair)
{
	char before[2][OSD_MEDIA_SUPERBLOCK], after[2][OSD_MEDIA_SUPERBLOCK];
	struct osd_media *media;
	int fd;

	superblock(pair->main, before[0], true);
	superblock(pair->heads, before[1], true);
	fd = open(pair->heads, O_RDONLY | O_DIRECTORY);
	/* The other root cannot be written: this is how far the opening gets. */
	CHECK_EQ(mkdirat(fd, "superblock.new", 0700), 0);
	refuse_pair(pair, false, "cannot write the superblocks");
	CHECK_EQ(unlinkat(fd, "superblock.new", AT_REMOVEDIR), 0);
	close(fd);
	superblock(pair->main, after[0], true);
	CHECK(memcmp(before[0], after[0], OSD_MEDIA_SUPERBLOCK) != 0);
	superblock(pair->heads, after[1], true);
	CHECK_BYTES(before[1], OSD_MEDIA_SUPERBLOCK, after[1], OSD_MEDIA_SUPERBLOCK);
	media = open_pair(pair, false);
	superblock(pair->heads, after[1], true);
	osd_media_close(media);
	/* From then on the root as it was before is an old one. */
	superblock(pair->heads, after[1], false);
	refuse_pair(pair, false, "is an older copy");
	superblock(pair->heads, before[1], false);
	refuse_pair(pair, true, "is an older copy");
}

static void test_two_roots(void)
{
	struct pair pair = {"/tmp/iosd-test-XXXXXX", "/tmp/iosd-test-XXXXXX", ""};
	char old[2][OSD_MEDIA_SUPERBLOCK], new[2][OSD_MEDIA_SUPERBLOCK];
	struct osd_media *media;

	CHECK(mkdtemp(pair.main) && mkdtemp(pair.heads));
	snprintf(pair.saved, sizeof(pair.saved), "%s.saved", pair.heads);
	media = open_pair(&pair, false);
	CHECK_EQ(media->head_bytes, 4096);
	osd_media_close(media);
	superblock(pair.main, old[0], true);
	superblock(pair.heads, old[1], true);
	osd_media_close(open_pair(&pair, false));
	superblock(pair.main, new[0], true);
	superblock(pair.heads, new[1], true);
	/* One of them is as it was. */
	superblock(pair.heads, old[1], false);
	refuse_pair(&pair, false, pair.heads);
	superblock(pair.main, old[0], false);
	superblock(pair.heads, new[1], false);
	refuse_pair(&pair, false, pair.main);
	/* Both are: nothing is mixed.  Then as old as the other, of another opening. */
	superblock(pair.heads, old[1], false);
	osd_media_close(open_pair(&pair, false));
	superblock(pair.main, new[0], false);
	refuse_pair(&pair, false, "different copies");
	superblock(pair.heads, new[1], false);
	/* Absent, or a place to mount it with nothing mounted. */
	swap_heads(&pair);
	refuse_pair(&pair, false, "absent or empty");
	media = open_pair(&pair, true);
	CHECK(media->heads_absent && media->heads.data_fd < 0);
	osd_media_close(media);
	CHECK_EQ(mkdir(pair.heads, 0700), 0);
	refuse_pair(&pair, false, "absent or empty");
	osd_media_close(open_pair(&pair, true));
	CHECK_EQ(rmdir(pair.heads), 0);
	swap_heads(&pair);
	media = open_pair(&pair, true);
	CHECK(!media->heads_absent);
	osd_media_close(media);
	/* Without the main root nothing is made in its place. */
	CHECK_EQ(rename(pair.main, pair.saved), 0);
	CHECK_EQ(mkdir(pair.main, 0700), 0);
	refuse_pair(&pair, true, "bring back the data directory");
	CHECK_EQ(rmdir(pair.main), 0);
	CHECK_EQ(rename(pair.saved, pair.main), 0);
	test_stamps_after_crash(&pair);
	test_folder_remove(pair.main);
	test_folder_remove(pair.heads);
}

int main(void)
{
	char directory[] = "/tmp/iosd-test-XXXXXX", media[] = "/tmp/iosd-test-XXXXXX", message[256];
	struct osd_bdb_config config = {.directory = directory, .cache_bytes = 8u << 20};
	struct osd_data *data;
	struct osd_kv *kv;
	int fd;

	CHECK(mkdtemp(directory) != NULL && mkdtemp(media) != NULL);
	OK(osd_mem_kv_open(&kv));
	test_records(kv);
	test_reads_of_their_own(kv, 0);
	osd_kv_close(kv);
	OK(osd_bdb_open(&config, message, &kv));
	test_records(kv);
	test_reads_of_their_own(kv, DEADLOCKS);
	osd_kv_close(kv);
	OK(osd_bdb_open(&config, message, &kv));
	check_scan(kv, NULL, "", 0, 99, "a b1 b2 big c empty ");
	osd_kv_close(kv);
	OK(osd_mem_data_open(&data));
	test_data(data);
	osd_data_close(data);
	fd = open(directory, O_RDONLY | O_DIRECTORY);
	OK(osd_file_data_open(fd, false, &data));
	test_data(data);
	test_capacity(data, fd);
	osd_data_close(data);
	if (osd_direct_works(fd)) {
		OK(osd_file_data_open(fd, true, &data));
		test_data(data);
		osd_data_close(data);
	}
	close(fd);
	test_media(media);
	test_two_roots();
	test_folder_remove(directory);
	test_folder_remove(media);
	return 0;
}
