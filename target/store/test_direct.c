/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_direct.c -- past the page cache the bytes are the same: at any offset, length and place in
 * memory, as seen either way, to the last byte, and from threads that share blocks. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"
#include "store/direct.h"

#define BLOCK	 4096u
#define BYTES	 (3u << 20)
#define ROUNDS	 TEST_ROUNDS(300)
#define THREADS	 4
#define STRIPE	 100u
#define STRIPES	 (3 * BLOCK / STRIPE)
#define DIRECTLY (O_RDWR | O_CLOEXEC | O_DIRECT)

struct open_file {
	int fd, direct_fd;
};

static unsigned seed = 1;

static unsigned below(unsigned limit)
{
	return (unsigned)rand_r(&seed) % limit;
}

/* Often a border of blocks, or near one. */
static uint64_t some_offset(unsigned limit)
{
	unsigned at = below(limit);

	if (below(3) == 0)
		at -= at % BLOCK;
	return below(4) == 0 && at % BLOCK == 0 && at ? at - 1 : at;
}

static void check_read(const struct open_file *file, const uint8_t *model, size_t size,
		       uint64_t offset, size_t length)
{
	size_t shift = below(3) ? below(BLOCK) : 0, got = 0, there;
	uint8_t *memory = aligned_alloc(BLOCK, osd_round_up(length + BLOCK, BLOCK));

	CHECK(memory != NULL);
	CHECK_EQ(osd_direct_read(file->direct_fd, offset, memory + shift, length, &got), 0);
	there = offset < size ? OSD_MIN(length, size - offset) : 0;
	CHECK_BYTES(memory + shift, got, model + offset, there);
	free(memory);
}

static void test_any_place(const struct open_file *file)
{
	static uint8_t model[BYTES], back[BYTES],
		source[BYTES + BLOCK] __attribute__((aligned(BLOCK)));
	struct stat stat;
	size_t size = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t offset = some_offset(BYTES - 1);
		size_t most = BYTES - (size_t)offset, shift = below(3) ? below(BLOCK) : 0;
		size_t length =
			1 + (size_t)some_offset((unsigned)OSD_MIN(most, below(8) ? 20000 : most));

		length = OSD_MIN(length, most);
		for (size_t at = 0; at < length; at++)
			source[shift + at] = (uint8_t)(i + at * 7 + at / 251);
		CHECK_EQ(
			osd_direct_write(file->direct_fd, file->fd, offset, source + shift, length),
			0);
		memcpy(model + offset, source + shift, length);
		size = OSD_MAX(size, offset + length);
		CHECK_EQ(fstat(file->fd, &stat), 0);
		CHECK_EQ(stat.st_size, size);
		check_read(file, model, size, some_offset(BYTES - 1), 1 + below(3 * BLOCK));
	}
	check_read(file, model, size, 0, size);
	check_read(file, model, size, 5, size);
	check_read(file, model, size, size, 10);
	CHECK_EQ(pread(file->fd, back, BYTES, 0), (ssize_t)size);
	CHECK_BYTES(back, size, model, size);
}

struct worker {
	pthread_t thread;
	const struct open_file *file;
	unsigned number;
};

/* Every fourth stripe is one thread's; no two stripes begin at the same place of a block. */
static void *stripes_main(void *arg)
{
	const struct worker *worker = arg;
	uint8_t bytes[STRIPE];

	for (unsigned round = 0; round < 5; round++) {
		for (unsigned i = worker->number; i < STRIPES; i += THREADS) {
			memset(bytes, (int)(i + round), sizeof(bytes));
			CHECK_EQ(osd_direct_write(worker->file->direct_fd, worker->file->fd,
						  (uint64_t)i * STRIPE, bytes, STRIPE),
				 0);
		}
	}
	return NULL;
}

static void test_shared_blocks(const struct open_file *file)
{
	struct worker workers[THREADS];
	uint8_t bytes[STRIPE];
	size_t got;

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.file = file, .number = i};
		CHECK_EQ(pthread_create(&workers[i].thread, NULL, stripes_main, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
	for (unsigned i = 0; i < STRIPES; i++) {
		uint8_t wanted[STRIPE];

		memset(wanted, (int)(i + 4), sizeof(wanted));
		CHECK_EQ(
			osd_direct_read(file->direct_fd, (uint64_t)i * STRIPE, bytes, STRIPE, &got),
			0);
		CHECK_BYTES(bytes, got, wanted, STRIPE);
	}
}

int main(void)
{
	char directory[] = "/tmp/iosd-test-XXXXXX", path[64];
	struct open_file file;
	int fd;

	CHECK(mkdtemp(directory) != NULL);
	fd = open(directory, O_RDONLY | O_DIRECTORY);
	CHECK(fd >= 0);
	CHECK(!osd_direct_works(-1));
	if (osd_direct_works(fd)) {
		snprintf(path, sizeof(path), "%s/file", directory);
		file.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		file.direct_fd = open(path, DIRECTLY);
		CHECK(file.fd >= 0 && file.direct_fd >= 0);
		test_any_place(&file);
		CHECK_EQ(ftruncate(file.fd, 0), 0);
		test_shared_blocks(&file);
		close(file.fd);
		close(file.direct_fd);
		CHECK_EQ(unlink(path), 0);
	} else {
		fprintf(stderr, "no direct I/O below /tmp: nothing tried\n");
	}
	close(fd);
	CHECK_EQ(rmdir(directory), 0);
	return 0;
}
