/* SPDX-License-Identifier: GPL-2.0-or-later */
/* run.c -- creates a run, starts it, sends the job to the sandbox, and samples its use (run.h).
 * Elsewhere: when it starts (proxy.c, start.c), how it ends (end.c). */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_message.h"
#include "base/util.h"
#include "exec/run/run.h"
#include "function/function.h"
#include "security/box.h"

/* ---- runs ------------------------------------------------------------------------------------ */

struct osd_run *osd_run_ref(struct osd_run *run)
{
	run->references++;
	return run;
}

/* The output thread may drop the last reference, in a short race with the proxy.  Releasing here
 * under exec->lock is still safe: the proxy has already closed the session's objects, so nothing
 * below blocks. */
void osd_run_unref(struct osd_run *run)
{
	if (--run->references > 0)
		return;
	osd_job_unref(run->job);
	osd_sandbox_unref(run->sandbox);
	osd_output_destroy(&run->output);
	free(run);
}

void osd_run_sample_lengths(struct osd_run *run, struct osd_job_record *record)
{
	record->result_length = atomic_load(&run->session.result_length);
	record->stdout_length = atomic_load(&run->output.stdout_length);
	record->stderr_length = atomic_load(&run->output.stderr_length);
	if (run->handed_over_usec)
		record->run_usec = osd_monotonic_usec() - run->handed_over_usec;
}

void osd_run_sample(struct osd_run *run, struct osd_job_record *record)
{
	struct osd_session *session = &run->session;
	const struct osd_shm *shm = run->sandbox->shm;
	uint64_t total, kernel;

	osd_run_sample_lengths(run, record);
	record->bytes_read = atomic_load(&session->bytes_read);
	record->bytes_written = atomic_load(&session->bytes_written);
	record->calls = atomic_load(&session->calls);
	if (record->stderr_length > OSD_JOB_PAYLOAD_MAX)
		record->flags |= OSD_JOB_STDERR_CUT;
	if (run->handed_over_usec == 0)
		return;
	record->sandbox_id = run->sandbox->id;
	record->starved_usec = atomic_load(&run->sandbox->starved_usec);
	run->cpu_usec = total = osd_sandbox_cpu_usec(run->sandbox);
	if (total < run->sandbox->cpu_before_usec)
		return; /* it is gone */
	total -= run->sandbox->cpu_before_usec;
	kernel = atomic_load(&shm->cpu_system_usec); /* the split into user and system is the
						      * sandbox's own report */
	kernel -= OSD_MIN(kernel, run->sandbox->system_before_usec);
	record->cpu_system_usec = OSD_MIN(kernel, total);
	record->cpu_user_usec = total - record->cpu_system_usec;
	record->peak_bytes = atomic_load(&shm->peak_bytes);
}

struct osd_run *osd_run_create(struct osd_exec *exec, struct osd_sandbox *sandbox)
{
	struct osd_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->references = 1;
	run->exec = exec;
	run->sandbox = sandbox;
	for (unsigned area = 0; area < OSD_SHM_AREAS; area++)
		run->calls_seen[area] = atomic_load(&sandbox->shm->areas[area].call.seq);
	sandbox->cpu_before_usec = osd_sandbox_cpu_usec(sandbox);
	sandbox->system_before_usec = atomic_load(&sandbox->shm->cpu_system_usec);
	if (sandbox->jobs == 0)
		sandbox->peak_first_bytes = atomic_load(&sandbox->shm->peak_bytes);
	return run;
}

static enum osd_session_denied denied_by(const struct osd_job_record *record)
{
	const struct osd_job_function *function = &record->function;

	if (record->flags & OSD_JOB_COMPILE)
		return OSD_DENIES_ALL;
	if (record->flags & OSD_JOB_PURE)
		return OSD_DENIES_CHANGES;
	if (!function->id.object_id || function->access == OSD_JOB_WRITES)
		return OSD_DENIES_NOTHING;
	return function->access == OSD_JOB_READS ? OSD_DENIES_CHANGES : OSD_DENIES_ALL;
}

