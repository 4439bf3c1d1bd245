/* SPDX-License-Identifier: GPL-2.0-or-later */
/* figures_page.c -- see figures_page.h. */
#include "object/figures_page.h"

#include <string.h>

#include "base/util.h"
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
	*ret_length = sizeof(value);
	memcpy(buffer, value, OSD_MIN(capacity, sizeof(value)));
	return OSD_OK;
}

enum osd_status osd_figures_page_each(void *context, struct osd_txn *txn, struct osd_object_id id,
				      uint32_t page, osd_attr_fn *fn, void *arg)
{
	const struct osd_figures_page *figures = context;
	enum osd_status status = OSD_OK;

	for (uint32_t number = 1; number <= figures->count && status == OSD_OK; number++) {
		uint8_t value[8];
		size_t length;

		status = osd_figures_page_get(context, txn, id, page, number, value, sizeof(value),
					      &length);
		if (status == OSD_OK)
			status = fn(arg, page, number, value, length);
	}
	return status;
}

enum osd_status osd_figures_page_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				     uint32_t page, uint32_t number, const uint8_t *value,
				     size_t length)
{
	(void)context, (void)txn, (void)id, (void)page, (void)number, (void)value, (void)length;
	return OSD_E_PARAM_FIELD;
}
