/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_life.c -- a sandbox that is told to end is no job's, whatever it says on the way.  With real sandboxes:
 * tests/jobs/test_live_pools.py. */
#include "exec/sandbox/sandbox.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/test.h"

#define HOUR_USEC UINT64_C(3600000000)

static const size_t no_job;
static unsigned ready_calls;

static void count_ready(void *arg)
{
	(void)arg;
	ready_calls++;
}

static void ignore(void *arg)
{
	(void)arg;
}

static const struct osd_sandbox_ops ops = {.ready = count_ready, .unserved = ignore};

/* A target with one supply, and the test as its iosd-sandboxd. */
struct stage {
	struct osd_lock lock;
	pthread_cond_t changed;
	struct osd_alarm alarm;
	struct osd_sandboxes sandboxes;
	struct osd_supply supply;
	int service; /* the other end of the connection */
};

static void set_up(struct stage *stage)
{
	int pair[2];

	*stage = (struct stage){
		.alarm = {.usec = OSD_NEVER, .awake = true, .wake = -1},
		.supply = {.name = "default",
			   .min = 1,
			   .max = 1,
			   .active = 1,
			   .alive_max = 4,
			   .idle_usec = 1000000,
			   .serving = true,
			   .waiting = &no_job},
	};
	osd_lock_init(&stage->lock, OSD_RANK_EXEC);
	pthread_cond_init(&stage->changed, NULL);
	stage->sandboxes = (struct osd_sandboxes){
		.lock = &stage->lock,
		.changed = &stage->changed,
		.alarm = &stage->alarm,
		.watch_epoll = epoll_create1(EPOLL_CLOEXEC),
		.pipes_epoll = epoll_create1(EPOLL_CLOEXEC),
		.demanded = "best",
		.ops = &ops,
	};
	osd_sandboxes_init(&stage->sandboxes);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	stage->sandboxes.fd = pair[0];
	stage->service = pair[1];
	stage->sandboxes.welcomed = true;
	stage->sandboxes.allowed = 4;
	osd_supply_add(&stage->sandboxes, &stage->supply);
	osd_lock(&stage->lock);
	osd_sandboxes_refill(&stage->sandboxes);
	CHECK(stage->sandboxes.list && stage->sandboxes.list->state == OSD_SANDBOX_SPAWNING);
	ready_calls = 0;
}

static void tear_down(struct stage *stage)
{
	osd_sandboxes_release(&stage->sandboxes);
	osd_unlock(&stage->lock);
	close(stage->service);
	close(stage->sandboxes.watch_epoll);
	close(stage->sandboxes.pipes_epoll);
}

static int shared_memory(void)
{
	const uint32_t magic = OSD_SHM_MAGIC;
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK_EQ(ftruncate(fd, OSD_SHM_BYTES), 0);
	CHECK_EQ(write(fd, &magic, sizeof(magic)), sizeof(magic));
	CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

/* iosd-sandboxd reports that the sandbox was forked.  Returns the sandbox's end of its job socket. */
static int report_fork(struct stage *stage, uint64_t id)
{
	int job[2], output[2], errors[2], fds[OSD_SPAWNED_FDS];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, job), 0);
	CHECK_EQ(pipe2(output, O_CLOEXEC), 0);
	CHECK_EQ(pipe2(errors, O_CLOEXEC), 0);
	close(output[1]);
	close(errors[1]);
	fds[SPAWNED_PIDFD] = epoll_create1(EPOLL_CLOEXEC); /* one that is never readable */
	fds[SPAWNED_SHM] = shared_memory();
	fds[SPAWNED_JOB] = job[0];
	fds[SPAWNED_STDOUT] = output[0];
	fds[SPAWNED_STDERR] = errors[0];
	osd_sandbox_spawned(&stage->sandboxes, id, getpid(), fds);
	close(fds[SPAWNED_SHM]);
	return job[1];
}

