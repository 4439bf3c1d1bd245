/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kernel_type.c -- class pyosd._core.KernelDevice: the requests of `osd mount`'s kernel, from a
 * descriptor of /dev/fuse.  Types: ../_core.pyi.
 *
 * What needs nothing but what is known of a node is answered here, because a turn of Python's event
 * loop costs more than all else of such an answer: GETATTR, names and extended attributes that are
 * absent, and operations that nobody handles.  Everything else is handed out.  Nodes are objects of
 * nodes.py, whose attributes are read as they are at that moment.
 *
 * The kernel is trusted: lengths within a request are its own. */
#include "core.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S       1000000000ll
#define SMALL	       (64u << 10) /* requests up to this length are copied out of the buffer */
#define OPERATION_MAX  64u
#define NAME_MAX_BYTES 255u

/* Attributes of nodes, their facts and their stat, in the order of core_node_names. */
enum name {
	NAME_SHOWN,
	NAME_NEW,
	NAME_WRITER,
	NAME_ASKED,
	NAME_CHANGED,
	NAME_FRESH,
	NAME_INODE,
	NAME_TOLD,
	NAME_FACTS,
	NAME_XATTRS,
	NAME_STAT,
	NAME_NAMES,
	NAME_OF_STAT, /* the first of its own */
};

enum stat_field {
	STAT_MODE,
	STAT_LINKS,
	STAT_UID,
	STAT_GID,
	STAT_SIZE,
	STAT_MODIFIED,
	STAT_CHANGED,
	STAT_TOLD, /* those before this one are what the kernel remembers */
	STAT_ACCESSED = STAT_TOLD,
	STAT_DEVICE,
	STAT_FIELDS,
};

const char *const core_node_names[CORE_NODE_NAMES] = {
	"shown", "new",	  "writer", "asked", "changed", "fresh", "inode",
	"told",	 "facts", "xattrs", "stat",  "names",	"mode",	 "links",
	"uid",	 "gid",	  "size",   "modified", "changed", "accessed", "device",
};

struct device_object {
	PyObject_HEAD int fd, others; /* borrowed; others: readable if the loop is to run */
	bool others_ready;
	uint64_t handled;  /* a bit for each operation that next() hands out */
	double kept;	   /* seconds that attributes are used for */
	PyObject *nodes;   /* dict: id -> node */
	PyObject *request; /* class of what next() returns */
	PyObject *buffer;  /* bytes that nobody else has: the next request */
	Py_ssize_t length; /* of buffer */
	PyObject *const *names;
};

/* ---- what is known of a node -------------------------------------------------------------- */

/* Takes one reference; the caller owns the result.  NULL: an exception is set. */
static PyObject *get(const struct device_object *self, PyObject *object, unsigned int name)
{
	return object ? PyObject_GetAttr(object, self->names[name]) : NULL;
}

/* 1, 0, or -1: an exception is set. */
static int is_true(const struct device_object *self, PyObject *node, enum name name)
{
	PyObject *value = get(self, node, name);
	int found = value ? PyObject_IsTrue(value) : -1;

	Py_XDECREF(value);
	return found;
}

static int is_none(const struct device_object *self, PyObject *node, enum name name)
{
	PyObject *value = get(self, node, name);
	int found = value ? value == Py_None : -1;

	Py_XDECREF(value);
	return found;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / (double)NS_PER_S;
}

/* How long the kernel may use the attributes, in seconds; negative: the target must be asked, or an
 * exception is set. */
static double left(const struct device_object *self, PyObject *node)
{
	PyObject *value = get(self, node, NAME_ASKED);
	double asked = value ? PyFloat_AsDouble(value) : -1.0;
	int is_old = is_none(self, node, NAME_NEW);

	Py_XDECREF(value);
	if (is_old < 0 || asked < 0.0)
		return -1.0;
	if (asked > 0.0) {
		if (is_old && is_none(self, node, NAME_WRITER) != 1)
			return -1.0;
		return self->kept - (now_s() - asked);
	}
	if (is_old)
		return -1.0;
	return is_true(self, node, NAME_CHANGED) ? 0.0 : self->kept;
}

static void set_time(int64_t ns, uint64_t *seconds, uint32_t *rest)
{
	int64_t whole = ns / NS_PER_S - (ns % NS_PER_S < 0);

	*seconds = (uint64_t)whole;
	*rest = (uint32_t)(ns - whole * NS_PER_S);
}

