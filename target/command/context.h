/* SPDX-License-Identifier: GPL-2.0-or-later */
/* context.h -- what a command function gets: struct osd_command_context, the row that led to it,
 * and the contract between the dispatcher and osd_command_fn.
 *
 * The dispatcher has already checked everything the row's flags ask for (validate.c), the
 * capability, and copied every list out of Data-Out.  A command function does the work, once or
 * more:
 *
 *  - Rows with OSD_CMD_TXN run inside ctx->txn, which the dispatcher begins and commits.  On
 *    OSD_E_CONFLICT (from the function or from commit) everything is rolled back and the function
 *    runs again, so it must not leave anything behind but what the transaction or osd_txn_on_end
 *    undoes.
 *  - Other rows get txn NULL and use the data calls of object.h.
 *  - request->object and ->object_type are what the Current Command page and the sense data
 *    show: the object addressed, or the one made.
 *  - Command data goes to request->data_in at offset 0 through osd_command_data_in; never beyond
 *    data_in_capacity.
 *  - A failure returns its status with details in request->fault (osd_command_fail).
 *
 * OSD_PENDING (only rows with OSD_CMD_MAY_PARK, outside of their transaction, and READ in a worker): the dispatcher
 * runs nothing more, and its thread goes on.  Any thread then calls request->resume(request), exactly
 * once, with request->fault.status (and details) saying how the command ended and the command
 * data in place.  Set and get attributes and the completion of the request follow at once, in
 * the thread that calls resume or, when that was before the function had returned, in the
 * dispatcher's.  If request->again is set before, the request is dispatched from the start instead, in a worker.  The
 * context itself is gone once the function has returned. */
#ifndef OSD_COMMAND_CONTEXT_H
#define OSD_COMMAND_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "command/request.h"
#include "command/task_management.h"
#include "object/object.h"
#include "wire/continuation.h"

struct osd_principal;

struct osd_backgrounds;
struct osd_copies;
struct osd_draft;
struct osd_exec;
struct osd_flights;
struct osd_functions;
struct osd_keyring;
struct osd_tracked_def;
struct osd_command_context;

typedef enum osd_status osd_command_fn(struct osd_command_context *ctx);

enum osd_command_flags {
	OSD_CMD_TXN = 0x0001,          /* runs inside a transaction */
	OSD_CMD_CHANGES = 0x0002,      /* changes the object: refused on unfinished surrogates */
	OSD_CMD_DATA_OUT = 0x0008,     /* LENGTH bytes of Data-Out must be there */
	OSD_CMD_CONTINUATION = 0x0010, /* may carry a CDB continuation segment */
	OSD_CMD_REQUESTED_ID = 0x0020, /* the ids in the CDB are requested ones, 0 = any */
	OSD_CMD_ATTRS_FIRST = 0x0040,  /* set, get, then the command (osd2-wire 3.7) */
	OSD_CMD_GET_FIRST = 0x0080,    /* get, then set */
	OSD_CMD_OWN_ATTRS = 0x0100,    /* the function serves the attribute parameters itself */
	OSD_CMD_EXCLUSIVE = 0x0200,    /* alone in the store: FORMAT OSD */
	/* The unit may try it on the caller's thread; with OSD_CMD_MAY_PARK: it may begin it there. */
	OSD_CMD_INLINE = 0x0400,
	OSD_CMD_MAY_PARK = 0x0800,     /* may return OSD_PENDING */
	/* The command itself changes nothing: without set attributes its transaction only reads. */
	OSD_CMD_NO_CHANGE = 0x1000,
	OSD_CMD_PARTITION_OR_ROOT = 0x2000, /* bytes 24-31 are reserved: ignored */
	OSD_CMD_URGENT = 0x4000,	/* has a thread of its own: must run when every worker is busy */
	OSD_CMD_NEEDS_USER = 0x8000,	/* the front end must find out the session's user and address */
	OSD_CMD_NEEDS_IDENTITY = 0x0004, /* the front end must provide osd_request.identity */
};

/* Classes of commands that wait for the same resources; their latency is measured together
 * (unit/command_figures.h). */
#define OSD_LATENCY_CLASSES(X)                                                                     \
	X(READ, "read")                                                                            \
	X(WRITE, "write")                                                                          \
	X(FLUSH, "flush")                                                                          \
	X(ATTRIBUTES, "attributes")                                                                \
	X(LIST, "list")                                                                            \
	X(MANAGE, "manage") /* makes and removes objects */                                        \
	X(EXEC, "exec")	    /* with the job, where the command waits for it */                     \
	X(OTHER, "other")

enum osd_latency_class {
#define X(symbol, name) OSD_LATENCY_##symbol,
	OSD_LATENCY_CLASSES(X)
#undef X
		OSD_LATENCY_COUNT
};

/* The bytes of the user object that the CDB addresses: what the capability must cover. */
enum osd_addressed_bytes {
	OSD_BYTES_NONE,
	OSD_BYTES_RANGE,    /* LENGTH bytes from STARTING BYTE ADDRESS; the sum must fit 64 bits */
	OSD_BYTES_SCATTER,  /* the same, or what a scatter/gather list says, checked when it is read */
	OSD_BYTES_AT_END,   /* behind the last byte: bytes that have no address yet */
	OSD_BYTES_FROM,	    /* all from STARTING BYTE ADDRESS on */
};

