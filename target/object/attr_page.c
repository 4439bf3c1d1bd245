/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_page.c -- the fixed form of attribute pages (osd2-wire 5.6).  The table of pages names the fields
 * of each (attr_table.c).  The form of the Collections page is the list of collections. */
#include "object/attr_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

#define PAGE_HEADER 8u

static enum osd_status has_value(struct osd_txn *txn, uint32_t number, bool *ret_has)
{
	uint8_t value[8];
	size_t length;
	enum osd_status status =
		osd_std_get(txn, OSD_REL_SECURITY, number, value, sizeof(value), &length);

	if (status == OSD_OK)
		*ret_has = length > 0;
	return status;
}

/* Root: b1 master, b0 root.  Partition: b0 partition key, then working keys 7..0 and F..8. */
static enum osd_status keys_valid(struct osd_txn *txn, size_t width, struct osd_wr *w)
{
	uint8_t bits[3] = {0};
	enum osd_status status = OSD_OK;
	bool has = false;

	for (uint32_t i = 0; status == OSD_OK && i < (width == 1 ? 2 : 17); i++) {
		status = has_value(txn, width == 1 ? 0x7ffe - i : 0x7fff + i, &has);
		if (!has)
			continue;
		if (width == 1 || i == 0)
			bits[0] |= (uint8_t)(1u << i);
		else
			bits[1 + (i - 1) / 8] |= (uint8_t)(1u << (i - 1) % 8);
	}
	osd_wr_bytes(w, bits, width);
	return status;
}

static enum osd_status put_field(struct osd_txn *txn, uint32_t relative, uint32_t number,
				 size_t width, struct osd_wr *w)
{
	uint8_t value[8] = {0};
	size_t length = 0;
	enum osd_status status = OSD_OK;

	if (number == OSD_FORM_KEYS_VALID)
		return keys_valid(txn, width, w);
	if (number != OSD_FORM_RESERVED)
		status = osd_std_get(txn, relative, number, value, sizeof(value), &length);
	if (length < width)
		memset(value + length, 0, width - length);
	osd_wr_bytes(w, value, width);
	return status;
}

static enum osd_status put_form(struct osd_txn *txn, const struct osd_std_page *page,
				struct osd_wr *w)
{
	enum osd_status status = OSD_OK;

	for (const struct osd_form_field *field = page->form; field->width; field++)
		for (uint32_t i = 0; i < OSD_MAX(field->repeat, 1) && status == OSD_OK; i++)
			status = put_field(txn, page->relative, field->number + i, field->width,
					   w);
	return status;
}

/* Header and fields of a page of that many bytes, as much of it as fits. */
static enum osd_status place_form(struct osd_txn *txn, uint32_t number,
				  const struct osd_std_page *page,
				  const struct osd_membership *memberships, size_t count,
				  uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	size_t length = PAGE_HEADER + osd_form_bytes(page ? page->form : NULL) + 8 * count;
	OSD_CLEANUP_FREE uint8_t *bytes = malloc(length);
	struct osd_wr w = osd_wr_init(bytes, length);
	enum osd_status status = OSD_OK;

	if (!bytes)
		return OSD_E_NO_MEMORY;
	osd_wr_be(&w, number, 4);
	osd_wr_be(&w, length - PAGE_HEADER, 4);
	if (page && page->form)
		status = put_form(txn, page, &w);
	for (size_t i = 0; i < count; i++)
		osd_wr_be(&w, memberships[i].collection, 8);
	if (status == OSD_OK)
		osd_value_put(bytes, length, buffer, capacity, ret_length);
	return status;
}

static enum osd_status place_provided(struct osd_txn *txn, const struct osd_page_provider *provider,
				      uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	uint8_t bytes[PAGE_HEADER + OSD_PAGE_FORM_MAX];
	struct osd_wr w = osd_wr_init(bytes, PAGE_HEADER);
	size_t length = 0;
	enum osd_status status = provider->form(provider->context, txn, txn->id,
						bytes + PAGE_HEADER, &length);

	if (status != OSD_OK)
		return status;
	osd_wr_be(&w, provider->page, 4);
	osd_wr_be(&w, length, 4);
	osd_value_put(bytes, PAGE_HEADER + length, buffer, capacity, ret_length);
	return OSD_OK;
}

enum osd_status osd_attr_page_form(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				   uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	const struct osd_page_provider *provider = osd_objects_page(txn->objects, page);
	const struct osd_membership *memberships = NULL;
	const struct osd_std_row *row;
	enum osd_status status = osd_txn_take(txn, id, false);
	uint32_t relative = UINT32_MAX;
	size_t count = 0, joined = 0;

	if (status == OSD_OK && !osd_attr_page_fits(txn, page))
		status = OSD_E_PARAM_FIELD;
	if (status != OSD_OK)
		return status;
	osd_note_attr_access(txn);
	if (provider && provider->form)
		return place_provided(txn, provider, buffer, capacity, ret_length);
	if (page < OSD_PAGE_ANY_BASE)
		relative = page - osd_page_base(osd_txn_type(txn));
	row = osd_std_find(osd_txn_type(txn), relative, 1);
	if (row && row->source == OSD_V_MEMBERSHIP)
		status = osd_memberships(txn, &memberships, &count);
	while (status == OSD_OK && joined < count && memberships[joined].number == 0)
		joined++; /* by the target: not on the page */
	if (status != OSD_OK)
		return status;
	return place_form(txn, page, osd_std_page(osd_txn_type(txn), relative),
			  count ? memberships + joined : NULL, count - joined, buffer, capacity,
			  ret_length);
}
