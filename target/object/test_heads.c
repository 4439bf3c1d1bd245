/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_heads.c -- where heads go and what moves them: head sizes, policies, water marks, the drain;
 * against everything else that happens to objects meanwhile. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "object/draft.h"
#include "object/internal.h"
#include "object/test_heads.h"

#define HEAD 4096u

static uint8_t data[3 * HEAD + 100], back[sizeof(data)];

static struct osd_object_id make(struct osd_objects *objects)
{
	struct osd_object_id id = {MODEL_PID, 0};

	OK(test_create(objects, MODEL_PID, 0, &id.object_id));
	return id;
}

static struct osd_object_id make_with(struct osd_objects *objects, size_t length)
{
	struct osd_object_id id = make(objects);

	OK(test_write(objects, id, 0, data, length));
	return id;
}

static void check_data(struct osd_objects *objects, struct osd_object_id id, size_t length)
{
	CHECK_EQ(test_read(objects, id, 0, back, sizeof(back)), length);
	CHECK_BYTES(back, length, data, length);
}

static enum osd_status set_size(struct osd_objects *objects, struct osd_object_id id, uint64_t size)
{
	return test_set_number(objects, id, OSD_PAGE_HEAD, HEAD_SIZE, size, 8);
}

/* ---- head sizes ------------------------------------------------------------------------------ */

static void test_size_of_one(struct osd_objects *objects)
{
	struct osd_object_id id = make(objects);

	CHECK_EQ(head_get(objects, id, HEAD_SIZE), HEAD);
	CHECK_EQ(head_get(objects, id, HEAD_ON), ON_NONE);
	OK(set_size(objects, id, 100));
	CHECK_EQ(set_size(objects, id, (UINT64_C(1) << 40) + 1), OSD_E_PARAM_FIELD);
	CHECK_EQ(test_set_number(objects, id, OSD_PAGE_HEAD, HEAD_ON, 1, 1), OSD_E_PARAM_FIELD);
	OK(test_write(objects, id, 0, data, 1000));
	CHECK_EQ(set_size(objects, id, 200), OSD_E_PARAM_FIELD);
	CHECK_EQ(head_get(objects, id, HEAD_SIZE), 100);
	CHECK_EQ(head_get(objects, id, HEAD_ON), ON_SSD);
	CHECK_EQ(head_get(objects, id, HEAD_SSD_BYTES), 100);
	CHECK_EQ(head_get(objects, id, HEAD_HDD_BYTES), 900);
	check_data(objects, id, 1000);
	OK(test_remove(objects, id));
}

/* Head size 0: one file, on the HDD. */
static void test_size_zero(struct heads_store *store)
{
	struct osd_objects *objects = store->store.objects;
	struct osd_object_id id = make(objects);

	/* Those of the object before this one go some time after it. */
	HEADS_WAIT(heads_files_in(store->ssd) + heads_files_in(store->store.directory) == 0);
	OK(set_size(objects, id, 0));
	OK(test_write(objects, id, 0, data, 1000));
	CHECK_EQ(head_get(objects, id, HEAD_SIZE), 0);
	CHECK_EQ(head_get(objects, id, HEAD_ON), ON_HDD);
	CHECK_EQ(head_get(objects, id, HEAD_SSD_BYTES), 0);
	CHECK_EQ(head_get(objects, id, HEAD_HDD_BYTES), 1000);
	CHECK_EQ(heads_files_in(store->ssd), 0);
	CHECK_EQ(heads_files_in(store->store.directory), 1);
	check_data(objects, id, 1000);
	OK(test_remove(objects, id));
}

/* Both in the transaction that makes the object, before and after its length. */
static void test_size_at_create(struct osd_objects *objects)
{
	struct osd_object_id id = {MODEL_PID, 0};
	struct osd_txn *txn = test_begin(objects, 0);
	uint8_t value[8];

	OK(osd_user_object_create(txn, MODEL_PID, 0, 1, &id.object_id));
	osd_put_be(value, 50, 8);
	OK(osd_attr_set(txn, id, OSD_PAGE_HEAD, HEAD_SIZE, value, 8));
	osd_put_be(value, 200, 8);
	OK(osd_attr_set(txn, id, OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH, value, 8));
	osd_put_be(value, 60, 8);
	CHECK_EQ(osd_attr_set(txn, id, OSD_PAGE_HEAD, HEAD_SIZE, value, 8), OSD_E_PARAM_FIELD);
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	OK(test_write(objects, id, 0, data, 200));
	CHECK_EQ(head_get(objects, id, HEAD_SSD_BYTES), 50);
	check_data(objects, id, 200);
	OK(test_remove(objects, id));
}

