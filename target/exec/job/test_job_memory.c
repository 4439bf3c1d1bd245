/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_job_memory.c -- jobs between the queue and the list of delayed jobs. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/test.h"
#include "exec/target.h"

#define HOUR_USEC UINT64_C(3600000000)

static const struct osd_exec_ops ops = {.kind_of = osd_flow_kind_of};
static struct osd_pool pool;
static struct osd_pools pools = {.first = &pool, .work = osd_proxies_call};
static struct osd_flow flow;
static struct osd_runs runs; /* without proxies */
static struct osd_exec exec = {.ops = &ops, .pools = &pools, .runs = &runs, .flow = &flow};

static struct osd_job *admit_job(uint64_t object_id)
{
	struct osd_job_record record = {
		.id = {0x10000, object_id}, .sequence = object_id, .state = OSD_STATE_QUEUED};
	struct osd_job *job = osd_job_create(&exec, &record, &pool);

	CHECK(job);
	osd_exec_admit(&exec, job);
	osd_job_unref(job); /* the table has its own */
	return job;
}

/* A proxy takes the job, and its sandbox is lost. */
static void lose_one(struct osd_job *job)
{
	struct osd_fair_entry *entry = osd_fair_queue_pop(&pool.queue);

	CHECK(entry == &job->entry);
	osd_fair_queue_unreserve(&pool.queue, entry);
	osd_exec_delay(&exec, job, 1000000);
	CHECK(exec.delayed == job);
}

/* Hold and release queue a delayed job early, and only once, however often they are repeated. */
static void test_released_before_its_time(void)
{
	struct osd_job *job = admit_job(0x10000), *other = admit_job(0x10001);

	lose_one(job);
	osd_exec_enqueue(&exec, job);
	CHECK(exec.delayed == NULL && pool.queue.entry_count == 2);
	CHECK(osd_fair_queue_pop(&pool.queue) == &job->entry);
	CHECK(osd_fair_queue_pop(&pool.queue) == &other->entry);
	CHECK(pool.queue.entry_count == 0);
	osd_exec_forget(&exec, job);
	osd_exec_forget(&exec, other);
}

/* A job that ends while it is delayed is neither in the queue nor in the list. */
static void test_forgotten_while_delayed(void)
{
	struct osd_job *first = admit_job(0x10000), *second = admit_job(0x10001);

	lose_one(first);
	lose_one(second);
	CHECK(exec.delayed == second && second->next_delayed == first);
	osd_exec_forget(&exec, first);
	CHECK(exec.delayed == second && !second->next_delayed);
	osd_exec_forget(&exec, second);
	CHECK(!exec.delayed && exec.table.count == 0 && pool.queue.place_count == 0);
}

/* It is in the list once. */
static void test_delayed_twice(void)
{
	struct osd_job *first = admit_job(0x10000), *second = admit_job(0x10001);

	lose_one(first);
	lose_one(second);
	osd_exec_delay(&exec, first, 1000000);
	CHECK(exec.delayed == first && first->next_delayed == second && !second->next_delayed);
	osd_exec_forget(&exec, second);
	osd_exec_forget(&exec, first);
	CHECK(!exec.delayed);
}

static bool is_woken(void)
{
	uint64_t count;

	return read(exec.monitor.wake, &count, sizeof(count)) == sizeof(count);
}

/* A deadline earlier than all others wakes the monitor.  The monitor's own deadlines do not wake
 * it: it would spin until then. */
static void test_monitor_is_woken_once(void)
{
	is_woken();
	exec.monitor.usec = 1000;
	osd_alarm_by(&exec.monitor, 900);
	CHECK(is_woken() && exec.monitor.usec == 900);
	osd_alarm_by(&exec.monitor, 900);
	CHECK(!is_woken());
	exec.monitor.awake = true;
	osd_alarm_by(&exec.monitor, 800);
	CHECK(!is_woken() && exec.monitor.usec == 800);
	exec.monitor.awake = false;
}

static void set_progress(struct osd_job *job, uint16_t progress)
{
	osd_job_set_progress(job, progress, (const uint8_t *)"m", 1);
}

static struct osd_job_record see(const struct osd_job *job)
{
	struct osd_job_record record;

	osd_job_seen(job, &record);
	return record;
}

/* Progress that waited is seen once it is due.  A read changes nothing, and one generation never has
 * two meanings. */
static void test_progress(void)
{
	struct osd_job *job = admit_job(0x10000);
	struct osd_job_record first, waits, due, next;

	set_progress(job, 10);
	first = see(job);
	CHECK_EQ(first.progress, 10);
	job->progress_usec += HOUR_USEC;
	set_progress(job, 20);
	waits = see(job);
	CHECK(waits.progress == 10 && waits.generation == first.generation);
	job->progress_usec = 0;
	due = see(job);
	CHECK(due.progress == 20 && due.generation == first.generation + 1);
	CHECK(job->progress_waits && job->record.progress == 10);
	CHECK_EQ(see(job).generation, due.generation);
	set_progress(job, 15); /* it never decreases */
	next = see(job);
	CHECK(next.progress == 20 && next.generation > due.generation);
	job->progress_usec += HOUR_USEC;
	set_progress(job, 30);
	job->progress_usec = 0;
	due = see(job);
	osd_job_touch(job);
	next = see(job);
	CHECK(next.progress == 30 && next.generation == due.generation + 1);
	osd_exec_forget(&exec, job);
}

int main(void)
{
	osd_lock_init(&exec.lock, OSD_RANK_EXEC);
	pool.exec = &exec;
	pthread_cond_init(&exec.changed, NULL);
	exec.monitor.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(osd_job_table_init(&exec.table) == OSD_OK);
	CHECK(osd_fair_queue_init(&pool.queue, 10, 10) == OSD_OK);
	osd_lock(&exec.lock);
	test_released_before_its_time();
	test_forgotten_while_delayed();
	test_delayed_twice();
	test_progress();
	osd_unlock(&exec.lock);
	osd_fair_queue_release(&pool.queue);
	osd_job_table_release(&exec.table);
	test_monitor_is_woken_once();
	close(exec.monitor.wake);
	return 0;
}
