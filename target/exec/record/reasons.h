/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reasons.h -- states of a job, and reasons why it waits or ended.
 *
 * Clients see these numbers and the store keeps them: add rows only, and never reuse a number.  Reason
 * blocks: 1xx queue and hold, 2xx script, 3xx limits, 4xx sandbox and host, 5xx storage, 6xx security, 9xx
 * internal. */
#ifndef OSD_EXEC_RECORD_REASONS_H
#define OSD_EXEC_RECORD_REASONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Bit 4 marks a terminal state. */
#define OSD_JOB_STATES(X)                                                                          \
	X(0x01, QUEUED)                                                                            \
	X(0x02, HELD)                                                                              \
	X(0x03, STARTING)                                                                          \
	X(0x04, RUNNING)                                                                           \
	X(0x05, COMPLETING)                                                                        \
	X(0x10, COMPLETED)                                                                         \
	X(0x11, FAILED)                                                                            \
	X(0x12, CANCELLED)                                                                         \
	X(0x13, TIMEOUT)                                                                           \
	X(0x14, OUT_OF_MEMORY)                                                                     \
	X(0x15, LIMIT_EXCEEDED)                                                                    \
	X(0x16, SANDBOX_LOST)

enum osd_job_state {
#define X(number, symbol) OSD_STATE_##symbol = number,
	OSD_JOB_STATES(X)
#undef X
};

static inline bool osd_job_state_terminal(enum osd_job_state state)
{
	return state & 0x10;
}

/* It has not started, or waits for another attempt. */
static inline bool osd_job_state_waits(enum osd_job_state state)
{
	return state == OSD_STATE_QUEUED || state == OSD_STATE_HELD;
}

