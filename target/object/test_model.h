/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_model.h -- for crash and fault tests: a sequence of operations that follows from a seed, and
 * a plain model of what the store must hold after any number of them.  Kept in another process than
 * the one killed. */
#ifndef OSD_OBJECT_TEST_MODEL_H
#define OSD_OBJECT_TEST_MODEL_H

#include "object/draft.h"
#include "object/test_index.h"

#define MODEL_OBJECTS 12
#define MODEL_MAX     (3u << 20)
#define MODEL_PID     UINT64_C(0x10000)
#define MODEL_PAGE    INDEX_PAGE

enum model_kind {
	MODEL_CREATE,
	MODEL_REMOVE,
	MODEL_WRITE,
	MODEL_APPEND,
	MODEL_TRUNCATE,
	MODEL_SET_LENGTH,
	MODEL_PUNCH,
	MODEL_CLEAR,
	MODEL_SET,
	MODEL_WRITE_SET,    /* WRITE and SET in one step */
	MODEL_CREATE_WRITE, /* CREATE, WRITE and SET in one step */
	MODEL_COPY,	    /* CREATE with data and attributes of another one */
	MODEL_REPLACE,	    /* all bytes */
	MODEL_KINDS
};

struct model_op {
	enum model_kind kind;
	unsigned object;
	uint32_t offset, length;
	uint64_t value;
};

struct model_object {
	bool exists, uncertain; /* uncertain: an operation on it failed or was cut off */
	uint8_t *bytes;
	uint32_t length, room; /* bytes beyond the length are zeros */
	uint64_t value;	       /* of attributes 1 and 2, set together; 0: none */
	/* While uncertain: the operation that may have made it, whole or not at all. */
	struct model_op made;
	bool may_be_made;
};

struct model {
	struct model_object objects[MODEL_OBJECTS];
};