/* A copy has the head size of its source. */
static void test_size_of_copy(struct osd_objects *objects)
{
	struct osd_object_id from = make(objects), to = {MODEL_PID, 0};
	struct osd_object *source;
	struct osd_draft *draft;
	uint64_t length;
	struct osd_txn *txn;

	OK(set_size(objects, from, 300));
	OK(test_write(objects, from, 0, data, 1000));
	OK(osd_draft_begin(objects, MODEL_PID, 0, &draft));
	OK(osd_object_get(objects, from, &source));
	OK(osd_draft_copy(draft, source, OSD_COPY_ANY, NULL, NULL, &length));
	osd_draft_let_go(draft);
	osd_object_put(source);
	txn = test_begin(objects, 0);
	OK(osd_draft_put(txn, draft, &to.object_id));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
	osd_draft_free(draft);
	CHECK_EQ(head_get(objects, to, HEAD_SSD_BYTES), 300);
	check_data(objects, to, 1000);
	OK(test_remove(objects, from));
	OK(test_remove(objects, to));
}

static void test_sizes(void)
{
	struct heads_store store;
	struct osd_object_id old, fresh;
	uint64_t on_ssd;

	heads_init(&store, HEAD);
	test_size_of_one(store.store.objects);
	test_size_zero(&store);
	test_size_at_create(store.store.objects);
	test_size_of_copy(store.store.objects);
	CHECK_EQ(heads_get(store.store.objects, HEADS_SSD_BYTES), 0);
	/* Another default: what there is stays as it is. */
	old = make_with(store.store.objects, sizeof(data));
	store.heads.head_bytes = 1000;
	test_store_reopen(&store.store);
	fresh = make_with(store.store.objects, sizeof(data));
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(head_get(store.store.objects, old, HEAD_SSD_BYTES), HEAD);
		CHECK_EQ(head_get(store.store.objects, fresh, HEAD_SSD_BYTES), 1000);
		check_data(store.store.objects, old, sizeof(data));
		check_data(store.store.objects, fresh, sizeof(data));
		on_ssd = heads_get(store.store.objects, HEADS_SSD_BYTES);
		CHECK_EQ(on_ssd, HEAD + 1000);
		store.heads.head_bytes = OSD_HEAD_AS_FORMATTED;
		test_store_reopen(&store.store);
	}
	CHECK_EQ(heads_get(store.store.objects, HEADS_SIZE), HEAD);
	heads_release(&store);
}

static void test_one_root(void)
{
	struct osd_object_id id;
	struct test_store store;
	uint64_t pid;

	test_store_init(&store, false);
	test_store_open(&store);
	OK(test_partition(store.objects, MODEL_PID, &pid));
	id = make(store.objects);
	CHECK_EQ(set_size(store.objects, id, 100), OSD_E_PARAM_FIELD);
	CHECK_EQ(head_get(store.objects, id, HEAD_SIZE), 0);
	CHECK_EQ(test_set_number(store.objects, HEADS_ROOT, OSD_PAGE_HEADS_ROOT, HEADS_DRAIN, 1, 1),
		 OSD_E_PARAM_FIELD);
	test_store_release(&store);
}

/* ---- open files ------------------------------------------------------------------------------- */

/* A call that must not wait opens no file of the object, neither the first nor the second. */
static void test_without_waiting(void)
{
	struct osd_txn *txn;
	struct osd_object *object;
	struct osd_object_id id;
	struct heads_store store;
	uint64_t bytes;
	size_t got;

	heads_init(&store, HEAD);
	id = make_with(store.store.objects, sizeof(data));
	test_store_reopen(&store.store);
	OK(osd_object_get(store.store.objects, id, &object));
	osd_timers_stop(&store.store.objects->timers); /* upkeep locks the record, too */
	OK(osd_object_read(object, 0, back, HEAD, 0, &got));
	CHECK(atomic_load(&object->file.head) && !atomic_load(&object->file.tail));
	CHECK_EQ(osd_object_read(object, HEAD - 1, back, 2, OSD_DATA_NOWAIT, &got),
		 OSD_E_WOULD_BLOCK);
	txn = test_begin(store.store.objects, OSD_TXN_READ_ONLY | OSD_TXN_NOWAIT);
	OK(osd_txn_take(txn, id, false));
	CHECK_EQ(osd_txn_allocated(txn, &bytes), OSD_E_WOULD_BLOCK);
	osd_txn_abort(txn);
	CHECK(!atomic_load(&object->file.tail));
	osd_object_put(object);
	heads_release(&store);
}

/* ---- policies, water marks ------------------------------------------------------------------- */

