/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_why.c -- how the data of an object came about, as attribute OSD_STACK_WHY shows it (stack_note.h).  Readers of
 * the object see it, who may not see the values of its source: so it has no parameters, which may be keys. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "function/stack_note.h"
#include "wire/json.h"

#define TEXT_MAX (32u << 10) /* 16 stages, with every letter of their names escaped */

static void put_id(struct osd_json *json, const char *key, struct osd_object_id id)
{
	char text[40];

	snprintf(text, sizeof(text), "0x%" PRIx64 "/0x%" PRIx64, id.partition_id, id.object_id);
	osd_json_text(json, key, text);
}

static void put_bytes(struct osd_json *json, const char *key, const uint8_t *bytes, size_t length)
{
	char text[2 * 32 + 1] = "";

	for (size_t i = 0; i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	osd_json_text(json, key, text);
}

static void put_stage(struct osd_json *json, const struct osd_stage *stage)
{
	const struct osd_function *function = &stage->function;

	osd_json_open(json, NULL, '{');
	put_id(json, "function", function->id);
	osd_json_text(json, "name", function->alias);
	osd_json_text(json, "method", stage->method);
	osd_json_text(json, "engine",
		      function->engine[0] ? function->engine : OSD_FUNCTION_ENGINE);
	put_bytes(json, "sha256", function->sha256, sizeof(function->sha256));
	osd_json_text(json, "signer", function->signer);
	osd_json_close(json, '}');
}

char *osd_stack_describe(const struct osd_stack *stack, size_t *ret_length)
{
	char *text = malloc(TEXT_MAX), *fitting;
	struct osd_json json = osd_json_init(text, text ? TEXT_MAX : 0);

	osd_json_open(&json, NULL, '{');
	put_id(&json, "source", stack->source);
	osd_json_bool(&json, "deterministic", stack->contract.deterministic);
	osd_json_open(&json, "stages", '[');
	for (size_t i = 0; i < stack->count; i++)
		put_stage(&json, &stack->stages[i]);
	osd_json_close(&json, ']');
	if (json.w.bad) {
		free(text);
		return NULL;
	}
	*ret_length = osd_wr_used(&json.w);
	fitting = realloc(text, *ret_length);
	return fitting ? fitting : text;
}

void osd_stack_why_end(struct osd_json *json, const struct osd_stack_note *note, bool current)
{
	const struct osd_stack_read *read = &note->last;
	uint8_t version[OSD_VERSION_BYTES];

	osd_json_bool(json, "current", current);
	if (read->ended_msec && memcmp(read->stack, note->hash, sizeof(note->hash)) == 0) {
		osd_version_encode(read->version, version);
		osd_json_open(json, "read", '{');
		put_bytes(json, "version", version, sizeof(version));
		osd_json_bool(json, "kept", read->use == OSD_KEPT_HIT);
		osd_json_number(json, "usec", read->usec);
		osd_json_number(json, "ended_msec", read->ended_msec);
		osd_json_close(json, '}');
	}
	osd_json_close(json, '}');
}
