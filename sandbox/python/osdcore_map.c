/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osdcore_map.c -- _osdcore.Map: an object's head and tail files mapped read-only in one
 * contiguous range, offered through the buffer protocol.  Unmapped when the last
 * buffer and the last reference are gone.
 *
 * The target never cuts a file that is shared, so the range stays readable for the life of the
 * map. */
#include "osdcore_module.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

struct map {
	PyObject_HEAD
	uint8_t *bytes; /* owned; NULL when length is 0 */
	size_t length;
};

/* part of the file from offset 0, at most room bytes, over the reservation at bytes */
static bool map_over(uint8_t *bytes, size_t room, int fd)
{
	return room == 0 ||
	       mmap(bytes, room, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
}

/* Reserve the whole range, then map the files over it. */
static bool map_files(struct map *map, int head_fd, unsigned long long head_bytes, int tail_fd)
{
	size_t head = map->length < head_bytes ? map->length : (size_t)head_bytes;
	long page = sysconf(_SC_PAGESIZE);

	if ((head < map->length && (head % (size_t)page || tail_fd < 0)) || (head && head_fd < 0)) {
		PyErr_SetString(PyExc_ValueError, "the files do not cover the length");
		return false;
	}
	map->bytes = mmap(NULL, map->length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			  -1, 0);
	if (map->bytes == MAP_FAILED) {
		map->bytes = NULL;
		PyErr_SetFromErrno(PyExc_OSError);
		return false;
	}
	if (!map_over(map->bytes, head, head_fd) ||
	    !map_over(map->bytes + head, map->length - head, tail_fd)) {
		PyErr_SetFromErrno(PyExc_OSError);
		return false;
	}
	return true;
}

static PyObject *map_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
		unsigned long long head_bytes;
	int head_fd, tail_fd;
	Py_ssize_t length;
	struct map *self;

	if (keywords && PyDict_GET_SIZE(keywords))
		return PyErr_Format(PyExc_TypeError, "Map takes no keywords");
	if (!PyArg_ParseTuple(args, "iKin:Map", &head_fd, &head_bytes, &tail_fd, &length))
		return NULL;
	if (length < 0)
		return PyErr_Format(PyExc_ValueError, "negative length");
	self = (struct map *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	self->length = (size_t)length;
	if (length && !map_files(self, head_fd, head_bytes, tail_fd)) {
		Py_DECREF(self);
		return NULL;
	}
	return (PyObject *)self;
}

static void map_dealloc(PyObject *object)
{
	struct map *self = (struct map *)object;
	PyTypeObject *type = Py_TYPE(object);

	if (self->bytes)
		munmap(self->bytes, self->length);
	type->tp_free(object);
	Py_DECREF(type);
}

static int map_getbuffer(PyObject *object, Py_buffer *view, int flags)
{
	struct map *self = (struct map *)object;
	static uint8_t nothing[1];

	return PyBuffer_FillInfo(view, object, self->bytes ? self->bytes : nothing,
				 (Py_ssize_t)self->length, 1, flags);
}

static Py_ssize_t map_length(PyObject *object)
{
	return (Py_ssize_t)((struct map *)object)->length;
}

static PyType_Slot map_slots[] = {
	{Py_tp_doc, (void *)"Map(head_fd, head_bytes, tail_fd, length): read-only bytes of two "
			    "files in a row"},
	{Py_tp_new, map_new},
	{Py_tp_dealloc, map_dealloc},
	{Py_bf_getbuffer, map_getbuffer},
	{Py_sq_length, map_length},
	{0, NULL},
};

static PyType_Spec map_spec = {
	.name = "_osdcore.Map",
	.basicsize = sizeof(struct map),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = map_slots,
};

int osd_core_add_map(PyObject *module)
{
	PyObject *type = PyType_FromModuleAndSpec(module, &map_spec, NULL);
	int result;

	if (!type)
		return -1;
	result = PyModule_AddObjectRef(module, "Map", type);
	Py_DECREF(type);
	return result;
}
