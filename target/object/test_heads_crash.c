/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_heads_crash.c -- the mover dies at a store call, or that fails, whichever: every object is whole
 * afterwards, the next run or pass goes on, and no file is left over in either root.  Of the calls of one
 * drain, or of the way back, every fifth is tried, from a seed on; all of them with IOSD_EVERY_CALL. */
#include <signal.h>
#include <sys/wait.h>

#include "object/test_heads.h"

#define HEAD	      4096u
#define STEP	      5u
#define FAILING_CALLS 150u /* of one drain: some more than there are */

static const uint32_t lengths[] = {0, 100, HEAD, HEAD + 1, 70000};

/* Drains the SSD, or undoes that, to the end. */
static void drain(struct osd_objects *objects, bool on)
{
	heads_set(objects, HEADS_DRAIN, on);
	HEADS_WAIT(heads_get(objects, on ? HEADS_SSD_BYTES : HEADS_HDD_BYTES) == 0);
	if (on)
		HEADS_WAIT(heads_get(objects, HEADS_DRAIN) == 2);
}

/* False: it came to the end, the call was never reached. */
static bool dies(const struct heads_store *store, bool on, uint64_t call)
{
	struct osd_test_stores faults = {.fault_at = call, .fault_kill = true};
	struct osd_objects_config config = store->store.config;
	int wait_status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		struct osd_objects *objects;
		char message[256];

		config.test = &faults;
		if (osd_objects_open(&config, message, &objects) != OSD_OK)
			_exit(2);
		drain(objects, on);
		_exit(0);
	}
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	CHECK((WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL) ||
	      (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0));
	return WIFSIGNALED(wait_status);
}

/* UINT64_MAX: it could not be read. */
static uint64_t heads_try(struct osd_objects *objects, uint32_t number)
{
	struct osd_txn *txn = test_begin(objects, OSD_TXN_READ_ONLY);
	uint8_t bytes[8];
	size_t length = 0;
	enum osd_status status = osd_attr_get(txn, HEADS_ROOT, OSD_PAGE_HEADS_ROOT, number, bytes,
					      sizeof(bytes), &length);

	osd_txn_abort(txn);
	return status == OSD_OK ? osd_get_be(bytes, length) : UINT64_MAX;
}

static void make_objects(struct osd_objects *objects)
{
	static uint8_t bytes[70000];

	memset(bytes, 'x', sizeof(bytes));
	for (size_t i = 0; i < OSD_ARRAY_SIZE(lengths); i++) {
		struct osd_object_id id = {MODEL_PID, 0};

		OK(test_create(objects, MODEL_PID, OSD_FIRST_ID + i, &id.object_id));
		if (lengths[i])
			OK(test_write(objects, id, 0, bytes, lengths[i]));
	}
}

static void check_objects(struct osd_objects *objects)
{
	static uint8_t bytes[70001], wanted[70000];

	memset(wanted, 'x', sizeof(wanted));
	for (size_t i = 0; i < OSD_ARRAY_SIZE(lengths); i++) {
		struct osd_object_id id = {MODEL_PID, OSD_FIRST_ID + i};

		CHECK_BYTES(bytes, test_read(objects, id, 0, bytes, sizeof(bytes)), wanted,
			    lengths[i]);
	}
}

/* One file for each object with data, and one for each tail. */
static void check_files(struct heads_store *store, bool drained)
{
	unsigned heads = drained ? 0 : 4, main = drained ? 6 : 2;

	HEADS_WAIT(heads_files_in(store->ssd) == heads);
	HEADS_WAIT(heads_files_in(store->store.directory) == main);
}

static void sweep(struct heads_store *store, bool on, uint64_t first, uint64_t step)
{
	bool died = true;

	for (uint64_t call = first; died; call += step) {
		died = dies(store, on, call);
		test_store_open(&store->store);
		check_objects(store->store.objects);
		drain(store->store.objects, on);
		check_files(store, on);
		check_objects(store->store.objects);
		drain(store->store.objects, !on); /* for the next one */
		check_files(store, !on);
		osd_objects_close(store->store.objects);
		store->store.objects = NULL;
	}
}

/* As sweep, but the call fails once, and the same run comes to the end all the same. */
static void sweep_failures(struct heads_store *store, bool on, uint64_t first, uint64_t step)
{
	uint64_t number = on ? HEADS_SSD_BYTES : HEADS_HDD_BYTES;

	for (uint64_t call = first; call < FAILING_CALLS; call += step) {
		uint8_t value = on;

		store->store.faults.fault_at = call;
		test_store_open(&store->store);
		/* Again and again: what failed may have been this, and the mover need not wait. */
		do {
			test_set(store->store.objects, HEADS_ROOT, OSD_PAGE_HEADS_ROOT, HEADS_DRAIN,
				 &value, 1);
			usleep(2000);
		} while (heads_try(store->store.objects, number) != 0);
		osd_objects_close(store->store.objects);
		store->store.faults.fault_at = 0;
		test_store_open(&store->store);
		check_objects(store->store.objects);
		check_files(store, on);
		on = !on;
		number = on ? HEADS_SSD_BYTES : HEADS_HDD_BYTES;
		osd_objects_close(store->store.objects);
		store->store.objects = NULL;
	}
}

int main(void)
{
	uint64_t seed = test_seed(), step = test_nth_step(STEP), first = 1 + seed % step;
	struct heads_store store;

	heads_init(&store, HEAD);
	make_objects(store.store.objects);
	osd_objects_close(store.store.objects);
	sweep(&store, true, first, step);
	test_store_open(&store.store);
	drain(store.store.objects, true);
	osd_objects_close(store.store.objects);
	sweep(&store, false, first, step);
	test_store_open(&store.store);
	drain(store.store.objects, false);
	osd_objects_close(store.store.objects);
	sweep_failures(&store, true, first, step);
	test_store_open(&store.store);
	heads_release(&store);
	return 0;
}
