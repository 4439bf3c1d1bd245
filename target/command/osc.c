/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osc.c -- see osc.h. */
#include "command/osc.h"

bool osd_osc_forgives(const struct osd_request *request, enum osd_status status)
{
	return request->osc_compat && status == OSD_E_NO_PARTITION &&
	       request->decoded.service_action == OSD_SA_REMOVE_PARTITION;
}
