/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_wanted_version.c -- a change or a READ of a wanted version: it fails if the data have another one, so that no
 * change of others is lost. */
#include <pthread.h>

#include "object/test_version.h"

static void test_wanted(struct test_store *store)
{
	struct osd_data_version version, other;
	struct osd_piece piece = {0, 3}, empty = {0, 0};
	struct osd_change change = {.kind = OSD_CHANGE_WRITE,
				    .pieces = &piece,
				    .piece_count = 1,
				    .data = "new",
				    .wanted = &other};
	struct osd_version_check check = {.wanted = &other};
	const uint8_t zero[8] = {0};
	struct osd_object *object;
	struct osd_txn *txn;
	uint8_t data[8];
	uint64_t oid;
	size_t got;

	OK(test_create(store->objects, PID, 0, &oid));
	do_write(store->objects, oid);
	object = get(store->objects, oid);
	version = version_of(store->objects, oid);
	other = (struct osd_data_version){version.counter, version.opening + 1};
	CHECK_EQ(osd_object_change(object, &change), OSD_E_VERSION);
	change.pieces = &empty;
	CHECK_EQ(osd_object_change(object, &change), OSD_E_VERSION);
	change.pieces = &piece;
	CHECK_EQ(osd_object_read_with(object, 0, data, 5, 0, &check, &got), OSD_E_VERSION);
	CHECK(same(version, version_of(store->objects, oid)));
	other = version;
	OK(osd_object_read_with(object, 0, data, 5, 0, &check, &got));
	CHECK(same(check.found, version));
	CHECK_BYTES(data, 5, "write", 5);
	txn = test_begin(store->objects, 0);
	OK(osd_attr_set(txn, (struct osd_object_id){PID, oid}, OSD_REL_INFORMATION,
			OSD_INFO_LOGICAL_LENGTH, zero, sizeof(zero)));
	CHECK_EQ(osd_object_change(object, &change), OSD_E_VERSION); /* it is about to be cut */
	osd_txn_abort(txn);
	OK(osd_object_change(object, &change));
	CHECK(same(change.version, version_of(store->objects, oid)));
	CHECK_EQ(osd_object_change(object, &change), OSD_E_VERSION);
	osd_object_put(object);
}

#define ADDERS 4
#define ADDS   200

/* Adds to a number in the object, if nobody has since it was read. */
static void *add(void *arg)
{
	struct osd_object *object = arg;

	for (int done = 0; done < ADDS;) {
		struct osd_version_check check = {.wanted = NULL};
		uint64_t number = 0;
		struct osd_piece piece = {0, sizeof(number)};
		struct osd_change change = {.kind = OSD_CHANGE_WRITE,
					    .pieces = &piece,
					    .piece_count = 1,
					    .data = &number,
					    .wanted = &check.found};
		enum osd_status status;
		size_t got;

		OK(osd_object_read_with(object, 0, &number, sizeof(number), 0, &check, &got));
		number++;
		status = osd_object_change(object, &change);
		CHECK(status == OSD_OK || status == OSD_E_VERSION);
		done += status == OSD_OK;
	}
	return NULL;
}

static void test_no_lost_update(struct test_store *store)
{
	struct osd_object *object;
	pthread_t threads[ADDERS];
	uint64_t oid, number = 0;
	size_t got;

	OK(test_create(store->objects, PID, 0, &oid));
	object = get(store->objects, oid);
	for (size_t i = 0; i < ADDERS; i++)
		CHECK(pthread_create(&threads[i], NULL, add, object) == 0);
	for (size_t i = 0; i < ADDERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	OK(osd_object_read(object, 0, &number, sizeof(number), 0, &got));
	CHECK_EQ(number, ADDERS * ADDS);
	osd_object_put(object);
}

int main(void)
{
	static test_fn *const tests[] = {test_wanted, test_no_lost_update};

	test_both_stores(PID, tests, OSD_ARRAY_SIZE(tests));
	return 0;
}
