/* SPDX-License-Identifier: GPL-2.0-or-later */
/* page_provider.h -- attribute pages that are computed when they are read: those of a higher layer (job
 * status, EXEC root page), and pages of figures. */
#ifndef OSD_OBJECT_PAGE_PROVIDER_H
#define OSD_OBJECT_PAGE_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"
#include "wire/attr_list.h"

#define OSD_PAGE_FORM_MAX 64

/* An answer from memory. */
struct osd_peek {
	struct osd_attr_list list;	/* what is asked for, if there is a writer */
	struct osd_attr_writer *writer; /* receives it; NULL: form receives the fixed form of the page */
	uint8_t *form;			/* OSD_PAGE_FORM_MAX bytes, what follows the header */
	size_t form_length;
};

/* As osd_attr_get (object.h), inside the transaction. */
typedef enum osd_status osd_page_get_fn(void *context, struct osd_txn *txn, struct osd_object_id id,
					uint32_t page, uint32_t number, uint8_t *buffer,
					size_t capacity, size_t *ret_length);

/* The operations of a page.  get, each and set are as osd_attr_get and its like (object.h), called inside
 * the transaction. */
struct osd_page_provider {
	uint32_t page;
	const char *page_name; /* for number 0 and the directory */
	osd_page_get_fn *get;
	void *context;
	uint32_t last; /* the numbers that may have a value are 1 to this */
	/* For a page whose numbers lie far apart, or whose last is not known; else NULL. */
	enum osd_status (*each)(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, osd_attr_fn *fn, void *arg);
	/* OSD_E_PARAM_FIELD: the attribute is read-only.  NULL: all are. */
	enum osd_status (*set)(void *context, struct osd_txn *txn, struct osd_object_id id,
			       uint32_t page, uint32_t number, const uint8_t *value, size_t length);
	/* The fixed form of the page, after its header; 0 bytes: this object has none.  NULL: no object
	 * has one. */
	enum osd_status (*form)(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint8_t bytes[OSD_PAGE_FORM_MAX], size_t *ret_length);
	bool vouches;  /* where it finds a value, the user object exists: its record need not be read */
	bool controls; /* may be set on unfinished surrogates, and by the job's owner without SET_ATTR */
	/* Answers from memory, at once and from one moment.  False: read the store.  NULL: never. */
	bool (*peek)(void *context, struct osd_object_id id, struct osd_peek *peek);
	/* Whether peek has an attribute; its value has at most 8 bytes. */
	bool (*has_peek)(uint32_t number);
};
/* Values of a provider's page that the store keeps for it, with the object; they are charged as attributes are.  get:
 * *ret_length is 0 if there is none.  set: length 0 removes it. */
enum osd_status osd_page_kept_get(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				  uint32_t number, uint8_t *buffer, size_t capacity,
				  size_t *ret_length);
enum osd_status osd_page_kept_set(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				  uint32_t number, const uint8_t *value, size_t length);
/* Any attribute, without a change of the access time. */
enum osd_status osd_page_value(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			       uint32_t number, uint8_t *buffer, size_t capacity,
			       size_t *ret_length);
/* Call it before any other thread uses objects.  The provider is borrowed for their lifetime. */
void osd_objects_add_page(struct osd_objects *objects, const struct osd_page_provider *provider);
/* The provider of a page, NULL: none; and whether it has one that says `controls`. */
const struct osd_page_provider *osd_objects_page(const struct osd_objects *objects, uint32_t page);
bool osd_page_controls(const struct osd_objects *objects, uint32_t page);
/* The provider that can answer all of a get list by one peek; NULL: none can. */
const struct osd_page_provider *osd_objects_peeks(const struct osd_objects *objects,
						  struct osd_attr_list list);

#endif
