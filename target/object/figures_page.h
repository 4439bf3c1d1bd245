/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures_page.h -- a page of figures: attributes 1 to count, each a number of 8 bytes, read-only.  Nothing
 * of it is stored. */
#ifndef OSD_OBJECT_FIGURES_PAGE_H
#define OSD_OBJECT_FIGURES_PAGE_H

#include <stdint.h>

#include "object/page_provider.h"

struct osd_figures_page {
	uint32_t count;
	uint64_t (*figure)(struct osd_txn *txn, uint32_t number);
};

enum osd_status osd_figures_page_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				     uint32_t page, uint32_t number, uint8_t *buffer,
				     size_t capacity, size_t *ret_length);
enum osd_status osd_figures_page_each(void *context, struct osd_txn *txn, struct osd_object_id id,
				      uint32_t page, osd_attr_fn *fn, void *arg);
enum osd_status osd_figures_page_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				     uint32_t page, uint32_t number, const uint8_t *value,
				     size_t length);

/* The provider of such a page. figures: a struct osd_figures_page, not const. */
#define OSD_FIGURES_PAGE(number, name, figures)                                                    \
	{                                                                                          \
		.page = (number), .page_name = (name), .get = osd_figures_page_get,                \
		.each = osd_figures_page_each, .set = osd_figures_page_set, .context = (figures),  \
	}

#endif