static bool go_on(void *arg, uint64_t bytes)
{
	(void)arg, (void)bytes;
	return true;
}

static void test_policies(void)
{
	const struct osd_head_pace pace = {go_on, NULL};
	struct heads_store store;
	struct osd_object_id small, large;
	struct osd_objects *objects;
	struct osd_object *object;
	uint64_t bytes;

	heads_init(&store, HEAD);
	objects = store.store.objects;
	heads_set(objects, HEADS_POLICY, OSD_HEADS_SMALL_ONLY);
	small = make_with(objects, HEAD);
	large = make_with(objects, HEAD + 1);
	CHECK_EQ(head_get(objects, small, HEAD_ON), ON_SSD);
	/* The mover may see an object before its first byte is written, when it is small.  When it can move
	 * the head, the object is large. */
	OK(osd_object_get(objects, large, &object));
	CHECK_EQ(osd_head_move(object, OSD_HEAD_ON_HEAD, &pace, &bytes), OSD_E_EXISTS);
	osd_object_put(object);
	CHECK_EQ(head_get(objects, large, HEAD_ON), ON_HDD);
	/* It grows: its head leaves the SSD.  It shrinks: it comes back. */
	OK(test_write(objects, small, HEAD, data + HEAD, HEAD));
	HEADS_WAIT(head_get(objects, small, HEAD_ON) == ON_HDD);
	HEADS_WAIT(heads_files_in(store.ssd) == 0);
	HEADS_WAIT(heads_get(objects, HEADS_SSD_BYTES) == 0);
	CHECK_EQ(heads_get(objects, HEADS_HDD_BYTES), 2 * HEAD);
	check_data(objects, small, 2 * HEAD);
	OK(test_set_number(objects, small, OSD_REL_INFORMATION, OSD_INFO_LOGICAL_LENGTH, 10, 8));
	HEADS_WAIT(head_get(objects, small, HEAD_ON) == ON_SSD);
	check_data(objects, small, 10);
	/* Off: new objects only. */
	heads_set(objects, HEADS_POLICY, OSD_HEADS_OFF);
	large = make_with(objects, HEAD + 1);
	CHECK_EQ(head_get(objects, large, HEAD_SIZE), 0);
	CHECK_EQ(head_get(objects, large, HEAD_ON), ON_HDD);
	CHECK_EQ(head_get(objects, small, HEAD_ON), ON_SSD);
	large = make(objects);
	OK(set_size(objects, large, 100));
	OK(test_write(objects, large, 0, data, 1000));
	CHECK_EQ(head_get(objects, large, HEAD_SSD_BYTES), 100);
	heads_release(&store);
}

static void test_water_marks(void)
{
	struct heads_store store;
	struct osd_objects *objects;
	struct osd_object_id id;

	heads_init(&store, HEAD);
	objects = store.store.objects;
	heads_used_percent = 60;
	heads_set(objects, HEADS_LOW, 59);
	heads_set(objects, HEADS_HIGH, 59);
	id = make_with(objects, sizeof(data));
	CHECK_EQ(head_get(objects, id, HEAD_ON), ON_HDD);
	CHECK_EQ(heads_files_in(store.ssd), 0);
	check_data(objects, id, sizeof(data));
	heads_set(objects, HEADS_LOW, 61);
	HEADS_WAIT(head_get(objects, id, HEAD_ON) == ON_SSD);
	check_data(objects, id, sizeof(data));
	CHECK_EQ(head_get(objects, id, HEAD_SSD_BYTES), HEAD);
	HEADS_WAIT(heads_get(objects, HEADS_TO_SSD) == 1);
	heads_used_percent = 50;
	CHECK_EQ(test_set_number(objects, HEADS_ROOT, OSD_PAGE_HEADS_ROOT, HEADS_HIGH, 100, 1),
		 OSD_E_PARAM_FIELD);
	heads_release(&store);
}

/* ---- the drain ------------------------------------------------------------------------------- */

