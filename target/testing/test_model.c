/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_model.c -- simulated disks: what options name them, how long what takes (by hand, without a
 * clock), and that calls really last so long, one after the other on one disk, at once on two. */
#include <pthread.h>

#include "base/clock.h"
#include "base/test.h"
#include "testing/model.h"
#include "testing/stores.h"

#define MS	 UINT64_C(1000000)
#define MB	 UINT64_C(1000000)

static const struct osd_data_name name_a = {0x10000, 1, 0x10001, 7, false, false};
static const struct osd_data_name name_b = {0x10000, 1, 0x10002, 8, false, false};

/* ---- options ----------------------------------------------------------------------------- */

static void test_parse(void)
{
	static const char *const bad[] = {
		"",
		"hdd",
		"hdd:15ms",
		"hdd:15:65MB/s",
		"hdd:-1ms:65MB/s",
		"hdd:15ms:0MB/s",
		"hdd:15ms:1e99GB/s",
		"hdd:15ms:nanMB/s",
		"tape:1s:1MB/s",
		"hdd:15ms:65MB/s+",
		"hdd:15ms:65MB/s:1MB/s:1MB/s",
		"hdd:1ms:1MB/s+hdd:1ms:1MB/s+hdd:1ms:1MB/s",
		"thesis+thesis",
		"hdd:15ms:65MB/sx",
	};
	struct osd_model model, thesis;

	CHECK(osd_model_parse("thesis", &thesis));
	CHECK(osd_model_parse("hdd:15ms:65MB/s+ssd:0.2ms:275MB/s:150MB/s", &model));
	CHECK_EQ(model.count, 2);
	CHECK_EQ(thesis.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQ(model.devices[i].arm, i == 0);
		CHECK_EQ(thesis.devices[i].arm, i == 0);
		CHECK_EQ(model.devices[i].access_nsec, i == 0 ? 15 * MS : MS / 5);
		CHECK_EQ(thesis.devices[i].access_nsec, i == 0 ? 15 * MS : MS / 5);
		CHECK_EQ(model.devices[i].read_rate, i == 0 ? 65 * MB : 275 * MB);
		CHECK_EQ(thesis.devices[i].read_rate, i == 0 ? 65 * MB : 275 * MB);
		CHECK_EQ(model.devices[i].write_rate, i == 0 ? 65 * MB : 150 * MB);
		CHECK_EQ(thesis.devices[i].write_rate, i == 0 ? 65 * MB : 150 * MB);
	}
	CHECK(osd_model_parse("thesis-hdd", &model));
	CHECK_EQ(model.count, 1);
	CHECK(model.devices[0].arm);
	CHECK(osd_model_parse("thesis-ssd", &model));
	CHECK_EQ(model.count, 1);
	CHECK(!model.devices[0].arm);
	CHECK(osd_model_parse("ssd:50us:1.5GB/s:700kB/s", &model));
	CHECK_EQ(model.devices[0].access_nsec, 50000);
	CHECK_EQ(model.devices[0].read_rate, 1500 * MB);
	CHECK_EQ(model.devices[0].write_rate, 700000);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!osd_model_parse(bad[i], &model));
}

/* ---- time -------------------------------------------------------------------------------- */

static void test_arm(void)
{
	struct osd_model_arm arm = {.device = {true, 15 * MS, 65 * MB, 50 * MB}};
	uint64_t now = 1000 * MS;

	/* 15 ms, then 6.5 MB in 100 ms. */
	CHECK_EQ(osd_model_plan(&arm, now, OSD_MODEL_READ, &name_a, 0, 6500000), now + 115 * MS);
	/* It comes while the disk is at work, and goes on where that ends. */
	CHECK_EQ(osd_model_plan(&arm, now, OSD_MODEL_READ, &name_a, 6500000, 650000),
		 now + 125 * MS);
	/* Later, and still where the arm is: no access.  Writes have a rate of their own. */
	now = 2000 * MS;
	CHECK_EQ(osd_model_plan(&arm, now, OSD_MODEL_WRITE, &name_a, 7150000, 500000),
		 now + 10 * MS);
	/* Elsewhere in the file, in another file, and back: an access each. */
	now = 3000 * MS;
	CHECK_EQ(osd_model_plan(&arm, now, OSD_MODEL_READ, &name_a, 0, 0), now + 15 * MS);
	CHECK_EQ(osd_model_plan(&arm, now, OSD_MODEL_READ, &name_b, 0, 0), now + 30 * MS);
	CHECK_EQ(osd_model_plan(&arm, now, OSD_MODEL_READ, &name_a, 0, 0), now + 45 * MS);
	/* Work on names takes an access and the arm away. */
	CHECK_EQ(osd_model_plan(&arm, now, OSD_MODEL_NAME, NULL, 0, 0), now + 60 * MS);
	CHECK_EQ(osd_model_plan(&arm, now, OSD_MODEL_READ, &name_a, 0, 0), now + 75 * MS);
}

