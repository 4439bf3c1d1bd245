/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel_type.c -- class pyosd._core.KernelDevice: the requests of `osd mount`'s kernel, from a
 * descriptor of /dev/fuse.  Types: ../_core.pyi.
 *
 * What needs nothing but what is known of a node is answered here (kernel_answers.c), because a turn of
 * Python's event loop costs more than all else of such an answer.  Everything else is handed out. */
#include "kernel.h"

#include <errno.h>
#include <poll.h>
#include <structmember.h>
#include <unistd.h>

#define SMALL (64u << 10) /* requests up to this length are copied out of the buffer */

/* ---- requests ----------------------------------------------------------------------------- */

/* The request in the buffer as an object. */
static PyObject *handed_out(struct device_object *self, const struct fuse_in_header *in)
{
	PyObject *data, *view = NULL, *body = NULL, *fresh;
	PyObject *found = NULL;

	if (in->len > SMALL) { /* it keeps the buffer */
		fresh = PyBytes_FromStringAndSize(NULL, self->length);
		if (!fresh)
			return NULL;
		data = self->buffer;
		self->buffer = fresh;
	} else {
		data = PyBytes_FromStringAndSize((const char *)in, (Py_ssize_t)in->len);
	}
	view = data ? PyMemoryView_FromObject(data) : NULL;
	body = view ? PySequence_GetSlice(view, sizeof(*in), (Py_ssize_t)in->len) : NULL;
	if (body)
		found = PyObject_CallFunction(
			self->request, "IKKIIOI", in->opcode, (unsigned long long)in->unique,
			(unsigned long long)in->nodeid, in->uid, in->gid, body, in->pid);
	Py_XDECREF(body);
	Py_XDECREF(view);
	Py_XDECREF(data);
	return found;
}

/* Waits; timeout in ms, negative: for ever.  Whether there is a request. */
static bool wait_for_request(struct device_object *self, int timeout)
{
	struct pollfd both[] = {{self->fd, POLLIN, 0}, {self->others, POLLIN, 0}};
	int count;

	Py_BEGIN_ALLOW_THREADS count = poll(both, 2, timeout);
	Py_END_ALLOW_THREADS self->others_ready = count > 0 && both[1].revents;
	return count > 0 && both[0].revents;
}

PyDoc_STRVAR(next_doc, "next(timeout)\n--\n\n"
		       "Answer requests until there is one for the caller.\n\n"
		       "timeout: ms, negative: for ever.  Returns: it; None: time is over, or "
		       "others has something.  Raises: OSError: there are no more.");

static PyObject *device_next(PyObject *object, PyObject *args)
{
	struct device_object *self = (struct device_object *)object;
	double end;
	int timeout;

	if (!PyArg_ParseTuple(args, "i", &timeout))
		return NULL;
	end = timeout > 0 ? kernel_now_s() + timeout / 1e3 : 0.0;
	while (wait_for_request(self, timeout)) {
		char *data = PyBytes_AsString(self->buffer);
		const struct fuse_in_header *in = (const struct fuse_in_header *)data;
		ssize_t length = read(self->fd, data, (size_t)self->length);
		enum kernel_outcome outcome = ANSWERED;

		/* ENOENT: its caller was killed. */
		if (length < 0 && errno != EAGAIN && errno != EINTR && errno != ENOENT)
			return PyErr_SetFromErrno(PyExc_OSError);
		if (length >= 0 && length < (ssize_t)sizeof(*in)) {
			errno = ENODEV;
			return PyErr_SetFromErrno(PyExc_OSError);
		}
		if (length > 0)
			outcome = kernel_answer(self, in);
		if (outcome == HANDED_OUT)
			return handed_out(self, in);
		if (self->others_ready || timeout == 0)
			break;
		if (timeout > 0 && (timeout = (int)((end - kernel_now_s()) * 1e3)) <= 0)
			break;
	}
	Py_RETURN_NONE;
}

