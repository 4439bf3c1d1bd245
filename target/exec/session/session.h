/* SPDX-License-Identifier: GPL-2.0-or-later */
/* session.h -- the calls that a script makes.  A table has a row for each call: the phase it
 * is permitted in, the objects it may address, and whether it changes anything.  Calls are checked here and
 * done through object/.
 *
 * A session is one job in one sandbox, used by one thread.  Scripts can change the shared memory at any
 * moment: the frame and the lists in the body are copied before they are read.  Object data is moved
 * without a copy.  Nothing from the sandbox is used as a pointer.
 *
 * Zones: a root or partition zone includes everything in it, and everything created there later.  A
 * collection zone includes the collection, to read, and its members.  A directory's zone also includes the
 * objects with names below it.  An object zone is that object.  Calls in a collection or object zone create
 * nothing and change no membership.
 *
 * This room knows no sandbox, no queue and no job beyond what the owner of the session sets.  A call
 * reaches the rest of the target through operations given at start (struct osd_session_host).
 *
 * Inside: serve.c has the table and serves one call, session.c has what all calls use.  life.c, data.c,
 * through.c, share.c, attrs.c, query.c, names.c and function.c have the calls.  rights.c checks permissions,
 * call_gate.c and long_call.c limit how many calls run at a time, and calls.c counts them.
 *
 * Locking: none of the target's.  shares_lock guards the descriptors that the sweep checks; the gate has a
 * lock of its own, a leaf. */
#ifndef OSD_EXEC_SESSION_SESSION_H
#define OSD_EXEC_SESSION_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "base/lock.h"
#include "base/pace.h"
#include "exec/record/record.h"
#include "exec/used/used.h"
#include "security/decide.h"
#include "wire/proxy_frame.h"

struct osd_exec;
struct osd_functions;
struct osd_keyring;
struct osd_function_code;

/* ---- the call gate (call_gate.c) --------------------------------------------------------------- */

/* Limits how many calls of scripts run at a time, and lets ordinary commands go first.
 * A call lets commands go first if any wait for a worker; it checks this again after it has waited
 * for earlier calls.  It waits for at most OSD_GATE_STEPS short sleeps.  Any thread. */
#define OSD_GATE_STEPS 20

struct osd_call_gate {
	unsigned (*commands_queued)(void *context); /* any thread; NULL: there are none */
	void *context;
	struct osd_lock lock;
	pthread_cond_t free;
	unsigned inside, most;	/* under lock; most: constant */
	unsigned waiting;	/* under lock; the waiting calls, without steps of long calls */
	_Atomic uint64_t given; /* calls that gave way */
};

void osd_call_gate_init(struct osd_call_gate *gate, unsigned most,
			unsigned (*commands_queued)(void *context), void *context);
void osd_call_gate_release(struct osd_call_gate *gate);
void osd_call_gate_enter(struct osd_call_gate *gate);
/* For a step of a long call, which lets waiting calls go first, as well as commands.  False: no
 * place was free in time.  Then the step runs without a place, because the calls inside may be
 * waiting for an object that this call has locked. */
bool osd_call_gate_enter_step(struct osd_call_gate *gate);
void osd_call_gate_leave(struct osd_call_gate *gate);

/* ---- what is counted (calls.c) ------------------------------------------------------------------ */

/* Kinds of calls.  The calls of one kind need the same resources, so they are measured together. */
#define OSD_CALL_KINDS(X)                                                                          \
	X(DATA, "data")                                                                            \
	X(ATTRIBUTES, "attributes")                                                                \
	X(LIST, "list")                                                                            \
	X(OTHER, "other")

enum osd_call_kind {
#define X(symbol, name) OSD_CALL_KIND_##symbol,
	OSD_CALL_KINDS(X)
#undef X
		OSD_CALL_KIND_COUNT
};

#define X(number, symbol) [number] = 0,
enum { OSD_CALL_OPS = sizeof((char[]){OSD_CALLS(X)}), OSD_ANSWER_CODES = OSD_ANSWER_LAST + 1 };
#undef X
#define OSD_CALLS_PER_TIMED 8

/* Totals over all sessions; any thread, no lock. */
struct osd_call_figures {
	_Atomic uint64_t counts[OSD_CALL_OPS][OSD_ANSWER_CODES];
	struct osd_histogram seconds[OSD_CALL_KIND_COUNT]; /* of one call in every
							    * OSD_CALLS_PER_TIMED */
};

