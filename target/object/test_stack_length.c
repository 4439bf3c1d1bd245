/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_stack_length.c -- a transaction computes the length of an object's data once, until it changes something. */
#include "object/stack.h"
#include "object/test_support.h"
#include "wire/osd2.h"

static unsigned computed;

/* A new one each time. */
static enum osd_status length(void *arg, struct osd_txn *txn, struct osd_object_id of,
			      uint64_t stored, uint64_t *ret_length, bool *ret_known)
{
	(void)arg;
	(void)txn;
	(void)of;
	(void)stored;
	*ret_length = ++computed;
	*ret_known = true;
	return OSD_OK;
}

static void check(struct osd_txn *txn, struct osd_object_id id, uint64_t wanted)
{
	uint8_t value[8];
	size_t got;

	for (int i = 0; i < 2; i++) {
		OK(osd_attr_get(txn, id, OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH, value,
				sizeof(value), &got));
		CHECK_EQ(got, 8);
		CHECK_EQ(osd_get_be(value, 8), wanted);
	}
}

int main(void)
{
	const struct osd_stack_ops ops = {.length = length};
	struct osd_object_id first = {0, 0}, second, partition;
	struct test_store store;
	struct osd_txn *txn;

	test_store_init(&store, false);
	test_store_open(&store);
	osd_objects_set_stack_ops(store.objects, &ops);
	OK(test_partition(store.objects, 0, &first.partition_id));
	second = partition = first;
	OK(test_create(store.objects, first.partition_id, 0, &first.object_id));
	OK(test_create(store.objects, first.partition_id, 0, &second.object_id));
	txn = test_begin(store.objects, 0);
	OK(osd_stack_put(txn, first, 1, (const uint8_t *)"x", 1));
	OK(osd_stack_put(txn, second, 1, (const uint8_t *)"x", 1));
	OK(test_end(txn, OSD_OK));

	txn = test_begin(store.objects, 0);
	check(txn, first, 1);
	check(txn, second, 2);
	OK(osd_stack_put(txn, second, 2, (const uint8_t *)"x", 1));
	check(txn, second, 3);
	OK(osd_stack_put(txn, partition, 1, (const uint8_t *)"x", 1));
	check(txn, second, 4);
	OK(test_end(txn, OSD_OK));
	txn = test_begin(store.objects, OSD_TXN_READ_ONLY);
	check(txn, second, 5);
	OK(test_end(txn, OSD_OK));
	test_store_release(&store);
	return 0;
}