PyDoc_STRVAR(reply_doc, "reply(unique, data)\n--\n\n"
			"Answer a request.  Raises: OSError.");

static PyObject *device_reply(PyObject *object, PyObject *args)
{
	unsigned long long unique;
	Py_buffer data;
	ssize_t done;

	if (!PyArg_ParseTuple(args, "Ky*", &unique, &data))
		return NULL;
	done = kernel_put((struct device_object *)object, unique, 0, data.buf, (size_t)data.len);
	PyBuffer_Release(&data);
	if (done < 0)
		return PyErr_SetFromErrno(PyExc_OSError);
	Py_RETURN_NONE;
}

/* ---- the class ---------------------------------------------------------------------------- */

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	struct core_state *state = PyType_GetModuleState(type);
	struct device_object *self;
	unsigned long long handled, new_most;
	PyObject *nodes, *request;
	Py_ssize_t length;
	int fd, others;
	double kept;

	if (kwargs)
		return PyErr_Format(PyExc_TypeError, "KernelDevice() takes no keyword arguments");
	if (!PyArg_ParseTuple(args, "iinKKdO!O", &fd, &others, &length, &new_most, &handled, &kept,
			      &PyDict_Type, &nodes, &request))
		return NULL;
	if (length < FUSE_MIN_READ_BUFFER)
		return PyErr_Format(PyExc_ValueError, "the longest request is longer");
	self = (struct device_object *)alloc(type, 0);
	if (!self)
		return NULL;
	self->fd = fd;
	self->others = others;
	self->handled = handled;
	self->new_most = new_most;
	self->kept = kept;
	self->length = length;
	self->names = state->node_names;
	Py_INCREF(nodes);
	self->nodes = nodes;
	Py_INCREF(request);
	self->request = request;
	self->buffer = PyBytes_FromStringAndSize(NULL, length);
	if (!self->buffer) {
		Py_DECREF(self);
		return NULL;
	}
	return (PyObject *)self;
}

static int device_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct device_object *self = (struct device_object *)object;

	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->nodes);
	Py_VISIT(self->request);
	return 0;
}

static int device_clear(PyObject *object)
{
	struct device_object *self = (struct device_object *)object;

	Py_CLEAR(self->nodes);
	Py_CLEAR(self->request);
	Py_CLEAR(self->buffer);
	return 0;
}

static void device_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);
	freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);

	PyObject_GC_UnTrack(object);
	device_clear(object);
	free_object(object);
	Py_DECREF(type);
}

static PyMemberDef device_members[] = {
	{"others_ready", T_BOOL, offsetof(struct device_object, others_ready), READONLY,
	 "others had something when next() last waited"},
	{0},
};

static PyMethodDef device_methods[] = {
	{"next", device_next, METH_VARARGS, next_doc},
	{"reply", device_reply, METH_VARARGS, reply_doc},
	{0},
};

PyDoc_STRVAR(device_doc,
	     "KernelDevice(fd, others, length, new_most, handled, kept, nodes, request, /)\n--\n\n"
	     "The requests of a file system's kernel.  The descriptors are borrowed.\n\n"
	     "fd: of /dev/fuse, non-blocking.  others: what else next() waits for.  length: of the "
	     "longest request.  new_most: bytes that a file holds that the target does not have "
	     "yet.  handled: a bit for each operation that next() returns.  kept: "
	     "seconds that attributes are used for.  nodes: by their ids.  request: called with "
	     "the parts of each.");

static PyType_Slot device_slots[] = {
	{Py_tp_doc, (void *)device_doc}, {Py_tp_new, device_new},
	{Py_tp_dealloc, device_dealloc}, {Py_tp_traverse, device_traverse},
	{Py_tp_clear, device_clear},	 {Py_tp_methods, device_methods},
	{Py_tp_members, device_members}, {0, NULL},
};

PyType_Spec core_device_spec = {
	.name = "pyosd._core.KernelDevice",
	.basicsize = sizeof(struct device_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = device_slots,
};
