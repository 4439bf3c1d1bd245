/* SPDX-License-Identifier: GPL-2.0-or-later */
/* core.h -- Python.h as this module uses it (stable ABI of 3.11), and what its files share. */
#ifndef PYOSD_CORE_H
#define PYOSD_CORE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#define CORE_NODE_NAMES 26u

struct core_state { /* of one module object */
	PyObject *protocol_violation;
	PyObject *node_names[CORE_NODE_NAMES]; /* interned */
};

extern PyType_Spec core_session_spec;			   /* session_type.c */
extern PyType_Spec core_device_spec;			   /* kernel_type.c */
extern const char *const core_node_names[CORE_NODE_NAMES]; /* kernel_node.c */

/* decode.c */
PyObject *core_crc32c(PyObject *module, PyObject *args);
PyObject *core_decode_entries(PyObject *module, PyObject *args);
PyObject *core_decode_groups(PyObject *module, PyObject *args);
PyObject *core_decode_form(PyObject *module, PyObject *args);

#endif
