/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasm_imports.h -- the module `osd` that a WebAssembly module imports (docs/wasm.md): what a call can do
 * outside its own memory.  Every pointer and length from the guest is checked against its memory. */
#ifndef OSD_SANDBOX_WASM_IMPORTS_H
#define OSD_SANDBOX_WASM_IMPORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine.h"
#include "wasmtime_api.h"

/* Defines the imports in a linker, once.  False: no memory. */
bool osd_wasm_imports_define(wasmtime_linker *linker);

/* Before each call: the job whose imports are served; borrowed until the next. */
void osd_wasm_imports_begin(const struct osd_engine_job *job);

/* Called in a signal handler: from now on each import ends the call with a trap. */
void osd_wasm_imports_end(void);
bool osd_wasm_imports_ended(void);

/* Why the last import of the call failed; "": none did. */
const char *osd_wasm_imports_error(void);

#endif
