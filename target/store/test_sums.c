/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_sums.c -- checksums of blocks: whatever is done to files none is said to be damaged, whichever call
 * fails and wherever the process is killed; and every byte that is turned over is found, until it is written
 * over, and in copies too. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"
#include "store/sums.h"
#include "testing/stores.h"

#define BLOCK	 OSD_SUM_BLOCK
#define BYTES	 (40u * BLOCK)
#define FILES	 2

static const struct osd_data_name names[FILES] = {{0x10000, 1, 0x10000, 1, false, false},
						  {0x10000, 1, 0x10001, 1, false, false}};
static struct osd_sums_figures figures;
static unsigned seed = 1;

static unsigned below(unsigned limit)
{
	return (unsigned)rand_r(&seed) % limit;
}

static void random_bytes(uint8_t *bytes, size_t length)
{
	for (size_t at = 0; at < length; at += 3) { /* rand_r gives 31 bits */
		unsigned bits = (unsigned)rand_r(&seed);

		memcpy(bytes + at, &bits, OSD_MIN(length - at, 3u));
	}
}

/* Often a border of blocks, or near one. */
static size_t some_offset(size_t limit)
{
	size_t at = below((unsigned)limit);

	if (below(2) == 0)
		at -= at % BLOCK;
	return below(4) == 0 && at % BLOCK == 0 && at ? at - 1 : at;
}

/* ---- one store with two files, and what they should hold ---------------------------------- */

struct world {
	struct osd_data *inner; /* the store's own */
	struct osd_data *data;
	struct osd_data_file *files[FILES];
	uint8_t bytes[FILES][BYTES];
	size_t sizes[FILES];
};

static void open_files(struct world *world)
{
	for (int i = 0; i < FILES; i++)
		OK(osd_data_open_file(world->data, &names[i], OSD_DATA_CREATE, &world->files[i]));
}

static void close_files(struct world *world)
{
	for (int i = 0; i < FILES; i++)
		osd_data_close_file(world->files[i]);
}

static struct world *world_new(void)
{
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world != NULL);
	OK(osd_mem_data_open(&world->inner));
	OK(osd_sums_data_wrap(world->inner, false, &figures, &world->data));
	open_files(world);
	return world;
}

static void world_free(struct world *world)
{
	close_files(world);
	osd_data_close(world->data);
	free(world);
}

static uint64_t damaged_in(struct osd_data_file *file, bool make, uint64_t *ret_unknown)
{
	struct osd_sums_check check = {.make = make};

	OK(osd_sums_check(file, 0, UINT64_MAX, &check));
	if (ret_unknown)
		*ret_unknown = check.unknown;
	return check.damaged;
}

static void check_all(struct world *world)
{
	uint8_t bytes[BYTES];
	size_t got;

	for (int i = 0; i < FILES; i++) {
		uint64_t unknown;

		OK(osd_data_read(world->files[i], 0, bytes, BYTES, OSD_DATA_READ_CHECKED, &got));
		CHECK_BYTES(bytes, got, world->bytes[i], world->sizes[i]);
		CHECK_EQ(damaged_in(world->files[i], false, &unknown), 0);
	}
}

/* ---- random changes ---------------------------------------------------------------------- */

static void model_write(struct world *world, int i, size_t offset, const uint8_t *from,
			size_t length)
{
	if (offset > world->sizes[i])
		memset(world->bytes[i] + world->sizes[i], 0, offset - world->sizes[i]);
	if (from)
		memmove(world->bytes[i] + offset, from, length);
	else
		memset(world->bytes[i] + offset, 0, length);
	world->sizes[i] = OSD_MAX(world->sizes[i], offset + length);
}

static enum osd_status random_change(struct world *world, bool with_model)
{
	static uint8_t source[BYTES];
	int i = (int)below(FILES);
	size_t offset = some_offset(BYTES - 1), length = 1 + some_offset(BYTES - offset);
	struct osd_data_file *file = world->files[i];
	enum osd_status status;

