/* SPDX-License-Identifier: GPL-2.0-or-later */
/* status.c -- the table behind status.h. */
#include "base/status.h"

#include <errno.h>

static const struct osd_status_info table[OSD_STATUS_COUNT] = {
#define X(status, key, ascq, meaning) [status] = {#status, meaning, OSD_SK_##key, ascq},
	OSD_STATUS_MAP(X)
#undef X
};

const struct osd_status_info *osd_status_info(enum osd_status status)
{
	return &table[(unsigned)status < OSD_STATUS_COUNT ? status : OSD_E_INTERNAL];
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
		return OSD_E_INTERNAL;
	}
}
