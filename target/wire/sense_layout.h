/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sense_layout.h -- values and lengths in descriptor-format sense data: what its encoder and its decoder
 * (testing/initiator_sense.c) both need. */
#ifndef OSD_WIRE_SENSE_LAYOUT_H
#define OSD_WIRE_SENSE_LAYOUT_H

#define RESPONSE_CURRENT 0x72
#define HEADER		 8

enum descriptor {
	INFORMATION = 0x00,
	COMMAND_INFORMATION = 0x01,
	SENSE_KEY_SPECIFIC = 0x02,
	OBJECT = 0x06,
	RESPONSE_ICV = 0x07,
	ATTRIBUTE = 0x08,
	TEXT = 0x80,
};

/* Lengths of what follows a descriptor's first two bytes. */
enum {
	INFORMATION_BODY = 10,
	SPECIFIC_BODY = 6,
	OBJECT_BODY = 30,
	ICV_BODY = 32,
	ATTRIBUTE_BODY = 2, /* before the attributes */
	ATTRIBUTE_BYTES = 8,
};

#define SPECIFIC_VALID	0x80 /* SKSV */
#define SPECIFIC_IN_CDB 0x40 /* C/D */
#define VALID		0x80

#endif
