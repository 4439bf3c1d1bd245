/* SPDX-License-Identifier: GPL-2.0-or-later */
/* java_natives.c -- see java_natives.h. */
#include "java_natives.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/util.h"
#include "java_vm.h"
#include "job_calls.h"

static const struct osd_engine_job *job;
static jobject failure, death; /* classes */
static jni_id new_failure, new_death;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;    /* calls of job_calls.h */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* to the pipes */
static int end_fd = -1;					    /* readable once the job has to end */

void osd_java_natives_begin(const struct osd_engine_job *given)
{
	job = given;
	osd_job_calls_begin(given);
}

void osd_java_natives_end(void)
{
	const uint64_t one = 1;

	osd_job_calls_end();
	if (write(end_fd, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

void osd_java_natives_close(void)
{
	pthread_mutex_lock(&turn); /* for good */
}

/* ---- exceptions ------------------------------------------------------------------------------ */

static void throw(jni_env *env, const char *class, const char *message)
{
	jobject found = (*env)->FindClass(env, class);

	if (found)
		(*env)->ThrowNew(env, found, message);
}

static void throw_death(jni_env *env)
{
	jobject thrown = (*env)->NewObjectA(env, death, new_death, NULL);

	if (thrown)
		(*env)->Throw(env, thrown);
}

jobject osd_java_array(jni_env *env, const void *bytes, size_t length)
{
	jobject array = (*env)->NewByteArray(env, (int32_t)length);

	if (array)
		(*env)->SetByteArrayRegion(env, array, 0, (int32_t)length, bytes);
	return array;
}

static void throw_failure(jni_env *env, int32_t code, const char *why)
{
	jni_value values[2] = {{.i = code}, {.l = osd_java_array(env, why, strlen(why))}};
	jobject thrown = values[1].l ? (*env)->NewObjectA(env, failure, new_failure, values) : NULL;

	if (thrown)
		(*env)->Throw(env, thrown);
}

/* Whether array[at] to array[at + length - 1] exist; false: an exception is pending. */
static bool within(jni_env *env, jobject array, int32_t at, int32_t length)
{
	int32_t bytes;

	if (!array) {
		throw(env, "java/lang/NullPointerException", "the array is null");
		return false;
	}
	bytes = (*env)->GetArrayLength(env, array);
	if (at >= 0 && length >= 0 && at <= bytes && length <= bytes - at)
		return true;
	throw(env, "java/lang/IndexOutOfBoundsException", "the range is outside the array");
	return false;
}

/* NULL: an exception is pending.  The caller frees it. */
static void *allocate(jni_env *env, size_t length)
{
	void *memory = malloc(OSD_MAX(length, (size_t)1));

	if (!memory)
		throw(env, "java/lang/OutOfMemoryError", "no memory for a call of iosd.Osd");
	return memory;
}

/* The bytes of an array, and its length: a call that refuses arrays of more than `most` bytes needs no more of
 * them.  NULL: an exception is pending.  The caller frees it. */
static uint8_t *copy_of(jni_env *env, jobject array, int32_t most, size_t *ret_length)
{
	uint8_t *bytes;
	int32_t length;

	if (!within(env, array, 0, 0))
		return NULL;
	length = (*env)->GetArrayLength(env, array);
	*ret_length = (size_t)length;
	length = OSD_MIN(length, most);
	bytes = allocate(env, (size_t)length);
	if (bytes)
		(*env)->GetByteArrayRegion(env, array, 0, length, bytes);
	return bytes;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* False: an exception is pending. */
static bool enter(jni_env *env)
{
	if (osd_job_calls_ended()) {
		throw_death(env);
		return false;
	}
	pthread_mutex_lock(&turn);
	return true;
}

/* result: of a call of job_calls.h.  Returned negative: an exception is pending. */
static int64_t leave(jni_env *env, int64_t result)
{
	char why[256] = "";

	if (result < 0 && result != OSD_JOB_MALFORMED) /* the error begins with the call's name */
		snprintf(why, sizeof(why), "%s", strstr(osd_job_calls_error(), ": ") + 2);
	pthread_mutex_unlock(&turn);
	if (result >= 0)
		return result;
	if (osd_job_calls_ended())
		throw_death(env);
	else if (result == OSD_JOB_MALFORMED)
		throw(env, "java/lang/InternalError", "malformed answer from the proxy");
	else
		throw_failure(env, (int32_t)-result, why);
	return -1;
}

#define CALL(env, name, ...) (enter(env) ? leave(env, osd_job_##name(__VA_ARGS__)) : -1)

/* ---- data ------------------------------------------------------------------------------------ */

static int32_t serve_read(jni_env *env, jobject JNI_UNUSED(class), int64_t partition,
			  int64_t object, int64_t offset, jobject to, int32_t at, int32_t length)
{
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	int32_t done = 0, piece;
	int64_t count;

	if (!within(env, to, at, length))
		return 0;
	bytes = allocate(env, OSD_MIN((size_t)length, (size_t)OSD_CALL_IO_MAX));
	if (!bytes)
		return 0;
	do {
		piece = OSD_MIN(length - done, (int32_t)OSD_CALL_IO_MAX);
		count = CALL(env, read, (uint64_t)partition, (uint64_t)object,
			     (uint64_t)offset + (uint64_t)done, bytes, (size_t)piece);
		if (count < 0)
			return 0;
		(*env)->SetByteArrayRegion(env, to, at + done, (int32_t)count, bytes);
		done += (int32_t)count;
	} while (done < length && count == piece);
	return done;
}

/* Tries the rest of a piece again if only a part could be written, so that this call gets its error. */
static void serve_write(jni_env *env, jobject JNI_UNUSED(class), int64_t partition, int64_t object,
			int64_t offset, jobject from, int32_t at, int32_t length)
{
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	int32_t done = 0, piece;
	int64_t written;

	if (!within(env, from, at, length) || length == 0)
		return;
	bytes = allocate(env, OSD_MIN((size_t)length, (size_t)OSD_CALL_IO_MAX));
	while (bytes && done < length) {
		piece = OSD_MIN(length - done, (int32_t)OSD_CALL_IO_MAX);
		(*env)->GetByteArrayRegion(env, from, at + done, piece, bytes);
		written = CALL(env, write, (uint64_t)partition, (uint64_t)object,
			       (uint64_t)offset + (uint64_t)done, bytes, (size_t)piece);
		if (written < 0)
			return;
		done += (int32_t)written;
	}
}

static int64_t serve_length(jni_env *env, jobject JNI_UNUSED(class), int64_t partition,
			    int64_t object)
{
	int64_t length = CALL(env, length, (uint64_t)partition, (uint64_t)object);

	return OSD_MAX(length, 0);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static jobject serve_getattr(jni_env *env, jobject JNI_UNUSED(class), int64_t partition,
			     int64_t object, int32_t page, int32_t number)
{
	OSD_CLEANUP_FREE uint8_t *bytes = allocate(env, UINT16_MAX);
	int64_t length;

	if (!bytes)
		return NULL;
	length = CALL(env, getattr, (uint64_t)partition, (uint64_t)object, (uint32_t)page,
		      (uint32_t)number, bytes, UINT16_MAX);
	return length < 0 ? NULL : osd_java_array(env, bytes, (size_t)length);
}

static void serve_setattr(jni_env *env, jobject JNI_UNUSED(class), int64_t partition,
			  int64_t object, int32_t page, int32_t number, jobject value)
{
	size_t length;
	OSD_CLEANUP_FREE uint8_t *bytes = copy_of(env, value, UINT16_MAX, &length);

	if (bytes)
		CALL(env, setattr, (uint64_t)partition, (uint64_t)object, (uint32_t)page,
		     (uint32_t)number, bytes, length);
}

/* ---- the job --------------------------------------------------------------------------------- */

static jobject serve_args(jni_env *env, jobject JNI_UNUSED(class))
{
	return osd_java_array(env, job->args, job->run.args_bytes);
}

static int64_t serve_zone(jni_env *JNI_UNUSED(env), jobject JNI_UNUSED(class), int32_t which)
{
	const uint64_t parts[] = {job->run.zone_partition, job->run.zone_object, job->run.zone_type};

	return which >= 0 && which < (int32_t)OSD_ARRAY_SIZE(parts) ? (int64_t)parts[which] : -1;
}

static void serve_result(jni_env *env, jobject JNI_UNUSED(class), int32_t encoding, jobject array)
{
	size_t length;
	OSD_CLEANUP_FREE uint8_t *bytes = copy_of(env, array, INT32_MAX, &length);

	if (bytes)
		CALL(env, result, encoding != 0, bytes, length);
}

static void serve_progress(jni_env *env, jobject JNI_UNUSED(class), int32_t share, jobject text)
{
	size_t length;
	OSD_CLEANUP_FREE uint8_t *bytes = copy_of(env, text, UINT16_MAX, &length);

	if (bytes)
		CALL(env, progress, (uint32_t)share, bytes, length);
}

/* Waits for room in the pipe, and writes no more than fits.  False: nobody reads, or the call has to end. */
static bool write_some(int stream, const uint8_t *bytes, size_t length, size_t *done)
{
	struct pollfd ready[2] = {{.fd = stream, .events = POLLOUT},
				  {.fd = end_fd, .events = POLLIN}};
	ssize_t count;

	if (poll(ready, 2, -1) < 0)
		return errno == EINTR;
	if (ready[1].revents)
		return false;
	count = write(stream, bytes + *done, OSD_MIN(length - *done, (size_t)PIPE_BUF));
	*done += count > 0 ? (size_t)count : 0;
	return count > 0 || errno == EINTR;
}

static uint8_t serve_log(jni_env *env, jobject JNI_UNUSED(class), int32_t stream, jobject array,
			 int32_t at, int32_t length)
{
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	size_t done = 0;
	bool fine = stream == STDOUT_FILENO || stream == STDERR_FILENO;

	if (!within(env, array, at, length))
		return false;
	bytes = allocate(env, (size_t)length);
	if (!bytes)
		return false;
	(*env)->GetByteArrayRegion(env, array, at, length, bytes);
	pthread_mutex_lock(&writing);
	while (fine && done < (size_t)length)
		fine = write_some(stream, bytes, (size_t)length, &done);
	pthread_mutex_unlock(&writing);
	if (osd_job_calls_ended())
		throw_death(env);
	return fine;
}

/* ---- the tables ------------------------------------------------------------------------------ */

#define ROW(name, signature, function) {name, signature, (jni_unused)(function)}

static const jni_native of_osd[] = {
	ROW("read", "(JJJ[BII)I", serve_read),
	ROW("write", "(JJJ[BII)V", serve_write),
	ROW("length", "(JJ)J", serve_length),
	ROW("getattr", "(JJII)[B", serve_getattr),
	ROW("setattr", "(JJII[B)V", serve_setattr),
	ROW("args", "()[B", serve_args),
	ROW("zone", "(I)J", serve_zone),
	ROW("result", "(I[B)V", serve_result),
	ROW("progress", "(I[B)V", serve_progress),
};
static const jni_native of_output[] = {ROW("log", "(I[BII)Z", serve_log)};

static bool connect_class(jni_env *env, const char *name, const jni_native *natives, size_t count)
{
	jobject class = osd_java_class(env, name);

	return class && (*env)->RegisterNatives(env, class, natives, (int32_t)count) == 0;
}

bool osd_java_natives_connect(jni_env *env)
{
	end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	failure = osd_java_class(env, "OsdException");
	death = (*env)->FindClass(env, "java/lang/ThreadDeath");
	if (end_fd < 0 || !failure || !death)
		return false;
	death = (*env)->NewGlobalRef(env, death);
	new_failure = (*env)->GetMethodID(env, failure, "<init>", "(I[B)V");
	new_death = (*env)->GetMethodID(env, death, "<init>", "()V");
	return new_failure && new_death &&
	       connect_class(env, "Osd", of_osd, OSD_ARRAY_SIZE(of_osd)) &&
	       connect_class(env, "Output", of_output, OSD_ARRAY_SIZE(of_output));
}
