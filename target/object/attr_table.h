/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_table.h -- the table of standard attributes and pages (attr_table.c), for the code that gets,
 * sets, lists and describes them. */
#ifndef OSD_OBJECT_ATTR_TABLE_H
#define OSD_OBJECT_ATTR_TABLE_H

#include "object/internal.h"
#include "wire/capability.h"

/* The source of a value. */
enum osd_value_source {
	OSD_V_ABSENT,	 /* never has a value here */
	OSD_V_STORED,	 /* as set; parameter bytes of zeros until then */
	OSD_V_NUMBER,	 /* constant: the parameter */
	OSD_V_DIRECTORY, /* number n is page n's identification */
	OSD_V_MEMBERSHIP,
	OSD_V_VENDOR,
	OSD_V_PRODUCT,
	OSD_V_MODEL,
	OSD_V_REVISION,
	OSD_V_SERIAL,
	OSD_V_SYSTEM_ID,
	OSD_V_PARTITION_ID,
	OSD_V_OBJECT_ID,
	OSD_V_COLLECTION_TYPE,
	OSD_V_CAPACITY,
	OSD_V_USED,
	OSD_V_PARTITION_COUNT,
	OSD_V_OBJECT_COUNT,
	OSD_V_CLOCK,
	OSD_V_ISOLATION,
	OSD_V_ISOLATION_MAP,
	OSD_V_DESCRIPTOR,  /* largest CDB continuation descriptor of the type in the number */
	OSD_V_DUPLICATION, /* a value where the method in the number is supported */
	OSD_V_LENGTH,
	OSD_V_DATA_SPACE,
	OSD_V_MEMBER_COUNT,
	OSD_V_QUOTA, /* the parameter is its offset in struct osd_quotas */
	OSD_V_TIME,  /* the parameter says which */
	OSD_V_BYPASS,
	OSD_V_ADJUSTED_CLOCK,
	OSD_V_BOOT_EPOCH,
	OSD_V_TAG,
	OSD_V_USER_TAG,
	OSD_V_KEY_IDENTIFIER, /* the parameter is the level */
	OSD_V_NONCE_LIMIT,    /* until set the root's, and that one the parameter */
};

/* Whether clients may set an attribute.  The target itself may always set stored ones. */
enum osd_settable {
	OSD_SET_NEVER,
	OSD_SET_CLIENT,
	OSD_SET_INHERITED, /* by clients; new objects inside inherit the value */
};

/* The check of a value that a client sets, in addition to its length. */
enum osd_value_rule {
	OSD_RULE_ANY,
	OSD_RULE_METHOD,    /* security method: one that #7 of the root's page says */
	OSD_RULE_BYPASS,    /* timestamps control, as CDB byte 12 */
	OSD_RULE_ISOLATION, /* a supported isolation method */
	OSD_RULE_PAIRS,	    /* page and number, any number of times */
	OSD_RULE_NONCE_LIMIT, /* 100 ms to a week, and no more than the root's */
};

struct osd_std_row {
	uint8_t types, relative; /* who has it: the codes of types are bits; on which page */
	uint32_t first, last;	 /* numbers */
	uint16_t min_length, max_length;
	enum osd_settable settable;
	enum osd_value_source source;
	uint64_t parameter;
	enum osd_value_rule rule;
	const char *what; /* for people */
};

/* The quota that a row of OSD_V_QUOTA names. */
static inline uint64_t *osd_std_quota(const struct osd_std_row *row, struct osd_quotas *quotas)
{
	return (uint64_t *)(void *)((uint8_t *)quotas + row->parameter);
}

/* Nonce limits, in ms. */
#define OSD_NONCE_LIMIT_LEAST	UINT64_C(100)
#define OSD_NONCE_LIMIT_MOST	(UINT64_C(7) * 24 * 3600 * 1000)
enum osd_status osd_nonce_limit(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
				uint64_t *ret_limit);

/* A field of a page form. */
struct osd_form_field {
	uint32_t number; /* of the first attribute; or one of the next two */
	uint8_t width;	 /* 0 ends the form */
	uint8_t repeat;	 /* that many attributes in a row; 0 and 1: one */
};
#define OSD_FORM_RESERVED   0xfffffff0u /* no attribute */
#define OSD_FORM_KEYS_VALID 0xfffffff1u /* which key identifiers exist, as bits */

struct osd_std_page {
	uint8_t type, relative;
	const char *name;
	const struct osd_form_field *form; /* NULL: none, or the list of memberships */
};

size_t osd_form_bytes(const struct osd_form_field *form); /* NULL: 0 */
/* NULL: the standard has no such attribute, or page. */
const struct osd_std_row *osd_std_find(enum osd_object_type type, uint32_t relative,
				       uint32_t number);
const struct osd_std_page *osd_std_page(enum osd_object_type type, uint32_t relative);
/* The row after this one of the same page and type, or with NULL the first; NULL: no more. */
const struct osd_std_row *osd_std_next(enum osd_object_type type, uint32_t relative,
				       const struct osd_std_row *row);

#endif
