/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main.c -- the steps of a sandbox, in the order of the list sandbox_steps.  If a step before READY
 * fails, the sandbox reports FAILED over the job socket and ends; nothing of the job has run then.  The
 * zygote has made the namespaces and the root (zygote.c, root.c).  The steps remove one privilege after
 * the other. */
#include "main.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/ioprio.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/util.h"
#include "confine.h"
#include "engine.h"
#include "base/fd_message.h"
#include "layers.h"
#include "manage.h"
#include "placed_result.h"
#include "proxy_client.h"
#include "scratch.h"
#include "seccomp_rules.h"
#include "wire/cursor.h"
#include "wire/proxy_frame.h"
#include "zygote_frame.h"

#define EXIT_NOT_STARTED 125
#define SHM_FD           3
#define LANDLOCK_FD      5
#define KEEP_FROM        64 /* descriptors are parked from here on before 0-4 are laid out */
#define REPORT_MAX       (60u << 10) /* of a job's traceback; the payload page keeps as much */
#define LINE_BYTES_MAX   512u

struct sandbox {
	const struct osd_confinement *confinement;
	const struct osd_sandbox_start *start;
	struct osd_shm *shm;
	int landlock_fd;
	bool laid_out; /* descriptors 0-4 are where the sandbox expects them */
	struct stat kept[OSD_SANDBOX_JOB_FD + 1]; /* what descriptors 0-4 are */
};

/* ---- steps: 0 or -errno ---------------------------------------------------------------------- */

static int join_cgroups(struct sandbox *s, struct osd_step *step)
{
	for (size_t i = SPAWN_FD_CGROUPS; i < s->start->fd_count; i++) {
		if (write(s->start->fds[i], "0", 1) != 1)
			return osd_step_failed(step, "join control group", NULL);
	}
	return 0;
}

/* 0 /dev/null, 1 and 2 the pipes, 3 the shared memory, 4 the job socket, 5 the Landlock ruleset. */
static int lay_out_descriptors(struct sandbox *s, struct osd_step *step)
{
	const int *fds = s->start->fds;
	const int wanted[] = {open("/dev/null", O_RDONLY | O_CLOEXEC), fds[SPAWN_FD_STDOUT],
			      fds[SPAWN_FD_STDERR], fds[SPAWN_FD_SHM], fds[SPAWN_FD_JOB],
			      s->start->landlock_fd};
	int parked[sizeof(wanted) / sizeof(wanted[0])];
	const size_t count = s->start->landlock_fd < 0 ? LANDLOCK_FD : LANDLOCK_FD + 1;

	for (size_t i = 0; i < count; i++) {
		parked[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, KEEP_FROM);
		if (parked[i] < 0)
			return osd_step_failed(step, "park a descriptor", NULL);
	}
	for (size_t i = 0; i < count; i++) {
		if (dup2(parked[i], (int)i) < 0)
			return osd_step_failed(step, "place a descriptor", NULL);
	}
	if (syscall(SYS_close_range, (unsigned)count, UINT_MAX, 0) < 0)
		return osd_step_failed(step, "close inherited descriptors", NULL);
	s->landlock_fd = s->start->landlock_fd < 0 ? -1 : LANDLOCK_FD;
	s->laid_out = true;
	for (size_t i = 0; i <= OSD_SANDBOX_JOB_FD; i++)
		fstat((int)i, &s->kept[i]);
	return 0;
}

static int map_shared_memory(struct sandbox *s, struct osd_step *step)
{
	void *memory = mmap(NULL, OSD_SHM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, SHM_FD, 0);

	if (memory == MAP_FAILED)
		return osd_step_failed(step, "map the shared memory", NULL);
	close(SHM_FD);
	s->shm = memory;
	osd_proxy_attach(s->shm, OSD_SANDBOX_JOB_FD);
	osd_manage_attach(s->shm, s->confinement->engine->interrupt);
	return 0;
}

static int limit(struct sandbox *s, struct osd_step *step)
{
	bool final = s->confinement->layers & OSD_LIMITS_RAISABLE;

	return osd_confine_rlimits(&s->start->limits, s->start->file_bytes, final, step);
}

