/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_copy.c -- see stack_copy.h. */
#include "command/stack_copy.h"

#include <stdlib.h>

#include "base/util.h"
#include "command/attributes.h"
#include "command/commands.h"
#include "command/stack_read.h"
#include "command/stack_run.h"
#include "command/stack_write.h"
#include "object/draft.h"
#include "object/stack.h"

#define TRIES 16u /* of one, while others change the source */

struct osd_stack_copied {
	struct osd_stack_held held; /* a place among all copies */
	uint8_t *piece; /* owned */
	struct osd_draft
		*draft;	 /* owned: the pieces so far; NULL: the data pass functions in one piece */
	uint64_t offset; /* of the piece in the data */
	size_t length;	 /* of what was read into the piece */
	bool passes, there; /* the piece has been read */
	bool ended;	    /* it is the last one */
	bool versioned;
	struct osd_data_version version;
	unsigned tries;
	/* The request's own, while its Data-In is the piece. */
	struct osd_buffers {
		uint8_t *data_in;
		size_t data_in_capacity;
		uint64_t length;
		void (*resume)(struct osd_request *request);
	} own;
};

static void free_copied(struct osd_stack_copied *copied)
{
	osd_draft_free(copied->draft);
	free(copied->piece);
	osd_stack_room_drop(OSD_ROOM_COPIES, &copied->held);
	free(copied);
}

void osd_stack_copy_forget(struct osd_request *request)
{
	free_copied(OSD_STEAL(request->copied));
}

/* ---- whether --------------------------------------------------------------------------------------- */

static struct osd_object_id id_of(struct osd_object *object)
{
	struct osd_object_facts facts;

	osd_object_facts(object, &facts);
	return facts.id;
}

enum osd_status osd_stack_copy_concerns(struct osd_command_context *ctx, struct osd_object *from,
					uint64_t place, bool *ret_concerns)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *source = NULL;
	enum osd_status status;

	*ret_concerns = ctx->request->copied;
	if (*ret_concerns)
		return OSD_OK;
	status = osd_object_get_source(from, &source);
	*ret_concerns = source || osd_status_is_gone(status); /* then the READ of it says why */
	if (*ret_concerns || status != OSD_OK || place == ctx->addressed.partition_id)
		return *ret_concerns ? OSD_OK : status;
	return osd_stack_passes_new(ctx, ret_concerns);
}

/* ---- reading --------------------------------------------------------------------------------------- */

static void give_back(struct osd_request *request)
{
	const struct osd_buffers *own = &request->copied->own;

	request->resume = own->resume;
	request->data_in = own->data_in;
	request->data_in_capacity = own->data_in_capacity;
	request->decoded.length = own->length;
	request->command_data_in = 0;
	request->shows_version = false;
}

/* The outcome of a READ of the piece.  A version belongs to all pieces. */
static enum osd_status take_outcome(struct osd_request *request, enum osd_status status)
{
	struct osd_stack_copied *copied = request->copied;
	size_t length = OSD_STAGE_DATA_MAX;

	if (status == OSD_E_SHORT_READ)
		length = (size_t)request->fault.command_information;
	if (status == OSD_E_BEYOND_END)
		length = 0;
	if (status != OSD_OK && status != OSD_E_SHORT_READ && status != OSD_E_BEYOND_END)
		return status;
	if (request->shows_version) {
		copied->version = request->version;
		copied->versioned = true;
	}
	request->fault = (struct osd_fault){0};
	copied->length = length;
	copied->ended = length < OSD_STAGE_DATA_MAX;
	copied->there = true;
	return OSD_OK;
}

/* Any thread. */
static void resumed(struct osd_request *request)
{
	if (!request->again) {
		request->fault.status = take_outcome(request, request->fault.status);
		request->again = request->fault.status == OSD_OK;
		if (request->again)
			osd_attributes_forget(request);
	}
	give_back(request);
	request->resume(request);
}

/* No functions concern the source. */
static enum osd_status read_plain(struct osd_request *request, struct osd_object *object,
				  unsigned flags, const struct osd_data_version *wanted)
{
	struct osd_stack_copied *copied = request->copied;
	struct osd_version_check check = {.wanted = wanted};
	size_t got = 0;
	enum osd_status status = osd_object_read_with(object, copied->offset, copied->piece,
						      OSD_STAGE_DATA_MAX, flags, &check, &got);

	if (status != OSD_OK)
		return status == OSD_E_BEYOND_END ? OSD_OK : status;
	osd_request_show_version(request, check.found);
	request->fault.command_information = got;
	return got == OSD_STAGE_DATA_MAX ? OSD_OK : OSD_E_SHORT_READ;
}

static enum osd_status read_piece(struct osd_command_context *ctx, struct osd_object *from)
{
	struct osd_request *request = ctx->request;
	struct osd_stack_copied *copied = request->copied;
	const struct osd_piece piece = {copied->offset, OSD_STAGE_DATA_MAX};
	const struct osd_data_version wanted = copied->version;
	struct osd_command_context reading = *ctx;
	bool plain;
	enum osd_status status;

