/* SPDX-License-Identifier: GPL-2.0-or-later */
/* function.h -- functions: code that lives in the store and is called by name (docs/functions.md).
 *
 * A function is a user object in a partition with an id from 1h to FFFFh.  The object's data are the code.  Page
 * 2000_0006h (page.c) is its manifest: engine, access class, entry points, limits.  A function is called only while
 * it is active.  ACTIVATE FUNCTION (activate.c) checks the manifest, records the SHA-256 of the code and fixes the
 * manifest.  A change of the data makes the function inactive: a call runs exactly the code that was activated, or
 * none.
 *
 * The active functions are kept in memory as well, under functions->lock; osd_functions_open reads them from the
 * store.  A transaction that changes this state changes the memory after its commit.
 *
 * Order: osd_functions_open after osd_objects_open, before other threads use the objects (it adds the page);
 * osd_functions_close when no command is under way.  Everything else: any thread. */
#ifndef OSD_FUNCTION_FUNCTION_H
#define OSD_FUNCTION_FUNCTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "function/contract.h"
#include "object/object.h"
#include "security/sshsig.h"
#include "wire/signer_line.h"

struct osd_functions;
struct osd_signers; /* function/signers.h */

/* The engines that iosd defines, also if this target does not have them: name, the first and the last version of its
 * interface that a manifest may name. */
#define OSD_FUNCTION_ENGINES(X)                                                                    \
	X("python", 1, 1)                                                                          \
	X("wasm", 1, 1)                                                                            \
	X("native", 1, 1)                                                                          \
	X("java", 1, 1)

/* The access of a function to the zone of a call. */
#define OSD_FUNCTION_ACCESSES(X)                                                                   \
	X(0, NONE, "none")   /* its arguments alone */                                             \
	X(1, READ, "read")   /* reads what is in the zone */                                       \
	X(2, WRITE, "write") /* changes it, too */

enum osd_function_access {
#define X(number, symbol, name) OSD_FUNCTION_##symbol = number,
	OSD_FUNCTION_ACCESSES(X)
#undef X
};

#define OSD_FUNCTION_WORD_MAX 64       /* bytes of an engine's, alias's, pool's or method's name */
#define OSD_FUNCTION_TEXT_MAX 256      /* bytes of a description, and of a list of methods */
#define OSD_FUNCTIONS_MAX     4096     /* active at a time */
#define OSD_FUNCTION_KEPT_MAX (64u << 20) /* bytes of code in memory */
#define OSD_FUNCTION_METHOD   "main"   /* the entry point of a manifest that names none */
#define OSD_FUNCTION_ENGINE   "python" /* the engine of a manifest that names none */
#define OSD_FUNCTION_COMPILED "wasm"   /* the engine that compiles code ahead of calls */
#define OSD_FUNCTION_DIGITS   8	       /* the least of a SHA-256 that names a function */
#define OSD_FUNCTION_REPORT_MAX 4096   /* bytes kept of the report of the last call that failed: its end */

/* An active function.  Texts end with a zero byte; "" and 0 stand for what the manifest leaves out. */
struct osd_function {
	struct osd_object_id id;
	uint8_t sha256[32];
	uint8_t access; /* enum osd_function_access */
	char engine[OSD_FUNCTION_WORD_MAX + 1];
	char alias[OSD_FUNCTION_WORD_MAX + 1];
	char pool[OSD_FUNCTION_WORD_MAX + 1];
	char methods[OSD_FUNCTION_TEXT_MAX + 1]; /* separated by spaces */
	struct osd_contract contract;
	char inverse[OSD_FUNCTION_WORD_MAX + 1]; /* the entry point that undoes the others */
	uint64_t wall_usec, cpu_usec, memory_bytes, output_bytes;
	uint32_t abi; /* version of the engine's interface */
	uint64_t activated_msec;
	char signer[OSD_SIGNER_NAME_MAX + 1]; /* "": it is not signed */
	char fingerprint[OSD_FINGERPRINT_SIZE];
	struct osd_signer_caps caps; /* the signer's, by the present list; zeroed: none */
};

/* signers: file of the policy and the list of signers (function/signers.h); NULL: none.  Active functions that these
 * refuse are deactivated.  On failure, message has the reason. */
enum osd_status osd_functions_open(struct osd_objects *objects, const char *signers,
				   char message[256], struct osd_functions **ret_functions);
struct osd_functions_jobs {
	/* Whether there is this engine beside OSD_FUNCTION_ENGINE.  Nothing is locked when it is called. */
	bool (*has_engine)(void *arg, const char *engine);
	/* Writes a line of each call of a function under way into text, for its manifest; returns the length. */
	size_t (*list_users)(void *arg, struct osd_object_id id, char *text, size_t capacity);
	void *arg;
};
/* At the start: how functions ask about jobs. */
void osd_functions_set_jobs(struct osd_functions *functions, const struct osd_functions_jobs *jobs);
void osd_functions_close(struct osd_functions *functions); /* NULL is fine */
/* Reads the file of signers again.  OSD_E_PARAM_FIELD: it is wrong, or looser than what holds; message says where.
 * Nothing changes until osd_functions_use, which takes the list and deactivates what it refuses. */
