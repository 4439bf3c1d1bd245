/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_read_impl.h -- what the files of a READ through functions share (stack_read.h). */
#ifndef OSD_COMMAND_STACK_READ_IMPL_H
#define OSD_COMMAND_STACK_READ_IMPL_H

#include "command/flights.h"
#include "command/stack_answer.h"
#include "command/stack_stream.h"

/* The second half of what a READ computes, while the first passes as the READ's own run. */
struct osd_stack_half {
	struct osd_stack_run run;
	struct osd_stack_reading *read;
	struct osd_fault fault;
	enum osd_status status; /* of the run */
};

struct osd_stack_reading {
	struct osd_stack_run run;
	struct osd_stack_half *half; /* owned; NULL: all passes as one */
	_Atomic unsigned running;    /* runs that have not ended */
	struct osd_functions *functions;
	struct osd_flights *flights;
	struct osd_flight flight;
	struct osd_stack_answer answer;
	struct osd_object *source; /* borrowed: while it is loaded */
	unsigned data_flags;	   /* of the command */
	bool compares;		   /* the store reads what it has loaded: nobody else may change it */
	uint64_t changes; /* osd_stack_changes before the stack was found */
	uint64_t began_usec;
	bool outdated;	  /* the functions have changed since */
	bool kept;
	enum osd_status status; /* of the run */
	unsigned tries;
	struct osd_kept_draft *draft; /* owned: of what passes in parts */
	struct osd_piece pieces[]; /* that the command asks for */
};

/* stack_read_load.c.  The input of the READ's run, and of the half, if there is one.  An input that is not there yet
 * comes when the run begins.  OSD_E_CONFLICT: the object has another version than the READ has found. */
enum osd_status osd_stack_read_load(struct osd_stack_reading *read, osd_stack_done_fn *half_done);

/* stack_read_halves.c.  Bytes that the run of the READ gets of the length that is computed from its offset on.  If these
 * are not all, read->half is there for the rest, which it gets from the caller; done is called for its run. */
enum osd_status osd_stack_half_open(struct osd_stack_reading *read, size_t length,
				    osd_stack_done_fn *done, size_t *ret_first);
/* The READ's own run has begun; read->running counts both.  Ends the half if it cannot begin. */
void osd_stack_half_begin(struct osd_stack_reading *read);
/* Both runs have ended.  The status of the READ's runs, with the fault of the first half that has failed. */
enum osd_status osd_stack_half_join(struct osd_stack_reading *read);
void osd_stack_half_close(struct osd_stack_reading *read); /* also if there is none */

/* stack_read_parts.c.  Whether the data are too long for one call, and the first function takes parts. */
bool osd_stack_parts_needed(const struct osd_stack_run *run);
/* run->stream is there then, and the draft of the result.  OSD_E_CONTRACT: the result cannot be kept. */
enum osd_status osd_stack_parts_open(struct osd_stack_reading *read);
/* The next part of the stored bytes. */
enum osd_status osd_stack_parts_load(struct osd_stack_reading *read);
/* All have passed; end: bytes of the result.  The status of the command. */
enum osd_status osd_stack_parts_end(struct osd_stack_reading *read, uint64_t end);
void osd_stack_parts_close(struct osd_stack_reading *read); /* also if it is not open */

#endif
