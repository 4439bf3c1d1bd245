/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_range_waits.c -- which bytes a change or a READ locks: each waits for a change of them that is
 * under way.  Upkeep waits for none.  Also what a READ that must not wait leaves to others. */
#include <pthread.h>
#include <sched.h>

#include "object/internal.h"
#include "object/test_support.h"

#define PID UINT64_C(0x10000)

/* What another thread does with the object, of which some bytes are locked. */
struct beside {
	struct osd_object *object;
	struct osd_data_version wanted;
	atomic_bool ended;
};

static bool has_waiter(struct osd_object *object)
{
	bool waits = false;

	osd_lock(&object->mutex);
	for (const struct osd_range *range = object->ranges.first; range; range = range->next)
		waits |= range->turn != NULL;
	osd_unlock(&object->mutex);
	return waits;
}

/* Locks bytes [0, 5) and starts the thread: it must wait for them. */
static void check_waits(struct beside *beside, void *(*main)(void *arg))
{
	struct osd_range range;
	pthread_t thread;

	OK(osd_object_lock(beside->object, &range, 0, 5, false));
	CHECK(pthread_create(&thread, NULL, main, beside) == 0);
	while (!has_waiter(beside->object) && !atomic_load(&beside->ended))
		sched_yield();
	CHECK(!atomic_load(&beside->ended));
	osd_object_unlock(beside->object, &range);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(atomic_load(&beside->ended));
}

/* On bytes that nobody else has locked. */

static void *change_wanted(void *arg)
{
	struct beside *beside = arg;
	struct osd_piece piece = {8, 5};
	struct osd_change change = {.kind = OSD_CHANGE_WRITE,
				    .pieces = &piece,
				    .piece_count = 1,
				    .data = "other",
				    .wanted = &beside->wanted};

	OK(osd_object_change(beside->object, &change));
	atomic_store(&beside->ended, true);
	return NULL;
}

/* It waits for changes of other bytes: each of them would make another version. */
static void test_wanted_waits_for_all(struct test_store *store)
{
	struct beside beside = {.ended = false};
	uint64_t oid;

	OK(test_create(store->objects, PID, 0, &oid));
	OK(test_write(store->objects, (struct osd_object_id){PID, oid}, 0, "write", 5));
	OK(osd_object_get(store->objects, (struct osd_object_id){PID, oid}, &beside.object));
	beside.wanted = osd_version_of(beside.object);
	check_waits(&beside, change_wanted);
	osd_object_put(beside.object);
}

static void *read_bytes(void *arg)
{
	struct beside *beside = arg;
	char data[5];
	size_t got;

	OK(osd_object_read(beside->object, 0, data, sizeof(data), 0, &got));
	atomic_store(&beside->ended, true);
	return NULL;
}

static void *read_pieces(void *arg)
{
	struct beside *beside = arg;
	const struct osd_piece pieces[] = {{8, 2}, {4, 1}};
	uint64_t available;
	char data[3];

	OK(osd_object_read_pieces(beside->object, pieces, 2, data, sizeof(data), 0, NULL,
				  &available));
	atomic_store(&beside->ended, true);
	return NULL;
}

static void test_reads_wait_for_writes(struct test_store *store)
{
	struct beside beside = {.ended = false};
	struct osd_range range;
	uint64_t oid;
	char data[5];
	size_t got;

	OK(test_create(store->objects, PID, 0, &oid));
	OK(test_write(store->objects, (struct osd_object_id){PID, oid}, 0, "write", 5));
	OK(osd_object_get(store->objects, (struct osd_object_id){PID, oid}, &beside.object));
	check_waits(&beside, read_bytes);
	atomic_store(&beside.ended, false);
	check_waits(&beside, read_pieces);
	OK(osd_object_lock(beside.object, &range, 0, 1, false));
	CHECK_EQ(osd_object_read(beside.object, 0, data, 5, OSD_DATA_NOWAIT, &got),
		 OSD_E_WOULD_BLOCK);
	OK(osd_object_read(beside.object, 1, data, 4, 0, &got)); /* others' bytes */
	osd_object_unlock(beside.object, &range);
	osd_object_put(beside.object);
}

/* ---- damage ----------------------------------------------------------------------------------- */

