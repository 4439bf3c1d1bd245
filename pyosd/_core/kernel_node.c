/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel_node.c -- nodes as KernelDevice sees them: objects of nodes.py, whose attributes are read as they
 * are at that moment, and data of files that the target does not have yet (new_files.py). */
#include "kernel.h"

#include <string.h>

#include "base/clock.h"

const char *const core_node_names[CORE_NODE_NAMES] = {
	"shown",  "new",  "writer", "asked", "changed",	 "fresh",   "inode",	"told",	  "facts",
	"xattrs", "stat", "names",  "opens", "hidden",	 "head",    "storing",	"data",	  "mode",
	"links",  "uid",  "gid",    "size",  "modified", "changed", "accessed", "device",
};

PyObject *kernel_get(const struct device_object *self, PyObject *object, unsigned int name)
{
	return object ? PyObject_GetAttr(object, self->names[name]) : NULL;
}

/* Takes the value's reference; NULL fails.  False: an exception is set. */
static bool kernel_set(const struct device_object *self, PyObject *object, unsigned int name,
		       PyObject *value)
{
	bool fine = value && PyObject_SetAttr(object, self->names[name], value) == 0;

	Py_XDECREF(value);
	return fine;
}

int kernel_is_true(const struct device_object *self, PyObject *node, enum kernel_name name)
{
	PyObject *value = kernel_get(self, node, name);
	int found = value ? PyObject_IsTrue(value) : -1;

	Py_XDECREF(value);
	return found;
}

int kernel_is_none(const struct device_object *self, PyObject *node, enum kernel_name name)
{
	PyObject *value = kernel_get(self, node, name);
	int found = value ? value == Py_None : -1;

	Py_XDECREF(value);
	return found;
}

double kernel_now_s(void)
{
	return (double)osd_monotonic_nsec() / (double)KERNEL_NS_PER_S;
}

double kernel_left(const struct device_object *self, PyObject *node)
{
	PyObject *value = kernel_get(self, node, NAME_ASKED);
	double asked = value ? PyFloat_AsDouble(value) : -1.0;
	int is_old = kernel_is_none(self, node, NAME_NEW);

	Py_XDECREF(value);
	if (is_old < 0 || asked < 0.0)
		return -1.0;
	if (asked > 0.0) {
		if (is_old && kernel_is_none(self, node, NAME_WRITER) != 1)
			return -1.0;
		return self->kept - (kernel_now_s() - asked);
	}
	if (is_old)
		return -1.0;
	return kernel_is_true(self, node, NAME_CHANGED) ? 0.0 : self->kept;
}

static void set_time(int64_t ns, uint64_t *seconds, uint32_t *rest)
{
	int64_t whole = ns / KERNEL_NS_PER_S - (ns % KERNEL_NS_PER_S < 0);

	*seconds = (uint64_t)whole;
	*rest = (uint32_t)(ns - whole * KERNEL_NS_PER_S);
}

bool kernel_fill(const struct device_object *self, PyObject *node, struct fuse_attr *attr)
{
	PyObject *facts = kernel_get(self, node, NAME_FACTS);
	PyObject *stat = kernel_get(self, facts, NAME_STAT);
	PyObject *told = stat ? PyTuple_New(STAT_TOLD) : NULL;
	long long fields[STAT_FIELDS];
	bool fine = told != NULL;

	for (unsigned int i = 0; fine && i < STAT_FIELDS; i++) {
		PyObject *value = kernel_get(self, stat, NAME_OF_STAT + i);

		fields[i] = value ? PyLong_AsLongLong(value) : -1;
		fine = value && !(fields[i] == -1 && PyErr_Occurred());
		if (fine && i < STAT_TOLD)
			fine = PyTuple_SetItem(told, (Py_ssize_t)i, value) == 0;
		else
			Py_XDECREF(value);
	}
	fine = fine && PyObject_SetAttr(node, self->names[NAME_TOLD], told) == 0;
	if (fine) {
		attr->size = (uint64_t)fields[STAT_SIZE];
		attr->blocks = (attr->size + 511) / 512;
		set_time(fields[STAT_ACCESSED], &attr->atime, &attr->atimensec);
		set_time(fields[STAT_MODIFIED], &attr->mtime, &attr->mtimensec);
		set_time(fields[STAT_CHANGED], &attr->ctime, &attr->ctimensec);
		attr->mode = (uint32_t)fields[STAT_MODE];
		attr->nlink = (uint32_t)fields[STAT_LINKS];
		attr->uid = (uint32_t)fields[STAT_UID];
		attr->gid = (uint32_t)fields[STAT_GID];
		attr->rdev = (uint32_t)fields[STAT_DEVICE];
		attr->blksize = 4096;
	}
	if (!fine && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError))
		PyErr_Clear(); /* a time after 2262: Python can tell it */
	Py_XDECREF(told);
	Py_XDECREF(stat);
	Py_XDECREF(facts);
	return fine;
}

