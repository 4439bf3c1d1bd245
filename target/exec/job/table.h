/* SPDX-License-Identifier: GPL-2.0-or-later */
/* table.h -- the table of jobs, and the transitions between their states.  Pure: no locks, no I/O, no clock; the
 * caller serialises.
 *
 *   QUEUED <-> HELD
 *   QUEUED -> STARTING -> RUNNING -> COMPLETING -> one terminal state
 *   QUEUED, HELD -> CANCELLED or FAILED without having run
 *   STARTING, RUNNING, COMPLETING -> QUEUED (another attempt)
 *   STARTING, RUNNING -> SANDBOX_LOST or CANCELLED (found so at a restart)
 *
 * Whatever this does not list is refused. */
#ifndef OSD_EXEC_JOB_TABLE_H
#define OSD_EXEC_JOB_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "exec/record/record.h"

#define OSD_JOB_EVENTS(X)                                                                          \
	X(HOLD)	     /* asked for */                                                               \
	X(RELEASE)   /* asked for */                                                               \
	X(TAKE)	     /* a proxy took it from the queue */                                          \
	X(HAND_OVER) /* the sandbox has received the job */                                        \
	X(COLLECT)   /* the script is over or was ended: its output is being collected */          \
	X(AGAIN)     /* another attempt */                                                         \
	X(COMPLETE)                                                                                \
	X(FAIL)                                                                                    \
	X(CANCEL)                                                                                  \
	X(TIME_OUT)                                                                                \
	X(RUN_OUT) /* of memory */                                                                 \
	X(EXCEED)  /* another limit */                                                             \
	X(LOSE)	   /* the sandbox */

enum osd_job_event {
#define X(symbol) OSD_JOB_EVENT_##symbol,
	OSD_JOB_EVENTS(X)
#undef X
		OSD_JOB_EVENT_COUNT
};

/* False: refused, *ret_state untouched. */
bool osd_job_transition(enum osd_job_state state, enum osd_job_event event,
			enum osd_job_state *ret_state);
/* The event that leads to a terminal state. */
enum osd_job_event osd_job_event_to(enum osd_job_state terminal);

/* Embedded in the caller's structure for each job. */
struct osd_job_node {
	struct osd_object_id id;
	struct osd_job_node *next; /* the table's */
};

struct osd_job_table {
	struct osd_job_node **buckets;
	size_t bucket_count; /* power of two */
	size_t count;
};

enum osd_status osd_job_table_init(struct osd_job_table *table);
/* The caller owns the nodes. */
void osd_job_table_release(struct osd_job_table *table);
/* The id must not be in the table.  Never fails: if the table cannot grow, it gets slower. */
void osd_job_table_insert(struct osd_job_table *table, struct osd_job_node *node);
void osd_job_table_remove(struct osd_job_table *table, struct osd_job_node *node);
struct osd_job_node *osd_job_table_find(const struct osd_job_table *table, struct osd_object_id id);
/* All nodes, in no order: the first one follows NULL, and NULL follows the last.  The table must not change
 * meanwhile. */
struct osd_job_node *osd_job_table_next(const struct osd_job_table *table,
					const struct osd_job_node *node);

#endif
