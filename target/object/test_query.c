/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_query.c -- what osd_query answers, against a plain model: random values of all lengths, also
 * beyond what an index keeps and full of 00h and FFh; random ranges; every kind of collection. */
#include "object/query.h"
#include "object/test_support.h"
#include "object/value_index.h"

#define OBJECTS	   120
#define NUMBERS	   3
#define VALUE_MAX  140
#define PAGE	   0x10001u
#define PLAIN_PAGE 0x10002u
#define QUERIES	   TEST_ROUNDS(300)
#define MANY	   1000
#define FIRST	   OSD_FIRST_ID
#define IDS_MAX	   (OBJECTS + 8)

struct value {
	uint8_t bytes[VALUE_MAX];
	size_t length; /* 0: none */
};

struct model {
	uint64_t pid, collection, seed;
	bool exists[OBJECTS], member[OBJECTS];
	struct value values[OBJECTS][NUMBERS];
};

static uint64_t random_number(struct model *model, uint64_t below)
{
	model->seed ^= model->seed << 13;
	model->seed ^= model->seed >> 7;
	model->seed ^= model->seed << 17;
	return (model->seed >> 11) % below;
}

/* Few different bytes and lengths about the index's 64, so that beginnings are often the same. */
static void random_value(struct model *model, struct value *value)
{
	static const uint8_t alphabet[] = {0x00, 0x01, 0x02, 0xff, 'a'};
	static const size_t lengths[] = {1, 2, 3, 62, 63, 64, 65, 66, 70, VALUE_MAX};
	uint8_t filler = alphabet[random_number(model, 2) * 3];
	size_t random_from;

	value->length = lengths[random_number(model, OSD_ARRAY_SIZE(lengths))];
	random_from = value->length > 4 ? value->length - random_number(model, 5) : 0;
	for (size_t i = 0; i < value->length; i++)
		value->bytes[i] =
			i < random_from ? filler : alphabet[random_number(model, sizeof(alphabet))];
}

static struct osd_object_id object_of(const struct model *model, unsigned i)
{
	return (struct osd_object_id){model->pid, FIRST + i};
}

/* ---- the model --------------------------------------------------------------------------- */

static int compare(const struct value *a, const struct value *b)
{
	int order = memcmp(a->bytes, b->bytes, OSD_MIN(a->length, b->length));

	return order ? order : (a->length > b->length) - (a->length < b->length);
}

struct random_query {
	struct value min[3], max[3];
	struct osd_criterion criteria[3];
	struct osd_query query;
};

static bool model_matches(const struct model *model, const struct random_query *random, unsigned i)
{
	const struct osd_query *query = &random->query;
	bool matches = query->match_all || query->count == 0;

	for (size_t c = 0; c < query->count; c++) {
		const struct value *value = &model->values[i][query->criteria[c].number - 1];
		bool fits = value->length > 0 &&
			    (!random->min[c].length || compare(value, &random->min[c]) >= 0) &&
			    (!random->max[c].length || compare(value, &random->max[c]) <= 0);

		matches = query->match_all ? matches && fits : matches || fits;
	}
	return matches;
}

static void random_query(struct model *model, struct random_query *random)
{
	struct osd_query *query = &random->query;

	*query = (struct osd_query){
		.collection = {model->pid, random_number(model, 3) ? OSD_OBJECTS_COLLECTION
								   : model->collection},
		.match_all = random_number(model, 2),
		.criteria = random->criteria,
		.count = random_number(model, 8) ? 1 + random_number(model, 3) : 0,
		.initial_id = random_number(model, 2) ? 0 : FIRST + random_number(model, OBJECTS)};
	for (size_t c = 0; c < query->count; c++) {
		struct value *min = &random->min[c], *max = &random->max[c];

		random_value(model, min);
		random_value(model, max);
		switch (random_number(model, 6)) {
		case 0:
			min->length = 0;
			break;
		case 1:
			max->length = 0;
			break;
		case 2: /* one that some object has */
			*min = model->values[random_number(model, OBJECTS)][0];
			*max = *min;
			break;
		default:
			break;
		}
		random->criteria[c] =
			(struct osd_criterion){PAGE,	    1 + (uint32_t)random_number(model, 3),
					       min->bytes,  max->bytes,
					       min->length, max->length};
	}
}

