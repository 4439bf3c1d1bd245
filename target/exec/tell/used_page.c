/* SPDX-License-Identifier: GPL-2.0-or-later */
/* used_page.c -- attribute page 2000_0007h of a surrogate: the list of objects that the job has used
 * (exec/used/used.h), as stored at its end.  Number n is its n-th piece, from 1. */
#include <stdlib.h>

#include "base/util.h"
#include "exec/tell/tell.h"

enum osd_status osd_used_get(void *context, struct osd_txn *txn, struct osd_object_id id,
			     uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
			     size_t *ret_length)
{
	enum osd_status status = OSD_E_NO_OBJECT;

	(void)context, (void)page;
	*ret_length = 0;
	if (number)
		status = osd_job_used_get(txn, id, number - 1, buffer, capacity, ret_length);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

enum osd_status osd_used_each(void *context, struct osd_txn *txn, struct osd_object_id id,
			      uint32_t page, osd_attr_fn *fn, void *arg)
{
	OSD_CLEANUP_FREE uint8_t *piece = malloc(OSD_JOB_USED_PIECE);
	enum osd_status status = piece ? OSD_OK : OSD_E_NO_MEMORY;
	size_t length = OSD_JOB_USED_PIECE;

	for (uint32_t number = 1; status == OSD_OK && length == OSD_JOB_USED_PIECE; number++) {
		status = osd_used_get(context, txn, id, page, number, piece, OSD_JOB_USED_PIECE,
				      &length);
		if (status == OSD_OK && length)
			status = fn(arg, page, number, piece, length);
	}
	return status;
}
