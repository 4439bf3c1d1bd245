/* SPDX-License-Identifier: GPL-2.0-or-later */
/* table.h -- every service action the target knows of, one row each (style: the row declares, the
 * dispatcher enforces, the function works). */
#ifndef OSD_COMMAND_TABLE_H
#define OSD_COMMAND_TABLE_H

#include "command/context.h"

/* The row, or NULL when the target does not support the service action. */
const struct osd_command_def *osd_command_find(uint16_t service_action);
/* The row of a CDB that has not been decoded yet; NULL too when it is not a CDB of OSD-2.  With osc_compat
 * the decoder may still find a row for one of OSC's codes. */
const struct osd_command_def *osd_command_of(const uint8_t *cdb, size_t length);
/* How long the request, which has not been decoded yet, may take.  def: osd_command_of its CDB.
 * osd_command_long_span is its second half, which most requests do not need: they are short. */
#define OSD_LONG_BYTES (4u << 20) /* of data: any command with more is long */
enum osd_command_span osd_command_long_span(const struct osd_command_def *def,
					    const struct osd_request *request);
static inline enum osd_command_span osd_command_span(const struct osd_command_def *def,
						     const struct osd_request *request)
{
	bool may_be_long = def && (def->span != OSD_RUNS_SHORT ||
				   request->data_out_length > OSD_LONG_BYTES ||
				   request->data_in_capacity > OSD_LONG_BYTES);

	return may_be_long ? osd_command_long_span(def, request) : OSD_SPAN_SHORT;
}
/* The rows, for walking them; NULL behind the last. */
const struct osd_command_def *osd_command_at(size_t index);

#endif