static void check_query(struct osd_objects *objects, const struct model *model,
			const struct random_query *random, size_t capacity)
{
	const struct osd_query *query = &random->query;
	bool whole = query->collection.object_id == OSD_OBJECTS_COLLECTION;
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	struct osd_list_result result;
	uint64_t ids[IDS_MAX], total = 0, next = 0;

	OK(osd_query(txn, query, ids, capacity, &result));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (!model->exists[i] || !(whole || model->member[i]) ||
		    FIRST + i < query->initial_id || !model_matches(model, random, i))
			continue;
		if (total < capacity)
			CHECK_EQ(ids[total], FIRST + i);
		else if (next == 0)
			next = FIRST + i;
		total++;
	}
	CHECK_EQ(result.total_count, total);
	CHECK_EQ(result.count, OSD_MIN(total, capacity));
	CHECK_EQ(result.next_id, next);
}

/* The same by steps that find room for two. */
static void check_steps(struct osd_objects *objects, const struct osd_query *query)
{
	struct osd_query_walk *walk = NULL;
	struct osd_list_result result;
	uint64_t whole[IDS_MAX];
	size_t at = 0;
	bool done = false;
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);

	OK(osd_query(txn, query, whole, IDS_MAX, &result));
	OK(osd_query_begin(txn, query, &walk));
	osd_txn_abort(txn);
	while (!done) {
		uint64_t ids[2];
		size_t count;

		txn = test_begin(objects, OSD_TXN_READ_ONLY);
		OK(osd_query_step(txn, walk, ids, 2, &count, &done));
		OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
		CHECK(osd_query_percent(walk) <= 100);
		for (size_t i = 0; i < count; i++)
			CHECK_EQ(ids[i], whole[at++]);
	}
	CHECK_EQ(at, result.count);
	CHECK_EQ(osd_query_percent(walk), 100);
	osd_query_end(walk);
}

/* The same in calls that look at few members each. */
static void check_bounded(struct osd_objects *objects, struct osd_query query)
{
	struct osd_list_result result, piece;
	uint64_t whole[IDS_MAX], ids[IDS_MAX];
	size_t at = 0;
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);

	OK(osd_query(txn, &query, whole, IDS_MAX, &result));
	query.look_max = 7;
	do {
		OK(osd_query(txn, &query, ids, IDS_MAX, &piece));
		for (size_t i = 0; i < piece.count; i++)
			CHECK_EQ(ids[i], whole[at++]);
		query.initial_id = piece.next_id;
	} while (piece.next_id);
	CHECK_EQ(at, result.count);
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
}

/* Told to stop, it stops. */
static void check_stop(struct osd_objects *objects, const struct model *model)
{
	struct osd_query query = {.collection = {model->pid, OSD_OBJECTS_COLLECTION}};
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	struct osd_list_result result;
	bool stop = true;

	osd_txn_watch(txn, &stop);
	CHECK_EQ(test_end(txn, osd_query(txn, &query, NULL, 0, &result)), OSD_E_TASK_ABORTED);
}

/* ---- changes ----------------------------------------------------------------------------- */

static void set_value(struct osd_objects *objects, struct model *model, unsigned i, unsigned n)
{
	struct value *value = &model->values[i][n];

	if (random_number(model, 5) == 0)
		value->length = 0;
	else
		random_value(model, value);
	OK(test_set(objects, object_of(model, i), PAGE, n + 1, value->bytes, value->length));
	OK(test_set(objects, object_of(model, i), PLAIN_PAGE, n + 1, "plain", 5));
}

static void create_one(struct osd_objects *objects, struct model *model, unsigned i)
{
	uint64_t id;

	OK(test_create(objects, model->pid, FIRST + i, &id));
	model->exists[i] = true;
	model->member[i] = false;
	memset(model->values[i], 0, sizeof(model->values[i]));
}