static void say_ready(struct stage *stage, uint64_t id, int job)
{
	uint8_t bytes[64];
	size_t length = osd_job_message_encode(OSD_JOB_READY, NULL, 0, bytes, sizeof(bytes));

	CHECK_EQ(write(job, bytes, length), length);
	osd_sandboxes_event(&stage->sandboxes, id << 2 | OSD_EVENT_JOB_SOCKET);
}

/* Of a script. */
static struct osd_sandbox_order order_of(struct stage *stage, const char *principal)
{
	return (struct osd_sandbox_order){.supply = &stage->supply, .principal = principal};
}

static struct osd_sandbox *take(struct stage *stage)
{
	const struct osd_sandbox_order order = order_of(stage, "addr:a");

	return osd_sandbox_take(&stage->sandboxes, &order);
}

enum moment { NEVER, WHILE_SPAWNING, WHILE_WARMING, WHILE_TAKEN };

/* The pool's sandboxes are replaced, or this one is killed, at a moment of its life. */
static void test_ended_at(enum moment moment)
{
	struct osd_sandbox *taken;
	struct stage stage;
	uint64_t id;
	int job;

	set_up(&stage);
	id = stage.sandboxes.list->id;
	if (moment == WHILE_SPAWNING)
		osd_supply_replace(&stage.sandboxes, &stage.supply);
	job = report_fork(&stage, id);
	if (moment == WHILE_WARMING)
		osd_supply_replace(&stage.sandboxes, &stage.supply);
	say_ready(&stage, id, job);
	taken = take(&stage);
	if (moment == NEVER || moment == WHILE_TAKEN) {
		CHECK(taken && taken->id == id);
		CHECK_EQ(ready_calls, 1);
		if (moment == WHILE_TAKEN)
			osd_sandbox_kill(&stage.sandboxes, taken);
		osd_sandbox_put_back(&stage.sandboxes, taken);
		CHECK_EQ(ready_calls, moment == NEVER ? 2 : 1);
		CHECK_EQ(osd_supply_ready(&stage.sandboxes, &stage.supply), moment == NEVER);
	} else {
		CHECK_EQ(ready_calls, 0);
		CHECK(!taken);
		CHECK(!osd_supply_has_unused(&stage.sandboxes, &stage.supply));
	}
	CHECK(moment == NEVER || !take(&stage));
	close(job);
	tear_down(&stage);
}

/* A stage with one ready sandbox, and the sandbox's end of its job socket. */
static int set_up_ready(struct stage *stage)
{
	int job;

	set_up(stage);
	job = report_fork(stage, stage->sandboxes.list->id);
	say_ready(stage, stage->sandboxes.list->id, job);
	return job;
}

/* A sandbox that may not be kept ends; nothing of it is left (LeakSanitizer). */
static void test_not_kept(void)
{
	struct osd_sandbox_order order;
	struct osd_sandbox *taken;
	struct stage stage;
	int job = set_up_ready(&stage);

	taken = take(&stage);
	order = order_of(&stage, "addr:a");
	stage.sandboxes.stopping = true;
	osd_sandbox_keep(&stage.sandboxes, taken, &order, 0);
	CHECK_EQ(taken->state, OSD_SANDBOX_ENDING);
	close(job);
	tear_down(&stage);
}

/* A ready sandbox has died, and iosd-sandboxd has not yet reported how.  It does not count among those that can be
 * ended. */
static void test_trimmed_beside_a_dead_one(void)
{
	struct osd_sandbox *dead;
	struct stage stage;
	int job = set_up_ready(&stage);

	dead = stage.sandboxes.list;
	osd_sandbox_died(&stage.sandboxes, dead);
	CHECK_EQ(stage.sandboxes.list->state, OSD_SANDBOX_SPAWNING);
	CHECK_EQ(dead->state, OSD_SANDBOX_READY);
	CHECK_EQ(osd_supply_ready(&stage.sandboxes, &stage.supply), 0);
	stage.supply.min = 0;
	osd_supply_trim(&stage.sandboxes, &stage.supply, osd_monotonic_usec());
	CHECK(!dead->kill_sent && !stage.sandboxes.list->kill_sent);
	close(job);
	tear_down(&stage);
}

