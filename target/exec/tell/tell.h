/* SPDX-License-Identifier: GPL-2.0-or-later */
/* tell.h -- the views of jobs for clients and administrators: attribute pages, polls answered from memory,
 * figures, and the jobs that ended last.  Nothing here changes a job, except the control page through job/.
 *
 * Inside: pages.c (status and control, polls), status.c (the bytes of the status page), payload.c, root_page.c, function_page.c, figures_json.c and recent.c (exec/exec.h, "figures").
 *
 * Locking: page providers run inside transactions and take exec->lock for moments. */
#ifndef OSD_EXEC_TELL_TELL_H
#define OSD_EXEC_TELL_TELL_H

#include <stddef.h>
#include <stdint.h>

#include "exec/exec.h"
#include "exec/job/job.h"
#include "exec/pool/pool.h"
#include "object/page_provider.h"
#include "wire/cursor.h"

#define OSD_JOB_PAGES		6
/* The last numbers of the pages whose functions are in other files than pages.c. */
#define OSD_PAYLOAD_PAGE_LAST	4
#define OSD_ROOT_PAGE_LAST	8
#define OSD_FUNCTIONS_PAGE_LAST 16
/* Adds pages 2000_0001h to 2000_0003h, B000_0001h and B000_0005h; the providers live as long as the objects. */
void osd_tell_add_pages(struct osd_exec *exec, struct osd_page_provider pages[OSD_JOB_PAGES]);

/* Under exec->lock. */
struct osd_recent {
	struct osd_recent_job ended[OSD_RECENT_ENDED];
	uint64_t count; /* of all that ended; the newest is at (count - 1) % OSD_RECENT_ENDED */
};

/* A job has ended; exec->lock held. */
void osd_recent_ended(struct osd_recent *recent, const struct osd_job_record *record);

#define OSD_JOB_STATUS_VERSION 1

/* Attributes of page 2000_0001h; the others up to 27h have a row in status.c. */
enum osd_job_status_attr {
	OSD_STATUS_EXPIRY = 0x23,
	OSD_STATUS_TAGS = 0x28,	   /* key=value lines */
	OSD_STATUS_AFTER = 0x29,   /* entries of EXEC parameter AFTER */
	OSD_STATUS_AWAITED = 0x2a, /* the first job it still waits for: partition, object */
	OSD_STATUS_ARRAY = 0x2b, /* be64 object, be32 index or first, be32 members, be32 at once */
	OSD_STATUS_MEMBERS = 0x2c,   /* of an array: {be32 state, be32 members in it} */
	OSD_STATUS_STATES = 0x2d,    /* of an array: a byte a member, its state */
	OSD_STATUS_STARVED = 0x2e,   /* be64 us: how long its run waited for a processor */
	OSD_STATUS_INDICES = 0x2f,   /* of an array with gaps: its indices (wire/index_ranges.h) */
	OSD_STATUS_BEGIN = 0x30,     /* be48 ms since 1970: it is held until then */
	OSD_STATUS_PRINCIPAL = 0x32, /* the principal that submitted it */
	OSD_STATUS_FUNCTION = 0x33,  /* the function that it calls: partition, object */
	OSD_STATUS_SIGNER = 0x34,    /* the function's signer */
	OSD_STATUS_OFFLOAD = 0x3a,   /* of a pure job: five be64, struct osd_job_offload */
	OSD_STATUS_LAST = OSD_STATUS_OFFLOAD,
};

/* ---- status.c: the bytes of page 2000_0001h; no lock, no store --------------------------------------- */

/* One attribute of the page, if it is made from a view alone; nothing written: undefined. */
void osd_job_status_put(struct osd_wr *w, const struct osd_job_view *v, uint32_t number);
/* The page's form, which polling asks for.  Returns: bytes of it. */
size_t osd_job_status_form(const struct osd_job_view *v, uint8_t bytes[OSD_PAGE_FORM_MAX]);
/* Whether an attribute is in that form. */
bool osd_job_status_polled(uint32_t number);
/* ---- functions of struct osd_page_provider ---------------------------------------------------------------- */

osd_page_get_fn osd_root_page_get, osd_function_page_get, osd_payload_get, osd_used_get;
enum osd_status osd_used_each(void *context, struct osd_txn *txn, struct osd_object_id id,
			      uint32_t page, osd_attr_fn *fn, void *arg);

/* root_page.c.  The limits of a pool's jobs: " NAME=DEFAULT/MAXIMUM"..., in the units of EXEC parameters.  Returns the
 * length, as snprintf. */
size_t osd_tell_limits(const struct osd_pool_config *config, char *text, size_t size);

#endif
