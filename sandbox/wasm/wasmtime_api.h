/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wasmtime_api.h -- the part of Wasmtime's C API that the engine `wasm` uses: types, and one row for each
 * function, which osd_wasmtime_load finds in the library.
 *
 * The layouts are those of the release OSD_WASMTIME_RELEASE, which pip installs with the host's package
 * (packaging/pip/iosd-host).  osd_wasmtime_load refuses a library that lacks one of the functions;
 * tests/sandbox/test_wasm.py compares the layouts with the declarations of the installed release. */
#ifndef OSD_SANDBOX_WASMTIME_API_H
#define OSD_SANDBOX_WASMTIME_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OSD_WASMTIME_RELEASE "50.0.1"

typedef struct wasm_config wasm_config;
typedef struct wasm_engine wasm_engine;
typedef struct wasm_functype wasm_functype;
typedef struct wasm_trap wasm_trap;
typedef struct wasm_valtype wasm_valtype;
typedef struct wasmtime_caller wasmtime_caller;
typedef struct wasmtime_context wasmtime_context;
typedef struct wasmtime_error wasmtime_error;
typedef struct wasmtime_instance_pre wasmtime_instance_pre;
typedef struct wasmtime_linker wasmtime_linker;
typedef struct wasmtime_module wasmtime_module;
typedef struct wasmtime_pooling wasmtime_pooling;
typedef struct wasmtime_store wasmtime_store;

typedef struct {
	size_t size;
	char *data;
} wasm_bytes;

typedef struct {
	size_t size;
	wasm_valtype **data;
} wasm_valtypes;

typedef struct {
	uint64_t store;
	void *index;
} wasmtime_func;

typedef struct {
	struct {
		uint64_t store;
		uint32_t index;
	} owner;
	uint32_t number;
} wasmtime_memory;

typedef struct {
	uint64_t store;
	size_t index;
} wasmtime_instance;

enum { WASM_KIND_I32, WASM_KIND_I64 };
enum { WASM_EXTERN_FUNC, WASM_EXTERN_GLOBAL, WASM_EXTERN_TABLE, WASM_EXTERN_MEMORY };
enum { WASMTIME_OPTIMIZE_SPEED = 1 };

typedef struct {
	uint8_t kind;
	union {
		wasmtime_func func;
		wasmtime_memory memory;
		uint64_t other[3]; /* the longest member */
	} of;
} wasmtime_extern;

typedef struct {
	uint8_t kind;
	union {
		int32_t i32;
		int64_t i64;
		uint64_t other[3];
	} of;
} wasmtime_value;

/* A parameter of an import, and its result in the place of the first. */
typedef union {
	int32_t i32;
	int64_t i64;
	uint64_t other[2];
} wasmtime_raw;

typedef wasm_trap *(*wasmtime_import)(void *data, wasmtime_caller *caller, wasmtime_raw *values,
				      size_t count);

