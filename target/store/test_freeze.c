/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_freeze.c -- a frozen store: transactions and data calls wait, reads do not, and the deadline
 * ends it. */
#include "store/freeze.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"
#include "testing/stores.h"

#define LONG_USEC UINT64_C(60000000)

static const struct osd_data_name name = {.partition_id = 1, .object_id = 2, .generation = 3};

struct bench {
	struct osd_kv *kv;
	struct osd_data *data;
	struct osd_freeze *freeze;
	struct osd_data_file *file;
	_Atomic unsigned ended; /* of what other threads do */
};

static void open_bench(struct bench *bench)
{
	memset(bench, 0, sizeof(*bench));
	CHECK(osd_mem_kv_open(&bench->kv) == OSD_OK);
	CHECK(osd_mem_data_open(&bench->data) == OSD_OK);
	CHECK(osd_freeze_open(bench->kv, bench->data, NULL, &bench->freeze) == OSD_OK);
	CHECK(osd_data_open_file(bench->data, &name, OSD_DATA_CREATE, &bench->file) == OSD_OK);
	CHECK(osd_data_write(bench->file, 0, "before", 6) == OSD_OK);
}

static void close_bench(struct bench *bench)
{
	osd_data_close_file(bench->file);
	osd_freeze_close(bench->freeze);
	osd_kv_close(bench->kv);
	osd_data_close(bench->data);
}

static enum osd_status put(struct bench *bench)
{
	struct osd_bytes key = {"k", 1};
	struct osd_kv_txn *txn;
	enum osd_status status = osd_kv_begin(bench->kv, OSD_KV_CHANGE, &txn);

	if (status == OSD_OK)
		status = osd_kv_put(txn, OSD_KV_META, key, key, 0);
	return status == OSD_OK ? osd_kv_commit(txn, OSD_KV_COMMIT_PROCESS) : status;
}

static void *put_main(void *arg)
{
	struct bench *bench = arg;

	CHECK(put(bench) == OSD_OK);
	atomic_fetch_add(&bench->ended, 1);
	return NULL;
}

static void *write_main(void *arg)
{
	struct bench *bench = arg;

	CHECK(osd_data_write(bench->file, 0, "after!", 6) == OSD_OK);
	atomic_fetch_add(&bench->ended, 1);
	return NULL;
}

static void check_bytes(struct bench *bench, const char *expected)
{
	char bytes[6];
	size_t got;

	CHECK(osd_data_read(bench->file, 0, bytes, sizeof(bytes), 0, &got) == OSD_OK);
	CHECK(got == 6 && memcmp(bytes, expected, 6) == 0);
}

static void test_changes_wait(void)
{
	pthread_t writer, putter;
	struct bench bench;
	struct osd_kv_txn *txn;

	open_bench(&bench);
	CHECK(osd_freeze_begin(bench.freeze, LONG_USEC, LONG_USEC) == OSD_OK);
	CHECK(osd_freeze_begin(bench.freeze, 1, LONG_USEC) == OSD_E_BUSY);
	CHECK(pthread_create(&writer, NULL, write_main, &bench) == 0);
	CHECK(pthread_create(&putter, NULL, put_main, &bench) == 0);
	check_bytes(&bench, "before");
	CHECK(osd_kv_begin(bench.kv, OSD_KV_READ, &txn) == OSD_OK);
	osd_kv_abort(txn);
	usleep(20000); /* time to go wrong in; the test is right without */
	CHECK(atomic_load(&bench.ended) == 0);
	check_bytes(&bench, "before");
	CHECK(osd_freeze_end(bench.freeze));
	pthread_join(writer, NULL);
	pthread_join(putter, NULL);
	check_bytes(&bench, "after!");
	CHECK(!osd_freeze_end(bench.freeze));
	close_bench(&bench);
}

static void test_open_transaction_is_waited_for(void)
{
	struct bench bench;
	struct osd_kv_txn *txn;

	open_bench(&bench);
	CHECK(osd_kv_begin(bench.kv, OSD_KV_CHANGE, &txn) == OSD_OK);
	CHECK(osd_freeze_begin(bench.freeze, 1000, LONG_USEC) == OSD_E_BUSY);
	CHECK(osd_data_write(bench.file, 0, "during", 6) == OSD_OK);
	osd_kv_abort(txn);
	CHECK(osd_freeze_begin(bench.freeze, 1000, LONG_USEC) == OSD_OK);
	CHECK(osd_freeze_end(bench.freeze));
	close_bench(&bench);
}

/* Nobody thaws.  Only a change that waits ends the freeze, so the freeze is on if the change did not wait. */
static void check_waits(struct bench *bench, enum osd_status (*change)(struct bench *bench))
{
	CHECK(osd_freeze_begin(bench->freeze, 1000, 1000) == OSD_OK);
	CHECK(change(bench) == OSD_OK);
	CHECK(!osd_freeze_is_on(bench->freeze));
	CHECK(!osd_freeze_end(bench->freeze));
}

static enum osd_status write_bytes(struct bench *bench)
{
	return osd_data_write(bench->file, 0, "during", 6);
}

static enum osd_status cut(struct bench *bench)
{
	return osd_data_truncate(bench->file, 4);
}

static enum osd_status zero(struct bench *bench)
{
	return osd_data_zero(bench->file, 0, 2);
}

static enum osd_status copy(struct bench *bench)
{
	return osd_data_copy(bench->file, 0, bench->file, 8, 2, 0);
}

static enum osd_status set_modified(struct bench *bench)
{
	return osd_data_set_modified(bench->file, 1);
}

static enum osd_status remove_file(struct bench *bench)
{
	return osd_data_remove(bench->data, &name);
}

static void test_deadline_ends_it(void)
{
	struct bench bench;

	open_bench(&bench);
	check_waits(&bench, put);
	check_waits(&bench, write_bytes);
	check_waits(&bench, cut);
	check_waits(&bench, zero);
	check_waits(&bench, copy);
	check_waits(&bench, set_modified);
	check_waits(&bench, remove_file);
	close_bench(&bench);
}

/* Files that are there open at once; only a new one waits. */
static void test_files_open(void)
{
	struct osd_data_name other = {.partition_id = 1, .object_id = 9, .generation = 3};
	struct osd_data_file *file;
	struct bench bench;

	open_bench(&bench);
	CHECK(osd_freeze_begin(bench.freeze, 1000, LONG_USEC) == OSD_OK);
	CHECK(osd_data_open_file(bench.data, &name, OSD_DATA_CREATE, &file) == OSD_OK);
	osd_data_close_file(file);
	CHECK(osd_data_open_file(bench.data, &other, 0, &file) == OSD_E_NO_OBJECT);
	CHECK(osd_freeze_end(bench.freeze));
	CHECK(osd_freeze_begin(bench.freeze, 1000, 20000) == OSD_OK);
	CHECK(osd_data_open_file(bench.data, &other, OSD_DATA_CREATE, &file) == OSD_OK);
	CHECK(!osd_freeze_end(bench.freeze)); /* it waited for the end */
	osd_data_close_file(file);
	close_bench(&bench);
}

int main(void)
{
	test_changes_wait();
	test_open_transaction_is_waited_for();
	test_deadline_ends_it();
	test_files_open();
	return 0;
}
