/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel_answers.c -- what KernelDevice answers itself.  Operations that nobody handles are among it.
 * The kernel is trusted: lengths within a request are its own. */
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#define OPERATION_MAX  64u
#define NAME_MAX_BYTES 255u

ssize_t kernel_put(const struct device_object *self, uint64_t unique, int error, const void *data,
		   size_t length)
{
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + length), .error = -error, .unique = unique};
	struct iovec parts[] = {{&header, sizeof(header)}, {(void *)data, length}};

	return writev(self->fd, parts, length ? 2 : 1);
}

/* An answer that cannot be put has nobody who waits for it: its caller was killed, or the file
 * system unmounted, which next() finds out. */
static enum kernel_outcome answer(const struct device_object *self, uint64_t unique, int error,
				  const void *data, size_t length)
{
	(void)kernel_put(self, unique, error, data, length);
	return ANSWERED;
}

static enum kernel_outcome answer_attributes(const struct device_object *self, PyObject *node,
					     uint64_t unique)
{
	struct fuse_attr_out out = {0};
	double seconds;
	PyObject *value;

	if (kernel_is_none(self, node, NAME_SHOWN) != 1 ||
	    (seconds = kernel_left(self, node)) < 0.0)
		return HANDED_OUT;
	value = kernel_get(self, node, NAME_INODE);
	out.attr.ino = value ? PyLong_AsUnsignedLongLong(value) : 0;
	Py_XDECREF(value);
	if (PyErr_Occurred() || !out.attr.ino || !kernel_fill(self, node, &out.attr))
		return HANDED_OUT;
	out.attr_valid = (uint64_t)seconds;
	out.attr_valid_nsec =
		(uint32_t)((seconds - (double)out.attr_valid) * (double)KERNEL_NS_PER_S);
	return answer(self, unique, 0, &out, sizeof(out));
}

static enum kernel_outcome answer_no_xattr(const struct device_object *self, PyObject *node,
					   uint64_t unique, const char *name)
{
	PyObject *facts, *value;
	bool absent = false;

	if (strncmp(name, "system.", 7) == 0)
		return HANDED_OUT;
	if (strcmp(name, "security.capability") == 0 && kernel_is_true(self, node, NAME_FRESH) == 1)
		return answer(self, unique, ENODATA, NULL, 0); /* at the first write */
	if (kernel_is_none(self, node, NAME_SHOWN) != 1)
		return HANDED_OUT;
	if (kernel_is_none(self, node, NAME_NEW) != 0) {
		if (kernel_left(self, node) <= 0.0)
			return HANDED_OUT;
		facts = kernel_get(self, node, NAME_FACTS);
		value = kernel_get(self, facts, NAME_XATTRS);
		absent = value && value != Py_None && PyObject_IsTrue(value) == 0;
		Py_XDECREF(value);
		Py_XDECREF(facts);
		if (!absent)
			return HANDED_OUT;
	}
	return answer(self, unique, ENODATA, NULL, 0);
}

static enum kernel_outcome answer_no_name(const struct device_object *self, PyObject *node,
					  uint64_t unique, const char *name)
{
	PyObject *names = kernel_get(self, node, NAME_NAMES); /* AllNames, or None */
	PyObject *key = NULL;
	bool absent = false;

	/* .jobs and .views are in no list of names; longer names have another errno. */
	if (names && names != Py_None && name[0] != '.' && strlen(name) <= NAME_MAX_BYTES) {
		key = PyBytes_FromString(name);
		absent = key && PySet_Contains(PyTuple_GetItem(names, 0), key) == 0 &&
			 kernel_now_s() < PyFloat_AsDouble(PyTuple_GetItem(names, 1));
	}
	Py_XDECREF(key);
	Py_XDECREF(names);
	return absent ? answer(self, unique, ENOENT, NULL, 0) : HANDED_OUT;
}

/* ---- data --------------------------------------------------------------------------------- */

static enum kernel_outcome answer_write(const struct device_object *self, PyObject *node,
					const struct fuse_in_header *in)
{
	const struct fuse_write_in *write = (const struct fuse_write_in *)(in + 1);
	struct fuse_write_out out = {.size = write->size};
	enum kernel_outcome outcome;

	if (write->write_flags & FUSE_WRITE_KILL_SUIDGID ||
	    (write->flags & O_APPEND && !(write->write_flags & FUSE_WRITE_CACHE)))
		return HANDED_OUT;
	outcome = kernel_write_new(self, node, write->offset, write + 1, write->size);
	return outcome == ANSWERED ? answer(self, in->unique, 0, &out, sizeof(out)) : outcome;
}

static enum kernel_outcome answer_read(const struct device_object *self, PyObject *node,
				       const struct fuse_in_header *in)
{
	const struct fuse_read_in *read = (const struct fuse_read_in *)(in + 1);
	PyObject *data = kernel_new_data(self, node);
	uint64_t length, start = read->offset;

	if (!data)
		return HANDED_OUT;
	length = (uint64_t)PyByteArray_Size(data);
	if (start > length)
		start = length;
	length -= start;
	answer(self, in->unique, 0, PyByteArray_AsString(data) + start,
	       length < read->size ? length : read->size);
	Py_DECREF(data);
	return ANSWERED;
}

/* close() of a file of which nothing waits. */
static enum kernel_outcome answer_flush(const struct device_object *self, PyObject *node,
					uint64_t unique)
{
	if (kernel_is_none(self, node, NAME_NEW) != 1 ||
	    kernel_is_none(self, node, NAME_WRITER) != 1)
		return HANDED_OUT;
	return answer(self, unique, 0, NULL, 0);
}

static enum kernel_outcome answer_release(const struct device_object *self, PyObject *node,
					  uint64_t unique)
{
	enum kernel_outcome outcome = kernel_release(self, node);

	return outcome == ANSWERED ? answer(self, unique, 0, NULL, 0) : outcome;
}

/* ---- all ---------------------------------------------------------------------------------- */

static enum kernel_outcome answer_about(const struct device_object *self, PyObject *node,
					const struct fuse_in_header *in)
{
	const char *text = (const char *)(in + 1);

	switch (in->opcode) {
	case FUSE_GETATTR:
		return answer_attributes(self, node, in->unique);
	case FUSE_LOOKUP:
		return answer_no_name(self, node, in->unique, text);
	case FUSE_GETXATTR:
		return answer_no_xattr(self, node, in->unique,
				       text + sizeof(struct fuse_getxattr_in));
	case FUSE_WRITE:
		return answer_write(self, node, in);
	case FUSE_READ:
		return answer_read(self, node, in);
	case FUSE_FLUSH:
		return answer_flush(self, node, in->unique);
	case FUSE_RELEASE:
		return answer_release(self, node, in->unique);
	default:
		return HANDED_OUT;
	}
}

enum kernel_outcome kernel_answer(const struct device_object *self, const struct fuse_in_header *in)
{
	PyObject *id, *node;
	enum kernel_outcome outcome;

	if (in->opcode >= OPERATION_MAX || !(self->handled >> in->opcode & 1))
		return answer(self, in->unique, ENOSYS, NULL, 0);
	id = PyLong_FromUnsignedLongLong(in->nodeid);
	node = id ? PyDict_GetItemWithError(self->nodes, id) : NULL; /* borrowed */
	Py_XDECREF(id);
	Py_XINCREF(node);
	outcome = node ? answer_about(self, node, in) : HANDED_OUT;
	Py_XDECREF(node);
	PyErr_Clear();
	return outcome;
}
