/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_requests.c -- the requests of the control socket (docs/control.md).  Each has a row with
 * its keys, whether it changes something, and its function.  Here: roles and the manager's lease, and
 * what is only read.  Elsewhere: requests that change something (control_changes.c), the keys of a
 * request (control_keys.c). */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "unit/control_request.h"
#include "exec/admin.h"
#include "exec/exec.h"

#define WATCH_LEAST   20
#define WATCH_MOST    60000
#define VERSIONS_SIZE 32

/* ---- answers --------------------------------------------------------------------------------- */

static void answer_ok(struct osd_control_request *request)
{
	struct osd_json json = osd_control_begin(request->control);

	osd_control_send(request->control, request->peer, OSD_CONTROL_OK, request->serial, &json);
}

/* ---- HELLO ----------------------------------------------------------------------------------- */

/* Whether a range such as "1-3" includes our version. */
static bool speaks_our_version(const char *versions)
{
	char *end;
	unsigned long least = strtoul(versions, &end, 10), most;

	if (*versions < '0' || *versions > '9' || *end != '-' || end[1] < '0' || end[1] > '9')
		return false;
	most = strtoul(end + 1, &end, 10);
	return !*end && least <= OSD_CONTROL_VERSION && OSD_CONTROL_VERSION <= most;
}

void osd_control_release(struct osd_control *control, struct osd_control_peer *peer,
			 const char *why)
{
	if (control->manager != peer)
		return;
	control->manager = NULL;
	peer->role = OSD_CONTROL_STANDBY;
	osd_warning("control: no resource manager any more: %s %s", peer->who, why);
	if (!control->shedding)
		return;
	control->shedding = false;
	osd_exec_shed(control->targets.exec, false);
	osd_info("control: jobs are taken again: nobody is there to say when");
}

static void take_role(struct osd_control_request *request, bool manager)
{
	struct osd_control *control = request->control;
	struct osd_control_peer *peer = request->peer;

	if (!manager) {
		osd_control_release(control, peer, "is a tool now");
		peer->role = OSD_CONTROL_TOOL;
	} else if (control->manager && control->manager != peer) {
		peer->role = OSD_CONTROL_STANDBY;
	} else if (!control->manager) {
		control->manager = peer;
		control->manager_since_usec = peer->heard_usec;
		peer->role = OSD_CONTROL_MANAGER;
		osd_info("control: the resource manager is %s (process %d, user %u)", peer->who,
			 (int)peer->pid, (unsigned)peer->uid);
	}
}

static void answer_hello(struct osd_control_request *request)
{
	static const char *const roles[] = {[OSD_CONTROL_TOOL] = "tool",
					    [OSD_CONTROL_MANAGER] = "manager",
					    [OSD_CONTROL_STANDBY] = "standby"};
	struct osd_control *control = request->control;
	char role[8], who[OSD_CONTROL_WHO_MAX + 1], versions[VERSIONS_SIZE];
	struct osd_json json;

	if (!osd_control_text_of(request, "role", role, sizeof(role)) ||
	    !osd_control_text_of(request, "who", who, sizeof(who)) ||
	    !osd_control_text_of(request, "versions", versions, sizeof(versions)))
		return;
	if (!speaks_our_version(versions)) {
		osd_control_fail(request, "version", "this target speaks version %d",
				 OSD_CONTROL_VERSION);
		return;
	}
	if (strcmp(role, "manager") != 0 && strcmp(role, "tool") != 0) {
		osd_control_fail(request, "bad-value", "role must be manager or tool");
		return;
	}
	osd_log_quote(request->peer->who, sizeof(request->peer->who), who, strlen(who));
	take_role(request, strcmp(role, "manager") == 0);
	json = osd_control_begin(control);
	osd_json_number(&json, "version", OSD_CONTROL_VERSION);
	osd_json_text(&json, "boot", control->boot);
	osd_json_text(&json, "role", roles[request->peer->role]);
	if (control->manager)
		osd_json_text(&json, "manager", control->manager->who);
	else
		osd_json_null(&json, "manager");
	osd_json_usec(&json, "lease", control->targets.lease_usec);
	osd_control_send(control, request->peer, OSD_CONTROL_WELCOME, request->serial, &json);
}

/* ---- looking --------------------------------------------------------------------------------- */

static void answer_snapshot(struct osd_control_request *request)
{
	osd_control_send_snapshot(request->control, request->peer, request->serial);
}

