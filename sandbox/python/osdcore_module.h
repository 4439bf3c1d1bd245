/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osdcore_module.h -- the built-in module `_osdcore`: the transport under the Python package
 * osd. */
#ifndef OSD_SANDBOX_OSDCORE_MODULE_H
#define OSD_SANDBOX_OSDCORE_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

PyMODINIT_FUNC osd_core_init(void);

/* Between true and false the script's own code runs, and osd.Ended may be raised. */
void osd_core_script(bool running);

/* Whether the handler has raised osd.Ended in this process.  Any thread. */
bool osd_core_has_ended(void);

/* Is this exception class the one registered as osd.Ended? */
bool osd_core_is_ended(PyObject *type);

/* The result that the method place has put into the shared memory, once; NULL: none. */
const void *osd_core_take_placed(size_t *ret_length);

/* osdcore_map.c: adds the type Map to the module. */
int osd_core_add_map(PyObject *module);

/* osdcore_read.c: the method pread of the module. */
PyObject *osd_core_pread(PyObject *module, PyObject *args);

/* osdcore_watch.c: the methods watch and altered. */
PyObject *osd_core_watch(PyObject *module, PyObject *args);
PyObject *osd_core_altered(PyObject *module, PyObject *args);

/* osdcore_reach.c: the method reach. */
PyObject *osd_core_reach(PyObject *module, PyObject *args);

#endif