/* ---- open files --------------------------------------------------------------------------- */

/* The data and attributes of a new file that the target does not have yet; NULL: the node is no new file, or an
 * exception is set. */
static PyObject *what_is_new(const struct device_object *self, PyObject *node)
{
	PyObject *found = kernel_get(self, node, NAME_NEW);

	if (found != Py_None)
		return found;
	Py_DECREF(found);
	return NULL;
}

/* Of an object that may be NULL. */
static PyObject *data_of(const struct device_object *self, PyObject *found)
{
	PyObject *data = kernel_get(self, found, NAME_DATA);

	if (data && PyByteArray_Check(data))
		return data;
	Py_XDECREF(data);
	return NULL;
}

PyObject *kernel_new_data(const struct device_object *self, PyObject *node)
{
	PyObject *found = what_is_new(self, node);
	PyObject *data = data_of(self, found);

	Py_XDECREF(found);
	return data;
}

/* False: an exception is set. */
static bool put_bytes(PyObject *data, uint64_t start, const void *bytes, uint32_t length)
{
	uint64_t had = (uint64_t)PyByteArray_Size(data), end = start + length;

	if (end > had && PyByteArray_Resize(data, (Py_ssize_t)end) < 0)
		return false;
	if (start > had)
		memset(PyByteArray_AsString(data) + had, 0, start - had);
	memcpy(PyByteArray_AsString(data) + start, bytes, length);
	return true;
}

/* Length and times as they are after a write.  False: an exception is set. */
static bool note_write(const struct device_object *self, PyObject *node, PyObject *found,
		       Py_ssize_t length)
{
	PyObject *facts = kernel_get(self, node, NAME_FACTS);
	PyObject *stat = kernel_get(self, facts, NAME_STAT);
	PyObject *now = PyLong_FromUnsignedLongLong(osd_wall_nsec());
	bool fine = stat && now &&
		    kernel_set(self, stat, NAME_OF_STAT + STAT_SIZE, PyLong_FromSsize_t(length)) &&
		    kernel_set(self, stat, NAME_OF_STAT + STAT_MODIFIED, Py_NewRef(now)) &&
		    kernel_set(self, stat, NAME_OF_STAT + STAT_CHANGED, Py_NewRef(now)) &&
		    kernel_set(self, found, NAME_OF_STAT + STAT_MODIFIED, Py_NewRef(Py_None));
	Py_XDECREF(now);
	Py_XDECREF(stat);
	Py_XDECREF(facts);
	return fine;
}

enum kernel_outcome kernel_write_new(const struct device_object *self, PyObject *node,
				     uint64_t start, const void *data, uint32_t length)
{
	PyObject *found = what_is_new(self, node);
	PyObject *into = data_of(self, found);
	enum kernel_outcome outcome = HANDED_OUT;

	if (into && start <= self->new_most && length <= self->new_most - start &&
	    kernel_is_none(self, found, NAME_STORING) == 1 &&
	    put_bytes(into, start, data, length) &&
	    note_write(self, node, found, PyByteArray_Size(into)))
		outcome = ANSWERED;
	Py_XDECREF(into);
	Py_XDECREF(found);
	return outcome;
}

/* As close() in mounted.py for the last open file, if nothing waits. */
static bool forget_open_state(const struct device_object *self, PyObject *node)
{
	return kernel_set(self, node, NAME_HEAD, Py_NewRef(Py_None)) &&
	       kernel_set(self, node, NAME_FRESH, Py_NewRef(Py_False));
}

enum kernel_outcome kernel_release(const struct device_object *self, PyObject *node)
{
	PyObject *value = kernel_get(self, node, NAME_OPENS);
	long opens = value ? PyLong_AsLong(value) : -1;
	bool last = opens <= 1;

	Py_XDECREF(value);
	if (opens < 1 || kernel_is_none(self, node, NAME_WRITER) != 1)
		return HANDED_OUT;
	if (last && (kernel_is_none(self, node, NAME_NEW) != 1 ||
		     kernel_is_true(self, node, NAME_HIDDEN) != 0))
		return HANDED_OUT;
	if ((last && !forget_open_state(self, node)) ||
	    !kernel_set(self, node, NAME_OPENS, PyLong_FromLong(opens - 1)))
		return HANDED_OUT;
	return ANSWERED;
}
