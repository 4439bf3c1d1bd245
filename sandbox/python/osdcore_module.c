/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osdcore_module.c -- `_osdcore`: call, readinto and share over proxy_client.c, and the signal handler
 * that raises osd.Ended.  Not here: the meaning of the calls (package osd), the mapping
 * (osdcore_map.c).
 *
 * State is static, not per module: one sandbox is one process with one interpreter and one
 * proxy. */
#include "osdcore_module.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "placed_result.h"
#include "proxy_client.h"

#define WRITE_MOST (8u << 20) /* at a time: signals are handled in between */

static PyObject *errors; /* tuple: exception class by enum osd_answer_code; index 0 is osd.Ended */
static _Atomic bool in_script;
static _Atomic bool has_ended;
static const void *placed; /* result */
static size_t placed_bytes;

void osd_core_script(bool running)
{
	atomic_store(&in_script, running);
}

const void *osd_core_take_placed(size_t *ret_length)
{
	*ret_length = placed_bytes;
	return OSD_STEAL(placed);
}

bool osd_core_has_ended(void)
{
	return atomic_load(&has_ended);
}

bool osd_core_is_ended(PyObject *type)
{
	return errors && PyErr_GivenExceptionMatches(type, PyTuple_GET_ITEM(errors, 0));
}

static PyObject *raise_answer(const struct osd_answer *answer, const uint8_t *body)
{
	PyObject *text;

	if (!errors || answer->code >= PyTuple_GET_SIZE(errors))
		return PyErr_Format(PyExc_SystemError, "the proxy answered %d", answer->code);
	text = PyUnicode_DecodeUTF8((const char *)body, (Py_ssize_t)answer->body_bytes, "replace");
	if (text)
		PyErr_SetObject(PyTuple_GET_ITEM(errors, answer->code), text);
	Py_XDECREF(text);
	return NULL;
}

/* True when the answer is OK; else an exception is set. */
static bool ask(const struct osd_call *call, const void *body, struct osd_answer *ret_answer,
		const uint8_t **ret_body)
{
	if (call->body_bytes > OSD_BODY_MAX) {
		PyErr_SetString(PyExc_ValueError, "more data than one call can carry");
		return false;
	}
	if (!osd_proxy_call(call, body, ret_answer, ret_body)) {
		PyErr_SetString(PyExc_SystemError, "malformed answer from the proxy");
		return false;
	}
	if (ret_answer->code != OSD_ANSWER_OK) {
		raise_answer(ret_answer, *ret_body);
		return false;
	}
	return true;
}

PyDoc_STRVAR(call_doc,
	     "call(op, partition_id, object_id, a=0, b=0, body=b'', /) -> (a, b, bytes)\n\n"
	     "One call to the proxy.  Raises the exception registered for its answer.");

static PyObject *core_call(PyObject *Py_UNUSED(module), PyObject *args)
{
	struct osd_call call = {0};
	struct osd_answer answer;
	Py_buffer body = {0};
	const uint8_t *answer_body;
	PyObject *data = NULL;
	bool fine;

	if (!PyArg_ParseTuple(args, "Hkk|kky*:call", &call.op, &call.partition_id, &call.object_id,
			      &call.a, &call.b, &body))
		return NULL;
	call.body_bytes = (uint32_t)OSD_MIN((size_t)body.len, (size_t)OSD_BODY_MAX + 1);
	fine = ask(&call, body.buf, &answer, &answer_body);
	/* copied before any other Python code runs, whose calls would overwrite it */
	if (fine)
		data = PyBytes_FromStringAndSize((const char *)answer_body,
						 (Py_ssize_t)answer.body_bytes);
	if (body.obj)
		PyBuffer_Release(&body);
	if (!data)
		return NULL;
	return Py_BuildValue("(kkN)", answer.a, answer.b, data);
}

PyDoc_STRVAR(
	write_long_doc,
	"write_long(op, partition_id, object_id, offset, data, b=0, /) -> (a, bytes written)\n\n"
	"WRITE, APPEND or RESULT of as much as goes, the next piece copied while one is written.\n"
	"Raises only if nothing was.");

