/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_page.c -- the fixed page form of the pages that have one (osd2-wire 5.6): quotas,
 * timestamps, collections, policy/security.  A form is a list of attribute numbers with the width
 * each takes. */
#include "object/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

#define PAGE_HEADER 8
#define RESERVED    0xfffffff0u /* a field without attribute */
#define KEYS_VALID  0xfffffff1u /* which key identifiers exist, as bits */

struct field {
	uint32_t number;
	uint8_t width;
	uint8_t repeat; /* 0 and 1: once */
};

struct form {
	enum osd_object_type type;
	uint32_t relative;
	struct field fields[16]; /* width 0 ends */
};

static const struct form forms[] = {
	{OSD_ROOT,
	 OSD_REL_QUOTAS,
	 {{0x1, 8, 0}, {0x10001, 8, 0}, {0x10002, 8, 0}, {0x10081, 4, 0}, {0x20002, 8, 0}}},
	{OSD_PARTITION,
	 OSD_REL_QUOTAS,
	 {{0x1, 8, 0}, {0x10001, 8, 0}, {0x10002, 8, 0}, {0x10081, 4, 0}}},
	{OSD_USER_OBJECT, OSD_REL_QUOTAS, {{0x1, 8, 0}}},
	{OSD_ROOT, OSD_REL_TIMESTAMPS, {{2, 6, 0}, {3, 6, 0}, {OSD_TIME_BYPASS, 1, 0}}},
	{OSD_PARTITION, OSD_REL_TIMESTAMPS, {{1, 6, 5}, {OSD_TIME_BYPASS, 1, 0}}},
	{OSD_COLLECTION, OSD_REL_TIMESTAMPS, {{1, 6, 5}}},
	{OSD_USER_OBJECT, OSD_REL_TIMESTAMPS, {{1, 6, 5}}},
	{OSD_ROOT,
	 OSD_REL_SECURITY,
	 {{0x1, 1, 0},
	  {0x6, 1, 0},
	  {0x7, 2, 0},
	  {0x2, 6, 2},
	  {KEYS_VALID, 1, 0},
	  {0x7ffd, 7, 2},
	  {0x80000000, 1, 32},
	  {RESERVED, 1, 0},
	  {0xa, 2, 0}}},
	{OSD_PARTITION,
	 OSD_REL_SECURITY,
	 {{RESERVED, 3, 0},
	  {0x1, 1, 0},
	  {0x2, 6, 2},
	  {0x4, 2, 0},
	  {0x5, 2, 0},
	  {0x40000001, 4, 2},
	  {KEYS_VALID, 3, 0},
	  {0x7fff, 7, 17}}},
	{OSD_COLLECTION, OSD_REL_SECURITY, {{0x40000001, 4, 0}}},
	{OSD_USER_OBJECT, OSD_REL_SECURITY, {{0x40000001, 4, 0}}},
};

static const struct form *find_form(enum osd_object_type type, uint32_t relative)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(forms); i++)
		if (forms[i].type == type && forms[i].relative == relative)
			return &forms[i];
	return NULL;
}

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

	if (number == KEYS_VALID)
		return keys_valid(txn, width, w);
	if (number != RESERVED)
		status = osd_std_get(txn, relative, number, value, sizeof(value), &length);
	if (length < width)
		memset(value + length, 0, width - length);
	osd_wr_bytes(w, value, width);
	return status;
}

static enum osd_status put_form(struct osd_txn *txn, const struct form *form, struct osd_wr *w)
{
	enum osd_status status = OSD_OK;

	for (const struct field *field = form->fields; field->width && status == OSD_OK; field++)
		for (uint32_t i = 0; i < OSD_MAX(field->repeat, 1) && status == OSD_OK; i++)
			status = put_field(txn, form->relative, field->number + i, field->width, w);
	return status;
}

static enum osd_status put_memberships(struct osd_txn *txn, struct osd_wr *w)
{
	OSD_CLEANUP_FREE struct osd_membership *list = NULL;
	size_t count;
	enum osd_status status = osd_memberships(txn, &list, &count);

	for (size_t i = 0; status == OSD_OK && i < count; i++)
		if (list[i].number)
			osd_wr_be(w, list[i].collection, 8);
	return status;
}

enum osd_status osd_attr_page_form(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				   uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	enum osd_status status = osd_txn_take(txn, id, false);
	OSD_CLEANUP_FREE uint8_t *bytes = NULL;
	const struct form *form;
	struct osd_wr w;
	uint32_t relative;

	if (status != OSD_OK)
		return status;
	relative = page - osd_page_base(osd_txn_type(txn));
	if (page < OSD_PAGE_ANY_BASE && relative >= OSD_PAGE_PARTITION_BASE)
		return OSD_E_PARAM_FIELD;
	bytes = malloc(OSD_ATTRIBUTE_MAX);
	if (!bytes)
		return OSD_E_NO_MEMORY;
	w = osd_wr_init(bytes, OSD_ATTRIBUTE_MAX);
	osd_wr_be(&w, page, 4);
	osd_wr_be(&w, 0, 4);
	form = find_form(osd_txn_type(txn), relative);
	if (form)
		status = put_form(txn, form, &w);
	else if (relative == OSD_REL_COLLECTIONS && osd_txn_type(txn) == OSD_USER_OBJECT)
		status = put_memberships(txn, &w);
	if (status != OSD_OK)
		return status;
	osd_put_be(bytes + 4, osd_wr_used(&w) - PAGE_HEADER, 4);
	if (capacity)
		memcpy(buffer, bytes, OSD_MIN(capacity, osd_wr_used(&w)));
	*ret_length = osd_wr_used(&w);
	return OSD_OK;
}