static void test_drain(void)
{
	struct osd_object_id ids[200];
	struct heads_store store;
	struct osd_objects *objects;
	uint64_t modified;

	heads_init(&store, HEAD);
	objects = store.store.objects;
	for (size_t i = 0; i < OSD_ARRAY_SIZE(ids); i++)
		ids[i] = make_with(objects, 1 + i * 61 % sizeof(data));
	modified = test_get_number(objects, ids[7], OSD_REL_TIMESTAMPS, 5);
	heads_set(objects, HEADS_DRAIN, 1);
	HEADS_WAIT(heads_get(objects, HEADS_TO_HDD) > 5);
	/* It goes on after a restart. */
	test_store_reopen(&store.store);
	objects = store.store.objects;
	CHECK(heads_get(objects, HEADS_DRAIN) != 0);
	HEADS_WAIT(heads_get(objects, HEADS_DRAIN) == 2);
	CHECK_EQ(heads_files_in(store.ssd), 0);
	CHECK_EQ(heads_get(objects, HEADS_SSD_BYTES), 0);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(ids); i++)
		check_data(objects, ids[i], 1 + i * 61 % sizeof(data));
	CHECK_EQ(test_get_number(objects, ids[7], OSD_REL_TIMESTAMPS, 5), modified);
	ids[0] = make_with(objects, 1);
	CHECK_EQ(head_get(objects, ids[0], HEAD_ON), ON_HDD);
	heads_set(objects, HEADS_DRAIN, 0);
	HEADS_WAIT(heads_get(objects, HEADS_HDD_BYTES) == 0);
	CHECK_EQ(heads_get(objects, HEADS_DRAIN), 0);
	for (size_t i = 1; i < OSD_ARRAY_SIZE(ids); i++)
		check_data(objects, ids[i], 1 + i * 61 % sizeof(data));
	CHECK_EQ(heads_files_in(store.ssd), OSD_ARRAY_SIZE(ids) + 1);
	heads_release(&store);
}

/* Who holds descriptors keeps the head where it is; a full device does not wait for that. */
static void test_shared(void)
{
	struct heads_store store;
	struct osd_objects *objects;
	struct osd_object *object;
	struct osd_object_id id;
	struct osd_share share;

	heads_init(&store, HEAD);
	objects = store.store.objects;
	id = make_with(objects, sizeof(data));
	OK(osd_object_get(objects, id, &object));
	OK(osd_object_share(object, &share));
	heads_set(objects, HEADS_DRAIN, 1);
	HEADS_WAIT(heads_get(objects, HEADS_PASSED_OVER) == 1);
	CHECK_EQ(heads_get(objects, HEADS_DRAIN), 1);
	CHECK_EQ(head_get(objects, id, HEAD_ON), ON_SSD);
	CHECK(pread(share.head_fd, back, 10, 0) == 10);
	CHECK_BYTES(back, 10, data, 10);
	close(share.head_fd);
	close(share.tail_fd);
	close(share.version_fd);
	osd_object_unshare(object);
	osd_object_put(object);
	HEADS_WAIT(heads_get(objects, HEADS_DRAIN) == 2);
	check_data(objects, id, sizeof(data));
	/* One contiguous range, wherever the head is. */
	OK(osd_object_get(objects, id, &object));
	OK(osd_object_share(object, &share));
	CHECK_EQ(share.head_bytes, HEAD);
	CHECK(pread(share.head_fd, back, sizeof(back), 0) == HEAD);
	CHECK(pread(share.tail_fd, back + HEAD, sizeof(back) - HEAD, 0) == sizeof(data) - HEAD);
	CHECK_BYTES(back, sizeof(back), data, sizeof(data));
	close(share.head_fd);
	close(share.tail_fd);
	close(share.version_fd);
	osd_object_unshare(object);
	osd_object_put(object);
	heads_release(&store);
}

/* A full device does not wait for who holds descriptors: they see that there are other files now. */
static void test_forced_while_shared(void)
{
	const _Atomic uint64_t *page;
	struct heads_store store;
	struct osd_objects *objects;
	struct osd_object *object;
	struct osd_object_id id;
	struct osd_share share;
	uint64_t version, generation, bytes;
	enum osd_status status;

	heads_init(&store, HEAD);
	objects = store.store.objects;
	id = make_with(objects, sizeof(data));
	OK(osd_object_get(objects, id, &object));
	OK(osd_object_share(object, &share));
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, share.version_fd, 0);
	CHECK(page != MAP_FAILED);
	version = atomic_load(&page[0]);
	generation = atomic_load(&page[3]);
	/* Cut while shared: the tail's file stays, and must not be taken along. */
	OK(osd_object_truncate(object, HEAD - 10, 0));
	OK(osd_head_move(object, OSD_HEAD_ON_TAIL, NULL, &bytes));
	CHECK_EQ(bytes, HEAD - 10);
	CHECK_EQ(osd_head_move(object, OSD_HEAD_ON_TAIL, NULL, &bytes), OSD_E_EXISTS);
	CHECK_EQ(atomic_load(&page[0]) % 2, 0);
	CHECK(atomic_load(&page[0]) > version && atomic_load(&page[3]) != generation);
	CHECK(pread(share.head_fd, back, 10, 0) == 10); /* removed, not cut */
	CHECK_BYTES(back, 10, data, 10);
	check_data(objects, id, HEAD - 10);
	OK(osd_object_write(object, HEAD - 10, data + HEAD - 10, sizeof(data) - HEAD + 10, 0));
	check_data(objects, id, sizeof(data));
	munmap((void *)page, 4096);
	close(share.head_fd);
	close(share.tail_fd);
	close(share.version_fd);
	osd_object_unshare(object);
	status = osd_head_move(object, OSD_HEAD_ON_HEAD, NULL, &bytes);
	CHECK(status == OSD_OK || status == OSD_E_EXISTS); /* the mover was faster */
	osd_object_put(object);
	test_store_reopen(&store.store);
	check_data(store.store.objects, id, sizeof(data));
	CHECK_EQ(heads_files_in(store.ssd), 1);
	CHECK_EQ(heads_files_in(store.store.directory), 1);
	heads_release(&store);
}

