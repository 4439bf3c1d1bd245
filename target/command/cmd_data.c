/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_data.c -- commands on the data of user objects: READ, WRITE, APPEND, CLEAR, PUNCH and the
 * FLUSH family (osd2-wire 3.3, 3.4, 3.6). */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/authorise.h"
#include "command/commands.h"
#include "command/copies.h"
#include "command/osc.h"
#include "command/phase.h"
#include "command/precondition.h"
#include "command/resolve.h"
#include "command/stack_read.h"
#include "command/stack_write.h"
#include "command/validate.h"
#include "function/stack_note.h"
#include "object/stack.h"
#include "object/sums.h"
#include "object/txn_run.h"
#include "wire/sense.h"

enum { FIELD_START = 40 };

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The pieces that the CDB or its scatter/gather list names, in order.  The caller owns *ret_pieces,
 * which has at least one piece.  last: no byte may lie behind it. */
static enum osd_status load_pieces(struct osd_command_context *ctx, uint64_t last,
				   struct osd_piece **ret_pieces, size_t *ret_count)
{
	const struct osd_cdb *cdb = &ctx->request->decoded;
	struct osd_descriptor descriptor = {.length = 0};
	bool scattered = cdb->continuation_length &&
			 osd_continuation_find(&ctx->continuation, OSD_DESC_SG_LIST, &descriptor);
	OSD_CLEANUP_FREE struct osd_piece *pieces =
		malloc((descriptor.length / OSD_SG_ENTRY + 1) * sizeof(*pieces));
	struct osd_sg_list list;
	enum osd_status status = OSD_OK;
	size_t count = !scattered && osd_authorise_by_pieces(cdb) ? 1 : 0;

	if (!pieces)
		return OSD_E_NO_MEMORY;
	pieces[0] = (struct osd_piece){cdb->starting_byte_address, scattered ? 0 : cdb->length};
	if (scattered)
		status = osd_sg_list_open(&descriptor, cdb->starting_byte_address, cdb->length,
					  &list);
	while (scattered && status == OSD_OK &&
	       osd_sg_list_next(&list, &pieces[count].offset, &pieces[count].length)) {
		if (pieces[count].offset > last ||
		    pieces[count].length > last - pieces[count].offset)
			status = OSD_E_CDB_FIELD;
		count++;
	}
	if (status != OSD_OK)
		return osd_command_fail(ctx->request, status, OSD_CONTINUATION_FIELD);
	for (size_t i = 0; i < count && status == OSD_OK; i++)
		status = osd_authorise_range(ctx, pieces[i].offset, pieces[i].length);
	*ret_pieces = status == OSD_OK ? OSD_STEAL(pieces) : NULL;
	*ret_count = OSD_MAX(count, 1);
	return status;
}

/* Reports the half of the object whose device failed, by the first requested byte in it.  If a
 * write behind the head failed to complete the head, that is the head's last byte. */
static enum osd_status report_half(struct osd_request *request, struct osd_object *object,
				   uint64_t start, enum osd_status status)
{
	bool tail = status == OSD_E_TAIL_FAILED;
	uint64_t border;

	if (!tail && status != OSD_E_HEAD_FAILED && status != OSD_E_HEAD_ABSENT)
		return status;
	border = osd_object_head_bytes(object);
	osd_fault_inform(&request->fault,
			 tail ? OSD_MAX(start, border) : OSD_MIN(start, border - 1));
	return status;
}

/* The same for a read, which may also have found a damaged block. */
static enum osd_status report_read(struct osd_request *request, struct osd_object *object,
				   uint64_t start, enum osd_status status)
{
	if (status != OSD_E_SUM)
		return report_half(request, object, start, status);
	osd_fault_inform(&request->fault, osd_object_first_damage(object, start));
	return status;
}

static uint64_t first_of(const struct osd_piece *pieces, size_t count)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < count; i++)
		if (pieces[i].length)
			first = OSD_MIN(first, pieces[i].offset);
	return first;
}

/* ---- READ ------------------------------------------------------------------------------------ */