/* For good, without supplementary groups. */
static int change_user(struct sandbox *s, struct osd_step *step)
{
	unsigned id = s->confinement->uid_base + 1 + s->start->slot;

	if (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
		return osd_step_failed(step, "change user", NULL);
	/* the change of user cleared it; with a process namespace the kernel ends the sandbox with the
	 * zygote anyway */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return osd_step_failed(step, "ask for the parent-death signal", NULL);
	return 0;
}

/* The working directory, for good: the filter has no chdir. */
static int enter_scratch(struct sandbox *s, struct osd_step *step)
{
	char path[OSD_SCRATCH_PATH];

	if (!osd_scratch_possible(s->confinement->layers))
		return 0;
	osd_scratch_path(s->start->slot, path);
	return chdir(path) < 0 ? osd_step_failed(step, "enter the scratch folder", NULL) : 0;
}

static int give_up_privileges(struct sandbox *s, struct osd_step *step)
{
	(void)s;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return osd_step_failed(step, "give up new privileges", NULL);
	return 0;
}

static int enter_landlock(struct sandbox *s, struct osd_step *step)
{
	if (syscall(SYS_landlock_restrict_self, s->landlock_fd, 0) < 0)
		return osd_step_failed(step, "enter Landlock", NULL);
	close(s->landlock_fd);
	return 0;
}

/* For processor and disk. */
static int let_others_go_first(struct sandbox *s, struct osd_step *step)
{
	(void)s, (void)step;
	osd_thread_take_long_turns();
	/* Not the idle class: other threads may wait for a page that a script is reading. */
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
		IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, IOPRIO_BE_NR - 1));
	return 0;
}

static int start_engine(struct sandbox *s, struct osd_step *step)
{
	const struct osd_engine *engine = s->confinement->engine;

	return engine->start ? engine->start(s->start->limits.memory_bytes, step) : 0;
}

static int install_filter(struct sandbox *s, struct osd_step *step)
{
	return osd_seccomp_install(&s->confinement->filter, step);
}

static int begin_engine(struct sandbox *s, struct osd_step *step)
{
	const struct osd_engine *engine = s->confinement->engine;

	return osd_step_end(step, engine->begin && !engine->begin() ? -ENOEXEC : 0,
			    "run a first script");
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct {
	int (*take)(struct sandbox *, struct osd_step *);
	unsigned layers; /* the step runs if the level has one of these; 0: always */
} sandbox_steps[] = {
	{join_cgroups, OSD_LAYERS_CGROUP},
	{lay_out_descriptors, 0},
	{map_shared_memory, 0},
	{limit, OSD_LAYER_RLIMITS},
	{change_user, OSD_LAYER_UID},
	{enter_scratch, OSD_LAYER_MOUNTNS},
	{give_up_privileges, OSD_LAYER_NO_NEW_PRIVS},
	{enter_landlock, OSD_LAYER_LANDLOCK},
	{let_others_go_first, 0},
	{start_engine, 0},
	{install_filter, OSD_LAYER_SECCOMP},
	{begin_engine, 0},
};

/* Until the descriptors are laid out, the job socket has the number that the zygote received. */
static int job_socket(const struct sandbox *s)
{
	return s->laid_out ? OSD_SANDBOX_JOB_FD : s->start->fds[SPAWN_FD_JOB];
}

static void tell(const struct sandbox *s, enum osd_job_message type, const char *text)
{
	uint8_t message[OSD_JOB_HEADER + 256];
	size_t length = osd_job_message_encode(type, text, strlen(text), message, sizeof(message));

	/* write, not send: the filter has no send */
	if (write(job_socket(s), message, length) < 0)
		_exit(EXIT_NOT_STARTED); /* the target is gone */
}

static void take_steps(struct sandbox *s)
{
	for (size_t i = 0; i < sizeof(sandbox_steps) / sizeof(sandbox_steps[0]); i++) {
		unsigned layers = sandbox_steps[i].layers;
		struct osd_step step;
		char text[240];
		int error;

		if (layers && !(layers & s->confinement->layers))
			continue;
		error = sandbox_steps[i].take(s, &step);
		if (!error)
			continue;
		snprintf(text, sizeof(text), "cannot %s: %s", step.what, strerror(-error));
		tell(s, OSD_JOB_FAILED, text);
		_exit(EXIT_NOT_STARTED);
	}
}

/* ---- the job --------------------------------------------------------------------------------- */

static uint8_t message[OSD_JOB_RUN_BYTES + OSD_JOB_TEXTS_MAX]; /* the last RUN */

/* Name, method, args, code and machine code follow one another: behind the header, or in the sealed memfd. */
static bool find_texts(struct osd_engine_job *job, const uint8_t *texts, size_t length)
{
	const struct osd_job_run *run = &job->run;

	if (osd_job_run_texts(run) != length)
		return false;
	job->name = (const char *)texts;
	job->method = job->name + run->name_bytes;
	job->args = job->method + run->method_bytes;
	job->code = run->code_kept ? NULL : job->args + run->args_bytes;
	job->machine = run->machine_bytes && job->code ? job->code + run->code_bytes : NULL;
	return true;
}

/* They follow the header, or lie in the shared memory until the end of the job; length: of what follows the header. */
static bool find_near_texts(const struct sandbox *s, struct osd_engine_job *job, size_t length)
{
	const struct osd_job_run *run = &job->run;

	if (!run->in_shared)
		return find_texts(job, message + OSD_JOB_RUN_BYTES, length);
	return length == 0 && find_texts(job, (const uint8_t *)s->shm + OSD_SHM_TEXTS_AT,
					 (size_t)osd_job_run_texts(run));
}

static bool map_texts(struct osd_engine_job *job, int memfd)
{
	struct stat status;
	void *bytes;

	if (fstat(memfd, &status) < 0 || status.st_size <= 0)
		return false;
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, memfd, 0);
	return bytes != MAP_FAILED && find_texts(job, bytes, (size_t)status.st_size);
}

