/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_start.h -- a target in memory, and sandboxes that are READY as far as it knows. */
#ifndef OSD_EXEC_RUN_TEST_START_H
#define OSD_EXEC_RUN_TEST_START_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"
#include "exec/target.h"
#include "function/function.h"
#include "object/internal.h"
#include "testing/stores.h"

#define PARTITION UINT64_C(0x10000)

static struct osd_objects *objects;
static struct osd_exec *exec;
static struct osd_sandbox *sandbox; /* READY, as far as the target knows */
static struct osd_sandbox *second;  /* another, in one test */
static int peer;		    /* the other end of its job socket */

static struct osd_sandbox *add_sandbox(uint64_t id, int *ret_peer)
{
	struct osd_sandbox *added = calloc(1, sizeof(*added));
	int pair[2];

	CHECK(added && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	*ret_peer = pair[1];
	*added = (struct osd_sandbox){
		.id = id,
		.state = OSD_SANDBOX_READY,
		.supply = &exec->pools->first->supply,
		.references = 2, /* the list's and ours */
		.pid = getpid(),
		.pidfd = -1,
		.job_fd = pair[0],
		.stdout_fd = -1,
		.stderr_fd = -1,
		.limits = exec->pools->first->supply.usual,
		.wall_usec = OSD_NEVER,
		.kill_usec = OSD_NEVER,
	};
	added->shm = mmap(NULL, OSD_SHM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			  -1, 0);
	CHECK(added->shm != MAP_FAILED);
	osd_lock(&exec->lock);
	added->next = exec->sandboxes->list;
	exec->sandboxes->list = added;
	osd_unlock(&exec->lock);
	return added;
}

static void start(void)
{
	static const struct osd_test_stores faults = {.fault_at = UINT64_MAX};
	struct osd_objects_config store = {.cache_bytes = 8u << 20, .test = &faults};
	struct osd_exec_config config = {0};
	char message[256];
	struct osd_txn *txn;
	uint64_t partition;

	CHECK_EQ(osd_objects_open(&store, message, &objects), OSD_OK);
	config.objects = objects;
	CHECK_EQ(osd_exec_open(&config, message, &exec), OSD_OK);
	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_partition_create(txn, 0, &partition), OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
	CHECK_EQ(partition, PARTITION);
	sandbox = add_sandbox(1, &peer);
}

/* Calls need not wait for iosd-sandboxd. */
static inline void start_welcome(void)
{
	start();
	osd_lock(&exec->lock);
	exec->sandboxes->welcomed = true;
	osd_unlock(&exec->lock);
}

static inline struct osd_function_code *make_code(void)
{
	struct osd_function_code *made = calloc(1, sizeof(*made) + 4);

	CHECK(made);
	atomic_init(&made->references, 1);
	memset(made->sha256, 1, sizeof(made->sha256));
	memcpy(made->bytes, "code", 4);
	made->length = 4;
	return made;
}

/* A plain call of method main. */
static inline struct osd_exec_submission
call_of(struct osd_function_code *code,
	void (*done)(void *arg, const struct osd_exec_outcome *outcome))
{
	return (struct osd_exec_submission){
		.zone = {PARTITION, 0},
		.zone_type = OSD_PARTITION,
		.principal = "addr:a",
		.code = code->bytes,
		.code_length = code->length,
		.function_code = code,
		.function = {.id = {1, OSD_FIRST_ID},
			     .access = OSD_JOB_NO_ACCESS,
			     .method = "main"},
		.has_args = true,
		.plain = true,
		.done = done,
	};
}

/* exec->lock held.  Takes the sandbox and the only slot for a job, as osd_start_claim does. */
static inline struct osd_run *take_sandbox(void)
{
	struct osd_pool *pool = exec->pools->first;
	struct osd_sandbox_order order = {
		.supply = &pool->supply, .principal = "addr:b", .limits = pool->supply.usual};
	struct osd_fair_entry entry;
	struct osd_run *run;

	osd_assert_held(&exec->lock);
	pool->supply.active = 1;
	CHECK(osd_sandbox_take(exec->sandboxes, &order) == sandbox);
	run = osd_run_create(exec, sandbox);
	CHECK(run);
	CHECK_EQ(osd_fair_queue_reserve(&pool->queue, "addr:b", 1, false, &entry), OSD_OK);
	run->occupant = osd_pool_occupy(pool, &entry);
	osd_fair_queue_unreserve(&pool->queue, &entry);
	run->sent = true;
	return run;
}

static void stop(void)
{
	atomic_store(&objects->faults->fail_at, 0);
	osd_exec_quiesce(exec);
	osd_lock(&exec->lock);
	sandbox->exit_known = true;
	osd_sandbox_died(exec->sandboxes, sandbox);
	if (second) {
		second->exit_known = true;
		osd_sandbox_died(exec->sandboxes, second);
	}
	osd_unlock(&exec->lock);
	osd_exec_close(exec);
	osd_sandbox_unref(sandbox);
	osd_objects_close(objects);
	close(peer);
}

#endif
