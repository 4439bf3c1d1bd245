/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attributes.h -- attributes of the object that a transaction has at hand: stored ones, those of
 * standard pages and those of page providers.  Also the timestamps that accesses change.  Not here:
 * attributes as commands see them (object.h), indexed ones (value_index.h). */
#ifndef OSD_OBJECT_ATTRIBUTES_H
#define OSD_OBJECT_ATTRIBUTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/object.h"
#include "object/page_provider.h"
#include "object/record.h"

/* store_page.c: page B000_0002h; head_page.c: pages 2000_0004h and B000_0003h; charged_page.c: page
 * 5000_0002h; sums_page.c: page B000_0004h; version_page.c: pages 2000_0005h and 8000_0001h. */
extern const struct osd_page_provider osd_store_page, osd_head_page, osd_heads_root_page,
	osd_charged_page, osd_sums_root_page, osd_version_page, osd_members_version_page;

/* ---- attr.c, attr_std.c ----------------------------------------------------------------------- */

/* Stored attributes of the object at hand. get: *ret_length is 0 when there is none. */
enum osd_status osd_attr_stored_get(struct osd_txn *txn, uint32_t page, uint32_t number,
				    uint8_t *buffer, size_t capacity, size_t *ret_length);
/* The principal of the transaction, for whom the object at hand gets a function, or (there false) does not have it any
 * more. */
enum osd_status osd_attr_definer_set(struct osd_txn *txn, uint32_t page, uint32_t number,
				     bool there);
enum osd_status osd_attr_stored_set(struct osd_txn *txn, uint32_t page, uint32_t number,
				    const uint8_t *value, size_t length);
/* Reads an attribute of the object at hand without a change of its access time. */
enum osd_status osd_attr_peek(struct osd_txn *txn, uint32_t page, uint32_t number, uint8_t *buffer,
			      size_t capacity, size_t *ret_length);
/* Numbers, in ascending order, each once: those stored on a page, or the pages that have stored
 * attributes. */
struct osd_numbers {
	uint32_t *list;
	size_t count, capacity;
};
enum osd_status osd_attr_stored_numbers(struct osd_txn *txn, uint32_t page,
					struct osd_numbers *numbers);
enum osd_status osd_attr_stored_pages(struct osd_txn *txn, struct osd_numbers *pages);
/* Appends a number unless it is the last one already.  False: out of memory. */
bool osd_numbers_add(struct osd_numbers *numbers, uint32_t number);
/* The class of a page of the object at hand that no provider computes. */
enum osd_page_class {
	OSD_PAGE_STANDARD, /* attr_std.c, attr_set.c; *ret_relative: its number in the type's own range */
	OSD_PAGE_OPEN,	   /* kept for the application */
	OSD_PAGE_CLOSED,   /* kept by the target; clients only read it */
	OSD_PAGE_BAD,	   /* no page of this object */
};
enum osd_page_class osd_attr_classify(const struct osd_txn *txn, uint32_t page,
				      uint32_t *ret_relative);
/* Whether a provider's page belongs to the type of the object at hand. */
bool osd_attr_provider_fits(const struct osd_txn *txn, uint32_t page);
/* Whether the page is kept for the application, and is not the target's or the standard's. */
bool osd_attr_page_is_open(const struct osd_txn *txn, uint32_t page);
/* Whether the object at hand may have that page. */
bool osd_attr_page_fits(const struct osd_txn *txn, uint32_t page);

/* Standard pages: relative numbers 0 to 6 of the object's own range, if its type has them. */
enum osd_status osd_std_get(struct osd_txn *txn, uint32_t relative, uint32_t number,
			    uint8_t *buffer, size_t capacity, size_t *ret_length);
enum osd_status osd_std_set(struct osd_txn *txn, uint32_t relative, uint32_t number,
			    const uint8_t *value, size_t length);
/* Numbers that may have a value, ascending. */
enum osd_status osd_std_numbers(struct osd_txn *txn, uint32_t relative,
				struct osd_numbers *numbers);
/* Copies as much of a value as fits.  *ret_length is the whole length. */
void osd_value_put(const void *value, size_t length, uint8_t *buffer, size_t capacity,
		   size_t *ret_length);
/* The same of a number, in big-endian order. */
void osd_number_put(uint64_t value, size_t width, uint8_t *buffer, size_t capacity,
		    size_t *ret_length);
#define OSD_PAGE_IDENTIFICATION 40u /* bytes: vendor (8) and name (32), filled with spaces and zeros */
void osd_identification_put(const char *vendor, const char *name, uint8_t *buffer, size_t capacity,
			    size_t *ret_length);
/* Number 0 of a stored page: as set, else a default if the page has attributes. */
enum osd_status osd_attr_identification(struct osd_txn *txn, uint32_t page, uint8_t *buffer,
					size_t capacity, size_t *ret_length);
/* Every page the object has, ascending. */
enum osd_status osd_attr_pages(struct osd_txn *txn, struct osd_numbers *pages);

/* ---- attr_charge.c ---------------------------------------------------------------------------- */

struct osd_kv_txn;
struct osd_partition;

/* Units charged for an attribute of that page and length; length 0: no attribute, no units. */
uint32_t osd_attr_units(uint32_t page, size_t length);
/* Charges for a value of that length, before the attribute of the object at hand gets it.  OSD_E_QUOTA,
 * OSD_E_NO_SPACE: refused.  *ret_there: the attribute is known to have a value now. */
enum osd_status osd_attr_charge_set(struct osd_txn *txn, uint32_t page, const struct osd_key *key,
				    size_t length, bool *ret_there);
/* Charges after the attribute was added.  The units of the object must be known. */
enum osd_status osd_attr_charge_added(struct osd_txn *txn, uint32_t page, size_t length);
/* Gives back the charge for all attributes of the object at hand, which is locked and being removed. */
enum osd_status osd_attr_uncharge_all(struct osd_txn *txn);
/* Units of all attributes stored there.  kv NULL: as committed. */
enum osd_status osd_attr_count_units(struct osd_objects *objects, struct osd_kv_txn *kv,
				     const struct osd_place *place, uint64_t *ret_units);
/* Called when the store is opened: the first charges an object whose record has no count of units, the
 * second a partition, or the root (NULL). */
enum osd_status osd_attr_charge_object(struct osd_objects *objects, struct osd_object_id id,
				       uint16_t flags);
enum osd_status osd_attr_charge_container(struct osd_objects *objects,
					  struct osd_partition *partition);

/* ---- attr_time.c ------------------------------------------------------------------------------ */

/* The current time of the object at hand: its record may lag. */
uint64_t osd_txn_time(struct osd_txn *txn, enum osd_time which);
/* Note that attributes of the object at hand were read, or changed. */
void osd_note_attr_access(struct osd_txn *txn);
void osd_note_attr_change(struct osd_txn *txn);
/* The user object's data changes with the commit. */
void osd_note_data_change(struct osd_txn *txn);
void osd_note_list_access(struct osd_txn *txn);
/* Once committed, a collection has other members. */
enum osd_status osd_note_members_change(struct osd_txn *txn, const struct osd_place *collection);
/* The root's timestamp bypass; OSD_TIMESTAMPS_BYPASS: times do not change. */
uint8_t osd_root_bypass(struct osd_objects *objects);

#endif