#define OSD_WASMTIME_FUNCTIONS(X)                                                                      \
	X(void, wasm_byte_vec_delete, (wasm_bytes *))                                                  \
	X(wasm_config *, wasm_config_new, (void))                                                      \
	X(void, wasmtime_config_cranelift_opt_level_set, (wasm_config *, uint8_t))                     \
	X(void, wasmtime_config_max_wasm_stack_set, (wasm_config *, size_t))                           \
	X(void, wasmtime_config_memory_init_cow_set, (wasm_config *, bool))                            \
	X(void, wasmtime_config_native_unwind_info_set, (wasm_config *, bool))                         \
	X(void, wasmtime_config_parallel_compilation_set, (wasm_config *, bool))                       \
	X(void, wasmtime_config_wasm_gc_set, (wasm_config *, bool))                                    \
	X(void, wasmtime_config_wasm_memory64_set, (wasm_config *, bool))                              \
	X(void, wasmtime_config_wasm_threads_set, (wasm_config *, bool))                               \
	X(wasmtime_pooling *, wasmtime_pooling_allocation_config_new, (void))                          \
	X(void, wasmtime_pooling_allocation_config_delete, (wasmtime_pooling *))                       \
	X(void, wasmtime_pooling_allocation_config_total_core_instances_set,                           \
	  (wasmtime_pooling *, uint32_t))                                                              \
	X(void, wasmtime_pooling_allocation_config_total_memories_set, (wasmtime_pooling *, uint32_t)) \
	X(void, wasmtime_pooling_allocation_config_total_tables_set, (wasmtime_pooling *, uint32_t))   \
	X(void, wasmtime_pooling_allocation_config_max_tables_per_module_set,                          \
	  (wasmtime_pooling *, uint32_t))                                                              \
	X(void, wasmtime_pooling_allocation_config_table_elements_set, (wasmtime_pooling *, size_t))   \
	X(void, wasmtime_pooling_allocation_config_max_memory_size_set, (wasmtime_pooling *, size_t))  \
	X(void, wasmtime_pooling_allocation_config_linear_memory_keep_resident_set,                    \
	  (wasmtime_pooling *, size_t))                                                                \
	X(void, wasmtime_pooling_allocation_strategy_set, (wasm_config *, const wasmtime_pooling *))   \
	X(wasm_engine *, wasm_engine_new_with_config, (wasm_config *))                                 \
	X(wasm_valtype *, wasm_valtype_new, (uint8_t))                                                 \
	X(uint8_t, wasm_valtype_kind, (const wasm_valtype *))                                          \
	X(void, wasm_valtype_vec_new, (wasm_valtypes *, size_t, wasm_valtype *const *))                \
	X(wasm_functype *, wasm_functype_new, (wasm_valtypes *, wasm_valtypes *))                      \
	X(void, wasm_functype_delete, (wasm_functype *))                                               \
	X(const wasm_valtypes *, wasm_functype_params, (const wasm_functype *))                        \
	X(const wasm_valtypes *, wasm_functype_results, (const wasm_functype *))                       \
	X(wasmtime_linker *, wasmtime_linker_new, (wasm_engine *))                                     \
	X(wasmtime_error *, wasmtime_linker_define_func_unchecked,                                     \
	  (wasmtime_linker *, const char *, size_t, const char *, size_t, const wasm_functype *,       \
	   wasmtime_import, void *, void (*)(void *)))                                                 \
	X(wasmtime_error *, wasmtime_linker_instantiate_pre,                                           \
	  (const wasmtime_linker *, const wasmtime_module *, wasmtime_instance_pre **))                \
	X(wasmtime_error *, wasmtime_module_new,                                                       \
	  (wasm_engine *, const uint8_t *, size_t, wasmtime_module **))                                \
	X(wasmtime_error *, wasmtime_module_deserialize,                                               \
	  (wasm_engine *, const uint8_t *, size_t, wasmtime_module **))                                \
	X(wasmtime_error *, wasmtime_module_serialize, (wasmtime_module *, wasm_bytes *))              \
	X(void, wasmtime_module_delete, (wasmtime_module *))                                           \
	X(wasmtime_store *, wasmtime_store_new, (wasm_engine *, void *, void (*)(void *)))             \
	X(wasmtime_context *, wasmtime_store_context, (wasmtime_store *))                              \
	X(void, wasmtime_store_limiter,                                                                \
	  (wasmtime_store *, int64_t, int64_t, int64_t, int64_t, int64_t))                             \
	X(void, wasmtime_store_delete, (wasmtime_store *))                                             \
	X(wasmtime_error *, wasmtime_instance_pre_instantiate,                                         \
	  (const wasmtime_instance_pre *, wasmtime_context *, wasmtime_instance *, wasm_trap **))      \
	X(void, wasmtime_instance_pre_delete, (wasmtime_instance_pre *))                               \
	X(bool, wasmtime_instance_export_get,                                                          \
	  (wasmtime_context *, const wasmtime_instance *, const char *, size_t, wasmtime_extern *))    \
	X(wasm_functype *, wasmtime_func_type, (const wasmtime_context *, const wasmtime_func *))      \
	X(wasmtime_error *, wasmtime_func_call,                                                        \
	  (wasmtime_context *, const wasmtime_func *, const wasmtime_value *, size_t,                  \
	   wasmtime_value *, size_t, wasm_trap **))                                                    \
	X(bool, wasmtime_caller_export_get,                                                            \
	  (wasmtime_caller *, const char *, size_t, wasmtime_extern *))                                \
	X(wasmtime_context *, wasmtime_caller_context, (wasmtime_caller *))                            \
	X(uint8_t *, wasmtime_memory_data, (const wasmtime_context *, const wasmtime_memory *))        \
	X(size_t, wasmtime_memory_data_size, (const wasmtime_context *, const wasmtime_memory *))      \
	X(void, wasmtime_extern_delete, (wasmtime_extern *))                                           \
	X(void, wasmtime_error_message, (const wasmtime_error *, wasm_bytes *))                        \
	X(void, wasmtime_error_delete, (wasmtime_error *))                                             \
	X(wasm_trap *, wasmtime_trap_new, (const char *, size_t))                                      \
	X(void, wasm_trap_message, (const wasm_trap *, wasm_bytes *))                                  \
	X(void, wasm_trap_delete, (wasm_trap *))

struct osd_wasmtime {
#define X(type, name, parameters) type(*name) parameters;
	OSD_WASMTIME_FUNCTIONS(X)
#undef X
};

/* The functions of the library, set by osd_wasmtime_load. */
extern struct osd_wasmtime osd_wasmtime;

/* Loads the library of an open file, once, while /proc can be seen.  False: text says why. */
bool osd_wasmtime_load(int library_fd, char *text, size_t size);

#endif
