/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack.c -- see stack.h.  Everything here may run in a transaction: it reads active functions in memory alone. */
#include "function/stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "function/impl.h"
#include "function/stack_note.h"
#include "object/view.h"

/* ---- from values to a stack --------------------------------------------------------------------- */

/* The nearest level that concerns the object, in the order of the values. */
struct level {
	struct osd_functions *functions;
	enum osd_status status;
	size_t count;
	struct osd_stage *stages; /* OSD_STACK_STAGES of them, in the order of WRITE */
	bool has_source;
	struct osd_source_value source;
};

/* The two entry points that undo each other are each other's inverse. */
static void choose_inverse(struct osd_stage *stage)
{
	if (strcmp(stage->method, stage->function.inverse) == 0)
		osd_function_first_method(&stage->function, stage->inverse);
	else
		memcpy(stage->inverse, stage->function.inverse, sizeof(stage->inverse));
}

static enum osd_status make_stage(struct osd_functions *functions,
				  const struct osd_stage_value *value, uint32_t number,
				  struct osd_stage *stage)
{
	const struct osd_object_id id = {value->partition_id, value->object_id};

	*stage = (struct osd_stage){.number = number};
	if (!osd_function_peek(functions, id, &stage->function))
		return OSD_E_FUNCTION_INACTIVE;
	if (!stage->function.contract.size ||
	    !osd_function_choose_method(&stage->function, value->method, value->method_length,
					stage->method))
		return OSD_E_CONTRACT;
	choose_inverse(stage);
	memcpy(stage->parameters, value->parameters, value->parameters_length);
	stage->parameters_length = value->parameters_length;
	return OSD_OK;
}

static void take_source(struct level *level, const uint8_t *bytes, size_t length)
{
	level->has_source = osd_source_value_decode(bytes, length, &level->source);
	if (!level->has_source)
		level->status = OSD_E_MEDIUM;
}

/* It follows the stages of the same object. */
static void take_definer(struct level *level, uint32_t number, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < level->count && length < OSD_PRINCIPAL_MAX; i++)
		if (level->stages[i].number + OSD_STACK_DEFINERS == number)
			memcpy(level->stages[i].definer, bytes, length);
}

static bool take_value(void *arg, enum osd_stack_level at, uint32_t number, const uint8_t *bytes,
		       size_t length)
{
	struct level *level = arg;
	struct osd_stage_value value;

	if (number > OSD_STACK_STAGES) {
		if (number == OSD_STACK_SOURCE && at == OSD_STACK_OWN)
			take_source(level, bytes, length);
		if (number > OSD_STACK_DEFINERS)
			take_definer(level, number, bytes, length);
		return false;
	}
	if (level->status != OSD_OK)
		return true;
	if (!osd_stage_value_decode(bytes, length, &value) || level->count == OSD_STACK_STAGES) {
		level->status = OSD_E_MEDIUM;
		return true;
	}
	if (at != OSD_STACK_OWN && !value.inherited)
		return false;
	if (!value.none)
		level->status = make_stage(level->functions, &value, number,
					   &level->stages[level->count++]);
	return true;
}

/* A ratio holds for one direction. */
struct osd_contract osd_stage_contract(const struct osd_stage *stage, bool inverse)
{
	struct osd_contract contract = stage->function.contract;
	const char *method = inverse ? stage->inverse : stage->method;

	if (contract.size == OSD_SIZE_FIXED && strcmp(method, stage->function.inverse) == 0)
		contract.size = OSD_SIZE_UNKNOWN;
	contract.inverse = stage->inverse[0];
	return contract;
}

static void add_up(struct osd_stack *stack)
{
	struct osd_contract contracts[OSD_STACK_STAGES];

	for (size_t i = 0; i < stack->count; i++)
		contracts[i] = osd_stage_contract(&stack->stages[i], false);
	stack->contract = osd_contract_of_stack(contracts, stack->count);
}

/* Behind the stages of the source. */
static enum osd_status append(struct osd_stack *stack, const struct level *level)
{
	if (level->count > OSD_STACK_STAGES - stack->count)
		return OSD_E_CONTRACT;
	for (size_t i = level->count; i-- > 0;)
		stack->stages[stack->count++] = level->stages[i];
	return OSD_OK;
}