void osd_call_took(struct osd_call_figures *figures, uint16_t op, uint64_t usec);

/* ---- the target, as calls see it ----------------------------------------------------------------- */

/* Set at start; any thread.  exec/exec.h describes each operation. */
struct osd_session_host {
	struct osd_exec *exec;	     /* their first argument */
	struct osd_keyring *keyring; /* NULL: no job has a capability */
	struct osd_functions *functions; /* NULL: there are none */
	struct osd_call_figures *calls;
	/* These two get context; they may be NULL. */
	void *(*hold_object)(void *context, struct osd_object_id id);
	void (*release_object)(void *context, void *hold);
	void *context;
	enum osd_status (*owner_in)(struct osd_exec *exec, struct osd_txn *txn,
				    struct osd_object_id id, struct osd_job_owner *ret_owner);
	enum osd_status (*check_partition)(struct osd_exec *exec, uint64_t partition_id,
					   struct osd_object_id *ret_job);
	enum osd_status (*partition_made)(struct osd_exec *exec, struct osd_txn *txn,
					  uint64_t partition_id);
	void (*collection_removed)(struct osd_exec *exec, struct osd_object_id id);
};

/* ---- a session ------------------------------------------------------------------------------------ */

#define OSD_SESSION_OPEN       32 /* objects kept open between calls */
#define OSD_SESSION_PARTITIONS 8
#define OSD_SESSION_BUCKETS    64
#define OSD_SESSION_DEPTH      16 /* functions that call each other */

enum osd_session_phase { OSD_PHASE_RUN = 1, OSD_PHASE_OVER = 2 };

struct osd_session_hooks {
	/* Called before the first change that the script makes.  Its effect must be durable when it
	 * returns OSD_OK. */
	enum osd_status (*wrote)(void *arg);
	/* Called in the transaction that creates the companion object of a long result. */
	enum osd_status (*spilled)(void *arg, struct osd_txn *txn, uint64_t companion);
	/* message: clean UTF-8, not terminated. */
	void (*progress)(void *arg, uint16_t progress, const uint8_t *message, size_t length);
	/* Sends descriptors to the sandbox; the session still owns them.  OSD_E_UNSUPPORTED: the script has
	 * not received the ones before. */
	enum osd_status (*share)(void *arg, const int *fds, size_t count);
	/* Uses data that pass through functions, and waits for that.  NULL: they cannot be used. */
	enum osd_status (*pass)(void *arg, struct osd_exec_data *data);
	/* Whether the job has been asked to end; whether its sandbox is gone.  A NULL function
	 * means no. */
	bool (*is_to_end)(void *arg);
	bool (*is_over)(void *arg);
	void *arg;
};

enum osd_session_denied { OSD_DENIES_NOTHING, OSD_DENIES_CHANGES, OSD_DENIES_ALL };

struct osd_session {
	/* Set by the owner. */
	struct osd_objects *objects;
	/* These three are borrowed.  NULL: nothing else uses objects, in tests; calls hold no places; the bytes
	 * that calls move have no bound. */
	const struct osd_session_host *host;
	struct osd_call_gate *gate;
	struct osd_pace *pace;
	struct osd_zone zone;
	struct osd_object_id job;
	struct osd_job_limits limits;
	struct osd_job_rights rights;
	/* The function that runs: what its access class denies, and its partition (0: none runs). */
	struct osd_session_running {
		enum osd_session_denied denied;
		uint64_t partition_id;
	} running;
	bool plain;			/* no surrogate: the result stays in memory */
	bool stage;			/* transforms data: its rights are not checked, it has no access */
	size_t result_hint;		/* bytes that the result most likely has; 0: few */
	/* Of a stage: the room for texts, shared with the sandbox; NULL: no result can lie there.  placed_stays: what
	 * receives the result reads it once, so it is not copied. */
	const uint8_t *texts;
	bool placed_stays;
	struct osd_session_hooks hooks;

	/* Other threads read these while the session runs. */
	_Atomic uint64_t bytes_read, bytes_written, calls, result_length;

	_Atomic bool revoked; /* its rights have ended: no call is served any more */
	/* Of shares: the session's thread changes them, the sweep reads them. */
	struct osd_lock shares_lock;

	uint16_t last_op;  /* the call that was served last */
	uint64_t due_usec; /* monotonic: its bytes are due, and its answer is not sent before */

