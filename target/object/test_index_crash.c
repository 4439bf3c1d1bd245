/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_index_crash.c -- the builder of value indexes is killed at its n-th call of the store; the
 * next opening goes on where it was. */
#include <signal.h>
#include <sys/wait.h>

#include "object/test_index.h"

#define OBJECTS 200u

static void child(const struct osd_objects_config *config, uint64_t pid)
{
	struct osd_objects *objects;
	char message[256];

	if (osd_objects_open(config, message, &objects) != OSD_OK)
		_exit(2);
	test_index_wait(objects, pid, INDEX_PAGE);
	_exit(0);
}

/* Whether it was killed before the index was ready. */
static bool kill_builder(struct test_store *store, uint64_t pid, uint64_t n)
{
	int wait_status;
	pid_t process;

	store->faults.fault_at = n;
	store->faults.fault_kill = true;
	process = fork();
	CHECK(process >= 0);
	if (process == 0)
		child(&store->config, pid);
	CHECK(waitpid(process, &wait_status, 0) == process);
	store->faults.fault_at = 0;
	CHECK(WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) == SIGKILL
				       : WEXITSTATUS(wait_status) == 0);
	return WIFSIGNALED(wait_status);
}

static void test_killed(void)
{
	struct test_store store;
	bool killed = true;
	uint64_t pid;

	test_store_init(&store, true);
	test_store_open(&store);
	test_fill_indexed(store.objects, &pid, OBJECTS);
	for (uint64_t n = 1; killed; n += n < 10 ? 1 : 37) {
		/* The index goes, and comes: for the child to do. */
		OK(test_drop(store.objects, pid, INDEX_PAGE));
		OK(test_declare(store.objects, pid, INDEX_PAGE));
		osd_objects_close(store.objects);
		store.objects = NULL;
		killed = kill_builder(&store, pid, n);
		test_store_open(&store);
		test_index_wait(store.objects, pid, INDEX_PAGE);
		test_check_entries(store.objects, pid);
	}
	test_store_release(&store);
}

int main(void)
{
	test_killed();
	return 0;
}
