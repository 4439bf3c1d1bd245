/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attributes.h -- attributes of the object at hand of a transaction: those kept as they are, those of the
 * standard's pages, those of page providers, and the times they leave behind.
 * Not here: attributes as commands see them (object.h), indexed ones (value_index.h). */
#ifndef OSD_OBJECT_ATTRIBUTES_H
#define OSD_OBJECT_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/object.h"
#include "object/page_provider.h"
#include "object/record.h"

/* store_page.c: page B000_0002h; head_page.c: pages 2000_0004h and B000_0003h; charged_page.c: page
 * 5000_0002h; sums_page.c: page B000_0004h. */
extern const struct osd_page_provider osd_store_page, osd_head_page, osd_heads_root_page,
	osd_charged_page, osd_sums_root_page;

/* ---- attr.c, attr_std.c ----------------------------------------------------------------------- */

/* Attributes kept as they are, of the object at hand.  get: *ret_length 0 when there is none. */
enum osd_status osd_attr_stored_get(struct osd_txn *txn, uint32_t page, uint32_t number,
				    uint8_t *buffer, size_t capacity, size_t *ret_length);
enum osd_status osd_attr_stored_set(struct osd_txn *txn, uint32_t page, uint32_t number,
				    const uint8_t *value, size_t length);
/* Value of an attribute of the object at hand, without a trace of the access. */
enum osd_status osd_attr_peek(struct osd_txn *txn, uint32_t page, uint32_t number, uint8_t *buffer,
			      size_t capacity, size_t *ret_length);
/* Numbers stored on the page in ascending order (pages, when all_pages), each once. */
struct osd_numbers {
	uint32_t *list;
	size_t count, capacity;
};
enum osd_status osd_attr_stored_numbers(struct osd_txn *txn, uint32_t page,
					struct osd_numbers *numbers);
enum osd_status osd_attr_stored_pages(struct osd_txn *txn, struct osd_numbers *pages);
/* At the end, but once in a row.  False: out of memory. */
bool osd_numbers_add(struct osd_numbers *numbers, uint32_t number);
/* Whether the page is kept for the application, and is not the target's or the standard's. */
bool osd_attr_page_is_open(const struct osd_txn *txn, uint32_t page);
/* Who computes the page; NULL: nobody. */
const struct osd_page_provider *osd_attr_provider(const struct osd_objects *objects, uint32_t page);
/* The first page of the type's range. */
uint32_t osd_page_base(enum osd_object_type type);

/* Whether the object at hand may have that page. */
bool osd_attr_page_fits(const struct osd_txn *txn, uint32_t page);

/* Standard pages: relative number 0-6 of the object's own range, as far as the type has them. */
bool osd_std_has_page(enum osd_object_type type, uint32_t relative);
enum osd_status osd_std_get(struct osd_txn *txn, uint32_t relative, uint32_t number,
			    uint8_t *buffer, size_t capacity, size_t *ret_length);
enum osd_status osd_std_set(struct osd_txn *txn, uint32_t relative, uint32_t number,
			    const uint8_t *value, size_t length);
/* Numbers that may have a value, ascending. */
enum osd_status osd_std_numbers(struct osd_txn *txn, uint32_t relative,
				struct osd_numbers *numbers);
/* 40 bytes: vendor (8) and name (32). */
void osd_page_identification(const char *vendor, const char *name, uint8_t bytes[40]);
enum osd_status osd_attr_identification(struct osd_txn *txn, uint32_t page, uint8_t *buffer,
					size_t capacity, size_t *ret_length);
/* Every page the object has, ascending. */
enum osd_status osd_attr_pages(struct osd_txn *txn, struct osd_numbers *pages);

/* ---- attr_charge.c ---------------------------------------------------------------------------- */

struct osd_kv_txn;

/* Units charged for an attribute of that page; length 0: there is none. */
uint32_t osd_attr_units(uint32_t page, size_t length);
/* Before the attribute of that page and key of the object at hand gets a value of that length: charges
 * for it, or OSD_E_QUOTA, OSD_E_NO_SPACE.  *ret_there: it is known to have a value now. */
enum osd_status osd_attr_charge_set(struct osd_txn *txn, uint32_t page, const struct osd_key *key,
				    size_t length, bool *ret_there);
/* After it got one that it did not have; its units are known. */
enum osd_status osd_attr_charge_added(struct osd_txn *txn, uint32_t page, size_t length);
/* All attributes of the object at hand, locked, go with it. */
enum osd_status osd_attr_uncharge_all(struct osd_txn *txn);
/* Units of all attributes stored there.  kv NULL: as committed. */
enum osd_status osd_attr_count_units(struct osd_objects *objects, struct osd_kv_txn *kv,
				     const struct osd_place *place, uint64_t *ret_units);
/* At open: the attributes of an object whose record does not say how many units they are; and those of
 * the root and of all partitions. */
enum osd_status osd_attr_charge_object(struct osd_objects *objects, struct osd_object_id id,
				       uint16_t flags);
enum osd_status osd_attr_charge_containers(struct osd_objects *objects);

/* ---- attr_time.c ------------------------------------------------------------------------------ */

/* Of the object at hand, as it is, not as last settled. */
uint64_t osd_txn_time(struct osd_txn *txn, enum osd_time which);
/* Attributes of the object at hand were read; or changed; or what it contains was listed. */
void osd_note_attr_access(struct osd_txn *txn);
void osd_note_attr_change(struct osd_txn *txn);
/* The user object's data changes with the commit. */
void osd_note_data_change(struct osd_txn *txn);
void osd_note_list_access(struct osd_txn *txn);
/* Once committed, a collection has other members. */
enum osd_status osd_note_members_change(struct osd_txn *txn, const struct osd_place *collection);
/* Of the root: OSD_TIMESTAMPS_BYPASS where times stay as they are. */
uint8_t osd_root_bypass(struct osd_objects *objects);

#endif
