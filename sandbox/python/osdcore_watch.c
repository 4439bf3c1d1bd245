/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osdcore_watch.c -- whether objects are as they were: watch() notes a hash of what can be changed in each
 * of some thousand objects, altered() compares.  For hygiene.py, which ends a sandbox where something differs
 * that it cannot restore.
 *
 * It runs between two jobs, so it must cost microseconds: of a dict only the version is compared, of other
 * objects the words of their C structure.  A word is a pointer or a number; that the objects behind pointers are
 * unchanged is their own entry's business.  The hash is a sum of products with random odd numbers: for words that
 * differ it is the same by a chance of 2^-63, and nobody knows the numbers before. */
#include "osdcore_barrier.h"
#include "osdcore_module.h"

#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#define WORDS_MAX   512u /* of one object that are hashed */
#define NOT_SKIPPED UINT16_MAX

enum kind {
	KIND_WORDS,
	KIND_DICT,
	KIND_LIST,
	KIND_SET,
	KIND_TYPE,
};

/* The hashed part of an object: `count` words from `from` on, without word `skip`, and the additions of
 * its kind. */
struct shape {
	int16_t from;
	uint16_t count, skip;
	uint8_t kind, traits;
};

#define TRAIT_MANAGED 1u /* its dict is in front of the object */
#define TRAIT_CLASS   2u /* it can become an object of another class */

/* Objects of one shape, which are adjacent in the list. */
struct group {
	struct shape shape;
	Py_ssize_t first, end;
};

struct watched {
	PyObject *object; /* kept alive by `objects` */
	uint64_t hash;
};

static struct watch {
	PyObject *objects; /* a tuple, or NULL */
	struct watched *watched; /* one for each of `objects` */
	struct group *groups;
	size_t group_count;
} watches[3];

#define GUARDED 1u /* of the lists: functions and classes (osdcore_barrier.c) */

static uint64_t factors[WORDS_MAX];

/* In front of an instance of a Python class are, from the object backwards: two words of the garbage collector,
 * its dict, and its attributes while it has no dict. */
#define MANAGED_WORDS 4

#define WORD(type, member) (offsetof(type, member) / sizeof(uint64_t))

/* ---- hashes ---------------------------------------------------------------------------------- */

static inline uint64_t sum_block(const uint64_t *word, size_t count)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < count; i++)
		hash += word[i] * factors[i];
	return hash;
}

static inline uint64_t sum(const void *words, size_t count)
{
	const uint64_t *word = words;
	uint64_t hash = count;

	for (; count > WORDS_MAX; count -= WORDS_MAX, word += WORDS_MAX)
		hash = (hash + sum_block(word, WORDS_MAX)) * factors[0];
	return hash + sum_block(word, count);
}

static inline uint64_t hash_of_words(PyObject *object, const struct shape *shape)
{
	const uint64_t *words = (const uint64_t *)(const void *)object;
	uint64_t hash = sum_block(words + shape->from, shape->count);

	if (shape->skip != NOT_SKIPPED)
		hash -= words[shape->skip] * factors[shape->skip - shape->from];
	if (shape->traits & TRAIT_MANAGED)
		hash += sum(words - MANAGED_WORDS, 2);
	if (shape->traits & TRAIT_CLASS)
		hash += (uint64_t)(uintptr_t)Py_TYPE(object) * factors[WORDS_MAX - 1];
	return hash;
}

/* Up to 3.11 every change of a dict gives it a version that no dict had before. */
static inline uint64_t hash_of_dict(PyObject *object)
{
#if PY_VERSION_HEX < 0x030c0000
	return ((const PyDictObject *)object)->ma_version_tag;
#else
	PyObject *key, *value;
	Py_ssize_t at = 0;
	uint64_t hash = 0;
	size_t i = 0;

	while (PyDict_Next(object, &at, &key, &value)) {
		hash += (uint64_t)(uintptr_t)key * factors[i++ % WORDS_MAX];
		hash += (uint64_t)(uintptr_t)value * factors[i++ % WORDS_MAX];
	}
	return hash + i;
#endif
}

static inline uint64_t hash_of_list(PyObject *object)
{
	const PyListObject *list = (const PyListObject *)object;

	return sum(list->ob_item, (size_t)Py_SIZE(list));
}