/* 0: there is no such object, or none that can be a source. */
static enum osd_status source_created(struct osd_txn *txn, const struct osd_source_value *source,
				      uint64_t *ret_msec)
{
	const struct osd_object_id id = {source->partition_id, source->object_id};
	struct osd_object_facts facts = {0};
	enum osd_status status = osd_txn_facts(txn, id, false, &facts);

	if (status != OSD_OK && !osd_status_is_gone(status))
		return status;
	*ret_msec = facts.type == OSD_USER_OBJECT && !facts.surrogate ? facts.created_ms : 0;
	return OSD_OK;
}

/* A later object with the id of the source is another one: it was created later (object/created.c). */
static enum osd_status check_source(struct osd_txn *txn, const struct osd_source_value *source)
{
	uint64_t created_msec;
	enum osd_status status = source_created(txn, source, &created_msec);

	if (status != OSD_OK)
		return status;
	return created_msec && created_msec == source->created_msec ? OSD_OK : OSD_E_NO_OBJECT;
}

/* The object, or (made) one that is being made. */
static enum osd_status read_level(struct osd_txn *txn, struct osd_object_id id,
				  const struct osd_stack_made *made, struct level *level)
{
	enum osd_status status = made ? osd_stack_each_above(txn, made, take_value, level)
				      : osd_stack_each(txn, id, take_value, level);

	return status == OSD_OK ? level->status : status;
}

static enum osd_status resolve(struct osd_functions *functions, struct osd_txn *txn,
			       struct osd_object_id id, const struct osd_stack_made *made,
			       unsigned depth, struct osd_stack *stack);

/* An object that is made in a view is made in its base, in no collection there. */
static enum osd_status resolve_base(struct osd_functions *functions, struct osd_txn *txn,
				    uint64_t partition_id, struct osd_stack *stack)
{
	struct osd_stack_made made = {0};
	struct osd_view view;
	enum osd_status status = osd_view_of(txn, partition_id, &view);

	if (status != OSD_OK || !view.base)
		return status;
	if (!view.live || !view.writable || view.collection)
		return OSD_E_CONTRACT;
	made.partition_id = view.base;
	return resolve(functions, txn, (struct osd_object_id){view.base, 0}, &made, 0, stack);
}

/* depth: how many more sources may follow; 0: the source is named, and not followed. */
static enum osd_status resolve(struct osd_functions *functions, struct osd_txn *txn,
			       struct osd_object_id id, const struct osd_stack_made *made,
			       unsigned depth, struct osd_stack *stack)
{
	OSD_CLEANUP_FREE struct osd_stage *stages = calloc(OSD_STACK_STAGES, sizeof(*stages));
	struct level level = {.functions = functions, .stages = stages};
	enum osd_status status;

	if (!stages)
		return OSD_E_NO_MEMORY;
	stack->source = id;
	status = read_level(txn, id, made, &level);
	if (status == OSD_OK && level.has_source) {
		stack->source =
			(struct osd_object_id){level.source.partition_id, level.source.object_id};
		stack->source_created_msec = level.source.created_msec;
		stack->writable &= level.source.writable;
		if (depth)
			status = check_source(txn, &level.source);
		if (depth && status == OSD_OK)
			status = depth == 1 ? OSD_E_NO_OBJECT
					    : resolve(functions, txn, stack->source, NULL,
						      depth - 1, stack);
	}
	if (status == OSD_OK && made)
		status = resolve_base(functions, txn, made->partition_id, stack);
	return status == OSD_OK ? append(stack, &level) : status;
}

static enum osd_status make(struct osd_functions *functions, struct osd_txn *txn,
			    struct osd_object_id id, const struct osd_stack_made *made,
			    unsigned depth, struct osd_stack **ret_stack)
{
	OSD_CLEANUP_FREE struct osd_stack *stack = calloc(1, sizeof(*stack));
	enum osd_status status = OSD_E_NO_MEMORY;

	if (stack) {
		stack->writable = true;
		status = resolve(functions, txn, id, made, depth, stack);
	}
	if (status != OSD_OK)
		return status;
	add_up(stack);
	*ret_stack = OSD_STEAL(stack);
	return OSD_OK;
}