static inline uint64_t model_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline struct model_op model_op(uint64_t seed, uint64_t number)
{
	uint64_t state =
		(seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + number * UINT64_C(0xbf58476d1ce4e5b9);
	struct model_op op;

	for (int i = 0; i < 4; i++)
		model_random(&state);
	op.kind = model_random(&state) % MODEL_KINDS;
	op.object = model_random(&state) % MODEL_OBJECTS;
	op.offset = (uint32_t)(model_random(&state) %
			       (model_random(&state) % 4 ? 20000 : MODEL_MAX / 4 * 3));
	op.length =
		1 + (uint32_t)(model_random(&state) % (model_random(&state) % 4 ? 5000 : 200000));
	op.value = number + 1;
	return op;
}

static inline unsigned model_source(const struct model_op *op)
{
	return (unsigned)(op->value % MODEL_OBJECTS);
}

static inline struct osd_object_id model_id(const struct model_op *op)
{
	return (struct osd_object_id){MODEL_PID, OSD_FIRST_ID + op->object};
}

/* The bytes come again after 256 of them. */
static inline void model_fill(uint8_t *bytes, const struct model_op *op)
{
	uint32_t done = OSD_MIN(op->length, 256u), piece;

	for (uint32_t i = 0; i < done; i++)
		bytes[i] = (uint8_t)(op->value * 31 + i);
	for (; done < op->length; done += piece) {
		piece = OSD_MIN(done, op->length - done);
		memcpy(bytes + done, bytes, piece);
	}
}

/* ---- on the model ------------------------------------------------------------------------ */

static inline void model_resize(struct model_object *object, uint32_t length)
{
	CHECK(length <= 2 * MODEL_MAX);
	if (length > object->room) {
		uint32_t room = OSD_MAX(length, 2 * object->room);

		object->bytes = realloc(object->bytes, room);
		CHECK(object->bytes);
		memset(object->bytes + object->room, 0, room - object->room);
		object->room = room;
	}
	if (length < object->length)
		memset(object->bytes + length, 0, object->length - length);
	object->length = length;
}

static inline void model_put(struct model_object *object, const struct model_op *op,
			     uint32_t offset)
{
	model_resize(object, OSD_MAX(object->length, offset + op->length));
	model_fill(object->bytes + offset, op);
}

/* An append must stay inside the model's buffer. */
static inline bool model_fits(const struct model_object *object, const struct model_op *op)
{
	return object->length + op->length < 2 * MODEL_MAX;
}

static inline void model_copy(struct model_object *to, const struct model_object *from)
{
	model_resize(to, from->length);
	if (from->length)
		memcpy(to->bytes, from->bytes, from->length);
	to->value = from->value;
	to->exists = true;
}

static inline bool model_makes(const struct model_op *op)
{
	return op->kind == MODEL_CREATE || op->kind == MODEL_CREATE_WRITE || op->kind == MODEL_COPY;
}

static inline void model_apply(struct model *model, const struct model_op *op)
{
	struct model_object *object = &model->objects[op->object];
	uint32_t tail;

	if (object->exists == model_makes(op))
		return;
	switch (op->kind) {
	case MODEL_CREATE_WRITE:
		object->exists = true;
		/* fallthrough */
	case MODEL_WRITE_SET:
		object->value = op->value;
		model_put(object, op, op->offset);
		break;
	case MODEL_COPY:
		if (model->objects[model_source(op)].exists)
			model_copy(object, &model->objects[model_source(op)]);
		break;
	case MODEL_CREATE:
		object->exists = true;
		break;
	case MODEL_REMOVE:
		model_resize(object, 0);
		object->exists = false;
		object->value = 0;
		break;
	case MODEL_WRITE:
		model_put(object, op, op->offset);
		break;
	case MODEL_APPEND:
		if (model_fits(object, op))
			model_put(object, op, object->length);
		break;
	case MODEL_TRUNCATE:
	case MODEL_SET_LENGTH:
		model_resize(object, op->offset);
		break;
	case MODEL_PUNCH:
		if (op->offset > object->length)
			break;
		tail = OSD_MIN(op->length, object->length - op->offset);
		memmove(object->bytes + op->offset, object->bytes + op->offset + tail,
			object->length - op->offset - tail);
		model_resize(object, object->length - tail);
		break;
	case MODEL_REPLACE:
		model_resize(object, op->length);
		model_fill(object->bytes, op);
		break;
	case MODEL_CLEAR:
		model_resize(object, OSD_MAX(object->length, op->offset + op->length));
		memset(object->bytes + op->offset, 0, op->length);
		break;
	case MODEL_SET:
		object->value = op->value;
		break;
	case MODEL_KINDS:
		break;
	}
}

static inline void model_release(struct model *model)
{
	for (unsigned i = 0; i < MODEL_OBJECTS; i++)
		free(model->objects[i].bytes);
	memset(model, 0, sizeof(*model));
}

/* ---- on the store ------------------------------------------------------------------------ */

static inline enum osd_status model_set(struct osd_objects *objects, const struct model_op *op)
{
	struct osd_txn *txn;
	uint8_t bytes[8];
	enum osd_status status = osd_txn_begin(objects, 0, &txn);

	if (status != OSD_OK)
		return status;
	osd_put_be(bytes, op->value, 8);
	status = osd_attr_set(txn, model_id(op), MODEL_PAGE, 1, bytes, 8);
	if (status == OSD_OK)
		status = osd_attr_set(txn, model_id(op), MODEL_PAGE, 2, bytes, 8);
	return test_end(txn, status);
}

static inline enum osd_status model_data(struct osd_objects *objects, const struct model_op *op)
{
	struct osd_object *object;
	uint8_t *bytes = malloc(op->length);
	enum osd_status status = osd_object_get(objects, model_id(op), &object);
	uint64_t length;

	CHECK(bytes);
	if (status != OSD_OK) {
		free(bytes);
		return status;
	}
	model_fill(bytes, op);
	switch (op->kind) {
	case MODEL_WRITE:
		status = osd_object_write(object, op->offset, bytes, op->length, 0);
		break;
	case MODEL_APPEND:
		status = osd_object_length(object, &length);
		if (status == OSD_OK && length + op->length < 2 * MODEL_MAX)
			status = test_append(object, bytes, op->length, 0, &length);
		break;
	case MODEL_TRUNCATE:
		status = osd_object_truncate(object, op->offset, 0);
		break;
	case MODEL_PUNCH:
		status = test_punch(object, op->offset, op->length, NULL);
		break;
	case MODEL_REPLACE:
		status = osd_object_change(object, &(struct osd_change){.kind = OSD_CHANGE_REPLACE,
									.data = bytes,
									.length = op->length});
		break;
	default:
		status = test_clear(object, op->offset, op->length);
		break;
	}
	osd_object_put(object);
	free(bytes);
	return status;
}

static inline enum osd_status model_set_in(struct osd_txn *txn, const struct model_op *op)
{
	uint8_t bytes[8];
	enum osd_status status;

	osd_put_be(bytes, op->value, 8);
	status = osd_attr_set(txn, model_id(op), MODEL_PAGE, 1, bytes, 8);
	return status == OSD_OK ? osd_attr_set(txn, model_id(op), MODEL_PAGE, 2, bytes, 8) : status;
}

static inline enum osd_status model_set_first(void *arg, struct osd_txn *txn, bool done)
{
	return done ? OSD_OK : model_set_in(txn, arg);
}

static inline enum osd_status model_write_set(struct osd_objects *objects,
					      const struct model_op *op)
{
	struct model_op copy = *op;
	struct osd_piece piece = {op->offset, op->length};
	struct osd_change_with with = {0, model_set_first, &copy};
	struct osd_change change = {.kind = OSD_CHANGE_WRITE, .pieces = &piece, .piece_count = 1};
	uint8_t *bytes = malloc(op->length);
	struct osd_object *object;
	enum osd_status status = osd_object_get(objects, model_id(op), &object);

	CHECK(bytes);
	model_fill(bytes, op);
	change.data = bytes;
	if (status == OSD_OK) {
		status = osd_object_change_with(object, &change, &with);
		osd_object_put(object);
	}
	free(bytes);
	return status;
}

static inline enum osd_status model_fill_draft(struct osd_draft *draft, struct osd_object *source,
					       const struct model_op *op)
{
	struct osd_piece piece = {op->offset, op->length};
	uint8_t *bytes;
	uint64_t length;
	enum osd_status status;

	if (op->kind == MODEL_COPY)
		return osd_draft_copy(draft, source, op->value % 2 ? OSD_COPY_ANY : OSD_COPY_BYTES,
				      NULL, NULL, &length);
	bytes = malloc(op->length);
	CHECK(bytes);
	model_fill(bytes, op);
	status = osd_draft_write(draft, &piece, 1, bytes, &length);
	free(bytes);
	return status;
}

static inline enum osd_status model_draft(struct osd_objects *objects, const struct model_op *op)
{
	struct osd_object_id from = {MODEL_PID, OSD_FIRST_ID + model_source(op)};
	OSD_CLEANUP(osd_object_putp) struct osd_object *source = NULL;
	struct osd_draft *draft = NULL;
	struct osd_txn *txn;
	uint64_t id;
	enum osd_status status =
		osd_draft_begin(objects, MODEL_PID, model_id(op).object_id, &draft);

	if (status == OSD_OK && op->kind == MODEL_COPY)
		status = osd_object_get(objects, from, &source);
	if (status == OSD_OK)
		status = model_fill_draft(draft, source, op);
	if (status == OSD_OK)
		status = osd_txn_begin(objects, 0, &txn);
	if (status == OSD_OK) {
		status = osd_draft_put(txn, draft, &id);
		if (status == OSD_OK)
			status = op->kind == MODEL_COPY
					 ? osd_copy_attributes(txn, source, model_id(op))
					 : model_set_in(txn, op);
		status = test_end(txn, status);
	}
	osd_draft_free(draft);
	return status;
}

static inline enum osd_status model_try(struct osd_objects *objects, const struct model_op *op)
{
	struct osd_txn *txn;
	uint8_t bytes[8];
	uint64_t id;
	enum osd_status status;

	switch (op->kind) {
	case MODEL_SET:
		return model_set(objects, op);
	case MODEL_WRITE_SET:
		return model_write_set(objects, op);
	case MODEL_CREATE_WRITE:
	case MODEL_COPY:
		return model_draft(objects, op);
	case MODEL_CREATE:
	case MODEL_REMOVE:
	case MODEL_SET_LENGTH:
		status = osd_txn_begin(objects, 0, &txn);
		if (status != OSD_OK)
			return status;
		osd_put_be(bytes, op->offset, 8);
		if (op->kind == MODEL_CREATE)
			status = osd_user_object_create(txn, MODEL_PID, model_id(op).object_id, 1,
							&id);
		else if (op->kind == MODEL_REMOVE)
			status = osd_user_object_remove(txn, model_id(op));
		else
			status = osd_attr_set(txn, model_id(op), 1, OSD_INFO_LOGICAL_LENGTH, bytes,
					      8);
		return test_end(txn, status);
	default:
		return model_data(objects, op);
	}
}

/* What an operation answers for reasons of the sequence itself, not of a fault. */
/* A deadlock victim, as those of the builder of an index, has changed nothing and tries again. */
static inline enum osd_status model_run(struct osd_objects *objects, const struct model_op *op)
{
	enum osd_status status;
	unsigned tries = 0;

	do
		status = model_try(objects, op);
	while (status == OSD_E_CONFLICT && ++tries < OSD_TXN_RETRIES);
	return status;
}

static inline bool model_is_expected(enum osd_status status)
{
	return status == OSD_OK || status == OSD_E_EXISTS || status == OSD_E_NO_OBJECT ||
	       status == OSD_E_BEYOND_END;
}

/* ---- comparison -------------------------------------------------------------------------- */

static inline void model_check_object(struct osd_objects *objects,
				      const struct model_object *wanted, struct osd_object_id id)
{
	struct osd_object *object;
	uint8_t *bytes;
	size_t got;
	enum osd_status status = osd_object_get(objects, id, &object);

	CHECK_EQ(status, wanted->exists ? OSD_OK : OSD_E_NO_OBJECT);
	if (!wanted->exists)
		return;
	bytes = malloc(wanted->length + 100);
	CHECK(bytes);
	OK(osd_object_read(object, 0, bytes, wanted->length + 100, 0, &got));
	CHECK_BYTES(bytes, got, wanted->bytes ? wanted->bytes : bytes, wanted->length);
	free(bytes);
	osd_object_put(object);
	CHECK_EQ(test_get_number(objects, id, MODEL_PAGE, 1), wanted->value);
	CHECK_EQ(test_get_number(objects, id, MODEL_PAGE, 2), wanted->value);
	CHECK_EQ(test_get_number(objects, id, 1, OSD_INFO_LOGICAL_LENGTH), wanted->length);
}

/* Nothing is known of an uncertain one but that it can be read and that its pair of attributes
 * agrees. */
static inline void model_check_uncertain(struct osd_objects *objects, struct osd_object_id id)
{
	struct osd_object *object;
	uint64_t length;
	uint8_t *bytes;
	size_t got;

	if (osd_object_get(objects, id, &object) != OSD_OK)
		return;
	OK(osd_object_length(object, &length));
	bytes = malloc(length + 1);
	CHECK(bytes);
	OK(osd_object_read(object, 0, bytes, length + 1, 0, &got));
	CHECK_EQ(got, length);
	free(bytes);
	osd_object_put(object);
	CHECK_EQ(test_get_number(objects, id, MODEL_PAGE, 1),
		 test_get_number(objects, id, MODEL_PAGE, 2));
}

/* Where the page has an index, it says what the attributes say. */
static inline void model_check_index(struct osd_objects *objects)
{
	if (test_index_state(objects, MODEL_PID, MODEL_PAGE) == OSD_INDEX_NONE)
		return;
	while (test_index_state(objects, MODEL_PID, MODEL_PAGE) != OSD_INDEX_READY) {
		osd_kick_indexer(objects);
		usleep(100);
	}
	test_check_entries(objects, MODEL_PID);
}

/* An object that came with its data is there as a whole, or is not there. */
static inline void model_check_made(struct osd_objects *objects, struct model *model, unsigned i)
{
	struct model_object *wanted = &model->objects[i];
	struct osd_object_id id = {MODEL_PID, OSD_FIRST_ID + i};
	struct osd_object *object;

	if (osd_object_get(objects, id, &object) != OSD_OK)
		return;
	osd_object_put(object);
	model_apply(model, &wanted->made);
	model_check_object(objects, wanted, id);
	model_resize(wanted, 0);
	wanted->exists = false;
	wanted->value = 0;
}

static inline void model_mark_uncertain(struct model *model, const struct model_op *op)
{
	struct model_object *object = &model->objects[op->object];

	object->may_be_made = !object->exists && !object->uncertain && op->kind != MODEL_CREATE &&
			      model_makes(op) && !model->objects[model_source(op)].uncertain;
	object->made = *op;
	object->uncertain = true;
}

/* The figures kept in memory are those of the objects there are. */
static inline void model_check(struct osd_objects *objects, struct model *model)
{
	struct osd_check_result checked;
	struct osd_objects_stats stats;
	uint64_t used = 0, count = 0;

	for (unsigned i = 0; i < MODEL_OBJECTS; i++) {
		struct osd_object_id id = {MODEL_PID, OSD_FIRST_ID + i};
		struct osd_object *object;
		uint64_t length;

		if (model->objects[i].may_be_made)
			model_check_made(objects, model, i);
		else if (model->objects[i].uncertain)
			model_check_uncertain(objects, id);
		else
			model_check_object(objects, &model->objects[i], id);
		if (osd_object_get(objects, id, &object) != OSD_OK)
			continue;
		OK(osd_object_length(object, &length));
		osd_object_put(object);
		used += length;
		count++;
	}
	/* Nor does the structure check find anything. */
	OK(osd_objects_check(objects, 0, NULL, NULL, &checked));
	CHECK_EQ(checked.objects + checked.containers, 0);
	osd_objects_stats(objects, &stats);
	CHECK_EQ(stats.used_bytes, used);
	CHECK_EQ(stats.object_count, count);
	model_check_index(objects);
}

#endif