/* Independent of the order, which changes when a set is emptied and filled again. */
static inline uint64_t hash_of_set(PyObject *object)
{
	const PySetObject *set = (const PySetObject *)object;
	uint64_t hash = (uint64_t)set->used;

	for (Py_ssize_t i = 0; i <= set->mask; i++) {
		uint64_t key = (uint64_t)(uintptr_t)set->table[i].key;

		if (key && set->table[i].hash != -1) /* -1: was removed */
			hash += (key * factors[0] ^ key >> 4) * factors[1];
	}
	return hash;
}

/* Attributes are in the type's dict, except these.  All of them: osdcore_barrier.c. */
static inline uint64_t hash_of_type(PyObject *object)
{
	PyHeapTypeObject *type = (PyHeapTypeObject *)object;
	uint64_t hash = (uint64_t)(uintptr_t)type->ht_type.tp_bases * factors[0] +
			(uint64_t)(uintptr_t)Py_TYPE(object) * factors[3];

	if (!PyType_HasFeature(&type->ht_type, Py_TPFLAGS_HEAPTYPE))
		return hash;
	hash += (uint64_t)(uintptr_t)type->ht_name * factors[1];
	return hash + (uint64_t)(uintptr_t)type->ht_qualname * factors[2];
}

static inline uint64_t hash_of(PyObject *object, const struct shape *shape)
{
	uint64_t hash = shape->count || shape->traits ? hash_of_words(object, shape) : 0;

	switch ((enum kind)shape->kind) {
	case KIND_WORDS:
		return hash;
	case KIND_DICT:
		return hash + hash_of_dict(object);
	case KIND_LIST:
		return hash + hash_of_list(object);
	case KIND_SET:
		return hash + hash_of_set(object);
	case KIND_TYPE:
		return hash_of_type(object);
	}
	return 0;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Words of the C structure after its first `known` bytes.  The list of weak references is left out,
 * because it changes all the time. */
static struct shape shape_of_words(PyObject *object, enum kind kind, size_t known)
{
	PyTypeObject *type = Py_TYPE(object);
	Py_ssize_t items = type->tp_itemsize ? Py_SIZE(object) : 0;
	size_t bytes = (size_t)type->tp_basicsize +
		       (size_t)(items < 0 ? -items : items) * (size_t)type->tp_itemsize;
	size_t weak = (size_t)(type->tp_weaklistoffset > 0 ? type->tp_weaklistoffset : 0);
	size_t count = bytes > known ? (bytes - known) / sizeof(uint64_t) : 0;
	struct shape shape = {
		.kind = (uint8_t)kind,
		.from = (int16_t)(known / sizeof(uint64_t)),
		.count = (uint16_t)(count < WORDS_MAX ? count : WORDS_MAX),
		.skip = NOT_SKIPPED,
	};

	if (PyType_HasFeature(type, Py_TPFLAGS_MANAGED_DICT))
		shape.traits |= TRAIT_MANAGED;
	if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) || PyModule_Check(object))
		shape.traits |= TRAIT_CLASS;

	if (weak >= known && (weak - known) / sizeof(uint64_t) < shape.count)
		shape.skip = (uint16_t)(weak / sizeof(uint64_t));
	return shape;
}

static struct shape shape_of(PyObject *object)
{
	if (PyType_Check(object))
		return (struct shape){.kind = KIND_TYPE, .skip = NOT_SKIPPED};
	if (PyDict_Check(object))
		return shape_of_words(object, KIND_DICT, sizeof(PyDictObject));
	if (PyList_Check(object))
		return shape_of_words(object, KIND_LIST, sizeof(PyListObject));
	if (PyAnySet_Check(object))
		return shape_of_words(object, KIND_SET, sizeof(PySetObject));
	if (PyFunction_Check(object)) /* after the annotations there are counters of the interpreter */
		return (struct shape){
			.kind = KIND_WORDS,
			.from = WORD(PyFunctionObject, func_name),
			.count = WORD(PyFunctionObject, func_annotations) + 1 -
				 WORD(PyFunctionObject, func_name),
			.skip = WORD(PyFunctionObject, func_weakreflist),
		};
	return shape_of_words(object, KIND_WORDS, sizeof(PyObject));
}

