/* SPDX-License-Identifier: GPL-2.0-or-later */
/* follow_run.c -- one run of the functions that follow changes of an object: see follow.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ration.h"
#include "base/util.h"
#include "command/follow_impl.h"
#include "object/due.h"
#include "object/txn_run.h"
#include "wire/attr_list.h"

#define WALL_USEC   (UINT64_C(60) * 1000000) /* that a function runs at most */
#define RESULT_MAX  (1u << 20)		      /* bytes of its attributes */

/* The result of a function; length 0: it has failed, or returned nothing. */
struct said {
	uint8_t *bytes; /* owned */
	size_t length;
	bool good; /* the function has completed */
};

struct osd_follow_run {
	struct osd_object *object; /* owned reference */
	struct osd_data_version version;
	struct osd_hook *hooks; /* owned */
	struct said *said;	/* owned; one for each hook */
	size_t count, asked;
	struct osd_hook_frame frame;
	/* Of the call that has ended last. */
	enum osd_status outcome;
	uint16_t reason;
	char text[OSD_HOOK_TEXT_MAX + 1];
};

void osd_follow_run_free(struct osd_follow_run *run)
{
	if (!run)
		return;
	for (size_t i = 0; run->said && i < run->count; i++)
		free(run->said[i].bytes);
	free(run->said);
	free(run->hooks);
	osd_object_put(run->object);
	free(run);
}

static enum osd_follow_end end(struct osd_due *due, enum osd_follow_end how)
{
	osd_follow_run_free(due->run);
	due->run = NULL;
	return how;
}

/* ---- calls -------------------------------------------------------------------------------------- */

static bool is_own_failure(enum osd_status status, uint16_t reason)
{
	return status == OSD_E_STILL_RUNNING ||
	       (osd_status_is_of_job(status) && (reason / 100 == 2 || reason / 100 == 3));
}

/* exec/ calls this once for each function, from any thread. */
static void answered(void *arg, const struct osd_exec_outcome *outcome)
{
	struct osd_due *due = arg;
	struct osd_follow_run *run = due->run;
	struct said *said = &run->said[run->asked];

	run->outcome = outcome->status;
	run->reason = outcome->reason;
	osd_hook_text(outcome, run->text);
	if (outcome->status == OSD_OK) {
		said->good = outcome->form != OSD_RESULT_JSON &&
			     outcome->whole_length <= RESULT_MAX &&
			     outcome->whole_length == outcome->result_length;
		said->bytes = said->good ? malloc(OSD_MAX(outcome->result_length, 1)) : NULL;
		said->good = said->bytes != NULL;
		if (said->good && outcome->result_length)
			memcpy(said->bytes, outcome->result, outcome->result_length);
		said->length = said->good ? outcome->result_length : 0;
	}
	due->follow->on_answer(due);
}

static void log_failure(const struct osd_due *due, const char *why)
{
	static struct osd_ration ration = OSD_RATION(20, 1000000);
	const struct osd_follow_run *run = due->run;
	const struct osd_function *function = &run->hooks[run->asked].function;
	unsigned withheld;

	if (osd_ration_take(&ration, osd_monotonic_usec(), &withheld))
		osd_warning("a function that follows changes of 0x%" PRIx64 "/0x%" PRIx64
			    " failed: %s (0x%" PRIx64 "/0x%" PRIx64 ", %s), reason %u: %s",
			    due->id.partition_id, due->id.object_id, function->alias,
			    function->id.partition_id, function->id.object_id,
			    run->hooks[run->asked].method, run->reason, why);
}

static enum osd_follow_end store(struct osd_due *due);

/* Calls the next function, or stores what all of them say. */
static enum osd_follow_end call_next(struct osd_due *due)
{
	struct osd_follow_run *run = due->run;
	struct osd_follow *follow = due->follow;
	struct osd_hook_call call = {
		.functions = follow->functions,
		.exec = follow->exec,
		.zone = due->id,
		.frame = &run->frame,
		.reads = true,
		.wall_usec = WALL_USEC,
		.wait_usec = osd_exec_limits[OSD_LIMIT_SYNC_WAIT].maximum,
		.done = answered,
		.arg = due,
	};

	if (run->asked == run->count)
		return store(due);
	call.hook = &run->hooks[run->asked];
	return osd_hook_call(&call) == OSD_PENDING ? OSD_FOLLOW_CALLED : end(due, OSD_FOLLOW_LATER);
}

enum osd_follow_end osd_follow_proceed(struct osd_due *due)
{
	struct osd_follow_run *run = due->run;

	if (run->outcome == OSD_OK && !run->said[run->asked].good)
		log_failure(due, "it returned no list of attributes");
	else if (is_own_failure(run->outcome, run->reason))
		log_failure(due, run->text);
	else if (run->outcome != OSD_OK)
		return end(due, OSD_FOLLOW_LATER);
	run->asked++;
	return call_next(due);
}