/*  number, symbol, state a job ends in (0: it does not end), label, hint */
#define OSD_JOB_REASONS(X)                                                                         \
	X(0, NONE, 0, "", "")                                                                      \
	X(101, WAITS_FOR_SLOT, 0, "waiting for a free sandbox",                                    \
	  "other jobs are ahead; the queue position says how many")                                \
	X(102, WAITS_FOR_SERVICE, 0, "waiting for the sandbox service",                            \
	  "iosd-sandboxd is not connected; start it, the job then runs by itself")                 \
	X(103, HELD, 0, "held on request", "release the job to let it run")                        \
	X(104, WAITS_FOR_RETRY, 0, "waiting for another attempt",                                  \
	  "the last attempt lost its sandbox; the next one starts by itself")                      \
	X(105, CANCELLED, CANCELLED, "cancelled before it started",                                \
	  "submit it again if it is still wanted")                                                 \
	X(106, FORMATTED, CANCELLED, "the device was formatted",                                   \
	  "store the data and submit the job again")                                               \
	X(107, KILLED, CANCELLED, "killed on request",                                             \
	  "what the script had written stays written")                                             \
	X(108, CLIENT_GONE, CANCELLED, "the waiting command was aborted",                          \
	  "it was submitted to end with its command; submit it without that flag instead")         \
	X(109, WAITS_FOR_JOB, 0, "waiting for another job",                                        \
	  "it starts by itself when the jobs it was submitted after have ended as asked")          \
	X(110, UNREACHABLE, FAILED, "a job it was to run after did not complete",                  \
	  "the message names that job; see why it ended so, then submit both again")               \
	X(111, MEMBERS, FAILED, "a member of the array did not complete",                          \
	  "the message says how many ended how; see which: osd ps --members ARRAY")                \
	X(112, WAITS_FOR_TURN, 0, "waiting for its turn in the array",                             \
	  "as many members run as the array may have at once; it starts when one of them ends")    \
	X(113, WAITS_FOR_POOL, 0, "waiting for its pool, which does not serve",                    \
	  "the administrator sees why with osd pool show; it then runs by itself")                 \
	X(114, WAITS_FOR_SANDBOX, 0, "waiting for a sandbox, and none can be made now",            \
	  "the host is short of processes, memory or descriptors; it then runs by itself")         \
	X(115, WAITS_FOR_RESUME, 0, "waiting for its pool, which is paused",                       \
	  "the administrator has paused it; it runs by itself once the pool is resumed")           \
	X(116, EXPIRED, CANCELLED, "not started before it expired",                                \
	  "release held jobs in time, or submit with a longer expiry")                             \
	X(117, NOT_NEEDED, CANCELLED, "a job it was to run after did not fail",                    \
	  "it was submitted to run only if that job failed, and that job completed")               \
	X(118, WAITS_FOR_TIME, 0, "held until its begin time",                                     \
	  "it starts by itself then; release it to start it now")                                  \
	X(119, PUSHED_BACK, CANCELLED, "the client is expected to run it sooner",                  \
	  "run it at the client: osd exec --where local, or --where auto, which does both")        \
	X(120, DEADLINE, CANCELLED, "its pool would be too late",                                  \
	  "the pool has a deadline; submit it later, to another pool, or with --where local")      \
	X(201, EXCEPTION, FAILED, "the script raised an exception",                                \
	  "the traceback names the line; the same input will most likely fail again")              \
	X(202, EXIT_CODE, FAILED, "the script exited with a code other than 0",                    \
	  "see exit code and stderr")                                                              \
	X(203, SIGNAL, FAILED, "the script's process died by a signal",                            \
	  "a crash in native code, or recursion beyond the stack; stderr may say more")            \
	X(204, NO_FINISH, FAILED, "the script's process ended without a word",                     \
	  "os._exit or the like was called; end the script by returning or by sys.exit")           \
	X(205, BAD_CODE, FAILED, "the code could not be read",                                     \
	  "compress it again with zlib, or compile byte-code with the target's release of Python") \
	X(301, WALL_LIMIT, TIMEOUT, "wall-clock limit reached",                                    \
	  "raise the wall limit, or split the work into smaller jobs")                             \
	X(302, CPU_LIMIT, LIMIT_EXCEEDED, "processor-time limit reached",                          \
	  "raise the cpu limit, or split the work into smaller jobs")                              \
	X(303, MEMORY_LIMIT, OUT_OF_MEMORY, "memory limit reached",                                \
	  "raise the memory limit, or read the data in smaller blocks")                            \
	X(304, OUTPUT_LIMIT, LIMIT_EXCEEDED, "standard output passed its limit",                   \
	  "write large results to an object instead of printing them, or raise the output limit")  \
	X(305, THREAD_LIMIT, LIMIT_EXCEEDED, "thread limit reached",                               \
	  "raise the limit on threads (limit-procs, at most 16), or on memory: each has a stack "  \
	  "of 8 MiB")                                                                              \
	X(306, FILE_LIMIT, LIMIT_EXCEEDED, "open-file limit reached",                              \
	  "close files and objects when done with them; at most 256 can be open")                  \
	X(307, IO_LIMIT, LIMIT_EXCEEDED, "input/output limit reached", "raise the io limit")       \
	X(308, RESULT_LIMIT, LIMIT_EXCEEDED, "result passed its limit",                            \
	  "write large results to an object and return its id")                                    \
	X(309, CODE_LIMIT, LIMIT_EXCEEDED, "the code is too large when expanded",                  \
	  "keep data out of the script: store it in an object and read it there")                  \
	X(401, SANDBOX_DIED, SANDBOX_LOST, "the sandbox was lost",                                 \
	  "not the script's fault; it was tried as often as allowed, submit it again")             \
	X(402, LOST_AFTER_WRITE, SANDBOX_LOST,                                                     \
	  "the sandbox was lost after the script had written",                                     \
	  "check what was written, then submit it again; mark jobs that may run twice idempotent") \
	X(403, SERVICE_LOST, SANDBOX_LOST, "the sandbox service died",                             \
	  "see the log of iosd-sandboxd; submit the job again")                                    \
	X(404, PROTOCOL, FAILED, "the sandbox sent something a sandbox never sends",               \
	  "the script interferes with its own runtime; it was ended")                              \
	X(405, TARGET_RESTARTED, SANDBOX_LOST, "the target was restarted while the job ran",       \
	  "submit it again; mark jobs that may run twice idempotent")                              \
	X(406, NO_SANDBOX, SANDBOX_LOST, "no sandbox could be made",                               \
	  "the limits asked for may be more than the host gives; see the log of iosd-sandboxd")    \
	X(501, NO_SPACE, FAILED, "no space left for output or result",                             \
	  "free space or raise the quota, then submit again")                                      \
	X(502, STORAGE, FAILED, "output or result could not be stored",                            \
	  "see the log of the target")                                                             \
	X(601, REVOKED, FAILED, "the job's rights were revoked",                                   \
	  "ask for a new capability and submit again; a partition may demand one by now")          \
	X(605, ZONE_REMOVED, FAILED, "the job's zone was removed",                                 \
	  "submit it again for another zone")                                                      \
	X(901, INTERNAL, FAILED, "internal failure of the target",                                 \
	  "the cause is in the target's log")

enum osd_job_reason {
#define X(number, symbol, state, label, hint) OSD_REASON_##symbol = number,
	OSD_JOB_REASONS(X)
#undef X
};

#define X(number, symbol, state, label, hint) +1
enum { OSD_JOB_REASON_COUNT = OSD_JOB_REASONS(X) };
#undef X

struct osd_job_reason_info {
	uint16_t number;
	uint8_t terminal_state; /* 0: none */
	const char *label;
	const char *hint;
};

/* The reason's row; an unknown number yields OSD_REASON_INTERNAL's. */
const struct osd_job_reason_info *osd_job_reason_info(unsigned reason);
/* The number of that row, below OSD_JOB_REASON_COUNT; and the row. */
size_t osd_job_reason_row(unsigned reason);
const struct osd_job_reason_info *osd_job_reason_at(size_t row);
/* Status of a synchronous EXEC whose job ended for this reason (by block). */
enum osd_status osd_job_reason_status(unsigned reason);
const char *osd_job_state_name(unsigned state);
bool osd_job_state_is_known(unsigned state);

#endif
