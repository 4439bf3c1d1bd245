/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_read.h -- READ of an object whose data pass through functions (docs/views.md).
 *
 * What a READ before has computed from the same version of the data is taken from there (function/kept.h).  The stored
 * bytes of what is missing, as of one moment, pass the stack (stack_run.h) while the command is parked; the result is
 * kept, and goes to Data-In.  Meanwhile, READs of the same wait (flights.h).
 *
 * What is too long for one call passes in parts (stack_stream.h), if the functions permit it and the result can be
 * kept.  For each part of the stored bytes, the request is dispatched again, with what was done in request->reading. */
#ifndef OSD_COMMAND_STACK_READ_H
#define OSD_COMMAND_STACK_READ_H

#include "command/context.h"

/* ctx->object has the bit of a stack (object/stack.h).  *ret_plain: no function concerns it after all, and nothing was
 * done.  OSD_PENDING: the command has parked.  Others: as stack_run.h. */
enum osd_status osd_stack_read(struct osd_command_context *ctx, const struct osd_piece *pieces,
			       size_t piece_count, const struct osd_data_version *wanted,
			       bool *ret_plain);
/* The same without waiting, of one piece: only if the stack is known (function/stack_note.h), and all is kept and in
 * the page cache.  OSD_E_WOULD_BLOCK: it is not. */
enum osd_status osd_stack_read_kept(struct osd_command_context *ctx);
/* Frees request->reading. */
void osd_stack_read_forget(struct osd_request *request);

#endif