/* Data-In always has the full LENGTH, with zeros after the logical end: initiators that treat
 * RECOVERED ERROR as success (the Linux kernel) use all of it. */
static enum osd_status report_short(struct osd_request *request, uint64_t available)
{
	if (available == request->decoded.length)
		return OSD_OK;
	osd_fault_inform_command(&request->fault, available);
	return OSD_E_SHORT_READ;
}

/* Every piece fills its whole slot in Data-In, with zeros after the end of the object. */
static enum osd_status read_pieces(struct osd_command_context *ctx)
{
	struct osd_version_check check;
	struct osd_data_version wanted;
	OSD_CLEANUP_FREE struct osd_piece *pieces = NULL;
	struct osd_request *request = ctx->request;
	uint64_t available;
	size_t count;
	enum osd_status status = load_pieces(ctx, UINT64_MAX, &pieces, &count);

	if (status == OSD_OK)
		status = osd_precondition_load(ctx, OSD_PAGE_VERSION, &wanted, &check.wanted);
	if (status != OSD_OK)
		return status;
	status = osd_object_read_pieces(ctx->object, pieces, count, request->data_in,
					request->data_in_capacity, ctx->data_flags, &check,
					&available);
	if (status != OSD_OK)
		return report_read(request, ctx->object, first_of(pieces, count), status);
	osd_request_show_version(request, check.found);
	request->command_data_in = request->decoded.length;
	return report_short(request, available);
}

/* The data may pass through functions.  *ret_plain: they do not. */
static enum osd_status read_through(struct osd_command_context *ctx, bool *ret_plain)
{
	OSD_CLEANUP_FREE struct osd_piece *pieces = NULL;
	const struct osd_data_version *wanted;
	struct osd_data_version version;
	size_t count;
	enum osd_status status;

	*ret_plain = false;
	if (ctx->data_flags & OSD_DATA_NOWAIT)
		return osd_stack_read_kept(ctx);
	status = load_pieces(ctx, UINT64_MAX, &pieces, &count);
	if (status == OSD_OK)
		status = osd_precondition_load(ctx, OSD_PAGE_VERSION, &version, &wanted);
	return status == OSD_OK ? osd_stack_read(ctx, pieces, count, wanted, ret_plain) : status;
}

/* The bytes as they are stored. */
static enum osd_status read_stored(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	const struct osd_cdb *cdb = &request->decoded;
	bool nowait = ctx->data_flags & OSD_DATA_NOWAIT;
	struct osd_version_check check = {.wanted = NULL};
	size_t got;
	enum osd_status status;

	if (cdb->continuation_length || cdb->length > request->data_in_capacity)
		return nowait ? OSD_E_WOULD_BLOCK : read_pieces(ctx);
	status = osd_object_read_with(ctx->object, cdb->starting_byte_address, request->data_in,
				      (size_t)cdb->length, ctx->data_flags, &check, &got);
	if (status != OSD_OK)
		return report_read(request, ctx->object, cdb->starting_byte_address, status);
	osd_request_show_version(request, check.found);
	if (got < cdb->length)
		memset(request->data_in + got, 0, (size_t)cdb->length - got);
	request->command_data_in = cdb->length;
	return report_short(request, got);
}

/* The state that a READ without functions depends on: 0 as long as the object has none, else it grows with each
 * change. */
static uint64_t stack_state(const struct osd_command_context *ctx)
{
	return osd_object_is_stacked(ctx->object) ? osd_stack_changes(ctx->functions) + 1 : 0;
}

/* Between the look at its functions and the read of its bytes, an object may get functions and then data. */
enum osd_status osd_cmd_read(struct osd_command_context *ctx)
{
	enum osd_status status = osd_resolve_object(ctx), changed;
	bool plain = true;
	uint64_t before;

	if (status != OSD_OK)
		return status;
	before = stack_state(ctx);
	if (before)
		status = read_through(ctx, &plain);
	if (status != OSD_OK || !plain)
		return status;
	status = read_stored(ctx);
	if ((status != OSD_OK && status != OSD_E_SHORT_READ) || stack_state(ctx) == before)
		return status;
	changed = read_through(ctx, &plain);
	return changed == OSD_OK && plain ? status : changed;
}

