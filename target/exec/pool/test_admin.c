/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_admin.c -- changes to pools while a target runs: complete changes or none, slots and budget,
 * removed slots that are in use, modes and their effect on submissions. */
#include "exec/admin.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/test.h"
#include "base/util.h"
#include "exec/target.h"

#define PARTITION UINT64_C(0x10000)
#define MIB	  (UINT64_C(1) << 20)
#define HOUR_USEC UINT64_C(3600000000)

static struct osd_objects *objects;
static struct osd_exec *exec;
static char message[OSD_ADMIN_MESSAGE_MAX];
static char pools_file[] = "/tmp/iosd-test-XXXXXX";

static void write_pools(const char *text)
{
	FILE *file = fopen(pools_file, "we");

	CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void start(const char *pools)
{
	struct osd_objects_config store = {.cache_bytes = 8u << 20};
	struct osd_exec_config config = {.pools = pools_file};
	struct osd_txn *txn;
	uint64_t partition;

	write_pools(pools);
	CHECK_EQ(osd_objects_open(&store, message, &objects), OSD_OK);
	config.objects = objects;
	CHECK_EQ(osd_exec_open(&config, message, &exec), OSD_OK);
	CHECK_EQ(osd_txn_begin(objects, 0, &txn), OSD_OK);
	CHECK_EQ(osd_partition_create(txn, 0, &partition), OSD_OK);
	CHECK_EQ(osd_txn_commit(txn, OSD_COMMIT_PROCESS), OSD_OK);
	CHECK_EQ(partition, PARTITION);
}

static void stop(void)
{
	osd_exec_quiesce(exec);
	osd_exec_close(exec);
	osd_objects_close(objects);
}

static enum osd_status set(const char *name, const char *words)
{
	char copy[256];

	snprintf(copy, sizeof(copy), "%s", words);
	return osd_exec_pool_set(exec, name, copy, message);
}

static void check_refused(const char *name, const char *words, const char *why)
{
	struct osd_pool *pool = exec->pools->first;
	struct osd_pool_config before = pool->config;
	unsigned active = pool->supply.active;

	CHECK_EQ(set(name, words), OSD_E_PARAM_FIELD);
	if (!strstr(message, why))
		fprintf(stderr, "%s: %s\n", words, message);
	CHECK(strstr(message, why));
	CHECK(memcmp(&before, &pool->config, sizeof(before)) == 0 && pool->supply.active == active);
}

/* Counts so many jobs as running. */
static void occupy(struct osd_pool *pool, unsigned busy)
{
	osd_lock(&exec->lock);
	pool->supply.busy = busy;
	osd_unlock(&exec->lock);
}

/* The monitor has seen that its last job has ended. */
static void await_gone(const struct osd_pool *pool)
{
	const struct timespec step = {.tv_nsec = 1000000};
	bool gone = false;

	for (int i = 0; i < 60000 && !gone; i++) {
		nanosleep(&step, NULL);
		osd_lock(&exec->lock);
		gone = pool->gone;
		osd_unlock(&exec->lock);
	}
	CHECK(gone);
}

static enum osd_status submit(const char *pool, const char *principal)
{
	struct osd_exec_submission submission = {
		.zone = {PARTITION, 0},
		.principal = principal,
		.code = (const uint8_t *)"pass",
		.code_length = 4,
	};
	struct osd_exec_refusal refusal;
	struct osd_object_id job;

	submission.pool.bytes = (const uint8_t *)pool;
	submission.pool.length = (uint32_t)strlen(pool);
	return osd_exec_submit(exec, &submission, &job, &refusal);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void test_all_or_nothing(void)
{
	start("name=default;max=4;min=2\n");
	check_refused("default", "max=8;mux=1", "no such key of a pool that serves: 'mux'");
	check_refused("default", "max=8;min", "no value: 'min'");
	check_refused("default", "queue=5;max=0", "max must be 1 to 64, not '0'");
	check_refused("default", "queue=5;mode=asleep", "running, paused, draining");
	check_refused("default", "queue=5;name=other", "'name'");
	check_refused("default", "queue=5;set=other", "'set'");
	check_refused("default", "max=2;min=3", "min is 3, above max, which is 2");
	check_refused("default", "active=5", "active must be from 2 (min) to 4 (max)");
	check_refused("default", "active=1", "active must be from 2 (min) to 4 (max)");
	check_refused("default", "max=1;active=4", "active must be from 1 (min) to 1 (max)");
	check_refused("default", "memory_max=67108864",
		      "memory is 268435456, above memory_max, which is 67108864");
	CHECK_EQ(set("absent", "max=8"), OSD_E_NO_OBJECT);
	CHECK(strstr(message, "no pool 'absent'"));
	CHECK_EQ(set("default", "max=8;spares=0;queue=5;idle_timeout=1000000;reuse=trusted;"
				"wall=5000000;wall_max=6000000;mode=paused"),
		 OSD_OK);
	CHECK(exec->pools->first->config.max == 8 && exec->pools->first->config.min == 2);
	CHECK(exec->pools->first->supply.active == 8 &&
	      exec->pools->first->mode == OSD_POOL_PAUSED);
	CHECK(exec->pools->first->config.reuse == OSD_REUSE_TRUSTED);
	CHECK(exec->pools->first->queue.place_max == 5 &&
	      exec->pools->first->config.idle_usec == 1000000);
	stop();
}

static void test_native_has_no_reuse(void)
{
	start("name=default;max=4\nname=n;max=1;engine=native\n");
	check_refused("n", "max=2;reuse=trusted", "the engine native has no reuse");
	CHECK_EQ(set("n", "max=2;reuse=never"), OSD_OK);
	stop();
}

/* active stays as a resource manager has set it, as far as the bounds permit. */
static void test_active_follows(void)
{
	start("name=default;max=4;min=1\n");
	CHECK_EQ(set("default", "max=6"), OSD_OK);
	CHECK_EQ(exec->pools->first->supply.active, 6);
	CHECK_EQ(set("default", "active=3"), OSD_OK);
	CHECK_EQ(set("default", "max=8"), OSD_OK);
	CHECK_EQ(exec->pools->first->supply.active, 3);
	CHECK_EQ(set("default", "min=5"), OSD_OK);
	CHECK_EQ(exec->pools->first->supply.active, 5);
	CHECK_EQ(set("default", "max=2"), OSD_OK);
	CHECK(exec->pools->first->supply.active == 2 && exec->pools->first->config.min == 2);
	stop();
}

/* ---- together -------------------------------------------------------------------------------- */

static void test_slots_and_budget(void)
{
	start("budget=1073741824\nname=default;max=2;memory_max=268435456\n"
	      "name=big;max=1;memory_max=536870912\n");
	check_refused(
		"default", "max=3",
		"may need 1280 MiB, the budget is 1024 MiB: default 3 x 256 MiB, big 1 x 512");
	CHECK_EQ(set("big", "memory=134217728;memory_max=268435456"), OSD_OK);
	CHECK_EQ(set("default", "max=3"), OSD_OK);
	stop();
	start("name=default;max=40\nname=b;max=20;spares=128\n");
	check_refused("default", "max=50", "70 slots together, at most 64");
	check_refused("default", "spares=128;max=44", "sandboxes together, at most 320 can be");
	CHECK_EQ(set("default", "max=44"), OSD_OK);
	stop();
}

/* Slots removed while jobs use them are not given to another pool before those jobs have ended. */
static void test_busy_slots_count(void)
{
	start("budget=2147483648\nname=default;max=6;memory_max=268435456\n"
	      "name=b;max=2;memory_max=268435456\n");
	occupy(exec->pools->first, 6);
	CHECK_EQ(set("default", "max=1"), OSD_OK);
	CHECK(!osd_pool_starts(exec->pools->first, false));
	check_refused("b", "max=7", "default 6 x 256 MiB, b 7 x 256 MiB");
	occupy(exec->pools->first, 3);
	CHECK(!osd_pool_starts(exec->pools->first, false));
	check_refused("b", "max=7", "default 3 x 256 MiB");
	occupy(exec->pools->first, 0);
	CHECK(osd_pool_starts(exec->pools->first, false));
	CHECK_EQ(set("b", "max=7"), OSD_OK);
	CHECK_EQ(set("b", "max=1"), OSD_OK);
	CHECK_EQ(set("default", "max=7"), OSD_OK);
	stop();
}

static void lend(struct osd_pool *pool, bool back)
{
	osd_lock(&exec->lock);
	if (back)
		osd_pool_take_back(pool);
	else
		osd_pool_lend(pool);
	osd_unlock(&exec->lock);
}

/* Each job that waits for a stage lends its slot, to stages alone; with a budget one job at a time. */
static void test_lent_slots(void)
{
	struct osd_pool *pool;

	for (unsigned bounded = 0; bounded < 2; bounded++) {
		start(bounded ? "budget=2147483648\nname=default;max=2;memory_max=268435456\n"
			      : "name=default;max=2;memory_max=268435456\n");
		pool = exec->pools->first;
		occupy(pool, 2);
		CHECK(!osd_pool_starts(pool, true));
		lend(pool, false);
		CHECK(osd_pool_starts(pool, true) && !osd_pool_starts(pool, false));
		occupy(pool, 3);
		CHECK(!osd_pool_starts(pool, true));
		lend(pool, false);
		CHECK_EQ(osd_pool_starts(pool, true), !bounded);
		CHECK_EQ(set("default", "max=8"), OSD_OK);
		CHECK_EQ(set("default", "max=2"), OSD_OK);
		lend(pool, true);
		lend(pool, true);
		CHECK(!osd_pool_starts(pool, true) && pool->supply.lent == 0);
		occupy(pool, 0);
		stop();
	}
}

/* A job keeps the memory it was accepted with. */
static void test_jobs_keep_their_memory(void)
{
	start("budget=1073741824\nname=default;max=2;memory=536870912;memory_max=536870912\n");
	CHECK_EQ(submit("", "addr:a"), OSD_OK);
	CHECK_EQ(set("default", "memory=268435456;memory_max=268435456"), OSD_OK);
	check_refused("default", "max=4", "default 4 x 512 MiB");
	stop();
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void test_modes(void)
{
	start("name=default;max=2\nname=b;max=1\n");
	CHECK_EQ(set("default", "mode=paused"), OSD_OK);
	CHECK(!osd_pool_starts(exec->pools->first, false) && osd_pool_starts(exec->pools->first->next, false));
	CHECK_EQ(submit("", "addr:a"), OSD_OK);
	CHECK_EQ(set("default", "mode=draining"), OSD_OK);
	CHECK(osd_pool_starts(exec->pools->first, false)); /* those it has */
	CHECK_EQ(submit("", "addr:a"), OSD_E_QUEUE_FULL);
	CHECK_EQ(submit("b", "addr:a"), OSD_OK);
	CHECK_EQ(set("default", "mode=running;queue=1"), OSD_OK);
	CHECK_EQ(submit("", "addr:b"), OSD_E_QUEUE_FULL);
	CHECK_EQ(set("default", "queue=2"), OSD_OK);
	CHECK_EQ(submit("", "addr:b"), OSD_OK);
	osd_exec_shed(exec, true);
	CHECK_EQ(submit("b", "addr:b"), OSD_E_QUEUE_FULL);
	osd_exec_shed(exec, false);
	CHECK_EQ(submit("b", "addr:b"), OSD_OK);
	CHECK_EQ(set("b", "users=addr:a,chap:c"), OSD_OK);
	CHECK_EQ(submit("b", "addr:b"), OSD_E_POOL_ACCESS);
	CHECK_EQ(submit("b", "addr:"), OSD_E_POOL_ACCESS);
	CHECK_EQ(submit("b", "addr:a"), OSD_OK);
	CHECK_EQ(submit("b", "chap:c"), OSD_OK);
	CHECK_EQ(set("b", "users="), OSD_OK);
	CHECK_EQ(submit("b", "addr:b"), OSD_OK);
	check_refused("default", "users=a b", "principals, by commas");
	CHECK_EQ(exec->pools->refused[OSD_REFUSAL_DRAINING], 1);
	CHECK_EQ(exec->pools->refused[OSD_REFUSAL_QUEUE], 1);
	CHECK_EQ(exec->pools->refused[OSD_REFUSAL_SHED], 1);
	stop();
}

/* ---- principals ------------------------------------------------------------------------------ */

struct listed {
	char last[OSD_JOB_PRINCIPAL_MAX + 1];
	uint64_t rows, accepted, queued, at_most;
};

static bool list(void *arg, const struct osd_principal_usage *usage)
{
	struct listed *listed = arg;

	CHECK(strcmp(listed->last, usage->name) < 0);
	snprintf(listed->last, sizeof(listed->last), "%s", usage->name);
	listed->accepted += usage->accepted;
	listed->queued += usage->queued;
	return ++listed->rows < listed->at_most;
}

/* All principals are counted, in order and in parts, whatever their number. */
static void test_many_principals(void)
{
	const struct osd_principal_share share = {.weight = 3, .queue_max = 2, .at_once = 1};
	struct osd_principal_share got;
	struct listed listed = {.at_most = 1000};
	char name[32];

	start("name=default;max=1;queue=10000\n");
	for (unsigned i = 0; i < OSD_PRINCIPALS_MAX + 6; i++) {
		snprintf(name, sizeof(name), "addr:%u", i);
		CHECK_EQ(submit("", name), OSD_OK);
	}
	osd_exec_each_usage(exec, NULL, list, &listed);
	CHECK_EQ(listed.rows, 1000);
	listed.at_most = UINT64_MAX;
	osd_exec_each_usage(exec, listed.last, list, &listed);
	CHECK_EQ(listed.rows, OSD_PRINCIPALS_MAX + 1); /* those with jobs, and the others */
	CHECK_EQ(listed.accepted, OSD_PRINCIPALS_MAX + 6);
	CHECK_EQ(listed.queued, OSD_PRINCIPALS_MAX);
	CHECK_EQ(exec->pools->principals.others.accepted, 6);
	stop();
	start("name=default;max=1\n");
	CHECK_EQ(osd_exec_principal_set(exec, "addr:a", &share, message), OSD_OK);
	CHECK_EQ(submit("", "addr:a"), OSD_OK);
	CHECK_EQ(submit("", "addr:a"), OSD_OK);
	CHECK_EQ(submit("", "addr:a"), OSD_E_QUEUE_FULL);
	CHECK_EQ(exec->pools->refused[OSD_REFUSAL_PRINCIPAL], 1);
	osd_exec_principal_share(exec, "addr:a", &got);
	CHECK(got.weight == 3 && got.queue_max == 2 && got.at_once == 1);
	stop();
}

/* ---- the file again -------------------------------------------------------------------------- */

static enum osd_status reload(const char *pools, const char *expected)
{
	char changed[512];
	enum osd_status status;

	write_pools(pools);
	status = osd_exec_pools_reload(exec, changed, sizeof(changed), message);
	if (strcmp(changed, expected) != 0)
		fprintf(stderr, "%s%s\n", changed, message);
	CHECK(strcmp(changed, expected) == 0);
	return status;
}

static struct osd_pool *configured(const char *name)
{
	return osd_pool_find_named(exec, name, strlen(name));
}

static void test_reload(void)
{
	struct osd_pool *b;

	start("name=default;max=2\nname=b;max=3\n");
	b = configured("b");
	CHECK_EQ(set("default", "queue=7;mode=paused"), OSD_OK);
	CHECK_EQ(reload("name=default;max=2;queue=7\nname=b;max=3\n", ""), OSD_OK);
	CHECK_EQ(reload("name=default;max=4\nname=b;max=3;set=tools-1;packages=/a;preload=x,y\n"
			"name=c;max=1\n",
			"default: max 2 -> 4, warm_spare 3 -> 5, queue 7 -> 10000\n"
			"b: set none -> tools-1\nc: new\n"),
		 OSD_OK);
	CHECK(exec->pools->first->supply.active == 4 &&
	      exec->pools->first->mode == OSD_POOL_PAUSED);
	/* A wrong or impossible value changes nothing. */
	CHECK_EQ(reload("name=default;max=5\nname=b;maximum=3\n", ""), OSD_E_PARAM_FIELD);
	CHECK(strstr(message, "line 2"));
	occupy(b, 3);
	CHECK_EQ(reload("name=default;max=62\n", ""), OSD_E_PARAM_FIELD);
	CHECK(strstr(message, "65 slots together"));
	CHECK(exec->pools->first->config.max == 4 && configured("b") == b && configured("c"));
	/* A pool with a job leaves when the job has ended. */
	CHECK_EQ(reload("name=default;max=4\n", "b: removed\nc: removed\n"), OSD_OK);
	CHECK(!configured("b") && b->leaving && !b->gone &&
	      osd_pool_starts(exec->pools->first, false) == false);
	CHECK_EQ(submit("b", "addr:a"), OSD_E_CDB_FIELD);
	CHECK(osd_pool_find_any(exec, "c", 1)->gone);
	osd_lock(&exec->lock);
	while (b->supply.busy > 0)
		osd_pool_vacate(b, NULL);
	osd_unlock(&exec->lock);
	await_gone(b);
	CHECK(b->gone && !b->leaving);
	CHECK_EQ(reload("budget=4294967296\nname=default;max=4;memory_max=268435456\n"
			"name=b;max=1;memory_max=268435456\n",
			"budget: 0 -> 4294967296\n"
			"default: memory_max 18446744073709551615 -> 268435456\nb: new\n"),
		 OSD_OK);
	CHECK(configured("b") == b && !b->gone && b->supply.active == 1);
	CHECK_EQ(submit("b", "addr:a"), OSD_OK);
	stop();
}

/* A proxy takes the only job of the pool, and its sandbox is lost. */
static struct osd_job *lose_one(struct osd_pool *pool)
{
	struct osd_fair_entry *entry = osd_fair_queue_pop(&pool->queue);
	struct osd_job *job = osd_container_of(entry, struct osd_job, entry);

	CHECK(entry);
	osd_fair_queue_unreserve(&pool->queue, entry);
	osd_exec_delay(exec, job, HOUR_USEC);
	return job;
}

/* A pool that is removed keeps its slots for a job that waits for another attempt. */
static void test_removed_before_another_attempt(void)
{
	struct osd_pool *b;
	struct osd_job *job;

	start("name=default;max=2\nname=b;max=62\n");
	b = configured("b");
	CHECK_EQ(submit("b", "addr:a"), OSD_OK);
	osd_lock(&exec->lock);
	job = lose_one(b);
	osd_unlock(&exec->lock);
	CHECK_EQ(reload("name=default;max=3\n", ""), OSD_E_PARAM_FIELD);
	CHECK(strstr(message, "65 slots together"));
	CHECK_EQ(reload("name=default;max=2\n", "b: removed\n"), OSD_OK);
	osd_lock(&exec->lock);
	CHECK(b->leaving && !b->gone && osd_pool_starts(b, false));
	osd_exec_enqueue(exec, job);
	CHECK(b->queue.entry_count == 1);
	osd_exec_forget(exec, job);
	osd_unlock(&exec->lock);
	await_gone(b);
	stop();
}

/* iosd-sandboxd still has a pool whose jobs alone are left here.  It is sent nothing that it would refuse: it closes
 * the connection of a target that is wrong, and then no job of any pool runs. */
static void test_news_of_a_pool_that_is_gone(void)
{
	const struct osd_job_record record = {.pool = "old"};
	const struct osd_pool_news news = {.state = OSD_POOL_SERVING,
					   .name = (const uint8_t *)"old",
					   .name_bytes = 3,
					   .set = (const uint8_t *)""};
	int pair[2];
	char byte;

	start("name=default;max=1\n");
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	osd_lock(&exec->lock);
	exec->sandboxes->fd = pair[0];
	exec->sandboxes->welcomed = true;
	CHECK(osd_pool_of_record(exec, &record));
	osd_pool_news(exec, &news);
	CHECK(recv(pair[1], &byte, 1, MSG_DONTWAIT) < 0);
	osd_unlock(&exec->lock);
	stop();
	close(pair[1]);
}

int main(void)
{
	int fd = mkstemp(pools_file);

	CHECK(fd >= 0 && close(fd) == 0);
	test_all_or_nothing();
	test_native_has_no_reuse();
	test_active_follows();
	test_slots_and_budget();
	test_busy_slots_count();
	test_lent_slots();
	test_jobs_keep_their_memory();
	test_modes();
	test_many_principals();
	test_news_of_a_pool_that_is_gone();
	test_reload();
	test_removed_before_another_attempt();
	unlink(pools_file);
	return 0;
}