	length = OSD_MIN(length, BYTES - offset);
	if (below(3))
		length = OSD_MIN(length, 3 * BLOCK);
	switch (below(with_model ? 7 : 6)) {
	case 0:
	case 1:
	case 2:
		random_bytes(source, length);
		status = osd_data_write(file, offset, source, length);
		if (with_model)
			model_write(world, i, offset, source, length);
		return status;
	case 3:
		status = osd_data_zero(file, offset, length);
		if (with_model && offset < world->sizes[i])
			model_write(world, i, offset, NULL,
				    OSD_MIN(length, world->sizes[i] - offset));
		return status;
	case 4:
		status = osd_data_truncate(file, offset);
		if (with_model && offset > world->sizes[i])
			model_write(world, i, offset, NULL, 0);
		world->sizes[i] = offset;
		return status;
	case 5: {
		size_t to = below(2) ? offset : some_offset(BYTES - 1);

		length = OSD_MIN(length, BYTES - to);
		status = osd_data_copy(file, offset, world->files[!i], to, length, 0);
		if (with_model && offset < world->sizes[i])
			model_write(world, !i, to, world->bytes[i] + offset,
				    OSD_MIN(length, world->sizes[i] - offset));
		return status;
	}
	default:
		close_files(world);
		open_files(world);
		return OSD_OK;
	}
}

static void test_changes(void)
{
	struct world *world = world_new();

	for (unsigned round = 0; round < 3000; round++) {
		OK(random_change(world, true));
		check_all(world);
		if (below(100) == 0) {
			uint64_t unknown;

			CHECK_EQ(damaged_in(world->files[0], true, &unknown), 0);
			CHECK_EQ(damaged_in(world->files[0], true, &unknown), 0);
			CHECK_EQ(unknown, 0);
		}
	}
	CHECK_EQ(figures.damaged, 0);
	CHECK_EQ(figures.forgotten, 0);
	world_free(world);
}

/* ---- damage ------------------------------------------------------------------------------ */

static void turn_over(struct osd_data *inner, const struct osd_data_name *name, uint64_t offset)
{
	struct osd_data_file *file;
	uint8_t byte;
	size_t got;

	OK(osd_data_open_file(inner, name, 0, &file));
	OK(osd_data_read(file, offset, &byte, 1, 0, &got));
	CHECK_EQ(got, 1);
	byte ^= (uint8_t)(1u << below(8));
	OK(osd_data_write(file, offset, &byte, 1));
	osd_data_close_file(file);
}

static void fill(struct world *world, int i, size_t size)
{
	random_bytes(world->bytes[i], size);
	world->sizes[i] = size;
	OK(osd_data_write(world->files[i], 0, world->bytes[i], size));
}

static enum osd_status read_at(struct world *world, int i, uint64_t offset, size_t length)
{
	uint8_t bytes[BYTES];
	size_t got;

	return osd_data_read(world->files[i], offset, bytes, length, OSD_DATA_READ_CHECKED, &got);
}

static void note_damage(void *arg, uint64_t offset)
{
	*(uint64_t *)arg = offset;
}

static void test_found(void)
{
	for (unsigned round = 0; round < 300; round++) {
		struct world *world = world_new();
		size_t size = 1 + below(BYTES), at = below((unsigned)size), start = at - at % BLOCK;
		uint64_t where = UINT64_MAX;
		struct osd_sums_check check = {.damage = note_damage, .arg = &where};

		fill(world, 0, size);
		turn_over(world->inner, &names[0], at);
		CHECK_EQ(read_at(world, 0, 0, BYTES), OSD_E_SUM);
		CHECK_EQ(read_at(world, 0, at, 1), OSD_E_SUM);
		CHECK_EQ(read_at(world, 0, start, 1), OSD_E_SUM);
		CHECK_EQ(read_at(world, 0, start + BLOCK, BYTES), OSD_OK);
		CHECK_EQ(read_at(world, 0, 0, start), OSD_OK);
		OK(osd_sums_check(world->files[0], 0, UINT64_MAX, &check));
		CHECK_EQ(check.damaged, 1);
		CHECK_EQ(where, start);
		CHECK_EQ(check.blocks, (size + BLOCK - 1) / BLOCK);
		world_free(world);
	}
}

/* A write of a part leaves it; so does one that covers the byte.  All of the block: it is whole again. */
static void test_stays(void)
{
	struct world *world = world_new();

	fill(world, 0, 3 * BLOCK);
	turn_over(world->inner, &names[0], BLOCK + 100);
	OK(osd_data_write(world->files[0], BLOCK + 200, "x", 1));
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 1);
	OK(osd_data_write(world->files[0], BLOCK - 10, world->bytes[0], 20));
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 1);
	OK(osd_data_zero(world->files[0], BLOCK + 50, BLOCK));
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 1);
	OK(osd_data_truncate(world->files[0], BLOCK + 70));
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 1);
	OK(osd_data_truncate(world->files[0], 3 * BLOCK));
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 1);
	close_files(world);
	open_files(world);
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 1);
	OK(osd_data_write(world->files[0], BLOCK, world->bytes[0], BLOCK));
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 0);
	world_free(world);
}