/* Once: hashes are compared with earlier ones. */
static int make_factors(void)
{
	if (factors[0])
		return 0;
	if (getrandom(factors, sizeof(factors), 0) != (ssize_t)sizeof(factors)) {
		PyErr_SetFromErrno(PyExc_OSError);
		return -1;
	}
	for (size_t i = 0; i < WORDS_MAX; i++)
		factors[i] |= 1;
	return 0;
}

static void forget(struct watch *watch)
{
	Py_CLEAR(watch->objects);
	PyMem_RawFree(watch->watched);
	PyMem_RawFree(watch->groups);
	*watch = (struct watch){NULL};
}

static void note(struct watch *watch)
{
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(watch->objects); i++) {
		PyObject *object = PyTuple_GET_ITEM(watch->objects, i);
		struct shape shape = shape_of(object);
		struct group *last = &watch->groups[watch->group_count];

		watch->watched[i] = (struct watched){object, hash_of(object, &shape)};
		if (i == 0 || memcmp(&last[-1].shape, &shape, sizeof(shape)) != 0) {
			*last++ = (struct group){.shape = shape, .first = i};
			watch->group_count++;
		}
		last[-1].end = i + 1;
	}
}

/* NULL: an exception is set. */
static struct watch *list_of(unsigned number)
{
	if (number < sizeof(watches) / sizeof(watches[0]))
		return &watches[number];
	PyErr_SetString(PyExc_ValueError, "there are three lists, 0 to 2");
	return NULL;
}

PyObject *osd_core_watch(PyObject *Py_UNUSED(module), PyObject *args)
{
	struct watch *watch;
	unsigned number;
	PyObject *things;
	size_t count;

	if (!PyArg_ParseTuple(args, "IO!:watch", &number, &PyTuple_Type, &things))
		return NULL;
	watch = list_of(number);
	if (!watch || make_factors() < 0)
		return NULL;
	forget(watch);
	count = (size_t)PyTuple_GET_SIZE(things);
	watch->watched = PyMem_RawCalloc(count + 1, sizeof(*watch->watched));
	watch->groups = PyMem_RawCalloc(count + 1, sizeof(*watch->groups));
	if (!watch->watched || !watch->groups) {
		forget(watch);
		return PyErr_NoMemory();
	}
	watch->objects = Py_NewRef(things);
	note(watch);
	if (number == GUARDED && osd_barrier_set(things) < 0)
		return NULL;
	Py_RETURN_NONE;
}

/* The compiler makes a loop for each kind of it. */
static inline __attribute__((always_inline)) int compare(const struct watch *watch,
							 const struct group *group, enum kind kind,
							 PyObject *found)
{
	struct shape shape = group->shape;

	shape.kind = (uint8_t)kind;
	for (Py_ssize_t i = group->first; i < group->end; i++) {
		const struct watched *w = &watch->watched[i];

		if (hash_of(w->object, &shape) != w->hash && PyList_Append(found, w->object) < 0)
			return -1;
	}
	return 0;
}

static int compare_group(const struct watch *watch, const struct group *group, PyObject *found)
{
	switch ((enum kind)group->shape.kind) {
	case KIND_WORDS:
		return compare(watch, group, KIND_WORDS, found);
	case KIND_DICT:
		return compare(watch, group, KIND_DICT, found);
	case KIND_LIST:
		return compare(watch, group, KIND_LIST, found);
	case KIND_SET:
		return compare(watch, group, KIND_SET, found);
	case KIND_TYPE:
		return compare(watch, group, KIND_TYPE, found);
	}
	return 0;
}

PyObject *osd_core_altered(PyObject *Py_UNUSED(module), PyObject *args)
{
	const struct watch *watch;
	unsigned number;
	PyObject *found;

	if (!PyArg_ParseTuple(args, "I:altered", &number) || !(watch = list_of(number)))
		return NULL;
	found = PyList_New(0);
	if (number == GUARDED && !osd_barrier_touched())
		return found;
	for (size_t i = 0; found && i < watch->group_count; i++)
		if (compare_group(watch, &watch->groups[i], found) < 0)
			Py_CLEAR(found);
	if (number == GUARDED && found && PyList_GET_SIZE(found) == 0)
		osd_barrier_rearm();
	return found;
}
