/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures_page.c -- see figures_page.h. */
#include "object/figures_page.h"

#include "object/attributes.h"
#include "wire/cursor.h"

enum osd_status osd_figures_page_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				     uint32_t page, uint32_t number, uint8_t *buffer,
				     size_t capacity, size_t *ret_length)
{
	const struct osd_figures_page *figures = context;
	uint8_t value[8];

	(void)id, (void)page;
	*ret_length = 0;
	if (number < 1 || number > figures->count)
		return OSD_OK;
	osd_put_be(value, figures->figure(txn, number), sizeof(value));
	osd_value_put(value, sizeof(value), buffer, capacity, ret_length);
	return OSD_OK;
}
