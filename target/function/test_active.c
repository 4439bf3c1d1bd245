/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_active.c -- threads activate, replace and deactivate at once: memory has what the store has. */
#include "function/function.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "function/impl.h"
#include "object/test_support.h"

#define PARTITION 0x11
#define PAGE	  0x20000006u
#define STATE	  1
#define ALIAS	  6
#define REPLACERS 3
#define ROUNDS	  40

static const uint8_t alias[] = {'f'};
static struct test_store stored;
static struct osd_objects *objects;
static struct osd_functions *functions;
static struct osd_object_id ids[REPLACERS];
static atomic_bool over;

static struct osd_object_id store(uint8_t code)
{
	struct osd_object_id id = {PARTITION, 0};
	struct osd_object *object;
	struct osd_txn *txn;

	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_user_object_create(txn, PARTITION, 0, 1, &id.object_id) == OSD_OK);
	CHECK(osd_attr_set(txn, id, PAGE, ALIAS, alias, sizeof(alias)) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	CHECK(osd_object_get(objects, id, &object) == OSD_OK);
	CHECK(osd_object_write(object, 0, &code, 1, 0) == OSD_OK);
	osd_object_put(object);
	return id;
}

static void fill_store(void)
{
	char message[256];
	struct osd_txn *txn;
	uint64_t made;

	test_store_init(&stored, true);
	test_store_open(&stored);
	objects = stored.objects;
	CHECK(osd_functions_open(objects, NULL, message, &functions) == OSD_OK);
	CHECK(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	CHECK(osd_partition_create(txn, PARTITION, &made) == OSD_OK);
	CHECK(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	for (size_t i = 0; i < REPLACERS; i++)
		ids[i] = store((uint8_t)i);
	CHECK(osd_function_activate(functions, ids[0], NULL, NULL, NULL) == OSD_OK);
}

static bool stored_as_active(struct osd_object_id id)
{
	struct osd_txn *txn;
	uint8_t state = 0;
	size_t length;

	CHECK(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn) == OSD_OK);
	CHECK(osd_attr_get(txn, id, PAGE, STATE, &state, sizeof(state), &length) == OSD_OK);
	osd_txn_abort(txn);
	return state == 1;
}

static enum osd_status activate(struct osd_object_id id)
{
	struct osd_function replaced;
	enum osd_status status = osd_function_replaced(functions, id, &replaced);

	return status == OSD_OK ? osd_function_activate(functions, id, &replaced, NULL, NULL)
				: status;
}

static void *replace(void *arg)
{
	const struct osd_object_id *id = arg;

	for (int i = 0; i < ROUNDS; i++) {
		enum osd_status status = activate(*id);

		CHECK(status == OSD_OK || status == OSD_E_BUSY);
	}
	return NULL;
}

static void *replace_or_end(void *arg)
{
	const struct osd_object_id *id = arg;

	for (int i = 0; i < ROUNDS; i++) {
		enum osd_status status =
			i % 2 ? osd_function_deactivate(functions, *id) : activate(*id);

		CHECK(status == OSD_OK || status == OSD_E_BUSY);
	}
	return NULL;
}

static void *end(void *arg)
{
	const struct osd_object_id *id = arg;

	for (int i = 0; i < ROUNDS; i++)
		CHECK(osd_function_deactivate(functions, *id) == OSD_OK);
	return NULL;
}

static void *look(void *arg)
{
	const struct osd_function_name name = {PARTITION, 0, alias, sizeof(alias)};
	struct osd_function function;

	(void)arg;
	while (!atomic_load(&over))
		CHECK(osd_function_find(functions, &name, &function) == OSD_OK);
	return NULL;
}

static void run(void *(*work[REPLACERS])(void *), void *(*beside)(void *))
{
	pthread_t threads[REPLACERS], other;

	atomic_store(&over, false);
	if (beside)
		CHECK(pthread_create(&other, NULL, beside, NULL) == 0);
	for (size_t i = 0; i < REPLACERS; i++)
		CHECK(pthread_create(&threads[i], NULL, work[i], &ids[i]) == 0);
	for (size_t i = 0; i < REPLACERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	atomic_store(&over, true);
	if (beside)
		CHECK(pthread_join(other, NULL) == 0);
	for (size_t i = 0; i < REPLACERS; i++)
		CHECK(osd_function_is_active(functions, ids[i]) == stored_as_active(ids[i]));
}

/* An alias that is replaced names a function at every moment. */
static void test_replaced_by_many(void)
{
	run((void *(*[REPLACERS])(void *)){replace, replace, replace}, look);
}

static void test_replaced_and_ended(void)
{
	run((void *(*[REPLACERS])(void *)){replace_or_end, replace_or_end, end}, NULL);
	for (int i = 0; i < 2; i++)
		run((void *(*[REPLACERS])(void *)){replace, replace_or_end, replace_or_end}, NULL);
}

static enum osd_status reserve(const struct osd_function *function)
{
	struct osd_object_id replaced;
	enum osd_status status = osd_function_reserve(functions, function, NULL, &replaced);

	if (status == OSD_OK)
		osd_function_drop(functions, function, true);
	return status;
}

/* One partition does not have all places, and goes on to replace its functions. */
static void test_many_of_a_partition(void)
{
	struct osd_function function = {.id = {PARTITION, OSD_FIRST_ID}};

	osd_functions_forget(functions);
	for (; function.id.object_id < OSD_FIRST_ID + OSD_FUNCTIONS_MAX / 2;
	     function.id.object_id++)
		CHECK(osd_function_found(functions, &function));
	CHECK_EQ(reserve(&function), OSD_E_QUOTA);
	function.id.object_id--;
	CHECK_EQ(reserve(&function), OSD_OK);
	function.id.partition_id++;
	CHECK_EQ(reserve(&function), OSD_OK);
	osd_functions_forget(functions);
}

/* A call that has found a function just before its partition was removed. */
static void test_partition_removed(void)
{
	const struct osd_function_name name = {PARTITION, ids[0].object_id, NULL, 0};
	struct osd_function_code *code;
	struct osd_function function;

	CHECK(activate(ids[0]) == OSD_OK);
	CHECK(osd_function_find(functions, &name, &function) == OSD_OK);
	CHECK(test_remove_partition(objects, PARTITION) == OSD_OK);
	CHECK(osd_function_code(functions, &function, &code) == OSD_E_NO_FUNCTION);
	CHECK(osd_function_find(functions, &name, &function) == OSD_E_NO_FUNCTION);
}

int main(void)
{
	osd_log_init(STDERR_FILENO, "iosd", OSD_LOG_WARNING);
	fill_store();
	test_replaced_by_many();
	test_replaced_and_ended();
	test_many_of_a_partition();
	test_partition_removed();
	osd_functions_close(functions);
	test_store_release(&stored);
	return 0;
}
