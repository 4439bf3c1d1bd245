/* SPDX-License-Identifier: GPL-2.0-or-later */
/* java_natives.c -- see java_natives.h. */
#include "java_natives.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/util.h"
#include "java_vm.h"
#include "proxy_client.h"
#include "wire/cursor.h"

#define PROGRESS_MAX	256
#define PROGRESS_UNSAID 0xffffu
#define VALUE_MAX	65534 /* bytes of an attribute */
#define ENTRY_BYTES	16u   /* of a type 9 list entry, before the value */

static const struct osd_engine_job *job;
static jobject failure, death; /* classes */
static jni_id new_failure, new_death;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;    /* calls of the proxy, result_bytes */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER; /* to the pipes */
static uint64_t result_bytes;
static _Atomic bool ended;
static int end_fd = -1; /* readable from then on */

void osd_java_natives_begin(const struct osd_engine_job *given)
{
	job = given;
}

void osd_java_natives_end(void)
{
	const uint64_t one = 1;

	atomic_store(&ended, true);
	if (write(end_fd, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

bool osd_java_natives_ended(void)
{
	return atomic_load(&ended);
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

static void throw_failure(jni_env *env, uint16_t code, const void *message, size_t length)
{
	jni_value values[2] = {{.i = code}, {.l = osd_java_array(env, message, length)}};
	jobject thrown = values[1].l ? (*env)->NewObjectA(env, failure, new_failure, values) : NULL;

	if (thrown)
		(*env)->Throw(env, thrown);
}

static void refuse(jni_env *env, const char *why)
{
	throw_failure(env, OSD_ANSWER_INVALID, why, strlen(why));
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

/* All bytes of an array; NULL: an exception is pending.  The caller frees it. */
static uint8_t *copy_of(jni_env *env, jobject array, int32_t length)
{
	uint8_t *bytes = allocate(env, (size_t)length);

	if (bytes)
		(*env)->GetByteArrayRegion(env, array, 0, length, bytes);
	return bytes;
}

/* ---- calls of the proxy ---------------------------------------------------------------------- */

/* An answer; bytes: the part of its body that the caller has room for. */
struct reply {
	struct osd_answer answer;
	uint8_t *bytes;
	size_t room, count;
	bool fine; /* well-formed */
	char why[256];
};

static void take(struct reply *reply, const uint8_t *body)
{
	size_t length = reply->answer.body_bytes;

	if (reply->answer.code == OSD_ANSWER_OK) {
		reply->count = OSD_MIN(length, reply->room);
		if (reply->count > 0)
			memcpy(reply->bytes, body, reply->count);
	} else {
		reply->count = OSD_MIN(length, sizeof(reply->why));
		memcpy(reply->why, body, reply->count);
	}
}

/* False: an exception is pending. */
static bool heed(jni_env *env, const struct reply *reply)
{
	if (reply->fine && reply->answer.code == OSD_ANSWER_OK)
		return true;
	if (osd_java_natives_ended())
		throw_death(env);
	else if (!reply->fine)
		throw(env, "java/lang/InternalError", "malformed answer from the proxy");
	else
		throw_failure(env, reply->answer.code, reply->why, reply->count);
	return false;
}

static bool ask(jni_env *env, struct osd_call *call, const void *body, struct reply *reply)
{
	const uint8_t *found;

	if (osd_java_natives_ended()) {
		throw_death(env);
		return false;
	}
	pthread_mutex_lock(&turn);
	if (call->op == OSD_CALL_RESULT)
		call->a = result_bytes;
	reply->fine = osd_proxy_call(call, body, &reply->answer, &found);
	if (reply->fine) {
		take(reply, found);
		if (call->op == OSD_CALL_RESULT && reply->answer.code == OSD_ANSWER_OK)
			result_bytes += call->body_bytes;
	}
	pthread_mutex_unlock(&turn);
	return heed(env, reply);
}

/* ---- data ------------------------------------------------------------------------------------ */

static int32_t serve_read(jni_env *env, jobject class, int64_t partition, int64_t object,
			  int64_t offset, jobject to, int32_t at, int32_t length)
{
	struct osd_call call = {.op = OSD_CALL_READ,
				.partition_id = (uint64_t)partition,
				.object_id = (uint64_t)object,
				.a = (uint64_t)offset};
	struct reply reply = {.room = OSD_CALL_IO_MAX};
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	int32_t done = 0;

	(void)class;
	if (!within(env, to, at, length))
		return 0;
	reply.room = OSD_MIN((size_t)length, reply.room);
	bytes = reply.bytes = allocate(env, reply.room);
	if (!bytes)
		return 0;
	do {
		call.b = OSD_MIN((size_t)(length - done), (size_t)OSD_CALL_IO_MAX);
		if (!ask(env, &call, NULL, &reply))
			return 0;
		reply.count = OSD_MIN(reply.count, (size_t)call.b);
		(*env)->SetByteArrayRegion(env, to, at + done, (int32_t)reply.count, bytes);
		done += (int32_t)reply.count;
		call.a += reply.count;
	} while (done < length && reply.count == call.b);
	return done;
}

/* One piece.  False: an exception is pending.  *ret_written: its part before what could not be written, which
 * is tried again, so that it gives its own error. */
static bool write_piece(jni_env *env, const struct osd_call *call, const uint8_t *bytes,
			size_t length, size_t *ret_written)
{
	struct reply reply = {0};
	const uint8_t *found = NULL;

	if (osd_java_natives_ended()) {
		throw_death(env);
		return false;
	}
	pthread_mutex_lock(&turn);
	reply.fine = osd_proxy_write(call, bytes, length, &reply.answer, &found, ret_written);
	if (reply.fine && *ret_written == 0)
		take(&reply, found);
	pthread_mutex_unlock(&turn);
	return (reply.fine && *ret_written > 0) || heed(env, &reply);
}

static void serve_write(jni_env *env, jobject class, int64_t partition, int64_t object,
			int64_t offset, jobject from, int32_t at, int32_t length)
{
	struct osd_call call = {.op = OSD_CALL_WRITE,
				.partition_id = (uint64_t)partition,
				.object_id = (uint64_t)object,
				.a = (uint64_t)offset};
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	int32_t done = 0, piece;
	size_t written;

	(void)class;
	if (!within(env, from, at, length) || length == 0)
		return;
	bytes = allocate(env, OSD_MIN((size_t)length, (size_t)OSD_CALL_IO_MAX));
	if (!bytes)
		return;
	while (done < length) {
		piece = OSD_MIN(length - done, (int32_t)OSD_CALL_IO_MAX);
		(*env)->GetByteArrayRegion(env, from, at + done, piece, bytes);
		if (!write_piece(env, &call, bytes, (size_t)piece, &written))
			return;
		done += (int32_t)written;
		call.a += written;
	}
}

static int64_t serve_length(jni_env *env, jobject class, int64_t partition, int64_t object)
{
	struct osd_call call = {.op = OSD_CALL_LENGTH,
				.partition_id = (uint64_t)partition,
				.object_id = (uint64_t)object};
	struct reply reply = {0};

	(void)class;
	return ask(env, &call, NULL, &reply) ? (int64_t)reply.answer.a : 0;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static jobject serve_getattr(jni_env *env, jobject class, int64_t partition, int64_t object,
			     int32_t page, int32_t number)
{
	uint8_t name[8];
	struct osd_call call = {.op = OSD_CALL_GETATTR,
				.partition_id = (uint64_t)partition,
				.object_id = (uint64_t)object,
				.body_bytes = sizeof(name)};
	struct reply reply = {.room = ENTRY_BYTES + VALUE_MAX};
	OSD_CLEANUP_FREE uint8_t *bytes = reply.bytes = allocate(env, reply.room);
	size_t length;

	(void)class;
	osd_put_be(name, (uint32_t)page, 4);
	osd_put_be(name + 4, (uint32_t)number, 4);
	if (!bytes || !ask(env, &call, name, &reply))
		return NULL;
	length = reply.count < ENTRY_BYTES ? 0 : osd_get_be(bytes + 14, 2);
	if (reply.count >= ENTRY_BYTES && length <= reply.count - ENTRY_BYTES)
		return osd_java_array(env, bytes + ENTRY_BYTES, length);
	throw(env, "java/lang/InternalError", "malformed answer from the proxy");
	return NULL;
}

static void serve_setattr(jni_env *env, jobject class, int64_t partition, int64_t object,
			  int32_t page, int32_t number, jobject value)
{
	struct osd_call call = {.op = OSD_CALL_SETATTR,
				.partition_id = (uint64_t)partition,
				.object_id = (uint64_t)object};
	OSD_CLEANUP_FREE uint8_t *entry = NULL;
	struct reply reply = {0};
	int32_t length;

	(void)class;
	if (!within(env, value, 0, 0))
		return;
	length = (*env)->GetArrayLength(env, value);
	if (length > VALUE_MAX) {
		refuse(env, "a value has 65534 bytes at most");
		return;
	}
	call.body_bytes = (ENTRY_BYTES + (uint32_t)length + 7) / 8 * 8;
	entry = allocate(env, call.body_bytes);
	if (!entry)
		return;
	memset(entry, 0, call.body_bytes);
	osd_put_be(entry, (uint32_t)page, 4);
	osd_put_be(entry + 4, (uint32_t)number, 4);
	osd_put_be(entry + 14, (uint32_t)length, 2);
	(*env)->GetByteArrayRegion(env, value, 0, length, entry + ENTRY_BYTES);
	ask(env, &call, entry, &reply);
}

/* ---- the job --------------------------------------------------------------------------------- */

static jobject serve_args(jni_env *env, jobject class)
{
	(void)class;
	return osd_java_array(env, job->args, job->run.args_bytes);
}

static int64_t serve_zone(jni_env *env, jobject class, int32_t which)
{
	const uint64_t parts[] = {job->run.zone_partition, job->run.zone_object, job->run.zone_type};

	(void)env, (void)class;
	return which >= 0 && which < (int32_t)OSD_ARRAY_SIZE(parts) ? (int64_t)parts[which] : -1;
}

static void serve_result(jni_env *env, jobject class, int32_t encoding, jobject array)
{
	struct osd_call call = {.op = OSD_CALL_RESULT, .b = encoding != 0};
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	struct reply reply = {0};
	int32_t length, done = 0;

	(void)class;
	if (!within(env, array, 0, 0))
		return;
	length = (*env)->GetArrayLength(env, array);
	bytes = copy_of(env, array, length);
	if (!bytes)
		return;
	do {
		call.body_bytes = (uint32_t)OSD_MIN(length - done, (int32_t)OSD_CALL_IO_MAX);
		if (!ask(env, &call, bytes + done, &reply))
			return;
		done += (int32_t)call.body_bytes;
	} while (done < length);
}

static void serve_progress(jni_env *env, jobject class, int32_t share, jobject text)
{
	struct osd_call call = {.op = OSD_CALL_PROGRESS,
				.a = share == -1 ? PROGRESS_UNSAID : (uint64_t)share};
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	struct reply reply = {0};
	int32_t length;

	(void)class;
	if (!within(env, text, 0, 0))
		return;
	length = (*env)->GetArrayLength(env, text);
	if (length > PROGRESS_MAX || share < -1 || share > 1000) {
		refuse(env, "progress is 0 to 1000, or -1, with a text of 256 bytes at most");
		return;
	}
	bytes = copy_of(env, text, length);
	call.body_bytes = (uint32_t)length;
	if (bytes)
		ask(env, &call, bytes, &reply);
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

static uint8_t serve_log(jni_env *env, jobject class, int32_t stream, jobject array, int32_t at,
			 int32_t length)
{
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	size_t done = 0;
	bool fine = stream == STDOUT_FILENO || stream == STDERR_FILENO;

	(void)class;
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
	if (osd_java_natives_ended())
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