/* ---- while everything else happens ----------------------------------------------------------- */

struct shuttle {
	struct osd_objects *objects;
	_Atomic bool stop;
};

/* To and fro, as fast as the mover can. */
static void *shuttle_main(void *arg)
{
	struct shuttle *shuttle = arg;

	for (unsigned i = 0; !atomic_load(&shuttle->stop); i++) {
		heads_set(shuttle->objects, HEADS_DRAIN, i % 2);
		usleep(20000);
	}
	return NULL;
}

static uint64_t count_moved(struct osd_objects *objects)
{
	return heads_get(objects, HEADS_TO_SSD) + heads_get(objects, HEADS_TO_HDD);
}

/* So many operations, and more if the mover has hardly had a processor meanwhile. */
static void test_model_while_moving(uint64_t seed)
{
	struct model model = {0};
	struct heads_store store;
	struct shuttle shuttle = {.stop = false};
	pthread_t thread;

	heads_init(&store, HEAD);
	shuttle.objects = store.store.objects;
	CHECK(pthread_create(&thread, NULL, shuttle_main, &shuttle) == 0);
	for (uint64_t number = 0;
	     number < TEST_ROUNDS(3000) || count_moved(store.store.objects) <= 10; number++) {
		struct model_op op = model_op(seed, number);

		CHECK(model_is_expected(model_run(store.store.objects, &op)));
		model_apply(&model, &op);
	}
	atomic_store(&shuttle.stop, true);
	pthread_join(thread, NULL);
	model_check(store.store.objects, &model);
	test_store_reopen(&store.store);
	model_check(store.store.objects, &model);
	model_release(&model);
	heads_release(&store);
}

/* ---- files that cannot be removed --------------------------------------------------------- */

static const struct osd_data_ops *ssd_ops;
static unsigned refusals;

static enum osd_status refuse_to_remove(struct osd_data *data_store,
					const struct osd_data_name *name)
{
	if (refusals == 0)
		return ssd_ops->remove(data_store, name);
	refusals--;
	return OSD_E_MEDIUM;
}

/* The record has room for one generation of files that wait to be removed. */
static void test_removed_later(void)
{
	struct osd_object_id id = {MODEL_PID, 0};
	struct osd_object *object;
	struct osd_data_ops ops;
	struct heads_store store;
	struct osd_data *ssd;

	heads_init(&store, HEAD);
	OK(test_create(store.store.objects, MODEL_PID, 0, &id.object_id));
	OK(osd_object_get(store.store.objects, id, &object));
	OK(osd_object_write(object, 0, data, HEAD, 0));
	for (ssd = store.store.objects->tier.head; !ssd->ops->remove;)
		ssd = ssd->inner;
	osd_timers_stop(&store.store.objects->timers); /* upkeep removes such files, too */
	ssd_ops = ssd->ops;
	ops = *ssd_ops;
	ops.remove = refuse_to_remove;
	ssd->ops = &ops;
	refusals = 1;
	OK(test_punch(object, 10, 10, NULL));
	CHECK_EQ(heads_files_in(store.ssd), 2);
	refusals = 1;
	CHECK_EQ(test_punch(object, 10, 10, NULL), OSD_E_MEDIUM);
	OK(test_punch(object, 10, 10, NULL));
	CHECK_EQ(heads_files_in(store.ssd), 1);
	ssd->ops = ssd_ops;
	osd_object_put(object);
	heads_release(&store);
}

int main(void)
{
	uint64_t seed = test_seed();

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 13 + i / 256);
	test_sizes();
	test_one_root();
	test_without_waiting();
	test_policies();
	test_water_marks();
	test_drain();
	test_shared();
	test_forced_while_shared();
	test_removed_later();
	test_model_while_moving(seed);
	return 0;
}
