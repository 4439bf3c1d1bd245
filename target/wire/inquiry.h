/* SPDX-License-Identifier: GPL-2.0-or-later */
/* inquiry.h -- the INQUIRY data of a logical unit (SPC-3): standard data and vital product data
 * pages.  Elsewhere: the identity of the unit (the front end has it), the command
 * (command/cmd_perform.c). */
#ifndef OSD_WIRE_INQUIRY_H
#define OSD_WIRE_INQUIRY_H

#include <stddef.h>
#include <stdint.h>

#define OSD_DEVICE_TYPE        0x11
#define OSD_INQUIRY_STANDARD   66u
#define OSD_INQUIRY_VERSIONS   4u
#define OSD_VPD_HEADER         4u
#define OSD_VPD_MAX            252u /* bytes after the header */
#define OSD_VPD_PAGES          16u
#define OSD_VPD_SUPPORTED      0x00
#define OSD_VPD_SERIAL         0x80
#define OSD_VPD_IDENTIFICATION 0x83
#define OSD_VPD_OSD            0xb0 /* OSD information: security methods, bit n: method n */
#define OSD_VPD_TOKEN          0xb1 /* security token */

#define OSD_SECURITY_TOKEN_BYTES 16

#define OSD_VERSION_OSD2  0x0440
#define OSD_VERSION_ISCSI 0x0960
#define OSD_VERSION_SPC3  0x0300

struct osd_vpd_page {
	uint8_t code, length;
	uint8_t bytes[OSD_VPD_MAX];
};

struct osd_identity {
	uint8_t standard[OSD_INQUIRY_STANDARD];
	struct osd_vpd_page pages[OSD_VPD_PAGES]; /* ascending codes, without page 00h */
	size_t page_count;
};

/* Standard data of an OSD; vendor, product and revision are cut or padded to 8, 16 and 4 bytes. */
void osd_identity_init(struct osd_identity *identity, const char *vendor, const char *product,
		       const char *revision, const uint16_t versions[OSD_INQUIRY_VERSIONS]);
/* Appends a page; its code must be larger than the last one's.  A page that does not fit is left
 * out. */
void osd_identity_add(struct osd_identity *identity, uint8_t code, const void *bytes,
		      size_t length);
/* The page with its header, 00h among them; 0: there is no such page. */
size_t osd_identity_page(const struct osd_identity *identity, uint8_t code,
			 uint8_t bytes[OSD_VPD_HEADER + OSD_VPD_MAX]);

#endif
