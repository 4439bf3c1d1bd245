/* SPDX-License-Identifier: GPL-2.0-or-later */
/* impl.h -- what the files of this folder share (function.h). */
#ifndef OSD_FUNCTION_IMPL_H
#define OSD_FUNCTION_IMPL_H

#include <string.h>

#include "base/lock.h"
#include "function/function.h"
#include "object/hooks.h"
#include "object/page_provider.h"
#include "object/stack.h"

/* Attributes of page 2000_0006h. */
enum {
	MANIFEST_STATE = 1,
	MANIFEST_ENGINE,
	MANIFEST_ABI,
	MANIFEST_VERSION,
	MANIFEST_ACCESS,
	MANIFEST_ALIAS,
	MANIFEST_DESCRIPTION,
	MANIFEST_METHODS,
	MANIFEST_POOL,
	MANIFEST_WALL,
	MANIFEST_CPU,
	MANIFEST_MEMORY,
	MANIFEST_OUTPUT,
	MANIFEST_SHA256,
	MANIFEST_ACTIVATED,
	MANIFEST_SIGNATURE,
	MANIFEST_SIGNER,
	MANIFEST_FINGERPRINT,
	MANIFEST_BOX_KEY,
	MANIFEST_SIZE,
	MANIFEST_BLOCK,
	MANIFEST_RATIO,
	MANIFEST_INVERSE,
	MANIFEST_DETERMINISTIC,
	MANIFEST_OPTIONAL,
	MANIFEST_RECORDS,
	MANIFEST_CALLS = 0x20,
	MANIFEST_USERS,
	MANIFEST_END,
};

#define OSD_FUNCTION_CALLS_MAX (OSD_FUNCTION_REPORT_MAX + 512) /* bytes of MANIFEST_CALLS */

/* Of a version that is active. */
struct calls {
	uint64_t plain, recorded, failed; /* failed: of both */
	uint64_t last_msec;		  /* when the last one ended; 0: there was none */
	uint64_t failed_msec;		  /* the last failure, with reason, method and report */
	uint16_t reason;
	char method[OSD_FUNCTION_WORD_MAX + 1];
	uint8_t *report; /* owned; NULL: none */
	size_t report_length;
	char *audience; /* owned: who may see it; NULL: all */
};

struct entry {
	struct osd_function function;
	bool pending;			/* its activation is not stored yet */
	struct osd_function_code *code; /* of the last call; NULL: it is not kept */
	uint64_t used;			/* osd_functions.uses, at the last call */
	bool compiling;			/* code, for calls (osd_function_compile_begins) */
	struct calls calls;
};

struct osd_functions {
	struct osd_objects *objects; /* borrowed */
	struct osd_page_provider page;
	struct osd_page_provider stack_pages[OSD_STACK_LEVELS]; /* stack.c */
	struct osd_page_provider hook_pages[OSD_HOOK_LEVELS];	/* hooks.c */
	struct osd_functions_jobs jobs; /* constant after the start; NULL in it: none */
	uint64_t memory_max; /* constant after the start; 0: no bound */
	struct osd_machine *machine;	/* machine.h; constant after the start; NULL: none is kept */
	_Atomic bool machine_due; /* a function that may have machine code there has ended since the last sweep */
	struct osd_kept *results;	/* kept.h; constant after the start; NULL: none are kept */
	struct osd_stack_notes *notes;	/* stack_note.h */
	_Atomic uint64_t changes;	/* of the active functions */
	char *signers_file; /* NULL: none */
	struct osd_lock lock;  /* of what follows; nothing is called while it is held */
	struct osd_signers *signers; /* never NULL; a reference */
	struct entry *entries;	     /* in no order */
	size_t count, capacity;
	uint64_t matches; /* how often the entries were compared with the store (active.c) */
	struct osd_signer_calls signer_calls[OSD_FUNCTION_SIGNERS];
	size_t signer_count;
	size_t kept;   /* bytes of the entries' code */
	uint64_t uses; /* calls until now */
};

/* The entry of a function that is active, or (pending) is about to be; sha256 NULL: of any version.  NULL: there is none.
 * functions->lock held. */
static inline struct entry *find_entry(const struct osd_functions *functions,
				       struct osd_object_id id, const uint8_t *sha256, bool pending)
{
	osd_assert_held(&functions->lock);
	for (size_t i = 0; i < functions->count; i++) {
		struct entry *entry = &functions->entries[i];

		if (entry->pending == pending && osd_same_id(entry->function.id, id) &&
		    (!sha256 || memcmp(entry->function.sha256, sha256, 32) == 0))
			return entry;
	}
	return NULL;
}

