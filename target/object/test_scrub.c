/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_scrub.c -- a scrub that cannot read the records stops, and keeps the damage that is known. */
#include <fcntl.h>

#include "object/internal.h"
#include "object/test_support.h"
#include "store/stand_in.h"

#define PID	UINT64_C(0x10000)
#define FIRST	UINT64_C(0x20000)
#define OBJECTS 20u /* more than the scrub finds with one scan */

/* The operations of the records' store, of which one scan fails. */
static struct osd_kv_ops operations;
static enum osd_status (*scan_through)(struct osd_kv *kv, struct osd_kv_txn *txn,
				       enum osd_kv_table table, struct osd_bytes from,
				       size_t prefix_length, osd_kv_scan_fn *fn, void *arg);
static _Atomic unsigned failing_scan; /* the first from now on is 1; 0: none */

/* Once the store is open, only the scrub walks over all objects. */
static enum osd_status scan_or_fail(struct osd_kv *kv, struct osd_kv_txn *txn,
				    enum osd_kv_table table, struct osd_bytes from,
				    size_t prefix_length, osd_kv_scan_fn *fn, void *arg)
{
	if (table == OSD_KV_OBJECTS && prefix_length == 0 && atomic_load(&failing_scan) &&
	    atomic_fetch_sub(&failing_scan, 1) == 1)
		return OSD_E_MEDIUM;
	return scan_through(kv, txn, table, from, prefix_length, fn, arg);
}

static enum osd_status wrap(const struct osd_test_stores *wanted, char message[256],
			    struct osd_opened_stores *stores)
{
	(void)wanted;
	(void)message;
	stores->faults = NULL;
	operations = *stores->kv->ops;
	scan_through = operations.scan;
	operations.scan = scan_or_fail;
	stores->kv->ops = &operations;
	return OSD_OK;
}

static void ready(const struct osd_test_stores *wanted, struct osd_fault_plan *faults)
{
	(void)wanted;
	(void)faults;
}

/* Writes past the store. */
static void damage(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_object *object;
	struct osd_share share;
	char path[32];
	int fd;

	OK(osd_object_get(objects, id, &object));
	OK(osd_object_share(object, &share));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", share.head_fd);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, "X", 1, 0) == 1);
	close(fd);
	close(share.head_fd);
	close(share.version_fd);
	osd_object_unshare(object);
	osd_object_put(object);
}

/* Starts the scrub, and waits for the end of the pass. */
static struct osd_sums_stats scrub(struct osd_objects *objects, enum osd_scrub_state expected,
				   uint64_t visited)
{
	struct osd_sums_stats stats;

	osd_scrub_tell(objects, true);
	do {
		usleep(1000);
		osd_sums_stats(objects, &stats);
	} while (stats.pass.ended_ms == 0 || stats.pass.state == OSD_SCRUB_RUNNING ||
		 stats.pass.objects != visited);
	CHECK_EQ(stats.pass.state, expected);
	return stats;
}

int main(void)
{
	static const struct osd_stand_ins stand_ins = {.wrap = wrap, .ready = ready};
	const struct osd_sums_config sums = {.use = OSD_SUMS_ON};
	struct osd_object_id id = {PID, 0};
	struct test_store store;
	uint64_t pid;

	osd_stand_ins = &stand_ins;
	test_store_init(&store, true);
	store.config.sums = &sums;
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	for (uint64_t i = 0; i < OBJECTS; i++) {
		OK(test_create(store.objects, PID, FIRST + i, &id.object_id));
		OK(test_write(store.objects, id, 0, "data", 4));
	}
	damage(store.objects, id);
	damage(store.objects, (struct osd_object_id){PID, FIRST});
	CHECK_EQ(scrub(store.objects, OSD_SCRUB_IDLE, OBJECTS).damaged_now, 2);
	/* It has met the first one again, and not the other. */
	atomic_store(&failing_scan, 2);
	CHECK_EQ(scrub(store.objects, OSD_SCRUB_STOPPED, 16).damaged_now, 2);
	/* It continues at the same place. */
	CHECK_EQ(scrub(store.objects, OSD_SCRUB_IDLE, OBJECTS).damaged_now, 2);
	test_store_release(&store);
	return 0;
}