enum osd_status osd_functions_prepare(struct osd_functions *functions, char message[256],
				      struct osd_signers **ret_signers);
void osd_functions_use(struct osd_functions *functions, struct osd_signers *signers);
void osd_signers_free(struct osd_signers *signers); /* one that was not used; NULL is fine */
/* At the start: the most memory that active functions may reserve together, in bytes; 0: no bound.  Functions that
 * were active stay so. */
void osd_functions_set_memory(struct osd_functions *functions, uint64_t most);

/* At the start: keeps results of functions (function/kept.h) in this directory; quota 0: none. */
void osd_functions_keep(struct osd_functions *functions, const char *directory, uint64_t quota);
struct osd_kept *osd_functions_kept(struct osd_functions *functions); /* NULL: none are kept */
/* At the start: keeps machine code (function/machine.h) in this directory.  build: its compiler and processor. */
void osd_functions_keep_machine(struct osd_functions *functions, const char *directory,
				const char *build);

struct osd_function_figures {
	size_t active;
	uint64_t reserved_bytes; /* the memory limits of the active functions; a function without has the usual limit */
	uint64_t reserved_max;	 /* 0: no bound */
	uint64_t kept_bytes;	 /* of code in memory */
};
/* engine NULL: of all.  Other locks may be held. */
void osd_functions_figures(struct osd_functions *functions, const char *engine,
			   struct osd_function_figures *ret_figures);
/* FORMAT OSD has removed everything. */
void osd_functions_forget(struct osd_functions *functions);

/* Code that must be compiled first, and the function. */
struct osd_function_compile {
	struct osd_function function;
	struct osd_function_code *code; /* the caller puts it */
};
/* The other active function of the partition that has the alias of this one; object 0: none. */
enum osd_status osd_function_replaced(struct osd_functions *functions, struct osd_object_id id,
				      struct osd_function *ret_other);
/* Makes the function active, or replaces the version that was.  replaced: what osd_function_replaced said, or NULL.
 * That other function is stored again at the same moment; OSD_E_BUSY: by now, yet another one has the alias.
 * compiled: an earlier ret_compile->code with its machine code (osd_function_code_compiled), or NULL.  Not inside
 * a transaction.  OSD_E_WOULD_BLOCK: the code must be compiled, see *ret_compile; with ret_compile NULL it is
 * activated without.  OSD_E_NO_OBJECT; OSD_E_FUNCTION_ENGINE: no pool has its engine; OSD_E_CDB_FIELD: it has no
 * code, or too much; OSD_E_CONTRACT: its contract contradicts itself; OSD_E_FUNCTION_ALIAS: another active function
 * of the partition has its alias; OSD_E_QUOTA: too many are active; OSD_E_FUNCTION_UNSIGNED,
 * OSD_E_FUNCTION_SIGNATURE, OSD_E_FUNCTION_SIGNER: function/signing.h. */
enum osd_status osd_function_activate(struct osd_functions *functions, struct osd_object_id id,
				      const struct osd_function *replaced,
				      struct osd_function_code *compiled,
				      struct osd_function_compile *ret_compile);
/* Afterwards it cannot be called; calls under way go on. */
enum osd_status osd_function_deactivate(struct osd_functions *functions, struct osd_object_id id);

/* A function as a call names it: by its id, or in its partition by its alias or the first digits of its SHA-256
 * (object id 0). */
struct osd_function_name {
	uint64_t partition_id, object_id;
	const uint8_t *text;
	size_t length;
};
/* Finds an active function.  OSD_E_NO_FUNCTION: none has this name; OSD_E_FUNCTION_INACTIVE: there is such an object,
 * but it is not active; OSD_E_CDB_FIELD: the digits fit more than one. */
enum osd_status osd_function_find(struct osd_functions *functions,
				  const struct osd_function_name *name,
				  struct osd_function *ret_function);
/* The active function with this id, if there is one; reads memory alone, and may run in a transaction. */
bool osd_function_peek(struct osd_functions *functions, struct osd_object_id id,
			      struct osd_function *ret_function);
/* The only partition that has active functions.  OSD_E_NO_FUNCTION: there is none; OSD_E_CDB_FIELD: there are several. */
enum osd_status osd_function_partition(struct osd_functions *functions, uint64_t *ret_partition_id);
/* Whether both are the same activation of the same function. */
bool osd_function_same(const struct osd_function *a, const struct osd_function *b);
bool osd_function_has_method(const struct osd_function *function, const void *method,
			     size_t length);
