/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr_table.c -- every attribute and page of the standard, one row each (osd2-wire 5.7-5.18): which
 * types of objects have it, its length, whether clients may set it, and the source of its value.  Get,
 * set, the numbers of a page, the directory, page forms and docs/attributes.md follow from these
 * tables.  A new attribute is a row here.  If its value has a new source, it is also a case in
 * attr_std.c.
 *
 * Not here: the Current Command page, which is about a command (command/current.c), and the pages
 * of higher layers (osd_page_provider). */
#include "object/attr_table.h"

#include <inttypes.h>

#include "base/util.h"
#include "object/key_record.h"
#include "wire/continuation.h"

/* object types of a row */
enum { R = OSD_ROOT, P = OSD_PARTITION, C = OSD_COLLECTION, U = OSD_USER_OBJECT };

#define NEVER	  OSD_SET_NEVER
#define CLIENT	  OSD_SET_CLIENT
#define INHERITED OSD_SET_INHERITED
#define ANY	  OSD_RULE_ANY
#define LONGEST	  OSD_ATTRIBUTE_MAX
#define QUOTA(field) offsetof(struct osd_quotas, field)

/* The kernel's page cache takes a WRITE page by page, and a disk writes whole sectors.  All attributes
 * of one command are one transaction; data is not part of it. */
#define DATA_ATOMICITY	     512
#define ATTRIBUTES_ATOMICITY OSD_TRANSFER_MAX
#define BOTH_ATOMICITY	     0