static void test_copies(void)
{
	struct world *world = world_new();

	fill(world, 0, 5 * BLOCK + 10);
	turn_over(world->inner, &names[0], BLOCK + 100);
	turn_over(world->inner, &names[0], 5 * BLOCK + 5);
	/* At the same place in its blocks, the last one too: damage goes along. */
	OK(osd_data_copy(world->files[0], 0, world->files[1], 0, 6 * BLOCK, 0));
	CHECK_EQ(damaged_in(world->files[1], true, NULL), 2);
	/* At another one damaged bytes are not copied, whole ones are. */
	CHECK_EQ(osd_data_copy(world->files[0], 0, world->files[1], 1, 3 * BLOCK, 0), OSD_E_SUM);
	OK(osd_data_copy(world->files[0], 2 * BLOCK, world->files[1], 7, 3 * BLOCK, 0));
	world_free(world);
}

/* Bytes that have become a hole, or that are gone from the end. */
static void test_lost(void)
{
	struct world *world = world_new();
	struct osd_data_file *file;
	uint64_t unknown;

	fill(world, 0, 20 * BLOCK);
	OK(osd_data_open_file(world->inner, &names[0], 0, &file));
	OK(osd_data_zero(file, 3 * BLOCK, 2 * BLOCK));
	OK(osd_data_truncate(file, 19 * BLOCK));
	osd_data_close_file(file);
	CHECK_EQ(damaged_in(world->files[0], true, &unknown), 3);
	CHECK_EQ(unknown, 0);
	CHECK_EQ(read_at(world, 0, 3 * BLOCK, 5), OSD_E_SUM);
	CHECK_EQ(read_at(world, 0, 19 * BLOCK, 5), OSD_E_SUM);
	world_free(world);
}

/* ---- without sums, sealed, after a power failure ------------------------------------------ */

static void reopen(struct world *world, uint32_t epoch)
{
	close_files(world);
	osd_sums_set_epoch(world->data, epoch);
	open_files(world);
}

static void test_older_store(void)
{
	struct world *world = world_new();
	struct osd_data_file *file;
	uint64_t unknown;

	OK(osd_data_open_file(world->inner, &names[0], OSD_DATA_CREATE, &file));
	OK(osd_data_write(file, 0, world->bytes[1], 10 * BLOCK));
	osd_data_close_file(file);
	CHECK_EQ(read_at(world, 0, 0, BYTES), OSD_OK);
	CHECK_EQ(damaged_in(world->files[0], false, &unknown), 0);
	CHECK_EQ(damaged_in(world->files[0], true, &unknown), 0);
	CHECK_EQ(unknown, 10);
	turn_over(world->inner, &names[0], 9 * BLOCK);
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 1);
	world_free(world);
}

static bool has_sums(struct world *world, int i)
{
	struct osd_data_name name = names[i];
	struct osd_data_file *file;
	enum osd_status status;

	name.sums = true;
	status = osd_data_open_file(world->inner, &name, 0, &file);
	if (status == OSD_OK)
		osd_data_close_file(file);
	return status == OSD_OK;
}

/* On a full disk what gives space back makes no file, and what fits is written without sums. */
static void test_full_disk(void)
{
	struct world *world = calloc(1, sizeof(*world));
	struct osd_fault_plan plan = {.status = OSD_E_NO_SPACE};
	struct osd_data_file *file;
	uint64_t unknown;

	CHECK(world != NULL);
	OK(osd_mem_data_open(&world->inner));
	OK(osd_data_open_file(world->inner, &names[0], OSD_DATA_CREATE, &file));
	OK(osd_data_write(file, 0, world->bytes[1], 10 * BLOCK));
	osd_data_close_file(file);
	OK(osd_fault_data_wrap(world->inner, &plan, &world->data));
	OK(osd_sums_data_wrap(OSD_STEAL(world->data), false, &figures, &world->data));
	open_files(world);
	OK(osd_data_truncate(world->files[0], 9 * BLOCK + 1));
	OK(osd_data_zero(world->files[0], 1, 2 * BLOCK));
	CHECK(!has_sums(world, 0));
	plan.calls = 0;
	plan.fail_at = 1;
	OK(osd_data_write(world->files[0], 0, "text", 4));
	CHECK(!has_sums(world, 0));
	OK(osd_data_write(world->files[0], 0, "text", 4));
	CHECK(has_sums(world, 0));
	CHECK_EQ(damaged_in(world->files[0], false, &unknown), 0);
	CHECK_EQ(unknown, 8); /* of ten one is a hole, and one has its sum */
	world_free(world);
}

