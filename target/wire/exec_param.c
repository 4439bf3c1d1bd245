/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec_param.c -- EXEC PARAMETERS: decode into struct osd_exec_params and back.
 * One row per tag says how its value looks and where it goes; the few odd ones have a function. */
#include "wire/exec_param.h"

#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"
#include "wire/index_ranges.h"
#include "wire/text.h"

#define AFTER_ENTRY   24u
#define PRIORITY_MOST 100
#define TAG_MOST      OSD_EXEC_PARAM_FUNCTION
#define BEGIN_MOST    ((UINT64_C(1) << 48) - 1) /* times of day have 6 bytes in attributes */

enum kind {
	UNKNOWN,
	NUMBER, /* be64 in 1..maximum */
	ID,     /* be64 */
	TEXT,   /* UTF-8 of 1..maximum bytes */
	OPAQUE, /* 1..maximum bytes */
	ODD,
};

struct parameter;
typedef const char *decode_fn(struct osd_rd *value, struct osd_exec_params *params);
typedef void encode_fn(const struct osd_exec_params *params, struct osd_wr *value);

struct parameter {
	enum kind kind;
	size_t at; /* of the field in struct osd_exec_params */
	uint64_t maximum;
	decode_fn *decode; /* ODD */
	encode_fn *encode;
};

/* ---- odd ones ------------------------------------------------------------------------------- */

static const char *decode_args(struct osd_rd *value, struct osd_exec_params *params)
{
	params->args_encoding = (uint16_t)osd_rd_be(value, 2);
	if (value->bad || params->args_encoding > OSD_ARGS_JSON)
		return "arguments in an unknown encoding";
	params->args.length = (uint32_t)osd_rd_left(value);
	params->args.bytes = osd_rd_bytes(value, params->args.length);
	if (params->args.length > osd_exec_limits[OSD_LIMIT_ARGS].maximum)
		return "arguments too long";
	if (params->args_encoding == OSD_ARGS_NONE && params->args.length)
		return "arguments without an encoding";
	return NULL;
}

static void encode_args(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->args_encoding, 2);
	osd_wr_bytes(value, params->args.bytes, params->args.length);
}

static const char *decode_priority(struct osd_rd *value, struct osd_exec_params *params)
{
	params->priority = (int16_t)(uint16_t)osd_rd_be(value, 2);
	if (value->bad || params->priority < -PRIORITY_MOST || params->priority > PRIORITY_MOST)
		return "priority outside -100..100";
	return NULL;
}

static void encode_priority(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, (uint16_t)params->priority, 2);
}

static const char *decode_tag(struct osd_rd *value, struct osd_exec_params *params)
{
	size_t length = osd_rd_left(value);
	const uint8_t *bytes = osd_rd_bytes(value, length);
	const uint8_t *equals = length ? memchr(bytes, '=', length) : NULL;

	if (params->tag_count == OSD_EXEC_TAGS_MAX)
		return "more than 16 tags";
	if (length > osd_exec_limits[OSD_LIMIT_TAG].maximum || !osd_text_is_clean(bytes, length) ||
	    !equals || equals == bytes)
		return "tag is not key=value in UTF-8 of at most 128 bytes";
	params->tags[params->tag_count++] = (struct osd_exec_text){bytes, (uint32_t)length};
	return NULL;
}

static const char *decode_flags(struct osd_rd *value, struct osd_exec_params *params)
{
	const uint32_t known = OSD_EXEC_HOLD | OSD_EXEC_IDEMPOTENT | OSD_EXEC_END_ON_ABORT |
			       OSD_EXEC_RETRY_OOM | OSD_EXEC_ATTEMPTS | OSD_EXEC_RETRY_EXIT |
			       OSD_EXEC_CODE_FORM;

	params->flags = (uint32_t)osd_rd_be(value, 4);
	if (value->bad || (params->flags & ~known))
		return "unknown flag";
	if ((osd_exec_code_form(params->flags) & OSD_CODE_PACKING) == OSD_CODE_PACKING)
		return "code packed in an unknown way";
	return NULL;
}

static void encode_flags(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->flags, 4);
}