/* In ascending order of numbers within a page. */
static const struct osd_std_row rows[] = {
	{R | P | C | U, 0, 1, 0xfffffffe, 40, 40, NEVER, OSD_V_DIRECTORY, 0, ANY,
	 "identification of the page with this number"},

	/* Root Information */
	{R, 1, 0x3, 0x3, 20, 20, NEVER, OSD_V_SYSTEM_ID, 0, ANY, "OSD system id"},
	{R, 1, 0x4, 0x4, 8, 8, NEVER, OSD_V_VENDOR, 0, ANY, "vendor identification"},
	{R, 1, 0x5, 0x5, 16, 16, NEVER, OSD_V_PRODUCT, 0, ANY, "product identification"},
	{R, 1, 0x6, 0x6, 32, 32, NEVER, OSD_V_MODEL, 0, ANY, "product model"},
	{R, 1, 0x7, 0x7, 4, 4, NEVER, OSD_V_REVISION, 0, ANY, "product revision level"},
	{R, 1, 0x8, 0x8, 1, 64, NEVER, OSD_V_SERIAL, 0, ANY, "product serial number"},
	{R, 1, 0x9, 0x9, 1, 64, CLIENT, OSD_V_STORED, 0, ANY, "OSD name"},
	{R, 1, 0xa, 0xa, 4, 4, NEVER, OSD_V_NUMBER, OSD_CONTINUATION_MAX, ANY,
	 "maximum CDB continuation length"},
	{R, 1, 0x80, 0x80, 8, 8, NEVER, OSD_V_CAPACITY, 0, ANY, "total capacity"},
	{R, 1, 0x81, 0x81, 8, 8, NEVER, OSD_V_USED, 0, ANY, "used capacity"},
	{R, 1, 0x83, 0x83, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY, "object accessibility"},
	{R, 1, 0xc0, 0xc0, 8, 8, NEVER, OSD_V_PARTITION_COUNT, 0, ANY, "number of partitions"},
	{R, 1, 0x100, 0x100, 6, 6, NEVER, OSD_V_CLOCK, 0, ANY, "clock, ms since 1970-01-01 UT"},
	{R, 1, 0x110, 0x110, 1, 1, CLIENT, OSD_V_ISOLATION, 0, OSD_RULE_ISOLATION,
	 "default isolation method: what 0 in a CDB means"},
	{R, 1, 0x111, 0x111, 32, 32, NEVER, OSD_V_ISOLATION_MAP, 0, ANY,
	 "supported isolation methods, bit n from the left: method n"},
	{R, 1, 0x120, 0x120, 8, 8, NEVER, OSD_V_NUMBER, DATA_ATOMICITY, ANY,
	 "data atomicity guarantee: bytes written whole or not at all, whatever fails"},
	{R, 1, 0x121, 0x121, 8, 8, NEVER, OSD_V_NUMBER, DATA_ATOMICITY, ANY,
	 "data atomicity alignment"},
	{R, 1, 0x122, 0x122, 8, 8, NEVER, OSD_V_NUMBER, ATTRIBUTES_ATOMICITY, ANY,
	 "attributes atomicity guarantee: bytes that one command sets whole or not at all"},
	{R, 1, 0x123, 0x123, 1, 1, NEVER, OSD_V_NUMBER, BOTH_ATOMICITY, ANY,
	 "data/attributes atomicity multiplier: 0, a crash may part data from attributes"},
	{R, 1, 0x1c1, 0x1c1, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY, "maximum snapshots count"},
	{R, 1, 0x1c2, 0x1c2, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY, "maximum clones count"},
	{R, 1, 0x1cc, 0x1cc, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY, "maximum branch depth"},
#define X(code, symbol, name)                                                                      \
	{R, 1, 0x200 + code, 0x200 + code, 4, 4, NEVER, OSD_V_DUPLICATION, 0, ANY,                 \
	 "supported object duplication method: " name},
	OSD_DUPLICATION_METHODS(X)
#undef X
		{R, 1, 0x300, 0x30f, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY,
		 "supported time of duplication method"},
	{R, 1, 0x310, 0x310, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY,
	 "support for duplicated object freezing"},
	{R, 1, 0x311, 0x311, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY, "support for snapshot refreshing"},
#define DESCRIPTOR(type, name)                                                                     \
	{R, 1, 0x7000000 + type, 0x7000000 + type, 4, 4, NEVER, OSD_V_DESCRIPTOR, 0, ANY,          \
	 "largest CDB continuation descriptor: " name}
	DESCRIPTOR(OSD_DESC_SG_LIST, "scatter/gather list"),
	DESCRIPTOR(OSD_DESC_QUERY_LIST, "query list"),
	DESCRIPTOR(OSD_DESC_COPY_SOURCE, "copy user object source"),
	DESCRIPTOR(OSD_DESC_EXEC_PARAMS, "EXEC parameters"),
	DESCRIPTOR(OSD_DESC_PRECONDITION, "precondition"),
	DESCRIPTOR(OSD_DESC_EXTENSION_CAPS, "extension capabilities"),
#undef DESCRIPTOR

	/* Partition, Collection and User Object Information */
	{P | C | U, 1, 0x1, 0x1, 8, 8, NEVER, OSD_V_PARTITION_ID, 0, ANY, "partition id"},
	{C | U, 1, 0x2, 0x2, 8, 8, NEVER, OSD_V_OBJECT_ID, 0, ANY, "object id"},
	{P | C | U, 1, 0x9, 0x9, 1, LONGEST, CLIENT, OSD_V_STORED, 0, ANY, "username"},
	{C, 1, 0xa, 0xa, 1, 1, NEVER, OSD_V_COLLECTION_TYPE, 0, ANY, "collection type"},
	{P | C | U, 1, 0x81, 0x81, 8, 8, NEVER, OSD_V_USED, 0, ANY,
	 "used capacity: the length of the data"},
	{U, 1, 0x82, 0x82, 8, 8, CLIENT, OSD_V_LENGTH, 0, ANY,
	 "logical length; setting it cuts or extends the object"},
	{P | C | U, 1, 0x83, 0x83, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY, "object accessibility"},
	{P, 1, 0x84, 0x84, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY, "used capacity increment"},
	{P, 1, 0xc1, 0xc1, 8, 8, NEVER, OSD_V_OBJECT_COUNT, 0, ANY,
	 "number of collections and user objects"},
	{P, 1, 0xd1, 0xd1, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY, "actual data space"},
	{U, 1, 0xd1, 0xd1, 8, 8, NEVER, OSD_V_DATA_SPACE, 0, ANY,
	 "actual data space: bytes of blocks it has"},
	{P | U, 1, 0xd2, 0xd2, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY, "reserved data space"},
	{P, 1, 0x200, 0x201, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY,
	 "default snapshot, clone duplication method"},
	{P, 1, 0x300, 0x301, 0, 0, NEVER, OSD_V_ABSENT, 0, ANY,
	 "default snapshot, clone time of duplication"},

	/* quotas; FFFF_FFFF_FFFF_FFFFh: no limit */
	{R | P, 2, 0x1, 0x1, 8, 8, INHERITED, OSD_V_QUOTA, QUOTA(max_length), ANY,
	 "default maximum user object length"},
	{U, 2, 0x1, 0x1, 8, 8, CLIENT, OSD_V_QUOTA, QUOTA(max_length), ANY,
	 "maximum user object length"},
	{R, 2, 0x10001, 0x10001, 8, 8, INHERITED, OSD_V_QUOTA, QUOTA(capacity), ANY,
	 "default partition capacity quota"},
	{P, 2, 0x10001, 0x10001, 8, 8, CLIENT, OSD_V_QUOTA, QUOTA(capacity), ANY,
	 "capacity quota; without one, the total capacity"},
	{R, 2, 0x10002, 0x10002, 8, 8, INHERITED, OSD_V_QUOTA, QUOTA(object_count), ANY,
	 "default partition object count quota"},
	{P, 2, 0x10002, 0x10002, 8, 8, CLIENT, OSD_V_QUOTA, QUOTA(object_count), ANY,
	 "object count quota"},
	{R, 2, 0x10081, 0x10081, 4, 4, INHERITED, OSD_V_QUOTA, QUOTA(collections), ANY,
	 "default quota of collections per user object"},
	{P, 2, 0x10081, 0x10081, 4, 4, CLIENT, OSD_V_QUOTA, QUOTA(collections), ANY,
	 "quota of collections per user object"},
	{R, 2, 0x20002, 0x20002, 8, 8, CLIENT, OSD_V_QUOTA, QUOTA(partition_count), ANY,
	 "partition count quota"},

	/* timestamps, ms since 1970-01-01 UT */
	{P | C | U, 3, 1, 1, 6, 6, NEVER, OSD_V_TIME, OSD_T_CREATED, ANY, "created"},
	{R | P | C | U, 3, 2, 2, 6, 6, NEVER, OSD_V_TIME, OSD_T_ATTR_ACCESSED, ANY,
	 "attributes accessed"},
	{R | P | C | U, 3, 3, 3, 6, 6, NEVER, OSD_V_TIME, OSD_T_ATTR_MODIFIED, ANY,
	 "attributes modified"},
	{P | C | U, 3, 4, 4, 6, 6, NEVER, OSD_V_TIME, OSD_T_DATA_ACCESSED, ANY, "data accessed"},
	{P | C | U, 3, 5, 5, 6, 6, NEVER, OSD_V_TIME, OSD_T_DATA_MODIFIED, ANY, "data modified"},
	{R, 3, OSD_TIME_BYPASS, OSD_TIME_BYPASS, 1, 1, INHERITED, OSD_V_BYPASS, 0, OSD_RULE_BYPASS,
	 "timestamp bypass: 7Fh, the root's own times do not move"},
	{P, 3, OSD_TIME_BYPASS, OSD_TIME_BYPASS, 1, 1, CLIENT, OSD_V_BYPASS, 0, OSD_RULE_BYPASS,
	 "timestamp bypass: 7Fh, no time in the partition moves"},

	/* Collections; Attributes Access; Command Tracking */
	{U, 4, 1, 0xffffff00, 8, 8, CLIENT, OSD_V_MEMBERSHIP, 0, ANY,
	 "id of a linked collection the object belongs to"},
	{P, 4, 1, 0xfffffffe, 8, LONGEST, CLIENT, OSD_V_STORED, 0, OSD_RULE_PAIRS,
	 "attributes that a capability naming this number may touch: pairs of page and number"},
	{C, 4, 0x1, 0x1, 1, 1, NEVER, OSD_V_STORED, 0, ANY, "percent complete"},
	{C, 4, 0x2, 0x2, 2, 2, NEVER, OSD_V_STORED, 0, ANY,
	 "active command: 0, or its service action"},
	{C, 4, 0x3, 0x3, 2, 2, NEVER, OSD_V_STORED, 0, ANY,
	 "ended command: 0, its status, or FFFFh while one is active"},
	{C, 4, 0x4, 0x4, 1, OSD_SENSE_MAX, NEVER, OSD_V_STORED, 0, ANY,
	 "sense data of the ended command"},
	{C, 4, 0x10, 0x10, 8, 8, NEVER, OSD_V_MEMBER_COUNT, 0, ANY, "number of members"},
	{C, 4, 0x11, 0x11, 8, 8, NEVER, OSD_V_STORED, 0, ANY, "objects processed"},
	{C, 4, 0x12, 0x12, 8, 8, NEVER, OSD_V_STORED, 0, ANY, "newer objects skipped"},
	{C, 4, 0x13, 0x13, 8, 8, NEVER, OSD_V_STORED, 0, ANY, "missing objects skipped"},

	/* Policy/Security: kept and shown here, enforced by security/ */
	{R, 5, 0x1, 0x1, 1, 1, CLIENT, OSD_V_STORED, 1, OSD_RULE_METHOD, "default security method"},
	{R, 5, 0x2, 0x2, 6, 6, CLIENT, OSD_V_NONCE_LIMIT, 60000, OSD_RULE_NONCE_LIMIT,
	 "oldest valid nonce limit: ms before the clock; at first 60,000"},
	{R, 5, 0x3, 0x3, 6, 6, CLIENT, OSD_V_NONCE_LIMIT, 10000, OSD_RULE_NONCE_LIMIT,
	 "newest valid nonce limit: ms after the clock; at first 10,000"},
	{R, 5, 0x5, 0x5, 2, 2, CLIENT, OSD_V_STORED, 2, ANY,
	 "frozen working keys of partition zero, bit n: key n"},
	{R, 5, 0x6, 0x6, 1, 1, INHERITED, OSD_V_STORED, 1, OSD_RULE_METHOD,
	 "partition default security method"},
	{R, 5, 0x7, 0x7, 2, 2, NEVER, OSD_V_NUMBER, OSD_SECURITY_METHODS, ANY,
	 "supported security methods, bit n: method n"},
	{R, 5, OSD_SEC_CLOCK, OSD_SEC_CLOCK, 6, 6, CLIENT, OSD_V_ADJUSTED_CLOCK, 0, ANY,
	 "adjustable clock; runs on from the value set"},
	{R, 5, 0xa, 0xa, 2, 2, NEVER, OSD_V_BOOT_EPOCH, 0, ANY, "boot epoch; never 0"},
	{R, 5, 0x7ffd, 0x7ffd, 7, 7, NEVER, OSD_V_KEY_IDENTIFIER, OSD_KEY_MASTER, ANY,
	 "master key identifier"},
	{R, 5, 0x7ffe, 0x7ffe, 7, 7, NEVER, OSD_V_KEY_IDENTIFIER, OSD_KEY_ROOT, ANY,
	 "root key identifier"},
	{R, 5, 0x7fff, 0x7fff, 7, 7, NEVER, OSD_V_KEY_IDENTIFIER, OSD_KEY_PARTITION, ANY,
	 "key identifier of partition zero"},
	{R, 5, 0x8000, 0x800f, 7, 7, NEVER, OSD_V_KEY_IDENTIFIER, OSD_KEY_WORKING, ANY,
	 "working key identifier of partition zero"},
	{R, 5, 0x80000000, 0x80000000, 1, 1, NEVER, OSD_V_NUMBER, 0xf2, ANY,
	 "supported integrity check value algorithm: HMAC-SHA256 (vendor specific value)"},
	{R, 5, 0x80000001, 0x80000001, 1, 1, NEVER, OSD_V_NUMBER, 0x01, ANY,
	 "supported integrity check value algorithm: HMAC-SHA1"},
	{R, 5, 0x80000002, 0x8000000f, 1, 1, NEVER, OSD_V_NUMBER, 0, ANY,
	 "supported integrity check value algorithm: none"},
	{R, 5, 0x80000010, 0x80000010, 1, 1, NEVER, OSD_V_NUMBER, 14, ANY,
	 "supported DH group: 14 of RFC 3526, 2048 bits"},
	{R, 5, 0x80000011, 0x80000011, 1, 1, NEVER, OSD_V_NUMBER, 15, ANY,
	 "supported DH group: 15 of RFC 3526, 3072 bits"},
	{R, 5, 0x80000012, 0x8000001f, 1, 1, NEVER, OSD_V_NUMBER, 0, ANY,
	 "supported DH group: none"},
	{P, 5, 0x1, 0x1, 1, 1, CLIENT, OSD_V_STORED, 1, OSD_RULE_METHOD, "default security method"},
	{P, 5, 0x2, 0x2, 6, 6, CLIENT, OSD_V_NONCE_LIMIT, 0, OSD_RULE_NONCE_LIMIT,
	 "oldest valid nonce limit: ms before the clock; no more than the root's"},
	{P, 5, 0x3, 0x3, 6, 6, CLIENT, OSD_V_NONCE_LIMIT, 0, OSD_RULE_NONCE_LIMIT,
	 "newest valid nonce limit: ms after the clock; no more than the root's"},
	{P, 5, 0x4, 0x4, 2, 2, NEVER, OSD_V_NUMBER, OSD_NONCE_DEPTH, ANY,
	 "request nonce list depth: how many are remembered at least"},
	{P, 5, 0x5, 0x5, 2, 2, CLIENT, OSD_V_STORED, 2, ANY, "frozen working keys, bit n: key n"},
	{P, 5, 0x7fff, 0x7fff, 7, 7, NEVER, OSD_V_KEY_IDENTIFIER, OSD_KEY_PARTITION, ANY,
	 "partition key identifier"},
	{P, 5, 0x8000, 0x800f, 7, 7, NEVER, OSD_V_KEY_IDENTIFIER, OSD_KEY_WORKING, ANY,
	 "working key identifier"},
	{P, 5, OSD_SEC_TAG, OSD_SEC_TAG, 4, 4, CLIENT, OSD_V_STORED, 4, ANY, "policy access tag"},
	{P, 5, OSD_SEC_USER_TAG, OSD_SEC_USER_TAG, 4, 4, INHERITED, OSD_V_USER_TAG, 0, ANY,
	 "default user object policy access tag"},
	{C | U, 5, OSD_SEC_TAG, OSD_SEC_TAG, 4, 4, CLIENT, OSD_V_TAG, 0, ANY, "policy access tag"},

	/* Error Recovery: set by whatever finds damage */
	{R | P | C | U, 6, 0x1, 0x1, 1, 1, NEVER, OSD_V_STORED, 1, ANY, "damage summary"},
	{R | P, 6, 0x2, 0x2, 1, 1, NEVER, OSD_V_STORED, 1, ANY,
	 "damage summary of the objects inside"},
	{R | P | C | U, 6, 0x3, 0x3, 6, 6, NEVER, OSD_V_STORED, 6, ANY, "last damaged data time"},
	{R | P | C | U, 6, 0x4, 0x4, 6, 6, NEVER, OSD_V_STORED, 6, ANY,
	 "last damaged attributes time"},
	{R | P, 6, 0x5, 0x5, 6, 6, NEVER, OSD_V_STORED, 6, ANY, "last damaged object inside time"},
	{R | P, 6, 0x6, 0x6, 6, 6, NEVER, OSD_V_STORED, 6, ANY,
	 "number of damaged partitions or objects"},
};

