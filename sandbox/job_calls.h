/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_calls.h -- the calls of examples/functions/osd.h, made of the proxy's frames: what a function in a compiled
 * language can do outside its own memory.  The engine checks pointers and lengths before it calls.
 *
 * A call returns a number from 0 on, -enum osd_answer_code, or OSD_JOB_MALFORMED.  Calls are made one
 * at a time. */
#ifndef OSD_SANDBOX_JOB_CALLS_H
#define OSD_SANDBOX_JOB_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"

/* The proxy's answer is malformed: the job must end. */
#define OSD_JOB_MALFORMED INT64_MIN

/* Before each job: the one whose calls are made; borrowed until the next. */
void osd_job_calls_begin(const struct osd_engine_job *job);

/* After each job: puts the result that waits for FINISH, because it is short and the job has no record, into the
 * engine's; valid until the next job. */
void osd_job_calls_give_result(struct osd_engine_result *result);

/* Called in a signal handler: long calls end early from now on, and the engine ends the job at the next. */
void osd_job_calls_end(void);
bool osd_job_calls_ended(void);

/* "NAME: why" of the last call of the job that failed, or the last line that the job logged as an error, if that came
 * later; "": there is neither. */
const char *osd_job_calls_error(void);

/* How the call of an entry point ended.  The texts of the result are valid until the next end.  well: it returned this
 * code; other than 0 is an error.  fail: what names the step or function that failed; returns false. */
void osd_job_end_well(struct osd_engine_result *result, const char *name, int64_t code);
bool osd_job_end_fail(struct osd_engine_result *result, enum osd_finish_kind kind, const char *what,
		      const char *why);

int64_t osd_job_read(uint64_t partition, uint64_t object, uint64_t offset, uint8_t *to, size_t length);
int64_t osd_job_write(uint64_t partition, uint64_t object, uint64_t offset, const uint8_t *from,
		      size_t length);
int64_t osd_job_length(uint64_t partition, uint64_t object);
int64_t osd_job_getattr(uint64_t partition, uint64_t object, uint32_t page, uint32_t number, uint8_t *to,
			size_t room);
int64_t osd_job_setattr(uint64_t partition, uint64_t object, uint32_t page, uint32_t number,
			const uint8_t *from, size_t length);
int64_t osd_job_args_from(size_t offset, uint8_t *to, size_t room);
int64_t osd_job_zone(uint32_t part);
int64_t osd_job_result(uint32_t encoding, const uint8_t *from, size_t length);
int64_t osd_job_log(uint32_t stream, const uint8_t *from, size_t length);
/* share: thousandths; UINT32_MAX: unknown. */
int64_t osd_job_progress(uint32_t share, const uint8_t *from, size_t length);

#endif