static void forget_texts(struct osd_engine_job *job)
{
	size_t length = (size_t)osd_job_run_texts(&job->run);

	if (job->run.in_memfd)
		munmap((void *)job->name, length);
	else if (!job->run.in_shared)
		explicit_bzero((void *)job->name, length);
}

/* Waits for RUN.  False: the target closed the socket, or sent something else. */
static bool receive_job(const struct sandbox *s, struct osd_engine_job *job)
{
	int memfd = -1;
	size_t fd_count;
	ssize_t length =
		osd_fd_receive(OSD_SANDBOX_JOB_FD, message, sizeof(message), &memfd, 1, &fd_count);
	bool fine;

	if (length < (ssize_t)OSD_JOB_RUN_BYTES || !osd_job_run_decode(message, &job->run) ||
	    job->run.in_memfd != (fd_count == 1))
		return false;
	if (!job->run.in_memfd)
		return find_near_texts(s, job, (size_t)length - OSD_JOB_RUN_BYTES);
	fine = map_texts(job, memfd);
	close(memfd);
	return fine;
}

static bool take_job(const struct sandbox *s, struct osd_engine_job *job, const uint8_t *bytes,
		     size_t length)
{
	if (length < OSD_JOB_RUN_BYTES || length > sizeof(message))
		return false;
	memcpy(message, bytes, length); /* calls of the job overwrite the bytes */
	return osd_job_run_decode(message, &job->run) && !job->run.in_memfd &&
	       find_near_texts(s, job, length - OSD_JOB_RUN_BYTES);
}

/* Calls NEXT, after the clean-up.  *ret_again: there is no job: clean up wholly and call again.  False: the target
 * broke the protocol. */
static bool receive_next_job(const struct sandbox *s, struct osd_engine_job *job, bool *ret_again)
{
	const struct osd_call call = {.op = OSD_CALL_NEXT};
	struct osd_answer answer;
	const uint8_t *body;

	if (!osd_proxy_next(&call, &answer, &body) || answer.code != OSD_ANSWER_OK)
		return false;
	*ret_again = answer.a == OSD_AFTER_CLEAN;
	if (*ret_again)
		return true;
	return answer.body_bytes ? take_job(s, job, body, answer.body_bytes) : receive_job(s, job);
}

/* ---- before another job ------------------------------------------------------------------ */

/* Whether 0-2 and the job socket are the same files as before, in blocking mode.  Closes all others. */
static bool clean_descriptors(const struct sandbox *s)
{
	static const int wanted[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO,
				     OSD_SANDBOX_JOB_FD};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const struct stat *before = &s->kept[wanted[i]];
		struct stat now;

		if (fstat(wanted[i], &now) < 0 || now.st_dev != before->st_dev ||
		    now.st_ino != before->st_ino || fcntl(wanted[i], F_GETFL) & O_NONBLOCK)
			return false;
	}
	return syscall(SYS_close_range, SHM_FD, SHM_FD, 0) == 0 &&
	       syscall(SYS_close_range, OSD_SANDBOX_JOB_FD + 1, UINT_MAX, 0) == 0;
}

/* Whether the job left its scratch folder empty.  Check this after closing its descriptors: a deleted
 * file that is still open counts.  If it is not empty, the sandbox ends, and the zygote mounts a new
 * folder. */
static bool scratch_is_clean(const struct sandbox *s)
{
	return !osd_scratch_possible(s->confinement->layers) || osd_scratch_is_empty(osd_scratch_here);
}

