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

osd_page_get_fn osd_figures_page_get;
/* The provider of such a page. figures: a struct osd_figures_page, not const; count: its count. */
#define OSD_FIGURES_PAGE(number, name, figures, count)                                             \
	{                                                                                          \
		.page = (number), .page_name = (name), .get = osd_figures_page_get,                \
		.last = (count), .context = (figures),                                             \
	}

#endif
