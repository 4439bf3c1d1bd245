/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_stream.h -- data of any length that pass through a sequential stack (docs/views.md, "Objects of any length").
 *
 * A function that takes its input in parts, blocks or records, gets at most OSD_STREAM_PART bytes at once.  Bytes
 * behind the last whole record wait for the next part.  Other functions get all of their input at the end, as far as
 * one call can take it: the first function must take parts.
 *
 * Calling order: open; then, until osd_stack_stream_ended, room, the stored bytes, begin and run->done.  The caller
 * may do each turn on another thread. */
#ifndef OSD_COMMAND_STACK_STREAM_H
#define OSD_COMMAND_STACK_STREAM_H

#include "command/stack_run.h"

#define OSD_STREAM_PART ((size_t)4 << 20)

/* Gets the output in order, at its offset; any thread.  A failure ends the run. */
typedef enum osd_status osd_stack_emit_fn(struct osd_stack_run *run, uint64_t offset,
					  const uint8_t *bytes, size_t length);

/* The run is open, and run->whole is set.  OSD_E_BUSY: all runs together hold too much. */
enum osd_status osd_stack_stream_open(struct osd_stack_run *run, osd_stack_emit_fn *emit);
/* The memory for the next stored bytes: *ret_length of them, from *ret_offset on.  NULL: out of memory. */
uint8_t *osd_stack_stream_room(struct osd_stack_run *run, uint64_t *ret_offset, size_t *ret_length);
/* They are there.  As osd_stack_run_begin: done is called when the next ones are needed, or all have passed. */
enum osd_status osd_stack_stream_begin(struct osd_stack_run *run);
/* All have passed.  *ret_length: of the output. */
bool osd_stack_stream_ended(const struct osd_stack_run *run, uint64_t *ret_length);
void osd_stack_stream_free(struct osd_stack_stream *stream); /* NULL is fine */

#endif
