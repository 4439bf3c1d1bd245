/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_list.h -- the parameters in Data-Out of READ NAMES and CHANGE NAMES, and their parameter data in Data-In
 * (docs/names.md has the bytes). */
#ifndef OSD_WIRE_NAME_LIST_H
#define OSD_WIRE_NAME_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define OSD_NAME_PARAMS_HEADER 32u
#define OSD_NAME_PATH_MAX      4096u
#define OSD_NAME_PARAMS_MAX    (OSD_NAME_PARAMS_HEADER + 3 * OSD_NAME_PATH_MAX) /* without data */
#define OSD_NAME_DATA_MAX      (1u << 20) /* bytes of data that PUT stores, or that LOOKUP returns */
#define OSD_NAME_ENTRY	       24u	  /* of LOOKUP and CHANGE NAMES */
#define OSD_NAME_DATA_HEADER   24u	  /* between the entry of LOOKUP and the data */
#define OSD_NAME_LIST_HEADER   8u
#define OSD_NAME_LIST_ENTRY    56u /* before the name */

enum osd_name_verb {
	/* READ NAMES */
	OSD_NAME_LOOKUP = 1,
	OSD_NAME_LIST = 2,
	/* CHANGE NAMES */
	OSD_NAME_CREATE = 0x11,
	OSD_NAME_MKDIR = 0x12,
	OSD_NAME_LINK = 0x13,
	OSD_NAME_UNLINK = 0x14,
	OSD_NAME_RMDIR = 0x15,
	OSD_NAME_RENAME = 0x16,
	OSD_NAME_PUT = 0x17,
};

enum osd_name_flags {
	OSD_NAME_OPEN_EXISTING = 0x01, /* CREATE, MKDIR: what has the name already is the answer */
	OSD_NAME_REPLACE = 0x02,       /* LINK, RENAME, PUT: what has the new name loses it */
	OSD_NAME_EXCHANGE = 0x04,      /* RENAME: both change places */
	OSD_NAME_ATTRIBUTES = 0x08,    /* LIST: lengths, times and versions, too */
	OSD_NAME_CHECKSUM = 0x10,      /* PUT: only if the data have this CRC-32C */
	OSD_NAME_EACH = 0x20,	       /* LIST: the attributes to get are those of each entry */
};

struct osd_name {
	const uint8_t *bytes; /* borrowed */
	size_t length;
};

struct osd_name_params {
	enum osd_name_verb verb;
	uint8_t flags;
	/* LIST: entries; 0: as many as there is room for.  LOOKUP: bytes of data in the answer.  PUT: bytes of
	 * data behind the texts. */
	uint32_t most;
	uint64_t object_id;	    /* LINK: the object; 0: the one that the second path names */
	uint32_t checksum;	    /* PUT with OSD_NAME_CHECKSUM */
	size_t data_at;		    /* PUT: where the data begin in Data-Out */
	uint64_t expected;	    /* the object that the path must name; 0: any */
	struct osd_name path;
	struct osd_name other;	/* RENAME: the new path; LINK: the object's; LIST: begin after it */
	struct osd_name prefix; /* LIST */
};

/* length: of Data-Out; bytes has the first OSD_NAME_PARAMS_MAX of them, or all if they are fewer.
 * OSD_E_PARAM_LENGTH: the lengths do not add up to length, or a path is too long.  OSD_E_PARAM_FIELD: a
 * verb, or a flag or field that the verb does not have; *ret_field is its byte. */
enum osd_status osd_name_params_decode(const uint8_t *bytes, size_t length,
				       struct osd_name_params *ret_params, uint16_t *ret_field);

enum osd_name_outcome {
	OSD_NAME_MADE = 0x01,	 /* CREATE, MKDIR, PUT: the object is new */
	OSD_NAME_REMOVED = 0x02, /* the object that lost its last name was removed */
	OSD_NAME_DATA = 0x04,	 /* LOOKUP: data follow */
};

void osd_name_entry_encode(uint64_t partition_id, uint64_t object_id, uint8_t type,
			   uint8_t outcome, uint32_t names, uint8_t bytes[OSD_NAME_ENTRY]);

/* length and version: of all of the object's data.  count: bytes that follow. */
void osd_name_data_encode(uint64_t length, const uint8_t version[12], uint32_t count,
			  uint8_t bytes[OSD_NAME_DATA_HEADER]);

struct osd_name_list_entry {
	uint64_t object_id;
	uint8_t type;
	uint64_t length, created_ms, modified_ms;
	uint8_t version[12];
	const uint8_t *name;
	size_t name_length;
};

/* The bytes of an entry whose name has this length. */
static inline size_t osd_name_list_entry_bytes(size_t name_length)
{
	return OSD_NAME_LIST_ENTRY + (name_length + 7) / 8 * 8;
}
/* bytes has osd_name_list_entry_bytes(). */
void osd_name_list_entry_encode(const struct osd_name_list_entry *entry, uint8_t *bytes);
/* Writes length, times and version of an entry that is there already. */
void osd_name_list_facts_encode(const struct osd_name_list_entry *entry, uint8_t *bytes);
/* From an entry of the same object. */
void osd_name_list_facts_copy(const uint8_t *from, uint8_t *bytes);
/* The same of the number of names, and of the bytes of attributes that follow the entry. */
void osd_name_list_each_encode(uint32_t names, uint32_t attribute_bytes, uint8_t *bytes);
void osd_name_list_each_copy(const uint8_t *from, uint8_t *bytes);
uint32_t osd_name_list_attribute_bytes(const uint8_t *bytes);
/* more: there are entries behind the last one. */
void osd_name_list_header_encode(uint32_t count, int more, uint8_t bytes[OSD_NAME_LIST_HEADER]);

#endif