static const char *decode_after(struct osd_rd *value, struct osd_exec_params *params)
{
	size_t count = osd_rd_left(value) / AFTER_ENTRY;

	if (count == 0 || count > OSD_EXEC_AFTER_MAX)
		return "not 1 to 64 jobs to wait for";
	for (size_t i = 0; i < count; i++) {
		struct osd_exec_after *after = &params->after[i];

		after->partition_id = osd_rd_be(value, 8);
		after->object_id = osd_rd_be(value, 8);
		after->condition = (uint32_t)osd_rd_be(value, 4);
		if (osd_rd_be(value, 4) != 0 || after->condition > OSD_AFTER_FAILED)
			return "unknown condition on a job to wait for";
	}
	params->after_count = count;
	return NULL;
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

/* The ranges behind the first and the last index, which must be theirs. */
static const char *decode_ranges(struct osd_rd *value, struct osd_exec_params *params)
{
	uint32_t first, last, length = (uint32_t)osd_rd_left(value);

	params->array_ranges = (struct osd_exec_text){osd_rd_bytes(value, length), length};
	if (!osd_index_ranges_check(params->array_ranges.bytes, length,
				    (uint32_t)osd_exec_limits[OSD_LIMIT_ARRAY].maximum, &first,
				    &last, &params->array_members) ||
	    first != params->array_first || last != params->array_last)
		return "array ranges are not ascending, not the first and last index, or too many";
	return NULL;
}

static const char *decode_array(struct osd_rd *value, struct osd_exec_params *params)
{
	uint32_t first = (uint32_t)osd_rd_be(value, 4), last = (uint32_t)osd_rd_be(value, 4);

	params->array_at_once = (uint32_t)osd_rd_be(value, 4);
	params->array_first = first;
	params->array_last = last;
	if (!value->bad && osd_rd_left(value))
		return decode_ranges(value, params);
	if (value->bad || last < first || last - first >= osd_exec_limits[OSD_LIMIT_ARRAY].maximum)
		return "array range is empty or longer than 10,000";
	return NULL;
}

static void encode_array(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->array_first, 4);
	osd_wr_be(value, params->array_last, 4);
	osd_wr_be(value, params->array_at_once, 4);
	osd_wr_bytes(value, params->array_ranges.bytes, params->array_ranges.length);
}

static const char *decode_predecessor(struct osd_rd *value, struct osd_exec_params *params)
{
	params->predecessor_partition = osd_rd_be(value, 8);
	params->predecessor_id = osd_rd_be(value, 8);
	return params->predecessor_id ? NULL : "a predecessor that is no job";
}

static void encode_predecessor(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->predecessor_partition, 8);
	osd_wr_be(value, params->predecessor_id, 8);
}

static const char *decode_word(struct osd_rd *value, size_t length, struct osd_exec_text *text)
{
	*text = (struct osd_exec_text){osd_rd_bytes(value, length), (uint32_t)length};
	if (length > OSD_EXEC_WORD_MAX)
		return "name or method of a function is too long";
	if (!value->bad && !osd_text_is_clean(text->bytes, length))
		return "text is not UTF-8 or holds control characters";
	return NULL;
}

static const char *decode_function(struct osd_rd *value, struct osd_exec_params *params)
{
	size_t method;
	const char *why;

	params->function.partition_id = osd_rd_be(value, 8);
	params->function.object_id = osd_rd_be(value, 8);
	params->function.args_encoding = (uint16_t)osd_rd_be(value, 2);
	method = osd_rd_be(value, 2);
	why = decode_word(value, method, &params->function.method);
	if (!why)
		why = decode_word(value, osd_rd_left(value), &params->function.name);
	if (why)
		return why;
	if (params->function.args_encoding > OSD_ARGS_JSON)
		return "arguments in an unknown encoding";
	if ((params->function.object_id == 0) == (params->function.name.length == 0))
		return "a function is named by its id or by a name, and not by both";
	return NULL;
}

static void encode_function(const struct osd_exec_params *params, struct osd_wr *value)
{
	osd_wr_be(value, params->function.partition_id, 8);
	osd_wr_be(value, params->function.object_id, 8);
	osd_wr_be(value, params->function.args_encoding, 2);
	osd_wr_be(value, params->function.method.length, 2);
	osd_wr_bytes(value, params->function.method.bytes, params->function.method.length);
	osd_wr_bytes(value, params->function.name.bytes, params->function.name.length);
}

