/* SPDX-License-Identifier: GPL-2.0-or-later */
/* decode.c -- attributes as named tuples (osd2-wire 5): list type 9, groups of list type Eh, and a page in
 * its fixed form.
 *
 * Answers about many objects mostly say the same of each.  So what the group before said, too, is the
 * same Python object: a value, or all of a member's.  Types: ../_core.pyi. */
#include "core.h"

#include "wire/cursor.h"

#define HEAD 16 /* bytes of a group's head, and of an entry's */

/* One decoding: the types of the result, and the parts of the group before, to share. */
struct decoder {
	PyTypeObject *member_type, *value_type; /* borrowed; children of tuple */
	const uint8_t *before;			/* entries of the group before; NULL: none */
	size_t before_length;
	PyObject *before_values; /* their tuple, borrowed */
};

struct entry {
	const uint8_t *at;
	size_t length, whole; /* of the value; of the entry with its pad, as far as there is any */
};

/* False: what is left holds no whole one. */
static bool next_entry(const uint8_t **at, const uint8_t *end, struct entry *entry)
{
	size_t left = (size_t)(end - *at), padded;

	if (left < HEAD)
		return false;
	entry->at = *at;
	entry->length = (size_t)osd_get_be(*at + 14, 2);
	if (entry->length > left - HEAD)
		return false;
	padded = HEAD + ((entry->length + 7) & ~(size_t)7);
	entry->whole = padded < left ? padded : left;
	*at += entry->whole;
	return true;
}

/* A named tuple of items, which it takes; NULL among them: an exception is set. */
static PyObject *make(PyTypeObject *type, PyObject *items[3])
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	PyObject *made = items[0] && items[1] && items[2] ? alloc(type, 3) : NULL;

	for (Py_ssize_t i = 0; i < 3; i++) {
		if (made)
			PyTuple_SetItem(made, i, items[i]);
		else
			Py_XDECREF(items[i]);
	}
	return made;
}

static PyObject *make_value(PyTypeObject *type, const struct entry *entry)
{
	PyObject *items[] = {
		PyLong_FromUnsignedLong((unsigned long)osd_get_be(entry->at, 4)),
		PyLong_FromUnsignedLong((unsigned long)osd_get_be(entry->at + 4, 4)),
		PyBytes_FromStringAndSize((const char *)entry->at + HEAD,
					  (Py_ssize_t)entry->length),
	};

	return make(type, items);
}

static Py_ssize_t count_entries(const uint8_t *at, size_t length)
{
	const uint8_t *end = at + length;
	struct entry entry;
	Py_ssize_t count = 0;

	while (next_entry(&at, end, &entry))
		count++;
	return count;
}

/* The whole entries as a tuple. */
static PyObject *decode_entries(const struct decoder *d, const uint8_t *at, size_t length)
{
	const uint8_t *end = at + length, *old = d->before,
		      *old_end = old ? old + d->before_length : NULL;
	PyObject *values = PyTuple_New(count_entries(at, length));
	struct entry entry, same;

	for (Py_ssize_t i = 0; values && next_entry(&at, end, &entry); i++) {
		PyObject *value;

		if (old && !next_entry(&old, old_end, &same))
			old = NULL;
		if (old && same.length == entry.length &&
		    memcmp(same.at, entry.at, HEAD + entry.length) == 0)
			value = Py_NewRef(PyTuple_GetItem(d->before_values, i));
		else
			value = make_value(d->value_type, &entry);
		if (!value || PyTuple_SetItem(values, i, value) < 0)
			Py_CLEAR(values);
	}
	return values;
}

static PyObject *decode_group(struct decoder *d, const uint8_t *group, size_t length)
{
	const uint8_t *entries = group + HEAD;
	bool same =
		d->before && d->before_length == length && memcmp(d->before, entries, length) == 0;
	PyObject *values = same ? Py_NewRef(d->before_values) : decode_entries(d, entries, length);
	PyObject *items[] = {PyLong_FromUnsignedLongLong(osd_get_be(group, 8)),
			     PyLong_FromLong(group[8]), values};

	d->before = entries;
	d->before_length = length;
	d->before_values = values; /* the member keeps it */
	return make(d->member_type, items);
}

