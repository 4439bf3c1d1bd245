/* SPDX-License-Identifier: GPL-2.0-or-later */
/* java_engine.c -- the engine `java` (engine.h): functions in a JAR, run by the virtual machine of Java 17.
 *
 * A sandbox starts its virtual machine before the filter, and waits.  It runs one job, then the process ends:
 * nobody could tell what a job has left in the machine.
 *
 * Threads: the process's main thread waits in `call`, and never enters the machine.  The machine's thread
 * `main` is another one, which runs the job.  So whatever happens there, also System.exit or a crash, `call`
 * returns and the end of the job is reported.  The nudges of iosd-sandboxd reach the first thread alone: the
 * others have the signal blocked. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "engine.h"
#include "java_natives.h"
#include "java_vm.h"
#include "job_calls.h"
#include "manage.h"
#include "rlimits.h"

#define ENTRY	    "main"
#define STACK_BYTES (4u << 20) /* of the thread `main` */
#define TELL_BYTES  (256u << 10)
#define REPORT_MAX  (60u << 10)
#define LINE_MAX_   512u
#define SPARE_BYTES (16u << 20)

/* The end of the job; written by the thread that has claimed it, before it posts `woken`. */
static struct {
	atomic_flag claimed;
	_Atomic bool known;
	enum osd_finish_kind kind;
	uint32_t code;
	size_t line_bytes, report_bytes;
	char line[LINE_MAX_], report[REPORT_MAX];
} end = {.claimed = ATOMIC_FLAG_INIT};

static sem_t begun; /* the machine has started, or has not */
static sem_t given; /* there is a job */
static sem_t woken; /* the job is over, or has to end */
static jni_vm *vm;
static jobject host; /* the class iosd.Host */
static jni_id run_method, end_method;
static const struct osd_engine_job *job;

static struct {
	uint64_t memory_bytes;
	int error;
	struct osd_step step;
} beginning;

_Static_assert(OSD_JAVA_THREADS <= OSD_ENGINE_THREADS_MAX, "limits leave room for them");

static void wait_for(sem_t *what)
{
	while (sem_wait(what) < 0 && errno == EINTR)
		;
}

/* The thread must not go on: the process ends soon. */
static _Noreturn void stay(void)
{
	static sem_t never;

	for (;;)
		wait_for(&never);
}

/* ---- the end of the job ---------------------------------------------------------------------- */

static bool claim(void)
{
	return !atomic_flag_test_and_set(&end.claimed);
}

static void settle(enum osd_finish_kind kind, uint32_t code)
{
	if (kind != OSD_FINISH_OK && osd_job_calls_ended())
		kind = OSD_FINISH_ENDED;
	end.kind = kind;
	end.code = code;
	atomic_store(&end.known, true);
	sem_post(&woken);
}

static void say(enum osd_finish_kind kind, uint32_t code, const char *text)
{
	end.line_bytes = (size_t)snprintf(end.line, sizeof(end.line), "%s", text);
	end.report_bytes = (size_t)snprintf(end.report, sizeof(end.report), "%s\n", text);
	settle(kind, code);
}

/* Of a call that could not report how it ended.  If it had to end, another ThreadDeath may have come while it did. */
static void say_without_report(enum osd_finish_kind kind, const char *why)
{
	say(kind, 1, osd_job_calls_ended() ? "java.lang.ThreadDeath" : why);
}

static size_t copy_out(jni_env *env, jobject array, char *to, size_t room)
{
	size_t length = array ? (size_t)(*env)->GetArrayLength(env, array) : 0;

	length = OSD_MIN(length, room);
	if (length > 0)
		(*env)->GetByteArrayRegion(env, array, 0, (int32_t)length, to);
	return length;
}

/* Host.finish */
static void serve_finish(jni_env *env, jobject JNI_UNUSED(class), int32_t kind, jobject line,
			 jobject report)
{
	if (!claim())
		return;
	if (kind != OSD_FINISH_OK && !line) {
		say_without_report((enum osd_finish_kind)kind,
				   "the virtual machine had no memory for a report");
		return;
	}
	end.line_bytes = copy_out(env, line, end.line, sizeof(end.line));
	end.report_bytes = copy_out(env, report, end.report, sizeof(end.report));
	settle((enum osd_finish_kind)kind, kind != OSD_FINISH_OK);
}

/* Host.ended */
static uint8_t serve_ended(jni_env *JNI_UNUSED(env), jobject JNI_UNUSED(class))
{
	return osd_job_calls_ended();
}

/* System.exit and Runtime.halt, on a thread of the machine, which has stopped all others. */
static void exit_hook(int32_t code)
{
	char text[32];

	if (!job)
		_exit(1);
	if (claim()) {
		snprintf(text, sizeof(text), "System.exit(%d)", (int)code);
		if (code & 0xff)
			say(OSD_FINISH_EXIT, (uint32_t)code & 0xff, text);
		else
			settle(OSD_FINISH_OK, 0);
	}
	stay();
}

