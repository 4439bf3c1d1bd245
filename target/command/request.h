/* SPDX-License-Identifier: GPL-2.0-or-later */
/* request.h -- struct osd_request, the one object that travels from a front end through unit,
 * dispatcher and command functions and back. */
#ifndef OSD_COMMAND_REQUEST_H
#define OSD_COMMAND_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "object/object.h"
#include "security/check.h"
#include "security/decide.h"
#include "wire/cdb.h"
#include "wire/osd2.h"
#include "wire/sense.h"

#define OSD_SAM_GOOD		0x00
#define OSD_SAM_CHECK_CONDITION 0x02
#define OSD_SAM_BUSY		0x08
#define OSD_SAM_TASK_ABORTED	0x40

/* The sender.  Strings are borrowed from the front end and live as long as the request. */
struct osd_nexus {
	uint64_t id;		    /* I_T nexus, unique among those alive */
	const char *initiator_name; /* iSCSI name, or "" */
	const char *chap_name;	    /* verified by CHAP, or NULL */
	const char *address;	    /* source address, or "" */
};

/* The details of a failure, for the sense descriptors (osd2-wire 7.2). */
struct osd_fault {
	enum osd_status status;
	bool has_field;		/* field_pointer counts */
	bool field_in_data_out; /* C/D bit 0: the pointer is into Data-Out, not the CDB */
	uint16_t field_pointer;
	bool embedded;		  /* it is the embedded command's, and so is the field pointer */
	unsigned attribute_count; /* those the failure is about (descriptor 08h) */
	struct osd_sense_attribute attributes[OSD_SENSE_ATTRIBUTES];
	bool has_information; /* descriptor 00h */
	uint64_t information;
	bool has_command_information; /* descriptor 01h */
	uint64_t command_information;
	const char *text; /* descriptor 80h: for people; borrowed, lasts as the request; NULL: none */
};

static inline void osd_fault_inform(struct osd_fault *fault, uint64_t information)
{
	fault->has_information = true;
	fault->information = information;
}

static inline void osd_fault_inform_command(struct osd_fault *fault, uint64_t information)
{
	fault->has_command_information = true;
	fault->command_information = information;
}

/* An extension capability, and the attributes it may touch. */
struct osd_extension {
	struct osd_grant grant;
	struct osd_allowed allowed;
};

/* The permissions of a request, and the key material of its answer.  All zero before the first use of a request
 * and again when done() is called. */
struct osd_request_security {
	bool admitted; /* the other members are valid; not checked twice: a nonce is good for one use */
	bool accepted; /* a background command: it was checked before its answer */
	struct osd_proof proof;
	struct osd_extension *extensions; /* owned (authorise.h); further capabilities */
	unsigned extension_count;
	uint64_t now_ms;       /* when it was admitted: what expiry is compared with */
	struct osd_exec *exec; /* borrowed; knows the owners of jobs; NULL: there are no jobs */
	bool own_job; /* the object named is the surrogate of the holder's own job (own_job.h) */
	/* The object addressed, as it was authorised; created_ms 0: there was none, or all may use it. */
	struct osd_object_facts addressed;
	uint64_t other_created_ms; /* the same of the object that the command names besides */
};

struct osd_attr_params;
struct osd_checked;
struct osd_compiled;
struct osd_stack_copied;
struct osd_stack_written;
struct osd_stack_reading;
struct osd_exec;
struct osd_identity;
struct osd_command_def;
struct osd_unit;

/* How long a command may keep a worker.  Long commands leave one worker free for short ones.  Commands that
 * move the bytes of objects keep a processor and the disk busy: they leave half the processors free. */
enum osd_command_span { OSD_SPAN_SHORT, OSD_SPAN_LONG, OSD_SPAN_MOVES, OSD_SPANS };

/* A command in the list of those that the unit has (unit/task_list.h), which fills this. */
struct osd_task {
	struct osd_task *next, **at;
	struct osd_request *request; /* NULL: the command is being answered, and may be freed */
	uint64_t nexus_id, tag;
	uint64_t serial;    /* in order of submission */
	uint8_t asked;	    /* the function whose end the command waits for; 0: none */
	uint64_t asked_tag; /* and its TASK TAG */
};