/* ---- pages ------------------------------------------------------------------------------- */

static const struct osd_form_field root_quotas[] = {
	{0x1, 8, 0}, {0x10001, 8, 0}, {0x10002, 8, 0}, {0x10081, 4, 0}, {0x20002, 8, 0}, {0, 0, 0}};
static const struct osd_form_field partition_quotas[] = {
	{0x1, 8, 0}, {0x10001, 8, 0}, {0x10002, 8, 0}, {0x10081, 4, 0}, {0, 0, 0}};
static const struct osd_form_field user_quotas[] = {{0x1, 8, 0}, {0, 0, 0}};
static const struct osd_form_field root_times[] = {
	{2, 6, 2}, {OSD_TIME_BYPASS, 1, 0}, {0, 0, 0}};
static const struct osd_form_field partition_times[] = {
	{1, 6, 5}, {OSD_TIME_BYPASS, 1, 0}, {0, 0, 0}};
static const struct osd_form_field times[] = {{1, 6, 5}, {0, 0, 0}};
static const struct osd_form_field root_security[] = {{0x1, 1, 0},
						      {0x6, 1, 0},
						      {0x7, 2, 0},
						      {0x2, 6, 2},
						      {OSD_FORM_KEYS_VALID, 1, 0},
						      {0x7ffd, 7, 2},
						      {0x80000000, 1, 32},
						      {OSD_FORM_RESERVED, 1, 0},
						      {0xa, 2, 0},
						      {0, 0, 0}};
