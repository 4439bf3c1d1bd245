/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_record.c -- records and keys against bytes typed by hand from docs/format.md; what must be
 * refused; range locks. */
#include <pthread.h>
#include <sched.h>

#include "base/lock.h"
#include "base/test.h"
#include "object/range_lock.h"
#include "object/record.h"

static const uint8_t golden_record[OSD_RECORD_BYTES] = {
	0x01, 0x80, 0x00, 0x01, 0x00, 0x03, 0x00, 0x00,				/* 0 */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, /* 8: times */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, /* 20 */
	0x01, 0x93, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00,				/* 32 */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00,				/* 40: length */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00,				/* 48: reserved */
	0x00, 0x00, 0x00, 0x00, 0x00, 0x20, 0x00, 0x00,				/* 56: head */
	0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x07,				/* 64: generation */
	0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x09,				/* 72: spare */
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,				/* 80: quota */
	0x00, 0x00, 0x00, 0x0c, 0x0a, 0x0b, 0x0c, 0x0d,				/* 88: count, tag */
	0x18, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x00, 0x00, 0x00, 0x11, /* 96: version */
};

static const struct osd_record record = {
	.type = 0x80,
	.head_on = 1,
	.flags = OSD_REC_LENGTH_RULES | OSD_REC_HAS_FILES,
	.times = {1, 2, 3, 4, UINT64_C(0x019300000005)},
	.length = 4096,
	.reserved_bytes = 1 << 20,
	.head_bytes = 2 << 20,
	.generation = UINT64_C(0x200000007),
	.spare_generation = UINT64_C(0x100000009),
	.max_length = UINT64_MAX,
	.attribute_count = 12,
	.policy_tag = 0x0a0b0c0d,
	.attribute_units = OSD_UNITS_UNKNOWN,
	.version = {UINT64_C(0x1802030405060708), 0x11},
};

static void test_object_record(void)
{
	uint8_t bytes[OSD_RECORD_BYTES];
	struct osd_record back;

	osd_record_encode(&record, bytes);
	CHECK_BYTES(bytes, sizeof(bytes), golden_record, sizeof(golden_record));
	CHECK_EQ(osd_record_decode(golden_record, sizeof(golden_record), &back), OSD_OK);
	CHECK_EQ(back.length, record.length);
	CHECK_EQ(back.times[OSD_T_DATA_MODIFIED], record.times[OSD_T_DATA_MODIFIED]);
	CHECK_EQ(back.attribute_count, 12);
	CHECK_EQ(back.policy_tag, 0x0a0b0c0d);
	CHECK_EQ(back.version.counter, record.version.counter);
	CHECK_EQ(back.version.opening, 0x11);
	for (size_t length = 0; length < sizeof(bytes); length++)
		CHECK_EQ(osd_record_decode(bytes, length, &back),
			 length == OSD_RECORD_BYTES_FIRST ? OSD_OK : OSD_E_MEDIUM);
	CHECK_EQ(osd_record_decode(bytes, OSD_RECORD_BYTES_FIRST, &back), OSD_OK);
	CHECK_EQ(back.version.counter, 0);
	CHECK_EQ(back.version.opening, 0);
	bytes[0] = 2;
	CHECK_EQ(osd_record_decode(bytes, sizeof(bytes), &back), OSD_E_MEDIUM);
	bytes[0] = 1;
	bytes[4] = 0x80;
	CHECK_EQ(osd_record_decode(bytes, sizeof(bytes), &back), OSD_E_MEDIUM);
}

/* Two halves of what is one more than the units: releases that did not count wrote zeros there. */
static void test_attribute_units(void)
{
	struct osd_record counted = record, back;
	uint8_t bytes[OSD_RECORD_BYTES];

	CHECK_EQ(osd_record_decode(golden_record, sizeof(golden_record), &back), OSD_OK);
	CHECK_EQ(back.attribute_units, OSD_UNITS_UNKNOWN);
	counted.attribute_units = 0x01020303;
	osd_record_encode(&counted, bytes);
	CHECK_BYTES(bytes + 6, 2, "\1\2", 2);
	CHECK_BYTES(bytes + 38, 2, "\3\4", 2);
	CHECK_EQ(osd_record_decode(bytes, sizeof(bytes), &back), OSD_OK);
	CHECK_EQ(back.attribute_units, 0x01020303);
	counted.attribute_count = counted.attribute_units = 0;
	osd_record_encode(&counted, bytes);
	CHECK_BYTES(bytes + 38, 2, "\0\0", 2);
	CHECK_EQ(osd_record_decode(bytes, sizeof(bytes), &back), OSD_OK);
	CHECK_EQ(back.attribute_units, 0);
}