static PyObject *decode_groups(struct decoder *d, const uint8_t *at, size_t left)
{
	PyObject *list = PyList_New(0), *members = NULL;

	while (list && left >= HEAD) {
		size_t length = (size_t)osd_get_be(at + 14, 2);
		PyObject *member;

		if (length > left - HEAD)
			break;
		member = decode_group(d, at, length);
		if (!member || PyList_Append(list, member) < 0)
			Py_CLEAR(list);
		Py_XDECREF(member);
		at += HEAD + length;
		left -= HEAD + length;
	}
	if (list)
		members = PyList_AsTuple(list);
	Py_XDECREF(list);
	return members;
}

#define FORM_HEAD 8 /* the page's number, and how many bytes follow */

/* Numbers of these widths behind the form's head; None: they are not all there. */
static PyObject *decode_form(const Py_buffer *form, const uint8_t *width, Py_ssize_t count,
			     PyTypeObject *type)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	const uint8_t *at = form->buf;
	size_t whole = FORM_HEAD;
	PyObject *made;

	for (Py_ssize_t i = 0; i < count; i++) {
		if (width[i] < 1 || width[i] > 8)
			return PyErr_Format(PyExc_ValueError, "a number is 1 to 8 bytes wide");
		whole += width[i];
	}
	if ((size_t)form->len < whole || osd_get_be(at + 4, 4) < whole - FORM_HEAD)
		Py_RETURN_NONE;
	at += FORM_HEAD;
	made = alloc(type, count);
	for (Py_ssize_t i = 0; made && i < count; at += width[i++]) {
		PyObject *number = PyLong_FromUnsignedLongLong(osd_get_be(at, width[i]));

		if (!number || PyTuple_SetItem(made, i, number) < 0)
			Py_CLEAR(made);
	}
	return made;
}

static bool is_tuple_type(PyTypeObject *type)
{
	if (PyType_IsSubtype(type, &PyTuple_Type))
		return true;
	PyErr_SetString(PyExc_TypeError, "not a named tuple");
	return false;
}

PyObject *core_decode_entries(PyObject *Py_UNUSED(module), PyObject *args)
{
	struct decoder d = {0};
	PyObject *values = NULL;
	Py_buffer data;

	if (!PyArg_ParseTuple(args, "y*O!", &data, &PyType_Type, &d.value_type))
		return NULL;
	if (is_tuple_type(d.value_type))
		values = decode_entries(&d, data.buf, (size_t)data.len);
	PyBuffer_Release(&data);
	return values;
}

PyObject *core_decode_groups(PyObject *Py_UNUSED(module), PyObject *args)
{
	struct decoder d = {0};
	PyObject *members = NULL;
	Py_buffer data;

	if (!PyArg_ParseTuple(args, "y*O!O!", &data, &PyType_Type, &d.member_type, &PyType_Type,
			      &d.value_type))
		return NULL;
	if (is_tuple_type(d.member_type) && is_tuple_type(d.value_type))
		members = decode_groups(&d, data.buf, (size_t)data.len);
	PyBuffer_Release(&data);
	return members;
}

PyObject *core_decode_form(PyObject *Py_UNUSED(module), PyObject *args)
{
	PyTypeObject *type;
	PyObject *made = NULL;
	const char *widths;
	Py_ssize_t count;
	Py_buffer form;

	if (!PyArg_ParseTuple(args, "y*y#O!", &form, &widths, &count, &PyType_Type, &type))
		return NULL;
	if (is_tuple_type(type))
		made = decode_form(&form, (const uint8_t *)widths, count, type);
	PyBuffer_Release(&form);
	return made;
}
