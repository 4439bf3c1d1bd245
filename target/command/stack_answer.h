/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_answer.h -- Data-In of a READ whose data pass through functions: each piece that the command asks for has its
 * slot there, filled from kept results (function/kept.h) or from what was computed. */
#ifndef OSD_COMMAND_STACK_ANSWER_H
#define OSD_COMMAND_STACK_ANSWER_H

#include "command/request.h"
#include "function/kept.h"

struct osd_stack_answer {
	struct osd_request *request;
	const struct osd_piece *pieces; /* borrowed */
	size_t piece_count;
	struct osd_kept *kept; /* NULL: results of this stack are not kept */
	struct osd_kept_key key;
	uint32_t unit; /* bytes; 0: the stack is sequential, and all of its result is unit 0 */
	uint64_t end;  /* bytes that readers find; of a sequential stack only when its result is there */
	uint64_t first_missing, last_missing; /* units, after osd_stack_answer_keeps */
};

/* The length and the version of stored data, as of one moment.  OSD_E_VERSION: not the version wanted (NULL: any);
 * OSD_E_CONFLICT: the object changes just now, try again. */
enum osd_status osd_stack_answer_look(struct osd_object *source, unsigned data_flags,
				      const struct osd_data_version *wanted, uint64_t *ret_length,
				      struct osd_data_version *ret_version);
/* Stored bytes of that version.  OSD_E_CONFLICT: the object has another one. */
enum osd_status osd_stack_answer_load(struct osd_object *source, unsigned data_flags,
				      const struct osd_data_version *version, uint64_t offset,
				      uint8_t *bytes, size_t length);
/* Fills in what is kept.  True: that is all; false: units are missing, or with nowait, would have to be waited for. */
bool osd_stack_answer_keeps(struct osd_stack_answer *answer, bool nowait);
/* Fills in bytes that begin at an offset in the object. */
void osd_stack_answer_fill(const struct osd_stack_answer *answer, uint64_t offset,
			   const uint8_t *bytes, size_t length);
/* Keeps computed bytes that begin with a unit, and end with one or with the object. */
void osd_stack_answer_keep(const struct osd_stack_answer *answer, uint64_t offset,
			   const uint8_t *bytes, size_t length);
/* Once all is filled in: zeros behind the end, the length of Data-In, and the status of the command. */
enum osd_status osd_stack_answer_end(const struct osd_stack_answer *answer);

#endif
