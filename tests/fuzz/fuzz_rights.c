/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_rights.c -- invariant: whatever a script calls, and however an administrator changes policies, keys and
 * tags meanwhile, no call succeeds that the rules below refuse.  A job that has lost its rights makes no
 * further call.  A sweep ends a job exactly if it has lost them, or if it has been passed descriptors of an
 * object that it may not read now.
 *
 * Input: 16 bytes for the job (zone, method, permissions, tag, range, list of attributes), then steps of 6
 * bytes: what, object, and four bytes of parameters.  The rules are in rights_rules.h. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/util.h"
#include "exec/session/session.h"
#include "fuzz.h"
#include "rights_rules.h"
#include "wire/cursor.h"

#define STEPS_MAX  64
#define STEP_BYTES 6
#define JOB_BYTES  16
#define CAPACITY   (8u << 20)

/* ---- the store ------------------------------------------------------------------------------- */

static struct osd_txn *begin(struct world *w)
{
	struct osd_txn *txn;

	HOLDS(osd_txn_begin(w->objects, 0, &txn) == OSD_OK);
	return txn;
}

static void set_attribute(struct world *w, enum thing thing, uint32_t page, uint32_t number,
			  uint64_t value, size_t length)
{
	struct osd_txn *txn = begin(w);
	uint8_t bytes[8];

	osd_put_be(bytes, value, length);
	HOLDS(osd_attr_set(txn, things[thing].id, page, number, bytes, length) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static void set_key(struct world *w, enum osd_key_level level, uint64_t partition_id)
{
	static const uint8_t identifier[OSD_KEY_IDENTIFIER] = "fuzzed";
	uint8_t seed[OSD_SEED_LENGTH] = {++w->seeds};
	struct osd_key_name name = {level, partition_id, 0};
	struct osd_txn *txn = begin(w);

	HOLDS(osd_keyring_set(w->keyring, txn, &name, OSD_HMAC_SHA256, identifier, seed) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

/* Without data: a store in memory has no files whose descriptors could be passed. */
static void make_object(struct world *w, enum thing thing)
{
	struct osd_txn *txn = begin(w);
	uint64_t id;

	HOLDS(osd_user_object_create(txn, things[thing].id.partition_id, things[thing].id.object_id,
				     1, &id) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static void populate(struct world *w)
{
	struct osd_txn *txn = begin(w);
	uint64_t id;

	HOLDS(osd_partition_create(txn, A, &id) == OSD_OK);
	HOLDS(osd_partition_create(txn, B, &id) == OSD_OK);
	HOLDS(osd_collection_create(txn, A, things[GROUP].id.object_id, OSD_COLLECTION_LINKED,
				    &id) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	make_object(w, LONE);
	make_object(w, MEMBER);
	make_object(w, AWAY);
	set_attribute(w, MEMBER, 4, 1, things[GROUP].id.object_id, 8);
	set_key(w, OSD_KEY_ROOT, 0);
	set_key(w, OSD_KEY_PARTITION, 0);
	set_key(w, OSD_KEY_WORKING, 0);
	set_key(w, OSD_KEY_PARTITION, A);
	set_key(w, OSD_KEY_WORKING, A);
}

static const char *master_file(void)
{
	static char path[64];

	if (!path[0])
		snprintf(path, sizeof(path), "fuzz-rights-%d.key", (int)getpid());
	unlink(path);
	return path;
}

/* ---- the administrator ----------------------------------------------------------------------- */

static uint32_t security_page(enum thing thing)
{
	return thing == ROOT ? 0x90000005 : 0x30000005;
}

static void set_method(struct world *w, uint8_t which, uint8_t value)
{
	enum thing thing = (enum thing[]){ROOT, PART_A, PART_B}[which % 3];

	w->method[which % 3] = value % METHODS;
	set_attribute(w, thing, security_page(thing), 1, value % METHODS, 1);
}

static enum thing key_holder(const struct world *w)
{
	return zone_of(w) == ROOT ? ROOT : PART_A;
}

static void change_key(struct world *w)
{
	set_key(w, OSD_KEY_WORKING, things[key_holder(w)].id.partition_id);
	w->key_changed = true;
}

static void freeze(struct world *w, bool frozen)
{
	enum thing holder = key_holder(w);

	set_attribute(w, holder, security_page(holder), 5, frozen, 2);
	w->frozen = frozen;
}

static void change_tag(struct world *w, enum thing thing, uint32_t tag)
{
	uint32_t page = things[thing].type == OSD_USER_OBJECT  ? 5
			: things[thing].type == OSD_COLLECTION ? 0x60000005
							       : 0x30000005;

	if (thing == ROOT || w->gone[thing])
		return;
	set_attribute(w, thing, page, 0x40000001, tag, 4);
	w->tag[thing] = tag;
}

static void change_list(struct world *w, unsigned list)
{
	w->list = list % LISTS;
	set_attribute(w, PART_A, 0x30000004, 1,
		      (uint64_t)lists[w->list][0] << 32 | lists[w->list][1], 8);
}

/* A sweep by the output thread.  An object that has been removed keeps what was passed of it. */
static void sweep(struct world *w)
{
	bool lost = has_no_rights(w);

	for (unsigned i = 0; i < THINGS; i++)
		if (w->shared[i] && !w->gone[i] && !may(w, (enum thing)i, OSD_PERM_READ))
			lost = true;
	HOLDS(osd_rights_sweep(&w->exec));
	w->ended |= lost;
	HOLDS(atomic_load(&w->run.session.revoked) == w->ended);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint8_t body[OSD_BODY_MAX];

struct step {
	uint8_t what, object, a, b, c, d;
};

static size_t put_entry(uint32_t page, uint32_t number, const uint8_t *value, size_t length)
{
	memset(body, 0, 32);
	osd_put_be(body, page, 4);
	osd_put_be(body + 4, number, 4);
	osd_put_be(body + 14, length, 2);
	memcpy(body + 16, value, length);
	return length > 8 ? 32 : 24;
}

/* The call that a step makes, and whether the rules permit it. */
static bool make_call(struct world *w, const struct step *step, struct osd_call *call)
{
	enum thing thing = (enum thing)(step->object % THINGS);
	const uint32_t *name = attributes[step->d % OSD_ARRAY_SIZE(attributes)];
	uint64_t a = step->a % (2 * LENGTH), b = step->b % (2 * LENGTH);
	static const uint16_t ops[] = {
		OSD_CALL_TYPE,	   OSD_CALL_READ,     OSD_CALL_WRITE,	 OSD_CALL_APPEND,
		OSD_CALL_TRUNCATE, OSD_CALL_CLEAR,    OSD_CALL_PUNCH,	 OSD_CALL_LENGTH,
		OSD_CALL_FLUSH,	   OSD_CALL_SHARE,    OSD_CALL_UNSHARE,	 OSD_CALL_GETATTR,
		OSD_CALL_SETATTR,  OSD_CALL_LISTATTR, OSD_CALL_SWAPATTR, OSD_CALL_ADDATTR,
		OSD_CALL_LIST,	   OSD_CALL_QUERY,    OSD_CALL_CREATE,	 OSD_CALL_REMOVE,
	};

	*call = (struct osd_call){.op = ops[step->c % OSD_ARRAY_SIZE(ops)],
				  .partition_id = things[thing].id.partition_id,
				  .object_id = things[thing].id.object_id,
				  .a = a,
				  .b = b};
	switch (call->op) {
	case OSD_CALL_TYPE:
		return may(w, thing, 0);
	case OSD_CALL_READ:
		return may(w, thing, OSD_PERM_READ) && in_range(w, thing, a, a + b);
	case OSD_CALL_WRITE:
		call->body_bytes = (uint32_t)b;
		return may(w, thing, OSD_PERM_WRITE) && in_range(w, thing, a, a + b);
	case OSD_CALL_CLEAR:
		return may(w, thing, OSD_PERM_WRITE) && in_range(w, thing, a, a + b);
	case OSD_CALL_APPEND:
		call->body_bytes = 1;
		return may(w, thing, OSD_PERM_APPEND) && in_range(w, thing, UINT64_MAX, UINT64_MAX);
	case OSD_CALL_TRUNCATE:
	case OSD_CALL_PUNCH:
		return may(w, thing, OSD_PERM_WRITE) && in_range(w, thing, a, UINT64_MAX);
	case OSD_CALL_LENGTH:
		return may(w, thing, OSD_PERM_READ);
	case OSD_CALL_FLUSH:
		return may(w, thing, OSD_PERM_WRITE);
	case OSD_CALL_SHARE:
		return may(w, thing, OSD_PERM_READ) && in_range(w, thing, 0, UINT64_MAX);
	case OSD_CALL_GETATTR:
		osd_put_be(body, name[0], 4);
		osd_put_be(body + 4, name[1], 4);
		call->body_bytes = 8;
		return may(w, thing, OSD_PERM_GET_ATTR) && may_touch(w, name[0], name[1]);
	case OSD_CALL_SETATTR:
		call->body_bytes = (uint32_t)put_entry(name[0], name[1],
						       (const uint8_t *)"\0\0\0\0\0\0\0\100", 8);
		return may_set(w, thing, name[0], name[1]);
	case OSD_CALL_LISTATTR:
		call->a = APP;
		call->b = 0;
		return may(w, thing, OSD_PERM_GET_ATTR);
	case OSD_CALL_SWAPATTR:
	case OSD_CALL_ADDATTR:
		call->a = (uint64_t)name[0] << 32 | name[1];
		call->b = 0;
		return may(w, thing, OSD_PERM_GET_ATTR) && may_set(w, thing, name[0], name[1]);
	case OSD_CALL_LIST:
		call->a = thing == ROOT	   ? OSD_LIST_PARTITIONS
			  : thing == GROUP ? OSD_LIST_MEMBERS
					   : OSD_LIST_USER_OBJECTS;
		call->b = 0;
		if (call->a == OSD_LIST_USER_OBJECTS)
			thing = call->partition_id == A ? PART_A : PART_B;
		return may(w, thing, OSD_PERM_READ) && (thing == GROUP || owns(w, thing));
	case OSD_CALL_QUERY:
		memset(body, 0, 4);
		body[0] = 1;
		call->a = 0;
		call->body_bytes = 4;
		return may(w, thing, OSD_PERM_QUERY);
	case OSD_CALL_CREATE:
		call->a = 1;
		thing = call->partition_id == A ? PART_A : PART_B;
		return owns(w, thing) && method_used(w) >= method_over(w, thing) &&
		       (!is_limited(w) || (capability_of(w)->policy_access_tag == 0 &&
					   capability_of(w)->permissions & OSD_PERM_CREATE));
	case OSD_CALL_REMOVE:
		return may(w, thing, OSD_PERM_REMOVE);
	default:
		return true;
	}
}

/* What a call that was done leaves. */
static void note_done(struct world *w, const struct osd_call *call, enum thing thing)
{
	bool is_object = things[thing].type == OSD_USER_OBJECT;

	if (call->op == OSD_CALL_SHARE)
		w->shared[thing] = true;
	if (call->op == OSD_CALL_REMOVE)
		w->gone[thing] = true;
	if (call->op == OSD_CALL_CREATE && is_object && call->object_id) {
		HOLDS(w->gone[thing]);
		w->tag[thing] = 0;
		w->gone[thing] = w->shared[thing] = false; /* another object */
	}
}

/* Attributes that the list shows. */
static void check_listed(const struct world *w, const struct osd_answer *answer)
{
	for (size_t at = 0; at + 16 <= answer->body_bytes;) {
		size_t length = (size_t)osd_get_be(body + at + 14, 2);

		HOLDS(may_touch(w, (uint32_t)osd_get_be(body + at, 4),
				(uint32_t)osd_get_be(body + at + 4, 4)));
		at += (16 + length + 7) / 8 * 8;
	}
}

/* Ids that a query tells are of objects that the job may find. */
static void check_found(const struct world *w, const struct osd_call *call,
			const struct osd_answer *answer)
{
	for (size_t at = 0; at + 8 <= answer->body_bytes; at += 8)
		for (unsigned i = 0; i < THINGS; i++)
			if (things[i].type == OSD_USER_OBJECT &&
			    things[i].id.partition_id == call->partition_id &&
			    things[i].id.object_id == osd_get_be(body + at, 8))
				HOLDS(may(w, (enum thing)i, OSD_PERM_QUERY));
}

/* False: the job is over. */
static bool call(struct world *w, const struct step *step)
{
	uint8_t frame[OSD_FRAME_BYTES], answer_frame[OSD_FRAME_BYTES];
	struct osd_session *session = &w->run.session;
	struct osd_answer answer;
	struct osd_call call;
	bool over = w->ended || has_no_rights(w), permitted = make_call(w, step, &call);
	enum osd_served served;

	osd_call_encode(&call, frame);
	served = osd_session_serve(session, frame, body, answer_frame, body);
	HOLDS(over == (served == OSD_SERVED_FAULT && session->fault == OSD_REASON_REVOKED));
	if (served != OSD_SERVED)
		return false;
	HOLDS(osd_answer_decode(answer_frame, &answer));
	if (answer.code != OSD_ANSWER_OK) {
		HOLDS(answer.code != OSD_ANSWER_PERMISSION || !permitted ||
		      step->object % THINGS == ROOT);
		return true;
	}
	HOLDS(permitted);
	if (call.op == OSD_CALL_LISTATTR)
		check_listed(w, &answer);
	if (call.op == OSD_CALL_QUERY)
		check_found(w, &call, &answer);
	note_done(w, &call, (enum thing)(step->object % THINGS));
	return true;
}

/* ---- the job --------------------------------------------------------------------------------- */

static enum osd_status hook_wrote(void *arg)
{
	(void)arg;
	return OSD_OK;
}

static enum osd_status hook_share(void *arg, const int *fds, size_t count)
{
	(void)arg, (void)fds, (void)count;
	return OSD_OK;
}

static void choose_zone(struct world *w, uint8_t byte)
{
	static const enum thing zones[] = {LONE, GROUP, PART_A, ROOT};
	enum thing zone = zones[byte % OSD_ARRAY_SIZE(zones)];

	w->run.session.zone = (struct osd_zone){.type = things[zone].type, .id = things[zone].id};
}

/* The capability that names the zone; method NOSEC: none. */
static void choose_rights(struct world *w, const uint8_t *bytes)
{
	struct osd_job_rights *rights = &w->run.session.rights;
	const struct osd_zone *zone = &w->run.session.zone;
	bool of_partition = zone->type == OSD_ROOT || zone->type == OSD_PARTITION;

	*rights = (struct osd_job_rights){.limited = bytes[1] % METHODS != OSD_NOSEC};
	if (!rights->limited)
		return;
	rights->grant = (struct osd_grant){
		.verified = true,
		.level = OSD_KEY_WORKING,
		.key_partition = zone->id.partition_id,
		.capability = {.format = OSD_CAPABILITY_OSD2,
			       .security_method = bytes[1] % METHODS,
			       .object_type = (uint8_t)zone->type,
			       .descriptor_type =
				       of_partition ? OSD_CAPDESC_PARTITION : OSD_CAPDESC_OBJECT,
			       .permissions =
				       (uint16_t)(osd_get_be(bytes + 2, 2) | OSD_PERM_FUN_EXE),
			       .policy_access_tag = bytes[4] % 2,
			       .allowed_attributes_access = bytes[5] % 2,
			       .allowed_partition_id = zone->id.partition_id,
			       .allowed_object_id = zone->id.object_id,
			       .allowed_range_start = bytes[6] % LENGTH,
			       .allowed_range_length = bytes[7] % LENGTH},
	};
	osd_rights_stamp(w->keyring, rights);
}

static void open_job(struct world *w, const uint8_t *bytes)
{
	struct osd_session *session = &w->run.session;

	w->job.record.state = OSD_STATE_RUNNING;
	w->job.run = &w->run;
	w->sandbox.user = &w->run;
	w->run.references = 1;
	w->run.exec = &w->exec;
	w->run.job = &w->job;
	*session = (struct osd_session){
		.objects = w->objects,
		.host = &w->runs.host,
		.job = {A, 0x7000},
		.limits = {.io_bytes = 64u << 20, .result_bytes = 1u << 20},
		.shares_lock = OSD_LOCK_INITIALIZER(OSD_RANK_SHARES),
		.hooks = {.wrote = hook_wrote, .share = hook_share},
	};
	choose_zone(w, bytes[0]);
	choose_rights(w, bytes);
	HOLDS(osd_session_init(session) == OSD_OK);
}

static bool take(struct world *w, const struct step *step)
{
	switch (step->what % 16) {
	case 0:
		set_method(w, step->object, step->a);
		return true;
	case 1:
		change_tag(w, (enum thing)(step->object % THINGS), step->a % 2);
		return true;
	case 2:
		change_list(w, step->a);
		return true;
	case 3:
		sweep(w);
		return true;
	case 4:
		if (step->a % 4 == 0)
			change_key(w);
		else
			freeze(w, step->a % 4 == 1);
		return true;
	default:
		return call(w, step);
	}
}

static void run(struct world *w, struct osd_rd r)
{
	const uint8_t *bytes;
	bool goes_on = true;

	for (int i = 0; i < STEPS_MAX && goes_on && osd_rd_left(&r) >= STEP_BYTES; i++) {
		bytes = osd_rd_bytes(&r, STEP_BYTES);
		goes_on = take(w, &(struct step){bytes[0], bytes[1], bytes[2], bytes[3], bytes[4],
						 bytes[5]});
	}
}

static void open_world(struct world *w, const char *file)
{
	struct osd_objects_config config = {0};
	char message[256];

	HOLDS(osd_objects_open(&config, message, &w->objects) == OSD_OK);
	HOLDS(osd_objects_format(w->objects, CAPACITY) == OSD_OK);
	HOLDS(osd_keyring_open(w->objects, file, message, &w->keyring) == OSD_OK);
	osd_lock_init(&w->exec.lock, OSD_RANK_EXEC);
	HOLDS(osd_job_table_init(&w->exec.table) == OSD_OK);
	w->exec.objects = w->objects;
	w->exec.sandboxes = &w->sandboxes;
	w->exec.runs = &w->runs;
	w->exec.flow = &w->flow;
	w->exec.pools = &w->pools;
	w->exec.keyring = w->keyring;
	w->runs.host = (struct osd_session_host){
		.exec = &w->exec,
		.keyring = w->keyring,
		.calls = &w->runs.calls,
		.owner_in = osd_exec_owner_in,
		.check_partition = osd_exec_check_partition,
		.partition_made = osd_exec_partition_made,
		.collection_removed = osd_exec_collection_removed,
	};
	osd_objects_watch_removals(w->objects, osd_exec_removed, &w->exec);
	w->sandboxes.list = &w->sandbox;
	w->exec.monitor.wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	HOLDS(w->exec.monitor.wake >= 0);
	populate(w);
	change_list(w, 0);
}

static void close_world(struct world *w)
{
	osd_session_release(&w->run.session);
	close(w->exec.monitor.wake);
	osd_job_table_release(&w->exec.table);
	osd_keyring_close(w->keyring);
	osd_objects_close(w->objects);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world world;
	const char *file = master_file();

	if (size < JOB_BYTES)
		return 0;
	osd_log_init(-1, "fuzz", OSD_LOG_ERROR);
	world = (struct world){0};
	open_world(&world, file);
	open_job(&world, data);
	run(&world, osd_rd_init(data + JOB_BYTES, size - JOB_BYTES));
	close_world(&world);
	unlink(file);
	return 0;
}