static PyObject *core_write_long(PyObject *Py_UNUSED(module), PyObject *args)
{
	struct osd_call call = {0};
	struct osd_answer answer;
	const uint8_t *answer_body;
	PyObject *result = NULL;
	size_t written;
	Py_buffer data;

	if (!PyArg_ParseTuple(args, "Hkkky*|k:write_long", &call.op, &call.partition_id,
			      &call.object_id, &call.a, &data, &call.b))
		return NULL;
	if (data.len == 0)
		PyErr_SetString(PyExc_ValueError, "nothing to write");
	else if (!osd_proxy_write(&call, data.buf, OSD_MIN((size_t)data.len, (size_t)WRITE_MOST),
				  &answer, &answer_body, &written))
		PyErr_SetString(PyExc_SystemError, "malformed answer from the proxy");
	else if (written == 0)
		raise_answer(&answer, answer_body);
	else
		result = Py_BuildValue("(kn)", answer.a, (Py_ssize_t)written);
	PyBuffer_Release(&data);
	return result;
}

PyDoc_STRVAR(place_doc, "place(data, /) -> bool\n\n"
			"Leave the result of a stage over the data that it got, which nothing reads "
			"any more.\n"
			"False: it must be sent.");

static PyObject *core_place(PyObject *Py_UNUSED(module), PyObject *object)
{
	Py_buffer data;

	if (PyObject_GetBuffer(object, &data, PyBUF_SIMPLE) < 0)
		return NULL;
	placed = osd_place_result(data.buf, (size_t)data.len, true);
	placed_bytes = (size_t)data.len;
	PyBuffer_Release(&data);
	return PyBool_FromLong(placed != NULL);
}

PyDoc_STRVAR(readinto_doc, "readinto(partition_id, object_id, offset, buffer, /) -> bytes read\n\n"
			   "READ by way of the proxy, at most one call's worth, into buffer.");

static PyObject *core_readinto(PyObject *Py_UNUSED(module), PyObject *args)
{
	struct osd_call call = {.op = OSD_CALL_READ};
	struct osd_answer answer;
	const uint8_t *body;
	Py_buffer buffer;
	PyObject *result = NULL;

	if (!PyArg_ParseTuple(args, "kkkw*:readinto", &call.partition_id, &call.object_id, &call.a,
			      &buffer))
		return NULL;
	call.b = OSD_MIN((size_t)buffer.len, (size_t)OSD_CALL_IO_MAX);
	if (ask(&call, NULL, &answer, &body)) {
		size_t length = OSD_MIN((size_t)answer.body_bytes, (size_t)call.b);

		memcpy(buffer.buf, body, length);
		result = PyLong_FromSize_t(length);
	}
	PyBuffer_Release(&buffer);
	return result;
}

PyDoc_STRVAR(pread_doc,
	     "pread(version page, layout, head_fd, head_bytes, tail_fd, offset, buffer, /) "
	     "-> bytes read\n\n"
	     "From shared files, as far as the object goes; -1: look closer.");

PyDoc_STRVAR(share_doc, "share(partition_id, object_id, /) -> (head_bytes, length, head_fd, "
			"tail_fd, version_fd)\n\n"
			"Read-only descriptors of an object's files, the caller's to close; -1 for "
			"a file that is not.");

static PyObject *core_share(PyObject *Py_UNUSED(module), PyObject *args)
{
	struct osd_call call = {.op = OSD_CALL_SHARE};
	struct osd_answer answer;
	struct osd_shared_fds fds;
	const uint8_t *body;
	int error;

	if (!PyArg_ParseTuple(args, "kk:share", &call.partition_id, &call.object_id) ||
	    !ask(&call, NULL, &answer, &body))
		return NULL;
	error = osd_proxy_receive_share(&answer, &fds);
	if (error) {
		errno = -error;
		return PyErr_SetFromErrno(PyExc_OSError);
	}
	return Py_BuildValue("(kkiii)", answer.a, answer.b, fds.head, fds.tail, fds.version);
}

PyDoc_STRVAR(register_doc,
	     "register(errors, /)\n\nException classes by answer code; index 0: Ended.");

