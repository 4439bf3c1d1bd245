/* SPDX-License-Identifier: GPL-2.0-or-later */
/* exec_param.c -- EXEC PARAMETERS: the decoder.
 * One row per tag says how its value looks and where it goes; the few odd ones have a function. */
#include "wire/exec_param.h"

#include <string.h>

#include "wire/cursor.h"
#include "wire/index_ranges.h"
#include "wire/text.h"

#define AFTER_ENTRY   24u
#define PRIORITY_MOST 100
#define TAG_MOST      OSD_EXEC_PARAM_REUSE
#define BEGIN_MOST    ((UINT64_C(1) << 48) - 1) /* times of day have 6 bytes in attributes */

enum kind {
	UNKNOWN,
	NUMBER, /* be64 in 1..maximum */
	ID,	/* be64 */
	TEXT,	/* UTF-8 of 1..maximum bytes */
	OPAQUE, /* 1..maximum bytes */
	ODD,
};

typedef const char *decode_fn(struct osd_rd *value, struct osd_exec_params *params);

struct parameter {
	enum kind kind;
	size_t at; /* of the field in struct osd_exec_params */
	uint64_t maximum;
	decode_fn *decode; /* ODD */
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

static const char *decode_priority(struct osd_rd *value, struct osd_exec_params *params)
{
	params->priority = (int16_t)(uint16_t)osd_rd_be(value, 2);
	if (value->bad || params->priority < -PRIORITY_MOST || params->priority > PRIORITY_MOST)
		return "priority outside -100..100";
	return NULL;
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
			       OSD_EXEC_CODE_FORM | OSD_EXEC_PREDECESSOR_ARGS;

	params->flags = (uint32_t)osd_rd_be(value, 4);
	if (value->bad || (params->flags & ~known))
		return "unknown flag";
	if ((osd_exec_code_form(params->flags) & OSD_CODE_PACKING) == OSD_CODE_PACKING)
		return "code packed in an unknown way";
	return NULL;
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

static const char *decode_predecessor(struct osd_rd *value, struct osd_exec_params *params)
{
	params->predecessor_partition = osd_rd_be(value, 8);
	params->predecessor_id = osd_rd_be(value, 8);
	return params->predecessor_id ? NULL : "a predecessor that is no job";
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
	params->function.record = (uint8_t)osd_rd_be(value, 1);
	params->function.args_encoding = (uint16_t)osd_rd_be(value, 1);
	method = osd_rd_be(value, 2);
	why = decode_word(value, method, &params->function.method);
	if (!why)
		why = decode_word(value, osd_rd_left(value), &params->function.name);
	if (why)
		return why;
	if (params->function.args_encoding > OSD_ARGS_JSON)
		return "arguments in an unknown encoding";
	if (params->function.record > OSD_RECORD_ALWAYS)
		return "whether the call has a record is no known value";
	if ((params->function.object_id == 0) == (params->function.name.length == 0))
		return "a function is named by its id or by a name, and not by both";
	return NULL;
}

static const char *decode_home(struct osd_rd *value, struct osd_exec_params *params)
{
	params->home_usec = osd_rd_be(value, 8);
	params->home_bytes = osd_rd_be(value, 8);
	if (params->home_usec > osd_exec_limits[OSD_LIMIT_WALL].maximum ||
	    params->home_bytes > INT64_MAX)
		return "time or bytes of the work at home are above their maximum";
	return NULL;
}

/* ---- the table ------------------------------------------------------------------------------ */

/* The highest values that a target may allow, as constants. */
enum {
#define X(symbol, name, unit, standard, maximum, meaning) MOST_##symbol = maximum,
	OSD_EXEC_LIMITS(X)
#undef X
};

#define ROW(kind_, field, most)                                                                    \
	{.kind = (kind_), .at = offsetof(struct osd_exec_params, field), .maximum = (most)}
#define ODD_ROW(function) {.kind = ODD, .decode = (function)}

/* Indexed by tag. */
static const struct parameter parameters[] = {
	[OSD_EXEC_PARAM_ENGINE] = ROW(TEXT, engine, OSD_EXEC_WORD_MAX),
	[OSD_EXEC_PARAM_ARGS] = ODD_ROW(decode_args),
	[OSD_EXEC_PARAM_WALL] = ROW(NUMBER, wall_usec, MOST_WALL),
	[OSD_EXEC_PARAM_CPU] = ROW(NUMBER, cpu_usec, MOST_CPU),
	[OSD_EXEC_PARAM_MEMORY] = ROW(NUMBER, memory_bytes, MOST_MEMORY),
	[OSD_EXEC_PARAM_PROCESSES] = ROW(NUMBER, processes, MOST_THREADS),
	[OSD_EXEC_PARAM_OUTPUT] = ROW(NUMBER, output_bytes, MOST_OUTPUT),
	[OSD_EXEC_PARAM_OPEN_FILES] = ROW(NUMBER, open_files, MOST_OPEN_FILES),
	[OSD_EXEC_PARAM_IO] = ROW(NUMBER, io_bytes, MOST_IO),
	[OSD_EXEC_PARAM_PRIORITY] = ODD_ROW(decode_priority),
	[OSD_EXEC_PARAM_NAME] = ROW(TEXT, name, MOST_NAME),
	[OSD_EXEC_PARAM_TAG] = ODD_ROW(decode_tag),
	[OSD_EXEC_PARAM_KEY] = ROW(OPAQUE, key, MOST_KEY),
	[OSD_EXEC_PARAM_SURROGATE_PARTITION] = ROW(ID, surrogate_partition, 0),
	[OSD_EXEC_PARAM_SURROGATE_ID] = ROW(ID, surrogate_id, 0),
	[OSD_EXEC_PARAM_SYNC_WAIT] = ROW(NUMBER, sync_wait_usec, MOST_SYNC_WAIT),
	[OSD_EXEC_PARAM_FLAGS] = ODD_ROW(decode_flags),
	[OSD_EXEC_PARAM_AFTER] = ODD_ROW(decode_after),
	[OSD_EXEC_PARAM_ARRAY] = ODD_ROW(decode_array),
	[OSD_EXEC_PARAM_POOL] = ROW(TEXT, pool, OSD_EXEC_WORD_MAX),
	[OSD_EXEC_PARAM_EXPIRY] = ROW(NUMBER, expiry_usec, MOST_EXPIRY),
	[OSD_EXEC_PARAM_PREDECESSOR] = ODD_ROW(decode_predecessor),
	[OSD_EXEC_PARAM_GRACE] = ROW(NUMBER, grace_usec, MOST_GRACE),
	[OSD_EXEC_PARAM_BEGIN] = ROW(NUMBER, begin_msec, BEGIN_MOST),
	[OSD_EXEC_PARAM_REUSE] = ROW(NUMBER, reuse_usec, UINT64_MAX),
	[OSD_EXEC_PARAM_FUNCTION] = ODD_ROW(decode_function),
	[OSD_EXEC_PARAM_HOME] = ODD_ROW(decode_home),
};

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
	const struct parameter *parameter = &parameters[tag <= TAG_MOST ? tag : 0];

	osd_rd_bytes(r, -length & 7);
	if (r->bad)
		return "parameters run past their end";
	if (parameter->kind == UNKNOWN)
		return flags & OSD_EXEC_PARAM_CRITICAL ? "unknown parameter marked critical" : NULL;
	return decode_value(tag, parameter, osd_rd_init(bytes, length), params);
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
	if (!why && params->flags & OSD_EXEC_PREDECESSOR_ARGS &&
	    !osd_exec_has(params, OSD_EXEC_PARAM_PREDECESSOR))
		why = "arguments of no predecessor";
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
