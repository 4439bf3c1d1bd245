/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_read_halves.c -- READs of blocks that take long to compute pass their functions in two halves at the same time,
 * each in a sandbox of its own, if no other job needs the processors. */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/stack_read_impl.h"
#include "exec/exec.h"

#define HALF_BYTES (128u << 10) /* at least */
#define WORTH_USEC 400		/* of processor time; the second call costs about 100 */
#define HALVES	   2u

/* Both halves are whole blocks, and whole units of what is kept. */
static size_t first_of(const struct osd_stack_reading *read, size_t length)
{
	const struct osd_stack_answer *answer = &read->answer;
	size_t unit = answer->unit ? answer->unit : read->run.stack->contract.block;

	return unit ? (length / HALVES + unit - 1) / unit * unit : length;
}

static bool is_worth_it(const struct osd_stack_run *run, size_t length)
{
	return length >= HALVES * HALF_BYTES && run->stack->count && !run->for_script &&
	       osd_stack_run_usec(run, length) >= WORTH_USEC &&
	       osd_exec_has_processors(run->exec, HALVES);
}

enum osd_status osd_stack_half_open(struct osd_stack_reading *read, size_t length,
				    osd_stack_done_fn *done, size_t *ret_first)
{
	const struct osd_stack_run *run = &read->run;
	size_t first = first_of(read, length);
	struct osd_stack_half *half;

	osd_stack_half_close(read);
	*ret_first = length;
	if (first >= length || !is_worth_it(run, length))
		return OSD_OK;
	half = calloc(1, sizeof(*half));
	if (!half)
		return OSD_E_NO_MEMORY;
	read->half = half;
	half->read = read;
	half->run = (struct osd_stack_run){
		.request = run->request,
		.fault = &half->fault,
		.exec = run->exec,
		.id = run->id,
		.stack = run->stack,
		.offset = run->offset + first,
		.whole = run->whole,
		.reads_once = run->reads_once,
		.done = done,
	};
	memcpy(half->run.reader, run->reader, sizeof(run->reader));
	for (size_t i = 0; i < run->stack->count; i++)
		half->run.codes[i] = osd_function_code_ref(run->codes[i]);
	*ret_first = first;
	return OSD_OK;
}

void osd_stack_half_begin(struct osd_stack_reading *read)
{
	struct osd_stack_half *half = read->half;
	enum osd_status status = osd_stack_run_begin(&half->run);

	if (status != OSD_PENDING)
		half->run.done(&half->run, status);
}

/* The first half's failure goes first. */
enum osd_status osd_stack_half_join(struct osd_stack_reading *read)
{
	struct osd_stack_half *half = read->half;

	if (read->status != OSD_OK || !half || half->status == OSD_OK)
		return read->status;
	read->run.request->fault = half->fault;
	return read->status = half->status;
}

void osd_stack_half_close(struct osd_stack_reading *read)
{
	struct osd_stack_half *half = OSD_STEAL(read->half);

	if (!half)
		return;
	half->run.stack = NULL; /* it is the READ's */
	osd_stack_run_release(&half->run);
	free(half);
}
