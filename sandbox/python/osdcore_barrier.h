/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osdcore_barrier.h -- whether a script has set something in a function or class that is watched. */
#ifndef OSD_SANDBOX_OSDCORE_BARRIER_H
#define OSD_SANDBOX_OSDCORE_BARRIER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* From here on: these functions, built-in functions and classes, a tuple that outlives the next call; nothing
 * is touched.  0, or -1 with an exception. */
int osd_barrier_set(PyObject *objects);

/* Since osd_barrier_set() or osd_barrier_rearm(). */
bool osd_barrier_touched(void);

void osd_barrier_rearm(void);

#endif