	/* Results. */
	enum osd_session_phase phase;
	uint16_t fault;		/* why the session was ended (enum osd_job_reason), or 0 */
	uint8_t *result;	/* the first bytes (session/data.c); NULL: none */
	size_t result_room;
	const uint8_t *placed;	/* in texts: the result, instead of the first bytes; NULL: none */
	uint64_t result_object; /* the object with the whole of a longer result; 0: none */
	/* Why a piece of the result was not kept.  The result has a gap then: none is kept until the script begins
	 * another one. */
	enum osd_status result_status;
	bool result_json;
	enum osd_finish_kind finish_kind; /* phase OVER */
	uint32_t exit_code;
	uint8_t *traceback;
	size_t traceback_length;
	bool kept_code;		  /* the sandbox says that it keeps the code for later jobs */
	char line[OSD_JOB_MESSAGE_MAX + 1];
	struct osd_used used; /* the objects that the script has used; empty if plain */

	/* The session's own. */
	struct osd_access access; /* what the call under way needs */
	uint64_t policy_seen;	  /* osd_objects_policy_changes at the last check of its rights */
	/* Partitions other than the zone's that have accepted the job's method, with the number of
	 * policy changes at that check (rights.c). */
	struct osd_session_partition {
		uint64_t id, changes;
	} entered[OSD_SESSION_PARTITIONS];
	struct osd_allowed allowed; /* attributes it may touch */
	uint64_t allowed_seen;	    /* that number when they were read */
	/* The functions that wait for the one they have called, and that one's code (function.c). */
	struct osd_session_running callers[OSD_SESSION_DEPTH];
	size_t depth;
	struct osd_function_code *code; /* a reference */
	bool wrote;
	bool ahead;		      /* the last call had OSD_CALL_AHEAD */
	enum osd_status ahead_status; /* how it went */
	struct osd_object *companion;
	struct osd_session_entry {
		struct osd_object_id id;
		struct osd_object *object; /* NULL: free */
	} open[OSD_SESSION_OPEN];
	size_t next_open;
	/* Objects whose descriptors the script has been passed, by id.  The script may have copied
	 * or mapped a descriptor before closing it, so entries stay until the session ends. */
	struct osd_session_share {
		struct osd_session_share *next;
		struct osd_object_id id;
		uint64_t created_ms;
		struct osd_object *object; /* NULL: the script reports that it has closed them */
		bool passed;		   /* passed, or about to be: the sweep checks the object */
		size_t fd_count;
	} * shares[OSD_SESSION_BUCKETS]; /* changed under shares_lock */
	size_t share_fds;		 /* of those not closed */
	size_t share_count;		 /* of all */
	struct osd_session_step {
		bool is_long;
		bool cleans_up; /* a long call that began after the job was asked to end */
		bool inside;	/* a place in the gate is held */
		unsigned pieces;
		uint64_t bytes; /* of this step */
	} step;			/* of the call under way (long_call.c) */
	struct osd_session_watch {
		struct osd_txn_watcher watcher;
		uint64_t records; /* seen by it */
		bool stopped;
	} watch;	  /* of the transaction under way (osd_long_call_watch) */
	uint8_t *scratch; /* OSD_BODY_MAX */
};

/* The initial value of shares_lock. */
#define OSD_SESSION_SHARES_LOCK OSD_LOCK_INITIALIZER(OSD_RANK_SHARES)
/* OSD_E_NO_MEMORY.  Keeps the fields that the owner has set, and initialises the rest. */
enum osd_status osd_session_init(struct osd_session *session);
/* Closes everything; also after a failed init. */
void osd_session_release(struct osd_session *session);

/* Called after the last call: completes session->used.  Data that the script may have read through
 * descriptors up to now count as varied if the object has changed. */
void osd_session_end_uses(struct osd_session *session);

enum osd_served {
	OSD_SERVED,	  /* answered */
	OSD_SERVED_LAST,  /* answered, and the job is over */
	OSD_SERVED_FAULT, /* not answered: end the sandbox; session->fault says why */
};

/* Serves one call.  The sandbox may change frame and body at any time.  The answer's body may be in
 * the same memory as the call's. */
enum osd_served osd_session_serve(struct osd_session *session, const uint8_t frame[OSD_FRAME_BYTES],
				  const uint8_t *body, uint8_t answer_frame[OSD_FRAME_BYTES],
				  uint8_t *answer_body);

/* ---- rights (rights.c) ------------------------------------------------------------------------- */