static bool clean(const struct sandbox *s, bool lightly)
{
	const struct osd_engine *engine = s->confinement->engine;

	if (lightly && engine->clean_lightly)
		return engine->clean_lightly() &&
		       syscall(SYS_close_range, OSD_SANDBOX_JOB_FD + 1, UINT_MAX, 0) == 0;
	return engine->clean && engine->clean() && clean_descriptors(s) && scratch_is_clean(s);
}

/* Cleans up and waits for the next job.  If it cannot do both, the sandbox ends. */
static void go_on(const struct sandbox *s, struct osd_engine_job *job, bool lightly, int code)
{
	bool again = true;

	for (; again; lightly = false) {
		if (!clean(s, lightly))
			_exit(code);
		osd_manage_begin(); /* the next job's usage counts from here */
		if (!receive_next_job(s, job, &again))
			_exit(EXIT_NOT_STARTED);
	}
}

/* ---- run ------------------------------------------------------------------------------------- */

/* FINISH: be32 n, the report, the result or its place, one line for people.  Returns the proxy's answer. */
static enum osd_after_job send_finish(const struct osd_engine_result *result)
{
	static uint8_t body[4 + REPORT_MAX + OSD_FINISH_RESULT_MAX + LINE_BYTES_MAX];
	size_t report = OSD_MIN(result->report_bytes, (size_t)REPORT_MAX);
	uint32_t place;
	bool placed =
		result->form && osd_result_is_placed(result->result, result->result_bytes, &place);
	struct osd_wr w = osd_wr_init(body, sizeof(body));
	struct osd_call call = {.op = OSD_CALL_FINISH,
				.a = result->exit_code,
				.b = result->kind | (result->kept_code ? OSD_FINISH_KEPT : 0) |
				     (placed ? OSD_FINISH_PLACED : 0),
				.partition_id = result->form,
				.object_id = result->result_bytes};
	struct osd_answer answer;
	const uint8_t *unused;

	osd_wr_be(&w, report, 4);
	osd_wr_bytes(&w, result->report, report);
	if (placed)
		osd_wr_be(&w, place, 4);
	else
		osd_wr_bytes(&w, result->result, result->result_bytes);
	osd_wr_bytes(&w, result->line, OSD_MIN(result->line_bytes, (size_t)LINE_BYTES_MAX));
	call.body_bytes = (uint32_t)osd_wr_used(&w);
	osd_manage_sample();
	if (!osd_proxy_call(&call, body, &answer, &unused) || answer.a > OSD_AFTER_CLEAN_LIGHTLY)
		return OSD_AFTER_EXIT;
	return (enum osd_after_job)answer.a;
}

static void refuse_to_compile(const struct osd_engine *engine, struct osd_engine_result *ret_result)
{
	static char line[64];

	snprintf(line, sizeof(line), "the engine %s does not compile", engine->name);
	*ret_result = (struct osd_engine_result){.exit_code = 1,
						 .kind = OSD_FINISH_BAD_CODE,
						 .report = line,
						 .line = line,
						 .report_bytes = strlen(line),
						 .line_bytes = strlen(line)};
}

/* Run the job and report its end; *ret_code: to exit with. */
static enum osd_after_job run_job(const struct osd_engine *engine, const struct osd_engine_job *job,
				  int *ret_code)
{
	struct osd_engine_result result;
	enum osd_after_job after;

	osd_proxy_open(true);
	osd_placed_begin(job);
	if (!job->run.compile)
		engine->call(job, &result);
	else if (engine->compile)
		engine->compile(job, &result);
	else
		refuse_to_compile(engine, &result);
	after = send_finish(&result);
	osd_proxy_open(false);
	*ret_code = (int)(result.exit_code & 0xff);
	return after;
}

noreturn void osd_sandbox_main(const struct osd_confinement *confinement,
			       const struct osd_sandbox_start *start)
{
	struct sandbox sandbox = {.confinement = confinement, .start = start, .landlock_fd = -1};
	struct osd_engine_job job = {0};

	take_steps(&sandbox);
	osd_manage_begin();
	tell(&sandbox, OSD_JOB_READY, "");
	if (!receive_job(&sandbox, &job))
		_exit(EXIT_NOT_STARTED);
	for (;;) {
		int code;
		enum osd_after_job after = run_job(confinement->engine, &job, &code);

		if (after == OSD_AFTER_EXIT)
			_exit(code);
		forget_texts(&job);
		go_on(&sandbox, &job, after == OSD_AFTER_CLEAN_LIGHTLY, code);
	}
}
