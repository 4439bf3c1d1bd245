/* SPDX-License-Identifier: GPL-2.0-or-later */
/* script_data.c -- see script_data.h.  The script's call becomes a request, which no client has sent. */
#include "command/script_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "command/dispatch_impl.h"
#include "command/stack_read.h"
#include "command/stack_run.h"
#include "command/stack_write.h"

struct script_use {
	struct osd_request request;
	struct osd_exec_data *data; /* borrowed */
};

/* Any thread. */
static void resumed(struct osd_request *request)
{
	struct osd_exec_data *data = osd_container_of(request, struct script_use, request)->data;

	data->done(data);
}

static void fill_context(const struct osd_dispatcher *dispatcher, struct script_use *use,
			 struct osd_command_context *ctx)
{
	const struct osd_exec_data *data = use->data;

	*ctx = (struct osd_command_context){
		.request = &use->request,
		.addressed = data->id,
		.object = data->object,
		.objects = dispatcher->config.objects,
		.exec = dispatcher->config.exec,
		.functions = dispatcher->config.functions,
		.command_data_length = (size_t)data->length, /* of a WRITE */
		.flights = (struct osd_flights *)&dispatcher->flights,
		.script = data->principal,
	};
}

static enum osd_status read_data(struct osd_command_context *ctx, struct osd_exec_data *data)
{
	const struct osd_piece piece = {data->offset, data->length};
	enum osd_status status = osd_stack_read_kept(ctx);

	return status == OSD_E_WOULD_BLOCK ? osd_stack_read(ctx, &piece, 1, NULL, &data->plain)
					   : status;
}

/* Once the inverse functions have run, the step that follows stores the result (stack_write.h). */
static enum osd_status write_data(struct osd_command_context *ctx, struct osd_exec_data *data)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *source = NULL;
	const struct osd_piece piece = {data->offset, data->length};
	struct osd_change change = {.kind = OSD_CHANGE_WRITE,
				    .pieces = &piece,
				    .piece_count = 1,
				    .data = data->bytes};
	enum osd_status status = osd_stack_write(ctx, &change, &source);

	data->plain = status == OSD_OK && !source && !ctx->request->written;
	if (status == OSD_OK && !data->plain)
		status = data->permit(data);
	if (status != OSD_OK || data->plain)
		return status;
	status = osd_object_change(source ? source : data->object, &change);
	data->changed = change.changed;
	data->before = change.before;
	data->version = change.version;
	return status;
}

static enum osd_status use_data(struct osd_command_context *ctx, struct osd_exec_data *data)
{
	enum osd_status status;

	if (!data->bytes)
		return read_data(ctx, data);
	/* The object has changed since the functions saw it: they get its present bytes. */
	do
		status = write_data(ctx, data);
	while (status == OSD_E_VERSION && osd_stack_begin_again(ctx->request));
	return status;
}

/* Each step makes a context anew: only the request lives while the call waits. */
static enum osd_status run(struct osd_dispatcher *dispatcher, struct script_use *use)
{
	struct osd_request *request = &use->request;
	struct osd_command_context ctx;

	request->again = false;
	request->fault = (struct osd_fault){0};
	request->shows_version = false;
	fill_context(dispatcher, use, &ctx);
	return use_data(&ctx, use->data);
}

static struct script_use *create(struct osd_exec_data *data)
{
	struct script_use *use = calloc(1, sizeof(*use));

	if (!use)
		return NULL;
	use->data = data;
	use->request.resume = resumed;
	use->request.data_in = data->buffer;
	use->request.data_in_capacity = data->capacity;
	use->request.decoded.starting_byte_address = data->offset;
	use->request.decoded.length = data->length;
	return use;
}

/* ---- the end ------------------------------------------------------------------------------------ */

static const char *refusal_text(uint64_t refusal)
{
	static const char *const texts[] = {
		[OSD_CONTRACT_MISSING] = "a function has no contract, or no such entry point",
		[OSD_CONTRACT_TOO_LARGE] =
			"the functions need the whole object, and it is too long",
		[OSD_CONTRACT_NO_CHANGE] = "it is an object of a view that is read-only",
		[OSD_CONTRACT_NO_INVERSE] =
			"a function has no inverse, so the data can only be read",
		[OSD_CONTRACT_SOURCE] = "the object whose data it shows was removed",
		[OSD_CONTRACT_RECORD] = "a line is too long for a function that takes lines",
		[OSD_CONTRACT_NOT_KEPT] =
			"the functions make more than the target has room to keep",
	};

	return refusal < OSD_ARRAY_SIZE(texts) && texts[refusal] ? texts[refusal] : "";
}

static void explain(const struct osd_fault *fault, enum osd_status status,
		    struct osd_exec_data *data)
{
	if (status == OSD_E_CONTRACT)
		snprintf(data->why, sizeof(data->why), "%s",
			 refusal_text(fault->command_information));
	else if (status == OSD_E_FUNCTION_INACTIVE)
		snprintf(data->why, sizeof(data->why),
			 "a function that its data pass through is not active");
	else if (status == OSD_E_TASK_ABORTED)
		snprintf(data->why, sizeof(data->why), "the job is being ended");
	else if (status == OSD_E_STAGE)
		snprintf(data->why, sizeof(data->why),
			 "a function that its data pass through failed: reason %" PRIu64
			 ", token %" PRIu64,
			 fault->command_information, fault->information);
}

static enum osd_status end(struct script_use *use, enum osd_status status)
{
	struct osd_request *request = &use->request;
	struct osd_exec_data *data = use->data;

	osd_stack_forget(request);
	if (request->reading)
		osd_stack_read_forget(request);
	if (request->shows_version)
		data->version = request->version;
	data->available = status == OSD_OK ? data->length : 0;
	if (status == OSD_E_SHORT_READ)
		data->available = request->fault.command_information;
	/* At the end of the object a script gets fewer bytes and no error, as from a file. */
	if (status == OSD_E_SHORT_READ || status == OSD_E_BEYOND_END)
		status = OSD_OK;
	explain(&request->fault, status, data);
	data->own = NULL;
	free(use);
	return status;
}

static enum osd_status step(void *context, struct osd_exec_data *data)
{
	struct script_use *use = data->own;
	enum osd_status status;

	if (!use) {
		data->own = use = create(data);
		if (!use)
			return OSD_E_NO_MEMORY;
		status = run(context, use);
	} else {
		status = use->request.again ? run(context, use) : use->request.fault.status;
	}
	return status == OSD_PENDING ? status : end(use, status);
}

/* The thread that takes the steps calls this, so none of them ends and frees use meanwhile. */
static void abort_step(void *context, struct osd_exec_data *data)
{
	struct script_use *use = data->own;

	__atomic_store_n(&use->request.aborted, true, __ATOMIC_RELEASE);
	osd_dispatch_aborted(context);
}

void osd_script_data_serve(struct osd_dispatcher *dispatcher)
{
	dispatcher->script_data = (struct osd_exec_data_ops){step, abort_step, dispatcher};
	osd_exec_set_data_ops(dispatcher->config.exec, &dispatcher->script_data);
}
