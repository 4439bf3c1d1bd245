/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_read_load.c -- the stored bytes that a READ passes through functions: which they are, and where they go.  They
 * are read straight to where the first function gets them, unless others need them, too. */
#include <stdlib.h>

#include "base/util.h"
#include "command/stack_read_impl.h"

static uint64_t round_up(uint64_t value, uint64_t block)
{
	uint64_t rest = value % block;

	return rest && value <= UINT64_MAX - block ? value + block - rest : value;
}

/* The bytes from *ret_first to *ret_end of a stored object that the pieces need, in whole blocks. */
static void span_pieces(const struct osd_stack_reading *read, uint64_t *ret_first,
			uint64_t *ret_end)
{
	uint32_t block = read->run.stack->contract.block;
	uint64_t first = UINT64_MAX, last = 0, length = read->run.whole;

	for (size_t i = 0; i < read->answer.piece_count; i++) {
		const struct osd_piece *piece = &read->pieces[i];

		if (piece->length == 0)
			continue;
		first = OSD_MIN(first, piece->offset);
		last = OSD_MAX(last, osd_add_capped(piece->offset, piece->length));
	}
	*ret_first = 0;
	*ret_end = last ? length : 0;
	if (!block || last == 0)
		return;
	*ret_first = OSD_MIN(first - first % block, length);
	*ret_end = OSD_MIN(round_up(last, block), length);
}

/* If the result is kept, whole units are computed, from the first to the last that is missing. */
static void span(const struct osd_stack_reading *read, uint64_t *ret_first, uint64_t *ret_end)
{
	const struct osd_stack_answer *answer = &read->answer;

	if (!answer->kept || !answer->unit) {
		span_pieces(read, ret_first, ret_end);
		return;
	}
	*ret_first = answer->first_missing * answer->unit;
	*ret_end = OSD_MIN((answer->last_missing + 1) * answer->unit, read->run.whole);
}

static enum osd_status load(const struct osd_stack_reading *read, const struct osd_stack_run *run,
			    uint8_t *data)
{
	return osd_stack_answer_load(read->source, read->data_flags, &read->answer.key.version,
				     run->offset, data, run->length);
}

static enum osd_status load_first(struct osd_stack_run *run, uint8_t *data)
{
	return load(osd_container_of(run, struct osd_stack_reading, run), run, data);
}

/* When the second half is loaded, the first one runs already. */
static enum osd_status load_half(struct osd_stack_run *run, uint8_t *data)
{
	return load(osd_container_of(run, struct osd_stack_half, run)->read, run, data);
}

static bool loads_later(struct osd_stack_run *run, size_t length)
{
	if (!run->load || !length || !run->stack->count || length > osd_stack_run_piece_max(run) ||
	    run->stack->stages[0].function.contract.optional ||
	    osd_stack_run_charge(run, length) != OSD_OK)
		return false;
	free(run->base);
	run->base = run->data = NULL;
	run->passed = 0;
	run->length = length;
	return true;
}

static enum osd_status load_run(const struct osd_stack_reading *read, struct osd_stack_run *run,
				size_t length)
{
	enum osd_status status;

	if (loads_later(run, length))
		return OSD_OK;
	status = osd_stack_run_allocate(run, length);
	return status == OSD_OK ? load(read, run, run->data) : status;
}

enum osd_status osd_stack_read_load(struct osd_stack_reading *read, osd_stack_done_fn *half_done)
{
	struct osd_stack_run *run = &read->run;
	uint64_t first, end;
	size_t length;
	enum osd_status status;

	span(read, &first, &end);
	run->offset = first;
	run->load = read->compares ? NULL : load_first;
	if (end - first > SIZE_MAX)
		return OSD_E_NO_MEMORY;
	status = osd_stack_half_open(read, (size_t)(end - first), half_done, &length);
	if (status == OSD_OK)
		status = load_run(read, run, length);
	if (status != OSD_OK || !read->half)
		return status;
	read->half->run.load = read->compares ? NULL : load_half;
	return load_run(read, &read->half->run, (size_t)(end - first) - length);
}
