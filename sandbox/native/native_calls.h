/* SPDX-License-Identifier: GPL-2.0-or-later */
/* native_calls.h -- the symbols that a native function imports: osd_read and the others of
 * examples/functions/osd.h, and those of the C library and the mathematical library. */
#ifndef OSD_SANDBOX_NATIVE_CALLS_H
#define OSD_SANDBOX_NATIVE_CALLS_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

/* Once, in the zygote: finds the two libraries.  False: text says why. */
bool osd_native_calls_prepare(char *text, size_t size);

/* The address of a symbol (library.h); NULL: there is none. */
void *osd_native_import(const char *name);

/* Before each job, by the thread that runs it: the only one whose calls are made.  A job that must end leaves its
 * call by a jump to *leave, with the value 1.  osd_native_why then says why. */
void osd_native_calls_begin(jmp_buf *leave);
const char *osd_native_why(void);

#endif