static const struct osd_form_field partition_security[] = {{OSD_FORM_RESERVED, 3, 0},
							   {0x1, 1, 0},
							   {0x2, 6, 2},
							   {0x4, 2, 2},
							   {OSD_SEC_TAG, 4, 2},
							   {OSD_FORM_KEYS_VALID, 3, 0},
							   {0x7fff, 7, 17},
							   {0, 0, 0}};
static const struct osd_form_field security[] = {{OSD_SEC_TAG, 4, 0}, {0, 0, 0}};
static const struct osd_form_field container_recovery[] = {
	{OSD_FORM_RESERVED, 2, 0}, {0x6, 6, 0}, {0x1, 1, 2}, {0x3, 6, 3}, {0, 0, 0}};
static const struct osd_form_field recovery[] = {
	{0x1, 1, 0}, {OSD_FORM_RESERVED, 1, 0}, {0x3, 6, 2}, {0, 0, 0}};

static const struct osd_std_page pages[] = {
	{R, 0, "T10 Root Directory", NULL},
	{R, 1, "T10 Root Information", NULL},
	{R, 2, "T10 Root Quotas", root_quotas},
	{R, 3, "T10 Root Timestamps", root_times},
	{R, 5, "T10 Root Policy/Security", root_security},
	{R, 6, "T10 Root Error Recovery", container_recovery},
	{P, 0, "T10 Partition Directory", NULL},
	{P, 1, "T10 Partition Information", NULL},
	{P, 2, "T10 Partition Quotas", partition_quotas},
	{P, 3, "T10 Partition Timestamps", partition_times},
	{P, 4, "T10 Partition Attributes Access", NULL},
	{P, 5, "T10 Partition Policy/Security", partition_security},
	{P, 6, "T10 Partition Error Recovery", container_recovery},
	{C, 0, "T10 Collection Directory", NULL},
	{C, 1, "T10 Collection Information", NULL},
	{C, 3, "T10 Collection Timestamps", times},
	{C, 4, "T10 Command Tracking", NULL},
	{C, 5, "T10 Collection Policy/Security", security},
	{C, 6, "T10 Collection Error Recovery", recovery},
	{U, 0, "T10 User Object Directory", NULL},
	{U, 1, "T10 User Object Information", NULL},
	{U, 2, "T10 User Object Quotas", user_quotas},
	{U, 3, "T10 User Object Timestamps", times},
	{U, 4, "T10 User Object Collections", NULL},
	{U, 5, "T10 User Object Policy/Security", security},
	{U, 6, "T10 User Object Error Recovery", recovery},
};

