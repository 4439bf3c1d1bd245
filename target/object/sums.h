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
	uint64_t scrub_rate;	     /* bytes a second at most */
	uint64_t scrub_days;	     /* between the end of one scrub and the next; 0: when told to */
	unsigned (*commands_queued)(void *context); /* constant; NULL: there are none */
	void *context;
};

#define OSD_SCRUB_RATE_MIN (UINT64_C(64) << 10)
#define OSD_SCRUB_RATE_MAX (UINT64_C(1) << 40)
#define OSD_SCRUB_RATE	   (UINT64_C(64) << 20)
#define OSD_SUMS_LIST	   256u /* damaged blocks that are remembered */

/* A block that differs from its sum. */
struct osd_damaged_block {
	struct osd_object_id id;
	uint64_t offset;
	bool seen; /* since the last scrub began */
};

enum osd_scrub_state { OSD_SCRUB_IDLE, OSD_SCRUB_RUNNING, OSD_SCRUB_STOPPED };

/* One walk over all objects; kept in META, so that it goes on where it was. */
struct osd_scrub_pass {
	enum osd_scrub_state state;
	uint64_t began_ms, ended_ms; /* 0: never */
	uint64_t partition_id, object_id; /* the first that has not been looked at */
	uint32_t incarnation;
	uint64_t objects;		/* looked at */
	uint64_t blocks, made, damaged; /* compared, got their sum, differ */
	uint64_t failed;		/* objects that could not be read */
};

struct osd_sums {
	bool kept; /* constant once opened */
	struct osd_sums_figures figures;
	_Atomic uint64_t rate;
	uint64_t interval_ms;			    /* constant */
	unsigned (*commands_queued)(void *context); /* constant; NULL: there are none */
	void *context;
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
/* The first byte of the first damaged block that has bytes from start on; start when none is remembered. */
uint64_t osd_object_first_damage(struct osd_object *object, uint64_t start);

/* ---- for this folder alone ------------------------------------------------------------------- */

/* Turns them on or off in the superblocks and wraps the stores; before recovery. */
enum osd_status osd_objects_open_sums(struct osd_objects *objects,
				      const struct osd_sums_config *config, char message[256]);
/* Which sums are to be believed after what ended the last run; before any data file is opened. */
enum osd_status osd_sums_begin_run(struct osd_objects *objects);
/* Before the store is marked as closed: sums and data are on the devices. */
enum osd_status osd_sums_end_run(struct osd_objects *objects);
/* Of an object's bytes, with a lock on the blocks' bytes, on all of each block where check makes sums. */
enum osd_status osd_object_check_sums(struct osd_object *object, uint64_t offset, uint64_t length,
				      struct osd_sums_check *check);
/* Takes note, once of each block, and says so in the log. */
void osd_sums_note_damage(struct osd_object *object, uint64_t offset);
/* A read of that range, which is still locked, has met damage: finds which blocks. */
void osd_sums_note_read(struct osd_object *object, uint64_t offset, uint64_t length);
/* Before and after a pass: forgets the blocks that it has not met again. */
void osd_sums_begin_pass(struct osd_objects *objects);
void osd_sums_end_pass(struct osd_objects *objects);

/* ---- scrub.c */

/* What the store remembers of the last pass; once recovery is over. */
enum osd_status osd_scrub_load(struct osd_objects *objects);
void *osd_scrub_main(void *objects);
/* Starts a pass, or goes on with one that was stopped; stops it. */
void osd_scrub_tell(struct osd_objects *objects, bool start);
void osd_kick_scrub(struct osd_objects *objects);
/* Until kicked, told to stop (then false), or so long. */
bool osd_scrub_wait(struct osd_objects *objects, uint64_t usec);

#endif