/* page.c.  Whether the object is in a function partition. */
bool osd_function_is_one(struct osd_object_id id);
/* The manifest of an object, and the SHA-256 if it is active; sha256 is zero otherwise. */
enum osd_status osd_function_read(struct osd_txn *txn, struct osd_object_id id,
				  struct osd_function *ret_function);
/* The same, in a transaction of its own, of the object with function->id. */
enum osd_status osd_function_load(struct osd_functions *functions, struct osd_function *function);
/* Records that the object is active with this code, or (NULL) that it is not. */
enum osd_status osd_function_mark(struct osd_txn *txn, struct osd_object_id id,
				  const struct osd_function *function);
void osd_function_add_page(struct osd_functions *functions);

/* code.c.  The present code of the object; the caller puts it.  OSD_E_CDB_FIELD: it has none, or too much. */
enum osd_status osd_function_fetch(struct osd_functions *functions, struct osd_object_id id,
				   struct osd_function_code **ret_code);
/* code.c.  Keeps the code of an active function in memory. */
void osd_function_keep(struct osd_functions *functions, const struct osd_function *function,
		       struct osd_function_code *code);
/* machine.c.  Whether the code is of an engine that compiles, and has not been compiled.  Encrypted code never is: machine code
 * would lie in memory. */
bool osd_function_needs_compiler(const struct osd_function *function,
				 const struct osd_function_code *code);
/* code.c.  Keeps the code of this entry no longer; functions->lock held. */
void osd_function_release(struct osd_functions *functions, struct entry *entry);

/* find.c.  As osd_function_find, but reads nothing: OSD_E_NO_FUNCTION also for an object that is not active. */
enum osd_status osd_function_find_active(struct osd_functions *functions,
					 const struct osd_function_name *name,
					 struct osd_function *ret_function);

/* figures.c.  The engine of the manifest, or the usual one. */
const char *osd_function_engine(const struct osd_function *function);
/* Whether the engine's interface has the version that the manifest names. */
bool osd_function_abi_fits(const struct osd_function *function);
/* The memory that active functions reserve when next becomes active, and replaced (object 0: none) ends.
 * functions->lock held. */
uint64_t osd_functions_reserved(const struct osd_functions *functions,
				const struct osd_function *next, struct osd_object_id replaced);

/* calls.c.  Attribute MANIFEST_CALLS of an active function; *ret_length 0: it is not active.  At most
 * OSD_FUNCTION_CALLS_MAX bytes.  reader: principal that gets it; NULL: not known. */
void osd_function_get_calls(struct osd_functions *functions, struct osd_object_id id,
			    const char *reader, uint8_t *buffer, size_t capacity,
			    size_t *ret_length);
/* Frees what it owns. */
void osd_function_calls_release(struct calls *calls);

/* active.c.  The removal hook of object/; arg: struct osd_functions. */
enum osd_status osd_function_removed(void *arg, struct osd_txn *txn, struct osd_object_id id);
/* A place for a function that is about to be active.  OSD_E_BUSY: it, its alias, or too many others have one, or
 * another function than replace (NULL: none) has the alias.  ret_replaced: the function that has the alias now, which
 * the activation ends; object 0: none. */
enum osd_status osd_function_reserve(struct osd_functions *functions,
				     const struct osd_function *function,
				     const struct osd_function *replace,
				     struct osd_object_id *ret_replaced);
/* After a change of the function in the store: memory says what the store says, also about the function that may have
 * replaced it.  No transaction of the caller is open. */
void osd_function_match(struct osd_functions *functions, struct osd_object_id id);
/* Calls do not find this version any more, whatever the store says.  pending: after osd_function_match, its place goes
 * unless it is active. */
void osd_function_drop(struct osd_functions *functions, const struct osd_function *version,
		       bool pending);
/* Calls of this version get the caps of function from now on; nothing happens if it is not active. */
void osd_function_set_caps(struct osd_functions *functions, const struct osd_function *function);
/* At the start: puts an active function that was found in the store into memory. */
bool osd_function_found(struct osd_functions *functions, const struct osd_function *function);

/* deactivate.c.  Ends this version of a function, and no other; calls of it are refused at once, also if the store fails. */
enum osd_status osd_function_end(struct osd_functions *functions,
				 const struct osd_function *version);

#endif