/* The entry point of a call that names none. */
void osd_function_first_method(const struct osd_function *function,
			       char method[OSD_FUNCTION_WORD_MAX + 1]);
/* The entry point of this name; length 0: that one.  False: it is none of the function's. */
bool osd_function_choose_method(const struct osd_function *function, const void *method,
				size_t length, char ret_method[OSD_FUNCTION_WORD_MAX + 1]);
/* A call by EXECUTE FUNCTION that has ended. */
struct osd_function_call {
	struct osd_object_id id;
	const uint8_t *sha256; /* of the code that it ran */
	bool recorded;
	const char *signer; /* "": it is not signed */
	uint16_t reason; /* 0: it has completed */
	uint64_t ended_msec;
	const char *method;
	const uint8_t *report; /* the reason of a failure, as text; a call with a record has it there */
	size_t report_length;
	const char *audience; /* the only principal who may see the report; NULL: all may */
};
/* Counts the call for its signer.  If this version of the function still is active, counts it there, too, and keeps the
 * report of the last failure.  Any thread; other locks may be held. */
void osd_function_called(struct osd_functions *functions, const struct osd_function_call *call);

#define OSD_FUNCTION_SIGNERS 32 /* rows of figures; the last one is of all further signers */
#define OSD_FUNCTION_OTHERS  "(others)"

struct osd_signer_calls {
	char signer[OSD_SIGNER_NAME_MAX + 1];
	uint64_t completed, failed;
};
/* The calls since the start, by signer.  Returns: rows. */
size_t osd_functions_signer_calls(struct osd_functions *functions,
				  struct osd_signer_calls rows[OSD_FUNCTION_SIGNERS]);
/* Whether the signer's caps let the function be called with a zone in this partition (0: the root). */
bool osd_function_permits(const struct osd_function *function, uint64_t partition_id);
bool osd_function_is_active(struct osd_functions *functions, struct osd_object_id id); /* other locks may be held */
/* Whether the partition is one of functions. */
bool osd_function_is_partition(uint64_t partition_id);
/* The code of a function: the data of its object.  It does not change while there is a reference.  Code of an engine that
 * compiles has its machine code behind it, once there is some. */
struct osd_function_code {
	_Atomic uint32_t references;
	struct osd_data_version version; /* of the data */
	uint8_t sha256[32];
	size_t length, machine_length; /* of the code, of the machine code */
	bool compiled;		       /* compiling again is no use, also if there is no machine code */
	_Atomic uint32_t
		pace; /* nanoseconds of a processor for each KiB that lately passed it; 0: not known */
	uint8_t bytes[];
};
/* The code of a function that was found; the caller puts it.  OSD_E_FUNCTION_INACTIVE: the object's data have changed
 * since it was activated; OSD_E_NO_FUNCTION: it has been removed. */
enum osd_status osd_function_code(struct osd_functions *functions,
				  const struct osd_function *function,
				  struct osd_function_code **ret_code);
/* Both at once, without waiting: only a function whose code is in memory, and current as far as memory says.
 * OSD_E_WOULD_BLOCK: it is not, or there is no such function. */
enum osd_status osd_function_find_at_once(struct osd_functions *functions,
					  const struct osd_function_name *name,
					  struct osd_function *ret_function,
					  struct osd_function_code **ret_code);
/* Whether the data of the object still have the version of its code; false also if that is not in memory.  Never
 * waits. */
bool osd_function_code_is_current(struct osd_functions *functions, struct osd_object_id id,
				  const struct osd_data_version *version);
/* A copy of the code with this machine code; length 0: it has none, and is not compiled again; machine NULL: the caller
 * fills it in.  NULL: no memory. */
struct osd_function_code *osd_function_code_compiled(const struct osd_function_code *code,
						     const uint8_t *machine, size_t length);
/* The kept code of an active function that has machine code, if it has this SHA-256; NULL: there is none.  The caller puts
 * it.  Other locks may be held. */
struct osd_function_code *osd_function_machine(struct osd_functions *functions,
					       struct osd_object_id id, const uint8_t sha256[32]);
/* Whether the caller should compile the code of an active function, because it has no machine code (after a restart, or
 * because what is kept is full) and nobody compiles it.  Then the next must follow. */
bool osd_function_compile_begins(struct osd_functions *functions,
				 const struct osd_function *function,
				 const struct osd_function_code *code);
/* compiled: kept if the function is active still; NULL: the next call may try again. */
void osd_function_compile_ends(struct osd_functions *functions, const struct osd_function *function,
			       struct osd_function_code *compiled);
/* Another reference.  NULL is fine for both functions. */
struct osd_function_code *osd_function_code_ref(struct osd_function_code *code);
void osd_function_code_put(struct osd_function_code *code);
OSD_DEFINE_CLEANUP(struct osd_function_code *, osd_function_code_put)

#endif
