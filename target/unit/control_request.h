/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_request.h -- a parsed request of the control socket, for the functions that answer one.
 * Each function sends exactly one answer, the result or an ERROR.  After that the peer may be
 * gone. */
#ifndef OSD_UNIT_CONTROL_REQUEST_H
#define OSD_UNIT_CONTROL_REQUEST_H

#include "unit/control_impl.h"

#define OSD_CONTROL_KEYS_MAX 32	 /* of one request */
#define OSD_CONTROL_NOTE_MAX 256 /* of by= and why= */

struct osd_control_request {
	struct osd_control *control;
	struct osd_control_peer *peer;
	const struct osd_control_row *row;
	uint32_t serial;
	struct osd_control_pair pairs[OSD_CONTROL_KEYS_MAX];
	size_t count;
};

struct osd_control_row {
	enum osd_control_type type;
	const char *name;
	const char *keys; /* blank separated; NULL: any */
	bool changes;	  /* then there are by= and why= as well */
	void (*answer)(struct osd_control_request *request);
};

bool osd_control_is_key(const struct osd_control_pair *pair, const char *key);
/* NULL: it is not there. */
const struct osd_control_pair *osd_control_find(const struct osd_control_request *request,
						const char *key);
/* The value as a string; false: it is too long or missing, and the error was sent. */
bool osd_control_text_of(struct osd_control_request *request, const char *key, char *text,
			 size_t size);
/* False: it is missing or not a number in this range, and the error was sent. */
bool osd_control_number_of(struct osd_control_request *request, const char *key, uint64_t least,
			   uint64_t most, uint64_t *ret_number);
/* Answers ERROR.  Returns false. */
bool osd_control_fail(struct osd_control_request *request, const char *code, const char *format,
		      ...) __attribute__((format(printf, 3, 4)));

/* control_changes.c */
void osd_control_do_workers(struct osd_control_request *request);
void osd_control_do_pool(struct osd_control_request *request);
void osd_control_do_recycle(struct osd_control_request *request);
void osd_control_do_principal(struct osd_control_request *request);
void osd_control_do_shed(struct osd_control_request *request);
void osd_control_do_reload(struct osd_control_request *request);

/* control_freeze.c */
void osd_control_do_freeze(struct osd_control_request *request);
void osd_control_do_thaw(struct osd_control_request *request);

/* control_usage.c */
void osd_control_do_usage(struct osd_control_request *request);

/* control_jobs.c */
void osd_control_do_jobs(struct osd_control_request *request);

#endif
