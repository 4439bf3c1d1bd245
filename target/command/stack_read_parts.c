/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_read_parts.c -- READs of data that are too long for one call of a function: they pass in parts, and the result
 * is kept. */
#include "base/util.h"
#include "command/stack_read_impl.h"

#define TOO_LONG UINT64_MAX /* a unit that says of a result that it does not fit */

static bool is_too_long(const struct osd_stack_answer *answer)
{
	uint64_t whole;

	return osd_kept_get(answer->kept, &answer->key, TOO_LONG, 0, NULL, 0, false, &whole);
}

static enum osd_status emit(struct osd_stack_run *run, uint64_t offset, const uint8_t *bytes,
			    size_t length)
{
	struct osd_stack_reading *read = osd_container_of(run, struct osd_stack_reading, run);
	struct osd_stack_answer *answer = &read->answer;
	enum osd_status status = osd_kept_append(answer->kept, read->draft, bytes, length);

	if (status == OSD_E_QUOTA) { /* later READs need not find that out again */
		osd_kept_end(answer->kept, OSD_STEAL(read->draft), false);
		osd_kept_put(answer->kept, &answer->key, TOO_LONG, "", 0);
	}
	if (status == OSD_E_QUOTA || status == OSD_E_NO_SPACE)
		return osd_stack_refuse(run->request, OSD_CONTRACT_NOT_KEPT);
	if (status == OSD_OK)
		osd_stack_answer_fill(answer, offset, bytes, length);
	return status;
}

enum osd_status osd_stack_parts_end(struct osd_stack_reading *read, uint64_t end)
{
	osd_kept_end(read->answer.kept, OSD_STEAL(read->draft), true);
	read->kept = true;
	read->answer.end = end;
	return osd_stack_answer_end(&read->answer);
}

bool osd_stack_parts_needed(const struct osd_stack_run *run)
{
	const struct osd_contract first = osd_stage_contract(&run->stack->stages[0], false);

	return run->stack->count && !run->stack->contract.block &&
	       run->whole > OSD_STAGE_DATA_MAX && osd_contract_takes_parts(&first);
}

enum osd_status osd_stack_parts_open(struct osd_stack_reading *read)
{
	struct osd_stack_answer *answer = &read->answer;
	enum osd_status status;

	if (!answer->kept || is_too_long(answer))
		return osd_stack_refuse(read->run.request, OSD_CONTRACT_NOT_KEPT);
	answer->end = UINT64_MAX; /* not known yet */
	status = osd_stack_stream_open(&read->run, emit);
	if (status == OSD_OK)
		status = osd_kept_begin(answer->kept, &answer->key, &read->draft);
	return status == OSD_E_NO_SPACE
		       ? osd_stack_refuse(read->run.request, OSD_CONTRACT_NOT_KEPT)
		       : status;
}

enum osd_status osd_stack_parts_load(struct osd_stack_reading *read)
{
	uint64_t offset;
	size_t length;
	uint8_t *room = osd_stack_stream_room(&read->run, &offset, &length);

	return room ? osd_stack_answer_load(read->source, read->data_flags,
					    &read->answer.key.version, offset, room, length)
		    : OSD_E_NO_MEMORY;
}

void osd_stack_parts_close(struct osd_stack_reading *read)
{
	osd_kept_end(read->answer.kept, OSD_STEAL(read->draft), false);
	osd_stack_stream_free(OSD_STEAL(read->run.stream));
}
