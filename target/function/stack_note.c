/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_note.c -- see stack_note.h. */
#include "function/stack_note.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "function/impl.h"
#include "security/mac.h"
#include "wire/cursor.h"
#include "wire/json.h"

#define NOTES 1024u

struct osd_stack_notes {
	struct osd_lock lock;
	struct osd_stack_note *notes[NOTES]; /* under lock; NULL: none yet */
};

struct osd_stack_notes *osd_stack_notes_create(void)
{
	struct osd_stack_notes *notes = calloc(1, sizeof(*notes));

	if (notes)
		osd_lock_init(&notes->lock, OSD_RANK_NOTES);
	return notes;
}

static void release(struct osd_stack_note *note)
{
	free(note->text);
	free(note->stack);
}

void osd_stack_notes_free(struct osd_stack_notes *notes)
{
	if (!notes)
		return;
	for (size_t i = 0; i < NOTES; i++) {
		if (notes->notes[i])
			release(notes->notes[i]);
		free(notes->notes[i]);
	}
	osd_lock_destroy(&notes->lock);
	free(notes);
}

/* Both counters only grow, so the sum is the same only if both are. */
uint64_t osd_stack_changes(struct osd_functions *functions)
{
	return atomic_load(&functions->changes) + osd_stacks_changes(functions->objects);
}

/* ---- the hash ---------------------------------------------------------------------------------- */

static void add_number(struct osd_sha256 *sha, uint64_t number)
{
	uint8_t bytes[8];

	osd_put_be(bytes, number, sizeof(bytes));
	osd_sha256_add(sha, bytes, sizeof(bytes));
}

/* The length comes first: otherwise two different stacks could add the same bytes. */
static void add_bytes(struct osd_sha256 *sha, const void *bytes, size_t length)
{
	add_number(sha, length);
	osd_sha256_add(sha, bytes, length);
}

static void add_text(struct osd_sha256 *sha, const char *text)
{
	add_bytes(sha, text, strlen(text));
}

static void add_stage(struct osd_sha256 *sha, const struct osd_stage *stage)
{
	const struct osd_function *function = &stage->function;
	const struct osd_contract *contract = &function->contract;

	add_number(sha, function->id.partition_id);
	add_number(sha, function->id.object_id);
	add_bytes(sha, function->sha256, sizeof(function->sha256));
	add_text(sha, function->engine);
	add_number(sha, function->abi);
	add_text(sha, function->pool);
	add_number(sha, contract->size);
	add_number(sha, contract->block);
	add_number(sha, contract->records);
	add_number(sha, (uint32_t)contract->header);
	add_number(sha, contract->numerator);
	add_number(sha, contract->denominator);
	add_number(sha, contract->optional);
	add_text(sha, stage->method);
	add_bytes(sha, stage->parameters, stage->parameters_length);
}

/* Of what the data pass through: code, engine, pool, contract, entry point and parameters of each
 * stage, in order.  Limits, signer and time of the activation do not change the bytes.  So kept
 * results are also found after another activation of the same code. */
static void hash_stack(const struct osd_stack *stack, uint8_t hash[32])
{
	struct osd_sha256 sha;

	osd_sha256_init(&sha);
	for (size_t i = 0; i < stack->count; i++)
		add_stage(&sha, &stack->stages[i]);
	osd_sha256_end(&sha, hash);
}

/* ---- notes ------------------------------------------------------------------------------------- */

static struct osd_stack_note **place_of(struct osd_stack_notes *notes, struct osd_object_id id)
{
	uint64_t hash = (id.partition_id * 31 + id.object_id) * UINT64_C(0x9e3779b97f4a7c15);

	osd_assert_held(&notes->lock);
	return &notes->notes[(hash >> 32) % NOTES];
}

/* Under lock. */
static struct osd_stack_note *find(struct osd_stack_notes *notes, struct osd_object_id id)
{
	struct osd_stack_note *note = *place_of(notes, id);

	return note && osd_same_id(note->id, id) ? note : NULL;
}