static PyObject *core_register(PyObject *Py_UNUSED(module), PyObject *classes)
{
	if (!PyTuple_CheckExact(classes) || PyTuple_GET_SIZE(classes) < 1)
		return PyErr_Format(PyExc_TypeError, "a tuple of exception classes is wanted");
	Py_XSETREF(errors, Py_NewRef(classes));
	Py_RETURN_NONE;
}

PyDoc_STRVAR(script_doc,
	     "script(running, /)\n\nWhether the script's own code runs and may be ended.");

static PyObject *core_script(PyObject *Py_UNUSED(module), PyObject *running)
{
	int truth = PyObject_IsTrue(running);

	if (truth < 0)
		return NULL;
	osd_core_script(truth);
	Py_RETURN_NONE;
}

PyDoc_STRVAR(on_end_doc,
	     "on_end(signal, frame, /)\n\nSignal handler: raises Ended while the script runs.");

static PyObject *core_on_end(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(args))
{
	if (errors && atomic_exchange(&in_script, false)) {
		atomic_store(&has_ended, true);
		PyErr_SetString(PyTuple_GET_ITEM(errors, 0), "the job was told to end");
		return NULL;
	}
	Py_RETURN_NONE;
}

PyDoc_STRVAR(
	changed_doc,
	"changed(things, stamps, indices=None, /) -> [index, ...]\n\n"
	"Which of these dicts, or types by their dicts, have changed since the last call with\n"
	"these stamps (a bytearray, 8 bytes a thing).  With indices only those are compared\n"
	"and returned.");

/* Up to Python 3.11, every change of a dict gives it a version that no dict had before.  Later versions
 * have no cheap check. */
static uint64_t version_of(PyObject *thing)
{
	PyObject *dict = PyType_Check(thing) ? ((PyTypeObject *)thing)->tp_dict : thing;

#if PY_VERSION_HEX < 0x030c0000
	if (dict && PyDict_Check(dict))
		return ((PyDictObject *)dict)->ma_version_tag;
#endif
	(void)dict;
	return 0;
}

/* The present versions; a bad index is left out. */
static PyObject *stamp_these(PyObject *things, uint8_t *stamps, PyObject *indices)
{
	for (Py_ssize_t at = 0; at < PyList_GET_SIZE(indices); at++) {
		Py_ssize_t i = PyLong_AsSsize_t(PyList_GET_ITEM(indices, at));
		uint64_t now;

		if (i == -1 && PyErr_Occurred())
			return NULL;
		if (i < 0 || i >= PyTuple_GET_SIZE(things))
			continue;
		now = version_of(PyTuple_GET_ITEM(things, i));
		memcpy(stamps + 8 * i, &now, sizeof(now));
	}
	return Py_NewRef(indices);
}

static PyObject *list_changed(PyObject *things, uint8_t *stamps)
{
	PyObject *changed = PyList_New(0);

	for (Py_ssize_t i = 0; changed && i < PyTuple_GET_SIZE(things); i++) {
		uint64_t now = version_of(PyTuple_GET_ITEM(things, i)), before;
		PyObject *index;

		memcpy(&before, stamps + 8 * i, sizeof(before));
		if (now == before && now != 0)
			continue;
		memcpy(stamps + 8 * i, &now, sizeof(now));
		index = PyLong_FromSsize_t(i);
		if (!index || PyList_Append(changed, index) < 0)
			Py_CLEAR(changed);
		Py_XDECREF(index);
	}
	return changed;
}

static PyObject *core_changed(PyObject *Py_UNUSED(module), PyObject *args)
{
	PyObject *things, *indices = NULL, *changed = NULL;
	Py_buffer stamps;

	if (!PyArg_ParseTuple(args, "O!w*|O!:changed", &PyTuple_Type, &things, &stamps,
			      &PyList_Type, &indices))
		return NULL;
	if (stamps.len == 8 * PyTuple_GET_SIZE(things))
		changed = indices ? stamp_these(things, stamps.buf, indices)
				  : list_changed(things, stamps.buf);
	else
		PyErr_SetString(PyExc_ValueError, "stamps of another length");
	PyBuffer_Release(&stamps);
	return changed;
}

PyDoc_STRVAR(restore_doc, "restore(now, was, /)\n\n"
			  "Make dict now what was is, a tuple of keys and values in turn: the same keys\n"
			  "with the very same values.");

