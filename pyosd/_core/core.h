/* SPDX-License-Identifier: GPL-2.0-or-later */
/* core.h -- Python.h as this module uses it (stable ABI of 3.11), and what its files share. */
#ifndef PYOSD_CORE_H
#define PYOSD_CORE_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

struct core_state { /* of one module object */
	PyTypeObject *session_type;
	PyObject *protocol_violation;
};

extern PyType_Spec core_session_spec; /* session_type.c */

/* decode.c */
PyObject *core_crc32c(PyObject *module, PyObject *args);
PyObject *core_decode_entries(PyObject *module, PyObject *args);
PyObject *core_decode_groups(PyObject *module, PyObject *args);
PyObject *core_decode_form(PyObject *module, PyObject *args);

#endif
