/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record.h -- the packed records of the object layer and their keys, as structures (docs/format.md
 * has the bytes).  Only record.c knows the layout. */
#ifndef OSD_OBJECT_RECORD_H
#define OSD_OBJECT_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"
#include "store/store.h"

enum osd_time {
	OSD_T_CREATED,
	OSD_T_ATTR_ACCESSED,
	OSD_T_ATTR_MODIFIED,
	OSD_T_DATA_ACCESSED,
	OSD_T_DATA_MODIFIED,
	OSD_T_COUNT
};

enum osd_record_flags {
	OSD_REC_LENGTH_RULES = 1, /* length counts, the files may be longer or shorter */
	OSD_REC_HAS_FILES = 2,	  /* a file may exist */
	OSD_REC_UNFINISHED = 4,	  /* surrogate of an unfinished job */
	OSD_REC_SURROGATE = 8,	  /* made as a job's surrogate, or for its result */
	OSD_REC_NAMED = 16,	  /* it has names (names.h) */
	OSD_REC_DIRECTORY = 32,	  /* a collection that may have entries */
	OSD_REC_STACKED = 64,	  /* a user object or collection with values of its own (stack.h) */
	OSD_REC_CHECKED = 7 << 7, /* WRITE, REMOVE, SET: hooks of its own check these (hooks.h) */
	OSD_REC_FOLLOWED = 1024,  /* hooks of its own follow its changes */
	OSD_REC_DUE = 2048,	  /* a hook has not followed its last change yet */
	OSD_REC_KNOWN = 4095,
};

/* A user object or a collection. */
struct osd_record {
	uint8_t type;		 /* enum osd_object_type */
	uint8_t collection_type; /* enum osd_collection_type */
	uint8_t head_on;	 /* enum osd_tier_head_on */
	uint16_t flags;
	uint64_t times[OSD_T_COUNT]; /* ms since 1970, 48 bits */
	uint64_t length;	     /* as last settled; true when reserved_bytes == length */
	uint64_t reserved_bytes;     /* >= the true length */
	uint64_t head_bytes;
	uint64_t generation;
	uint64_t spare_generation; /* recovery removes the files of this generation; 0: none */
	uint64_t max_length;	   /* quota */
	uint32_t attribute_count;  /* records in OSD_KV_ATTRIBUTES */
	uint32_t policy_tag;	   /* policy access tag; 0: look among the attributes */
	uint32_t attribute_units;  /* charged for them, or OSD_UNITS_UNKNOWN (attr_charge.c) */
	struct osd_data_version version; /* data_version.h */
};

/* The counter of a version that may be out of date: the object's data has changed, or may have, since the
 * record was written.  The reader of such a record gives the object a new version. */
#define OSD_VERSION_STALE UINT64_MAX

#define OSD_UNITS_UNKNOWN                                                                          \
	UINT32_MAX /* the record was last written by a release that did not count */
#define OSD_UNIT_BYTES	  16u

struct osd_quotas {
	uint64_t max_length;	  /* #1 */
	uint64_t capacity;	  /* #10001h */
	uint64_t object_count;	  /* #10002h */
	uint64_t collections;	  /* #10081h, per user object */
	uint64_t partition_count; /* #20002h; root only */
};

struct osd_partition_record {
	uint32_t incarnation;
	uint8_t bypass; /* timestamps: 7Fh = do not update */
	uint64_t times[OSD_T_COUNT];
	struct osd_quotas quotas;
	uint32_t user_tag; /* policy access tag of new user objects */
};

struct osd_root_record {
	uint32_t epoch;		   /* of the store; FORMAT OSD begins a new one */
	uint32_t next_incarnation; /* never goes back */
	uint64_t next_partition_id;
	uint64_t capacity; /* as formatted; 0: all */
	struct osd_partition_record common;
	uint8_t isolation; /* default method; 0: range */
};

/* How far the value index of a page is (value_index.h). */
enum osd_index_stage {
	OSD_INDEX_UNDECLARED = 0,
	OSD_INDEX_CLEAR = 1,
	OSD_INDEX_FILL = 2,
	OSD_INDEX_DONE = 3,
	OSD_INDEX_DROP = 4,
};

struct osd_index_record {
	enum osd_index_stage stage;
	uint64_t next_object; /* FILL: entries before (object, number) are made */
	uint32_t next_number;
};

#define OSD_INDEX_RECORD_BYTES	   16
#define OSD_RECORD_BYTES	   108
#define OSD_RECORD_BYTES_FIRST	   96 /* of releases without data versions: version 0 of opening 0 */
#define OSD_PARTITION_RECORD_BYTES 84
#define OSD_ROOT_RECORD_BYTES	   112

