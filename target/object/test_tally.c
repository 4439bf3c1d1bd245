/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_tally.c -- numbers of objects, collections and members, and what a listing says is left:
 * against a plain model, from every first id and page by page, after aborts and restarts, and after
 * threads that change members while others count them. */
#include <pthread.h>
#include <stdatomic.h>

#include "object/test_support.h"
#include "object/tracking.h"

#define OBJECTS	    60u
#define COLLECTIONS 4u
#define STEPS	    TEST_ROUNDS(400u)
#define JOINS	    2000u
#define GROWTH	    400u
#define TRACKING    (OSD_PAGE_COLLECTION_BASE + 4)
#define MEMBERS	    0x10
#define PROCESSED   0x11

struct model {
	uint64_t pid, seed;
	bool exists[OBJECTS], collection[COLLECTIONS], member[COLLECTIONS][OBJECTS];
};

static uint64_t random_number(uint64_t *seed, uint64_t below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (*seed >> 11) % below;
}

static uint64_t object_id(unsigned i)
{
	return OSD_FIRST_ID + 10 + 3 * i;
}

static struct osd_object_id collection_id(const struct model *model, unsigned c)
{
	return (struct osd_object_id){model->pid, OSD_FIRST_ID + 1000 + c};
}

/* ---- lists ------------------------------------------------------------------------------- */

static void check_list(struct osd_objects *objects, struct model *model,
		       struct osd_list_request list, const uint64_t *wanted, size_t wanted_count)
{
	size_t capacity = random_number(&model->seed, 12), at = 0;
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	struct osd_list_result result;
	uint64_t ids[16];

	list.initial_id = random_number(&model->seed, 2) ? 0
			  : wanted_count ? wanted[random_number(&model->seed, wanted_count)]
					 : 5;
	while (at < wanted_count && wanted[at] < list.initial_id)
		at++;
	do {
		OK(osd_list(txn, &list, ids, capacity, &result));
		CHECK_EQ(result.total_count, wanted_count - at);
		CHECK_EQ(result.count, OSD_MIN(capacity, wanted_count - at));
		for (size_t i = 0; i < result.count; i++)
			CHECK_EQ(ids[i], wanted[at++]);
		CHECK_EQ(result.next_id, at < wanted_count ? wanted[at] : 0);
		list.initial_id = result.next_id;
	} while (result.next_id && capacity);
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
}

static void check_all(struct osd_objects *objects, struct model *model)
{
	struct osd_list_request list = {OSD_LIST_USER_OBJECTS, {model->pid, 0}, 0};
	uint64_t wanted[OBJECTS];
	size_t count = 0;

	for (unsigned i = 0; i < OBJECTS; i++)
		if (model->exists[i])
			wanted[count++] = object_id(i);
	check_list(objects, model, list, wanted, count);
	list = (struct osd_list_request){OSD_LIST_MEMBERS, {model->pid, OSD_OBJECTS_COLLECTION}, 0};
	check_list(objects, model, list, wanted, count);
	CHECK_EQ(test_get_number(objects, list.in, TRACKING, MEMBERS), count);
	for (unsigned c = 0; c < COLLECTIONS; c++) {
		if (!model->collection[c])
			continue;
		count = 0;
		for (unsigned i = 0; i < OBJECTS; i++)
			if (model->member[c][i])
				wanted[count++] = object_id(i);
		list.in = collection_id(model, c);
		if (random_number(&model->seed, 2))
			CHECK_EQ(test_get_number(objects, list.in, TRACKING, MEMBERS), count);
		check_list(objects, model, list, wanted, count);
		CHECK_EQ(test_get_number(objects, list.in, TRACKING, MEMBERS), count);
	}
	count = 0;
	for (unsigned c = 0; c < COLLECTIONS; c++)
		if (model->collection[c])
			wanted[count++] = collection_id(model, c).object_id;
	list = (struct osd_list_request){OSD_LIST_COLLECTIONS, {model->pid, 0}, 0};
	check_list(objects, model, list, wanted, count);
}

/* ---- changes ----------------------------------------------------------------------------- */

