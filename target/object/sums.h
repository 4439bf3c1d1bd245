/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums.h -- checksums of objects' data (store/sums.h; docs/reliability.md): whether they are kept, what is
 * found damaged, and the scrub that looks for it.
 * Not here: the files of sums. */
#ifndef OSD_OBJECT_SUMS_H
#define OSD_OBJECT_SUMS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "object/object.h"
#include "store/sums.h"

enum osd_sums_use { OSD_SUMS_AS_STORED, OSD_SUMS_ON, OSD_SUMS_OFF };
enum osd_sums_verify { OSD_VERIFY_SCRUB, OSD_VERIFY_ALWAYS };

struct osd_sums_config {
	enum osd_sums_use use;
	enum osd_sums_verify verify; /* by the scrub alone, or with every read too */
	uint64_t scrub_rate;	     /* bytes per second at most */
	uint64_t scrub_days; /* between the end of one scrub and the next; 0: only on request */
};

#define OSD_SCRUB_RATE_MIN (UINT64_C(64) << 10)
#define OSD_SCRUB_RATE_MAX (UINT64_C(1) << 40)
#define OSD_SCRUB_RATE	   (UINT64_C(64) << 20)
#define OSD_SUMS_LIST	   256u /* damaged blocks in the list at most */

/* A block that differs from its sum. */
struct osd_damaged_block {
	struct osd_object_id id;
	uint64_t offset;
	bool seen; /* since the last scrub began */
};

enum osd_scrub_state { OSD_SCRUB_IDLE, OSD_SCRUB_RUNNING, OSD_SCRUB_STOPPED };

/* One walk over all objects.  Its progress is in META, so that a restart continues it. */
struct osd_scrub_pass {
	enum osd_scrub_state state;
	uint64_t began_ms, ended_ms; /* 0: never */
	uint64_t partition_id, object_id; /* the first object not visited yet */
	uint32_t incarnation;
	uint64_t objects;		/* visited */
	uint64_t blocks, made, damaged; /* compared, given a sum, damaged */
	uint64_t failed;		/* objects that could not be read */
};

struct osd_sums {
	bool kept, compares; /* constant once opened; compares: with every read */
	struct osd_sums_figures figures;
	_Atomic uint64_t rate;
	uint64_t interval_ms; /* constant */
	struct osd_lock lock;
	struct osd_damaged_block list[OSD_SUMS_LIST]; /* under lock */
	size_t count;				      /* under lock */
	struct osd_scrub_pass pass;		      /* under lock; changed by the scrub's thread */
	bool start, stop;			      /* under lock: told to */
};

/* Figures since the store was opened, and the scrub's last pass. */
struct osd_sums_stats {
	bool kept;
	uint64_t checked, made, damaged, forgotten; /* blocks; files */
	uint64_t damaged_now;			    /* blocks remembered as damaged */
	struct osd_scrub_pass pass;
};
void osd_sums_stats(struct osd_objects *objects, struct osd_sums_stats *ret_stats);
bool osd_objects_keep_sums(const struct osd_objects *objects);
/* Whether every read of data compares them: it reads the caller's buffer, which nobody else may change then. */
bool osd_objects_compare_reads(const struct osd_objects *objects);
/* The first byte of the first damaged block with bytes from start on; start if the list has none. */
uint64_t osd_object_first_damage(struct osd_object *object, uint64_t start);

/* ---- for this folder alone ------------------------------------------------------------------- */

/* Turns checksums on or off in the superblocks and wraps the stores.  Call it before recovery. */
enum osd_status osd_objects_open_sums(struct osd_objects *objects,
				      const struct osd_sums_config *config, char message[256]);
/* Decides which sums are valid after the end of the last run.  Call it before any data file is opened. */
enum osd_status osd_sums_begin_run(struct osd_objects *objects);
/* Makes sums and data durable.  Call it before the store is marked as closed. */
enum osd_status osd_sums_end_run(struct osd_objects *objects);
/* Checks a range of an object.  The caller has the range locked; if check makes sums, it has each block
 * locked as a whole. */
enum osd_status osd_object_check_sums(struct osd_object *object, uint64_t offset, uint64_t length,
				      struct osd_sums_check *check);
/* Adds the block of the object arg to the list and logs it, once for each block.  Once the list is full, it
 * logs some others a second. */
osd_sums_damage_fn osd_sums_note_damage;
/* Finds the damaged blocks after a read of that range, which is still locked, has failed. */
void osd_sums_note_read(struct osd_object *object, uint64_t offset, uint64_t length);
/* Called before and after a pass.  After it, the blocks that the pass did not find again leave the list. */
void osd_sums_begin_pass(struct osd_objects *objects);
void osd_sums_end_pass(struct osd_objects *objects);

/* ---- scrub.c */

/* Loads the state of the last pass.  Call it once recovery is over. */
enum osd_status osd_scrub_load(struct osd_objects *objects);
/* A timer that calls the helper when a pass is due; the helper's work. */
uint64_t osd_scrub_check(void *objects);
void osd_scrub_work(void *objects);
/* start true: starts a pass, or continues a stopped one.  False: stops it. */
void osd_scrub_tell(struct osd_objects *objects, bool start);

#endif