/* ---- commands that change data --------------------------------------------------------------- */

struct served {
	struct osd_request *request;
	struct osd_change *change;
	bool aborted; /* too late to abort: the data has changed, so the attributes must follow */
};

/* Called before the data changes.  Sets the attributes; the get only checks whether it can be
 * done. */
static enum osd_status serve_attributes(void *arg, struct osd_txn *txn, bool done)
{
	struct served *served = arg;
	enum osd_status status;

	served->request->append_start = served->change->start;
	served->request->capacity_change = served->change->growth;
	if (!done)
		return osd_phase_set_then_get(served->request, txn);
	status = osd_phase_get(served->request, txn);
	served->aborted = status == OSD_E_TASK_ABORTED;
	return served->aborted ? OSD_OK : status;
}

static enum osd_status get_attributes(struct osd_txn *txn, void *arg)
{
	return osd_phase_get(arg, txn);
}

/* Nothing is set, so records need not change together with the data. */
static enum osd_status change_and_get(struct osd_command_context *ctx, struct osd_object *object,
				      struct osd_change *change)
{
	struct osd_request *request = ctx->request;
	enum osd_status status = OSD_OK;

	if (!ctx->attributes->current_only) /* otherwise there is nothing that could be refused */
		status = osd_txn_run(ctx->objects, osd_phase_txn_flags(request), get_attributes,
				     request);
	if (status == OSD_OK)
		status = osd_object_change(object, change);
	if (status != OSD_OK)
		return status;
	request->append_start = change->start;
	request->capacity_change = change->growth;
	if (change->changed)
		osd_request_show_version(request, change->version);
	return osd_phase_alone(ctx->objects, request);
}

static uint64_t start_of(const struct osd_change *change)
{
	if (change->kind == OSD_CHANGE_WRITE)
		return first_of(change->pieces, change->piece_count);
	return change->kind == OSD_CHANGE_APPEND ? change->start : change->offset;
}

/* The change and the command's attributes: both or neither.  change->wanted is set.  object: that of the command, whose
 * row says OSD_CMD_CHANGES, so it was checked; or its source. */
static enum osd_status change_as_wanted(struct osd_command_context *ctx, struct osd_object *object,
					struct osd_change *change)
{
	struct osd_request *request = ctx->request;
	struct served served = {request, change, false};
	struct osd_change_with with = {osd_phase_txn_flags(request), serve_attributes, &served};
	enum osd_status status;

	change->flags = ctx->data_flags;
	if (object != ctx->object) /* nobody has asked the checks of the source, so it must have none */
		change->flags &= ~(unsigned)OSD_DATA_CHECKED;
	if (!ctx->attributes)
		status = osd_object_change(object, change);
	else
		status = ctx->attributes->sets ? osd_object_change_with(object, change, &with)
					       : change_and_get(ctx, object, change);
	report_half(request, object, start_of(change), status);
	if (status != OSD_OK && ctx->attributes)
		request->completed &= ~(uint32_t)(OSD_FN_SET_ATTR | OSD_FN_GET_ATTR);
	return status == OSD_OK && served.aborted ? OSD_E_TASK_ABORTED : status;
}

static enum osd_status change_object(struct osd_command_context *ctx, struct osd_change *change)
{
	struct osd_data_version wanted;
	enum osd_status status = osd_precondition_load(ctx, OSD_PAGE_VERSION, &wanted, &change->wanted);

	return status == OSD_OK ? change_as_wanted(ctx, ctx->object, change) : status;
}

/* A change of the stored bytes, if nothing transforms them. */
static enum osd_status change_plain(struct osd_command_context *ctx, struct osd_change *change)
{
	enum osd_status status = osd_object_is_stacked(ctx->object) ? osd_stack_check_change(ctx)
								    : OSD_OK;

	return status == OSD_OK ? change_object(ctx, change) : status;
}

enum osd_status osd_command_load_change(struct osd_command_context *ctx,
					struct osd_piece **ret_pieces, struct osd_change *change)
{
	enum osd_status status = load_pieces(ctx, INT64_MAX, ret_pieces, &change->piece_count);