enum osd_status osd_stack_resolve(struct osd_functions *functions, struct osd_txn *txn,
				  struct osd_object_id id, struct osd_stack **ret_stack)
{
	return make(functions, txn, id, NULL, OSD_SOURCES_MAX + 1, ret_stack);
}

enum osd_status osd_stack_resolve_new(struct osd_functions *functions, struct osd_txn *txn,
				      const struct osd_stack_made *made,
				      struct osd_stack **ret_stack)
{
	return make(functions, txn, (struct osd_object_id){made->partition_id, 0}, made, 0,
		    ret_stack);
}

static bool same_stage(const struct osd_stage *a, const struct osd_stage *b)
{
	return osd_function_same(&a->function, &b->function) && strcmp(a->method, b->method) == 0 &&
	       a->parameters_length == b->parameters_length &&
	       memcmp(a->parameters, b->parameters, a->parameters_length) == 0;
}

bool osd_stack_same(const struct osd_stack *a, const struct osd_stack *b)
{
	bool same = a->count == b->count && osd_same_id(a->source, b->source);

	for (size_t i = 0; same && i < a->count; i++)
		same = same_stage(&a->stages[i], &b->stages[i]);
	return same;
}

/* If the stack cannot be made, a READ says why; the length is not known. */
static enum osd_status length_of(void *arg, struct osd_txn *txn, struct osd_object_id id,
				 uint64_t stored, uint64_t *ret_length, bool *ret_known)
{
	OSD_CLEANUP_FREE struct osd_stack *stack = NULL;
	enum osd_status status = osd_stack_resolve(arg, txn, id, &stack);

	*ret_length = stored;
	if (status == OSD_OK && !osd_same_id(stack->source, id))
		status = osd_object_used(txn, stack->source, ret_length);
	*ret_known = status == OSD_OK;
	for (size_t i = 0; *ret_known && i < stack->count; i++) {
		const struct osd_contract contract = osd_stage_contract(&stack->stages[i], false);

		*ret_known = osd_contract_length(&contract, *ret_length, ret_length);
	}
	return status == OSD_E_FUNCTION_INACTIVE || status == OSD_E_CONTRACT ||
			       osd_status_is_gone(status)
		       ? OSD_OK
		       : status;
}

/* A read-only view does not empty its source, nor does one that cannot be read. */
static enum osd_status emptied(void *arg, struct osd_txn *txn, struct osd_object_id id,
			       struct osd_object_id *ret_id)
{
	OSD_CLEANUP_FREE struct osd_stack *stack = NULL;
	size_t length;
	enum osd_status status = osd_page_kept_get(txn, id, osd_stack_page(OSD_USER_OBJECT),
						   OSD_STACK_SOURCE, NULL, 0, &length);

	*ret_id = id;
	if (status != OSD_OK || length == 0)
		return status;
	status = osd_stack_resolve(arg, txn, id, &stack);
	if (status == OSD_OK && stack->writable)
		*ret_id = stack->source;
	else if (status == OSD_OK || status == OSD_E_NO_OBJECT || status == OSD_E_CONTRACT ||
		 status == OSD_E_FUNCTION_INACTIVE)
		status = OSD_E_PARAM_FIELD;
	return status;
}

static enum osd_status concerns(void *arg, struct osd_txn *txn, struct osd_object_id id,
				bool *ret_concerns)
{
	OSD_CLEANUP_FREE struct osd_stack *stack = NULL;
	enum osd_status status = make(arg, txn, id, NULL, 0, &stack);
	bool broken = status == OSD_E_FUNCTION_INACTIVE || status == OSD_E_CONTRACT;

	*ret_concerns = broken || (status == OSD_OK && !osd_stack_is_plain(stack, id));
	return broken ? OSD_OK : status;
}

/* ---- the pages ----------------------------------------------------------------------------------- */

static bool may_have_values(struct osd_object_id id)
{
	return (id.partition_id == 0 || id.partition_id > OSD_FUNCTION_PARTITION_LAST) &&
	       (id.object_id == 0 || id.object_id >= OSD_FIRST_ID);
}

