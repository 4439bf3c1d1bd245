/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_stream.c -- see stack_stream.h. */
#include "command/stack_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* Of a stage: bytes that it has not got yet. */
struct input {
	uint8_t *bytes; /* owned */
	size_t length, capacity;
	uint64_t offset; /* of them in all that the stage gets */
	uint8_t *header; /* owned: the first line, once it has passed */
	size_t header_length;
};

struct osd_stack_stream {
	osd_stack_emit_fn *emit;
	uint64_t loaded; /* stored bytes that were handed over */
	uint64_t made;	 /* bytes of output */
	struct input inputs[OSD_STACK_STAGES];
};

static struct osd_contract contract_of(const struct osd_stack_run *run, size_t stage)
{
	return osd_stage_contract(&run->stack->stages[stage], false);
}

static bool takes_parts(const struct osd_stack_run *run, size_t stage)
{
	const struct osd_contract contract = contract_of(run, stage);

	return osd_contract_takes_parts(&contract);
}

/* ---- open and free ------------------------------------------------------------------------------ */

/* Each stage that takes parts holds less than a part, and its header.  The output of one call comes on top, and the
 * first stage that takes no parts collects its input: those behind it begin when it has ended. */
static size_t memory_of(const struct osd_stack_run *run)
{
	size_t stage = 0, bytes = OSD_STAGE_DATA_MAX;

	for (; stage < run->stack->count; stage++) {
		if (!takes_parts(run, stage))
			return bytes + OSD_STAGE_DATA_MAX;
		bytes += OSD_STREAM_PART;
		if (contract_of(run, stage).records == OSD_RECORDS_TABLE)
			bytes += OSD_STREAM_PART;
	}
	return bytes;
}

static enum osd_status take(struct osd_stack_run *run, const uint8_t *bytes, size_t length);

enum osd_status osd_stack_stream_open(struct osd_stack_run *run, osd_stack_emit_fn *emit)
{
	enum osd_status status = osd_stack_run_charge(run, memory_of(run));

	if (status != OSD_OK)
		return status;
	run->stream = calloc(1, sizeof(*run->stream));
	if (!run->stream)
		return OSD_E_NO_MEMORY;
	run->stream->emit = emit;
	run->take = take;
	return OSD_OK;
}

void osd_stack_stream_free(struct osd_stack_stream *stream)
{
	for (size_t i = 0; stream && i < OSD_STACK_STAGES; i++) {
		free(stream->inputs[i].bytes);
		free(stream->inputs[i].header);
	}
	free(stream);
}

/* ---- inputs ------------------------------------------------------------------------------------- */

static uint8_t *make_room(struct input *input, size_t length)
{
	if (input->capacity - input->length < length) {
		uint8_t *bytes = realloc(input->bytes, input->length + length);

		if (!bytes)
			return NULL;
		input->bytes = bytes;
		input->capacity = input->length + length;
	}
	return input->bytes + input->length;
}

static enum osd_status append(struct input *input, const uint8_t *bytes, size_t length)
{
	uint8_t *room = length ? make_room(input, length) : NULL;

	if (length && !room)
		return OSD_E_NO_MEMORY;
	if (length)
		memcpy(room, bytes, length);
	input->length += length;
	return OSD_OK;
}

/* Removes the bytes that a call has got.  The memory of a long input is given back. */
static void consume(struct input *input, size_t length)
{
	input->length -= length;
	input->offset += length;
	if (input->length) {
		memmove(input->bytes, input->bytes + length, input->length);
		return;
	}
	free(OSD_STEAL(input->bytes));
	input->capacity = 0;
}

/* No more bytes come to the stage. */
static bool has_all(const struct osd_stack_run *run, size_t stage)
{
	bool all = run->stream->loaded == run->whole;

	for (size_t i = 0; i < stage; i++)
		all = all && run->stream->inputs[i].length == 0;
	return all;
}