static void test_power(void)
{
	struct world *world = world_new();
	uint64_t before = atomic_load(&figures.forgotten), unknown;

	fill(world, 0, 5 * BLOCK);
	fill(world, 1, 5 * BLOCK);
	OK(osd_sums_seal(world->files[0]));
	turn_over(world->inner, &names[0], 10);
	turn_over(world->inner, &names[1], 10);
	reopen(world, 1);
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 1);
	CHECK_EQ(damaged_in(world->files[1], true, &unknown), 0); /* it may be no damage */
	CHECK_EQ(unknown, 5);
	CHECK_EQ(atomic_load(&figures.forgotten), before + 1);
	/* A change takes the seal away. */
	OK(osd_data_write(world->files[0], 0, world->bytes[0], BLOCK));
	OK(osd_data_write(world->files[0], BLOCK, world->bytes[0], BLOCK));
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 0);
	OK(osd_sums_seal(world->files[0]));
	OK(osd_sums_seal(world->files[0]));
	reopen(world, 2);
	turn_over(world->inner, &names[0], 10);
	CHECK_EQ(damaged_in(world->files[0], true, NULL), 1);
	OK(osd_data_truncate(world->files[0], 4 * BLOCK + 1));
	reopen(world, 3);
	CHECK_EQ(damaged_in(world->files[0], true, &unknown), 0);
	CHECK_EQ(unknown, 5);
	world_free(world);
}

/* ---- links and removal -------------------------------------------------------------------- */

static void test_files_go(int directory_fd)
{
	const struct osd_data_name other = {0x10000, 1, 0x10000, 2, true, false},
				   first = {0x10000, 1, 0x10000, 1, true, false};
	struct osd_data *inner, *data;
	struct osd_data_file *file;
	struct stat stat;

	OK(osd_file_data_open(directory_fd, false, &inner));
	OK(osd_sums_data_wrap(inner, true, &figures, &data));
	OK(osd_data_open_file(data, &first, OSD_DATA_CREATE, &file));
	CHECK_EQ(osd_data_share(file, &(int){0}), OSD_E_UNSUPPORTED);
	OK(osd_data_write(file, 0, "text", 4));
	osd_data_close_file(file);
	OK(osd_data_link(data, &first, &other));
	OK(osd_data_remove(data, &first));
	turn_over(inner, &other, 2);
	OK(osd_data_open_file(data, &other, 0, &file));
	CHECK_EQ(osd_data_read(file, 0, (uint8_t[4]){0}, 4, 0, &(size_t){0}), OSD_E_SUM);
	osd_data_close_file(file);
	OK(osd_data_remove(data, &other));
	CHECK_EQ(fstatat(directory_fd, "0000000000010000.00000001", &stat, 0), 0);
	OK(osd_data_remove_partition(data, 0x10000, 1));
	CHECK(fstatat(directory_fd, "0000000000010000.00000001", &stat, 0) < 0);
	/* Off: every file of sums goes, every other stays. */
	OK(osd_data_open_file(data, &first, OSD_DATA_CREATE, &file));
	OK(osd_data_write(file, 0, "text", 4));
	osd_data_close_file(file);
	OK(osd_file_data_remove_sums(directory_fd));
	turn_over(inner, &first, 2);
	OK(osd_data_open_file(data, &first, 0, &file));
	OK(osd_data_read(file, 0, (uint8_t[4]){0}, 4, 0, &(size_t){0}));
	osd_data_close_file(file);
	OK(osd_data_remove_partition(data, 0x10000, 1));
	osd_data_close(data);
}

/* ---- failures, and death ------------------------------------------------------------------ */

/* Whichever call fails, with half of a write done: what follows finds no damage. */
static void test_failures(void)
{
	for (unsigned at = test_nth_first(5); at < 400; at += test_nth_step(5)) {
		struct world *world = calloc(1, sizeof(*world));
		struct osd_fault_plan plan = {.status = OSD_E_MEDIUM};
		struct osd_data *inner;

		CHECK(world != NULL);
		seed = at;
		OK(osd_mem_data_open(&inner));
		OK(osd_fault_data_wrap(inner, &plan, &world->data));
		OK(osd_sums_data_wrap(OSD_STEAL(world->data), false, &figures, &world->data));
		open_files(world);
		plan.calls = 0;
		plan.fail_at = at;
		for (unsigned i = 0; i < 40; i++)
			random_change(world, false);
		plan.fail_at = 0;
		for (int i = 0; i < FILES; i++)
			CHECK_EQ(damaged_in(world->files[i], false, NULL), 0);
		reopen(world, 0);
		for (int i = 0; i < FILES; i++)
			CHECK_EQ(damaged_in(world->files[i], true, NULL), 0);
		world_free(world);
	}
}