static void answer_watch(struct osd_control_request *request)
{
	struct osd_control_peer *peer = request->peer;
	const struct osd_control_pair *pair = osd_control_find(request, "interval_ms");
	uint64_t interval = 0;
	bool none = pair && pair->value_bytes == 1 && pair->value[0] == '0';

	if (!none &&
	    !osd_control_number_of(request, "interval_ms", WATCH_LEAST, WATCH_MOST, &interval))
		return;
	peer->interval_usec = interval * 1000;
	peer->pushed_usec = peer->heard_usec;
	peer->deaf_usec = 0;
	peer->hurry = interval && osd_exec_jobs_wait(request->control->targets.exec);
	osd_control_count_watchers(request->control);
	answer_ok(request);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct osd_control_row rows[] = {
	{OSD_CONTROL_HELLO, "HELLO", "role who versions", false, answer_hello},
	{OSD_CONTROL_SNAPSHOT, "SNAPSHOT", "", false, answer_snapshot},
	{OSD_CONTROL_WATCH, "WATCH", "interval_ms", false, answer_watch},
	{OSD_CONTROL_WORKERS, "WORKERS", "count", true, osd_control_do_workers},
	{OSD_CONTROL_POOL, "POOL", NULL, true, osd_control_do_pool},
	{OSD_CONTROL_RECYCLE, "RECYCLE", "name", true, osd_control_do_recycle},
	{OSD_CONTROL_PRINCIPAL, "PRINCIPAL", "name weight queue at_once", true, osd_control_do_principal},
	{OSD_CONTROL_USAGE, "USAGE", "after", false, osd_control_do_usage},
	{OSD_CONTROL_SHED, "SHED", "on", true, osd_control_do_shed},
	{OSD_CONTROL_JOBS, "JOBS", "", false, osd_control_do_jobs},
	{OSD_CONTROL_RELOAD, "RELOAD", "", true, osd_control_do_reload},
	/* Any peer may send these, not only the manager: they change nothing that the manager
	 * decides. */
	{OSD_CONTROL_FREEZE, "FREEZE", "store wait_ms freeze_ms", false, osd_control_do_freeze},
	{OSD_CONTROL_THAW, "THAW", "", false, osd_control_do_thaw},
};

static const struct osd_control_row *find_row(uint16_t type)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(rows); i++)
		if (rows[i].type == type)
			return &rows[i];
	return NULL;
}

/* keys NULL: any. */
static bool is_listed(const struct osd_control_pair *pair, const char *keys)
{
	return !keys || osd_has_word(keys, ' ', pair->key, pair->key_bytes);
}

static bool check_pair(struct osd_control_request *request, const struct osd_control_pair *pair)
{
	bool is_note = osd_control_is_key(pair, "by") || osd_control_is_key(pair, "why");
	char key[OSD_CONTROL_KEY_MAX + 1] = "";

	memcpy(key, pair->key, pair->key_bytes);
	for (size_t i = 0; i < request->count; i++) {
		if (osd_control_is_key(&request->pairs[i], key))
			return osd_control_fail(request, "bad-value", "%s comes twice", key);
	}
	if (is_note ? !request->row->changes : !is_listed(pair, request->row->keys))
		return osd_control_fail(request, "bad-value", "%s has no key %s",
					request->row->name, key);
	if (is_note && pair->value_bytes >= OSD_CONTROL_NOTE_MAX)
		return osd_control_fail(request, "bad-value", "%s is longer than %d bytes", key,
					OSD_CONTROL_NOTE_MAX - 1);
	return true;
}

/* False: it is answered. */
static bool read_pairs(struct osd_control_request *request, const struct osd_control_frame *frame)
{
	struct osd_rd r = osd_rd_init(frame->payload, frame->payload_bytes);
	struct osd_control_pair pair;

	while (osd_control_next(&r, &pair)) {
		if (request->count == OSD_ARRAY_SIZE(request->pairs))
			return osd_control_fail(request, "bad-value",
						"a request has at most %d keys",
						OSD_CONTROL_KEYS_MAX);
		if (!check_pair(request, &pair))
			return false;
		request->pairs[request->count++] = pair;
	}
	return !r.bad || osd_control_fail(request, "bad-value", "a request is lines of key=value");
}

/* False: it is answered. */
static bool may_ask(struct osd_control_request *request)
{
	const struct osd_control *control = request->control;
	enum osd_control_role role = request->peer->role;

	if (role == OSD_CONTROL_STRANGER && request->row->type != OSD_CONTROL_HELLO)
		return osd_control_fail(request, "hello", "say HELLO first");
	if (!request->row->changes)
		return true;
	if (role == OSD_CONTROL_STANDBY)
		return osd_control_fail(request, "not-manager", "%s is the resource manager",
					control->manager ? control->manager->who : "nobody");
	if (role == OSD_CONTROL_TOOL && control->manager)
		return osd_control_fail(request, "managed", "%s is the resource manager: ask it",
					control->manager->who);
	return true;
}

void osd_control_answer(struct osd_control *control, struct osd_control_peer *peer,
			const struct osd_control_frame *frame)
{
	struct osd_control_request request = {.control = control,
					      .peer = peer,
					      .row = find_row(frame->type),
					      .serial = frame->serial};

	if (!request.row)
		osd_control_fail(&request, "frame", "type %u is none of a request", frame->type);
	else if (may_ask(&request) && read_pairs(&request, frame))
		request.row->answer(&request);
}
