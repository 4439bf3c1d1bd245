/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proxy_ops.h -- the calls a script makes, each checked and done through object/ (design D12, D17):
 * one row per operation with the phase it is permitted in, what it may address and whether it
 * changes anything.
 *
 * A session is one job in one sandbox, used by one thread.  The frame is copied before it is looked
 * at; of the body, lists are copied, object data is moved as it is; nothing from the sandbox is a
 * pointer.
 *
 * Zones: root and partition zones include everything in them, also what is created; collection
 * zones include the collection, to read, and its members of the moment an object is first used;
 * object zones that object.  The latter two create nothing and change no membership. */
#ifndef OSD_EXEC_PROXY_OPS_H
#define OSD_EXEC_PROXY_OPS_H

#include <stdatomic.h>

#include "base/lock.h"
#include "exec/call_gate.h"
#include "exec/job.h"
#include "security/decide.h"
#include "wire/proxy_frame.h"

struct osd_exec;

#define OSD_SESSION_OPEN       32 /* objects kept open between calls */
#define OSD_SESSION_PARTITIONS 8
#define OSD_SESSION_BUCKETS    64

enum osd_session_phase { OSD_PHASE_RUN = 1, OSD_PHASE_OVER = 2 };

struct osd_session_hooks {
	/* Before the first change the script makes: must be durable when it returns OSD_OK. */
	enum osd_status (*wrote)(void *arg);
	/* In the transaction that creates the companion object of a long result. */
	enum osd_status (*spilled)(void *arg, struct osd_txn *txn, uint64_t companion);
	/* message: clean UTF-8, not terminated. */
	void (*progress)(void *arg, uint16_t progress, const uint8_t *message, size_t length);
	/* Sends descriptors to the sandbox; they stay the session's. */
	enum osd_status (*share)(void *arg, const int *fds, size_t count);
	/* Whether the job has been asked to end; whether its sandbox is gone.  Any of them NULL: never. */
	bool (*is_to_end)(void *arg);
	bool (*is_over)(void *arg);
	void *arg;
};

struct osd_session {
	/* Set by the owner. */
	struct osd_objects *objects;
	struct osd_exec *exec; /* NULL in tests: nobody to tell of removals */
	struct osd_call_gate *gate; /* borrowed; NULL in tests: calls hold no places */
	struct osd_zone zone;
	struct osd_object_id job;
	struct osd_job_limits limits;
	struct osd_job_rights rights;
	struct osd_session_hooks hooks;

	/* Read by others while the session runs. */
	_Atomic uint64_t bytes_read, bytes_written, calls, result_length;

	_Atomic bool revoked; /* its rights have ended: no call is served any more */
	struct osd_lock
		shares_lock; /* of shares: changed by the session's thread, seen by the sweep */

	uint16_t last_op; /* the call that was served last */

	/* Results. */
	enum osd_session_phase phase;
	uint16_t fault;		/* why the session was ended: enum osd_job_reason; 0: it was not */
	uint8_t *result;	/* the first OSD_JOB_PAYLOAD_MAX bytes; NULL: none */
	uint64_t result_object; /* a longer result is here, whole; 0: it is not longer */
	bool result_json;
	enum osd_finish_kind finish_kind; /* phase OVER */
	uint32_t exit_code;
	uint8_t *traceback;
	size_t traceback_length;
	char line[OSD_JOB_MESSAGE_MAX + 1];