/* The keys of now that was does not have; NULL: an exception is set. */
static PyObject *keys_beyond(PyObject *now, PyObject *was)
{
	PyObject *known = PySet_New(NULL), *beyond = PyList_New(0), *key, *value;
	Py_ssize_t at = 0;
	int failed = !known || !beyond;

	for (Py_ssize_t i = 0; !failed && i < PyTuple_GET_SIZE(was); i += 2)
		failed = PySet_Add(known, PyTuple_GET_ITEM(was, i)) < 0;
	while (!failed && PyDict_Next(now, &at, &key, &value)) {
		int there;

		Py_INCREF(key); /* comparing may run a script's code */
		there = PySet_Contains(known, key);
		failed = there < 0 || (!there && PyList_Append(beyond, key) < 0);
		Py_DECREF(key);
	}
	Py_XDECREF(known);
	if (failed)
		Py_CLEAR(beyond);
	return beyond;
}

static int drop_beyond(PyObject *now, PyObject *was)
{
	PyObject *beyond = keys_beyond(now, was);
	int failed = !beyond;

	for (Py_ssize_t i = 0; !failed && i < PyList_GET_SIZE(beyond); i++)
		failed = PyDict_DelItem(now, PyList_GET_ITEM(beyond, i)) < 0;
	Py_XDECREF(beyond);
	return failed ? -1 : 0;
}

static PyObject *core_restore(PyObject *Py_UNUSED(module), PyObject *args)
{
	PyObject *now, *was;

	if (!PyArg_ParseTuple(args, "O!O!:restore", &PyDict_Type, &now, &PyTuple_Type, &was))
		return NULL;
	for (Py_ssize_t i = 0; i + 1 < PyTuple_GET_SIZE(was); i += 2) {
		PyObject *key = PyTuple_GET_ITEM(was, i), *value = PyTuple_GET_ITEM(was, i + 1);
		PyObject *found = PyDict_GetItemWithError(now, key);

		if (found == value)
			continue;
		if (PyErr_Occurred() || PyDict_SetItem(now, key, value) < 0)
			return NULL;
	}
	/* All keys of was are in it: with the same size it is equal. */
	if (2 * PyDict_GET_SIZE(now) != PyTuple_GET_SIZE(was) && drop_beyond(now, was) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{"call", core_call, METH_VARARGS, call_doc},
	{"write_long", core_write_long, METH_VARARGS, write_long_doc},
	{"place", core_place, METH_O, place_doc},
	{"readinto", core_readinto, METH_VARARGS, readinto_doc},
	{"pread", osd_core_pread, METH_VARARGS, pread_doc},
	{"share", core_share, METH_VARARGS, share_doc},
	{"register", core_register, METH_O, register_doc},
	{"changed", core_changed, METH_VARARGS, changed_doc},
	{"restore", core_restore, METH_VARARGS, restore_doc},
	{"watch", osd_core_watch, METH_VARARGS,
	 "watch(number, objects, /)\n\nNote how the objects of this tuple are, as list 0, 1 or 2.\n"
	 "List 1 is of functions and classes: they are compared if one of them was touched."},
	{"altered", osd_core_altered, METH_VARARGS,
	 "altered(number, /) -> [object, ...]\n\nThose of the list that are not as watch() has noted."},
	{"reach", osd_core_reach, METH_VARARGS,
	 "reach(objects, constant, /) -> {id of a type: [object, ...]}\n\nThe objects of a list and all that "
	 "they refer to.\nObjects of the types of the tuple are passed over, with what they refer to."},
	{"script", core_script, METH_O, script_doc},
	{"on_end", core_on_end, METH_VARARGS, on_end_doc},
	{NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
	{Py_mod_exec, osd_core_add_map},
	{0, NULL},
};

static PyModuleDef definition = {
	.m_base = PyModuleDef_HEAD_INIT,
	.m_name = "_osdcore",
	.m_doc = "Transport between a sandbox and its proxy.",
	.m_methods = methods,
	.m_slots = slots,
};

PyMODINIT_FUNC osd_core_init(void)
{
	return PyModuleDef_Init(&definition);
}
