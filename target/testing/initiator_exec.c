/* SPDX-License-Identifier: GPL-2.0-or-later */
/* initiator_exec.c -- encodes EXEC PARAMETERS.  It has its own table, so that a mistake in the decoder's
 * table is found. */
#include <string.h>

#include "base/util.h"
#include "testing/initiator.h"
#include "wire/cursor.h"

#define TAG_MOST OSD_EXEC_PARAM_REUSE

typedef void encode_fn(const struct osd_exec_params *params, struct osd_wr *value);

struct field {
	enum { NUMBER, TEXT, ODD } kind;
	size_t at;	   /* in struct osd_exec_params */
	encode_fn *encode; /* ODD */
};

static void encode_args(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->args_encoding, 2);
	osd_wr_bytes(value, params->args.bytes, params->args.length);
}

static void encode_priority(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, (uint16_t)params->priority, 2);
}

static void encode_flags(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->flags, 4);
}

static void encode_after(const struct osd_exec_params *params, struct osd_wr *value)
{
	for (size_t i = 0; i < params->after_count; i++) {
		osd_wr_be(value, params->after[i].partition_id, 8);
		osd_wr_be(value, params->after[i].object_id, 8);
		osd_wr_be(value, params->after[i].condition, 4);
		osd_wr_zero(value, 4);
	}
}

static void encode_array(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->array_first, 4);
	osd_wr_be(value, params->array_last, 4);
	osd_wr_be(value, params->array_at_once, 4);
	osd_wr_bytes(value, params->array_ranges.bytes, params->array_ranges.length);
}

static void encode_predecessor(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->predecessor_partition, 8);
	osd_wr_be(value, params->predecessor_id, 8);
}

static void encode_function(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->function.partition_id, 8);
	osd_wr_be(value, params->function.object_id, 8);
	osd_wr_be(value, params->function.record, 1);
	osd_wr_be(value, params->function.args_encoding, 1);
	osd_wr_be(value, params->function.method.length, 2);
	osd_wr_bytes(value, params->function.method.bytes, params->function.method.length);
	osd_wr_bytes(value, params->function.name.bytes, params->function.name.length);
}

static void encode_home(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->home_usec, 8);
	osd_wr_be(value, params->home_bytes, 8);
}

#define FIELD(name) offsetof(struct osd_exec_params, name)

/* Indexed by tag; a TAG may come several times, and is not here. */
static const struct field fields[] = {
	[OSD_EXEC_PARAM_ENGINE] = {.kind = TEXT, .at = FIELD(engine)},
	[OSD_EXEC_PARAM_ARGS] = {.kind = ODD, .encode = encode_args},
	[OSD_EXEC_PARAM_WALL] = {.kind = NUMBER, .at = FIELD(wall_usec)},
	[OSD_EXEC_PARAM_CPU] = {.kind = NUMBER, .at = FIELD(cpu_usec)},
	[OSD_EXEC_PARAM_MEMORY] = {.kind = NUMBER, .at = FIELD(memory_bytes)},
	[OSD_EXEC_PARAM_PROCESSES] = {.kind = NUMBER, .at = FIELD(processes)},
	[OSD_EXEC_PARAM_OUTPUT] = {.kind = NUMBER, .at = FIELD(output_bytes)},
	[OSD_EXEC_PARAM_OPEN_FILES] = {.kind = NUMBER, .at = FIELD(open_files)},
	[OSD_EXEC_PARAM_IO] = {.kind = NUMBER, .at = FIELD(io_bytes)},
	[OSD_EXEC_PARAM_PRIORITY] = {.kind = ODD, .encode = encode_priority},
	[OSD_EXEC_PARAM_NAME] = {.kind = TEXT, .at = FIELD(name)},
	[OSD_EXEC_PARAM_KEY] = {.kind = TEXT, .at = FIELD(key)},
	[OSD_EXEC_PARAM_SURROGATE_PARTITION] = {.kind = NUMBER, .at = FIELD(surrogate_partition)},
	[OSD_EXEC_PARAM_SURROGATE_ID] = {.kind = NUMBER, .at = FIELD(surrogate_id)},
	[OSD_EXEC_PARAM_SYNC_WAIT] = {.kind = NUMBER, .at = FIELD(sync_wait_usec)},
	[OSD_EXEC_PARAM_FLAGS] = {.kind = ODD, .encode = encode_flags},
	[OSD_EXEC_PARAM_AFTER] = {.kind = ODD, .encode = encode_after},
	[OSD_EXEC_PARAM_ARRAY] = {.kind = ODD, .encode = encode_array},
	[OSD_EXEC_PARAM_POOL] = {.kind = TEXT, .at = FIELD(pool)},
	[OSD_EXEC_PARAM_EXPIRY] = {.kind = NUMBER, .at = FIELD(expiry_usec)},
	[OSD_EXEC_PARAM_PREDECESSOR] = {.kind = ODD, .encode = encode_predecessor},
	[OSD_EXEC_PARAM_GRACE] = {.kind = NUMBER, .at = FIELD(grace_usec)},
	[OSD_EXEC_PARAM_BEGIN] = {.kind = NUMBER, .at = FIELD(begin_msec)},
	[OSD_EXEC_PARAM_FUNCTION] = {.kind = ODD, .encode = encode_function},
	[OSD_EXEC_PARAM_HOME] = {.kind = ODD, .encode = encode_home},
	[OSD_EXEC_PARAM_REUSE] = {.kind = NUMBER, .at = FIELD(reuse_usec)},
};

