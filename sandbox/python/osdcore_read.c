/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osdcore_read.c -- `_osdcore.pread`: a read through shared descriptors in C (shared_read.h).  The caller in
 * Python (osd/_sandbox.py) handles every case but the usual one. */
#include "osdcore_module.h"

#include "shared_read.h"

PyObject *osd_core_pread(PyObject *Py_UNUSED(module), PyObject *args)
{
	struct osd_shared_reading reading;
	Py_buffer page, buffer;
	Py_ssize_t count = -1;

	if (!PyArg_ParseTuple(args, "y*KiKiKw*:pread", &page, &reading.layout, &reading.head_fd,
			      &reading.head_bytes, &reading.tail_fd, &reading.offset, &buffer))
		return NULL;
	reading.words = page.buf;
	reading.bytes = buffer.buf;
	reading.room = (size_t)buffer.len;
	if (page.len >= (Py_ssize_t)(OSD_SHARED_WORDS * sizeof(uint64_t))) {
		Py_BEGIN_ALLOW_THREADS count = osd_shared_read(&reading);
		Py_END_ALLOW_THREADS
	}
	PyBuffer_Release(&buffer);
	PyBuffer_Release(&page);
	return PyLong_FromSsize_t(count);
}
