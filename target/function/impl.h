/* SPDX-License-Identifier: GPL-2.0-or-later */
/* impl.h -- what the files of this folder share (function.h). */
#ifndef OSD_FUNCTION_IMPL_H
#define OSD_FUNCTION_IMPL_H

#include "base/lock.h"
#include "function/function.h"
#include "object/page_provider.h"

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
	MANIFEST_END,
};

struct entry {
	struct osd_function function;
	bool pending;			/* its activation is not stored yet */
	struct osd_function_code *code; /* of the last call; NULL: it is not kept */
	uint64_t used;			/* osd_functions.uses, at the last call */
};

struct osd_functions {
	struct osd_objects *objects; /* borrowed */
	struct osd_page_provider page;
	bool (*has_engine)(void *arg, const char *engine); /* constant after the start; NULL: none */
	void *engines;
	char *signers_file; /* NULL: none */
	struct osd_lock lock;  /* of what follows; nothing is called while it is held */
	struct osd_signers *signers; /* never NULL; a reference */
	struct entry *entries;	     /* in no order */
	size_t count, capacity;
	size_t kept;   /* bytes of the entries' code */
	uint64_t uses; /* calls until now */
};

/* page.c.  Whether the object is in a function partition. */
bool osd_function_is_one(struct osd_object_id id);
/* The manifest of an object, and the SHA-256 if it is active; sha256 is zero otherwise. */
enum osd_status osd_function_read(struct osd_txn *txn, struct osd_object_id id,
				  struct osd_function *ret_function);
/* Records that the object is active with this code, or (NULL) that it is not. */
enum osd_status osd_function_mark(struct osd_txn *txn, struct osd_object_id id,
				  const struct osd_function *function);
void osd_function_add_page(struct osd_functions *functions);

/* code.c.  The present code of the object; the caller puts it.  OSD_E_CDB_FIELD: it has none, or too much. */
enum osd_status osd_function_fetch(struct osd_functions *functions, struct osd_object_id id,
				   struct osd_function_code **ret_code);
/* code.c.  Keeps the code of this entry no longer; functions->lock held. */
void osd_function_release(struct osd_functions *functions, struct entry *entry);

/* active.c.  The removal hook of object/; arg: struct osd_functions. */
enum osd_status osd_function_removed(void *arg, struct osd_txn *txn, struct osd_object_id id);
/* Ends this version of a function, and no other; calls of it are refused at once, also if the store fails. */
enum osd_status osd_function_end(struct osd_functions *functions,
				 const struct osd_function *version);
/* At the start: puts an active function that was found in the store into memory. */
bool osd_function_found(struct osd_functions *functions, const struct osd_function *function);

#endif