enum limits { SET, REFUSED, AWAITED };

/* A job asks for other limits and does not start after all.  No job gets a sandbox whose limits are not known. */
static void test_given_back_with(enum limits limits)
{
	const struct osd_sandbox_limits other = {.memory_bytes = 1u << 30};
	struct osd_sandbox *taken;
	struct stage stage;
	int job = set_up_ready(&stage);
	uint64_t id = stage.sandboxes.list->id;

	taken = take(&stage);
	CHECK(osd_sandbox_ask_limits(&stage.sandboxes, taken, &other));
	if (limits == SET)
		osd_sandbox_limits_set(&stage.sandboxes, id);
	else if (limits == REFUSED)
		osd_sandbox_refused(&stage.sandboxes, id, "more than the host has");
	osd_sandbox_give_back(&stage.sandboxes, taken, false);
	CHECK_EQ(taken->state, limits == SET ? OSD_SANDBOX_READY : OSD_SANDBOX_ENDING);
	CHECK_EQ(take(&stage) == taken, limits == SET);
	if (limits == SET)
		osd_sandbox_give_back(&stage.sandboxes, taken, true);
	close(job);
	tear_down(&stage);
}

/* A sandbox that a principal has used, that has called NEXT since, and that a second job has taken. */
static struct osd_sandbox *take_kept(struct stage *stage)
{
	const struct osd_sandbox_order order = order_of(stage, "addr:a");
	const struct osd_call next = {.op = OSD_CALL_NEXT};
	struct osd_sandbox *taken = take(stage);

	osd_sandbox_keep(&stage->sandboxes, taken, &order, 0);
	osd_call_encode(&next, (uint8_t *)taken->shm + OSD_SHM_FRAME_AT);
	osd_shm_post(&taken->shm->areas[0].call);
	CHECK(take(stage) == taken);
	CHECK(osd_sandbox_is_renewed(taken, &order));
	return taken;
}

/* One that a call has used is for calls of that function with that code, of no other one, and for no script. */
static void test_kept_for_calls(void)
{
	const uint8_t code[32] = {1}, other_code[32] = {1, [31] = 1};
	struct osd_sandbox_order script, call, other;
	struct osd_sandbox *taken;
	struct stage stage;
	int job = set_up_ready(&stage);

	script = call = order_of(&stage, "addr:a");
	call.function = (struct osd_object_id){0x11, 1};
	call.code_sha256 = code;
	call.code_name = "f";
	taken = osd_sandbox_take(&stage.sandboxes, &call);
	CHECK(taken != NULL);
	osd_sandbox_keep(&stage.sandboxes, taken, &call, 0);
	CHECK(!osd_sandbox_take(&stage.sandboxes, &script));
	other = call;
	other.function.object_id++;
	CHECK(!osd_sandbox_take(&stage.sandboxes, &other));
	other = call;
	other.code_sha256 = other_code;
	CHECK(!osd_sandbox_take(&stage.sandboxes, &other));
	CHECK(!osd_sandbox_fits(taken, &script) && !osd_sandbox_fits(taken, &other));
	other = call;
	other.principal = "addr:b";
	CHECK(!osd_sandbox_take(&stage.sandboxes, &other));
	CHECK(osd_sandbox_take(&stage.sandboxes, &call) == taken);
	osd_sandbox_put_back(&stage.sandboxes, taken);
	close(job);
	tear_down(&stage);
}

static unsigned count_alive(const struct stage *stage)
{
	unsigned count = 0;

	for (const struct osd_sandbox *each = stage->sandboxes.list; each; each = each->next)
		count += each->state != OSD_SANDBOX_SPAWNING;
	return count;
}

enum end { IT_EXITS, ITS_POOL_IS_RECYCLED, REUSE_CHANGES };

/* A kept sandbox ends, or is to end, while a job has it that does not start after all.  No other job gets it, and it
 * takes no place of its pool for ever. */
