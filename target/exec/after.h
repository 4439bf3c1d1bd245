/* SPDX-License-Identifier: GPL-2.0-or-later */
/* after.h -- jobs that wait for other jobs (EXEC parameter AFTER).
 *
 * A job that has not started holds an edge to each job it names.  Edges hang on a node per job that
 * is waited for, which exists as long as one of them is not settled: met and cut, or, when that job
 * ended otherwise than asked, kept until the end of the one that waited is in the store.  While
 * there is a node the record of its job cannot be removed, so whoever finds at the next start that
 * a job it waited for is gone knows that it ended as asked.  Nothing else has to be written when a
 * job ends.
 *
 * What follows from an end is done by a thread of its own in steps of bounded length: thousands of
 * jobs may wait for one. */
#ifndef OSD_EXEC_AFTER_H
#define OSD_EXEC_AFTER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "exec/job_record.h"
#include "exec/job_table.h"
#include "wire/exec_param.h"

struct osd_array;
struct osd_exec;
struct osd_job;
struct osd_after_node;

struct osd_after_edge {
	struct osd_after_edge *next, **link; /* among the node's; link NULL: cut */
	struct osd_after_node *node;
	struct osd_job *job; /* that waits */
	struct osd_job_predecessor on;
	uint8_t found; /* how it had ended when the accepting transaction looked; 0: it had not */
	uint8_t ended; /* how it ended while the edge was there */
};

/* Of a job that names others, until its last reference goes. */
struct osd_after {
	size_t left;		       /* edges not met, and one while the job is being accepted */
	struct osd_after_edge *failed; /* the first that cannot be met any more; NULL: none */
	struct osd_job *next_failed;
	size_t count;
	struct osd_after_edge edges[];
};

/* In struct osd_exec. */
struct osd_after_work {
	struct osd_job_table awaited;	 /* nodes, by the job they stand for */
	struct osd_after_node *settling; /* its job has ended: edges to look at */
	struct osd_job *failed;		 /* to be ended, a reference each */
	struct osd_array *arrays;	 /* with something to do, a reference to each's head */
	pthread_cond_t work;
	pthread_t thread;
	bool started;
};

enum osd_status osd_after_init(struct osd_after_work *work);
/* No job names another any more. */
void osd_after_release(struct osd_after_work *work);

/* What the parameters name; *ret_after NULL: nothing.  OSD_E_NO_MEMORY. */
enum osd_status osd_after_create(const struct osd_exec_params *params,
				 struct osd_after **ret_after);
/* What the store says of a job that named others, in *ret_after. */
enum osd_status osd_after_load(struct osd_txn *txn, struct osd_object_id id,
			       struct osd_after **ret_after);

/* exec->lock held: edges to what job->after names.  From here on no end is missed. */
enum osd_status osd_after_watch(struct osd_exec *exec, struct osd_job *job);
/* The record of a job of the same principal as the one being submitted (by), from memory where a member has
 * none in the store yet.  OSD_E_CDB_FIELD: it is no job, or another principal's, or in a partition that
 * demands more than the submission has. */
enum osd_status osd_exec_find_own(struct osd_exec *exec, struct osd_txn *txn,
				  struct osd_object_id id, const struct osd_job_record *by,
				  struct osd_job_record *ret_record);
/* In the accepting transaction: OSD_E_CDB_FIELD as above. */
enum osd_status osd_after_check(struct osd_exec *exec, struct osd_txn *txn, struct osd_after *after,
				const struct osd_job_record *by);
enum osd_status osd_after_put(struct osd_txn *txn, struct osd_object_id id,
			      const struct osd_after *after);
/* exec->lock held: the job is in the table and may be released, or ended. */
void osd_after_admitted(struct osd_exec *exec, struct osd_job *job);
/* Jobs found at restart, all of them in the table; before any thread starts. */
enum osd_status osd_after_recover(struct osd_exec *exec);

/* exec->lock held in what follows. */

/* A job leaves the table. */
void osd_after_ended(struct osd_exec *exec, struct osd_job *job);
/* Cuts all its edges. */
void osd_after_drop(struct osd_exec *exec, struct osd_job *job);
/* Whether a job that has ended still decides about others: its record must stay. */
bool osd_after_awaited(const struct osd_exec *exec, struct osd_object_id id);
/* The end of the job could not be stored and is found again at the next start: until then the jobs
 * that decide about it stay. */
void osd_after_pin(struct osd_job *job);
/* How many jobs it still waits for, and the first of them. */
size_t osd_after_waits_for(const struct osd_job *job, struct osd_object_id *ret_first);
/* A change of the job that was under way is over. */
void osd_after_changed(struct osd_exec *exec, const struct osd_job *job);

void *osd_after_main(void *exec);

#endif