static void test_root_record(void)
{
	struct osd_root_record root = {.epoch = 3,
				       .next_incarnation = 9,
				       .next_partition_id = 0x10005,
				       .capacity = 77,
				       .isolation = 2},
			       back;
	uint8_t bytes[OSD_ROOT_RECORD_BYTES];

	root.common.quotas = (struct osd_quotas){1, 2, 3, 4, 5};
	root.common.user_tag = 0x01020304;
	osd_root_record_encode(&root, bytes);
	CHECK_BYTES(bytes + 76, 8, "\1\2\3\4\0\0\0\0", 8);
	CHECK_BYTES(bytes + 108, 4, "\2\0\0\0", 4);
	CHECK_BYTES(bytes + 64, 12, "\0\0\0\x04\0\0\0\0\0\0\0\x05", 12);
	CHECK_BYTES(bytes + 84, 8, "\0\0\0\x03\0\0\0\x09", 8);
	CHECK_BYTES(bytes + 92, 8, "\0\0\0\0\0\x01\0\x05", 8);
	CHECK_EQ(osd_root_record_decode(bytes, sizeof(bytes), &back), OSD_OK);
	CHECK_EQ(back.common.quotas.collections, 4);
	CHECK_EQ(back.capacity, 77);
	CHECK_EQ(osd_root_record_decode(bytes, sizeof(bytes) - 1, &back), OSD_E_MEDIUM);
}

static void test_keys(void)
{
	struct osd_place place = {0x10000, 2, 0x10001};
	struct osd_key key = osd_key_attribute(&place, 0x30000001, 9);

	CHECK_BYTES(key.bytes, key.length,
		    "\0\0\0\0\0\x01\0\0\0\0\0\x02\0\0\0\0\0\x01\0\x01\x30\0\0\x01\0\0\0\x09", 28);
	key = osd_key_partition(1, 0x10000);
	CHECK_BYTES(key.bytes, key.length, "\0\0\0\x01\0\0\0\0\0\x01\0\0", 12);
	key = osd_key_files(OSD_META_DEAD_FILES, &place, 5);
	CHECK_EQ(key.length, 29);
	CHECK_EQ(key.bytes[0], 'D');
}

static void test_range_lock(void)
{
	struct osd_lock mutex = OSD_LOCK_INITIALIZER(OSD_RANK_OBJECT);
	struct osd_range_lock lock;
	struct osd_range a, b, c, d;

	osd_range_lock_init(&lock, &mutex);
	CHECK(osd_range_try(&lock, &a, 0, 100, false));
	CHECK(osd_range_try(&lock, &b, 50, 150, false));
	CHECK(!osd_range_try(&lock, &c, 99, 100, true));
	CHECK(osd_range_try(&lock, &c, 150, UINT64_MAX, true));
	CHECK(!osd_range_try(&lock, &d, 200, 201, false));
	CHECK(osd_range_try(&lock, &d, 150, 150, true)); /* nothing to lock */
	osd_range_drop(&lock, &b);
	osd_range_drop(&lock, &d);
	CHECK(osd_range_try(&lock, &b, 100, 150, true));
	osd_range_drop(&lock, &c);
	osd_range_drop(&lock, &a);
	osd_range_drop(&lock, &b);
	CHECK(osd_range_try(&lock, &a, 0, UINT64_MAX, true));
	osd_range_drop(&lock, &a);
	osd_range_lock_release(&lock);
}

#define WAITERS 4

struct queue {
	struct osd_lock mutex;
	struct osd_range_lock lock;
	unsigned next, order[WAITERS]; /* who had the lock, under mutex */
};

struct waiter {
	struct queue *queue;
	unsigned number;
	pthread_t thread;
};

static void *wait_and_note(void *arg)
{
	struct waiter *waiter = arg;
	struct queue *queue = waiter->queue;
	struct osd_range range;

	osd_lock(&queue->mutex);
	osd_range_acquire(&queue->lock, &range, 0, 100, true);
	queue->order[queue->next++] = waiter->number;
	osd_range_drop(&queue->lock, &range);
	osd_unlock(&queue->mutex);
	return NULL;
}

static unsigned count_waiting(struct queue *queue)
{
	unsigned count = 0;

	osd_lock(&queue->mutex);
	for (const struct osd_range *range = queue->lock.first; range; range = range->next)
		count += range->turn != NULL;
	osd_unlock(&queue->mutex);
	return count;
}

/* Whose turn it is wakes up, one after the other, and nobody is forgotten. */
static void test_turns(void)
{
	struct queue queue = {.mutex = OSD_LOCK_INITIALIZER(OSD_RANK_OBJECT)};
	struct waiter waiters[WAITERS];
	struct osd_range held, last, apart;

	osd_range_lock_init(&queue.lock, &queue.mutex);
	CHECK(osd_range_try(&queue.lock, &held, 0, 50, false));
	for (unsigned i = 0; i < WAITERS; i++) {
		waiters[i] = (struct waiter){.queue = &queue, .number = i};
		CHECK(pthread_create(&waiters[i].thread, NULL, wait_and_note, &waiters[i]) == 0);
		while (count_waiting(&queue) <= i)
			sched_yield();
	}
	osd_lock(&queue.mutex);
	CHECK(!osd_range_try(&queue.lock, &last, 99, 100, false));
	CHECK(osd_range_try(&queue.lock, &apart, 100, 200, true));
	CHECK_EQ(queue.next, 0);
	osd_range_drop(&queue.lock, &held);
	osd_unlock(&queue.mutex);
	for (unsigned i = 0; i < WAITERS; i++) {
		pthread_join(waiters[i].thread, NULL);
		CHECK_EQ(queue.order[i], i);
	}
	osd_range_drop(&queue.lock, &apart);
	osd_range_lock_release(&queue.lock);
}

int main(void)
{
	test_turns();
	test_object_record();
	test_attribute_units();
	test_root_record();
	test_keys();
	test_range_lock();
	return 0;
}
