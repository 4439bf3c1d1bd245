/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_both.c -- two operations at once: by a ring and by helper threads they do the same, really at
 * once, from many threads, and each half fails by itself. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"
#include "store/both.h"

#define THREADS	   8
#define ROUNDS	   200
#define FILE_BYTES 4096u

/* Two files: each read waits until the other's has begun.  The kernel cannot do those. */
struct meeting {
	struct osd_data base;
	pthread_mutex_t lock;
	pthread_cond_t change;
	unsigned begun; /* under lock */
};

static enum osd_status meet(struct osd_data_file *file, uint64_t offset, void *buffer,
			    size_t length, unsigned flags, size_t *ret_read)
{
	struct meeting *meeting = osd_container_of(file->data, struct meeting, base);
	struct timespec until;
	int error = 0;

	(void)offset, (void)buffer;
	if (flags & OSD_DATA_READ_NOWAIT)
		return OSD_E_WOULD_BLOCK;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	pthread_mutex_lock(&meeting->lock);
	meeting->begun++;
	pthread_cond_broadcast(&meeting->change);
	while (!error && meeting->begun < 2)
		error = pthread_cond_timedwait(&meeting->change, &meeting->lock, &until);
	pthread_mutex_unlock(&meeting->lock);
	*ret_read = length;
	return error ? OSD_E_INTERNAL : OSD_OK;
}

static void test_at_once(void)
{
	const struct osd_data_ops ops = {.read = meet};
	struct meeting meeting = {.base.ops = &ops,
				  .lock = PTHREAD_MUTEX_INITIALIZER,
				  .change = PTHREAD_COND_INITIALIZER};
	struct osd_data_file file = {.data = &meeting.base};
	struct osd_data_op here = {.act = OSD_DATA_READ, .file = &file, .length = 3}, there = here;
	uint64_t rings, helpers;
	struct osd_both *both;

	there.length = 5;
	OK(osd_both_open(true, &both));
	osd_data_both(both, &here, &there);
	OK(here.status);
	OK(there.status);
	CHECK_EQ(here.done, 3);
	CHECK_EQ(there.done, 5);
	osd_both_counts(both, &rings, &helpers);
	CHECK_EQ(rings, 0);
	CHECK_EQ(helpers, 1);
	osd_both_close(both);
}

/* ---- files ------------------------------------------------------------------------------- */

struct pair {
	struct osd_both *both;
	struct osd_data *data;
	unsigned number;
};

static struct osd_data_file *make(const struct pair *pair, unsigned number)
{
	struct osd_data_name name = {.partition_id = 1, .object_id = number, .generation = 1};
	struct osd_data_file *file;

	OK(osd_data_open_file(pair->data, &name, OSD_DATA_CREATE, &file));
	OK(osd_data_truncate(file, 0));
	return file;
}

/* The page cache drops what it has of it, so that reading asks the device. */
static void forget(struct osd_data_file *file)
{
	int fd;

	OK(osd_data_share(file, &fd));
	CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	close(fd);
}

static void *many_rounds(void *arg)
{
	const struct pair *pair = arg;
	struct osd_data_file *a = make(pair, 2 * pair->number),
			     *b = make(pair, 2 * pair->number + 1);
	uint8_t out[2][FILE_BYTES], in[2][2 * FILE_BYTES];

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct osd_data_op put[] = {
			{.act = OSD_DATA_WRITE, .file = a, .bytes = out[0], .length = FILE_BYTES},
			{.act = OSD_DATA_WRITE,
			 .file = b,
			 .offset = i,
			 .bytes = out[1],
			 .length = FILE_BYTES}};
		struct osd_data_op get[] = {{.act = OSD_DATA_READ,
					     .file = a,
					     .offset = 9,
					     .buffer = in[0],
					     .length = 100},
					    {.act = OSD_DATA_READ,
					     .file = b,
					     .offset = i,
					     .buffer = in[1],
					     .length = sizeof(in[1])}};
		struct osd_data_op sync[] = {{.act = OSD_DATA_SYNC, .file = a},
					     {.act = OSD_DATA_SYNC, .file = b}};

		memset(out, (int)(pair->number + i), sizeof(out));
		osd_data_both(pair->both, &put[0], &put[1]);
		OK(put[0].status);
		OK(put[1].status);
		if (i % 50 == 0) {
			osd_data_both(pair->both, &sync[0], &sync[1]);
			OK(sync[0].status);
			OK(sync[1].status);
			forget(b);
		}
		osd_data_both(pair->both, &get[0], &get[1]);
		OK(get[0].status);
		OK(get[1].status);
		CHECK_BYTES(in[0], get[0].done, out[0], 100);
		CHECK_BYTES(in[1], get[1].done, out[1], FILE_BYTES); /* less than asked: its end */
	}
	osd_data_close_file(a);
	osd_data_close_file(b);
	return NULL;
}

