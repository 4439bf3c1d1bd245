/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_output.c -- see job_output.h; and the output thread, which does what else may wait for the
 * store: ends waits whose time is over, and sweeps expired records. */
#include "exec/job_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/exec_impl.h"
#include "exec/proxy.h"
#include "exec/rights.h"

#define PIECE_BYTES    (64u << 10)
#define PIECES_AT_ONCE 16
#define SWEEP_USEC     UINT64_C(60000000)
#define SWEEP_LEAST    UINT64_C(200000) /* between two sweeps */
#define EVENTS_AT_ONCE 32
/* After a look at the pipes: a script that prints line by line is not served line by line, which
 * would take a processor. */
#define PAUSE_NSEC 1000000

void osd_output_init(struct osd_output *output, struct osd_objects *objects,
		     struct osd_object_id surrogate, uint64_t stdout_limit)
{
	*output = (struct osd_output){.objects = objects,
				      .surrogate = surrogate,
				      .stdout_limit = stdout_limit,
				      .status = OSD_OK};
	osd_lock_init(&output->lock, OSD_RANK_OUTPUT);
	osd_lock_init(&output->errors_lock, OSD_RANK_OUTPUT_ERRORS);
}

void osd_output_release(struct osd_output *output)
{
	osd_lock(&output->lock);
	osd_object_put(OSD_STEAL(output->object));
	osd_unlock(&output->lock);
	osd_lock(&output->errors_lock);
	free(OSD_STEAL(output->errors));
	output->released = true;
	osd_unlock(&output->errors_lock);
}

void osd_output_destroy(struct osd_output *output)
{
	osd_lock_destroy(&output->errors_lock);
	osd_lock_destroy(&output->lock);
}

/* ---- reading; output->lock held -------------------------------------------------------------- */

static uint16_t reason_of(enum osd_status status)
{
	return status == OSD_E_NO_SPACE || status == OSD_E_QUOTA ? OSD_REASON_NO_SPACE
								 : OSD_REASON_STORAGE;
}

static void store_stdout(struct osd_output *output, const uint8_t *bytes, size_t length)
{
	uint64_t at = atomic_load(&output->stdout_length);
	size_t fits = (size_t)OSD_MIN((uint64_t)length, output->stdout_limit - at);

	if (fits < length)
		atomic_store(&output->over_limit, true);
	if (fits == 0 || output->status != OSD_OK)
		return;
	if (!output->object)
		output->status =
			osd_object_get(output->objects, output->surrogate, &output->object);
	if (output->status == OSD_OK)
		output->status =
			osd_object_write(output->object, at, bytes, fits, OSD_DATA_RESERVE);
	if (output->status == OSD_OK)
		atomic_store(&output->stdout_length, at + fits);
	else
		atomic_store(&output->unstored, reason_of(output->status));
}

/* errors_lock held. */
static void keep_errors(struct osd_output *output, const uint8_t *bytes, size_t length)
{
	uint64_t at = atomic_load(&output->stderr_length);

	atomic_store(&output->stderr_length, at + length);
	if (!output->errors)
		output->errors = calloc(1, OSD_JOB_PAYLOAD_MAX); /* zeros where one failed */
	if (!output->errors)
		return;
	for (size_t piece; length > 0; at += piece, bytes += piece, length -= piece) {
		uint64_t ring = at < OSD_JOB_STDERR_HEAD
					? 0
					: (at - OSD_JOB_STDERR_HEAD) % OSD_JOB_STDERR_TAIL;

		if (at < OSD_JOB_STDERR_HEAD) {
			piece = (size_t)OSD_MIN((uint64_t)length, OSD_JOB_STDERR_HEAD - at);
			memcpy(output->errors + at, bytes, piece);
		} else {
			piece = (size_t)OSD_MIN((uint64_t)length, OSD_JOB_STDERR_TAIL - ring);
			memcpy(output->errors + OSD_JOB_STDERR_HEAD + ring, bytes, piece);
		}
	}
}

static void store_stderr(struct osd_output *output, const uint8_t *bytes, size_t length)
{
	osd_lock(&output->errors_lock);
	keep_errors(output, bytes, length);
	osd_unlock(&output->errors_lock);
}

typedef void store_fn(struct osd_output *output, const uint8_t *bytes, size_t length);

/* How many bytes; 0: nothing there now. */
static size_t read_piece(struct osd_output *output, int fd, store_fn *store)
{
	uint8_t bytes[PIECE_BYTES];
	ssize_t length = fd < 0 ? 0 : read(fd, bytes, sizeof(bytes));

	if (length <= 0)
		return 0;
	store(output, bytes, (size_t)length);
	return (size_t)length;
}