void osd_run_set_job(struct osd_run *run, struct osd_job *job)
{
	bool plain = job->record.flags & OSD_JOB_PLAIN;

	osd_assert_held(&run->exec->lock);
	run->job = job;
	osd_output_init(&run->output, run->exec->objects,
			plain ? (struct osd_object_id){0} : job->record.id,
			job->record.limits.output_bytes);
	run->session = (struct osd_session){
		.objects = run->exec->objects,
		.host = &run->exec->runs->host,
		.zone = job->record.zone,
		.job = job->record.id,
		.limits = job->record.limits,
		.rights = job->record.rights,
		.running = {denied_by(&job->record), job->record.function.id.partition_id},
		.shares_lock = OSD_SESSION_SHARES_LOCK,
		/* The rights have not been checked yet. */
		.policy_seen = UINT64_MAX,
		.wrote = job->record.flags & OSD_JOB_WROTE,
		.plain = plain,
		.stage = job->record.flags & OSD_JOB_STAGE,
		.texts = (const uint8_t *)run->sandbox->shm + OSD_SHM_TEXTS_AT,
		.placed_stays = job->reads_once,
		.result_hint = job->record.flags & OSD_JOB_STAGE ? job->record.args_length : 0,
	};
	run->keeps_code = job->record.function.id.object_id &&
			  run->sandbox->supply->reuse != OSD_REUSE_NEVER;
	job->run = run;
	run->policy_swept = UINT64_MAX;
	run->exec->running_count++;
	run->started_usec = job->started_usec;
	job->pool->load.running++;
	job->pool->load.started_usec += run->started_usec;
	if (job->record.rights.limited && run->exec->runs->limited_count++ == 0)
		osd_wake(run->exec->output_wake);
}

/* Whether its client might run the next such job.  The kernel's count of waits is the first thread's: of one thread,
 * and not of an engine that has others. */
static bool is_compared(const struct osd_job *job)
{
	const struct osd_job_record *record = &job->record;

	return record->flags & OSD_JOB_PURE && record->limits.processes == 1 &&
	       strcmp(job->pool->config.engine, OSD_POOL_ENGINE) == 0;
}

/* exec->lock held.  From here on the monitor and the output thread watch the job. */
static void set_deadlines(struct osd_run *run)
{
	const struct osd_job_limits *limits = &run->job->record.limits;
	struct osd_sandbox *sandbox = run->sandbox;

	osd_assert_held(&run->exec->lock);
	sandbox->jobs++;
	sandbox->cpu_limit_usec = limits->cpu_usec;
	sandbox->grace_usec = osd_job_grace_usec(&run->job->record);
	sandbox->wall_limit_usec = limits->wall_usec;
	sandbox->wall_usec = run->handed_over_usec + limits->wall_usec;
	sandbox->ping_usec = run->handed_over_usec + 200000;
	sandbox->pinged = false;
	sandbox->user = run;
	osd_starvation_begin(sandbox, run->handed_over_usec);
	if (is_compared(run->job))
		osd_starvation_measure(sandbox);
}

void osd_run_begin(struct osd_run *run)
{
	osd_assert_held(&run->exec->lock);
	run->handed_over_usec = run->exec->runs->handed_usec = osd_monotonic_usec();
	set_deadlines(run);
	osd_histogram_add(&run->job->pool->figures.start,
			  run->handed_over_usec - run->job->started_usec);
	osd_job_apply(run->exec, run->job, OSD_JOB_EVENT_HAND_OVER, OSD_REASON_NONE);
}

/* ---- what the sandboxes ask (struct osd_sandbox_ops) ------------------------------------------ */

enum osd_sandbox_work osd_run_work_of(const struct osd_sandbox *sandbox)
{
	const struct osd_run *run = sandbox->user;

	if (run->job->record.state != OSD_STATE_RUNNING)
		return OSD_WORK_NONE;
	return run->job->end_reason ? OSD_WORK_TO_END : OSD_WORK_RUNS;
}

/* A job whose rights were revoked gets no grace time: until its end it could read what it has
 * mapped. */
uint64_t osd_run_grace_of(const struct osd_sandbox *sandbox)
{
	const struct osd_run *run = sandbox->user;
	bool revoked = run->job->end_reason == OSD_REASON_REVOKED;

	return revoked ? OSD_MIN(sandbox->grace_usec, osd_exec_limits[OSD_LIMIT_GRACE].standard)
		       : sandbox->grace_usec;
}

void osd_run_out_of_time(struct osd_sandbox *sandbox, bool cpu)
{
	const struct osd_run *run = sandbox->user;

	osd_exec_request_end(run->exec, run->job,
			     cpu ? OSD_REASON_CPU_LIMIT : OSD_REASON_WALL_LIMIT);
}

