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

/* get, each and set as osd_attr_get and its like (object.h), called inside the transaction; a set that
 * returns OSD_E_PARAM_FIELD says that the attribute is read-only. */
#define OSD_PAGE_FORM_MAX 64
struct osd_page_provider {
	uint32_t page;
	const char *page_name; /* for number 0 and the directory */
	enum osd_status (*get)(void *context, struct osd_txn *txn, struct osd_object_id id,
			       uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
			       size_t *ret_length);
	enum osd_status (*each)(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, osd_attr_fn *fn, void *arg);
	enum osd_status (*set)(void *context, struct osd_txn *txn, struct osd_object_id id,
			       uint32_t page, uint32_t number, const uint8_t *value, size_t length);
	void *context;
	/* What follows the header of the page's fixed form; 0 bytes: this object has none.  NULL: no
	 * object has. */
	enum osd_status (*form)(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint8_t bytes[OSD_PAGE_FORM_MAX], size_t *ret_length);
	/* Where it finds a value, there is a user object of that id: the object's own record need not
	 * be read to be sure of it. */
	bool vouches;
};
/* Before any other thread uses objects; the provider is borrowed for their lifetime. */
void osd_objects_add_page(struct osd_objects *objects, const struct osd_page_provider *provider);

#endif
