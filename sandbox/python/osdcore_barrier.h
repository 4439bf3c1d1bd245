/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osdcore_barrier.h -- detects whether a script has set an attribute of a watched function or class. */
#ifndef OSD_SANDBOX_OSDCORE_BARRIER_H
#define OSD_SANDBOX_OSDCORE_BARRIER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* Watches these functions, built-in functions and classes from now on.  They are in a tuple that must
 * outlive the next call.  Returns 0, or -1 with an exception. */
int osd_barrier_set(PyObject *objects);

/* Since osd_barrier_set() or osd_barrier_rearm(). */
bool osd_barrier_touched(void);

void osd_barrier_rearm(void);

#endif
