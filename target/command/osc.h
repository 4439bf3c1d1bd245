/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osc.h -- what the osc-compat switch changes in the way of a request: the dialect of OSC's initiator
 * where it contradicts the standard (osd2-wire 9).  Everything here does nothing while
 * request->osc_compat is false.
 * Not here: fields of the CDB (wire/cdb.c), attributes (attributes.c), the result of QUERY. */
#ifndef OSD_COMMAND_OSC_H
#define OSD_COMMAND_OSC_H

#include "command/request.h"

/* Whether OSC calls this failure, found when looking for the object, a success: REMOVE PARTITION of
 * a partition that does not exist (9-29). */
bool osd_osc_forgives(const struct osd_request *request, enum osd_status status);

#endif
