/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures_page.c -- see figures_page.h. */
#include "object/figures_page.h"

#include "object/attributes.h"

enum osd_status osd_figures_page_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				     uint32_t page, uint32_t number, uint8_t *buffer,
				     size_t capacity, size_t *ret_length)
{
	const struct osd_figures_page *figures = context;

	(void)id, (void)page;
	*ret_length = 0;
	if (number >= 1 && number <= figures->count)
		osd_number_put(figures->figure(txn, number), 8, buffer, capacity, ret_length);
	return OSD_OK;
}