/* The target checks the rights of a job again at each of its calls: a right may be revoked
 * while the script runs.  security/decide.h decides (docs/security.md section 10).
 *
 * A job without a capability (struct osd_job_rights: not limited) may do everything in partitions that
 * accept NOSEC now.  Rights are revoked when the partition of the zone demands more than the job has, or its
 * capability has expired.  They are also revoked when its key is gone or frozen, or when the object it names
 * has another policy access tag or created time. */

/* Records which key signed the capability, to check later whether that key still exists. */
void osd_rights_stamp(struct osd_keyring *keyring, struct osd_job_rights *rights);
/* Whether its capability has expired. */
bool osd_rights_expired(const struct osd_session *session);
/* Checks a job that makes no calls, on a thread other than the session's.  *seen:
 * osd_objects_policy_changes at the last check.  OSD_E_PERMISSION: since then, the policy of its
 * zone, or of an object whose descriptors it holds, has changed and permits less than the job has.
 * Another failure: the check could not be made. */
enum osd_status osd_rights_look_again(struct osd_session *session, uint64_t *seen);

/* ---- between the files of this room ----------------------------------------------------------- */

/* One call being served. */
struct osd_op {
	struct osd_session *session;
	struct osd_call call;
	const uint8_t *body; /* shared with the sandbox */
	struct osd_answer answer;
	uint8_t *out;		/* OSD_BODY_MAX bytes for the answer's body, shared */
	unsigned txn_flags;	/* of its transactions */
	const char *why;	/* overrides the status's meaning in the message */
	char why_data[OSD_DATA_WHY_MAX]; /* why may point there */
};

static inline struct osd_object_id osd_op_id(const struct osd_op *op)
{
	return (struct osd_object_id){op->call.partition_id, op->call.object_id};
}

typedef enum osd_status osd_op_fn(struct osd_op *op);
typedef enum osd_status osd_op_in_fn(struct osd_txn *txn, struct osd_op *op);

/* osd_txn_run() for a session's call: runs fn in a transaction, which is aborted when the job is to
 * end. */
enum osd_status osd_op_transact(struct osd_op *op, osd_op_in_fn *fn);
/* OSD_E_PERMISSION unless the id is in the zone, and the call may touch it (session.h). */
enum osd_status osd_session_check_zone(struct osd_session *session, struct osd_txn *txn,
				       struct osd_object_id id);
/* The same in a transaction of its own. */
enum osd_status osd_session_check_object(struct osd_session *session, struct osd_object_id id);
/* The same for a user object, which the caller puts.  If it is not the one that was checked, calls on it say
 * OSD_E_NO_OBJECT. */
enum osd_status osd_session_open_object(struct osd_session *session, struct osd_object_id id,
					struct osd_object **ret_object);
/* Whether the zone includes the whole partition, so that objects may be created and removed in
 * it. */
bool osd_session_owns_partition(const struct osd_session *session, uint64_t partition_id);
/* Counts bytes against the job's limit, and ends the job beyond it. */
enum osd_status osd_session_count_io(struct osd_session *session, _Atomic uint64_t *counter,
				     uint64_t bytes);
/* Notes what the call uses (session->used): kinds of the object; a change of its data, if there was one. */
void osd_op_uses(struct osd_op *op, uint32_t kinds);
void osd_op_made(struct osd_op *op, const struct osd_change *change);
/* OSD_E_JOB_IN_WAY if the object is the surrogate of an unfinished job. */
enum osd_status osd_session_check_free(struct osd_txn *txn, struct osd_object_id id);

/* These need nothing but their transaction. */
osd_op_in_fn osd_op_type, osd_op_create_partition, osd_op_remove, osd_op_create_collection,
	osd_op_collection_add, osd_op_collection_drop, osd_op_addattr, osd_op_getattr,
	osd_op_setattr, osd_op_listattr, osd_op_list, osd_op_query, osd_op_names;
osd_op_fn osd_op_remove_partition, osd_op_create, osd_op_remove_collection;
/* A result of FINISH that lies in the room for texts; place: where. */
enum osd_status osd_op_placed_result(struct osd_op *op, uint64_t place);
osd_op_fn osd_op_result, osd_op_read, osd_op_write, osd_op_append, osd_op_truncate, osd_op_clear,
	osd_op_punch, osd_op_length, osd_op_flush, osd_op_share, osd_op_unshare, osd_op_swapattr,
	osd_op_enter, osd_op_code, osd_op_leave;
