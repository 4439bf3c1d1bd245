/* SPDX-License-Identifier: GPL-2.0-or-later */
/* format.h -- what the present form of a job record and the earlier ones share; for codec.c and earlier.c
 * only.  docs/format.md has the tables.
 *
 * The bytes come from the disk and are not trusted: a reader marks the cursor as bad and the caller refuses
 * the record. */
#ifndef OSD_EXEC_RECORD_FORMAT_H
#define OSD_EXEC_RECORD_FORMAT_H

#include <string.h>

#include "exec/record/record.h"
#include "wire/cursor.h"

/* Numbers that every job has, in stored order: member, bytes. */
#define OSD_JOB_NUMBERS(X)                                                                 \
	X(id.partition_id, 8)                                                                      \
	X(id.object_id, 8)                                                                         \
	X(sequence, 8)                                                                             \
	X(generation, 8)                                                                           \
	X(state, 1)                                                                                \
	X(reason, 2)                                                                               \
	X(exit_code, 4)                                                                            \
	X(signal, 1)                                                                               \
	X(attempt, 2)                                                                              \
	X(progress, 2)                                                                             \
	X(submitted_msec, 8)                                                                       \
	X(started_msec, 8)                                                                         \
	X(ended_msec, 8)                                                                           \
	X(expiry_msec, 8)                                                                          \
	X(keep_msec, 8)                                                                            \
	X(queue_usec, 8)                                                                           \
	X(run_usec, 8)                                                                             \
	X(cpu_user_usec, 8)                                                                        \
	X(cpu_system_usec, 8)                                                                      \
	X(peak_bytes, 8)                                                                           \
	X(bytes_read, 8)                                                                           \
	X(bytes_written, 8)                                                                        \
	X(calls, 8)                                                                                \
	X(result_length, 8)                                                                        \
	X(stdout_length, 8)                                                                        \
	X(stderr_length, 8)                                                                        \
	X(flags, 4)                                                                                \
	X(result_object, 8)                                                                        \
	X(sandbox_id, 8)                                                                           \
	X(zone.type, 1)                                                                            \
	X(zone.id.partition_id, 8)                                                                 \
	X(zone.id.object_id, 8)                                                                    \
	X(limits.wall_usec, 8)                                                                     \
	X(limits.cpu_usec, 8)                                                                      \
	X(limits.memory_bytes, 8)                                                                  \
	X(limits.processes, 8)                                                                     \
	X(limits.output_bytes, 8)                                                                  \
	X(limits.open_files, 8)                                                                    \
	X(limits.io_bytes, 8)                                                                      \
	X(limits.result_bytes, 8)                                                                  \
	X(client_flags, 4)                                                                         \
	X(priority, 2)                                                                             \
	X(args_encoding, 1)                                                                        \
	X(args_length, 4)                                                                          \
	X(code_length, 4)

/* Numbers of an array, of a job that is run again, and of a pure one: member, bytes. */
#define OSD_JOB_ARRAY_NUMBERS(X)                                                                   \
	X(array.object_id, 8)                                                                      \
	X(array.index, 4)                                                                          \
	X(array.count, 4)                                                                          \
	X(array.at_once, 4)                                                                        \
	X(array.ending, 2)

#define OSD_JOB_PREDECESSOR_NUMBERS(X)                                                             \
	X(predecessor.partition_id, 8)                                                             \
	X(predecessor.object_id, 8)

#define OSD_JOB_OFFLOAD_NUMBERS(X)                                                                 \
	X(offload.home_usec, 8)                                                                    \
	X(offload.home_bytes, 8)                                                                   \
	X(offload.near_usec, 8)                                                                    \
	X(offload.wait_usec, 8)                                                                    \
	X(offload.weighed_usec, 8)

/* Capability, level, partition of the key, stamp of the key. */
#define OSD_JOB_RIGHTS_BYTES (OSD_CAPABILITY_LENGTH + 1 + 8 + OSD_KEY_STAMP)

/* Statements for a table above: read each number into `record`, or write it. */
#define OSD_JOB_READ(member, width)                                                                \
	record->member = (__typeof__(record->member))osd_rd_be(r, width);
#define OSD_JOB_WRITE(member, width) osd_wr_be(w, (uint64_t)record->member, width);

static inline void osd_job_read_bytes(struct osd_rd *r, void *to, size_t length)
{
	const uint8_t *bytes = osd_rd_bytes(r, length);

	if (bytes && length)
		memcpy(to, bytes, length);
}

/* A text of length bytes into capacity bytes of zeros.  A text with a zero byte inside is bad: only a part
 * of it would be written again. */
static inline void osd_job_read_text(struct osd_rd *r, size_t length, char *text, size_t capacity)
{
	const uint8_t *bytes = osd_rd_bytes(r, length);

	if (length >= capacity || (bytes && memchr(bytes, 0, length)))
		r->bad = true;
	else if (bytes)
		memcpy(text, bytes, length);
}

/* OSD_JOB_RIGHTS_BYTES bytes.  The grant was verified before it was stored. */
static inline void osd_job_read_rights(struct osd_rd *r, struct osd_job_rights *rights)
{
	const uint8_t *capability = osd_rd_bytes(r, OSD_CAPABILITY_LENGTH);

	rights->grant.level = (uint8_t)osd_rd_be(r, 1);
	rights->grant.key_partition = osd_rd_be(r, 8);
	osd_job_read_bytes(r, rights->key_stamp, sizeof(rights->key_stamp));
	if (r->bad)
		return;
	osd_capability_decode(capability, &rights->grant.capability);
	rights->grant.verified = true;
	rights->limited = true;
}

/* The rest of a record of versions 1 to 6, behind its version, into a record of zeros (earlier.c). */
void osd_job_record_read_earlier(struct osd_rd *r, unsigned version, struct osd_job_record *record);

#endif