static bool is_good(struct osd_functions *functions, const uint8_t *bytes, size_t length)
{
	struct osd_stage_value value;
	struct osd_stage stage;

	return osd_stage_value_decode(bytes, length, &value) &&
	       (value.none || make_stage(functions, &value, 1, &stage) == OSD_OK);
}

/* Objects of a view show those of its base with the same ids, and nothing else. */
static bool is_source_in(const struct osd_view *view, struct osd_object_id id,
			 const struct osd_source_value *source)
{
	return source->partition_id == view->base && source->object_id == id.object_id &&
	       source->created_msec;
}

/* Whether the client may read the source is checked before (command/authorise_others.c). */
static enum osd_status set_source(struct osd_txn *txn, struct osd_object_id id,
				  const uint8_t *value, size_t length)
{
	uint8_t bytes[OSD_SOURCE_BYTES];
	struct osd_source_value source = {0};
	struct osd_object_facts facts = {0};
	struct osd_view view;
	bool admits = true;
	enum osd_status status;

	if (!may_have_values(id) || id.partition_id == 0)
		return OSD_E_PARAM_FIELD;
	if (id.object_id == 0)
		return osd_view_set(txn, id.partition_id, value, length);
	if (length &&
	    (length > OSD_SOURCE_GIVEN || !osd_source_value_decode(value, length, &source) ||
	     source.partition_id <= OSD_FUNCTION_PARTITION_LAST))
		return OSD_E_PARAM_FIELD;
	status = osd_view_of(txn, id.partition_id, &view);
	if (status == OSD_OK && length)
		status = osd_txn_facts(txn, id, false, &facts);
	/* The target removes objects of jobs, and must not find another object behind one. */
	if (status == OSD_OK && facts.surrogate)
		status = OSD_E_PARAM_FIELD;
	if (status == OSD_OK && length)
		status = source_created(txn, &source, &source.created_msec);
	if (status == OSD_OK && length && view.live)
		status = osd_view_admits(txn, &view, id.object_id, &admits);
	if (status == OSD_OK && view.base && (length || view.live) &&
	    !(admits && view.live && is_source_in(&view, id, &source)))
		status = OSD_E_PARAM_FIELD;
	if (status != OSD_OK)
		return status;
	osd_source_value_encode(&source, bytes);
	return osd_stack_put(txn, id, OSD_STACK_SOURCE, bytes, length ? sizeof(bytes) : 0);
}

static enum osd_status set(void *context, struct osd_txn *txn, struct osd_object_id id,
			   uint32_t page, uint32_t number, const uint8_t *value, size_t length)
{
	if (number == OSD_STACK_SOURCE && page != osd_stack_page(OSD_COLLECTION))
		return set_source(txn, id, value, length);
	if (!may_have_values(id) || number == 0 || number > OSD_STACK_STAGES ||
	    (length && !is_good(context, value, length)))
		return OSD_E_PARAM_FIELD;
	return osd_stack_put(txn, id, number, value, length);
}

static enum osd_status get(void *context, struct osd_txn *txn, struct osd_object_id id,
			   uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
			   size_t *ret_length)
{
	*ret_length = 0;
	if (number == OSD_STACK_WHY && page == osd_stack_page(OSD_USER_OBJECT))
		osd_stack_note_why(context, id, buffer, capacity, ret_length);
	if (number == 0 || number > OSD_STACK_SOURCE)
		return OSD_OK;
	return osd_page_kept_get(txn, id, page, number, buffer, capacity, ret_length);
}

void osd_stack_add_pages(struct osd_functions *functions)
{
	static const enum osd_object_type types[OSD_STACK_LEVELS] = {
		OSD_USER_OBJECT, OSD_COLLECTION, OSD_PARTITION, OSD_ROOT};
	const struct osd_stack_ops ops = {length_of, concerns, emptied, functions};

	for (size_t i = 0; i < OSD_STACK_LEVELS; i++) {
		functions->stack_pages[i] =
			(struct osd_page_provider){.page = osd_stack_page(types[i]),
						   .page_name = "iosd stack of functions",
						   .context = functions,
						   .get = get,
						   .last = OSD_STACK_SOURCE,
						   .set = set};
		osd_objects_add_page(functions->objects, &functions->stack_pages[i]);
	}
	osd_objects_set_stack_ops(functions->objects, &ops);
}
