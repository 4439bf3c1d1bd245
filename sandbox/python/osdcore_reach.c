/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osdcore_reach.c -- all objects that can be reached from given ones, type by type.  For hygiene.py: a zygote
 * follows several hundred thousand references before its first job. */
#include "osdcore_module.h"

#include <stdint.h>

#define PLACES_FIRST 1024u

/* A set of addresses; the number of places is a power of two, at least twice the count. */
struct addresses {
	const void **places; /* NULL: free; owned */
	size_t mask, count;
};

struct search {
	struct addresses constant; /* types whose objects are passed over */
	struct addresses seen;
	PyObject *found; /* a list of the objects seen, in their order */
};

static const void **place_of(const struct addresses *set, const void *address)
{
	/* objects are aligned to 16 bytes; the product spreads neighbours */
	size_t at = (((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15)) >> 20;

	while (set->places[at & set->mask] && set->places[at & set->mask] != address)
		at++;
	return &set->places[at & set->mask];
}

static int grow(struct addresses *set)
{
	size_t places = set->places ? 2 * (set->mask + 1) : PLACES_FIRST;
	struct addresses larger = {.mask = places - 1, .count = set->count};

	larger.places = PyMem_RawCalloc(places, sizeof(*larger.places));
	if (!larger.places) {
		PyErr_NoMemory();
		return -1;
	}
	for (size_t i = 0; set->places && i <= set->mask; i++)
		if (set->places[i])
			*place_of(&larger, set->places[i]) = set->places[i];
	PyMem_RawFree(set->places);
	*set = larger;
	return 0;
}

/* 1: it is new, 0: it was there, -1: an exception. */
static int add(struct addresses *set, const void *address)
{
	const void **place;

	if ((!set->places || 2 * set->count > set->mask) && grow(set) < 0)
		return -1;
	place = place_of(set, address);
	if (*place)
		return 0;
	*place = address;
	set->count++;
	return 1;
}

static int visit(PyObject *object, void *arg)
{
	struct search *search = arg;
	int new;

	if (*place_of(&search->constant, Py_TYPE(object)))
		return 0;
	new = add(&search->seen, object);
	return new > 0 ? PyList_Append(search->found, object) : new;
}

static int follow(struct search *search, PyObject *roots, PyObject *constant)
{
	if (grow(&search->constant) < 0)
		return -1;
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constant); i++)
		if (add(&search->constant, PyTuple_GET_ITEM(constant, i)) < 0)
			return -1;
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(roots); i++) {
		int new = add(&search->seen, PyList_GET_ITEM(roots, i));

		if (new < 0 ||
		    (new && PyList_Append(search->found, PyList_GET_ITEM(roots, i)) < 0))
			return -1;
	}
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(search->found); i++) {
		PyObject *object = PyList_GET_ITEM(search->found, i);
		traverseproc traverse = Py_TYPE(object)->tp_traverse;

		if (PyObject_IS_GC(object) && traverse && traverse(object, visit, search))
			return -1;
	}
	return 0;
}

/* {address of a type: [its objects]}; a type need not have a hash. */
static PyObject *by_type(PyObject *found)
{
	PyObject *kinds = PyDict_New();
	int failed = !kinds;

	for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(found); i++) {
		PyObject *object = PyList_GET_ITEM(found, i), *fresh = NULL, *list;
		PyObject *key = PyLong_FromVoidPtr(Py_TYPE(object));

		list = key ? PyDict_GetItemWithError(kinds, key) : NULL;
		if (key && !list && !PyErr_Occurred()) {
			list = fresh = PyList_New(0);
			failed = !fresh || PyDict_SetItem(kinds, key, fresh) < 0;
		}
		failed = failed || !list || PyList_Append(list, object) < 0;
		Py_XDECREF(fresh);
		Py_XDECREF(key);
	}
	if (failed)
		Py_CLEAR(kinds);
	return kinds;
}

PyObject *osd_core_reach(PyObject *Py_UNUSED(module), PyObject *args)
{
	struct search search = {.found = NULL};
	PyObject *roots, *constant, *kinds = NULL;

	if (!PyArg_ParseTuple(args, "O!O!:reach", &PyList_Type, &roots, &PyTuple_Type, &constant))
		return NULL;
	search.found = PyList_New(0);
	if (search.found && follow(&search, roots, constant) == 0)
		kinds = by_type(search.found);
	PyMem_RawFree(search.constant.places);
	PyMem_RawFree(search.seen.places);
	Py_XDECREF(search.found);
	return kinds;
}
