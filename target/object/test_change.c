/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_change.c -- changes of many pieces are seen as a whole or not at all; what is refused has
 * changed nothing; a structure check finds wrong counters. */
#include <pthread.h>

#include "object/draft.h"
#include "object/internal.h"
#include "object/test_support.h"

#define HEAD   (UINT64_C(2) << 20)
#define PIECES 6
#define PIECE  50000u
#define ROUNDS 60

/* Two before the border of head and tail, one across it, three behind. */
static const uint64_t offsets[PIECES] = {
	0, HEAD - 3 * PIECE, HEAD - PIECE / 2, HEAD + PIECE, HEAD + 4 * PIECE, HEAD + 9 * PIECE};

struct racers {
	struct osd_object *object;
	struct osd_piece pieces[PIECES];
	_Atomic bool stop;
};

static void *write_pieces(void *arg)
{
	struct racers *racers = arg;
	uint8_t *data = malloc(PIECES * PIECE);

	CHECK(data);
	for (int round = 0; round < ROUNDS; round++) {
		struct osd_change change = {.kind = OSD_CHANGE_WRITE,
					    .pieces = racers->pieces,
					    .piece_count = PIECES,
					    .data = data};

		memset(data, round % 250, PIECES * PIECE);
		OK(osd_object_change(racers->object, &change));
	}
	free(data);
	atomic_store(&racers->stop, true);
	return NULL;
}

static void *read_pieces(void *arg)
{
	struct racers *racers = arg;
	uint8_t *data = malloc(PIECES * PIECE);

	CHECK(data);
	while (!atomic_load(&racers->stop)) {
		uint64_t available;

		OK(osd_object_read_pieces(racers->object, racers->pieces, PIECES, data,
					  PIECES * PIECE, 0, NULL, &available));
		CHECK_EQ(available, PIECES * PIECE);
		for (size_t i = 1; i < PIECES * PIECE; i++)
			CHECK_EQ(data[i], data[0]);
	}
	free(data);
	return NULL;
}

/* Over both devices, with pieces in any order. */
static void test_whole(void)
{
	char heads[] = "/tmp/iosd-test-XXXXXX";
	pthread_t writers[2], reader;
	struct racers racers = {0};
	struct test_store store;
	uint64_t pid, id;

	test_store_init(&store, true);
	CHECK(mkdtemp(heads) != NULL);
	store.config.ssd_directory = heads;
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	OK(test_create(store.objects, pid, 0, &id));
	OK(osd_object_get(store.objects, (struct osd_object_id){pid, id}, &racers.object));
	OK(osd_object_truncate(racers.object, HEAD + 10 * PIECE, 0));
	for (size_t i = 0; i < PIECES; i++)
		racers.pieces[i] = (struct osd_piece){offsets[(i * 5) % PIECES], PIECE};
	CHECK(pthread_create(&writers[0], NULL, write_pieces, &racers) == 0);
	CHECK(pthread_create(&writers[1], NULL, write_pieces, &racers) == 0);
	CHECK(pthread_create(&reader, NULL, read_pieces, &racers) == 0);
	pthread_join(writers[0], NULL);
	pthread_join(writers[1], NULL);
	pthread_join(reader, NULL);
	osd_object_put(racers.object);
	test_store_release(&store);
	test_folder_remove(heads);
}

/* ---- with records ------------------------------------------------------------------------ */

struct refuser {
	struct osd_object_id id;
	enum osd_status answer;
	int calls;
};

static enum osd_status refuse(void *arg, struct osd_txn *txn, bool done)
{
	struct refuser *refuser = arg;

	refuser->calls++;
	if (done)
		return OSD_OK;
	OK(osd_attr_set(txn, refuser->id, 0x10001, 1, (const uint8_t *)"new", 3));
	return refuser->calls == 1 ? refuser->answer : OSD_OK;
}

static void test_refused(bool on_disk)
{
	struct osd_change changes[] = {
		{.kind = OSD_CHANGE_APPEND, .data = "more", .length = 4},
		{.kind = OSD_CHANGE_CLEAR, .offset = 2, .length = 3000000},
		{.kind = OSD_CHANGE_PUNCH, .offset = 2, .length = 3},
		{.kind = OSD_CHANGE_PUNCH, .offset = 2, .length = 300},
		{.kind = OSD_CHANGE_REPLACE, .data = "other", .length = 5},
		{.kind = OSD_CHANGE_REPLACE, .data = "longer than before", .length = 18},
		{.kind = OSD_CHANGE_REPLACE, .data = "", .length = 0},
	};
	static const uint64_t lengths[] = {14, 3000002, 7, 2, 5, 18, 0};
	struct test_store store;
	struct osd_object *object;
	uint8_t bytes[16];
	uint64_t pid, id, length;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	for (size_t i = 0; i < OSD_ARRAY_SIZE(changes); i++) {
		struct refuser refuser = {.answer = OSD_E_PARAM_FIELD};
		struct osd_change_with with = {0, refuse, &refuser};

		OK(test_create(store.objects, pid, 0, &id));
		refuser.id = (struct osd_object_id){pid, id};
		OK(test_write(store.objects, refuser.id, 0, "0123456789", 10));
		OK(osd_object_get(store.objects, refuser.id, &object));
		CHECK_EQ(osd_object_change_with(object, &changes[i], &with), OSD_E_PARAM_FIELD);
		CHECK_EQ(refuser.calls, 1);
		CHECK_EQ(test_read(store.objects, refuser.id, 0, bytes, sizeof(bytes)), 10);
		CHECK_BYTES(bytes, 10, "0123456789", 10);
		CHECK_EQ(test_get(store.objects, refuser.id, 0x10001, 1, bytes, sizeof(bytes)), 0);
		/* A deadlock victim is repeated, and its data changes once. */
		refuser = (struct refuser){.id = refuser.id, .answer = OSD_E_CONFLICT};
		OK(osd_object_change_with(object, &changes[i], &with));
		CHECK_EQ(refuser.calls, 3);
		OK(osd_object_length(object, &length));
		CHECK_EQ(length, lengths[i]);
		OK(osd_object_flush(object));
		CHECK_EQ(test_get(store.objects, refuser.id, 0x10001, 1, bytes, sizeof(bytes)), 3);
		osd_object_put(object);
	}
	CHECK_EQ(test_get_number(store.objects, (struct osd_object_id){pid, 0}, 0x30000001,
				 OSD_INFO_USED_CAPACITY),
		 14 + 3000002 + 7 + 2 + 5 + 18);
	test_store_release(&store);
}