/* Data that pass through functions (through.c).  *ret_plain: those of the object do not, and nothing was done. */
enum osd_status osd_op_read_through(struct osd_op *op, struct osd_object *object, bool *ret_plain);
enum osd_status osd_op_write_through(struct osd_op *op, struct osd_object *object, bool *ret_plain);
enum osd_status osd_op_length_through(struct osd_op *op, struct osd_object *object,
				      bool *ret_plain);
/* Sets the length of an object with a stack to 0. */
enum osd_status osd_op_empty_through(struct osd_op *op);
/* OSD_E_CONTRACT: they do, so the stored bytes must not be changed directly. */
enum osd_status osd_op_check_plain(struct osd_op *op, struct osd_object *object);
void osd_session_release_data(struct osd_session *session);
void osd_session_release_shares(struct osd_session *session);

/* Rights; on the session's thread. */

/* Whether the job's rights have been revoked: by a quick check here, or found by osd_rights_sweep.
 * Reads the store only if a policy has changed since the last call. */
bool osd_rights_ended(struct osd_session *session);
/* Called before a call that names this partition, with no transaction open.  attributes: the call
 * touches attributes.  OSD_E_PERMISSION: the partition requires more than the job has. */
enum osd_status osd_rights_enter(struct osd_session *session, uint64_t partition_id,
				 bool attributes);
/* Whether the call under way (session->access) may touch an object of the zone.  One function for
 * each case: in a transaction; an open object; an object to be created, given its type and
 * partition.  In a transaction with a capability: OSD_E_NO_OBJECT or OSD_E_NO_PARTITION if it may, but there is no such
 * object: one that is made meanwhile was not checked. */
enum osd_status osd_rights_check_in(struct osd_session *session, struct osd_txn *txn,
				    struct osd_object_id id);
enum osd_status osd_rights_check_open(struct osd_session *session, struct osd_object *object);
enum osd_status osd_rights_check_made(struct osd_session *session, enum osd_object_type type,
				      struct osd_object_id id);
/* The same for a second object, for which the call needs another permission. */
enum osd_status osd_rights_check_also(struct osd_session *session, struct osd_txn *txn,
				      struct osd_object_id id, struct osd_access access);
/* Whether it may get or set an attribute of a checked object, or compare the attribute in a
 * query. */
bool osd_rights_may_get(const struct osd_session *session, struct osd_object_id id, uint32_t page,
			uint32_t number);
bool osd_rights_may_set(const struct osd_session *session, struct osd_object_id id, uint32_t page,
			uint32_t number, bool empty);
bool osd_rights_may_compare(const struct osd_session *session, uint32_t page, uint32_t number);
/* Whether it may touch only a range of this object. */
bool osd_rights_have_range(const struct osd_session *session, struct osd_object_id id);

/* Long calls (long_call.c): rows marked OP_LONG, whose time grows with the size of the object.
 * Such a call holds a place in the call gate only for a bounded step, so that it does not delay the
 * calls of other jobs.  After each step it charges the bytes to the job's limit, and stops if the
 * job is to end.  A call that was under way when the job was asked to end stops at its next step.
 * A call that begins in the grace time stops when that is over. */
/* The largest step, in bytes and in pieces: it bounds how long others wait for a place. */
#define OSD_LONG_STEP_BYTES  (UINT64_C(1) << 20)
#define OSD_LONG_STEP_PIECES 64u
#define OSD_LONG_RECORDS     1024u /* of osd_long_call_watch */

/* Called around any call.  A short call holds a place in the gate all the time, except while it
 * waits for an object that another has locked. */
void osd_session_enter(struct osd_session *session, bool long_call);
void osd_session_leave(struct osd_session *session);

/* These two for struct osd_change_steps; arg: struct osd_session.  Called before a step that moves so
 * many bytes.  Waits a moment for a place, and holds it until the next rest or the end.  False: the call
 * must stop. */
bool osd_long_call_step(void *arg, uint64_t bytes);
/* Gives the place back before the call waits for something. */
void osd_long_call_rest(void *arg);
/* For a transaction that may visit many records.  After OSD_LONG_RECORDS of them the call gives up
 * its place in the gate: it cannot pause, because others wait for the locks of the transaction.
 * The transaction ends with OSD_E_TASK_ABORTED when the sandbox is gone; that of a long call also
 * when the job is asked to end. */
void osd_long_call_watch(struct osd_session *session, struct osd_txn *txn);

#endif