	if (status != OSD_OK)
		return status;
	change->kind = OSD_CHANGE_WRITE;
	change->pieces = *ret_pieces;
	change->data = ctx->command_data;
	return OSD_OK;
}

/* The data may pass through functions.  *ret_any: the command takes any version of them. */
static enum osd_status write_through(struct osd_command_context *ctx, struct osd_change change,
				     bool *ret_any)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *source = NULL;
	struct osd_data_version wanted;
	enum osd_status status = osd_precondition_load(ctx, OSD_PAGE_VERSION, &wanted, &change.wanted);

	*ret_any = !change.wanted;
	if (status == OSD_OK)
		status = osd_stack_write(ctx, &change, &source);
	return status == OSD_OK ? change_as_wanted(ctx, source ? source : ctx->object, &change)
				: status;
}

enum osd_status osd_cmd_write(struct osd_command_context *ctx)
{
	OSD_CLEANUP_FREE struct osd_piece *pieces = NULL;
	struct osd_change change = {0};
	enum osd_status status = osd_command_load_change(ctx, &pieces, &change);
	bool any;

	if (status != OSD_OK)
		return status;
	if (!osd_object_is_stacked(ctx->object))
		return change_object(ctx, &change);
	status = write_through(ctx, change, &any);
	return status == OSD_E_VERSION && any && osd_stack_begin_again(ctx->request)
		       ? write_through(ctx, change, &any)
		       : status;
}

enum osd_status osd_cmd_append(struct osd_command_context *ctx)
{
	struct osd_change change = {.kind = OSD_CHANGE_APPEND,
				    .length = ctx->command_data_length,
				    .data = ctx->command_data};

	return change_plain(ctx, &change);
}

enum osd_status osd_cmd_clear(struct osd_command_context *ctx)
{
	const struct osd_cdb *cdb = &ctx->request->decoded;
	struct osd_change change = {.kind = OSD_CHANGE_CLEAR,
				    .offset = cdb->starting_byte_address,
				    .length = cdb->length};

	return change_plain(ctx, &change);
}

static bool punch_goes_on(void *arg, uint64_t bytes)
{
	(void)bytes;
	return !osd_command_stops(arg);
}

/* A range that runs past the end is cut there, so one that runs past 2^64 is too. */
enum osd_status osd_cmd_punch(struct osd_command_context *ctx)
{
	const struct osd_cdb *cdb = &ctx->request->decoded;
	const struct osd_change_steps steps = {.go_on = punch_goes_on, .arg = ctx};
	struct osd_change change = {.kind = OSD_CHANGE_PUNCH,
				    .offset = cdb->starting_byte_address,
				    .length = cdb->length,
				    .steps = &steps};
	struct osd_copying copying;
	enum osd_status status;

	osd_copies_begin(ctx->copies, &copying, ctx->addressed, true);
	status = change_plain(ctx, &change);
	osd_copies_end(ctx->copies, &copying);
	return status;
}

/* ---- FLUSH family: everything in what is named, whatever the scope says (osd2-wire 9-2) ------ */

enum osd_status osd_cmd_flush(struct osd_command_context *ctx)
{
	enum osd_status status = osd_resolve_object(ctx);

	if (status == OSD_OK)
		status = osd_osc_check_flush(ctx->request, ctx->object);
	return status == OSD_OK
		       ? report_half(ctx->request, ctx->object, 0, osd_object_flush(ctx->object))
		       : status;
}

/* Of a collection or a partition.  The flush of a partition writes the members of its collections and their attributes
 * in one pass over the disk. */
enum osd_status osd_cmd_flush_partition(struct osd_command_context *ctx)
{
	struct osd_object_id partition = {ctx->addressed.partition_id, 0};
	enum osd_status status = osd_validate_alone(ctx);

	return status == OSD_OK ? osd_objects_flush(ctx->objects, partition) : status;
}

/* Also the mark that bench/callgrind.py looks for. */
enum osd_status osd_cmd_flush_osd(struct osd_command_context *ctx)
{
	return osd_objects_flush(ctx->objects, ctx->addressed);
}