/* Fills in the attributes, and notes in the node that the kernel has them.  False: exception. */
static bool fill(const struct device_object *self, PyObject *node, struct fuse_attr *attr)
{
	PyObject *facts = get(self, node, NAME_FACTS);
	PyObject *stat = get(self, facts, NAME_STAT);
	PyObject *told = stat ? PyTuple_New(STAT_TOLD) : NULL;
	long long fields[STAT_FIELDS];
	bool fine = told != NULL;

	for (unsigned int i = 0; fine && i < STAT_FIELDS; i++) {
		PyObject *value = get(self, stat, NAME_OF_STAT + i);

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
	Py_XDECREF(told);
	Py_XDECREF(stat);
	Py_XDECREF(facts);
	return fine;
}

/* ---- answers ------------------------------------------------------------------------------ */

enum outcome { FAILED = -1, HANDED_OUT, ANSWERED };

static ssize_t put(const struct device_object *self, uint64_t unique, int error, const void *data,
		   size_t length)
{
	struct fuse_out_header header = {
		.len = (uint32_t)(sizeof(header) + length), .error = -error, .unique = unique};
	struct iovec parts[] = {{&header, sizeof(header)}, {(void *)data, length}};

	return writev(self->fd, parts, length ? 2 : 1);
}

/* An answer that cannot be put has nobody who waits for it: its caller was killed, or the file
 * system unmounted, which next() finds out. */
static enum outcome answer(const struct device_object *self, uint64_t unique, int error,
			   const void *data, size_t length)
{
	(void)put(self, unique, error, data, length);
	return ANSWERED;
}

static enum outcome answer_attributes(const struct device_object *self, PyObject *node,
				      uint64_t unique)
{
	struct fuse_attr_out out = {0};
	double seconds;
	PyObject *value;

	if (is_none(self, node, NAME_SHOWN) != 1 || (seconds = left(self, node)) < 0.0)
		return HANDED_OUT;
	value = get(self, node, NAME_INODE);
	out.attr.ino = value ? PyLong_AsUnsignedLongLong(value) : 0;
	Py_XDECREF(value);
	if (PyErr_Occurred() || !out.attr.ino || !fill(self, node, &out.attr))
		return HANDED_OUT;
	out.attr_valid = (uint64_t)seconds;
	out.attr_valid_nsec = (uint32_t)((seconds - (double)out.attr_valid) * (double)NS_PER_S);
	return answer(self, unique, 0, &out, sizeof(out));
}

static enum outcome answer_no_xattr(const struct device_object *self, PyObject *node,
				    uint64_t unique, const char *name)
{
	PyObject *facts, *value;
	bool absent = false;

	if (strncmp(name, "system.", 7) == 0)
		return HANDED_OUT;
	if (strcmp(name, "security.capability") == 0 && is_true(self, node, NAME_FRESH) == 1)
		return answer(self, unique, ENODATA, NULL, 0); /* at the first write */
	if (is_none(self, node, NAME_SHOWN) != 1)
		return HANDED_OUT;
	if (is_none(self, node, NAME_NEW) != 0) {
		if (left(self, node) <= 0.0)
			return HANDED_OUT;
		facts = get(self, node, NAME_FACTS);
		value = get(self, facts, NAME_XATTRS);
		absent = value && value != Py_None && PyObject_IsTrue(value) == 0;
		Py_XDECREF(value);
		Py_XDECREF(facts);
		if (!absent)
			return HANDED_OUT;
	}
	return answer(self, unique, ENODATA, NULL, 0);
}

static enum outcome answer_no_name(const struct device_object *self, PyObject *node,
				   uint64_t unique, const char *name)
{
	PyObject *names = get(self, node, NAME_NAMES); /* AllNames, or None */
	PyObject *key = NULL;
	bool absent = false;

	/* .jobs and .views are in no list of names; longer names have another errno. */
	if (names && names != Py_None && name[0] != '.' && strlen(name) <= NAME_MAX_BYTES) {
		key = PyBytes_FromString(name);
		absent = key && PySet_Contains(PyTuple_GetItem(names, 0), key) == 0 &&
			 now_s() < PyFloat_AsDouble(PyTuple_GetItem(names, 1));
	}
	Py_XDECREF(key);
	Py_XDECREF(names);
	return absent ? answer(self, unique, ENOENT, NULL, 0) : HANDED_OUT;
}

/* FAILED: an exception is set. */
static enum outcome answer_here(const struct device_object *self, const struct fuse_in_header *in)
{
	const char *text = (const char *)(in + 1);
	PyObject *id, *node;
	enum outcome outcome;

	if (in->opcode >= OPERATION_MAX || !(self->handled >> in->opcode & 1))
		return answer(self, in->unique, ENOSYS, NULL, 0);
	if (in->opcode != FUSE_GETATTR && in->opcode != FUSE_GETXATTR &&
	    in->opcode != FUSE_LOOKUP)
		return HANDED_OUT;
	id = PyLong_FromUnsignedLongLong(in->nodeid);
	node = id ? PyDict_GetItemWithError(self->nodes, id) : NULL; /* borrowed */
	Py_XDECREF(id);
	if (!node)
		return PyErr_Occurred() ? FAILED : HANDED_OUT;
	Py_INCREF(node);
	if (in->opcode == FUSE_GETATTR)
		outcome = answer_attributes(self, node, in->unique);
	else if (in->opcode == FUSE_LOOKUP)
		outcome = answer_no_name(self, node, in->unique, text);
	else
		outcome = answer_no_xattr(self, node, in->unique,
					  text + sizeof(struct fuse_getxattr_in));
	Py_DECREF(node);
	return PyErr_Occurred() ? FAILED : outcome;
}

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
		found = PyObject_CallFunction(self->request, "IKKIIOI", in->opcode,
					      (unsigned long long)in->unique,
					      (unsigned long long)in->nodeid, in->uid, in->gid,
					      body, in->pid);
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
	end = timeout > 0 ? now_s() + timeout / 1e3 : 0.0;
	while (wait_for_request(self, timeout)) {
		char *data = PyBytes_AsString(self->buffer);
		const struct fuse_in_header *in = (const struct fuse_in_header *)data;
		ssize_t length = read(self->fd, data, (size_t)self->length);
		enum outcome outcome = ANSWERED;

		/* ENOENT: its caller was killed. */
		if (length < 0 && errno != EAGAIN && errno != EINTR && errno != ENOENT)
			return PyErr_SetFromErrno(PyExc_OSError);
		if (length >= 0 && length < (ssize_t)sizeof(*in)) {
			errno = ENODEV;
			return PyErr_SetFromErrno(PyExc_OSError);
		}
		if (length > 0)
			outcome = answer_here(self, in);
		if (outcome == FAILED)
			return NULL;
		if (outcome == HANDED_OUT)
			return handed_out(self, in);
		if (self->others_ready || timeout == 0)
			break;
		if (timeout > 0 && (timeout = (int)((end - now_s()) * 1e3)) <= 0)
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
	done = put((struct device_object *)object, unique, 0, data.buf, (size_t)data.len);
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
	unsigned long long handled;
	PyObject *nodes, *request;
	Py_ssize_t length;
	int fd, others;
	double kept;

	if (kwargs) {
		PyErr_SetString(PyExc_TypeError, "KernelDevice() takes no keyword arguments");
		return NULL;
	}
	if (!PyArg_ParseTuple(args, "iinKdO!O", &fd, &others, &length, &handled, &kept,
			      &PyDict_Type, &nodes, &request))
		return NULL;
	if (length < FUSE_MIN_READ_BUFFER) {
		PyErr_SetString(PyExc_ValueError, "the longest request is longer");
		return NULL;
	}
	self = (struct device_object *)alloc(type, 0);
	if (!self)
		return NULL;
	self->fd = fd;
	self->others = others;
	self->handled = handled;
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

static PyObject *get_others_ready(PyObject *object, void *Py_UNUSED(closure))
{
	return PyBool_FromLong(((struct device_object *)object)->others_ready);
}

static PyGetSetDef device_getset[] = {
	{"others_ready", get_others_ready, NULL, "others had something when next() last waited",
	 NULL},
	{0},
};

static PyMethodDef device_methods[] = {
	{"next", device_next, METH_VARARGS, next_doc},
	{"reply", device_reply, METH_VARARGS, reply_doc},
	{0},
};

PyDoc_STRVAR(device_doc,
	     "KernelDevice(fd, others, length, handled, kept, nodes, request, /)\n--\n\n"
	     "The requests of a file system's kernel.  The descriptors are borrowed.\n\n"
	     "fd: of /dev/fuse, non-blocking.  others: what else next() waits for.  length: of the "
	     "longest request.  handled: a bit for each operation that next() returns.  kept: "
	     "seconds that attributes are used for.  nodes: by their ids.  request: called with "
	     "the parts of each.");

static PyType_Slot device_slots[] = {
	{Py_tp_doc, (void *)device_doc},
	{Py_tp_new, device_new},
	{Py_tp_dealloc, device_dealloc},
	{Py_tp_traverse, device_traverse},
	{Py_tp_clear, device_clear},
	{Py_tp_methods, device_methods},
	{Py_tp_getset, device_getset},
	{0, NULL},
};

PyType_Spec core_device_spec = {
	.name = "pyosd._core.KernelDevice",
	.basicsize = sizeof(struct device_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC,
	.slots = device_slots,
};
