/* SPDX-License-Identifier: GPL-2.0-or-later */
/* space.h -- how full the store and its devices are, and a log line when space has run out.
 *
 * A write that finds no space only counts.  The maintenance thread logs it within a second, at most
 * once a minute for each cause, so that no writer waits for the reader of the log.
 *
 * Any thread. */
#ifndef OSD_OBJECT_SPACE_H
#define OSD_OBJECT_SPACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct osd_objects;

/* The cause of a refusal. */
#define OSD_SPACE_CAUSES(X)                                                                        \
	X(SSD, "ssd")		/* the device of the heads; new heads then go to the main device */     \
	X(MAIN, "main")		/* the main device */                                              \
	X(CAPACITY, "capacity") /* the capacity that the store was given */

enum osd_space_cause {
#define X(symbol, name) OSD_SPACE_##symbol,
	OSD_SPACE_CAUSES(X)
#undef X
		OSD_SPACE_CAUSE_COUNT
};

/* Kept by struct osd_objects. */
struct osd_space_log {
	char *names[2];				       /* folders of SSD and main device; owned */
	_Atomic uint64_t refused[OSD_SPACE_CAUSE_COUNT]; /* since the store was opened */
	/* The maintenance thread's. */
	uint64_t logged[OSD_SPACE_CAUSE_COUNT];	   /* of these in log lines so far */
	uint64_t logged_usec[OSD_SPACE_CAUSE_COUNT]; /* when; 0: never */
};

#define OSD_SPACE_LARGEST 16

struct osd_space_partition {
	uint64_t id;
	uint64_t used_bytes; /* the objects' lengths */
	uint64_t charged_bytes; /* the bytes that the quota limits */
	bool has_quota;
	uint64_t quota_bytes;
	uint64_t objects;
};

struct osd_space {
	uint64_t capacity_bytes, used_bytes, charged_bytes;
	uint64_t free_bytes; /* bytes that may still be charged and that the devices have */
	uint64_t objects, partitions;
	struct {
		bool known; /* false: there is no such device, or it does not answer */
		uint64_t total_bytes, free_bytes; /* of its file system */
		uint64_t data_bytes;		  /* of objects' data there */
	} devices[2];				  /* SSD, main */
	uint64_t refused[OSD_SPACE_CAUSE_COUNT];
	struct osd_space_partition largest[OSD_SPACE_LARGEST]; /* by used bytes, largest first */
	unsigned largest_count;
};

/* Called once the stores are open. directories NULL: a store in memory. */
void osd_space_begin(struct osd_objects *objects, const char *ssd, const char *main);
void osd_space_end(struct osd_objects *objects);
/* Something found no room. */
void osd_space_refused(struct osd_objects *objects, enum osd_space_cause cause);
/* Logs refusals; the maintenance thread calls it. */
void osd_space_report(struct osd_objects *objects);
/* Called when there is room again after the database found none. */
void osd_space_found(struct osd_objects *objects);
void osd_objects_space(struct osd_objects *objects, struct osd_space *ret_space);

#endif
