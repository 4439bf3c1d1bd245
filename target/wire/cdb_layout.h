/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cdb_layout.h -- where the fields of the CDB are, for those who read and write it (osd2-wire 2.1). */
#ifndef OSD_WIRE_CDB_LAYOUT_H
#define OSD_WIRE_CDB_LAYOUT_H

/* Byte numbers, also the field pointers of sense data. */
enum {
	AT_ADDITIONAL_LENGTH = 7,
	AT_SERVICE_ACTION = 8,
	AT_OPTIONS = 10,
	AT_BYTE11 = 11,
	AT_TIMESTAMPS = 12,
	AT_DUPLICATION = 14,
	AT_PARTITION_ID = 16,
	AT_OBJECT_ID = 24,
	AT_KEY_VERSION = 24, /* SET KEY; DH GROUP in SET MASTER KEY */
	AT_KEY_IDENTIFIER = 25,
	AT_LENGTH = 32,
	AT_SEED = 32,
	AT_ALLOCATION = 36, /* SET MASTER KEY */
	AT_FUNCTION = 39,
	AT_START = 40,
	AT_WORD48 = 48,
	AT_CAPABILITY = 80,
	AT_ICV = 184,
	AT_NONCE = 216,
	AT_DATA_IN_ICV = 228,
	AT_DATA_OUT_ICV = 232,
};

#endif
