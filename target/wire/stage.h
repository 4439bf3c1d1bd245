/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stage.h -- a function that data pass through: how an attribute names it, and how it gets the data
 * (docs/views.md). */
#ifndef OSD_WIRE_STAGE_H
#define OSD_WIRE_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OSD_STAGE_PARAMETERS_MAX 1024u
#define OSD_STAGE_DATA_MAX	 (16u << 20) /* bytes that one call gets or returns */

/* ---- a value of the page OSD_PAGE_STACK ------------------------------------------------------- */

/* Texts point into the value, and do not end with a zero byte. */
struct osd_stage_value {
	bool none;	/* no function: those of the levels above do not concern the objects either */
	bool inherited; /* of a partition or the root: concerns the user objects in it */
	uint64_t partition_id, object_id; /* of the function */
	const uint8_t *method;		  /* entry point for READ; length 0: the function's first */
	size_t method_length;
	const uint8_t *parameters; /* for the function, UTF-8 */
	size_t parameters_length;
};

/* Bytes: 0 kind (0 none, 1 function), 1 inherited (0, 1), 2 point (0: READ and WRITE), 3 length of the method, 4-5
 * length of the parameters, 6-7 zero, 8-15 partition, 16-23 object; then method and parameters.  False: it is not such
 * a value. */
bool osd_stage_value_decode(const uint8_t *bytes, size_t length, struct osd_stage_value *ret_value);

#define OSD_SOURCES_MAX 4u /* in a row: a source may have a source */

/* The value OSD_STACK_SOURCE: bytes 0-7 partition, 8-15 object, 16-21 when the object was created, in ms; 0: there was
 * none; 22 flags: 1 writable.  A client sets partition, object and, if it likes, the flags; the target adds the time. */
struct osd_source_value {
	uint64_t partition_id, object_id;
	uint64_t created_msec;
	bool writable; /* WRITEs pass into it */
};
#define OSD_SOURCE_IDS	 16u
#define OSD_SOURCE_GIVEN 17u /* with the flags */
#define OSD_SOURCE_BYTES 23u
void osd_source_value_encode(const struct osd_source_value *value, uint8_t bytes[OSD_SOURCE_BYTES]);
/* Of any of these lengths; without the time it is 0. */
bool osd_source_value_decode(const uint8_t *bytes, size_t length,
			     struct osd_source_value *ret_value);

/* ---- the arguments of the call ---------------------------------------------------------------- */

struct osd_stage_frame {
	uint64_t offset; /* of the first byte of the data in the object */
	uint64_t whole;	 /* bytes that this function's input has in all; 0: that is not known yet */
	uint32_t header_length; /* bytes in front of the data, which are the first line of the input */
	const char *parameters;
	size_t parameters_length; /* at most OSD_STAGE_PARAMETERS_MAX */
};

#define OSD_STAGE_FRAME_BYTES 24u
#define OSD_STAGE_FRAME_MAX   (OSD_STAGE_FRAME_BYTES + OSD_STAGE_PARAMETERS_MAX)

/* Bytes: 0-1 version (1), 2-3 length of the parameters, 4-7 length of the header, 8-15 offset, 16-23 whole; then the
 * parameters.  Header and data follow.  Returns the length. */
size_t osd_stage_frame_encode(const struct osd_stage_frame *frame,
			      uint8_t bytes[OSD_STAGE_FRAME_MAX]);

#endif