/* NULL: out of memory. */
static struct osd_stack *copy_of(const struct osd_stack *stack)
{
	size_t size = offsetof(struct osd_stack, stages) + stack->count * sizeof(stack->stages[0]);
	struct osd_stack *copy = malloc(size);

	if (copy)
		memcpy(copy, stack, size);
	return copy;
}

struct osd_stack_note osd_stack_note_put(struct osd_functions *functions, struct osd_object_id id,
					 uint64_t changes, const struct osd_stack *stack,
					 struct osd_function_code *const codes[OSD_STACK_STAGES])
{
	struct osd_stack_notes *notes = functions->notes;
	struct osd_stack_note note = {.id = id,
				      .source = stack->source,
				      .source_created_msec = stack->source_created_msec,
				      .changes = changes,
				      .unit = osd_kept_unit(stack->contract.block),
				      .deterministic = stack->contract.deterministic,
				      .count = stack->count};
	struct osd_stack_note **place;

	hash_stack(stack, note.hash);
	note.text = osd_stack_describe(stack, &note.text_length);
	note.stack = copy_of(stack);
	for (size_t i = 0; i < stack->count; i++) {
		note.functions[i].id = stack->stages[i].function.id;
		note.functions[i].version = codes[i]->version;
	}
	osd_lock(&notes->lock);
	place = place_of(notes, id);
	/* The last READ may have passed another stack: osd_stack_why_end compares hashes. */
	if (*place && osd_same_id((*place)->id, id))
		note.last = (*place)->last;
	if (*place)
		release(*place);
	else
		*place = malloc(sizeof(**place));
	if (*place)
		**place = note;
	else
		release(&note);
	osd_unlock(&notes->lock);
	note.text = NULL;
	note.stack = NULL;
	return note;
}

bool osd_stack_note_get(struct osd_functions *functions, struct osd_object_id id,
			struct osd_stack_note *ret_note, struct osd_stack **ret_stack)
{
	OSD_CLEANUP_FREE struct osd_stack *stack = NULL;
	struct osd_stack_notes *notes = functions->notes;
	uint64_t changes = osd_stack_changes(functions);
	struct osd_stack_note *note;
	bool holds;

	osd_lock(&notes->lock);
	note = find(notes, id);
	holds = note && note->changes == changes;
	if (holds) {
		*ret_note = *note;
		ret_note->text = NULL;
		ret_note->stack = NULL;
	}
	if (holds && ret_stack) {
		stack = note->stack ? copy_of(note->stack) : NULL;
		holds = stack;
	}
	osd_unlock(&notes->lock);
	/* A WRITE of a function's code changes no counter.  The lock of the cache of objects, which
	 * this takes, must not be taken under a leaf. */
	for (size_t i = 0; holds && i < ret_note->count; i++)
		holds = osd_function_code_is_current(functions, ret_note->functions[i].id,
						     &ret_note->functions[i].version);
	if (holds && ret_stack)
		*ret_stack = OSD_STEAL(stack);
	return holds;
}

void osd_stack_note_read(struct osd_functions *functions, struct osd_object_id id,
			 const struct osd_stack_read *read)
{
	struct osd_stack_note *note;

	osd_lock(&functions->notes->lock);
	note = find(functions->notes, id);
	if (note)
		note->last = *read;
	osd_unlock(&functions->notes->lock);
}

void osd_stack_note_why(struct osd_functions *functions, struct osd_object_id id, uint8_t *buffer,
			size_t capacity, size_t *ret_length)
{
	struct osd_json json = osd_json_init(buffer, capacity);
	struct osd_stack_note *note, holding;
	bool current = osd_stack_note_get(functions, id, &holding, NULL);

	osd_lock(&functions->notes->lock);
	note = find(functions->notes, id);
	if (note && note->text) {
		osd_wr_bytes(&json.w, note->text, note->text_length);
		json.comma = true;
		osd_stack_why_end(&json, note, current);
	}
	osd_unlock(&functions->notes->lock);
	*ret_length = osd_wr_used(&json.w);
}