static void die_somewhere(int directory_fd, unsigned at)
{
	struct osd_fault_plan plan = {.status = OSD_E_MEDIUM, .kill = true};
	struct world *world = calloc(1, sizeof(*world));

	CHECK(world != NULL);
	OK(osd_file_data_open(directory_fd, false, &world->inner));
	OK(osd_fault_data_wrap(world->inner, &plan, &world->data));
	OK(osd_sums_data_wrap(OSD_STEAL(world->data), false, &figures, &world->data));
	open_files(world);
	plan.calls = 0;
	plan.fail_at = at;
	for (unsigned i = 0; i < 20; i++)
		OK(random_change(world, false));
	world_free(world);
	_exit(0);
}

static void test_death(int directory_fd)
{
	struct osd_data *inner, *data;
	struct osd_data_file *file;
	unsigned deaths = 0;

	for (unsigned at = test_nth_first(5); at < 250; at += test_nth_step(5)) {
		pid_t child = fork();
		int how;

		CHECK(child >= 0);
		seed = at;
		if (child == 0)
			die_somewhere(directory_fd, at);
		CHECK_EQ(waitpid(child, &how, 0), child);
		deaths += WIFSIGNALED(how);
		CHECK(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
		OK(osd_file_data_open(directory_fd, false, &inner));
		OK(osd_sums_data_wrap(inner, true, &figures, &data));
		for (int i = 0; i < FILES; i++) {
			if (osd_data_open_file(data, &names[i], 0, &file) != OSD_OK)
				continue;
			CHECK_EQ(damaged_in(file, at % 2, NULL), 0);
			osd_data_close_file(file);
		}
		osd_data_close(data);
	}
	CHECK(deaths > 20);
}

/* ---- threads ------------------------------------------------------------------------------ */

#define THREADS 4
#define STRIPE	100u
#define STRIPES (2 * BLOCK / STRIPE)

struct worker {
	pthread_t thread;
	struct osd_data_file *file;
	unsigned number;
};

/* Every fourth stripe is one thread's; most share their blocks with others'. */
static void *stripes_main(void *arg)
{
	const struct worker *worker = arg;
	uint8_t bytes[STRIPE], back[STRIPE];
	size_t got;

	for (unsigned round = 0; round < 100; round++) {
		for (unsigned i = worker->number; i < STRIPES; i += THREADS) {
			memset(bytes, (int)(i + round), sizeof(bytes));
			OK(osd_data_write(worker->file, (uint64_t)i * STRIPE, bytes, STRIPE));
			OK(osd_data_read(worker->file, (uint64_t)i * STRIPE, back, STRIPE,
					 OSD_DATA_READ_CHECKED, &got));
			CHECK_BYTES(back, got, bytes, STRIPE);
		}
	}
	return NULL;
}

static void test_threads(int directory_fd)
{
	const struct osd_data_name name = {0x10001, 1, 0x10000, 1, false, false};
	struct osd_data *inner, *data;
	struct osd_data_file *file;
	struct worker workers[THREADS];

	OK(osd_file_data_open(directory_fd, false, &inner));
	OK(osd_sums_data_wrap(inner, false, &figures, &data));
	OK(osd_data_open_file(data, &name, OSD_DATA_CREATE, &file));
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.file = file, .number = i};
		CHECK_EQ(pthread_create(&workers[i].thread, NULL, stripes_main, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(workers[i].thread, NULL), 0);
	CHECK_EQ(damaged_in(file, false, NULL), 0);
	osd_data_close_file(file);
	osd_data_close(data);
}

/* ThreadSanitizer finds nothing where there is one thread, and takes a minute for it. */
#ifdef __SANITIZE_THREAD__
#define ONLY_THREADS true
#else
#define ONLY_THREADS false
#endif

static void test_one_thread(int directory_fd)
{
	test_changes();
	test_found();
	test_stays();
	test_copies();
	test_lost();
	test_older_store();
	test_full_disk();
	test_power();
	test_files_go(directory_fd);
	test_failures();
	test_death(directory_fd);
}

int main(void)
{
	char directory[64];
	int fd;

	test_folder(directory, sizeof(directory));
	fd = open(directory, O_RDONLY | O_DIRECTORY);
	CHECK(fd >= 0);
	if (!ONLY_THREADS)
		test_one_thread(fd);
	test_threads(fd);
	OK(osd_file_data_remove_sums(fd));
	close(fd);
	CHECK_EQ(execlp("rm", "rm", "-rf", directory, (char *)NULL), 0);
	return 0;
}