static void change_object(struct osd_txn *txn, struct model *model, unsigned i)
{
	struct osd_object_id id = {model->pid, object_id(i)};
	uint64_t made;

	if (model->exists[i])
		OK(osd_user_object_remove(txn, id));
	else
		OK(osd_user_object_create(txn, model->pid, id.object_id, 1, &made));
	model->exists[i] = !model->exists[i];
	for (unsigned c = 0; c < COLLECTIONS; c++)
		model->member[c][i] = false;
}

static void change_collection(struct osd_txn *txn, struct model *model, unsigned c)
{
	struct osd_object_id id = collection_id(model, c);
	uint64_t made;

	if (model->collection[c])
		OK(osd_collection_remove(txn, id, true));
	else
		OK(osd_collection_create(txn, model->pid, id.object_id, OSD_COLLECTION_TRACKING,
					 &made));
	model->collection[c] = !model->collection[c];
	memset(model->member[c], 0, sizeof(model->member[c]));
}

static void change_member(struct osd_txn *txn, struct model *model, unsigned c, unsigned i)
{
	struct osd_object_id to = collection_id(model, c);

	if (!model->collection[c] || !model->exists[i])
		return;
	if (model->member[c][i])
		OK(osd_collection_drop(txn, to, object_id(i)));
	else
		OK(osd_collection_add(txn, to, object_id(i)));
	model->member[c][i] = !model->member[c][i];
}

/* A few changes in one transaction, committed or not. */
static void change(struct osd_objects *objects, struct model *model)
{
	struct osd_txn *txn = test_begin(objects, 0);
	struct model before = *model;

	for (uint64_t n = 1 + random_number(&model->seed, 5); n > 0; n--) {
		unsigned i = (unsigned)random_number(&model->seed, OBJECTS);
		unsigned c = (unsigned)random_number(&model->seed, COLLECTIONS);

		switch (random_number(&model->seed, 12)) {
		case 0:
			change_collection(txn, model, c);
			break;
		case 1:
		case 2:
		case 3:
			change_object(txn, model, i);
			break;
		default:
			change_member(txn, model, c, i);
			break;
		}
	}
	if (random_number(&model->seed, 5)) {
		OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
		return;
	}
	before.seed = model->seed;
	*model = before;
	osd_txn_abort(txn);
}

/* A transaction sees its own. */
static void test_own_changes(struct osd_objects *objects)
{
	struct osd_object_id collection = {0, 0};
	struct osd_txn *txn;
	uint64_t first, pid;
	uint8_t bytes[8];
	size_t length;

	OK(test_partition(objects, 0, &pid));
	collection.partition_id = pid;
	txn = test_begin(objects, 0);
	OK(test_end(txn, osd_collection_create(txn, pid, 0, OSD_COLLECTION_TRACKING,
					       &collection.object_id)));
	CHECK_EQ(test_get_number(objects, collection, TRACKING, MEMBERS), 0);
	txn = test_begin(objects, 0);
	OK(osd_user_object_create(txn, pid, 0, 3, &first));
	for (unsigned i = 0; i < 3; i++)
		OK(osd_collection_add(txn, collection, first + i));
	OK(osd_collection_add(txn, collection, first)); /* is one already */
	OK(osd_collection_drop(txn, collection, first + 1));
	OK(osd_attr_get(txn, collection, TRACKING, MEMBERS, bytes, 8, &length));
	CHECK_EQ(osd_get_be(bytes, 8), 2);
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	CHECK_EQ(test_get_number(objects, collection, TRACKING, MEMBERS), 2);
}

