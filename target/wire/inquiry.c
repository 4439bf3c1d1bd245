/* SPDX-License-Identifier: GPL-2.0-or-later */
/* inquiry.c -- see inquiry.h. */
#include "wire/inquiry.h"

#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

#define VERSION_SPC3    5
#define RESPONSE_FORMAT 0x12 /* HISUP, format 2 */
#define CMDQUE          0x02
#define VERSIONS_AT     58
#define RESERVED_AT     36 /* up to the version descriptors */

static void put_text(struct osd_wr *w, const char *text, size_t width)
{
	size_t length = strnlen(text, width);

	osd_wr_bytes(w, text, length);
	for (; length < width; length++)
		osd_wr_be(w, ' ', 1);
}

void osd_identity_init(struct osd_identity *identity, const char *vendor, const char *product,
		       const char *revision, const uint16_t versions[OSD_INQUIRY_VERSIONS])
{
	struct osd_wr w = osd_wr_init(identity->standard, OSD_INQUIRY_STANDARD);

	identity->page_count = 0;
	osd_wr_be(&w, OSD_DEVICE_TYPE, 1);	    /* 0 */
	osd_wr_be(&w, 0, 1);			    /* 1 not removable */
	osd_wr_be(&w, VERSION_SPC3, 1);		    /* 2 */
	osd_wr_be(&w, RESPONSE_FORMAT, 1);	    /* 3 */
	osd_wr_be(&w, OSD_INQUIRY_STANDARD - 5, 1); /* 4 additional length */
	osd_wr_zero(&w, 2);			    /* 5-6 */
	osd_wr_be(&w, CMDQUE, 1);		    /* 7 */
	put_text(&w, vendor, 8);		    /* 8-15 */
	put_text(&w, product, 16);		    /* 16-31 */
	put_text(&w, revision, 4);		    /* 32-35 */
	osd_wr_zero(&w, VERSIONS_AT - RESERVED_AT); /* 36-57 */
	for (size_t i = 0; i < OSD_INQUIRY_VERSIONS; i++)
		osd_wr_be(&w, versions[i], 2); /* 58-65 */
}

void osd_identity_add(struct osd_identity *identity, uint8_t code, const void *bytes, size_t length)
{
	struct osd_vpd_page *page = &identity->pages[identity->page_count];

	if (identity->page_count == OSD_VPD_PAGES)
		return;
	page->code = code;
	page->length = (uint8_t)OSD_MIN(length, (size_t)OSD_VPD_MAX);
	if (page->length)
		memcpy(page->bytes, bytes, page->length);
	identity->page_count++;
}

size_t osd_identity_page(const struct osd_identity *identity, uint8_t code,
			 uint8_t bytes[OSD_VPD_HEADER + OSD_VPD_MAX])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_VPD_HEADER + OSD_VPD_MAX);
	const struct osd_vpd_page *page = NULL;

	for (size_t i = 0; i < identity->page_count; i++)
		if (identity->pages[i].code == code)
			page = &identity->pages[i];
	if (!page && code != OSD_VPD_SUPPORTED)
		return 0;
	osd_wr_be(&w, OSD_DEVICE_TYPE, 1);
	osd_wr_be(&w, code, 1);
	osd_wr_be(&w, page ? page->length : identity->page_count + 1, 2);
	if (page) {
		osd_wr_bytes(&w, page->bytes, page->length);
		return osd_wr_used(&w);
	}
	osd_wr_be(&w, OSD_VPD_SUPPORTED, 1);
	for (size_t i = 0; i < identity->page_count; i++)
		osd_wr_be(&w, identity->pages[i].code, 1);
	return osd_wr_used(&w);
}