static void test_no_arm(void)
{
	struct osd_model_arm arm = {.device = {false, MS / 5, 275 * MB, 150 * MB}};

	CHECK_EQ(osd_model_plan(&arm, 0, OSD_MODEL_READ, &name_a, 0, 2750000), 10 * MS + MS / 5);
	CHECK_EQ(osd_model_plan(&arm, 0, OSD_MODEL_WRITE, &name_a, 2750000, 1500000),
		 20 * MS + 2 * MS / 5);
	/* 1 GiB does not overflow: 7.158278827 s. */
	CHECK_EQ(osd_model_plan(&arm, 100 * MS, OSD_MODEL_WRITE, &name_a, 0, 1u << 30),
		 100 * MS + MS / 5 + UINT64_C(7158278827));
}

/* ---- real calls -------------------------------------------------------------------------- */

static struct osd_data *simulated(uint64_t access_nsec)
{
	const struct osd_model_device device = {true, access_nsec, 1000 * MB, 1000 * MB};
	struct osd_data *inner, *data;

	OK(osd_mem_data_open(&inner));
	OK(osd_model_data_wrap(inner, &device, &data));
	return data;
}

/* Contents are those of the inner store; what may not wait, or would go past the model, is refused. */
static void test_contents(void)
{
	struct osd_data *data = simulated(0);
	struct osd_data_file *file, *other;
	uint64_t start, end;
	char bytes[16];
	size_t got;
	int fd;

	CHECK_EQ(osd_data_open_file(data, &name_a, 0, &file), OSD_E_NO_OBJECT);
	OK(osd_data_open_file(data, &name_a, OSD_DATA_CREATE, &file));
	OK(osd_data_write(file, 2, "hello", 5));
	OK(osd_data_read(file, 0, bytes, sizeof(bytes), 0, &got));
	CHECK_BYTES(bytes, got, "\0\0hello", 7);
	CHECK_EQ(osd_data_read(file, 0, bytes, 1, OSD_DATA_READ_NOWAIT, &got), OSD_E_WOULD_BLOCK);
	CHECK_EQ(osd_data_share(file, &fd), OSD_E_UNSUPPORTED);
	CHECK(!osd_data_can_clone(data));
	OK(osd_data_open_file(data, &name_b, OSD_DATA_CREATE, &other));
	CHECK_EQ(osd_data_clone(file, other), OSD_E_UNSUPPORTED);
	OK(osd_data_copy(file, 2, other, 0, 100, 0));
	OK(osd_data_read(other, 0, bytes, sizeof(bytes), 0, &got));
	CHECK_BYTES(bytes, got, "hello", 5);
	OK(osd_data_truncate(other, 3));
	OK(osd_data_zero(other, 1, 1));
	OK(osd_data_read(other, 0, bytes, sizeof(bytes), 0, &got));
	CHECK_BYTES(bytes, got, "h\0l", 3);
	OK(osd_data_next_extent(file, 0, &start, &end));
	CHECK_EQ(end, 7);
	OK(osd_data_sync(other));
	osd_data_close_file(file);
	osd_data_close_file(other);
	OK(osd_data_remove(data, &name_a));
	OK(osd_data_remove_partition(data, name_a.partition_id, name_a.incarnation));
	CHECK_EQ(osd_data_open_file(data, &name_b, 0, &file), OSD_E_NO_OBJECT);
	osd_data_close(data);
}

#define THREADS 4
#define CALLS	5
#define ACCESS	(4 * MS) /* at first */

struct caller {
	struct osd_data *data;
	struct osd_data_name name;
	pthread_t thread;
};

static void *call_often(void *arg)
{
	struct caller *caller = arg;
	struct osd_data_file *file;

	OK(osd_data_open_file(caller->data, &caller->name, OSD_DATA_CREATE, &file));
	for (unsigned i = 1; i < CALLS; i++)
		OK(osd_data_write(file, 0, "x", 1));
	osd_data_close_file(file);
	return NULL;
}

/* How long THREADS callers take on so many disks, each with CALLS calls that need an access of so
 * long. */
static uint64_t time_callers(unsigned disks, uint64_t access_nsec)
{
	struct osd_data *data[THREADS];
	struct caller callers[THREADS];
	uint64_t began, took;

	for (unsigned i = 0; i < disks; i++)
		data[i] = simulated(access_nsec);
	began = osd_monotonic_nsec();
	for (unsigned i = 0; i < THREADS; i++) {
		callers[i] = (struct caller){data[i % disks], name_a, 0};
		callers[i].name.object_id += i;
		CHECK_EQ(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(callers[i].thread, NULL);
	took = osd_monotonic_nsec() - began;
	for (unsigned i = 0; i < disks; i++)
		osd_data_close(data[i]);
	return took;
}

/* Never sooner than the model has it, however they come; several disks work at once: their callers
 * are through before one disk could be, unless the machine stalled for as long.  So the disks become
 * slower. */
static void test_queues(void)
{
	uint64_t access = ACCESS, took;

	CHECK(time_callers(1, access) >= THREADS * CALLS * access);
	for (; access <= 512 * ACCESS; access *= 2) {
		took = time_callers(THREADS, access);
		CHECK(took >= CALLS * access);
		if (took < THREADS * CALLS * access)
			return;
	}
	CHECK(!"disks work at once");
}

int main(void)
{
	test_parse();
	test_arm();
	test_no_arm();
	test_contents();
	test_queues();
	return 0;
}