static bool drain(struct osd_output *output, int stdout_fd, int stderr_fd)
{
	bool more = true;

	for (int i = 0; i < PIECES_AT_ONCE && more; i++) {
		more = read_piece(output, stdout_fd, store_stdout) > 0;
		more = read_piece(output, stderr_fd, store_stderr) > 0 || more;
		/* Beyond its limit the job is being ended: what it prints is not wanted any
		 * more. */
		if (atomic_load(&output->over_limit))
			break;
	}
	return more;
}

bool osd_output_drain(struct osd_output *output, int stdout_fd, int stderr_fd)
{
	bool more = false;

	osd_lock(&output->lock);
	if (!output->closed)
		more = drain(output, stdout_fd, stderr_fd);
	osd_unlock(&output->lock);
	return more;
}

/* What lies in the pipe now: a thread or process left behind could write for ever. */
static void drain_once(struct osd_output *output, int fd, store_fn *store)
{
	int there = 0;
	size_t left, got = 1;

	if (fd < 0 || ioctl(fd, FIONREAD, &there) < 0)
		return;
	for (left = (size_t)there; left > 0 && got > 0; left -= OSD_MIN(left, got))
		got = read_piece(output, fd, store);
}

void osd_output_finish(struct osd_output *output, int stdout_fd, int stderr_fd)
{
	osd_lock(&output->lock);
	drain_once(output, stdout_fd, store_stdout);
	drain_once(output, stderr_fd, store_stderr);
	output->closed = true;
	osd_unlock(&output->lock);
}

/* errors_lock held; the length of what is kept. */
static size_t copy_errors(const struct osd_output *output, uint8_t *buffer)
{
	uint64_t length = atomic_load(&output->stderr_length);
	size_t ring;

	if (!output->errors || length == 0)
		return 0;
	if (length <= OSD_JOB_PAYLOAD_MAX) {
		memcpy(buffer, output->errors, length);
		return length;
	}
	ring = (length - OSD_JOB_STDERR_HEAD) % OSD_JOB_STDERR_TAIL;
	memcpy(buffer, output->errors, OSD_JOB_STDERR_HEAD);
	memcpy(buffer + OSD_JOB_STDERR_HEAD, output->errors + OSD_JOB_STDERR_HEAD + ring,
	       OSD_JOB_STDERR_TAIL - ring);
	memcpy(buffer + OSD_JOB_PAYLOAD_MAX - ring, output->errors + OSD_JOB_STDERR_HEAD, ring);
	return OSD_JOB_PAYLOAD_MAX;
}

bool osd_output_errors(struct osd_output *output, uint8_t *buffer, size_t *ret_length,
		       uint64_t *ret_total)
{
	bool released;

	osd_lock(&output->errors_lock);
	released = output->released;
	*ret_length = copy_errors(output, buffer);
	*ret_total = atomic_load(&output->stderr_length);
	osd_unlock(&output->errors_lock);
	return !released;
}

/* ---- the output thread ----------------------------------------------------------------------- */

static void watch(struct osd_exec *exec, int operation, int fd, uint64_t id)
{
	/* One event each, so that a flood in one pipe does not keep the thread from the others. */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = id};

	epoll_ctl(exec->output_epoll, operation, fd, &event);
}

void osd_output_watch(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	watch(exec, EPOLL_CTL_ADD, sandbox->stdout_fd, sandbox->id);
	watch(exec, EPOLL_CTL_ADD, sandbox->stderr_fd, sandbox->id);
}

void osd_output_watch_again(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	watch(exec, EPOLL_CTL_MOD, sandbox->stdout_fd, sandbox->id);
	watch(exec, EPOLL_CTL_MOD, sandbox->stderr_fd, sandbox->id);
}

void osd_output_unwatch(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	epoll_ctl(exec->output_epoll, EPOLL_CTL_DEL, sandbox->stdout_fd, NULL);
	epoll_ctl(exec->output_epoll, EPOLL_CTL_DEL, sandbox->stderr_fd, NULL);
}

/* exec->lock held.  The run of a sandbox that has one, kept alive by a reference. */
static struct osd_run *find_run(struct osd_exec *exec, uint64_t sandbox_id)
{
	struct osd_sandbox *sandbox = osd_pool_find(exec, sandbox_id);

	return sandbox && sandbox->job && sandbox->job->run ? osd_run_ref(sandbox->job->run) : NULL;
}