static void change(struct osd_objects *objects, struct model *model)
{
	unsigned i = (unsigned)random_number(model, OBJECTS);

	if (!model->exists[i]) {
		create_one(objects, model, i);
	} else if (random_number(model, 10) == 0) {
		OK(test_remove(objects, object_of(model, i)));
		model->exists[i] = false;
	} else if (random_number(model, 5) == 0) {
		struct osd_object_id to = {model->pid, model->collection};
		struct osd_txn *txn = test_begin(objects, 0);

		OK(test_end(txn, model->member[i] ? osd_collection_drop(txn, to, FIRST + i)
						  : osd_collection_add(txn, to, FIRST + i)));
		model->member[i] = !model->member[i];
	} else {
		set_value(objects, model, i, (unsigned)random_number(model, NUMBERS));
	}
}

static void check_all(struct osd_objects *objects, struct model *model, unsigned queries)
{
	for (unsigned i = 0; i < queries; i++) {
		struct random_query random;

		change(objects, model);
		random_query(model, &random);
		check_query(objects, model, &random,
			    random_number(model, 2) ? IDS_MAX : random_number(model, 9));
		if (i % 16 == 0)
			check_steps(objects, &random.query);
		if (i % 16 == 8)
			check_bounded(objects, random.query);
	}
}

static void make_model(struct osd_objects *objects, struct model *model, uint64_t seed)
{
	struct osd_txn *txn;

	memset(model, 0, sizeof(*model));
	model->seed = seed;
	OK(test_partition(objects, 0, &model->pid));
	txn = test_begin(objects, 0);
	OK(test_end(txn, osd_collection_create(txn, model->pid, FIRST + OBJECTS,
					       OSD_COLLECTION_TRACKING, &model->collection)));
	for (unsigned i = 0; i < OBJECTS; i++) {
		create_one(objects, model, i);
		for (unsigned n = 0; n < NUMBERS; n++)
			set_value(objects, model, i, n);
	}
}

/* ---- with an index ----------------------------------------------------------------------- */

/* Criteria of which only one is indexed. */
static void test_plans(struct osd_objects *objects, struct model *model)
{
	struct osd_criterion criteria[2] = {
		{PAGE, 1, (const uint8_t *)"\xff", NULL, 1, 0},
		{1, OSD_INFO_LOGICAL_LENGTH, (const uint8_t *)"\0\0\0\0\0\0\0\1", NULL, 8, 0}};
	struct osd_query query = {.collection = {model->pid, OSD_OBJECTS_COLLECTION},
				  .criteria = criteria,
				  .count = 2};
	uint64_t with_length = 0, high = 0, both = 0;
	struct osd_list_result result;
	struct osd_txn *txn;

	for (unsigned i = 0; i < OBJECTS; i++) {
		const struct value *value = &model->values[i][0];
		bool is_long = i % 3 == 0, is_high = value->length && value->bytes[0] == 0xff;

		if (!model->exists[i])
			continue;
		OK(test_set_number(objects, object_of(model, i), 1, OSD_INFO_LOGICAL_LENGTH,
				   is_long, 8));
		with_length += is_long;
		high += is_high;
		both += is_long && is_high;
	}
	query.match_all = true;
	txn = test_begin(objects, OSD_TXN_READ_ONLY);
	OK(osd_query(txn, &query, NULL, 0, &result));
	CHECK_EQ(result.total_count, both);
	query.match_all = false;
	OK(osd_query(txn, &query, NULL, 0, &result));
	CHECK_EQ(result.total_count, with_length + high - both);
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
}

/* Of ranges that overlap a search keeps each id about once. */
static void test_overlapping(struct osd_objects *objects, const struct model *model)
{
	static struct osd_criterion criteria[MANY];
	struct osd_object_id all = {model->pid, OSD_OBJECTS_COLLECTION};
	struct osd_query query = {.collection = all, .criteria = criteria, .count = MANY};
	struct osd_candidates candidates = {{NULL, 0, 0}, {NULL, 0, 0}};
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	bool found;

	for (size_t i = 0; i < MANY; i++)
		criteria[i] = (struct osd_criterion){.page = PAGE, .number = 1};
	OK(osd_txn_take(txn, all, false));
	OK(osd_index_search(txn, &query, &txn->place, OBJECTS, &candidates, &found));
	CHECK(found);
	CHECK(candidates.sure.count <= OBJECTS);
	CHECK(candidates.sure.capacity <= 4 * OBJECTS);
	osd_candidates_release(&candidates);
	osd_txn_abort(txn);
}

/* ---- what the target computes ------------------------------------------------------------ */

