/* SPDX-License-Identifier: GPL-2.0-or-later */
/* list_data_layout.h -- the header of parameter data of LIST and LIST COLLECTION, byte by byte. */
#ifndef OSD_WIRE_LIST_DATA_LAYOUT_H
#define OSD_WIRE_LIST_DATA_LAYOUT_H

enum {
	AT_CONTINUATION = 8,
	AT_LIST_IDENTIFIER = 16,
	AT_FORMAT = 23, /* b7-b2 format, b1 LSTCHG */
	LSTCHG = 0x02,
	NOT_COUNTED = 8, /* ADDITIONAL LENGTH counts from byte 8 */
};

#endif