/* The part of its input that the stage gets now.  0: more must come first, or there is none. */
static enum osd_status cut(struct osd_stack_run *run, size_t stage, size_t *ret_length)
{
	const struct input *input = &run->stream->inputs[stage];
	bool parts = takes_parts(run, stage), all = has_all(run, stage);
	size_t limit = parts ? OSD_STREAM_PART : OSD_STAGE_DATA_MAX;
	size_t most = OSD_MIN(input->length, limit);
	uint32_t block = contract_of(run, stage).block;
	const uint8_t *newline = NULL;

	*ret_length = 0;
	if (!parts && input->length > limit)
		return osd_stack_refuse(run->request, OSD_CONTRACT_TOO_LARGE);
	if (input->length == most && all) {
		*ret_length = most;
	} else if (block) {
		*ret_length = most / block * block;
	} else if (parts && most) {
		newline = memrchr(input->bytes, '\n', most);
		*ret_length = newline ? (size_t)(newline - input->bytes) + 1 : 0;
		if (!newline && most == limit)
			return osd_stack_refuse(run->request, OSD_CONTRACT_RECORD);
	}
	return OSD_OK;
}

/* ---- calls -------------------------------------------------------------------------------------- */

static enum osd_status keep_header(struct input *input)
{
	const uint8_t *newline = memchr(input->bytes, '\n', input->length);

	if (!newline)
		return OSD_OK; /* it is all of the input */
	input->header_length = (size_t)(newline - input->bytes) + 1;
	input->header = malloc(input->header_length);
	if (!input->header)
		return OSD_E_NO_MEMORY;
	memcpy(input->header, input->bytes, input->header_length);
	return OSD_OK;
}

/* The part is taken out of the input before the call is submitted: it may end at once, on another thread. */
static enum osd_status call(struct osd_stack_run *run, size_t stage, size_t length)
{
	struct input *input = &run->stream->inputs[stage];
	uint64_t whole = has_all(run, stage) ? input->offset + input->length : 0;
	enum osd_status status;

	run->passed = stage;
	run->offset = input->offset;
	status = osd_stack_run_prepare(run, stage ? whole : run->whole, input->header,
				       input->header_length, input->bytes, length);
	if (status == OSD_OK && input->offset == 0 &&
	    contract_of(run, stage).records == OSD_RECORDS_TABLE)
		status = keep_header(input);
	if (status != OSD_OK)
		return status;
	consume(input, length);
	return osd_stack_run_call(run);
}

/* The last stage that has enough goes first, so that inputs stay short.  OSD_OK: none has. */
static enum osd_status advance(struct osd_stack_run *run)
{
	enum osd_status status = OSD_OK;
	size_t length = 0;

	for (size_t stage = run->stack->count; stage-- > 0 && status == OSD_OK;) {
		status = cut(run, stage, &length);
		if (status == OSD_OK && length)
			return call(run, stage, length);
	}
	return status;
}

uint8_t *osd_stack_stream_room(struct osd_stack_run *run, uint64_t *ret_offset, size_t *ret_length)
{
	struct osd_stack_stream *stream = run->stream;
	struct input *first = &stream->inputs[0];

	*ret_offset = stream->loaded;
	*ret_length = (size_t)OSD_MIN((uint64_t)(OSD_STREAM_PART - first->length),
				      run->whole - stream->loaded);
	return make_room(first, *ret_length);
}

enum osd_status osd_stack_stream_begin(struct osd_stack_run *run)
{
	uint64_t offset;
	size_t length;

	osd_stack_stream_room(run, &offset, &length);
	run->stream->inputs[0].length += length;
	run->stream->loaded += length;
	return advance(run);
}

static enum osd_status take(struct osd_stack_run *run, const uint8_t *bytes, size_t length)
{
	struct osd_stack_stream *stream = run->stream;
	enum osd_status status;

	if (run->passed + 1 < run->stack->count) {
		status = append(&stream->inputs[run->passed + 1], bytes, length);
	} else {
		status = stream->emit(run, stream->made, bytes, length);
		stream->made += length;
	}
	return status == OSD_OK ? advance(run) : status;
}

bool osd_stack_stream_ended(const struct osd_stack_run *run, uint64_t *ret_length)
{
	*ret_length = run->stream->made;
	return has_all(run, run->stack->count);
}