/* The machine cannot go on: it has crashed, or got no memory for itself. */
static void abort_hook(void)
{
	void *spare;

	if (!job)
		_exit(1);
	if (claim()) {
		spare = mmap(NULL, SPARE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
		if (spare == MAP_FAILED)
			say(OSD_FINISH_MEMORY, 1,
			    "the virtual machine got no more memory for itself");
		else
			say(OSD_FINISH_EXCEPTION, 1, "the virtual machine has crashed");
	}
	stay();
}

/* ---- the thread `main` of the machine -------------------------------------------------------- */

static bool connect_host(jni_env *env)
{
	static const jni_native natives[] = {
		{"finish", "(I[B[B)V", (jni_unused)serve_finish},
		{"ended", "()Z", (jni_unused)serve_ended},
	};
	jni_id prepare;

	host = osd_java_class(env, "Host");
	if (!host || (*env)->RegisterNatives(env, host, natives, OSD_ARRAY_SIZE(natives)) != 0)
		return false;
	prepare = (*env)->GetStaticMethodID(env, host, "prepare", "()V");
	run_method = (*env)->GetStaticMethodID(env, host, "run", "([B[B[B)V");
	end_method = (*env)->GetStaticMethodID(env, host, "end", "()V");
	if (!prepare || !run_method || !end_method || !osd_java_natives_connect(env))
		return false;
	(*env)->CallStaticVoidMethodA(env, host, prepare, NULL);
	return !(*env)->ExceptionCheck(env);
}

static int begin_machine(jni_env **ret_env)
{
	const struct osd_java_start start = {.memory_bytes = beginning.memory_bytes,
					     .exit = (jni_unused)exit_hook,
					     .abort = abort_hook};
	int error = osd_java_start(&start, &vm, ret_env, &beginning.step);

	if (!error && !connect_host(*ret_env))
		error = osd_step_end(&beginning.step, -ENOEXEC, "prepare Java");
	return error;
}

static void run_job(jni_env *env)
{
	const struct osd_job_run *given_run = &job->run;
	const char *method = given_run->method_bytes ? job->method : ENTRY;
	size_t method_bytes = given_run->method_bytes ? given_run->method_bytes : strlen(ENTRY);
	jni_value values[3];

	values[0].l = osd_java_array(env, job->code, given_run->code_bytes);
	values[1].l = osd_java_array(env, method, method_bytes);
	values[2].l = osd_java_array(env, job->args, given_run->args_bytes);
	if (values[0].l && values[1].l && values[2].l)
		(*env)->CallStaticVoidMethodA(env, host, run_method, values);
	(*env)->ExceptionClear(env);
	if (claim()) /* it has reported nothing: no heap, or its last exception came while it did */
		say_without_report(OSD_FINISH_EXCEPTION,
				   "the virtual machine did not report how the call ended");
}

static void *be_main(void *unused)
{
	jni_env *env;

	beginning.error = begin_machine(&env);
	sem_post(&begun);
	if (!beginning.error) {
		wait_for(&given);
		run_job(env);
	}
	return unused;
}

/* ---- the process's main thread --------------------------------------------------------------- */

static int start_thread(void *(*work)(void *), size_t stack)
{
	pthread_attr_t attributes;
	sigset_t nudge, before;
	pthread_t thread;
	int error;

	sigemptyset(&nudge);
	sigaddset(&nudge, OSD_NUDGE_SIGNAL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, stack);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_BLOCK, &nudge, &before);
	error = pthread_create(&thread, &attributes, work, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}

static int start(uint64_t memory_bytes, struct osd_step *step)
{
	int error;

	beginning.memory_bytes = memory_bytes;
	error = start_thread(be_main, STACK_BYTES);
	if (error)
		return osd_step_end(step, error, "start a thread");
	wait_for(&begun);
	*step = beginning.step;
	return beginning.error;
}

/* Raises ThreadDeath in the job.  If it cannot, the job is killed when its time is over. */
static void *tell_end(void *unused)
{
	jni_env *env;

	if ((*vm)->AttachCurrentThreadAsDaemon(vm, &env, NULL) != 0)
		return unused;
	(*env)->CallStaticVoidMethodA(env, host, end_method, NULL);
	(*env)->ExceptionClear(env);
	(*vm)->DetachCurrentThread(vm);
	return unused;
}

static void wait_for_end(void)
{
	bool told = false;

	for (;;) {
		wait_for(&woken);
		if (atomic_load(&end.known))
			return;
		if (osd_job_calls_ended() && !told)
			told = start_thread(tell_end, TELL_BYTES) == 0;
	}
}

static void call(const struct osd_engine_job *given_job, struct osd_engine_result *ret_result)
{
	job = given_job;
	osd_java_natives_begin(job);
	if (!job->run.code_form) {
		sem_post(&given);
		wait_for_end();
	} else if (claim()) {
		say(OSD_FINISH_BAD_CODE, 1, "code: a JAR is sent as it is, not packed");
	}
	osd_java_natives_close();
	*ret_result = (struct osd_engine_result){.exit_code = end.code,
						 .kind = end.kind,
						 .report = end.report,
						 .line = end.line,
						 .report_bytes = end.report_bytes,
						 .line_bytes = end.line_bytes};
	osd_job_calls_give_result(ret_result);
}

static void interrupt(void)
{
	osd_java_natives_end();
	sem_post(&woken);
}

const struct osd_engine osd_engine_java = {
	.name = "java",
	.folders = {OSD_JAVA_HOME, OSD_JAVA_SETTINGS},
	.threads = OSD_JAVA_THREADS,
	.load = osd_java_load,
	.start = start,
	.call = call,
	.interrupt = interrupt,
};