/* How the command itself uses the data of a user object.  This decides which copies it waits for
 * (copies.h). */
enum osd_data_use {
	OSD_USE_NONE,
	OSD_USE_READS,
	OSD_USE_COPIES,
	OSD_USE_CHANGES, /* or removes */
};

/* How long the command may take (osd_command_span). */
enum osd_span_rule {
	OSD_RUNS_SHORT,
	OSD_RUNS_LONG,		 /* as long as what it works on is large */
	OSD_RUNS_LONG_IF_MANY,	 /* depends on the number of objects that CREATE makes */
	OSD_RUNS_LONG_IF_LISTED, /* depends on the room for a list of ids in Data-In */
	OSD_RUNS_MOVING,	 /* long, and moves the bytes of an object */
};

/* One service action: a row of table.c.  All properties that common code needs are columns here;
 * only the files that implement a command know it by name. */
struct osd_command_def {
	uint16_t service_action;
	uint8_t object_types; /* that the CDB's ids may name: enum osd_object_type or'ed */
	uint16_t permissions; /* enum osd_permission the capability must give */
	enum osd_latency_class latency;
	uint16_t flags;
	osd_command_fn *execute;
	osd_command_fn *first; /* NULL: none; runs before the transaction (OSD_CMD_TXN) */
	/* Columns that are 0 in most rows: */
	enum osd_addressed_bytes bytes;
	enum osd_data_use data_use;
	enum osd_span_rule span;
	uint16_t scope_permissions; /* needed as well when the scope in byte 11 is not 0 */
	uint8_t events;	/* enum osd_hook_event of the command itself, without the attributes it sets */
	bool at_once; /* with NOSEC its function may answer on the caller's thread; all else runs in a worker */
	bool untold;	/* no function can be asked about these: refused where there are checks */
	uint32_t counter; /* attribute of the counters page that it changes; no list names it */
	enum osd_signing signing; /* the key that signs its capability */
	const struct osd_tracked_def *tracked; /* NULL: never runs in the background (tracked.h) */
};

struct osd_command_context {
	struct osd_request *request; /* ->decoded is the CDB */
	const struct osd_command_def *def;
	struct osd_object_id addressed; /* what the CDB's ids name */
	/* The object under these ids (resolve.h). */
	struct osd_object *object;     /* owned; NULL: not looked up, or no user object */
	struct osd_object_facts facts; /* as authorised; zeroed if the command is open to all */
	enum osd_status absent;	       /* why there is no object, if it was looked up */
	struct osd_objects *objects;
	struct osd_exec *exec; /* NULL: sandboxes are not configured */
	struct osd_functions *functions;
	struct osd_keyring *keyring;
	struct osd_txn *txn;	 /* rows with OSD_CMD_TXN, else NULL */
	struct osd_draft *draft; /* owned: what PUT makes an object (name_data.c); NULL: none */
	struct osd_pin *pin;   /* while the transaction of a user object's precondition runs; else NULL */
	const struct osd_attr_params *attributes; /* attributes.h; NULL: the CDB has none */
	struct osd_continuation continuation; /* checked, over copy */
	uint8_t *copy; /* owned; of the continuation segment; NULL: there is none */
	const uint8_t *command_data; /* Data-Out behind the continuation; may change under us */
	size_t command_data_length;  /* LENGTH of the CDB for rows with OSD_CMD_DATA_OUT, else 0 */
	/* enum osd_data_flags for the data calls.  OSD_DATA_NOWAIT: the function must not wait, and fails with
	 * OSD_E_WOULD_BLOCK instead. */
	unsigned data_flags;
	osd_manage_tasks_fn *manage_tasks; /* command/task_management.h; NULL: no unit */
	struct osd_backgrounds *backgrounds; /* command/background.h */
	struct osd_copies *copies;	     /* command/copies.h */
	struct osd_flights *flights;	     /* command/flights.h */
	const char *hold;		     /* osd_command_hold */
	const char *script; /* the principal of the script that uses the data (script_data.h); NULL: a client does */
};

/* Gives back what the context owns (resolve.c). */
void osd_context_release(struct osd_command_context *ctx);

/* How the command's changes are committed: FUA is durable. */
static inline enum osd_commit osd_command_commit(const struct osd_request *request)
{
	return request->decoded.fua ? OSD_COMMIT_DURABLE : OSD_COMMIT_PROCESS;
}

/* Records a failure's CDB byte in the sense data; returns status. */
enum osd_status osd_command_fail(struct osd_request *request, enum osd_status status,
				 uint16_t field_pointer);
/* Records the attribute a failure is about; returns status. */
enum osd_status osd_command_fail_attribute(struct osd_request *request, enum osd_status status,
					   uint32_t page, uint32_t number);
/* The principal that sent the request. */
void osd_command_principal(const struct osd_request *request, struct osd_principal *ret_principal);
/* Takes the aborted ones out of a list of requests that wait, and puts them into another.  Returns the end of the first
 * list. */
struct osd_request **osd_requests_take_aborted(struct osd_request **waiting,
					       struct osd_request **aborted);
/* Appends length bytes to the command data at Data-In offset 0, as far as Data-In reaches;
 * request->command_data_in counts all of them. */
void osd_command_data_in(struct osd_request *request, const void *bytes, size_t length);

#endif
