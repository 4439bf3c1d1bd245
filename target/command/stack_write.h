/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_write.h -- changes of objects whose data pass through functions (docs/views.md).
 *
 * A WRITE changes what readers see.  The blocks that it touches, or all of the object if the stack is sequential, are
 * computed as for a READ, get the new bytes, and pass the inverse functions (stack_run.h), while the command is
 * parked.  Then it is dispatched again from the start, with the result in request->written, which it stores: in place,
 * or in place of all stored bytes.  If the object has changed meanwhile, it begins again.
 *
 * A WRITE of an object of a writable view changes the source in the same way. */
#ifndef OSD_COMMAND_STACK_WRITE_H
#define OSD_COMMAND_STACK_WRITE_H

#include "command/context.h"

/* Puts what is to be stored into the change of a WRITE, which osd_command_load_change has filled in; it is as it was if
 * no function concerns the object.  *ret_source: the object to change, which the caller puts; NULL: that of the
 * command.  OSD_PENDING: the command has parked. */
enum osd_status osd_stack_write(struct osd_command_context *ctx, struct osd_change *change,
				struct osd_object **ret_source);
/* The same for CREATE AND WRITE. */
enum osd_status osd_stack_write_new(struct osd_command_context *ctx, struct osd_change *change);
/* Whether data of an object that the command makes pass through functions. */
enum osd_status osd_stack_passes_new(struct osd_command_context *ctx, bool *ret_passes);
/* After a change that was refused with OSD_E_VERSION.  True: osd_stack_write has asked for this version, so call it
 * again; it gives up with OSD_E_BUSY in the end. */
bool osd_stack_begin_again(struct osd_request *request);
/* Whether another command may change the stored bytes of a stacked object directly: OSD_E_CONTRACT if they pass through
 * functions. */
enum osd_status osd_stack_check_change(struct osd_command_context *ctx);
/* The partition in which the command makes an object in the one that it addresses: if that is a view, its base, unless
 * the attributes of the command name a source (object/view.h).  OSD_E_CONTRACT: it is a view that is read-only. */
enum osd_status osd_stack_find_place(struct osd_command_context *ctx, uint64_t *ret_place);
/* Makes objects there, where a client names this partition. */
struct osd_stack_making {
	uint64_t partition_id, requested_id; /* requested_id 0: the target chooses */
	uint32_t count;
	struct osd_draft *draft; /* what becomes the object; NULL: they have no data yet */
	bool named;		 /* osd_name_put() gives it its first name next */
};
/* OSD_E_BUSY: the partition has just become a view. */
enum osd_status osd_stack_make(struct osd_request *request, struct osd_txn *txn,
			       const struct osd_stack_making *making, uint64_t *ret_first);
/* The status of a removal; it says why an object of a read-only view stays. */
enum osd_status osd_stack_refuse_removal(struct osd_request *request, enum osd_status status);
/* Frees request->written. */
void osd_stack_forget(struct osd_request *request);

#endif