/* ---- begin -------------------------------------------------------------------------------------- */

static enum osd_status prepare(struct osd_due *due)
{
	struct osd_follow_run *run = due->run = calloc(1, sizeof(*run));
	struct osd_hook_search search = {
		.functions = due->follow->functions, .id = due->id, .events = OSD_HOOK_AFTER};
	enum osd_status status = run ? osd_object_get(due->follow->objects, due->id, &run->object)
				     : OSD_E_NO_MEMORY;

	if (status == OSD_OK)
		status = osd_object_state(run->object, &run->frame.old_length, &run->version);
	if (status != OSD_OK)
		return status;
	status = osd_hook_search(due->follow->objects, &search);
	run->hooks = search.hooks;
	run->count = search.count;
	if (status != OSD_OK)
		return status;
	run->said = calloc(OSD_MAX(run->count, 1), sizeof(*run->said));
	run->frame.events = OSD_HOOK_AFTER;
	run->frame.partition_id = due->id.partition_id;
	run->frame.object_id = due->id.object_id;
	run->frame.created_msec = search.created_msec;
	run->frame.now_msec = osd_wall_msec();
	return run->said ? OSD_OK : OSD_E_NO_MEMORY;
}

enum osd_follow_end osd_follow_begin(struct osd_due *due)
{
	enum osd_status status = prepare(due);

	if (osd_status_is_gone(status))
		return end(due, OSD_FOLLOW_DONE);
	return status == OSD_OK ? call_next(due) : end(due, OSD_FOLLOW_LATER);
}

/* ---- what they say ------------------------------------------------------------------------------ */

struct storing {
	struct osd_due *due;
	bool done;
	size_t refused; /* the hook whose attributes are not stored; count: none */
};

static bool may_set(const struct osd_hook *hook, const struct osd_attr *attr)
{
	return attr->page == hook->page && attr->number > OSD_DERIVED_VERSION &&
	       attr->number != OSD_NUMBER_ALL;
}

static enum osd_status set_all(struct osd_txn *txn, struct osd_object_id id,
			       const struct osd_hook *hook, const struct said *said,
			       struct osd_data_version version)
{
	uint8_t bytes[OSD_VERSION_BYTES];
	struct osd_attr_list list;
	struct osd_attr attr;
	enum osd_status status = OSD_OK;

	if (said->length)
		status = osd_attr_entries_open(said->bytes, said->length, OSD_LIST_SET, &list);
	while (said->length && status == OSD_OK && osd_attr_list_next(&list, &attr))
		status = may_set(hook, &attr) ? osd_attr_set(txn, id, attr.page, attr.number,
							     attr.value, attr.length)
					      : OSD_E_PARAM_FIELD;
	if (status != OSD_OK)
		return status;
	osd_version_encode(version, bytes);
	return osd_attr_set(txn, id, hook->page, OSD_DERIVED_VERSION, bytes, sizeof(bytes));
}

/* Anything else may be otherwise the next time: a full disk, for example. */
static bool is_fault_of_list(enum osd_status status)
{
	return status == OSD_E_QUOTA ||
	       osd_status_info(status)->sense_key == OSD_SK_ILLEGAL_REQUEST;
}

/* If the attributes of one function are refused, the caller begins again without them. */
static enum osd_status store_in(struct osd_txn *txn, void *arg)
{
	struct storing *storing = arg;
	struct osd_follow_run *run = storing->due->run;
	enum osd_status status =
		osd_due_done(txn, run->object, run->version, &storing->done);

	storing->refused = run->count;
	for (size_t i = 0; i < run->count && status == OSD_OK && storing->done; i++) {
		if (!run->said[i].good)
			continue;
		status = set_all(txn, storing->due->id, &run->hooks[i], &run->said[i], run->version);
		if (is_fault_of_list(status))
			storing->refused = i;
	}
	return status;
}

static enum osd_follow_end store(struct osd_due *due)
{
	struct osd_follow_run *run = due->run;
	struct storing storing = {.due = due};
	enum osd_status status;

	do {
		status = osd_txn_run(due->follow->objects, OSD_TXN_CHECKED, store_in, &storing);
		if (status == OSD_OK || storing.refused == run->count)
			break;
		run->asked = storing.refused;
		run->reason = 0;
		log_failure(due, osd_status_info(status)->meaning);
		run->said[storing.refused].good = false;
	} while (true);
	if (osd_status_is_gone(status))
		return end(due, OSD_FOLLOW_DONE);
	if (status != OSD_OK)
		return end(due, OSD_FOLLOW_LATER);
	return end(due, storing.done ? OSD_FOLLOW_DONE : OSD_FOLLOW_CHANGED);
}
