/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osdcore_barrier.c -- whether a script has set something in one of the functions and classes that
 * osdcore_watch.c watches.  They are half of all objects and the larger half of their memory, and few jobs
 * change any; so they are compared only after a job that has.
 *
 * What the C structure of a function or class holds can be set in two ways only: through the descriptors in its
 * type's dict, and, for the dict of a function, by setting any other attribute.  Both are replaced by ones
 * that first look whether the object is watched.  Attributes of classes are not of interest here: they are in the
 * class's dict, which is watched itself. */
#include "osdcore_barrier.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <structmember.h>

#define GUARDS_MAX 32u

/* A descriptor as it was. */
struct guard {
	getter get;
	setter set;
	void *closure;
	bool reads_too; /* its getter creates the value and keeps it */
};

static struct guard guards[GUARDS_MAX];
static PyGetSetDef members[GUARDS_MAX]; /* in place of members */
static size_t guard_count, member_count;
static bool installed;

/* The watched objects' addresses, in order. */
static uintptr_t *addresses;
static size_t address_count;
static bool touched;

static int compare_addresses(const void *a, const void *b)
{
	uintptr_t first = *(const uintptr_t *)a, second = *(const uintptr_t *)b;

	return (first > second) - (first < second);
}

static void note(PyObject *object)
{
	uintptr_t address = (uintptr_t)object;

	if (!touched && address_count > 0)
		touched = bsearch(&address, addresses, address_count, sizeof(address),
				  compare_addresses) != NULL;
}

/* ---- in place of the interpreter's ------------------------------------------------------------ */

static PyObject *get_guarded(PyObject *object, void *closure)
{
	const struct guard *guard = closure;

	if (guard->reads_too)
		note(object);
	return guard->get(object, guard->closure);
}

static int set_guarded(PyObject *object, PyObject *value, void *closure)
{
	const struct guard *guard = closure;

	note(object);
	return guard->set(object, value, guard->closure);
}

static PyObject *get_member(PyObject *object, void *closure)
{
	return PyMember_GetOne((const char *)object, closure);
}

static int set_member(PyObject *object, PyObject *value, void *closure)
{
	note(object);
	return PyMember_SetOne((char *)object, closure, value);
}

/* Any attribute of a function: those without a descriptor go into its dict. */
static int set_attribute(PyObject *function, PyObject *name, PyObject *value)
{
	note(function);
	return PyObject_GenericSetAttr(function, name, value);
}

/* ---- installed ---------------------------------------------------------------------------------- */

static int too_many(void)
{
	PyErr_SetString(PyExc_SystemError, "more attributes of functions and classes than expected");
	return -1;
}

static int guard_getset(PyGetSetDef *def, bool reads_too)
{
	struct guard *guard = &guards[guard_count];

	if (guard_count++ == GUARDS_MAX)
		return too_many();
	*guard = (struct guard){def->get, def->set, def->closure, reads_too};
	def->closure = guard;
	def->set = set_guarded;
	if (def->get)
		def->get = get_guarded;
	return 0;
}

static int guard_member(PyTypeObject *type, PyObject *name, PyMemberDef *member)
{
	PyGetSetDef *def = &members[member_count];
	PyObject *descriptor;
	int failed;

	if (member_count++ == GUARDS_MAX)
		return too_many();
	*def = (PyGetSetDef){member->name, get_member, set_member, member->doc, member};
	descriptor = PyDescr_NewGetSet(type, def);
	failed = !descriptor || PyDict_SetItem(type->tp_dict, name, descriptor) < 0;
	Py_XDECREF(descriptor);
	return failed ? -1 : 0;
}

static int guard_attribute(PyTypeObject *type, PyObject *name, PyObject *found)
{
	if (Py_IS_TYPE(found, &PyGetSetDescr_Type)) {
		PyGetSetDef *def = ((PyGetSetDescrObject *)found)->d_getset;
		bool makes = PyUnicode_CompareWithASCIIString(name, "__dict__") == 0 ||
			     PyUnicode_CompareWithASCIIString(name, "__annotations__") == 0;

		return def->set ? guard_getset(def, makes) : 0;
	}
	if (Py_IS_TYPE(found, &PyMemberDescr_Type)) {
		PyMemberDef *member = ((PyMemberDescrObject *)found)->d_member;

		return member->flags & READONLY ? 0 : guard_member(type, name, member);
	}
	return 0;
}

/* Replaces the descriptors of all attributes that can be set, or of the one of this name. */
static int guard_type(PyTypeObject *type, const char *only)
{
	PyObject *name, *found;
	Py_ssize_t at = 0;

	while (PyDict_Next(type->tp_dict, &at, &name, &found)) {
		if (only && PyUnicode_CompareWithASCIIString(name, only) != 0)
			continue;
		if (guard_attribute(type, name, found) < 0)
			return -1;
	}
	PyType_Modified(type);
	return 0;
}

static int install(void)
{
	if (installed)
		return 0;
	installed = true;
	PyFunction_Type.tp_setattro = set_attribute;
	if (guard_type(&PyFunction_Type, NULL) < 0 || guard_type(&PyCFunction_Type, NULL) < 0 ||
	    guard_type(&PyType_Type, NULL) < 0)
		return -1;
	return guard_type(&PyBaseObject_Type, "__class__");
}

int osd_barrier_set(PyObject *objects)
{
	size_t count = (size_t)PyTuple_GET_SIZE(objects);
	uintptr_t *sorted = PyMem_RawCalloc(count + 1, sizeof(*sorted));

	if (!sorted) {
		PyErr_NoMemory();
		return -1;
	}
	for (size_t i = 0; i < count; i++)
		sorted[i] = (uintptr_t)PyTuple_GET_ITEM(objects, (Py_ssize_t)i);
	qsort(sorted, count, sizeof(*sorted), compare_addresses);
	PyMem_RawFree(addresses);
	addresses = sorted;
	address_count = count;
	touched = false;
	return install();
}

bool osd_barrier_touched(void)
{
	return touched;
}

void osd_barrier_rearm(void)
{
	touched = false;
}
