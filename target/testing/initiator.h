/* SPDX-License-Identifier: GPL-2.0-or-later */
/* initiator.h -- the initiator's side of the wire, for tests and fuzzers: encodes what an initiator sends,
 * and reads what a target returned.  The target itself needs none of it.
 *
 * Readers borrow the bytes and never read beyond them; a part that is cut is left out. */
#ifndef OSD_TESTING_INITIATOR_H
#define OSD_TESTING_INITIATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/attr_list.h"
#include "wire/exec_param.h"
#include "wire/list_data.h"
#include "wire/map_data.h"
#include "wire/sense.h"

/* ---- attributes ---------------------------------------------------------------------------- */

/* Appends {page, number} to a list of attributes to get (OSD_LIST_GET). */
void osd_attr_writer_ask(struct osd_attr_writer *writer, uint32_t page, uint32_t number);
/* Opens a list that a target returned into length bytes: type 9 only.  It ends at its length field
 * or at the allocation; a cut entry is left out. */
enum osd_status osd_attr_retrieved_open(const uint8_t *bytes, size_t length,
					struct osd_attr_list *ret_list);

struct osd_attr_group {
	uint64_t object_id;
	uint8_t object_type;
	struct osd_attr_list attributes;
};

struct osd_attr_groups {
	const uint8_t *at, *end;
};

/* A multi-object list (type Eh) as returned into length bytes; groups cut short are left out. */
enum osd_status osd_attr_groups_open(const uint8_t *bytes, size_t length,
				     struct osd_attr_groups *ret_groups);
bool osd_attr_groups_next(struct osd_attr_groups *groups, struct osd_attr_group *ret_group);

/* ---- lists of ids, and maps ---------------------------------------------------------------- */

struct osd_list_data {
	uint64_t additional_length;
	uint64_t continuation_id; /* 0: complete */
	uint32_t list_identifier;
	uint8_t format; /* enum osd_descriptor_format; targets are known to fill it in wrongly */
	bool list_changed;
	const uint8_t *at, *end; /* descriptors */
};

enum osd_status osd_list_data_open(const uint8_t *bytes, size_t length,
				   struct osd_list_data *ret_list);
/* Next id of a list asked for without attributes. */
bool osd_list_data_next_id(struct osd_list_data *list, uint64_t *ret_id);
/* Next id block of a list asked for with attributes. */
bool osd_list_data_next_block(struct osd_list_data *list, struct osd_attr_group *ret_block);

struct osd_map_descriptor {
	uint16_t type; /* enum osd_map_type */
	uint32_t length;
	uint64_t offset;
};

struct osd_map_data {
	uint64_t additional_length;
	const uint8_t *at, *end; /* descriptors */
};

enum osd_status osd_map_data_open(const uint8_t *bytes, size_t length,
				  struct osd_map_data *ret_map);
bool osd_map_data_next(struct osd_map_data *map, struct osd_map_descriptor *ret_descriptor);

/* ---- sense data, and EXEC PARAMETERS ------------------------------------------------------- */

/* Reads what another target sent: unknown descriptors are skipped, of repeated ones the last
 * counts, a descriptor cut off at the end is ignored.  false: not current descriptor-format
 * sense data. */
bool osd_sense_decode(const uint8_t *bytes, size_t length, struct osd_sense *ret_sense);
/* Encodes the fields in present, each entry marked critical; returns the length, 0: capacity is too
 * small. */
size_t osd_exec_params_encode(const struct osd_exec_params *params, void *buffer, size_t capacity);

#endif