/* Far in the middle nobody counts to the end. */
static void test_middle(struct osd_objects *objects)
{
	struct osd_list_request list = {OSD_LIST_USER_OBJECTS, {0, 0}, 0};
	struct osd_list_result result;
	struct osd_txn *txn;
	uint64_t first, ids[4];

	OK(test_partition(objects, 0, &list.in.partition_id));
	for (unsigned i = 0; i < 5; i++) {
		txn = test_begin(objects, 0);
		OK(test_end(txn,
			    osd_user_object_create(txn, list.in.partition_id, 0, 4096, &first)));
	}
	txn = test_begin(objects, OSD_TXN_READ_ONLY);
	list.initial_id = OSD_FIRST_ID + 3;
	OK(osd_list(txn, &list, ids, 4, &result));
	CHECK_EQ(result.total_count, UINT64_MAX);
	list.initial_id = OSD_FIRST_ID + 5 * 4096 - 50;
	OK(osd_list(txn, &list, ids, 4, &result));
	CHECK_EQ(result.total_count, 50);
	list.initial_id = 0;
	OK(osd_list(txn, &list, ids, 3, &result));
	CHECK_EQ(result.total_count, 5 * 4096);
	list.initial_id = OSD_FIRST_ID + 3; /* now a page has ended there */
	OK(osd_list(txn, &list, ids, 4, &result));
	CHECK_EQ(result.total_count, 5 * 4096 - 3);
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
}

/* ---- threads ----------------------------------------------------------------------------- */

struct joiner {
	pthread_t thread;
	struct osd_objects *objects;
	struct osd_object_id collection;
	unsigned which;
};

/* Each has objects of its own; in the end every second one is a member. */
static void *run_joiner(void *arg)
{
	const struct joiner *joiner = arg;

	for (unsigned n = 0; n < JOINS; n++) {
		uint64_t id = object_id(2 * (n % (OBJECTS / 2)) + joiner->which);
		bool join = n / (OBJECTS / 2) % 2 == 0;
		enum osd_status status;

		do {
			struct osd_txn *txn = test_begin(joiner->objects, 0);

			status = test_end(txn,
					  join ? osd_collection_add(txn, joiner->collection, id)
					       : osd_collection_drop(txn, joiner->collection, id));
		} while (status == OSD_E_CONFLICT);
		OK(status);
	}
	return NULL;
}

static void test_threads(struct osd_objects *objects)
{
	struct osd_list_request list = {.kind = OSD_LIST_MEMBERS};
	struct joiner joiners[2];
	struct osd_list_result result;
	struct osd_txn *txn;
	uint64_t pid, id, ids[OBJECTS];

	OK(test_partition(objects, 0, &pid));
	for (unsigned i = 0; i < OBJECTS; i++)
		OK(test_create(objects, pid, object_id(i), &id));
	txn = test_begin(objects, 0);
	OK(test_end(txn, osd_collection_create(txn, pid, 0, OSD_COLLECTION_TRACKING, &id)));
	list.in = (struct osd_object_id){pid, id};
	for (unsigned i = 0; i < 2; i++) {
		joiners[i] = (struct joiner){.objects = objects, .collection = list.in, .which = i};
		CHECK(pthread_create(&joiners[i].thread, NULL, run_joiner, &joiners[i]) == 0);
	}
	for (unsigned i = 0; i < 500; i++) {
		uint8_t bytes[8];
		size_t length;

		txn = test_begin(objects, OSD_TXN_READ_ONLY);
		if (osd_attr_get(txn, list.in, TRACKING, MEMBERS, bytes, 8, &length) == OSD_OK)
			CHECK(osd_get_be(bytes, 8) <= OBJECTS);
		osd_txn_abort(txn);
	}
	for (unsigned i = 0; i < 2; i++)
		pthread_join(joiners[i].thread, NULL);
	txn = test_begin(objects, OSD_TXN_READ_ONLY);
	OK(test_end(txn, osd_list(txn, &list, ids, OBJECTS, &result)));
	CHECK_EQ(test_get_number(objects, list.in, TRACKING, MEMBERS), result.count);
}

struct grower {
	pthread_t thread;
	struct osd_objects *objects;
	struct osd_object_id collection;
	_Atomic bool ends;
};

/* Each step makes an object, joins it and says on the page that it was processed. */
static enum osd_status grow(struct grower *grower, uint64_t step)
{
	struct osd_tracking tracking = {.active = 1, .processed = step};
	struct osd_txn *txn = test_begin(grower->objects, 0);
	uint64_t id;
	enum osd_status status =
		osd_user_object_create(txn, grower->collection.partition_id, 0, 1, &id);

