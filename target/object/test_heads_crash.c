/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_heads_crash.c -- the mover dies at a store call, whichever: every object is whole afterwards, the
 * next run goes on, and no file is left over in either root.  Of the calls of one drain, or of the
 * way back, every third is tried, from a seed on; all of them with IOSD_EVERY_CALL. */
#include <signal.h>
#include <sys/wait.h>

#include "object/test_heads.h"

#define HEAD 4096u
#define STEP 3u

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
	struct osd_objects_config config = store->store.config;
	int wait_status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		struct osd_objects *objects;
		char message[256];

		config.fault_at = call;
		config.fault_kill = true;
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
	static uint8_t bytes[70001];

	for (size_t i = 0; i < OSD_ARRAY_SIZE(lengths); i++) {
		struct osd_object_id id = {MODEL_PID, OSD_FIRST_ID + i};

		CHECK_EQ(test_read(objects, id, 0, bytes, sizeof(bytes)), lengths[i]);
		for (uint32_t at = 0; at < lengths[i]; at++)
			CHECK_EQ(bytes[at], 'x');
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

int main(void)
{
	const char *text = getenv("IOSD_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)getpid();
	uint64_t step = getenv("IOSD_EVERY_CALL") ? 1 : STEP, first = 1 + seed % step;
	struct heads_store store;

	printf("IOSD_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	heads_init(&store, HEAD);
	make_objects(store.store.objects);
	osd_objects_close(store.store.objects);
	sweep(&store, true, first, step);
	test_store_open(&store.store);
	drain(store.store.objects, true);
	osd_objects_close(store.store.objects);
	sweep(&store, false, first, step);
	test_store_open(&store.store);
	heads_release(&store);
	return 0;
}
