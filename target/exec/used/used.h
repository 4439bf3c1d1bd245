/* SPDX-License-Identifier: GPL-2.0-or-later */
/* used.h -- the objects that a job has used: which versions of their data it read, in which ranges, and
 * which versions it made.  A session notes each call (exec/session/), the end of the job stores the list
 * with its record (record/store.c), and clients read it (exec/tell/payload.c).
 *
 * An object has one entry.  Its version is that of the bytes read: the caller gets it from the store
 * together with them.  An attribute, for example, has no version and is noted without one.
 *
 * Bounds: OSD_USED_OBJECTS_MAX entries, OSD_USED_RANGES_MAX ranges of an object.  An object with more
 * ranges counts as read whole.  Uses beyond the entries are counted in left_out, and the list then says
 * that it is not complete.  A failed allocation is treated in the same way.
 *
 * Inside: used.c has the list in memory, codec.c its bytes.  Locking: none, one thread at a time. */
#ifndef OSD_EXEC_USED_USED_H
#define OSD_EXEC_USED_USED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"

#define OSD_USED_OBJECTS_MAX	16384u
#define OSD_USED_RANGES_MAX	64u    /* of one object */
#define OSD_USED_ALL_RANGES_MAX 32768u /* of all objects together */

/* Clients see these numbers, and the store keeps them: never reuse one. */
enum osd_used_kind {
	OSD_USED_DATA = 0x0001,	      /* read, or the length asked for: version */
	OSD_USED_ATTRIBUTES = 0x0002, /* got */
	OSD_USED_MEMBERS = 0x0004,    /* of a collection, listed: version */
	OSD_USED_CONTENTS = 0x0008,   /* of a partition or the root, listed */
	OSD_USED_QUERY = 0x0010,      /* of a collection */
	OSD_USED_NAMES = 0x0020,      /* below a directory */
	OSD_USED_TYPE = 0x0040,	      /* asked whether it exists, and as what */
	OSD_USED_FUNCTION = 0x0080,   /* called */
	OSD_USED_REFUSED = 0x0100,    /* a call failed: no such object, no permission */
	OSD_USED_VARIED = 0x0200,     /* others changed it between the reads: version is the first */
	OSD_USED_WHOLE = 0x0400,      /* its ranges are not known, or were too many */
	OSD_MADE_DATA = 0x1000,	      /* written: before, after */
	OSD_MADE_ATTRIBUTES = 0x2000,
	OSD_MADE_OBJECT = 0x4000,     /* created */
	OSD_MADE_GONE = 0x8000,	      /* removed */
	OSD_MADE_MEMBERS = 0x0800,    /* of a collection, changed */
};
#define OSD_USED_VERSIONED (OSD_USED_DATA | OSD_USED_MEMBERS)

struct osd_used_range {
	uint64_t start, end;
};

struct osd_used_entry {
	struct osd_object_id id;
	struct osd_data_version version;       /* OSD_USED_VERSIONED */
	struct osd_data_version before, after; /* OSD_MADE_DATA */
	uint32_t kinds;			       /* enum osd_used_kind */
	uint32_t range_count;
	struct osd_used_range *ranges; /* ascending, apart */
};

/* Zeros: an empty list. */
struct osd_used {
	struct osd_used_entry *entries; /* in the order of their first use */
	uint32_t count, capacity;
	uint32_t *slots; /* by hash of the id: index of an entry + 1; twice the capacity */
	uint32_t last;	 /* the entry found last */
	uint32_t all_ranges;
	uint64_t left_out; /* uses of objects that have no entry */
};

void osd_used_release(struct osd_used *used);

/* Notes kinds without a version. */
void osd_used_note(struct osd_used *used, struct osd_object_id id, uint32_t kinds);
/* Bytes [offset, offset + length) of this version were read; length 0: only what the version says. */
void osd_used_read(struct osd_used *used, struct osd_object_id id, struct osd_data_version version,
		   uint64_t offset, uint64_t length);
/* Members of the collection were listed in this version. */
void osd_used_members(struct osd_used *used, struct osd_object_id id,
		      struct osd_data_version version);
void osd_used_wrote(struct osd_used *used, struct osd_object_id id, struct osd_data_version before,
		    struct osd_data_version after);
/* Whether all that the job has used are versions of data and members, each read as one. */
bool osd_used_is_versioned(const struct osd_used *used);
/* NULL: none. */
const struct osd_used_entry *osd_used_find(struct osd_used *used, struct osd_object_id id);

/* ---- bytes (codec.c) --------------------------------------------------------------------------- */

/* be16 OSD_USED_FORM, be16 0, be32 entries, be64 left out; then for each entry: be64 partition, be64 object,
 * be32 kinds, be32 ranges; with OSD_USED_VERSIONED a version of 12 bytes; with OSD_MADE_DATA two, before and
 * after; for each range be64 start, be64 end. */
#define OSD_USED_FORM 1

/* The caller frees *ret_bytes.  An empty list has length 0 and no bytes.  OSD_E_NO_MEMORY. */
enum osd_status osd_used_encode(const struct osd_used *used, uint8_t **ret_bytes,
				size_t *ret_length);
/* All but the ranges, into an empty list, which the caller releases also after a failure.  OSD_E_INTERNAL: damaged. */
enum osd_status osd_used_decode(const uint8_t *bytes, size_t length, struct osd_used *used);

#endif
