/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasm_end.h -- the end of a call with an error or a trap of Wasmtime, and the report for its author. */
#ifndef OSD_SANDBOX_WASM_END_H
#define OSD_SANDBOX_WASM_END_H

#include "engine.h"
#include "wasmtime_api.h"

/* Frees the error or the trap.  what: the step or function that failed.  The texts of the result are valid until the
 * next end. */
void osd_wasm_end_fail(struct osd_engine_result *result, enum osd_finish_kind kind,
		       const char *what, wasmtime_error *error, wasm_trap *trap);

#endif
