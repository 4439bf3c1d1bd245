/* SPDX-License-Identifier: GPL-2.0-or-later */
/* command_figures.h -- counts how commands ended, and how long they took (docs/control.md,
 * "commands").  Any thread may record and read, without a lock.  A command pays three relaxed
 * additions; the unit supplies the time. */
#ifndef OSD_UNIT_COMMAND_FIGURES_H
#define OSD_UNIT_COMMAND_FIGURES_H

#include "command/request.h"

struct osd_figures;
struct osd_json;

/* NULL: no memory.  The caller frees it. */
struct osd_figures *osd_figures_create(void);
/* Records that the request ended at this time (by the clock of its submitted_ns), before its
 * submitter is notified. */
void osd_figures_note(struct osd_figures *figures, const struct osd_request *request,
		      uint64_t now_ns);
/* Whether a request has ended since, to a tenth of a second. */
bool osd_figures_noted_since(const struct osd_figures *figures, uint64_t ns);
/* A front end refused a command before it became a request. */
#define OSD_REJECTIONS(X)                                                                          \
	X(COMMAND, "command") /* no CDB of ours */                                                 \
	X(BUFFERS, "buffers") /* its data buffers are not those of a command */                    \
	X(MEMORY, "memory")

enum osd_rejection {
#define X(symbol, name) OSD_REJECTED_##symbol,
	OSD_REJECTIONS(X)
#undef X
		OSD_REJECTION_COUNT
};
void osd_figures_reject(struct osd_figures *figures, enum osd_rejection why);
/* "commands", "command_seconds" and "rejected" of an object that is open. */
void osd_figures_write(const struct osd_figures *figures, struct osd_json *json);

#endif