/* ---- looking up -------------------------------------------------------------------------- */

static bool is_on(const struct osd_std_row *row, enum osd_object_type type, uint32_t relative)
{
	return row->relative == relative && (row->types & type);
}

const struct osd_std_row *osd_std_find(enum osd_object_type type, uint32_t relative,
				       uint32_t number)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++)
		if (is_on(&rows[i], type, relative) && number >= rows[i].first &&
		    number <= rows[i].last)
			return &rows[i];
	return NULL;
}

const struct osd_std_row *osd_std_next(enum osd_object_type type, uint32_t relative,
				       const struct osd_std_row *row)
{
	for (row = row ? row + 1 : rows; row < rows + OSD_ARRAY_SIZE(rows); row++)
		if (is_on(row, type, relative))
			return row;
	return NULL;
}

const struct osd_std_page *osd_std_page(enum osd_object_type type, uint32_t relative)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(pages); i++)
		if (pages[i].type == type && pages[i].relative == relative)
			return &pages[i];
	return NULL;
}

size_t osd_form_bytes(const struct osd_form_field *form)
{
	size_t bytes = 0;

	for (; form && form->width; form++)
		bytes += (size_t)form->width * OSD_MAX(form->repeat, 1);
	return bytes;
}

/* ---- for people -------------------------------------------------------------------------- */