/* decode: OSD_E_MEDIUM for another length, version or value than any release has written. */
void osd_record_encode(const struct osd_record *record, uint8_t bytes[OSD_RECORD_BYTES]);
enum osd_status osd_record_decode(const void *bytes, size_t length, struct osd_record *ret_record);
void osd_partition_record_encode(const struct osd_partition_record *record,
				 uint8_t bytes[OSD_PARTITION_RECORD_BYTES]);
enum osd_status osd_partition_record_decode(const void *bytes, size_t length,
					    struct osd_partition_record *ret_record);
void osd_root_record_encode(const struct osd_root_record *record,
			    uint8_t bytes[OSD_ROOT_RECORD_BYTES]);
enum osd_status osd_root_record_decode(const void *bytes, size_t length,
				       struct osd_root_record *ret_record);

void osd_index_record_encode(const struct osd_index_record *record,
			     uint8_t bytes[OSD_INDEX_RECORD_BYTES]);
enum osd_status osd_index_record_decode(const void *bytes, size_t length,
					struct osd_index_record *ret_record);

/* ---- keys -------------------------------------------------------------------------------- */

/* The ids of an object and the incarnation of its partition, which records and files are named after. */
struct osd_place {
	uint64_t partition_id;
	uint32_t incarnation; /* of the partition; root: the epoch */
	uint64_t object_id;   /* 0: the partition or root itself */
};

/* Another object of the same partition. */
static inline struct osd_place osd_place_beside(const struct osd_place *place, uint64_t object_id)
{
	return (struct osd_place){place->partition_id, place->incarnation, object_id};
}

/* The head file of the object there. */
static inline struct osd_data_name osd_place_data_name(const struct osd_place *place,
						       uint64_t generation)
{
	return (struct osd_data_name){.partition_id = place->partition_id,
				      .incarnation = place->incarnation,
				      .object_id = place->object_id,
				      .generation = generation};
}

#define OSD_KEY_MAX	       48
#define OSD_KEY_PARTITION_PART 12 /* bytes of partition id and incarnation that begin most keys */
#define OSD_KEY_OBJECT_PART    20 /* and of the object id */

struct osd_key {
	uint8_t bytes[OSD_KEY_MAX];
	size_t length;
};

struct osd_key osd_key_partition(uint32_t epoch, uint64_t partition_id);
struct osd_key osd_key_object(const struct osd_place *place);
struct osd_key osd_key_attribute(const struct osd_place *place, uint32_t page, uint32_t number);
/* Members: place is the collection; id 0 is the collection's own mark.  Memberships: place is the
 * user object, id the collection. */
struct osd_key osd_key_member(const struct osd_place *place, uint64_t id);

enum osd_meta_kind {
	OSD_META_ROOT = 'R',	    /* the root record */
	OSD_META_BOOT = 'B',	    /* how often the store was opened: upper half of generations */
	OSD_META_CLEAN = 'C',	    /* the store was closed in order */
	OSD_META_ID_MARK = 'I',	    /* partition -> all ids below were given out */
	OSD_META_DEAD_FILES = 'D',  /* object's files to remove */
	OSD_META_DRAFT_FILES = 'N', /* the same, if they are still there when the store is opened */
	OSD_META_DEAD_PARTITION = 'P',
	OSD_META_DEAD_EPOCH = 'E',
	OSD_META_INDEX = 'X',	   /* partition, page -> the stage of its value index */
	OSD_META_SUMS = 'S',	   /* which checksums are valid, in a store that keeps them (sums.c) */
	OSD_META_SCRUB = 'Q',	   /* progress of the scrub (scrub.c) */
	OSD_META_INDEX_BOOT = 'V', /* the last opening by a release that keeps indexes */
	OSD_META_VERSIONS = 'W',   /* which data versions are valid (data_version.c) */
};

struct osd_key osd_key_meta(enum osd_meta_kind kind);
struct osd_key osd_key_meta_partition(enum osd_meta_kind kind, uint64_t partition_id,
				      uint32_t incarnation);
struct osd_key osd_key_index_stage(uint64_t partition_id, uint32_t incarnation, uint32_t page);
struct osd_key osd_key_files(enum osd_meta_kind kind, const struct osd_place *place,
			     uint64_t generation);
struct osd_key osd_key_dead_epoch(uint32_t epoch);

/* The place that a key of OSD_KEY_OBJECT_PART bytes, or more, begins with. */
struct osd_place osd_key_place(const uint8_t *bytes);

static inline struct osd_bytes osd_key_bytes(const struct osd_key *key)
{
	return (struct osd_bytes){key->bytes, key->length};
}
/* Puts a record under this key, in place of what is there. */
static inline enum osd_status osd_key_put(struct osd_kv_txn *kv, enum osd_kv_table table,
					  const struct osd_key *key, const void *value,
					  size_t length)
{
	return osd_kv_put(kv, table, osd_key_bytes(key), (struct osd_bytes){value, length}, 0);
}

#endif
