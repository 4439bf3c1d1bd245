/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_note.h -- the stacks of objects that were read lately, and how the last READ of each went.
 *
 * A READ finds the stack of an object in the store.  A note of it lets later READs do without the store, and so without
 * waiting, until anything changes that a stack depends on: values of the pages of any object, active functions and the
 * caps of their signers, objects with values that are removed.  All of these count changes.  A note also says which
 * data the last READ returned, whether it has computed them, and how long that took.
 *
 * A note takes the place of another one with the same hash.  Any thread; the lock is a leaf. */
#ifndef OSD_FUNCTION_STACK_NOTE_H
#define OSD_FUNCTION_STACK_NOTE_H

#include "function/kept.h"
#include "function/stack.h"

struct osd_stack_notes;

struct osd_stack_read {
	enum osd_kept_use use;
	struct osd_data_version version; /* of the source's data */
	uint8_t stack[32];		 /* of what the data pass through: stack_note.c */
	uint64_t usec, ended_msec;	 /* 0: there was no READ */
};

struct osd_stack_note {
	struct osd_object_id id, source;
	uint64_t source_created_msec; /* as in struct osd_stack */
	uint64_t changes; /* as osd_stack_changes was before the stack was found */
	uint8_t hash[32];
	uint32_t unit;	    /* osd_kept_unit of its blocks */
	bool deterministic; /* results are kept */
	size_t count;
	struct {
		struct osd_object_id id;
		struct osd_data_version version; /* of its code */
	} functions[OSD_STACK_STAGES];
	struct osd_stack_read last;
	char *text; /* owned by the table: osd_stack_describe; NULL: out of memory */
	size_t text_length;
	struct osd_stack *stack; /* owned by the table; NULL: out of memory */
};

struct osd_stack_notes *osd_stack_notes_create(void); /* NULL: out of memory */
void osd_stack_notes_free(struct osd_stack_notes *notes);
/* Changes as defined above, since the start. */
uint64_t osd_stack_changes(struct osd_functions *functions);
/* Takes a note of a stack with at least one stage, whose functions have this code.  Returns it, without text and stack. */
struct osd_stack_note osd_stack_note_put(struct osd_functions *functions, struct osd_object_id id,
					 uint64_t changes, const struct osd_stack *stack,
					 struct osd_function_code *const codes[OSD_STACK_STAGES]);
/* A note that holds now, as far as memory says; false: find the stack in the store.  Never waits.  ret_stack: also a copy
 * of the stack, which has no room for more stages, for the caller to free; NULL: it is not wanted. */
bool osd_stack_note_get(struct osd_functions *functions, struct osd_object_id id,
			struct osd_stack_note *ret_note, struct osd_stack **ret_stack);
/* After a READ of the object. */
void osd_stack_note_read(struct osd_functions *functions, struct osd_object_id id,
			 const struct osd_stack_read *read);
/* Attribute OSD_STACK_WHY of the object: JSON; *ret_length 0: there is no note. */
void osd_stack_note_why(struct osd_functions *functions, struct osd_object_id id, uint8_t *buffer,
			size_t capacity, size_t *ret_length);

/* stack_why.c.  The beginning of that value: source and stages.  The caller frees it; NULL: out of memory. */
char *osd_stack_describe(const struct osd_stack *stack, size_t *ret_length);
/* The rest: whether a READ would pass the same stack now, and the last READ, if it has passed this stack. */
struct osd_json;
void osd_stack_why_end(struct osd_json *json, const struct osd_stack_note *note, bool current);

#endif