struct osd_request {
	/* Set by the front end before osd_unit_submit; borrowed, unchanged, valid until
	 * done(). */
	const uint8_t *cdb;
	size_t cdb_length;
	const uint8_t *data_out;
	size_t data_out_length;
	uint8_t *data_in; /* uninitialised; the unit fills or zeroes what it reports */
	size_t data_in_capacity;
	struct osd_nexus nexus;
	uint64_t task_tag;
	uint16_t lun;
	/* The INQUIRY data of the unit, for PERFORM SCSI COMMAND; NULL: no memory, or another command. */
	const struct osd_identity *identity;
	void (*done)(struct osd_request *request); /* exactly once, from any thread */
	void *front_end;			   /* the front end's own */

	/* Set by the unit when done() is called. */
	uint8_t sam_status;
	uint8_t sense[OSD_SENSE_MAX];
	size_t sense_length;
	size_t data_in_length;	 /* bytes of data_in that are the answer, gaps zeroed */
	uint64_t data_in_needed; /* what the answer would have been in a Data-In without end */
	size_t data_out_used;	 /* bytes of data_out that the command uses */

	/* The dispatcher's and the command functions'. */
	bool osc_compat; /* the unit speaks OSC's dialect (osd2-wire 9) */
	struct osd_cdb decoded;
	const struct osd_command_def *def;  /* NULL: not looked up yet */
	struct osd_attr_params *attributes; /* owned copies of the lists; NULL: none */
	struct osd_request_security security;
	struct osd_fault fault;
	struct osd_object_id object; /* addressed or made: Current Command page #3, #4 */
	enum osd_object_type object_type;
	uint32_t made_count; /* objects this command made; object is the last of them */
	bool shows_version;  /* of the data that the command has read or changed */
	struct osd_data_version version;
	uint64_t append_start;
	uint64_t result_length; /* of the job that it has waited for */
	uint8_t result_form;	/* enum osd_result_form */
	bool cached_result;	/* EXEC was answered with an earlier job */
	struct osd_checked *checked; /* owned: what functions were asked about (check.h) */
	/* The version of the data that all of them have permitted to change; NULL: any. */
	const struct osd_data_version *checked_version;
	bool alone; /* of a READ that is dispatched again: it waits for no other (flights.h) */
	void (*resume)(struct osd_request *request); /* after OSD_PENDING: context.h */
	struct osd_stack_written *written; /* owned: of a WRITE that is dispatched again (stack_write.h) */
	struct osd_stack_reading *reading; /* owned: of a READ that is dispatched again (stack_read.h) */
	struct osd_stack_copied *copied; /* owned: of a COPY USER OBJECTS that is (stack_copy.h) */
	struct osd_compiled *compiled; /* owned: of an ACTIVATE FUNCTION that is dispatched again (compile.h) */
	int64_t capacity_change;       /* by the command */
	int64_t set_change;	       /* by its set attributes */
	uint64_t command_data_in;      /* bytes of command data at Data-In offset 0, cut or not */
	uint64_t retrieved_needed;     /* of the retrieved attributes, up to their allocation */
	size_t retrieved_length;       /* what of them is in data_in */
	uint32_t initiated, completed; /* command functions, wire/sense.h */

	/* The unit's own. */
	struct osd_unit *unit;
	struct osd_request *next; /* queue link */
	uint64_t submitted_ns;
	unsigned park_votes; /* atomic */
	bool resumed;	     /* goes on in a worker */
	bool lingers;	     /* its thread may wait a moment for the end of a call */
	bool again;	     /* set before resume: it is dispatched from the start instead */
	enum osd_command_span span; /* osd_command_span */
	bool aborted;	     /* atomic: a task management function covers it (command/task_management.h) */
	struct osd_task task;
};

/* An attribute of the same command shows this version of the data, also if others have changed them since. */
static inline void osd_request_show_version(struct osd_request *request,
					    struct osd_data_version version)
{
	request->shows_version = true;
	request->version = version;
}

#endif
