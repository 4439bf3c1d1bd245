/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasm_imports.h -- the module `osd` that a WebAssembly module imports (docs/wasm.md): the calls of job_calls.h.
 * Every pointer and length from the guest is checked against its memory. */
#ifndef OSD_SANDBOX_WASM_IMPORTS_H
#define OSD_SANDBOX_WASM_IMPORTS_H

#include <stdbool.h>

#include "wasmtime_api.h"

/* Defines the imports in a linker, once.  False: no memory. */
bool osd_wasm_imports_define(wasmtime_linker *linker);

#endif