	/* The session's own. */
	struct osd_access access; /* what the call under way needs */
	uint64_t policy_seen;	  /* osd_objects_policy_changes when its rights were looked at */
	/* Other partitions than the zone's that took the job's method, with that number then (rights.c). */
	struct osd_session_partition {
		uint64_t id, changes;
	} entered[OSD_SESSION_PARTITIONS];
	struct osd_allowed allowed; /* attributes it may touch */
	uint64_t allowed_seen;	    /* that number when they were read */
	bool wrote;
	bool ahead;		  /* the last call had OSD_CALL_AHEAD */
	enum osd_status ahead_status; /* how it went */
	struct osd_object *companion;
	struct osd_session_entry {
		struct osd_object_id id;
		struct osd_object *object; /* NULL: free */
	} open[OSD_SESSION_OPEN];
	size_t next_open;
	/* Objects whose descriptors the script has been passed, by id.  What it closes it may have copied or
	 * mapped before, so they stay until the session ends. */
	struct osd_session_share {
		struct osd_session_share *next;
		struct osd_object_id id;
		uint64_t created_ms;
		struct osd_object *object; /* NULL: the script says that it has closed them */
		bool passed; /* or about to be: the sweep looks at it */
		size_t fd_count;
	} * shares[OSD_SESSION_BUCKETS]; /* changed under shares_lock */
	size_t share_fds;		 /* of those not closed */
	size_t share_count;		 /* of all */
	struct osd_session_step {
		bool is_long;
		bool cleans_up; /* it is long, and the job had been asked to end when it began */
		bool inside;	/* a place in the gate is held */
		unsigned pieces;
		uint64_t bytes; /* of this step */
	} step;			/* of the call under way (long_call.h) */
	struct osd_session_watch {
		struct osd_txn_watcher watcher;
		uint64_t records; /* seen by it */
		bool stopped;
	} watch; /* of the transaction under way (osd_long_call_watch) */
	uint8_t *scratch; /* OSD_BODY_MAX */
};

/* OSD_E_NO_MEMORY.  The fields to be set by the owner are kept, the rest initialised. */
enum osd_status osd_session_init(struct osd_session *session);
/* Closes everything; fine on one whose init failed. */
void osd_session_release(struct osd_session *session);

enum osd_served {
	OSD_SERVED,	  /* answered */
	OSD_SERVED_LAST,  /* answered, and the job is over */
	OSD_SERVED_FAULT, /* not answered: end the sandbox; session->fault says why */
};

/* One call.  frame and body may change under us; the answer's body may be the same memory as the
 * call's. */
enum osd_served osd_session_serve(struct osd_session *session, const uint8_t frame[OSD_FRAME_BYTES],
				  const uint8_t *body, uint8_t answer_frame[OSD_FRAME_BYTES],
				  uint8_t *answer_body);

/* ---- between proxy_ops.c, proxy_life.c, proxy_data.c, proxy_attrs.c and proxy_query.c ---------------------- */

/* One call being served. */
struct osd_op {
	struct osd_session *session;
	struct osd_call call;
	const uint8_t *body; /* shared with the sandbox */
	struct osd_answer answer;
	uint8_t *out;		/* OSD_BODY_MAX bytes for the answer's body, shared */
	enum osd_status status; /* of the object layer, for the answer's code */
	const char *why;	/* overrides the status's meaning in the message */
};

typedef enum osd_status osd_op_fn(struct osd_op *op);

/* osd_txn_run() for a session's call: fn in a transaction that ends when the job is to end. */
enum osd_status osd_op_transact(struct osd_op *op,
				enum osd_status (*fn)(struct osd_txn *txn, struct osd_op *op));
/* OSD_E_PERMISSION unless the id is in the zone, and the call may touch it (rights.h). */
enum osd_status osd_session_check_zone(struct osd_session *session, struct osd_txn *txn,
				       struct osd_object_id id);
/* Whole partitions: things may be created and removed in it. */
bool osd_session_owns_partition(const struct osd_session *session, uint64_t partition_id);
/* The object, opened and checked on first use; borrowed. */
enum osd_status osd_session_open_object(struct osd_session *session, struct osd_object_id id,
					struct osd_object **ret_object);
/* Counts bytes against the job's limit; beyond it the job ends. */
enum osd_status osd_session_count_io(struct osd_session *session, _Atomic uint64_t *counter,
				     uint64_t bytes);
/* OSD_E_JOB_IN_WAY for an unfinished job's surrogate. */
enum osd_status osd_session_check_free(struct osd_txn *txn, struct osd_object_id id);

osd_op_fn osd_op_type, osd_op_create_partition, osd_op_remove_partition, osd_op_create, osd_op_remove,
	osd_op_create_collection, osd_op_remove_collection, osd_op_collection_add,
	osd_op_collection_drop;
osd_op_fn osd_op_result, osd_op_read, osd_op_write, osd_op_append, osd_op_truncate, osd_op_clear,
	osd_op_punch, osd_op_length, osd_op_flush, osd_op_share, osd_op_unshare, osd_op_getattr,
	osd_op_setattr, osd_op_listattr, osd_op_list, osd_op_query, osd_op_swapattr, osd_op_addattr;
void osd_session_release_data(struct osd_session *session);

#endif