/* The list of damaged blocks is made by a thread that may wait. */
static void test_damage(void)
{
	const struct osd_sums_config sums = {.use = OSD_SUMS_ON, .verify = OSD_VERIFY_ALWAYS};
	const struct osd_object_id id = {PID, 0x10000};
	struct test_store store;
	struct osd_sums_stats stats;
	struct osd_object *object;
	uint64_t made;
	char data[5];
	size_t got;

	test_store_init(&store, false);
	store.config.sums = &sums;
	test_store_open(&store);
	osd_timers_stop(&store.objects->timers); /* a READ would have to wait for upkeep */
	OK(test_partition(store.objects, PID, &made));
	OK(test_create(store.objects, PID, id.object_id, &made));
	OK(test_write(store.objects, id, 0, "write", 5));
	OK(osd_object_get(store.objects, id, &object));
	OK(osd_object_read(object, 0, data, 5, OSD_DATA_NOWAIT, &got));
	OK(osd_data_write(atomic_load(&object->file.head)->inner, 0, "W", 1));
	CHECK_EQ(osd_object_read(object, 0, data, 5, OSD_DATA_NOWAIT, &got), OSD_E_WOULD_BLOCK);
	osd_sums_stats(store.objects, &stats);
	CHECK_EQ(stats.damaged_now, 0);
	CHECK_EQ(osd_object_read(object, 0, data, 5, 0, &got), OSD_E_SUM);
	osd_sums_stats(store.objects, &stats);
	CHECK_EQ(stats.damaged_now, 1);
	osd_object_put(object);
	test_store_release(&store);
}

/* ---- beside a long command ---------------------------------------------------------------- */

static void unlock(struct osd_object *object, struct osd_range *range, bool exclusive)
{
	if (exclusive)
		osd_object_unlock(object, range);
	else
		osd_object_unlock_read(object, range);
}

/* An object that waits to be settled, with all of it locked: as a PUNCH does, or a copy. */
static void lock_unsettled(struct beside *beside, struct osd_range *range, bool exclusive)
{
	for (;;) {
		OK(osd_object_write(beside->object, 0, "write", 5, 0));
		OK(exclusive ? osd_object_lock(beside->object, range, 0, UINT64_MAX, true)
			     : osd_object_lock_read(beside->object, range, 0, UINT64_MAX, false));
		if (!osd_object_is_settled(beside->object))
			return;
		unlock(beside->object, range, exclusive); /* upkeep was faster */
	}
}

/* The thread must end while the lock is held, and must not queue for another one, because later READs
 * would wait behind it. */
static void check_passes(struct beside *beside, void *(*main)(void *arg))
{
	pthread_t thread;

	atomic_store(&beside->ended, false);
	CHECK(pthread_create(&thread, NULL, main, beside) == 0);
	while (!atomic_load(&beside->ended)) {
		CHECK(!has_waiter(beside->object));
		sched_yield();
	}
	CHECK(pthread_join(thread, NULL) == 0);
}

static void *maintain(void *arg)
{
	struct beside *beside = arg;

	osd_maintain(beside->object->objects, false);
	atomic_store(&beside->ended, true);
	return NULL;
}

static void *share(void *arg)
{
	struct beside *beside = arg;
	struct osd_share given;
	enum osd_status status = osd_object_share(beside->object, &given);

	if (status == OSD_OK) {
		osd_closep(&given.head_fd);
		osd_closep(&given.tail_fd);
		osd_closep(&given.version_fd);
		osd_object_unshare(beside->object);
	} else {
		CHECK_EQ(status, OSD_E_UNSUPPORTED); /* in memory */
	}
	atomic_store(&beside->ended, true);
	return NULL;
}

static void test_upkeep_waits_for_none(struct test_store *store)
{
	struct beside beside = {.ended = false};
	struct osd_range range, other;
	uint64_t oid;

	OK(test_create(store->objects, PID, 0, &oid));
	OK(osd_object_get(store->objects, (struct osd_object_id){PID, oid}, &beside.object));
	lock_unsettled(&beside, &range, false);
	check_passes(&beside, maintain);
	check_passes(&beside, share);
	OK(osd_object_lock_read(beside.object, &other, 0, 5, true));
	osd_object_unlock_read(beside.object, &other);
	osd_object_unlock_read(beside.object, &range);
	lock_unsettled(&beside, &range, true);
	check_passes(&beside, maintain);
	CHECK(!osd_object_is_settled(beside.object));
	osd_object_unlock(beside.object, &range);
	while (!osd_object_is_settled(beside.object))
		osd_maintain(store->objects, false);
	osd_object_put(beside.object);
}

int main(void)
{
	static test_fn *const tests[] = {test_wanted_waits_for_all, test_reads_wait_for_writes,
					 test_upkeep_waits_for_none};

	test_both_stores(PID, tests, OSD_ARRAY_SIZE(tests));
	test_damage();
	return 0;
}
