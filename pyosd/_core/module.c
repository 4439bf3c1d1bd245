/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module.c -- the module object pyosd._core: its state, class, exception and functions. */
#include "core.h"
#include "session.h"

static int add_type(PyObject *module, PyType_Spec *spec)
{
	PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
	int result = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;

	Py_XDECREF(type);
	return result;
}

static int core_exec(PyObject *module)
{
	struct core_state *state = PyModule_GetState(module);

	state->protocol_violation = PyErr_NewExceptionWithDoc(
		"pyosd._core.ProtocolViolation", "The target sent what iSCSI does not allow.",
		PyExc_ConnectionError, NULL);
	if (!state->protocol_violation ||
	    PyModule_AddObjectRef(module, "ProtocolViolation", state->protocol_violation) < 0)
		return -1;
	if (PyModule_AddIntConstant(module, "TASKS_MAX", ISCSI_TASKS_MAX) < 0)
		return -1;
	for (size_t i = 0; i < CORE_NODE_NAMES; i++) {
		state->node_names[i] = PyUnicode_InternFromString(core_node_names[i]);
		if (!state->node_names[i])
			return -1;
	}
	return add_type(module, &core_session_spec) < 0 ? -1 : add_type(module, &core_device_spec);
}

static int core_traverse(PyObject *module, visitproc visit, void *arg)
{
	struct core_state *state = PyModule_GetState(module);

	Py_VISIT(state->protocol_violation);
	return 0;
}

static int core_clear(PyObject *module)
{
	struct core_state *state = PyModule_GetState(module);

	for (size_t i = 0; i < CORE_NODE_NAMES; i++)
		Py_CLEAR(state->node_names[i]);
	Py_CLEAR(state->protocol_violation);
	return 0;
}

static PyModuleDef_Slot core_slots[] = {
	{Py_mod_exec, core_exec},
	{0, NULL},
};

PyDoc_STRVAR(
	decode_entries_doc,
	"decode_entries(data, value_type)\n--\n\n"
	"The whole entries of list type 9 in data: a tuple of value_type(page, number, value).");

PyDoc_STRVAR(decode_groups_doc,
	     "decode_groups(data, member_type, value_type)\n--\n\n"
	     "The whole groups of list type Eh in data: a tuple of member_type(object_id, type, "
	     "entries).\n\nWhat a group says like the one before is the same object.");

PyDoc_STRVAR(decode_form_doc,
	     "decode_form(data, widths, tuple_type)\n--\n\n"
	     "A page's fixed form as tuple_type: a number of each of these widths, 1 to 8 bytes.\n\n"
	     "None: they are not all there.");

PyDoc_STRVAR(crc32c_doc, "crc32c(data, crc=0)\n--\n\n"
			 "The CRC-32C of bytes that follow others with the checksum crc.");

static PyMethodDef core_methods[] = {
	{"crc32c", core_crc32c, METH_VARARGS, crc32c_doc},
	{"decode_entries", core_decode_entries, METH_VARARGS, decode_entries_doc},
	{"decode_groups", core_decode_groups, METH_VARARGS, decode_groups_doc},
	{"decode_form", core_decode_form, METH_VARARGS, decode_form_doc},
	{0},
};

PyDoc_STRVAR(
	core_doc,
	"The iSCSI initiator: a state machine over a socket, without threads or timers; and the "
	"lists of attributes it brings.  The requests of osd mount's kernel.");

static struct PyModuleDef core_module = {
	PyModuleDef_HEAD_INIT,	     .m_name = "pyosd._core",
	.m_doc = core_doc,	     .m_size = sizeof(struct core_state),
	.m_methods = core_methods,   .m_slots = core_slots,
	.m_traverse = core_traverse, .m_clear = core_clear,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
	return PyModuleDef_Init(&core_module);
}
