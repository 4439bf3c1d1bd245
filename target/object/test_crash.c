/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_crash.c -- what was acknowledged survives kill -9.  A child works on the store and writes
 * one byte per acknowledged operation into a pipe; we kill it after some number of them (or it dies
 * at the n-th store call), open the store, and compare it with a model that lives here.  With
 * DB_TXN_NOSYNC the same check must find a loss: proof that it can. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "object/test_model.h"

#define ROUNDS 5

/* Runs operations until killed. */
static void child(const struct osd_objects_config *config, uint64_t seed, uint64_t first, int fd)
{
	struct osd_objects *objects;
	char message[256];

	if (osd_objects_open(config, message, &objects) != OSD_OK)
		_exit(2);
	for (uint64_t number = first;; number++) {
		struct model_op op = model_op(seed, number);

		if (!model_is_expected(model_run(objects, &op)))
			_exit(3);
		if (write(fd, "", 1) != 1)
			_exit(4);
	}
}

/* How many operations were acknowledged before the child died; limit 0: it dies by itself. */
static uint64_t run_and_kill(const struct osd_objects_config *config, uint64_t seed, uint64_t first,
			     uint64_t limit)
{
	int ends[2], wait_status;
	uint64_t count = 0;
	char bytes[64];
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		close(ends[0]);
		child(config, seed, first, ends[1]);
	}
	close(ends[1]);
	for (;;) {
		ssize_t got = read(ends[0], bytes, 1);

		if (got == 1 && ++count == limit)
			kill(pid, SIGKILL);
		else if (got == 0)
			break;
		CHECK(got >= 0 || errno == EINTR);
	}
	close(ends[0]);
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	CHECK(WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL);
	return count;
}

/* heads: a template for the second root, or NULL. */
static void make_store(struct test_store *store, char *heads)
{
	uint64_t pid;

	test_store_init(store, true);
	if (heads) {
		CHECK(mkdtemp(heads) != NULL);
		store->config.ssd_directory = heads;
	}
	test_store_open(store);
	OK(test_partition(store->objects, MODEL_PID, &pid));
	OK(test_declare(store->objects, MODEL_PID, MODEL_PAGE));
	osd_objects_close(store->objects);
	store->objects = NULL;
}

/* Which the child may have done or not. */
static void mark_uncertain(struct model *model, uint64_t seed, uint64_t number)
{
	struct model_op op = model_op(seed, number);

	model_mark_uncertain(model, &op);
}

/* After a check, what is there is taken as certain again: later rounds build on it. */
static void make_certain(struct osd_objects *objects, struct model *model, uint64_t number)
{
	for (unsigned i = 0; i < MODEL_OBJECTS; i++) {
		struct model_op op = {.kind = MODEL_REMOVE, .object = i, .value = number};

		if (!model->objects[i].uncertain)
			continue;
		CHECK(model_is_expected(model_run(objects, &op)));
		model->objects[i].exists = true;
		model_apply(model, &op);
		model->objects[i].uncertain = model->objects[i].may_be_made = false;
	}
}

/* Opens the store again and looks whether it is as the run left it.  Returns which operation is next. */
static uint64_t check_killed(struct test_store *store, struct model *model, uint64_t seed,
			     uint64_t number, uint64_t done)
{
	for (uint64_t i = 0; i < done; i++, number++) {
		struct model_op op = model_op(seed, number);

		model_apply(model, &op);
	}
	mark_uncertain(model, seed, number++);
	test_store_open(store);
	model_check(store->objects, model);
	make_certain(store->objects, model, number);
	osd_objects_close(store->objects);
	return number;
}

static void test_kill(uint64_t seed, bool two_roots)
{
	char heads[] = "/tmp/iosd-test-XXXXXX";
	struct model model = {0};
	struct test_store store;
	uint64_t number = 0;

	make_store(&store, two_roots ? heads : NULL);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		uint64_t done = run_and_kill(&store.config, seed, number, 40 + 57 * round);

		number = check_killed(&store, &model, seed, number, done);
	}
	store.objects = NULL;
	test_store_release(&store);
	if (two_roots)
		test_folder_remove(heads);
	model_release(&model);
}

/* Dies inside the store, at call n of the run. */
static void test_kill_at_call(uint64_t seed)
{
	struct model model = {0};
	struct test_store store;
	uint64_t number = 0;

	make_store(&store, NULL);
	for (uint64_t n = 1; n < 400; n += 17) {
		uint64_t done;

		store.faults.fault_at = n;
		store.faults.fault_kill = true;
		done = run_and_kill(&store.config, seed, number, 0);
		store.faults.fault_at = 0;
		number = check_killed(&store, &model, seed, number, done);
	}
	store.objects = NULL;
	test_store_release(&store);
	model_release(&model);
}

/* Fewer acknowledged operations than the log buffer holds, none of them synced: all but certainly
 * lost. */
static void test_nosync_loses(void)
{
	const uint64_t seed = 1;
	struct test_store store;
	uint64_t done, lost = 0;

	make_store(&store, NULL);
	store.faults.unsafe_nosync = true;
	done = run_and_kill(&store.config, seed, 0, 100);
	store.faults.unsafe_nosync = false;
	test_store_open(&store);
	for (uint64_t i = 0; i < done; i++) {
		struct model_op op = model_op(seed, i);
		struct osd_object *object;

		if (!model_makes(&op))
			continue;
		if (osd_object_get(store.objects, model_id(&op), &object) == OSD_OK)
			osd_object_put(object);
		else
			lost++;
	}
	CHECK(lost > 0);
	test_store_release(&store);
}

int main(void)
{
	uint64_t seed = test_seed();

	test_kill(seed, false);
	test_kill(seed + 1, true);
	test_kill_at_call(seed);
	test_nosync_loses();
	return 0;
}