static void test_put_back_over(enum end end)
{
	const struct osd_sandbox_exit status = {.wait_status = 0};
	struct osd_sandbox *taken;
	struct stage stage;
	int job = set_up_ready(&stage);
	uint64_t id = stage.sandboxes.list->id;

	taken = take_kept(&stage);
	if (end == IT_EXITS)
		osd_sandbox_exited(&stage.sandboxes, id, &status);
	else if (end == ITS_POOL_IS_RECYCLED)
		osd_supply_replace(&stage.sandboxes, &stage.supply);
	else
		osd_supply_drop_kept(&stage.sandboxes, &stage.supply);
	CHECK_EQ(count_alive(&stage), 1);
	osd_sandbox_put_back(&stage.sandboxes, taken);
	CHECK(!take(&stage));
	if (end != IT_EXITS)
		osd_sandbox_exited(&stage.sandboxes, id, &status);
	CHECK_EQ(count_alive(&stage), 0);
	close(job);
	tear_down(&stage);
}

/* The connection is lost when another kept one is ended to make room: the one that was to be kept ends with it. */
static void test_lost_while_kept(void)
{
	struct osd_sandbox_order order;
	struct osd_sandbox *taken;
	struct stage stage;
	int jobs[2];

	jobs[0] = set_up_ready(&stage);
	osd_sandbox_put_back(&stage.sandboxes, take_kept(&stage));
	CHECK_EQ(stage.sandboxes.list->state, OSD_SANDBOX_SPAWNING);
	jobs[1] = report_fork(&stage, stage.sandboxes.list->id);
	say_ready(&stage, stage.sandboxes.list->id, jobs[1]);
	taken = osd_supply_find_ready(&stage.sandboxes, &stage.supply);
	CHECK(taken != NULL);
	taken->state = OSD_SANDBOX_TAKEN;
	taken->references++;
	order = order_of(&stage, "addr:b");
	shutdown(stage.service, SHUT_RDWR);
	osd_sandbox_keep(&stage.sandboxes, taken, &order, 0);
	CHECK_EQ(stage.sandboxes.fd, -1);
	CHECK(!stage.sandboxes.list);
	close(jobs[0]);
	close(jobs[1]);
	tear_down(&stage);
}

/* Threads that a script has left behind compute while the sandbox waits for a job: it ends.  Its process is the test. */
static void test_kept_rests(bool computes)
{
	uint64_t now, deadline = OSD_NEVER, used;
	struct osd_sandbox *kept;
	struct stage stage;
	int job = set_up_ready(&stage);

	stage.supply.idle_usec = UINT64_C(300000000);
	kept = take_kept(&stage);
	osd_sandbox_put_back(&stage.sandboxes, kept);
	now = osd_monotonic_usec(); /* not before it is kept */
	for (unsigned looks = 1; looks <= 3; looks++) {
		used = osd_sandbox_cpu_usec(kept);
		while (computes && osd_sandbox_cpu_usec(kept) - used < 100000)
			;
		osd_sandboxes_check(&stage.sandboxes, now + looks * 2000000, &deadline);
	}
	CHECK_EQ(kept->kill_sent, computes);
	CHECK(computes || kept->state == OSD_SANDBOX_KEPT);
	close(job);
	tear_down(&stage);
}

