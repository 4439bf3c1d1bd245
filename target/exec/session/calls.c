/* SPDX-License-Identifier: GPL-2.0-or-later */
/* calls.c -- the time that calls of scripts take (session.h). */
#include "exec/session/session.h"

static enum osd_call_kind kind_of(uint16_t op)
{
	switch (op) {
	case OSD_CALL_READ:
	case OSD_CALL_WRITE:
	case OSD_CALL_APPEND:
	case OSD_CALL_TRUNCATE:
	case OSD_CALL_CLEAR:
	case OSD_CALL_PUNCH:
	case OSD_CALL_FLUSH:
		return OSD_CALL_KIND_DATA;
	case OSD_CALL_GETATTR:
	case OSD_CALL_SETATTR:
	case OSD_CALL_LISTATTR:
	case OSD_CALL_SWAPATTR:
	case OSD_CALL_ADDATTR:
		return OSD_CALL_KIND_ATTRIBUTES;
	case OSD_CALL_LIST:
	case OSD_CALL_QUERY:
	case OSD_CALL_NAMES:
		return OSD_CALL_KIND_LIST;
	default:
		return OSD_CALL_KIND_OTHER;
	}
}

void osd_call_took(struct osd_call_figures *figures, uint16_t op, uint64_t usec)
{
	osd_histogram_add(&figures->seconds[kind_of(op)], usec);
}
