/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_list.h -- attribute lists in the data buffers (osd2-wire 5.3-5.6): readers of lists of
 * attributes to get (type 1), to set and retrieved (type 9); writers of retrieved lists (type 9,
 * multi-object type Eh) and of pages in page format.
 *
 * Readers check the whole list when it is opened, so a walk over it cannot fail: a command with a bad
 * list does nothing.  They borrow the bytes.  If another thread may write the buffer, copy the list
 * first.  Writers never fail because of lacking room: they cut at the allocation length, and the length
 * field has the length of the whole list. */
#ifndef OSD_WIRE_ATTR_LIST_H
#define OSD_WIRE_ATTR_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/osd2.h"

#define OSD_LIST_HEADER	     8u
#define OSD_LIST_BARE	     0x0 /* entries without a list header: proxy frames, id blocks */
#define OSD_ATTR_GET_ENTRY   8u
#define OSD_ATTR_VALUE_ENTRY 16u    /* before the value */
#define OSD_ATTR_GROUP	     16u    /* header of one object's group */
#define OSD_ATTR_GROUP_MAX   65528u /* bytes of entries in one group: 16-bit length */

struct osd_attr {
	uint32_t page, number;
	const uint8_t *value; /* borrowed; lists to set and retrieved lists */
	uint16_t length;
};

/* ---- reading ------------------------------------------------------------------------------ */

struct osd_attr_list {
	const uint8_t *at, *end;
	uint8_t type; /* of the entries: OSD_LIST_GET or OSD_LIST_SET */
};

/* Opens a list.  Its length is that in the CDB; its own length field is ignored, because initiators
 * leave it 0. type: OSD_LIST_GET or OSD_LIST_SET. OSD_E_PARAM_LENGTH: it is too short, its length is no
 * multiple of 8, an entry runs past the end, or it has more entries than one command may have
 * (exec_limits.h).  OSD_E_PARAM_FIELD: another list type, or a value longer than OSD_ATTRIBUTE_MAX; in
 * the latter case the list has just that entry. */
enum osd_status osd_attr_list_open(const uint8_t *bytes, size_t length, uint8_t type,
				   struct osd_attr_list *ret_list);
/* The same for entries without a list header. */
enum osd_status osd_attr_entries_open(const uint8_t *bytes, size_t length, uint8_t type,
				      struct osd_attr_list *ret_list);
/* Next entry; false at the end.  For OSD_LIST_GET value is NULL. */
bool osd_attr_list_next(struct osd_attr_list *list, struct osd_attr *ret_attr);

/* ---- writing ------------------------------------------------------------------------------ */

struct osd_attr_writer {
	uint8_t *start;
	size_t capacity; /* the allocation length */
	size_t placed;	 /* bytes written so far */
	uint64_t needed; /* bytes of the whole list, if the allocation had no limit */
	uint8_t type;	 /* OSD_LIST_SET, OSD_LIST_MULTI_OBJECT, OSD_LIST_GET or OSD_LIST_BARE */
	bool full;	 /* something was cut: nothing more is placed */
	bool in_group;
	bool pairs; /* OSC's form of many objects: the object's id before each entry, no groups */
	uint64_t group_id;
	bool group_placed; /* the open group's header is in the buffer, at group_at */
	size_t group_at;
	uint64_t group_bytes; /* of entries, cut or not */
};

void osd_attr_writer_init(struct osd_attr_writer *writer, void *buffer, size_t capacity,
			  uint8_t type);
/* Appends one entry, padded to 8.  length 0: an undefined attribute.  OSD_E_PARAM_FIELD: value
 * longer than OSD_ATTRIBUTE_MAX; OSD_E_GROUP_LENGTH: the open group's 16-bit length cannot hold it.
 * Nothing is appended then. */
enum osd_status osd_attr_writer_add(struct osd_attr_writer *writer, uint32_t page, uint32_t number,
				    const void *value, size_t length);
/* Chooses OSC's form (osd2-wire 5.5), before anything is added. type: the list type in the header. */
void osd_attr_writer_pairs(struct osd_attr_writer *writer, uint8_t type);
/* OSD_LIST_MULTI_OBJECT: entries between these belong to one object. */
void osd_attr_writer_begin_group(struct osd_attr_writer *writer, uint64_t object_id,
				 uint8_t object_type);
void osd_attr_writer_end_group(struct osd_attr_writer *writer);
/* Fills in the header; returns the bytes placed. */
size_t osd_attr_writer_finish(struct osd_attr_writer *writer);

/* Page format: cuts a full page (PAGE NUMBER, PAGE LENGTH, fields) to the allocation; returns bytes
 * placed.  The page's own length field stays that of the full page. */
size_t osd_page_place(const uint8_t *page, size_t page_length, void *buffer, size_t capacity);
/* First 8 bytes of a page: number and length of what follows. */
void osd_page_header(uint8_t bytes[8], uint32_t page, uint32_t length_after);

#endif
