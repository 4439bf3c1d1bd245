/* SPDX-License-Identifier: GPL-2.0-or-later */
/* reasons.c -- the tables of states and reasons (reasons.h). */
#include "base/util.h"
#include "exec/record/reasons.h"

#define OSD_STATE_0 0

static const struct osd_job_reason_info reasons[] = {
#define X(number, symbol, state, label, hint) {number, OSD_STATE_##state, label, hint},
	OSD_JOB_REASONS(X)
#undef X
};

const struct osd_job_reason_info *osd_job_reason_info(unsigned reason)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(reasons); i++)
		if (reasons[i].number == reason)
			return &reasons[i];
	return osd_job_reason_info(OSD_REASON_INTERNAL);
}

size_t osd_job_reason_row(unsigned reason)
{
	return (size_t)(osd_job_reason_info(reason) - reasons);
}

const struct osd_job_reason_info *osd_job_reason_at(size_t row)
{
	return &reasons[row];
}

enum osd_status osd_job_reason_status(unsigned reason)
{
	static const enum osd_status blocks[] = {
		OSD_OK,
		OSD_E_JOB_QUEUE,
		OSD_E_JOB_SCRIPT,
		OSD_E_JOB_LIMIT,
		OSD_E_JOB_SANDBOX,
		OSD_E_JOB_STORAGE,
		OSD_E_JOB_SECURITY,
	};
	unsigned block = reason / 100;

	return block < OSD_ARRAY_SIZE(blocks) ? blocks[block] : OSD_E_JOB_INTERNAL;
}

static const char *const states[] = {
#define X(number, symbol) [number] = #symbol,
	OSD_JOB_STATES(X)
#undef X
};

bool osd_job_state_is_known(unsigned state)
{
	return state < OSD_ARRAY_SIZE(states) && states[state];
}

const char *osd_job_state_name(unsigned state)
{
	return osd_job_state_is_known(state) ? states[state] : "?";
}
