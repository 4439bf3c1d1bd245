/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kept.h -- what functions have computed of stored data, kept for later READs (docs/views.md, "Kept results").
 *
 * A result is kept under what it was computed from: the object with the stored bytes, the version of its data, and a
 * hash of the stack.  So nothing is ever invalidated: after a change the key is another one, and what was kept goes
 * when its room is needed.  A result has units, each kept for itself: of a stack with blocks some whole blocks, of a
 * sequential stack all of the data.
 *
 * The bytes lie in a file without a name on the SSD, or in the data directory, or without both in memory.  It ends with
 * the target.  Its slots have OSD_KEPT_SLOT bytes; the unit that was read the longest ago loses its slots first.
 * While the file system is almost full, nothing more is kept: objects need the space more.
 *
 * Errors: a unit that cannot be kept or read is not there.  Any thread; the lock is a leaf, and not held over reads and
 * writes of the file. */
#ifndef OSD_FUNCTION_KEPT_H
#define OSD_FUNCTION_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "object/object.h"

#define OSD_KEPT_SLOT (16u << 10) /* bytes; a unit takes whole slots, at least one */
#define OSD_KEPT_MAX  (UINT64_C(1) << 40) /* the largest quota; its units take 1 % of it in memory at most */

struct osd_kept;

struct osd_kept_key {
	struct osd_object_id source;
	struct osd_data_version version;
	uint8_t stack[32]; /* of what the data pass through: stack_note.c */
};

struct osd_kept_figures {
	uint64_t quota_bytes, kept_bytes, units;
	uint64_t hits, misses, shared; /* READs: answered from here, computed, and those that waited for another's */
	uint64_t evicted;	       /* units, for room */
	uint64_t failed;	       /* units that could not be written or read */
	uint64_t computed_usec;	       /* by READs that computed */
};

/* How a READ got its data. */
enum osd_kept_use { OSD_KEPT_HIT, OSD_KEPT_MISS, OSD_KEPT_SHARED };

/* quota: bytes, at least OSD_KEPT_SLOT.  directory NULL: in memory. */
enum osd_status osd_kept_open(const char *directory, uint64_t quota, struct osd_kept **ret_kept);
void osd_kept_close(struct osd_kept *kept); /* NULL is fine */
/* The bytes of a unit of a stack with blocks of so many bytes. */
uint32_t osd_kept_unit(uint32_t block);
/* Copies the unit.  If it is there already, nothing happens. */
void osd_kept_put(struct osd_kept *kept, const struct osd_kept_key *key, uint64_t unit,
		  const void *bytes, size_t length);
/* Unit 0 in parts, of a result that is longer than memory should hold.  It is there once it has ended, and good.
 * OSD_E_QUOTA: it is longer than the quota; OSD_E_BUSY: other results that are read or made have the slots;
 * OSD_E_NO_SPACE: the file cannot be written.  After such an append, end it.  One thread at a time; end: NULL is
 * fine. */
struct osd_kept_draft;
enum osd_status osd_kept_begin(struct osd_kept *kept, const struct osd_kept_key *key,
			       struct osd_kept_draft **ret_draft);
enum osd_status osd_kept_append(struct osd_kept *kept, struct osd_kept_draft *draft,
				const void *bytes, size_t length);
void osd_kept_end(struct osd_kept *kept, struct osd_kept_draft *draft, bool good);
/* Reads at most length bytes of the unit from an offset in it.  *ret_whole: bytes that it has.  False: it is not there;
 * or with nowait, it is not in the page cache. */
bool osd_kept_get(struct osd_kept *kept, const struct osd_kept_key *key, uint64_t unit,
		  uint64_t from, void *buffer, size_t length, bool nowait, uint64_t *ret_whole);
/* Counts a READ.  usec: its time, if it has computed. */
void osd_kept_count(struct osd_kept *kept, enum osd_kept_use use, uint64_t usec);
/* kept NULL: zeros.  Other locks may be held. */
void osd_kept_figures(struct osd_kept *kept, struct osd_kept_figures *ret_figures);

#endif