	if (status == OSD_OK)
		status = osd_collection_add(txn, grower->collection, id);
	if (status == OSD_OK)
		status = osd_tracking_put(txn, grower->collection, &tracking);
	return test_end(txn, status);
}

static void *run_grower(void *arg)
{
	struct grower *grower = arg;

	for (uint64_t step = 1; step <= GROWTH; step++) {
		enum osd_status status;

		do
			status = grow(grower, step);
		while (status == OSD_E_CONFLICT);
		OK(status);
	}
	atomic_store(&grower->ends, true);
	return NULL;
}

/* Both numbers as one transaction reads them. */
static void check_page(struct osd_objects *objects, struct osd_object_id collection)
{
	uint8_t members[8], processed[8];
	enum osd_status status;
	struct osd_txn *txn;
	size_t length;

	do {
		txn = test_begin(objects, OSD_TXN_READ_ONLY);
		status = osd_attr_get(txn, collection, TRACKING, PROCESSED, processed, 8, &length);
		if (status == OSD_OK && length == 0)
			memset(processed, 0, sizeof(processed));
		if (status == OSD_OK)
			status = osd_attr_get(txn, collection, TRACKING, MEMBERS, members, 8,
					      &length);
		osd_txn_abort(txn);
	} while (status == OSD_E_CONFLICT);
	OK(status);
	CHECK_EQ(osd_get_be(members, 8), osd_get_be(processed, 8));
}

static uint64_t list_length(struct osd_objects *objects, struct osd_object_id collection)
{
	struct osd_list_request list = {OSD_LIST_MEMBERS, collection, 0};
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	struct osd_list_result result;
	uint64_t ids[GROWTH];

	OK(test_end(txn, osd_list(txn, &list, ids, GROWTH, &result)));
	CHECK_EQ(result.count, result.total_count);
	return result.count;
}

/* What only grows was as long before it was counted, or shorter, and is no shorter after. */
static void check_count(struct osd_objects *objects, struct osd_object_id collection)
{
	uint64_t before = list_length(objects, collection);
	uint64_t count = test_get_number(objects, collection, TRACKING, MEMBERS);

	CHECK(before <= count);
	CHECK(count <= list_length(objects, collection));
}

/* A thread that sees a change sees it counted, on the page and beside the lists. */
static void test_race(struct osd_objects *objects)
{
	struct grower grower = {.objects = objects};
	struct osd_object_id all;
	struct osd_txn *txn;
	uint64_t pid, id;

	OK(test_partition(objects, 0, &pid));
	txn = test_begin(objects, 0);
	OK(test_end(txn, osd_collection_create(txn, pid, 0, OSD_COLLECTION_TRACKING, &id)));
	grower.collection = (struct osd_object_id){pid, id};
	all = (struct osd_object_id){pid, OSD_OBJECTS_COLLECTION};
	CHECK(pthread_create(&grower.thread, NULL, run_grower, &grower) == 0);
	while (!atomic_load(&grower.ends)) {
		check_page(objects, grower.collection);
		check_count(objects, grower.collection);
		check_count(objects, all);
	}
	pthread_join(grower.thread, NULL);
	check_page(objects, grower.collection);
	CHECK_EQ(list_length(objects, grower.collection), GROWTH);
}

static void test(bool on_disk, uint64_t seed)
{
	struct model model = {.seed = seed};
	struct test_store store;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	test_own_changes(store.objects);
	test_threads(store.objects);
	test_race(store.objects);
	if (!on_disk)
		test_middle(store.objects);
	OK(test_partition(store.objects, 0, &model.pid));
	for (unsigned i = 0; i < STEPS; i++) {
		change(store.objects, &model);
		check_all(store.objects, &model);
		if (on_disk && i == STEPS / 2)
			test_store_reopen(&store);
	}
	test_store_release(&store);
}

int main(void)
{
	uint64_t seed = test_seed();

	test(false, seed);
	test(true, seed);
	return 0;
}
