/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_class.c -- which attribute pages an object can have, and whether the application, the standard or
 * the target keeps each of them. */
#include "object/attr_table.h"

#include <stdlib.h>

/* Relative page numbers (osd2-wire 5.1). */
#define REL_STANDARD_LAST    0x7fu
#define REL_RESERVED_LAST    0x7fffu
#define REL_PUBLIC_LAST	     0xffffu
#define REL_APPLICATION_LAST 0x1fffffffu
#define REL_STD_PAGES	     7u
#define REL_COUNTERS	     7u /* what the atomic commands use (osd2-wire 3.19) */
#define REL_OPAQUE_FIRST     8u

enum osd_page_class osd_attr_classify(const struct osd_txn *txn, uint32_t page,
				      uint32_t *ret_relative)
{
	enum osd_object_type type = osd_txn_type(txn);
	uint32_t base = osd_page_base(type), relative = page - base;

	if (page >= OSD_PAGE_ANY_BASE)
		return page < OSD_PAGE_CURRENT_COMMAND ? OSD_PAGE_OPEN : OSD_PAGE_BAD;
	if (page < base || relative >= OSD_PAGE_PARTITION_BASE)
		return OSD_PAGE_BAD;
	*ret_relative = relative;
	if (osd_std_page(type, relative))
		return OSD_PAGE_STANDARD;
	if (type == OSD_USER_OBJECT && relative == REL_COUNTERS)
		return OSD_PAGE_OPEN;
	if (relative <= REL_STANDARD_LAST)
		return type == OSD_USER_OBJECT && relative >= REL_OPAQUE_FIRST
			       ? OSD_PAGE_OPEN
			       : OSD_PAGE_CLOSED;
	if (relative <= REL_RESERVED_LAST)
		return OSD_PAGE_BAD;
	if (relative <= REL_PUBLIC_LAST)
		return OSD_PAGE_CLOSED;
	return relative <= REL_APPLICATION_LAST ? OSD_PAGE_OPEN : OSD_PAGE_CLOSED;
}

bool osd_attr_page_is_open(const struct osd_txn *txn, uint32_t page)
{
	uint32_t relative = 0;

	return !osd_objects_page(txn->objects, page) &&
	       osd_attr_classify(txn, page, &relative) == OSD_PAGE_OPEN;
}

/* Root and partition pages stand behind their own objects only; B000_0001h is in the root's range.
 */
bool osd_attr_provider_fits(const struct osd_txn *txn, uint32_t page)
{
	uint32_t base = osd_page_base(osd_txn_type(txn));

	return page >= OSD_PAGE_ANY_BASE || (page >= base && page - base < OSD_PAGE_PARTITION_BASE);
}

bool osd_attr_page_fits(const struct osd_txn *txn, uint32_t page)
{
	uint32_t relative = 0;
	const struct osd_page_provider *provider = osd_objects_page(txn->objects, page);

	return (provider && osd_attr_provider_fits(txn, page)) ||
	       osd_attr_classify(txn, page, &relative) != OSD_PAGE_BAD;
}

static int ascending(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return (left > right) - (left < right);
}

enum osd_status osd_attr_pages(struct osd_txn *txn, struct osd_numbers *pages)
{
	enum osd_object_type type = osd_txn_type(txn);
	struct osd_numbers found = {NULL, 0, 0};
	bool fits = true;
	enum osd_status status = osd_attr_stored_pages(txn, &found);

	for (uint32_t i = 0; fits && i < REL_STD_PAGES; i++)
		if (osd_std_page(type, i))
			fits = osd_numbers_add(&found, osd_page_base(type) + i);
	for (size_t i = 0; fits && i < txn->objects->provider_count; i++)
		if (osd_attr_provider_fits(txn, txn->objects->providers[i]->page))
			fits = osd_numbers_add(&found, txn->objects->providers[i]->page);
	if (found.count)
		qsort(found.list, found.count, sizeof(*found.list), ascending);
	/* A record with a damaged key must not keep the others from being read. */
	for (size_t i = 0; fits && i < found.count; i++)
		if (osd_attr_page_fits(txn, found.list[i]))
			fits = osd_numbers_add(pages, found.list[i]);
	free(found.list);
	if (status != OSD_OK)
		return status;
	return fits ? OSD_OK : OSD_E_NO_MEMORY;
}
