/* SPDX-License-Identifier: GPL-2.0-or-later */
/* array_pages.c -- attributes 2Ch, 2Dh and 2Fh of page 2000_0001h: the indices of an array, and the states of
 * its members (flow/flow.h).  Those of an array in memory are of the moment of the view.  Those of an array
 * that has ended are in the store. */
#include <stdlib.h>

#include "base/util.h"
#include "exec/tell/tell.h"
#include "wire/cursor.h"

static void put_counts(struct osd_wr *w, const size_t counts[OSD_JOB_STATES_END])
{
	for (unsigned state = 1; state < OSD_JOB_STATES_END; state++) {
		if (counts[state] == 0)
			continue;
		osd_wr_be(w, state, 4);
		osd_wr_be(w, counts[state], 4);
	}
}

enum osd_status osd_array_get_states(struct osd_txn *txn, const struct osd_job_record *record,
				     uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	*ret_length = 0;
	if (!record->array.count)
		return OSD_OK;
	return osd_job_payload_any(txn, record->id, OSD_PAYLOAD_STATES, buffer, capacity,
				   ret_length);
}

/* All states, the caller's to free; *ret_length at most as many as there are members. */
static enum osd_status load_states(struct osd_txn *txn, const struct osd_job_record *record,
				   uint8_t **ret_states, size_t *ret_length)
{
	uint32_t count = record->array.count;
	enum osd_status status;

	*ret_states = malloc(count);
	if (!*ret_states)
		return OSD_E_NO_MEMORY;
	status = osd_array_get_states(txn, record, *ret_states, count, ret_length);
	*ret_length = OSD_MIN(*ret_length, (size_t)count);
	return status;
}

enum osd_status osd_array_put_counts(struct osd_txn *txn, const struct osd_job_record *record,
				     const size_t live[OSD_JOB_STATES_END], struct osd_wr *w)
{
	OSD_CLEANUP_FREE uint8_t *states = NULL;
	size_t counts[OSD_JOB_STATES_END] = {0}, length = 0;
	enum osd_status status;

	if (!osd_job_state_terminal(record->state)) {
		put_counts(w, live);
		return OSD_OK;
	}
	if (!record->array.count)
		return OSD_OK;
	status = load_states(txn, record, &states, &length);
	for (size_t i = 0; status == OSD_OK && i < length; i++)
		counts[OSD_MIN((size_t)states[i], (size_t)OSD_JOB_STATES_END - 1)]++;
	put_counts(w, counts);
	return status;
}

enum osd_status osd_array_get_indices(struct osd_txn *txn, const struct osd_job_record *record,
				      uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	*ret_length = 0;
	if (!(record->flags & OSD_JOB_RANGES))
		return OSD_OK;
	return osd_job_payload_any(txn, record->id, OSD_PAYLOAD_INDICES, buffer, capacity,
				   ret_length);
}
