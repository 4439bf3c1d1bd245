/* SPDX-License-Identifier: GPL-2.0-or-later */
/* compile.h -- code of functions becomes machine code ahead of calls (docs/functions.md, "Machine code").
 *
 * A sandbox of the pool of the calls compiles, in a call of the target's own: it is a plain one (exec/exec.h) and runs no
 * code of the function.  Its principal is that of this code alone, so nobody else's code has run in the sandbox. */
#ifndef OSD_COMMAND_COMPILE_H
#define OSD_COMMAND_COMPILE_H

#include "command/context.h"
#include "function/function.h"

/* The code that was compiled for the command; NULL: none was yet. */
struct osd_function_code *osd_compiled_code(const struct osd_request *request);
/* OSD_PENDING: the command has parked, and is dispatched again when the code is compiled.  OSD_E_FUNCTION_CODE: it cannot
 * be.  OSD_E_BUSY: others change the code each time. */
enum osd_status osd_compile_for_activation(struct osd_command_context *ctx,
					   const struct osd_function_compile *needed);
/* Compiles the code of an active function in the background if it has no machine code and nobody does so.  Does not
 * wait, and does not fail: calls run without. */
void osd_compile_for_calls(struct osd_functions *functions, struct osd_exec *exec,
			   const struct osd_function *function, struct osd_function_code *code);
/* Frees request->compiled. */
void osd_compile_forget(struct osd_request *request);

#endif
