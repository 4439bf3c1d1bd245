/* SPDX-License-Identifier: GPL-2.0-or-later */
/* status.c -- the table behind status.h. */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ration.h"

static const struct osd_status_info table[OSD_STATUS_COUNT] = {
#define X(status, key, ascq, meaning) [status] = {#status, meaning, OSD_SK_##key, ascq},
	OSD_STATUS_MAP(X)
#undef X
};

const struct osd_status_info *osd_status_info(enum osd_status status)
{
	return &table[(unsigned)status < OSD_STATUS_COUNT ? status : OSD_E_INTERNAL];
}

enum osd_status osd_internal(const char *format, ...)
{
	static struct osd_ration ration = OSD_RATION(20, 1000000);
	unsigned withheld;
	char cause[200];
	va_list values;

	if (!osd_ration_take(&ration, osd_monotonic_usec(), &withheld))
		return OSD_E_INTERNAL;
	va_start(values, format);
	vsnprintf(cause, sizeof(cause), format, values);
	va_end(values);
	if (withheld)
		osd_error("internal failure: %s (%u others were not logged)", cause, withheld);
	else
		osd_error("internal failure: %s", cause);
	return OSD_E_INTERNAL;
}

enum osd_status osd_status_from_errno(int error)
{
	switch (error) {
	case 0:
		return OSD_OK;
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return OSD_E_NO_SPACE;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return OSD_E_NO_MEMORY;
	case EIO:
	case EROFS:
	case ENODEV:
	case ENXIO:
	case ENOMEDIUM:
	case ESTALE:
	case EREMOTEIO:
	case ETIMEDOUT:
	case ESHUTDOWN:
	case EUCLEAN: /* the file system has detected damage */
	case EBADMSG: /* and a checksum wrong */
		return OSD_E_MEDIUM;
	default:
		return osd_internal("a system call on the store failed: %s", strerror(error));
	}
}
