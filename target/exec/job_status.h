/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_status.h -- the bytes of a job's status page 2000_0001h, made from a view of the job: nothing here
 * takes a lock or asks the store.
 * Not here: how a view comes about, and the page as a provider (job_pages.c). */
#ifndef OSD_EXEC_JOB_STATUS_H
#define OSD_EXEC_JOB_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "exec/array.h"
#include "exec/job_record.h"
#include "exec/pool.h"
#include "object/page_provider.h"
#include "wire/cursor.h"

#define OSD_JOB_STATUS_ROWS 0x27 /* numbers 1 to this are made from a view alone */

/* What a status attribute is made from. */
struct osd_job_view {
	const struct osd_job_record *record; /* own, or borrowed */
	size_t ahead;
	size_t waits_for; /* so many other jobs, and this is the first */
	struct osd_object_id awaited;
	size_t counts[OSD_JOB_STATES_END]; /* of an unfinished array's members, by state */
	char why[OSD_POOL_WHY_MAX];	   /* its pool does not serve; "" */
	struct osd_job_record own;	   /* as it is now; unset while another's is borrowed */
	size_t members;			   /* of an unfinished array, and the state of each */
	uint8_t states[];
};

/* One attribute of the page; nothing written: undefined. */
void osd_job_status_put(struct osd_wr *w, const struct osd_job_view *v, uint32_t number);
/* The page's form, which polling asks for.  Returns: bytes of it. */
size_t osd_job_status_form(const struct osd_job_view *v, uint8_t bytes[OSD_PAGE_FORM_MAX]);
/* Partition and object, 8 bytes each; nothing of no object. */
void osd_job_put_id(struct osd_wr *w, struct osd_object_id id);

#endif