static uint64_t count_matches(struct osd_objects *objects, uint64_t pid, uint32_t page,
			      uint32_t number, const void *min, const void *max, size_t length)
{
	struct osd_criterion criterion = {page, number,		  min,
					  max,	min ? length : 0, max ? length : 0};
	struct osd_query query = {.collection = {pid, OSD_OBJECTS_COLLECTION},
				  .match_all = true,
				  .criteria = &criterion,
				  .count = 1};
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	struct osd_list_result result = {0};

	OK(test_end(txn, osd_query(txn, &query, NULL, 0, &result)));
	return result.total_count;
}

static void test_computed(struct osd_objects *objects)
{
	struct osd_object_id id = {0};
	uint8_t low[8], high[8];
	uint64_t other;

	OK(test_partition(objects, 0, &id.partition_id));
	OK(test_create(objects, id.partition_id, 0, &id.object_id));
	OK(test_create(objects, id.partition_id, 0, &other));
	OK(test_write(objects, id, 0, "twelve bytes", 12));
	osd_put_be(low, 1, 8);
	osd_put_be(high, 12, 8);
	CHECK_EQ(count_matches(objects, id.partition_id, 1, OSD_INFO_LOGICAL_LENGTH, low, high, 8),
		 1);
	CHECK_EQ(count_matches(objects, id.partition_id, 1, OSD_INFO_LOGICAL_LENGTH, high, NULL, 8),
		 1);
	OK(test_set(objects, id, 1, OSD_INFO_USERNAME, "bond", 4));
	CHECK_EQ(count_matches(objects, id.partition_id, 1, OSD_INFO_USERNAME, "bond", "bond", 4),
		 1);
	CHECK_EQ(count_matches(objects, id.partition_id, 1, OSD_INFO_USERNAME, "bone", NULL, 4), 0);
	memset(low, 0, 8);
	CHECK_EQ(count_matches(objects, id.partition_id, 3, OSD_TIME_CREATED, low, NULL, 6), 2);
	/* A page nobody has. */
	CHECK_EQ(count_matches(objects, id.partition_id, 0x100, 1, low, NULL, 6), 0);
}

/* ---- refusals ---------------------------------------------------------------------------- */

static enum osd_status ask(struct osd_objects *objects, struct osd_object_id collection,
			   uint32_t page, uint32_t number)
{
	struct osd_criterion criterion = {page, number, NULL, NULL, 0, 0};
	struct osd_query query = {.collection = collection,
				  .match_all = true,
				  .criteria = &criterion,
				  .count = 1};
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	struct osd_list_result result;

	return test_end(txn, osd_query(txn, &query, NULL, 0, &result));
}

static void test_refusals(struct osd_objects *objects)
{
	struct osd_object_id all = {0, OSD_OBJECTS_COLLECTION}, id;

	OK(test_partition(objects, 0, &all.partition_id));
	id.partition_id = all.partition_id;
	OK(test_create(objects, all.partition_id, 0, &id.object_id));
	OK(ask(objects, all, OSD_PAGE_PARTITION_BASE - 1, 1));
	CHECK_EQ(ask(objects, all, OSD_PAGE_PARTITION_BASE, 1), OSD_E_CDB_FIELD);
	CHECK_EQ(ask(objects, all, PAGE, OSD_NUMBER_ALL), OSD_E_CDB_FIELD);
	CHECK_EQ(ask(objects, id, PAGE, 1), OSD_E_NO_OBJECT);
	id.object_id = 0x7777777;
	CHECK_EQ(ask(objects, id, PAGE, 1), OSD_E_NO_OBJECT);
	id.partition_id = 0x7777777;
	CHECK_EQ(ask(objects, id, PAGE, 1), OSD_E_NO_PARTITION);
	id.partition_id = 0;
	CHECK_EQ(ask(objects, id, PAGE, 1), OSD_E_NO_PARTITION);
}

/* ---- the collection of all user objects -------------------------------------------------- */