/* ---- the table ------------------------------------------------------------------------------ */

#define FIELD(name) offsetof(struct osd_exec_params, name)

static struct parameter parameter_of(uint16_t tag)
{
#define LIMIT(name, symbol)                                                                        \
	(struct parameter){NUMBER, FIELD(name), osd_exec_limits[OSD_LIMIT_##symbol].maximum,       \
			   NULL, NULL}
#define PLAIN(kind, name, maximum) (struct parameter){kind, FIELD(name), maximum, NULL, NULL}
#define SPECIAL(name)              (struct parameter){ODD, 0, 0, decode_##name, encode_##name}
	switch (tag) {
	case OSD_EXEC_PARAM_ENGINE:
		return PLAIN(TEXT, engine, OSD_EXEC_WORD_MAX);
	case OSD_EXEC_PARAM_ARGS:
		return SPECIAL(args);
	case OSD_EXEC_PARAM_WALL:
		return LIMIT(wall_usec, WALL);
	case OSD_EXEC_PARAM_CPU:
		return LIMIT(cpu_usec, CPU);
	case OSD_EXEC_PARAM_MEMORY:
		return LIMIT(memory_bytes, MEMORY);
	case OSD_EXEC_PARAM_PROCESSES:
		return LIMIT(processes, THREADS);
	case OSD_EXEC_PARAM_OUTPUT:
		return LIMIT(output_bytes, OUTPUT);
	case OSD_EXEC_PARAM_OPEN_FILES:
		return LIMIT(open_files, OPEN_FILES);
	case OSD_EXEC_PARAM_IO:
		return LIMIT(io_bytes, IO);
	case OSD_EXEC_PARAM_PRIORITY:
		return SPECIAL(priority);
	case OSD_EXEC_PARAM_NAME:
		return PLAIN(TEXT, name, osd_exec_limits[OSD_LIMIT_NAME].maximum);
	case OSD_EXEC_PARAM_TAG:
		return (struct parameter){ODD, 0, 0, decode_tag, NULL};
	case OSD_EXEC_PARAM_KEY:
		return PLAIN(OPAQUE, key, osd_exec_limits[OSD_LIMIT_KEY].maximum);
	case OSD_EXEC_PARAM_SURROGATE_PARTITION:
		return PLAIN(ID, surrogate_partition, 0);
	case OSD_EXEC_PARAM_SURROGATE_ID:
		return PLAIN(ID, surrogate_id, 0);
	case OSD_EXEC_PARAM_SYNC_WAIT:
		return LIMIT(sync_wait_usec, SYNC_WAIT);
	case OSD_EXEC_PARAM_FLAGS:
		return SPECIAL(flags);
	case OSD_EXEC_PARAM_AFTER:
		return SPECIAL(after);
	case OSD_EXEC_PARAM_ARRAY:
		return SPECIAL(array);
	case OSD_EXEC_PARAM_POOL:
		return PLAIN(TEXT, pool, OSD_EXEC_WORD_MAX);
	case OSD_EXEC_PARAM_EXPIRY:
		return LIMIT(expiry_usec, EXPIRY);
	case OSD_EXEC_PARAM_PREDECESSOR:
		return SPECIAL(predecessor);
	case OSD_EXEC_PARAM_GRACE:
		return LIMIT(grace_usec, GRACE);
	case OSD_EXEC_PARAM_BEGIN:
		return PLAIN(NUMBER, begin_msec, BEGIN_MOST);
	case OSD_EXEC_PARAM_FUNCTION:
		return SPECIAL(function);
	default:
		return (struct parameter){.kind = UNKNOWN};
	}
#undef LIMIT
#undef PLAIN
#undef SPECIAL
}

/* ---- decode -------------------------------------------------------------------------------- */

static const char *decode_number(const struct parameter *parameter, struct osd_rd *value,
				 struct osd_exec_params *params)
{
	uint64_t number = osd_rd_be(value, 8);

	if (parameter->kind == NUMBER && !value->bad &&
	    (number == 0 || number > parameter->maximum))
		return "limit is 0 or above its maximum";
	memcpy((char *)params + parameter->at, &number, sizeof(number));
	return NULL;
}

static const char *decode_text(const struct parameter *parameter, struct osd_rd *value,
			       struct osd_exec_params *params)
{
	struct osd_exec_text text = {.length = (uint32_t)osd_rd_left(value)};

