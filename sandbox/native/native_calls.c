/* SPDX-License-Identifier: GPL-2.0-or-later */
/* native_calls.c -- see native_calls.h.  Pointers of a native function need no check: what they reach is the
 * memory of its own process. */
#include "native_calls.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "job_calls.h"

#define WHY_MAX 96

static void *libraries[2]; /* handles of dlopen(3); constant after the start */
static jmp_buf *leave;
static _Thread_local bool is_here; /* this thread runs the job */
static char why[WHY_MAX];

void osd_native_calls_begin(jmp_buf *to)
{
	leave = to;
	is_here = true;
	why[0] = '\0';
}

const char *osd_native_why(void)
{
	return why;
}

static void end(const char *name, const char *because)
{
	snprintf(why, sizeof(why), "osd_%s: %s", name, because);
	longjmp(*leave, 1);
}

/* False: the calling thread must not call.  The shared memory has room for one call at a time. */
static bool enter(const char *name)
{
	if (is_here && osd_job_calls_ended())
		end(name, "the job was told to end");
	return is_here;
}

static int64_t done(const char *name, int64_t result)
{
	if (osd_job_calls_ended())
		end(name, "the job was told to end");
	if (result == OSD_JOB_MALFORMED)
		end(name, "malformed answer from the proxy");
	return result;
}

/* Name, parameters, and the call that it is. */
#define CALLS(X)                                                                                   \
	X(read, (uint64_t partition, uint64_t object, uint64_t offset, void *to, uint32_t length), \
	  osd_job_read(partition, object, offset, to, length))                                     \
	X(write,                                                                                   \
	  (uint64_t partition, uint64_t object, uint64_t offset, const void *from,                 \
	   uint32_t length),                                                                       \
	  osd_job_write(partition, object, offset, from, length))                                  \
	X(length, (uint64_t partition, uint64_t object), osd_job_length(partition, object))        \
	X(getattr,                                                                                 \
	  (uint64_t partition, uint64_t object, uint32_t page, uint32_t number, void *to,          \
	   uint32_t room),                                                                         \
	  osd_job_getattr(partition, object, page, number, to, room))                              \
	X(setattr,                                                                                 \
	  (uint64_t partition, uint64_t object, uint32_t page, uint32_t number, const void *from,  \
	   uint32_t length),                                                                       \
	  osd_job_setattr(partition, object, page, number, from, length))                          \
	X(args, (void *to, uint32_t room), osd_job_args_from(0, to, room))                         \
	X(args_from, (uint32_t offset, void *to, uint32_t room),                                   \
	  osd_job_args_from(offset, to, room))                                                     \
	X(zone, (uint32_t part), osd_job_zone(part))                                               \
	X(result, (uint32_t encoding, const void *from, uint32_t length),                          \
	  osd_job_result(encoding, from, length))                                                  \
	X(log, (uint32_t stream, const void *from, uint32_t length),                               \
	  osd_job_log(stream, from, length))                                                       \
	X(progress, (int32_t thousandths, const void *from, uint32_t length),                      \
	  osd_job_progress((uint32_t)thousandths, from, length))

#define X(name, parameters, call)                                                                  \
	static int64_t call_##name parameters                                                      \
	{                                                                                          \
		return enter(#name) ? done(#name, call) : -(int64_t)OSD_ANSWER_INVALID;            \
	}
CALLS(X)
#undef X

static void *allocate(size_t size)
{
	return calloc(1, size ? size : 1);
}

/* A pointer to a function, as a row of the table; ISO C has no conversion to a pointer to data. */
typedef void any_function(void);

static const struct {
	const char *name;
	any_function *function;
} calls[] = {
#define X(name, parameters, call) {"osd_" #name, (any_function *)call_##name},
	CALLS(X)
#undef X
		{"osd_allocate", (any_function *)allocate},
	{"osd_free", (any_function *)free},
};

bool osd_native_calls_prepare(char *text, size_t size)
{
	static const char *const names[] = {"libc.so.6", "libm.so.6"};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(names); i++) {
		libraries[i] = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (!libraries[i]) {
			snprintf(text, size, "engine native: %s", dlerror());
			return false;
		}
	}
	return true;
}

void *osd_native_import(const char *name)
{
	void *found = NULL;

	for (size_t i = 0; i < OSD_ARRAY_SIZE(calls); i++)
		if (strcmp(calls[i].name, name) == 0)
			memcpy(&found, &calls[i].function, sizeof(found));
	for (size_t i = 0; i < OSD_ARRAY_SIZE(libraries) && !found; i++)
		found = dlsym(libraries[i], name);
	return found;
}
