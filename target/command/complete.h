/* SPDX-License-Identifier: GPL-2.0-or-later */
/* complete.h -- how a command ends: SAM status, sense data, lengths, zeroed gaps, one log line
 * for a failure. */
#ifndef OSD_COMMAND_COMPLETE_H
#define OSD_COMMAND_COMPLETE_H

#include <stdbool.h>

#include "command/request.h"

/* Outcomes other than OSD_OK that still deliver Data-In and process attributes: a short READ, a job
 * that failed or is still running. */
bool osd_status_keeps_data(enum osd_status status);
/* SAM status and sense data alone.  proved: sense data comes with every status, even GOOD, to carry the response check
 * value. */
void osd_complete_status(struct osd_request *request, enum osd_status status, bool proved);
/* Fills in the answer's part of the request. */
void osd_complete(struct osd_request *request, enum osd_status status);

#endif