	text.bytes = osd_rd_bytes(value, text.length);
	if (text.length == 0 || text.length > parameter->maximum)
		return "text is empty or too long";
	if (parameter->kind == TEXT && !osd_text_is_clean(text.bytes, text.length))
		return "text is not UTF-8 or holds control characters";
	memcpy((char *)params + parameter->at, &text, sizeof(text));
	return NULL;
}

/* One value; NULL or what is wrong with it. */
static const char *decode_value(uint16_t tag, const struct parameter *parameter,
				struct osd_rd value, struct osd_exec_params *params)
{
	const char *why;

	if ((params->present >> tag & 1) && tag != OSD_EXEC_PARAM_TAG)
		return "parameter given twice";
	switch (parameter->kind) {
	case NUMBER:
	case ID:
		why = decode_number(parameter, &value, params);
		break;
	case TEXT:
	case OPAQUE:
		why = decode_text(parameter, &value, params);
		break;
	default:
		why = parameter->decode(&value, params);
	}
	if (!why && (value.bad || osd_rd_left(&value)))
		why = "value of the wrong length";
	params->present |= UINT32_C(1) << tag;
	return why;
}

/* One parameter at r; NULL or what is wrong with it. */
static const char *decode_parameter(struct osd_rd *r, struct osd_exec_params *params)
{
	uint16_t tag = (uint16_t)osd_rd_be(r, 2);
	uint16_t flags = (uint16_t)osd_rd_be(r, 2);
	uint32_t length = (uint32_t)osd_rd_be(r, 4);
	const uint8_t *bytes = osd_rd_bytes(r, length);
	struct parameter parameter = parameter_of(tag);

	osd_rd_bytes(r, -length & 7);
	if (r->bad)
		return "parameters run past their end";
	if (parameter.kind == UNKNOWN)
		return flags & OSD_EXEC_PARAM_CRITICAL ? "unknown parameter marked critical" : NULL;
	return decode_value(tag, &parameter, osd_rd_init(bytes, length), params);
}

static const char *decode_all(struct osd_rd r, struct osd_exec_params *params)
{
	uint16_t version = (uint16_t)osd_rd_be(&r, 2);
	uint16_t count = (uint16_t)osd_rd_be(&r, 2);
	const char *why = NULL;

	if (r.bad || version != OSD_EXEC_PARAMS_VERSION)
		return "parameters of another format version";
	while (!why && count-- > 0)
		why = decode_parameter(&r, params);
	if (!why && osd_rd_left(&r))
		why = "bytes behind the last parameter";
	return why;
}

enum osd_status osd_exec_params_decode(const uint8_t *content, size_t length,
				       struct osd_exec_params *ret_params, const char **ret_why)
{
	const char *why;

	memset(ret_params, 0, sizeof(*ret_params));
	why = decode_all(osd_rd_init(content, length), ret_params);
	if (ret_why)
		*ret_why = why;
	return why ? OSD_E_CDB_FIELD : OSD_OK;
}

/* ---- encode -------------------------------------------------------------------------------- */

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

static void encode_value(const struct osd_exec_params *params, const struct parameter *parameter,
			 struct osd_wr *w)
{
	struct osd_exec_text text;
	uint64_t number;

	switch (parameter->kind) {
	case NUMBER:
	case ID:
		memcpy(&number, (const char *)params + parameter->at, sizeof(number));
		osd_wr_be(w, number, 8);
		break;
	case TEXT:
	case OPAQUE:
		memcpy(&text, (const char *)params + parameter->at, sizeof(text));
		osd_wr_bytes(w, text.bytes, text.length);
		break;
	default:
		parameter->encode(params, w);
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
		struct parameter parameter = parameter_of(tag);
		uint8_t *length_at;

		if (!osd_exec_has(params, tag))
			continue;
		if (tag == OSD_EXEC_PARAM_TAG) {
			count = (uint16_t)(count + encode_tags(params, &w));
			continue;
		}
		length_at = begin_parameter(&w, tag);
		encode_value(params, &parameter, &w);
		end_parameter(&w, length_at);
		count++;
	}
	if (w.bad)
		return 0;
	osd_put_be(count_at, count, 2);
	return osd_wr_used(&w);
}