/* Opens a parameter; its length is filled in by end_parameter. */
static uint8_t *begin_parameter(struct osd_wr *w, uint16_t tag)
{
	osd_wr_be(w, tag, 2);
	osd_wr_be(w, OSD_EXEC_PARAM_CRITICAL, 2);
	return osd_wr_room(w, 4);
}

static void end_parameter(struct osd_wr *w, uint8_t *length_at)
{
	size_t length = w->bad ? 0 : (size_t)(w->at - length_at) - 4;

	osd_wr_zero(w, -length & 7);
	if (!w->bad)
		osd_put_be(length_at, length, 4);
}

static void encode_value(const struct osd_exec_params *params, const struct field *field,
			 struct osd_wr *w)
{
	struct osd_exec_text text;
	uint64_t number;

	switch (field->kind) {
	case NUMBER:
		memcpy(&number, (const char *)params + field->at, sizeof(number));
		osd_wr_be(w, number, 8);
		break;
	case TEXT:
		memcpy(&text, (const char *)params + field->at, sizeof(text));
		osd_wr_bytes(w, text.bytes, text.length);
		break;
	default:
		field->encode(params, w);
	}
}

static uint16_t encode_tags(const struct osd_exec_params *params, struct osd_wr *w)
{
	for (size_t i = 0; i < params->tag_count; i++) {
		uint8_t *length_at = begin_parameter(w, OSD_EXEC_PARAM_TAG);

		osd_wr_bytes(w, params->tags[i].bytes, params->tags[i].length);
		end_parameter(w, length_at);
	}
	return (uint16_t)params->tag_count;
}

size_t osd_exec_params_encode(const struct osd_exec_params *params, void *buffer, size_t capacity)
{
	struct osd_wr w = osd_wr_init(buffer, capacity);
	uint8_t *count_at;
	uint16_t count = 0;

	osd_wr_be(&w, OSD_EXEC_PARAMS_VERSION, 2);
	count_at = osd_wr_room(&w, 2);
	for (uint16_t tag = 1; tag <= TAG_MOST; tag++) {
		uint8_t *length_at;

		if (!osd_exec_has(params, tag))
			continue;
		if (tag == OSD_EXEC_PARAM_TAG) {
			count = (uint16_t)(count + encode_tags(params, &w));
			continue;
		}
		length_at = begin_parameter(&w, tag);
		encode_value(params, &fields[tag], &w);
		end_parameter(&w, length_at);
		count++;
	}
	if (w.bad)
		return 0;
	osd_put_be(count_at, count, 2);
	return osd_wr_used(&w);
}