static uint32_t number_of(const struct osd_std_page *page)
{
	return osd_page_base(page->type) + page->relative;
}

static void print_row(FILE *out, const struct osd_std_page *page, const struct osd_std_row *row)
{
	static const char *const settable[] = {"no", "yes", "inherited"};
	char numbers[32], lengths[32];

	if (row->first == row->last)
		snprintf(numbers, sizeof(numbers), "%" PRIX32, row->first);
	else
		snprintf(numbers, sizeof(numbers), "%" PRIX32 "-%" PRIX32, row->first, row->last);
	if (row->min_length == row->max_length)
		snprintf(lengths, sizeof(lengths), "%u", row->max_length);
	else
		snprintf(lengths, sizeof(lengths), "%u-%u", row->min_length, row->max_length);
	fprintf(out, "%08" PRIX32 "\t%s\t%s\t%s\t%s\t%s\n", number_of(page), page->name, numbers,
		lengths, settable[row->settable], row->what);
}

void osd_attr_print_table(FILE *out)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(pages); i++) {
		const struct osd_std_page *page = &pages[i];
		const struct osd_std_row itself = {.max_length = OSD_PAGE_IDENTIFICATION,
						   .min_length = OSD_PAGE_IDENTIFICATION,
						   .what = "page identification"};
		const struct osd_std_row *row = NULL;

		print_row(out, page, &itself);
		while ((row = osd_std_next(page->type, page->relative, row)))
			print_row(out, page, row);
		if (page->form)
			fprintf(out, "%08" PRIX32 "\t%s\tform\t%zu\tno\tlength of the page form\n",
				number_of(page), page->name, osd_form_bytes(page->form));
	}
}