void osd_run_name_job(struct osd_run *run, struct osd_job *job, const struct osd_job_record *record)
{
	if (!osd_story_is_told(job))
		return;
	osd_lock(&run->exec->lock);
	osd_sandbox_name_job(run->exec->sandboxes, run->sandbox, record->id.partition_id,
			     record->id.object_id);
	osd_unlock(&run->exec->lock);
}

void osd_run_note_start(struct osd_run *run, const struct osd_job_record *record)
{
	osd_story_started(run->job, record, run->sandbox->id, run->sandbox->pid);
	if (!run->sent)
		osd_run_name_job(run, run->job, record);
}

/* ---- to the sandbox --------------------------------------------------------------------------- */

static int make_memfd(const struct iovec *parts, size_t count)
{
	OSD_CLEANUP_CLOSE int fd = memfd_create("iosd-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int kept;

	if (fd < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (!osd_write_all(fd, parts[i].iov_base, parts[i].iov_len))
			return -1;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	kept = fd;
	fd = -1;
	return kept;
}

static bool send_by_socket(struct osd_run *run, struct iovec *parts, size_t count,
			   const struct osd_job_run *message)
{
	OSD_CLEANUP_CLOSE int memfd = message->in_memfd ? make_memfd(parts + 1, count - 1) : -1;

	if (message->in_memfd && memfd < 0)
		return false;
	if (message->in_memfd || message->in_shared)
		count = 1;
	return osd_fd_send_parts(run->sandbox->job_fd, parts, count, &memfd, message->in_memfd,
				 MSG_DONTWAIT) == 0;
}

/* Copies the parts, one after the other, unless they are there. */
static size_t gather(uint8_t *to, const struct iovec *parts, size_t count)
{
	size_t done = 0;

	for (size_t i = 0; i < count; i++) {
		if (parts[i].iov_len && parts[i].iov_base != to + done)
			memcpy(to + done, parts[i].iov_base, parts[i].iov_len);
		done += parts[i].iov_len;
	}
	return done;
}

/* Answers NEXT.  by_socket: the job lies in the job socket; else it goes into the shared memory. */
static void answer_next(struct osd_run *run, const struct iovec *parts, size_t count, bool by_socket)
{
	uint8_t *shared = (uint8_t *)run->sandbox->shm;
	struct osd_answer answer = {.code = OSD_ANSWER_OK};

	if (!by_socket)
		answer.body_bytes = (uint32_t)gather(shared + OSD_SHM_BODY_AT, parts, count);
	osd_answer_encode(&answer, shared + OSD_SHM_FRAME_AT + OSD_FRAME_BYTES);
	osd_shm_post(&run->sandbox->shm->areas[0].answer);
}

struct content {
	uint8_t *args, *code, *machine;
	uint32_t code_length, machine_length;
	bool secret; /* the code must not lie in the shared memory */
};

/* Long texts go into the shared memory if they fit.  Its pages are there already, so this costs one copy.  Those whose
 * arguments are placed there stay with them. */
static void choose_place(struct osd_job_run *message, bool placed, bool secret)
{
	if (!placed &&
	    (uint64_t)message->args_bytes + osd_job_run_code_sent(message) <= OSD_JOB_INLINE_MAX)
		return;
	message->in_shared = !secret && osd_job_run_texts(message) <= OSD_SHM_TEXTS_BYTES;
	message->in_memfd = !message->in_shared;
}

/* The place by choose_place, for the most code that may be sent.  Otherwise the arguments might be copied twice. */
uint8_t *osd_run_place_args(struct osd_run *run, const struct osd_job *job,
			    const struct osd_job_record *record)
{
	size_t before = strlen(record->name) + strlen(record->function.method);
	uint64_t after = job->code ? job->code->length + job->code->machine_length : 0;

	if (!job->code || osd_box_is(job->code->bytes, job->code->length) ||
	    before + record->args_length + after > OSD_SHM_TEXTS_BYTES)
		return NULL;
	return run->placed_args = (uint8_t *)run->sandbox->shm + OSD_SHM_TEXTS_AT + before;
}

void osd_run_clear_args(struct osd_run *run, size_t length)
{
	memset(run->placed_args, 0, length);
	run->placed_args = NULL;
}

static struct osd_job_run message_of(const struct osd_job_record *record,
				     const struct content *content)
{
	return (struct osd_job_run){
		.job_partition = record->id.partition_id,
		.job_object = record->id.object_id,
		.zone_partition = record->zone.id.partition_id,
		.zone_object = record->zone.id.object_id,
		.zone_type = (uint8_t)record->zone.type,
		.args_encoding = record->args_encoding,
		.code_form = osd_exec_code_form(record->client_flags),
		.name_bytes = (uint32_t)strlen(record->name),
		.method_bytes = (uint32_t)strlen(record->function.method),
		.args_bytes = record->args_length,
		.code_bytes = content->code_length,
		.machine_bytes = content->machine_length,
		.grace_usec = (uint32_t)osd_job_grace_usec(record),
		.array_before = record->array.object_id
					? (uint32_t)(record->id.object_id - record->array.object_id)
					: 0,
		.array_index = record->array.index,
		.native = record->flags & OSD_JOB_NATIVE,
		.compile = record->flags & OSD_JOB_COMPILE,
		.stage = record->flags & OSD_JOB_STAGE && !(record->flags & OSD_JOB_COMPILE),
	};
}

static bool send_content(struct osd_run *run, const struct osd_job_record *record,
			 const struct content *content)
{
	struct osd_job_run message = message_of(record, content);
	uint8_t header[OSD_JOB_RUN_BYTES];
	char name[OSD_JOB_NAME_MAX + 1], method[OSD_JOB_METHOD_MAX + 1];
	struct iovec parts[] = {
		{header, sizeof(header)},
		{name, message.name_bytes},
		{method, message.method_bytes},
		{content->args, record->args_length},
		{content->code, content->code_length},
		{content->machine, content->machine_length},
	};
	bool waits = run->sandbox->ready_again, by_socket;

	if (run->keeps_code && !content->secret)
		message.code_slot = run->code_slot =
			osd_kept_codes_place(&run->sandbox->codes, record->code_sha256, record->name,
					     &message.code_kept);
	if (message.code_kept)
		parts[4].iov_len = parts[5].iov_len = 0;
	memcpy(name, record->name, sizeof(name));
	memcpy(method, record->function.method, sizeof(method));
	choose_place(&message, run->placed_args, content->secret);
	by_socket = !waits || content->secret || message.in_memfd;
	osd_job_run_encode(&message, header);
	if (message.in_shared)
		gather((uint8_t *)run->sandbox->shm + OSD_SHM_TEXTS_AT, parts + 1,
		       OSD_ARRAY_SIZE(parts) - 1);
	if (by_socket && !send_by_socket(run, parts, OSD_ARRAY_SIZE(parts), &message))
		return false;
	if (waits)
		answer_next(run, parts, message.in_shared ? 1 : OSD_ARRAY_SIZE(parts), by_socket);
	return true;
}

/* The machine code of a function, of the present moment: a job in the queue does not keep it. */
static struct osd_function_code *find_machine(struct osd_run *run, const struct osd_job *job,
					      const struct osd_job_record *record)
{
	struct osd_functions *functions = run->exec->runs->host.functions;

	if (job->code && job->code->machine_length)
		return osd_function_code_ref(job->code);
	return functions ? osd_function_machine(functions, record->function.id, record->code_sha256)
			 : NULL;
}

/* Encrypted code of a function is plain only from here on: in this buffer, and in the sandbox's memory. */
bool osd_run_send(struct osd_run *run, const struct osd_job *job,
		  const struct osd_job_record *record, uint8_t *content)
{
	OSD_CLEANUP(osd_function_code_putp) struct osd_function_code *machine = NULL;
	struct content sends = {
		.args = run->placed_args ? run->placed_args : content,
		.code = job->code ? job->code->bytes : content + record->args_length,
		.code_length = record->code_length,
	};
	uint8_t *plain = NULL;
	size_t length = 0;
	bool sent;

	if (!record->function.id.object_id)
		return send_content(run, record, &sends);
	if (!osd_box_is(sends.code, record->code_length)) {
		machine = find_machine(run, job, record);
		if (machine) {
			sends.machine = machine->bytes + machine->length;
			sends.machine_length = (uint32_t)machine->machine_length;
		}
		return send_content(run, record, &sends);
	}
	if (osd_box_open(run->exec->objects, sends.code, record->code_length, &plain, &length) !=
	    OSD_OK)
		return false;
	sends.code = plain;
	sends.code_length = (uint32_t)length;
	sends.secret = true;
	sent = send_content(run, record, &sends);
	osd_box_free(plain, length);
	return sent;
}
