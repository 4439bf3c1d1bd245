/* SPDX-License-Identifier: GPL-2.0-or-later */
/* hook.h -- a function that is asked before a user object changes, or follows its changes: how an attribute names it,
 * and how it gets what happens (docs/hooks.md). */
#ifndef OSD_WIRE_HOOK_H
#define OSD_WIRE_HOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OSD_HOOK_PARAMETERS_MAX 1024u

/* ---- a value of the page OSD_PAGE_HOOKS ------------------------------------------------------- */

/* Texts point into the value, and do not end with a zero byte. */
struct osd_hook_value {
	unsigned events; /* enum osd_hook_event (object/hooks.h): several checks, or AFTER alone */
	uint32_t page;	 /* AFTER: of the attributes that the function derives */
	uint64_t partition_id, object_id; /* of the function */
	const uint8_t *method;		  /* length 0: the function's first */
	size_t method_length;
	const uint8_t *parameters; /* for the function, UTF-8 */
	size_t parameters_length;
};

/* Bytes: 0 point (1 check, 2 after), 1 events of a check, else 0; 2 zero; 3 length of the method; 4-5 length of the
 * parameters; 6-7 zero; 8-15 partition; 16-23 object; 24-27 page, of a check 0; then method and parameters.  False: it
 * is not such a value. */
bool osd_hook_value_decode(const uint8_t *bytes, size_t length, struct osd_hook_value *ret_value);

/* ---- the arguments of the call ---------------------------------------------------------------- */

struct osd_hook_frame {
	unsigned events;	 /* of the call */
	uint16_t service_action; /* of the command; of AFTER 0 */
	uint64_t partition_id, object_id; /* object_id 0: the target chooses it */
	uint64_t offset, length;	  /* of the change: the bytes from its first to its last */
	uint64_t old_length;		  /* of the object now */
	uint64_t created_msec, now_msec;
	uint32_t page; /* AFTER: of the attributes that the function may return */
	const char *parameters;
	size_t parameters_length; /* at most OSD_HOOK_PARAMETERS_MAX */
	const uint8_t *attributes; /* entries to be set: be32 page, be32 number, be16 length, value */
	size_t attributes_length;
	const uint8_t *data; /* NULL: they are not passed */
	size_t data_length;
};

#define OSD_HOOK_FRAME_BYTES 80u

/* Bytes: 0-1 version (1); 2 events; 3: 1 the data follow; 4-5 service action; 6-7 length of the parameters; 8-15
 * partition; 16-23 object; 24-31 offset; 32-39 length; 40-47 old length; 48-55 created; 56-63 now; 64-67 length of the
 * attributes; 68-71 length of the data; 72-75 page; 76-79 zero; then parameters, attributes, data.  bytes has room for
 * osd_hook_frame_length() bytes. */
size_t osd_hook_frame_length(const struct osd_hook_frame *frame);
void osd_hook_frame_encode(const struct osd_hook_frame *frame, uint8_t *bytes);

#endif
