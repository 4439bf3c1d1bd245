/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec_limits.h -- every limit of jobs and requests, once: the codec checks against
 * it, the root page, --help and the documentation print it.
 * Columns: symbol, name for people, unit, default, hard maximum, meaning.  A maximum of
 * UINT64_MAX: the pool's own bound rules. */
#ifndef OSD_WIRE_EXEC_LIMITS_H
#define OSD_WIRE_EXEC_LIMITS_H

#include <stdint.h>

#define OSD_KIB    UINT64_C(1024)
#define OSD_MIB    (UINT64_C(1024) * OSD_KIB)
#define OSD_GIB    (UINT64_C(1024) * OSD_MIB)
#define OSD_SECOND UINT64_C(1000000) /* microseconds */
#define OSD_DAY    (UINT64_C(86400) * OSD_SECOND)

#define OSD_EXEC_LIMITS(X)                                                                      \
	X(CODE, "code", "bytes", 16 * OSD_MIB, 16 * OSD_MIB,                                    \
	  "code of one job, as sent and expanded")                                              \
	X(ARGS, "args", "bytes", OSD_MIB, OSD_MIB, "arguments of one job")                      \
	X(CONTINUATION, "continuation", "bytes", OSD_MIB, OSD_MIB,                              \
	  "CDB continuation segment")                                                           \
	X(NAME, "name", "bytes", 128, 128, "job name")                                          \
	X(TAGS, "tags", "tags", 16, 16, "tags of one job")                                      \
	X(TAG, "tag", "bytes", 128, 128, "one tag, key=value")                                  \
	X(KEY, "key", "bytes", 64, 64, "idempotency key")                                       \
	X(QUEUE, "queue", "jobs", 10000, 10000, "jobs queued on one target")                    \
	X(QUEUE_PRINCIPAL, "queue_principal", "jobs", 1000, 10000,                              \
	  "jobs queued by one principal")                                                       \
	X(STORED, "stored", "bytes", 256 * OSD_MIB, UINT64_MAX,                                 \
	  "code, arguments and results of one principal in the jobs partition")                 \
	X(WALL, "wall", "us", 60 * OSD_SECOND, OSD_DAY, "wall-clock time of one job")           \
	X(CPU, "cpu", "us", 60 * OSD_SECOND, OSD_DAY,                                           \
	  "processor time of one job (default: its wall limit)")                                \
	X(MEMORY, "memory", "bytes", 256 * OSD_MIB, UINT64_MAX, "memory of one job")            \
	X(THREADS, "threads", "threads", 1, 16, "threads a script may run")                     \
	X(PROCESSES, "processes", "processes", 1, 1, "processes of one job")                    \
	X(OUTPUT, "output", "bytes", 64 * OSD_MIB, OSD_GIB,                                     \
	  "standard output of one job")                                                         \
	X(RESULT, "result", "bytes", OSD_GIB, OSD_GIB, "result of one job")                     \
	X(OPEN_FILES, "open_files", "files", 256, 256,                                          \
	  "objects a job may hold open as descriptors")                                         \
	X(IO, "io", "bytes", UINT64_MAX, UINT64_MAX, "bytes a job may read and write")          \
	X(SYNC_WAIT, "sync_wait", "us", 20 * OSD_SECOND, 60 * OSD_SECOND,                       \
	  "wait of a synchronous EXEC")                                                         \
	X(SYNC_WAITS, "sync_waits", "commands", 128, 128,                                       \
	  "synchronous EXECs waiting at once on one target; of one principal half of them")     \
	X(EXPIRY, "expiry", "us", 7 * OSD_DAY, 365 * OSD_DAY,                                   \
	  "record of a finished job")                                                           \
	X(GRACE, "grace", "us", 20000, 5 * OSD_SECOND,                                          \
	  "time a killed script has to clean up")                                               \
	X(ARRAY, "array", "jobs", 10000, 10000, "members of one job array")                     \
	X(DEPENDENCIES, "dependencies", "jobs", 64, 64, "jobs one job may wait for")            \
	X(PROGRESS_RATE, "progress_rate", "updates/s", 20, 20,                                  \
	  "progress reports of one job")                                                        \
	X(TRANSFER, "transfer", "bytes", 64 * OSD_MIB, 64 * OSD_MIB,                            \
	  "data of one command")                                                                \
	X(LIST_ENTRIES, "list_entries", "entries", 65536, 65536,                                \
	  "attributes named by one command")                                                    \
	X(ATTRIBUTES, "attributes", "attributes", 65536, 65536,                                 \
	  "attributes of one object")                                                           \
	X(CREATE_COUNT, "create_count", "objects", 4096, 4096,                                  \
	  "objects one CREATE makes")                                                           \
	X(SESSIONS, "sessions", "sessions", 64, 64, "sessions of one target")

enum osd_exec_limit {
#define X(symbol, name, unit, standard, maximum, meaning) OSD_LIMIT_##symbol,
	OSD_EXEC_LIMITS(X)
#undef X
	OSD_LIMIT_COUNT
};

struct osd_exec_limit_info {
	const char *name;
	const char *unit;
	uint64_t standard, maximum;
	const char *meaning;
};

/* Indexed by enum osd_exec_limit. */
extern const struct osd_exec_limit_info osd_exec_limits[OSD_LIMIT_COUNT];

#endif
