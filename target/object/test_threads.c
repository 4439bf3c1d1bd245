/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_threads.c -- many threads on few objects: a write is seen whole or not at all, attributes
 * set together are read together, deadlock victims get through, and the figures come out right. */
#include <pthread.h>

#include "object/test_support.h"

#define THREADS	    4
#define ROUNDS	    TEST_ROUNDS(300)
#define FILE_ROUNDS 40
#define BLOCK	    30000
#define PID	    UINT64_C(0x10000)

static const struct osd_object_id shared = {PID, 0x10000};

struct worker {
	pthread_t thread;
	struct osd_objects *objects;
	unsigned number;
};

/* Deadlock victims start over, as the dispatcher does it. */
#define RETRY(status, call)                                                                        \
	do {                                                                                       \
		unsigned tries_ = 0;                                                               \
		do                                                                                 \
			status = (call);                                                           \
		while (status == OSD_E_CONFLICT && ++tries_ < OSD_TXN_RETRIES);                    \
	} while (0)

static enum osd_status set_pair(struct osd_objects *objects, struct osd_object_id id,
				uint64_t value)
{
	struct osd_txn *txn = test_begin(objects, 0);
	uint8_t bytes[8];
	enum osd_status status = OSD_OK;

	osd_put_be(bytes, value, 8);
	for (uint32_t number = 1; status == OSD_OK && number <= 6; number++)
		status = osd_attr_set(txn, id, 0x10001, number, bytes, 8);
	return test_end(txn, status);
}

static enum osd_status check_pair(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	uint8_t first[8] = {0}, last[8] = {0};
	size_t length;
	enum osd_status status = osd_attr_get(txn, id, 0x10001, 1, first, 8, &length);

	if (status == OSD_OK)
		status = osd_attr_get(txn, id, 0x10001, 6, last, 8, &length);
	if (status == OSD_OK)
		CHECK_BYTES(first, 8, last, 8);
	osd_txn_abort(txn);
	return status;
}

static void *attributes_main(void *arg)
{
	struct worker *worker = arg;
	enum osd_status status;

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct osd_object_id id = {PID, 0x10000 + i % 3};

		RETRY(status, set_pair(worker->objects, id, worker->number * 1000 + i));
		OK(status);
		RETRY(status, check_pair(worker->objects, id));
		OK(status);
	}
	return NULL;
}

static void *data_main(void *arg)
{
	struct worker *worker = arg;
	struct osd_object *object;
	static _Thread_local uint8_t bytes[BLOCK];
	size_t got;

	OK(osd_object_get(worker->objects, shared, &object));
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (worker->number % 2 == 0) {
			memset(bytes, (int)(i + worker->number), sizeof(bytes));
			OK(osd_object_write(object, 0, bytes, sizeof(bytes), 0));
			if (i % 32 == 0)
				OK(osd_object_truncate(object, 0, 0));
			continue;
		}
		OK(osd_object_read(object, 0, bytes, sizeof(bytes), 0, &got));
		CHECK(got == 0 || got == BLOCK);
		CHECK(got == 0 || memcmp(bytes, bytes + 1, got - 1) == 0); /* all are equal */
	}
	osd_object_put(object);
	return NULL;
}

/* PUNCH puts other files in the place of those a FLUSH is just writing out. */
static void *files_main(void *arg)
{
	struct worker *worker = arg;
	static const uint8_t bytes[BLOCK];
	struct osd_object *object;

	OK(osd_object_get(worker->objects, shared, &object));
	for (unsigned i = 0; i < FILE_ROUNDS; i++) {
		if (worker->number % 2) {
			OK(osd_object_flush(object));
			continue;
		}
		OK(osd_object_write(object, 0, bytes, sizeof(bytes), 0));
		OK(test_punch(object, 0, 16, NULL));
	}
	osd_object_put(object);
	return NULL;
}

/* Every thread its own objects, in one partition: created, written, appended to, joined, removed.
 */
static void *life_main(void *arg)
{
	struct worker *worker = arg;
	struct osd_objects *o = worker->objects;
	enum osd_status status;

	for (unsigned i = 0; i < ROUNDS / 4; i++) {
		struct osd_object_id id = {PID, 0};
		struct osd_object *object;
		uint64_t offset;

		RETRY(status, test_create(o, PID, 0, &id.object_id));
		OK(status);
		OK(osd_object_get(o, id, &object));
		OK(test_append(object, "abc", 3, 0, &offset));
		CHECK_EQ(offset, 0);
		OK(test_append(object, "def", 3, 0, &offset));
		CHECK_EQ(offset, 3);
		osd_object_put(object);
		RETRY(status, test_set_number(o, id, 4, 1, 0x20000, 8));
		OK(status);
		RETRY(status, test_set_number(o, id, 1, OSD_INFO_LOGICAL_LENGTH, 2, 8));
		OK(status);
		CHECK_EQ(test_get_number(o, id, 1, OSD_INFO_LOGICAL_LENGTH), 2);
		if (i % 8 == 0)
			continue;
		RETRY(status, test_remove(o, id));
		OK(status);
	}
	return NULL;
}

static void run_threads(struct osd_objects *objects, void *(*thread_main)(void *))
{
	struct worker workers[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].objects = objects;
		workers[i].number = i;
		CHECK(pthread_create(&workers[i].thread, NULL, thread_main, &workers[i]) == 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(pthread_join(workers[i].thread, NULL) == 0);
}

static void run(bool on_disk)
{
	struct osd_objects_stats before, after;
	struct test_store store;
	struct osd_txn *txn;
	uint64_t id;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &id));
	for (int i = 0; i < 3; i++)
		OK(test_create(store.objects, PID, 0, &id));
	txn = test_begin(store.objects, 0);
	OK(test_end(txn, osd_collection_create(txn, PID, 0x20000, OSD_COLLECTION_LINKED, &id)));
	run_threads(store.objects, attributes_main);
	run_threads(store.objects, data_main);
	run_threads(store.objects, files_main);
	run_threads(store.objects, life_main);
	osd_objects_stats(store.objects, &before);
	CHECK_EQ(before.object_count, 4 + THREADS * ((ROUNDS / 4 + 7) / 8));
	if (on_disk) {
		test_store_reopen(&store);
		osd_objects_stats(store.objects, &after);
		CHECK_EQ(after.used_bytes, before.used_bytes);
		CHECK_EQ(after.object_count, before.object_count);
	}
	test_store_release(&store);
}

int main(void)
{
	run(false);
	run(true);
	return 0;
}