static bool serve_pipes(struct osd_exec *exec, uint64_t sandbox_id)
{
	struct osd_run *run;
	bool more;

	osd_lock(&exec->lock);
	run = find_run(exec, sandbox_id);
	osd_unlock(&exec->lock);
	if (!run)
		return false;
	more = osd_output_drain(&run->output, run->sandbox->stdout_fd, run->sandbox->stderr_fd);
	osd_lock(&exec->lock);
	if (run->job->run == run) {
		osd_job_touch(run->job);
		if (atomic_load(&run->output.over_limit))
			osd_exec_request_end(exec, run->job, OSD_REASON_OUTPUT_LIMIT);
		else if (atomic_load(&run->output.unstored))
			osd_exec_request_end(exec, run->job, atomic_load(&run->output.unstored));
	}
	osd_run_unref(run);
	osd_unlock(&exec->lock);
	return more;
}

/* Sandboxes whose pipes had more than one turn's worth. */
struct busy {
	uint64_t ids[OSD_EXEC_SLOTS_MAX];
	size_t count;
	bool served; /* pipes were looked at, whatever they had */
};

static void serve_and_note(struct osd_exec *exec, uint64_t id, struct busy *busy)
{
	for (size_t i = 0; i < busy->count; i++)
		if (busy->ids[i] == id)
			return;
	busy->served = true;
	if (serve_pipes(exec, id) && busy->count < OSD_ARRAY_SIZE(busy->ids))
		busy->ids[busy->count++] = id;
}

static void deliver_late(struct osd_exec *exec)
{
	struct osd_exec_wait *late;

	osd_lock(&exec->lock);
	late = OSD_STEAL(exec->late);
	osd_unlock(&exec->lock);
	osd_exec_deliver_late(exec, late);
}

static void drain_eventfd(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		osd_error("cannot read an event counter: %s", strerror(errno));
}

void osd_exec_sweep_by(struct osd_exec *exec, uint64_t expiry_msec)
{
	uint64_t now_msec = osd_wall_msec(), usec = osd_monotonic_usec();

	if (expiry_msec >= now_msec + SWEEP_USEC / 1000)
		return;
	/* One millisecond more: a record expires when its time is past. */
	usec += (expiry_msec > now_msec ? expiry_msec - now_msec : 0) * 1000 + 1000;
	if (usec >= exec->sweep_usec)
		return;
	exec->sweep_usec = usec;
	osd_wake(exec->output_wake);
}

/* exec->lock held.  Whether to sweep now; how long to wait for events after that.  rights: those are to be
 * swept, too. */
static bool sweep_due(struct osd_exec *exec, bool rights, int *ret_wait_msec)
{
	uint64_t now = osd_monotonic_usec();
	bool due = now >= exec->sweep_usec && now >= exec->swept_usec + SWEEP_LEAST;
	uint64_t next;

	if (due) {
		exec->swept_usec = now;
		exec->sweep_usec = now + SWEEP_USEC;
	}
	next = OSD_MAX(exec->sweep_usec, exec->swept_usec + SWEEP_LEAST);
	if (rights)
		next = OSD_MIN(next, now + OSD_RIGHTS_SWEEP_USEC);
	*ret_wait_msec = (int)((next - now + 999) / 1000);
	return due;
}

void *osd_output_main(void *arg)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	const struct timespec pause = {.tv_nsec = PAUSE_NSEC};
	struct busy busy = {.count = 0}, before;
	struct osd_exec *exec = arg;
	bool stopping = false, sweep, rights, rights_again = false;
	int wait_msec = 0; /* the first sweep is at the start */
	uint64_t rights_usec = 0;

	while (!stopping) {
		int count = epoll_wait(exec->output_epoll, events, EVENTS_AT_ONCE,
				       busy.count ? 0 : wait_msec);

		before = busy;
		busy.count = 0;
		busy.served = false;
		for (size_t i = 0; i < before.count; i++)
			serve_and_note(exec, before.ids[i], &busy);
		for (int i = 0; i < count; i++) {
			if (events[i].data.u64 != 0) {
				serve_and_note(exec, events[i].data.u64, &busy);
				continue;
			}
			drain_eventfd(exec->output_wake);
			deliver_late(exec);
		}
		osd_lock(&exec->lock);
		stopping = exec->stopping;
		rights = exec->limited_count || rights_again || atomic_load(&exec->policy_changed);
		sweep = sweep_due(exec, rights, &wait_msec);
		osd_unlock(&exec->lock);
		/* However often policies change, no more than one sweep in that time. */
		if (rights && !stopping && osd_monotonic_usec() >= rights_usec) {
			/* A change that comes while it runs is for the next one. */
			atomic_store(&exec->policy_changed, false);
			rights_again = !osd_rights_sweep(exec);
			rights_usec = osd_monotonic_usec() + OSD_RIGHTS_SWEEP_USEC;
		}
		if (sweep && !stopping)
			osd_exec_sweep(exec);
		if (busy.served && !stopping)
			nanosleep(&pause, NULL);
	}
	return NULL;
}
