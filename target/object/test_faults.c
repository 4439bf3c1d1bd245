/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_faults.c -- the n-th store call fails, for n = 1, 2, ...: whatever the store then answers,
 * nothing acknowledged is lost, nothing crashes or leaks, the figures stay right, and the store
 * goes on. */
#include "object/internal.h"
#include "object/test_model.h"

#define OPERATIONS 60

/* Returns whether the fault was met. */
static bool run(struct test_store *store, struct model *model, uint64_t seed)
{
	bool failed = false;

	for (uint64_t number = 0; number < OPERATIONS; number++) {
		struct model_op op = model_op(seed, number);
		enum osd_status status;

		if (model->objects[op.object].uncertain ||
		    (op.kind == MODEL_COPY && model->objects[model_source(&op)].uncertain))
			continue;
		status = model_run(store->objects, &op);
		if (status == OSD_OK) {
			model_apply(model, &op);
		} else if (!model_is_expected(status)) {
			CHECK_EQ(status, OSD_E_MEDIUM);
			model_mark_uncertain(model, &op);
			failed = true;
		}
	}
	return failed;
}

static bool sweep_one(bool on_disk, uint64_t seed, uint64_t n)
{
	struct model model = {0};
	struct test_store store;
	uint64_t pid;
	bool failed;

	test_store_init(&store, on_disk);
	test_store_open(&store);
	OK(test_partition(store.objects, MODEL_PID, &pid));
	OK(test_declare(store.objects, MODEL_PID, MODEL_PAGE));
	if (on_disk) {
		osd_objects_close(store.objects);
		store.faults.fault_at = n;
		test_store_open(&store);
		failed = run(&store, &model, seed);
		store.faults.fault_at = 0;
		test_store_reopen(&store);
	} else {
		test_store_release(&store);
		store.faults.fault_at = n;
		test_store_open(&store);
		if (test_partition(store.objects, MODEL_PID, &pid) != OSD_OK ||
		    test_declare(store.objects, MODEL_PID, MODEL_PAGE) != OSD_OK) {
			test_store_release(&store);
			return true;
		}
		failed = run(&store, &model, seed);
		atomic_store(&store.objects->faults->fail_at, 0);
	}
	model_check(store.objects, &model);
	test_store_release(&store);
	model_release(&model);
	return failed;
}

int main(void)
{
	const uint64_t seed = 42;

	/* In memory one in five; on disk, where opening takes its time, one in sixty-one. */
	for (uint64_t n = test_nth_first(5), quiet = 0; quiet < 20; n += test_nth_step(5))
		quiet = sweep_one(false, seed, n) ? 0 : quiet + 1;
	for (uint64_t n = 1, quiet = 0; quiet < 2; n += 61)
		quiet = sweep_one(true, seed, n) ? 0 : quiet + 1;
	return 0;
}