/* What the target has told iosd-sandboxd: how many messages of this type. */
static unsigned told(const struct stage *stage, enum osd_sandboxd_type type)
{
	uint8_t bytes[OSD_SANDBOXD_HEADER + OSD_SANDBOXD_BODY_MAX];
	struct osd_sandboxd_message message;
	unsigned count = 0;
	ssize_t length;

	while ((length = recv(stage->service, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		if (osd_sandboxd_decode(bytes, (size_t)length, &message) &&
		    message.type == (uint16_t)type)
			count++;
	return count;
}

/* On a busy host a sandbox may starve before it is READY: somebody looks whether it does. */
static void test_start_is_looked_at(void)
{
	uint64_t deadline = OSD_NEVER, asked;
	struct stage stage;
	int job;

	set_up(&stage);
	asked = stage.sandboxes.list->asked_usec;
	job = report_fork(&stage, stage.sandboxes.list->id);
	osd_starvation_check(&stage.sandboxes, asked, &deadline);
	CHECK(deadline > asked && deadline < asked + 1000000);
	close(job);
	tear_down(&stage);
}

/* It is late to end on a busy host: iosd-sandboxd is told then, and only until the end is known. */
static void check_late_end(struct stage *stage, struct osd_sandbox *taken)
{
	const struct osd_sandbox_exit status = {.wait_status = 0};
	uint64_t deadline = OSD_NEVER, now = taken->asked_usec;

	osd_starvation_check(&stage->sandboxes, now, &deadline);
	CHECK_EQ(told(stage, OSD_SANDBOXD_SHARE), 0);
	CHECK(deadline > now && deadline < now + 1000000);
	osd_starvation_check(&stage->sandboxes, deadline, &deadline);
	CHECK_EQ(told(stage, OSD_SANDBOXD_SHARE), 1);
	osd_sandbox_exited(&stage->sandboxes, taken->id, &status);
	deadline = OSD_NEVER;
	osd_starvation_check(&stage->sandboxes, now + 1000000, &deadline);
	CHECK_EQ(told(stage, OSD_SANDBOXD_SHARE), 0);
	CHECK(deadline == OSD_NEVER);
	osd_sandbox_give_back(&stage->sandboxes, taken, true);
}

/* Its process does not come to die after a kill, or its zygote does not come to report how it ended. */
static void test_end_that_is_late(bool killed)
{
	struct osd_sandbox *taken;
	struct stage stage;
	int job = set_up_ready(&stage);

	stage.supply.cpu_share = OSD_CPU_SHARE_WHOLE;
	taken = take(&stage);
	if (killed)
		osd_sandbox_kill(&stage.sandboxes, taken);
	else
		osd_sandbox_died(&stage.sandboxes, taken);
	check_late_end(&stage, taken);
	close(job);
	tear_down(&stage);
}

/* A target that has just started lets calls wait for the first word of iosd-sandboxd, for a while. */
static void test_due(void)
{
	struct stage stage;

	set_up(&stage);
	stage.sandboxes.list->asked_usec += HOUR_USEC; /* however slow this thread is */
	CHECK(osd_supply_has_any(&stage.sandboxes, &stage.supply));
	stage.sandboxes.welcomed = false;
	CHECK(!osd_supply_has_any(&stage.sandboxes, &stage.supply)); /* no socket has a name */
	stage.sandboxes.path = "/nobody/listens";
	CHECK(!osd_supply_has_any(&stage.sandboxes, &stage.supply)); /* HELLO was long ago */
	osd_service_hello(&stage.sandboxes, 1);
	stage.sandboxes.hello_usec += HOUR_USEC;
	CHECK(osd_supply_has_any(&stage.sandboxes, &stage.supply));
	osd_service_lost(&stage.sandboxes);
	CHECK(!osd_supply_has_any(&stage.sandboxes, &stage.supply));
	stage.sandboxes.retry_usec = 0; /* as after the start */
	CHECK(osd_supply_has_any(&stage.sandboxes, &stage.supply));
	stage.sandboxes.retry_usec = osd_monotonic_usec() + 1000000;
	CHECK(!osd_supply_has_any(&stage.sandboxes, &stage.supply));
	tear_down(&stage);
}

int main(void)
{
	test_not_kept();
	test_kept_for_calls();
	test_trimmed_beside_a_dead_one();
	test_given_back_with(SET);
	test_given_back_with(REFUSED);
	test_given_back_with(AWAITED);
	test_due();
	test_start_is_looked_at();
	test_end_that_is_late(false);
	test_end_that_is_late(true);
	test_ended_at(NEVER);
	test_ended_at(WHILE_SPAWNING);
	test_ended_at(WHILE_WARMING);
	test_ended_at(WHILE_TAKEN);
	test_put_back_over(IT_EXITS);
	test_put_back_over(ITS_POOL_IS_RECYCLED);
	test_put_back_over(REUSE_CHANGES);
	test_lost_while_kept();
	test_kept_rests(false);
	test_kept_rests(true);
	return 0;
}