static void test_objects_collection(struct osd_objects *objects)
{
	struct osd_object_id all = {0, OSD_OBJECTS_COLLECTION}, object;
	struct osd_list_request list = {OSD_LIST_MEMBERS, {0, 0}, 0};
	struct osd_list_result result;
	struct osd_object_facts facts;
	struct osd_txn *txn;
	uint64_t ids[4], other;
	bool has;

	CHECK_EQ(osd_objects_facts(objects, (struct osd_object_id){0x5555555, all.object_id}, false,
				   &facts),
		 OSD_E_NO_PARTITION);
	OK(test_partition(objects, 0, &all.partition_id));
	object.partition_id = all.partition_id;
	OK(test_create(objects, all.partition_id, 0, &object.object_id));
	txn = test_begin(objects, 0);
	OK(test_end(txn, osd_collection_create(txn, all.partition_id, 0, OSD_COLLECTION_LINKED,
					       &other)));
	OK(osd_objects_facts(objects, all, false, &facts));
	CHECK_EQ(facts.type, OSD_COLLECTION);
	list.in = all;
	txn = test_begin(objects, OSD_TXN_READ_ONLY);
	OK(osd_list(txn, &list, ids, 4, &result));
	CHECK_EQ(result.total_count, 1);
	CHECK_EQ(ids[0], object.object_id);
	OK(osd_collection_has(txn, all, object.object_id, &has));
	CHECK(has);
	OK(osd_collection_has(txn, all, other, &has));
	CHECK(!has);
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	txn = test_begin(objects, OSD_TXN_INTERNAL);
	CHECK_EQ(osd_collection_add(txn, all, object.object_id), OSD_E_CDB_FIELD);
	CHECK_EQ(osd_collection_drop(txn, all, object.object_id), OSD_E_CDB_FIELD);
	CHECK_EQ(osd_collection_remove(txn, all, true), OSD_E_CDB_FIELD);
	CHECK_EQ(osd_collection_create(txn, all.partition_id, all.object_id,
				       OSD_COLLECTION_TRACKING, &other),
		 OSD_E_EXISTS);
	osd_txn_abort(txn);
	CHECK_EQ(test_set(objects, all, OSD_PAGE_COLLECTION_BASE + 1, OSD_INFO_USERNAME, "x", 1),
		 OSD_E_PARAM_FIELD);
	CHECK_EQ(test_get_number(objects, all, OSD_PAGE_COLLECTION_BASE + 1, OSD_INFO_OBJECT_ID),
		 OSD_OBJECTS_COLLECTION);
	CHECK_EQ(test_get_number(objects, all, OSD_PAGE_COLLECTION_BASE + 4, 0x10), 1);
	CHECK_EQ(test_get_number(objects, all, OSD_PAGE_COLLECTION_BASE + 1, 0xa),
		 OSD_COLLECTION_SPONTANEOUS);
	OK(test_remove(objects, object));
	CHECK_EQ(test_get_number(objects, all, OSD_PAGE_COLLECTION_BASE + 4, 0x10), 0);
}

static void test(bool on_disk, uint64_t seed)
{
	static struct model model;
	struct test_store store;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	test_refusals(store.objects);
	test_computed(store.objects);
	test_objects_collection(store.objects);
	make_model(store.objects, &model, seed);
	check_all(store.objects, &model, QUERIES);
	check_stop(store.objects, &model);
	/* The same answers while an index is built, once it is there, with one of two pages, ... */
	OK(test_declare(store.objects, model.pid, PAGE));
	check_all(store.objects, &model, QUERIES / 10);
	test_index_wait(store.objects, model.pid, PAGE);
	check_all(store.objects, &model, QUERIES);
	check_stop(store.objects, &model);
	test_plans(store.objects, &model);
	test_overlapping(store.objects, &model);
	if (on_disk) {
		test_store_reopen(&store);
		check_all(store.objects, &model, QUERIES / 10);
	}
	/* ... while it goes, when it is gone, and when it comes back before it was gone. */
	OK(test_drop(store.objects, model.pid, PAGE));
	check_all(store.objects, &model, QUERIES / 10);
	OK(test_declare(store.objects, model.pid, PAGE));
	check_all(store.objects, &model, QUERIES / 10);
	test_index_wait(store.objects, model.pid, PAGE);
	check_all(store.objects, &model, QUERIES / 10);
	test_store_release(&store);
}

int main(void)
{
	uint64_t seed = test_seed();

	test(false, seed);
	test(true, seed);
	return 0;
}
