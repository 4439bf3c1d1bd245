/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack.h -- the functions that the data of an object pass through (docs/views.md).
 *
 * Attributes of the pages of object/stack.h name them.  The nearest level that concerns an object counts: its own
 * values, else the inherited ones of one of its collections, the one with the least id, else those of its partition,
 * else those of the root.  A value "none" there cuts off the levels
 * above.  The number of an attribute is its place: a WRITE passes the functions in ascending order, a READ in
 * descending order.
 *
 * An object may show the data of another one, its source: what readers of the source see passes its own stages.  If it
 * was set as writable, a WRITE passes the same way back, and changes the source.
 *
 * A stage gets its data as arguments and returns data.  It has no access to any object, so it needs no rights: neither
 * the reader's nor those of the user who attached it. */
#ifndef OSD_FUNCTION_STACK_H
#define OSD_FUNCTION_STACK_H

#include "function/function.h"
#include "object/stack.h"
#include "security/security.h"
#include "wire/stage.h"

struct osd_stage {
	struct osd_function function; /* as it was active when the stack was made */
	uint32_t number;	      /* of the attribute */
	char method[OSD_FUNCTION_WORD_MAX + 1];	 /* entry point for READ */
	char inverse[OSD_FUNCTION_WORD_MAX + 1]; /* the one for WRITE; "": it has none */
	char parameters[OSD_STAGE_PARAMETERS_MAX];
	size_t parameters_length;
	char definer[OSD_PRINCIPAL_MAX]; /* who has attached it: its pool must admit this principal; "": not known */
};

struct osd_stack {
	struct osd_object_id source;  /* whose stored bytes pass; the object itself if it has no source */
	uint64_t source_created_msec; /* a later object with its id is another one; 0: it is the object itself */
	bool writable;		      /* a WRITE may change them: each source was set as writable */
	struct osd_contract contract; /* of the whole */
	size_t count;		      /* of stages */
	struct osd_stage stages[OSD_STACK_STAGES]; /* in the order of READ */
};

/* The stack of a user object, in a transaction.  The caller frees it.  OSD_E_FUNCTION_INACTIVE: one of its functions is
 * not active, or was removed; OSD_E_CONTRACT: one has no contract any more, or not that entry point, or there are more
 * than OSD_STACK_STAGES; OSD_E_NO_OBJECT: its source was removed, or is the end of a chain of more than
 * OSD_SOURCES_MAX; OSD_E_MEDIUM: a value is damaged. */
enum osd_status osd_stack_resolve(struct osd_functions *functions, struct osd_txn *txn,
				  struct osd_object_id id, struct osd_stack **ret_stack);
/* The same for an object that is being made in a partition. */
enum osd_status osd_stack_resolve_new(struct osd_functions *functions, struct osd_txn *txn,
				      const struct osd_stack_made *made,
				      struct osd_stack **ret_stack);
/* Whether both are made of the same source and the same versions of the same functions, called in the same way. */
bool osd_stack_same(const struct osd_stack *a, const struct osd_stack *b);
/* Whether the stored bytes of the object are its data. */
static inline bool osd_stack_is_plain(const struct osd_stack *stack, struct osd_object_id id)
{
	return stack->count == 0 && osd_same_id(stack->source, id);
}
/* The contract of the entry point that a READ calls, or (inverse) a WRITE. */
struct osd_contract osd_stage_contract(const struct osd_stage *stage, bool inverse);
/* Adds the pages, and the lengths of objects with a stack (object/stack.h): osd_functions_open calls it. */
void osd_stack_add_pages(struct osd_functions *functions);

#endif
