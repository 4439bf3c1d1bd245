/* SPDX-License-Identifier: GPL-2.0-or-later */
/* heads.h -- which device has an object's first bytes, where there are two (docs/tiers.md): settings,
 * figures, and moving heads from one to the other.
 * Not here: reading and writing the two files (store/tier.h). */
#ifndef OSD_OBJECT_HEADS_H
#define OSD_OBJECT_HEADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "object/object.h"
#include "object/record.h"
#include "store/tier.h"

struct osd_partition;

/* ---- heads ------------------------------------------------------------------------------------ */

struct osd_heads {
	/* Settings; head_page.c has them in a table */
	_Atomic uint64_t head_bytes; /* of new objects */
	_Atomic uint64_t policy;     /* enum osd_heads_policy */
	_Atomic uint64_t high, low;  /* percent of the SSD */
	_Atomic uint64_t rate;	     /* bytes per second that the mover copies at most */
	_Atomic uint64_t draining;   /* 0, 1 */
	/* osd_head_escape.  open.c sets it, since head_move.c itself uses files that call it. */
	bool (*escape)(struct osd_object *object);
	/* State */
	_Atomic bool drained; /* draining, and no head was left on the SSD */
	_Atomic bool wanted;  /* a head may be where it should not be */
	/* Figures, by enum osd_tier_head_on: to there, since the start */
	_Atomic uint64_t moved[2], moved_bytes[2];
	_Atomic uint64_t passed_over; /* by the last pass: in use, or the move failed */
	/* Of the mover's thread alone: how the last pass failed, and how long it then waits. */
	uint64_t failures, failing_gap_usec;
};

/* Numbers of page B000_0003h. */
enum {
	OSD_HEADS_SIZE = 1,
	OSD_HEADS_POLICY,
	OSD_HEADS_HIGH,
	OSD_HEADS_LOW,
	OSD_HEADS_RATE,
	OSD_HEADS_DRAIN,
	OSD_HEADS_SSD_TOTAL,
	OSD_HEADS_SSD_FREE,
	OSD_HEADS_HDD_TOTAL,
	OSD_HEADS_HDD_FREE,
	OSD_HEADS_SSD_BYTES,
	OSD_HEADS_HDD_BYTES,
	OSD_HEADS_TO_SSD,
	OSD_HEADS_TO_HDD,
	OSD_HEADS_TO_SSD_BYTES,
	OSD_HEADS_TO_HDD_BYTES,
	OSD_HEADS_PASSED_OVER,
	OSD_HEADS_END
};
#define OSD_HEADS_PERCENT_MIN 1
#define OSD_HEADS_PERCENT_MAX 99

/* ---- heads.c, head_move.c, mover.c ------------------------------------------------------------ */

void osd_heads_init(struct osd_objects *objects, const struct osd_heads_config *config);
/* Loads the settings that the store keeps.  Call it when the epoch is known. */
enum osd_status osd_heads_load(struct osd_objects *objects);
bool osd_heads_two_roots(const struct osd_objects *objects);
/* Head size of a new object; OSD_TIER_ONE with one root. */
uint64_t osd_heads_default(const struct osd_objects *objects);
/* Whether the SSD stays below that percentage with more bytes on it. */
bool osd_heads_below(const struct osd_objects *objects, uint64_t percent, uint64_t more);
/* The device that a head should be on, apart from the room there. */
enum osd_tier_head_on osd_head_goal(const struct osd_objects *objects, uint64_t head_bytes,
				    uint64_t length);
/* Decides the device when the record's object gets its first bytes, up to length. */
void osd_head_place(struct osd_objects *objects, uint64_t length, struct osd_record *record);
/* Counts a head after the commit of the decision of osd_head_place. */
void osd_head_placed(struct osd_objects *objects, const struct osd_record *record);
/* How many bytes of an object are head; 0 with one root. */
uint64_t osd_head_part(uint64_t head_bytes, uint64_t length);
void osd_heads_count(struct osd_partition *partition, uint8_t head_on, uint64_t before,
		     uint64_t after);
void osd_heads_count_length(struct osd_object *object, uint64_t before, uint64_t after);
/* Of all heads, by enum osd_tier_head_on. */
void osd_heads_bytes(struct osd_objects *objects, uint64_t ret_bytes[2]);
/* After a change of settings. */
void osd_heads_changed(struct osd_objects *objects);
/* Called after each copied piece, without a lock.  False: stop. */
struct osd_head_pace {
	bool (*step)(void *arg, uint64_t bytes);
	void *arg;
};
/* pace NULL: at once, wherever the head should be, and also while a sandbox holds descriptors.
 * OSD_E_EXISTS: the head is there already, or should not be there; OSD_E_BUSY: it cannot move now; OSD_E_TASK_ABORTED: stopped by pace.  The caller holds no
 * lock. */
enum osd_status osd_head_move(struct osd_object *object, enum osd_tier_head_on to,
			      const struct osd_head_pace *pace, uint64_t *ret_bytes);
/* Called when a device is full: moves the object's head to the other one.  True: try again.  The caller
 * holds no lock. */
bool osd_head_escape(struct osd_object *object);
/* mover.c: a timer that calls the helper when there may be heads to move; the helper's work. */
uint64_t osd_mover_check(void *objects);
void osd_mover_work(void *objects);
void osd_kick_mover(struct osd_objects *objects);

#endif