	reading.addressed = id_of(from);
	reading.object = from;
	copied->own = (struct osd_buffers){request->data_in, request->data_in_capacity,
					   request->decoded.length, request->resume};
	request->resume = resumed;
	request->data_in = copied->piece;
	request->data_in_capacity = OSD_STAGE_DATA_MAX;
	request->decoded.length = OSD_STAGE_DATA_MAX;
	status = osd_stack_read(&reading, &piece, 1, copied->versioned ? &wanted : NULL, &plain);
	if (status == OSD_PENDING)
		return status;
	if (status == OSD_OK && plain)
		status = read_plain(request, from, ctx->data_flags,
				    copied->versioned ? &wanted : NULL);
	status = take_outcome(request, status);
	give_back(request);
	return status;
}

/* ---- writing --------------------------------------------------------------------------------------- */

/* All data pass the functions of the destination. */
static enum osd_status pass(struct osd_command_context *ctx, uint64_t place,
			    const struct osd_object *attributes_of)
{
	struct osd_stack_copied *copied = ctx->request->copied;
	struct osd_command_context writing = *ctx;
	const struct osd_piece piece = {0, copied->length};
	struct osd_change change = {.data = copied->piece, .pieces = &piece, .piece_count = 1};
	enum osd_status status;

	if (!copied->ended)
		return osd_stack_refuse(ctx->request, OSD_CONTRACT_TOO_LARGE);
	writing.command_data_length = copied->length;
	status = osd_stack_write_new(&writing, &change);
	if (status != OSD_OK) /* pending: the request may be another thread's */
		return status;
	status = osd_command_write_draft(ctx, place, ctx->addressed.object_id, &change,
					 &copied->draft);
	return status == OSD_OK ? osd_command_put_draft(ctx, copied->draft, attributes_of) : status;
}

static enum osd_status store_piece(struct osd_command_context *ctx, uint64_t place)
{
	struct osd_stack_copied *copied = ctx->request->copied;
	const struct osd_piece piece = {copied->offset, copied->length};
	const struct osd_change change = {
		.data = copied->piece, .pieces = &piece, .piece_count = 1};
	enum osd_status status = osd_command_write_draft(ctx, place, ctx->addressed.object_id,
							 &change, &copied->draft);

	copied->offset += copied->length;
	copied->there = false;
	return status;
}

/* The source has changed after its first piece was read. */
static enum osd_status begin_again(struct osd_stack_copied *copied)
{
	osd_draft_free(OSD_STEAL(copied->draft));
	copied->offset = 0;
	copied->versioned = copied->there = false;
	return ++copied->tries == TRIES ? OSD_E_BUSY : OSD_OK;
}

static enum osd_status step(struct osd_command_context *ctx, struct osd_object *from,
			    uint64_t place)
{
	struct osd_stack_copied *copied = ctx->request->copied;
	enum osd_status status = OSD_OK;

	if (osd_command_stops(ctx))
		return OSD_E_TASK_ABORTED;
	if (!copied->there)
		status = read_piece(ctx, from);
	if (status == OSD_E_VERSION)
		return begin_again(copied);
	return status == OSD_OK && !copied->passes ? store_piece(ctx, place) : status;
}

/* All that is read before the copy is put, which is one piece at most if it passes functions. */
static bool is_read(const struct osd_stack_copied *copied)
{
	return copied->passes ? copied->there : copied->ended && !copied->there;
}

/* ---- the command ----------------------------------------------------------------------------------- */

static enum osd_status begin(struct osd_command_context *ctx)
{
	struct osd_stack_copied *copied = calloc(1, sizeof(*copied));
	struct osd_principal principal;
	enum osd_status status;

	if (!copied)
		return OSD_E_NO_MEMORY;
	osd_command_principal(ctx->request, &principal);
	status = osd_stack_room_hold(OSD_ROOM_COPIES, principal.key, 1, &copied->held);
	if (status != OSD_OK) {
		free_copied(copied);
		return status;
	}
	copied->piece = malloc(OSD_STAGE_DATA_MAX);
	ctx->request->copied = copied;
	return copied->piece ? osd_stack_passes_new(ctx, &copied->passes) : OSD_E_NO_MEMORY;
}

enum osd_status osd_stack_copy(struct osd_command_context *ctx, struct osd_object *from,
			       uint64_t place, bool attributes)
{
	const struct osd_object *attributes_of = attributes ? from : NULL;
	struct osd_request *request = ctx->request;
	enum osd_status status = request->copied ? OSD_OK : begin(ctx);

	while (status == OSD_OK && !is_read(request->copied))
		status = step(ctx, from, place);
	if (status != OSD_OK)
		return status;
	return request->copied->passes
		       ? pass(ctx, place, attributes_of)
		       : osd_command_put_draft(ctx, request->copied->draft, attributes_of);
}
