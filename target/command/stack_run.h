/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_run.h -- passes data through the functions of a stack (docs/views.md), for commands that park meanwhile.
 *
 * Each stage is a plain call of a function (exec/exec.h), which gets the output of the stage before as arguments.  The
 * next stage is submitted when the one before has ended: a command holds one slot at a time, and no worker.  Blocks
 * pass in pieces of at most OSD_STAGE_DATA_MAX bytes.
 *
 * Threads: the worker until osd_stack_run_begin, then that of the call that has ended last.  The store is used before
 * and after, never in between. */
#ifndef OSD_COMMAND_STACK_RUN_H
#define OSD_COMMAND_STACK_RUN_H

#include "command/context.h"
#include "command/stack_room.h"
#include "function/stack.h"
#include "security/security.h"

/* The reason of a refusal, as command-specific information of OSD_E_CONTRACT. */
enum osd_contract_refusal {
	OSD_CONTRACT_MISSING = 1,   /* a function has no contract, or no such entry point */
	OSD_CONTRACT_TOO_LARGE = 2, /* the stack is sequential, and the data longer than OSD_STAGE_DATA_MAX */
	OSD_CONTRACT_NO_CHANGE = 3, /* the command cannot change data that pass through functions */
	OSD_CONTRACT_NO_INVERSE = 4, /* a function has no inverse */
	OSD_CONTRACT_PIECES = 5,     /* a scattered WRITE */
	OSD_CONTRACT_SOURCE = 6,     /* the object whose data it shows was removed */
	OSD_CONTRACT_VIEW = 7,	     /* an object is made in a view that is read-only */
	OSD_CONTRACT_RECORD = 8,     /* a record is longer than a part (stack_stream.h) */
	OSD_CONTRACT_NOT_KEPT = 9, /* the result must be kept to be read (stack_stream.h), and cannot be */
	OSD_CONTRACT_NAMES = 10,   /* names are changed in a view that is read-only */
	OSD_CONTRACT_DIRECTORY = 11, /* attributes of a directory of a view are set */
};

struct osd_stack_stream;
struct osd_stack_run;

/* Called once after osd_stack_run_begin has returned OSD_PENDING, perhaps before that; any thread. */
typedef void osd_stack_done_fn(struct osd_stack_run *run, enum osd_status status);

struct osd_stack_run {
	struct osd_request *request; /* borrowed */
	struct osd_fault *fault;     /* borrowed: of the request; of a half, its own */
	struct osd_exec *exec;
	struct osd_object_id id;  /* of the object; of one that is made, its partition alone */
	struct osd_stack *stack;  /* owned */
	uint8_t *base;		  /* owned: room for the frame of the first stage, then data */
	uint8_t *data;		  /* input, then output; NULL while the first stage has them */
	/* Writes the input, of length bytes, to where the first stage gets it; the sandbox may change them at once.
	 * Used if there is no data; NULL: there is. */
	enum osd_status (*load)(struct osd_stack_run *run, uint8_t *data);
	size_t length;		  /* of data */
	uint64_t offset, whole;	  /* of data in the object, and bytes of the object */
	bool inverse;		  /* in the direction of WRITE */
	bool for_script;	  /* a script waits for it */
	/* done reads data once, before it returns: they may be in memory that a sandbox can change. */
	bool reads_once;
	bool skipped;		  /* an optional function has failed, and its input has passed instead */
	osd_stack_done_fn *done;

	struct osd_function_code *codes[OSD_STACK_STAGES]; /* owned references, by place in the stack */
	char reader[OSD_PRINCIPAL_MAX];
	struct osd_stack_held held; /* bytes, of the memory of all runs */
	size_t piece;	  /* in data: of the bytes that pass the stages now */
	size_t passed;	  /* stages behind them */
	/* stack_stream.c; NULL: the data pass as a whole, or in blocks.  The one that opened it frees it. */
	struct osd_stack_stream *stream;
	/* Of a stream: takes the output of a call.  OSD_PENDING: another one was submitted. */
	enum osd_status (*take)(struct osd_stack_run *run, const uint8_t *bytes, size_t length);
	uint8_t *args;	  /* owned: frame and data of the stage that runs; NULL: its call owns them */
	size_t frame_length, data_length;
};

/* Fills in what a command knows: request, exec, id, stack (unless it is there already) and its code.  *ret_plain: the stored bytes are the data.
 * made: the object that the command makes; NULL: it makes none.  OSD_E_CONTRACT, OSD_E_FUNCTION_INACTIVE. */
enum osd_status osd_stack_run_open(struct osd_command_context *ctx,
				   const struct osd_stack_made *made, struct osd_stack_run *run,
				   bool *ret_plain);
/* Makes room for length bytes of data.  OSD_E_BUSY: the runs of the reader, or all together, hold too much;
 * OSD_E_CONTRACT: too large. */
enum osd_status osd_stack_run_allocate(struct osd_stack_run *run, size_t length);
/* Bytes that pass at a time, at most. */
size_t osd_stack_run_piece_max(const struct osd_stack_run *run);
/* OSD_PENDING: done will be called.  Otherwise it failed, perhaps in load.  There is at least one byte.  May be called
 * again after done, in the other direction. */
enum osd_status osd_stack_run_begin(struct osd_stack_run *run);
/* For stack_stream.c: the arguments of the stage at hand (run->passed), which are copied; and its call, as
 * osd_stack_run_begin. */
enum osd_status osd_stack_run_prepare(struct osd_stack_run *run, uint64_t whole, const void *header,
				      size_t header_length, const void *data, size_t length);
enum osd_status osd_stack_run_call(struct osd_stack_run *run);
/* So many bytes of the memory of all runs.  OSD_E_BUSY: as above. */
enum osd_status osd_stack_run_charge(struct osd_stack_run *run, size_t length);
/* Processor time that so many bytes will take in its functions, about; 0: not known. */
uint64_t osd_stack_run_usec(const struct osd_stack_run *run, size_t length);
/* Frees what the run owns. */
void osd_stack_run_release(struct osd_stack_run *run);
enum osd_status osd_stack_refuse(struct osd_request *request, enum osd_contract_refusal why);

#endif
