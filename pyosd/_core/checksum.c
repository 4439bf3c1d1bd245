/* SPDX-License-Identifier: GPL-2.0-or-later */
/* checksum.c -- CRC-32C of a buffer, without the GIL. */
#include "core.h"

#include "base/crc32c.h"

PyObject *core_crc32c(PyObject *Py_UNUSED(module), PyObject *args)
{
	unsigned int crc = 0;
	Py_buffer data;

	if (!PyArg_ParseTuple(args, "y*|I", &data, &crc))
		return NULL;
	Py_BEGIN_ALLOW_THREADS crc = osd_crc32c(crc, data.buf, (size_t)data.len);
	Py_END_ALLOW_THREADS PyBuffer_Release(&data);
	return PyLong_FromUnsignedLong(crc);
}
