/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasm_end.h -- how a call of the engine `wasm` ends.  The texts of a result are valid until the next end. */
#ifndef OSD_SANDBOX_WASM_END_H
#define OSD_SANDBOX_WASM_END_H

#include <stdint.h>

#include "engine.h"
#include "wasmtime_api.h"

/* An entry point returned this code; other than 0 is an error. */
void osd_wasm_end_well(struct osd_engine_result *result, const char *name, uint32_t code);
/* An error or a trap, which it frees; what: the step or function that failed. */
void osd_wasm_end_fail(struct osd_engine_result *result, enum osd_finish_kind kind,
		       const char *what, wasmtime_error *error, wasm_trap *trap);
/* As fail, for a reason of the engine. */
void osd_wasm_end_say(struct osd_engine_result *result, enum osd_finish_kind kind, const char *what,
		      const char *why);
/* Of the last end. */
const char *osd_wasm_end_line(void);

#endif