/* Not every file system can: a tmpfs of older kernels cannot. */
static bool reads_at_once(struct osd_data *data)
{
	struct pair pair = {.data = data};
	struct osd_data_file *file = make(&pair, 300);
	enum osd_status status;
	uint8_t byte = 1;
	size_t got;

	OK(osd_data_write(file, 0, &byte, 1));
	status = osd_data_read(file, 0, &byte, 1, OSD_DATA_READ_NOWAIT, &got);
	osd_data_close_file(file);
	return status == OSD_OK;
}

static void test_threads(struct osd_data *data, bool allow_rings, bool *ret_rings)
{
	pthread_t threads[THREADS];
	struct pair pairs[THREADS];
	uint64_t rings, helpers;
	struct osd_both *both;

	OK(osd_both_open(allow_rings, &both));
	for (unsigned i = 0; i < THREADS; i++) {
		pairs[i] = (struct pair){both, data, i};
		CHECK_EQ(pthread_create(&threads[i], NULL, many_rounds, &pairs[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	osd_both_counts(both, &rings, &helpers);
	CHECK(rings + helpers >= THREADS * (ROUNDS + ROUNDS / 50)); /* writes and syncs */
	if (reads_at_once(data))				    /* what is in memory */
		CHECK(rings + helpers < THREADS * 2 * ROUNDS);
	CHECK(!rings || !helpers);
	*ret_rings = rings > 0;
	osd_both_close(both);
}

/* ---- failures ---------------------------------------------------------------------------- */

static int full_fd;

static int fd_of_full(struct osd_data_file *file, uint64_t offset, const void *bytes, size_t length)
{
	(void)file, (void)offset, (void)bytes, (void)length;
	return full_fd;
}

static enum osd_status write_full(struct osd_data_file *file, uint64_t offset, const void *bytes,
				  size_t length)
{
	(void)file;
	return pwrite(full_fd, bytes, length, (off_t)offset) < 0 ? osd_status_from_errno(errno)
								 : OSD_OK;
}

/* The half that fails says so; the other is done. */
static void test_one_fails(struct osd_data *data, bool rings, bool full_here)
{
	const struct osd_data_ops ops = {.plain_fd = fd_of_full, .write = write_full};
	struct osd_data full = {.ops = &ops};
	struct osd_data_file broken = {.data = &full}, *good;
	struct pair pair = {.data = data};
	struct osd_data_op bad = {.act = OSD_DATA_WRITE,
				  .file = &broken,
				  .bytes = "abc",
				  .length = 3},
			   fine = bad;
	struct osd_both *both;
	char text[4] = "";
	size_t got;

	good = make(&pair, 100 + 2 * rings + full_here);
	fine.file = good;
	OK(osd_both_open(rings, &both));
	osd_data_both(both, full_here ? &bad : &fine, full_here ? &fine : &bad);
	CHECK_EQ(bad.status, OSD_E_NO_SPACE);
	OK(fine.status);
	OK(osd_data_read(good, 0, text, 3, 0, &got));
	CHECK_BYTES(text, got, "abc", 3);
	CHECK_EQ(atomic_load(&full.figures.writes), 1);
	CHECK_EQ(atomic_load(&full.figures.errors), 1);
	osd_both_close(both);
	osd_data_close_file(good);
}

/* One of them has nothing to do. */
static void test_one_alone(struct osd_data *data)
{
	struct pair pair = {.data = data};
	struct osd_data_file *file = make(&pair, 200);
	struct osd_data_op none = {.act = OSD_DATA_WRITE},
			   put = {.act = OSD_DATA_WRITE, .file = file, .bytes = "xy", .length = 2};
	struct osd_data_stat stat;

	osd_data_both(NULL, &none, &put);
	OK(none.status);
	OK(put.status);
	OK(osd_data_stat(file, &stat));
	CHECK_EQ(stat.size, 2);
	osd_data_close_file(file);
}

int main(void)
{
	char directory[] = "/tmp/iosd-test-XXXXXX";
	struct osd_data *data;
	bool has_rings, none;
	int fd;

	CHECK(mkdtemp(directory) != NULL);
	fd = open(directory, O_RDONLY | O_DIRECTORY);
	full_fd = open("/dev/full", O_RDWR);
	CHECK(fd >= 0 && full_fd >= 0);
	OK(osd_file_data_open(fd, false, &data));
	test_at_once();
	test_threads(data, true, &has_rings);
	test_threads(data, false, &none);
	CHECK(!none);
	for (int i = 0; i < 4; i++)
		test_one_fails(data, i & 1, i & 2);
	test_one_alone(data);
	fprintf(stderr, "second halves by %s\n", has_rings ? "io_uring" : "helper threads");
	OK(osd_data_remove_partition(data, 1, 0));
	osd_data_close(data);
	close(full_fd);
	close(fd);
	CHECK_EQ(rmdir(directory), 0);
	return 0;
}
