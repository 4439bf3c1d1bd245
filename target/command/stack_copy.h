/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_copy.h -- COPY USER OBJECTS from and to views (docs/views.md).
 *
 * The data are read as a READ of the source returns them (stack_read.h), in pieces of OSD_STAGE_DATA_MAX bytes, while
 * the command is parked.  If they pass functions at the destination, they do so as those of CREATE AND WRITE, in one
 * piece.  Between two steps the command is dispatched again, with what was done in request->copied. */
#ifndef OSD_COMMAND_STACK_COPY_H
#define OSD_COMMAND_STACK_COPY_H

#include "command/context.h"

/* Whether it concerns the copy: the source shows another object, or the destination is a view with functions. */
enum osd_status osd_stack_copy_concerns(struct osd_command_context *ctx, struct osd_object *from,
					uint64_t place, bool *ret_concerns);
/* Makes the copy, and puts it with osd_command_put_draft.  OSD_PENDING: the command has parked; then it is dispatched
 * again, and finds and checks the source anew. */
enum osd_status osd_stack_copy(struct osd_command_context *ctx, struct osd_object *from,
			       uint64_t place, bool attributes);
/* Frees request->copied. */
void osd_stack_copy_forget(struct osd_request *request);

#endif
