/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_view_circle.c -- chains of views: two transactions at once, each of which makes one partition a view, and would make a
 * circle of three together; and views whose bases become views only later. */
#include <pthread.h>
#include <semaphore.h>

#include "object/internal.h"
#include "object/test_support.h"
#include "object/txn_run.h"
#include "object/view.h"

/* So many partitions lie on several pages of the database, which locks a page as a whole. */
enum { A = 0x10000, B = A + 150, C = B + 150, D = C + 1 };

static struct osd_objects *objects;
static const struct osd_kv_ops *below;
static pthread_t other;
static sem_t checked; /* the other one has checked its chain */
static _Atomic bool waits = true, posts = true;
static enum osd_status other_status;

struct pair {
	uint64_t view, base;
};

static enum osd_status make_view(struct osd_txn *txn, void *arg)
{
	const struct pair *pair = arg;
	uint8_t value[8];

	osd_put_be(value, pair->base, sizeof(value));
	return osd_view_set(txn, pair->view, value, sizeof(value));
}

static void *other_main(void *arg)
{
	struct pair pair = {C, A};

	(void)arg;
	other_status = osd_txn_run(objects, 0, make_view, &pair);
	return NULL;
}

/* A transaction locks the record of the base when it has checked the chain of bases. */
static enum osd_status get(struct osd_kv *kv, struct osd_kv_txn *txn, enum osd_kv_table table,
			   struct osd_bytes key, unsigned flags, void *buffer, size_t capacity,
			   size_t *ret_length)
{
	const bool locks = table == OSD_KV_PARTITIONS && flags & OSD_KV_RMW && key.length >= 8;
	uint64_t id = locks ? osd_get_be((const uint8_t *)key.data + key.length - 8, 8) : 0;

	if (id == B && atomic_exchange(&waits, false)) {
		CHECK_EQ(pthread_create(&other, NULL, other_main, NULL), 0);
		CHECK_EQ(sem_wait(&checked), 0);
	} else if (id == A && !atomic_load(&waits) && atomic_exchange(&posts, false)) {
		CHECK_EQ(sem_post(&checked), 0);
	}
	return below->get(kv, txn, table, key, flags, buffer, capacity, ret_length);
}

/* The base of the last view becomes a view of the next one. */
static void test_long(void)
{
	struct pair pair = {D, D + 1};
	uint64_t made;

	for (uint64_t id = D; id <= D + 5; id++)
		OK(test_partition(objects, id, &made));
	for (; pair.view < D + 4; pair.view++, pair.base++)
		OK(osd_txn_run(objects, 0, make_view, &pair));
	CHECK_EQ(osd_txn_run(objects, 0, make_view, &pair), OSD_E_PARAM_FIELD);
	pair = (struct pair){D + 2, D + 3};
	OK(osd_txn_run(objects, 0, make_view, &pair));
}

int main(void)
{
	struct pair first = {B, C}, second = {A, B};
	struct test_store store;
	struct osd_kv_ops ops;
	enum osd_status status;
	uint64_t made;

	test_store_init(&store, true);
	test_store_open(&store);
	objects = store.objects;
	for (uint64_t id = A; id <= C; id++)
		OK(test_partition(objects, id, &made));
	OK(osd_txn_run(objects, 0, make_view, &first));
	CHECK_EQ(sem_init(&checked, 0, 0), 0);
	osd_timers_stop(&objects->timers); /* they and the reaper read the operations, too */
	osd_helper_stop(&objects->reaper);
	below = objects->kv->ops;
	ops = *below;
	ops.get = get;
	objects->kv->ops = &ops;
	status = osd_txn_run(objects, 0, make_view, &second);
	CHECK_EQ(pthread_join(other, NULL), 0);
	objects->kv->ops = below;
	CHECK(!atomic_load(&posts));
	CHECK_EQ(status == OSD_OK ? other_status : status, OSD_E_PARAM_FIELD);
	CHECK(status == OSD_OK || other_status == OSD_OK);
	sem_destroy(&checked);
	test_long();
	test_store_release(&store);
	return 0;
}
