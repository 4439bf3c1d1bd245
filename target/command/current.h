/* SPDX-License-Identifier: GPL-2.0-or-later */
/* current.h -- the Current Command page, FFFF_FFFEh: what the command at hand did (osd2-wire 5.19).
 * Read only; every object has it. */
#ifndef OSD_COMMAND_CURRENT_H
#define OSD_COMMAND_CURRENT_H

#include "command/request.h"
#include "wire/attr_list.h"

#define OSD_CURRENT_PAGE_BYTES 76 /* of the page form */

/* The entry with that number, or with OSD_NUMBER_ALL all of them. */
enum osd_status osd_current_entries(const struct osd_request *request, uint32_t number,
				    struct osd_attr_writer *writer);
/* The page form; returns its length. */
size_t osd_current_page(const struct osd_request *request, uint8_t page[OSD_CURRENT_PAGE_BYTES]);

#endif
