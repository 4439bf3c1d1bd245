/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_created.c -- objects that had one id, one after the other, were created at different times
 * (created.c). */
#include <pthread.h>
#include <stdatomic.h>

#include "object/test_support.h"

#define ROUNDS	50
#define THREADS 4
#define ID	UINT64_C(0x20000)

static uint64_t created(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_object_facts facts;

	OK(osd_objects_facts(objects, id, false, &facts));
	return facts.created_ms;
}

/* Many in a millisecond. */
static void test_objects(struct osd_objects *objects, uint64_t pid)
{
	uint64_t before = 0, now, id;

	for (int i = 0; i < ROUNDS; i++, before = now) {
		OK(test_create(objects, pid, ID, &id));
		now = created(objects, (struct osd_object_id){pid, id});
		CHECK(now > before);
		OK(test_remove(objects, (struct osd_object_id){pid, id}));
	}
}

/* Their partition goes with them, and its ids begin anew. */
static void test_partitions(struct osd_objects *objects, uint64_t pid)
{
	uint64_t before = 0, partition_before = 0, now, id;

	for (int i = 0; i < ROUNDS; i++, before = now) {
		OK(test_partition(objects, pid, &id));
		now = created(objects, (struct osd_object_id){pid, 0});
		CHECK(now > partition_before);
		partition_before = now;
		OK(test_create(objects, pid, 0, &id));
		CHECK_EQ(id, 0x10000);
		now = created(objects, (struct osd_object_id){pid, id});
		CHECK(now > before);
		OK(test_remove_partition(objects, pid));
	}
}

struct worker {
	pthread_t thread;
	struct osd_objects *objects;
	uint64_t pid;
	_Atomic uint64_t *last; /* of all threads */
};

/* The object belongs to the thread that has made it, until it removes it.  A creation that waits for the removal of
 * another thread comes after it. */
static void *create_main(void *arg)
{
	struct worker *worker = arg;
	struct osd_object_id id = {worker->pid, ID};

	for (int made = 0; made < ROUNDS;) {
		uint64_t now;

		if (test_create(worker->objects, id.partition_id, ID, &id.object_id) != OSD_OK)
			continue;
		now = created(worker->objects, id);
		CHECK(atomic_exchange(worker->last, now) < now);
		made++;
		OK(test_remove(worker->objects, id));
	}
	return NULL;
}

static void test_threads(struct osd_objects *objects, uint64_t pid)
{
	_Atomic uint64_t last = 0;
	struct worker workers[THREADS];

	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.objects = objects, .pid = pid, .last = &last};
		CHECK_EQ(pthread_create(&workers[i].thread, NULL, create_main, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
}

static void test_all(bool on_disk)
{
	struct test_store store;
	uint64_t pid;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	test_objects(store.objects, pid);
	test_partitions(store.objects, 0x99999);
	test_threads(store.objects, pid);
	test_store_release(&store);
}

int main(void)
{
	test_all(false);
	test_all(true);
	return 0;
}