/* ---- drafts ------------------------------------------------------------------------------ */

/* What is dropped leaves neither files nor charges, also when the store is not closed in order. */
static void test_dropped_draft(void)
{
	struct osd_objects_stats stats;
	struct osd_piece piece = {0, 5};
	struct osd_draft *draft;
	struct test_store store;
	uint64_t pid, length;

	test_store_init(&store, true);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	OK(osd_draft_begin(store.objects, pid, 0, &draft));
	OK(osd_draft_write(draft, &piece, 1, "hello", &length));
	CHECK_EQ(length, 5);
	osd_draft_free(draft);
	CHECK_EQ(osd_draft_begin(store.objects, pid, 1, &draft), OSD_E_EXISTS);
	CHECK_EQ(osd_draft_begin(store.objects, pid + 1, 0, &draft), OSD_E_NO_PARTITION);
	osd_objects_stats(store.objects, &stats);
	CHECK_EQ(stats.used_bytes, 0);
	CHECK_EQ(stats.object_count, 0);
	test_store_release(&store);
}

/* What is charged to a partition that went meanwhile would never be given back. */
static void test_draft_in_removed_partition(void)
{
	struct osd_objects_stats stats;
	struct osd_piece piece = {0, 5};
	struct osd_draft *early, *late;
	struct osd_object *gone;
	struct test_store store;
	uint64_t pid, id, length;

	test_store_init(&store, false);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	OK(test_create(store.objects, pid, 0, &id));
	OK(osd_object_get(store.objects, (struct osd_object_id){pid, id}, &gone));
	OK(test_remove(store.objects, (struct osd_object_id){pid, id}));
	OK(osd_draft_begin(store.objects, pid, 0, &early));
	OK(osd_draft_begin(store.objects, pid, 0, &late));
	OK(osd_draft_write(early, &piece, 1, "hello", &length));
	OK(test_remove_partition(store.objects, pid));
	CHECK_EQ(osd_draft_write(late, &piece, 1, "hello", &length), OSD_E_NO_PARTITION);
	CHECK_EQ(osd_draft_copy(late, gone, OSD_COPY_ANY, NULL, NULL, &length), OSD_E_NO_OBJECT);
	osd_object_put(gone);
	osd_draft_free(late);
	osd_draft_free(early);
	osd_objects_stats(store.objects, &stats);
	CHECK_EQ(stats.used_bytes, 0);
	CHECK_EQ(stats.object_count, 0);
	test_store_release(&store);
}

/* ---- structure check --------------------------------------------------------------------- */

static void test_counters(void)
{
	struct osd_check_result result;
	struct osd_partition *partition;
	struct test_store store;
	uint64_t pid, id;

	test_store_init(&store, false);
	test_store_open(&store);
	OK(test_partition(store.objects, 0, &pid));
	OK(test_create(store.objects, pid, 0, &id));
	OK(test_write(store.objects, (struct osd_object_id){pid, id}, 0, "0123456789", 10));
	OK(osd_objects_check(store.objects, pid, NULL, NULL, &result));
	CHECK_EQ(result.containers + result.objects, 0);
	OK(osd_partition_get(store.objects, NULL, pid, &partition));
	atomic_fetch_add(&partition->data.used_bytes, 1);
	OK(osd_objects_check(store.objects, 0, NULL, NULL, &result));
	CHECK_EQ(result.containers, 1);
	CHECK_EQ(result.objects, 0);
	CHECK_EQ(test_get_number(store.objects, (struct osd_object_id){pid, 0}, 0x30000006,
				 OSD_DAMAGE_SUMMARY),
		 OSD_DAMAGED_ATTRIBUTES);
	atomic_fetch_sub(&partition->data.used_bytes, 1);
	OK(osd_objects_check(store.objects, 0, NULL, NULL, &result));
	CHECK_EQ(result.containers, 0);
	CHECK_EQ(test_get_number(store.objects, (struct osd_object_id){pid, 0}, 0x30000006,
				 OSD_DAMAGE_SUMMARY),
		 0);
	osd_partition_put(partition);
	test_store_release(&store);
}

int main(void)
{
	test_whole();
	test_refused(false);
	test_refused(true);
	test_dropped_draft();
	test_draft_in_removed_partition();
	test_counters();
	return 0;
}
