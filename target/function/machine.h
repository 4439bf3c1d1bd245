/* SPDX-License-Identifier: GPL-2.0-or-later */
/* machine.h -- machine code of functions, kept in the folder `machine` of the store, so that a restarted target need not
 * compile again (docs/format.md).
 *
 * A file has the machine code of one version of one function, and a check value: an HMAC under a key that follows
 * from the store's seal, over the machine code, the function, its code, and the name of the build: compiler and
 * processor.  A file that was changed, or is of another build, fails the check, and counts as absent.
 *
 * Any thread, with no lock and no transaction.  A failure costs another compilation, and is no error. */
#ifndef OSD_FUNCTION_MACHINE_H
#define OSD_FUNCTION_MACHINE_H

#include "function/function.h"

#define OSD_MACHINE_MAX (UINT64_C(256) << 20) /* bytes in all files */

struct osd_machine; /* where they are, and of which build */

/* directory: of the store.  NULL: they are not kept. */
struct osd_machine *osd_machine_open(const char *directory, const char *build);
void osd_machine_close(struct osd_machine *machine); /* NULL is fine */
/* Keeps the machine code of an active function, if there is room. */
void osd_machine_put(struct osd_functions *functions, const struct osd_function *function,
		     const struct osd_function_code *code);
/* The code with the machine code kept for it; the caller puts it.  NULL: there is none. */
struct osd_function_code *osd_machine_get(struct osd_functions *functions,
					  const struct osd_function *function,
					  const struct osd_function_code *code);
/* Some function may not be active any more: removes the files that belong to none. */
void osd_machine_sweep(struct osd_functions *functions);

#endif
