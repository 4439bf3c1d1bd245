/* SPDX-License-Identifier: GPL-2.0-or-later */
/* charged_page.c -- page 5000_0002h of a partition: the bytes its quota of capacity is compared with.
 * Nothing here is stored. */
#include <string.h>

#include "base/util.h"
#include "object/internal.h"
#include "wire/cursor.h"

/* In the order of their numbers, from 1. */
enum { CHARGED = 1, ATTRIBUTES, JOBS, FIGURES_END };

static uint64_t figure(const struct osd_partition *partition, uint32_t number)
{
	switch (number) {
	case ATTRIBUTES:
		return atomic_load(&partition->attribute_bytes);
	case JOBS:
		return atomic_load(&partition->record_bytes);
	default:
		return atomic_load(&partition->charged_bytes);
	}
}

static enum osd_status page_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				size_t *ret_length)
{
	uint8_t value[8];

	(void)context, (void)id, (void)page;
	*ret_length = 0;
	if (number < CHARGED || number >= FIGURES_END)
		return OSD_OK;
	osd_put_be(value, figure(txn->partition, number), sizeof(value));
	*ret_length = sizeof(value);
	memcpy(buffer, value, OSD_MIN(capacity, sizeof(value)));
	return OSD_OK;
}

static enum osd_status page_each(void *context, struct osd_txn *txn, struct osd_object_id id,
				 uint32_t page, osd_attr_fn *fn, void *arg)
{
	enum osd_status status = OSD_OK;

	for (uint32_t number = CHARGED; number < FIGURES_END && status == OSD_OK; number++) {
		uint8_t value[8];
		size_t length;

		status = page_get(context, txn, id, page, number, value, sizeof(value), &length);
		if (status == OSD_OK)
			status = fn(arg, page, number, value, length);
	}
	return status;
}

static enum osd_status page_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, const uint8_t *value, size_t length)
{
	(void)context, (void)txn, (void)id, (void)page, (void)number, (void)value, (void)length;
	return OSD_E_PARAM_FIELD;
}

const struct osd_page_provider osd_charged_page = {
	.page = OSD_PAGE_CHARGED,
	.page_name = "iosd charged bytes",
	.get = page_get,
	.each = page_each,
	.set = page_set,
};
