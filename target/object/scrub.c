/* SPDX-License-Identifier: GPL-2.0-or-later */
/* scrub.c -- the helper that reads all data and compares it with its checksums (docs/reliability.md).
 *
 * A pass walks over the object records in the order of their keys.  Every few seconds, and when the store is
 * closed, META's Q record says how far it is, so a restart costs little; within an object it begins again.
 * Blocks without a sum get one; of an object that has been at rest the files are sealed.
 *
 * Commands have priority: after each piece the scrub waits as long as the rate demands, and while
 * commands wait for a worker.  A piece is locked against writers while it is read. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "object/internal.h"
#include "wire/cursor.h"

#define PIECE_BYTES  (UINT64_C(1) << 20)
#define SCAN_RECORDS 1024u /* records of one scan */
#define SCAN_OBJECTS 16u   /* objects read before the next scan */
#define REST_TICKS   60u   /* seconds without a write, before files are sealed */
#define IDLE_USEC    UINT64_C(10000000)
#define STORE_USEC   UINT64_C(5000000)	  /* between two records of the progress */
#define LEAST_BYTES  (UINT64_C(16) << 10) /* the charge of an object against the rate, for its lookup */
#define PASS_VERSION 1u
#define PASS_BYTES   80u

/* ---- what is remembered ------------------------------------------------------------------- */

static void pass_encode(const struct osd_scrub_pass *pass, uint8_t bytes[PASS_BYTES])
{
	struct osd_wr w = osd_wr_init(bytes, PASS_BYTES);

	osd_wr_be(&w, PASS_VERSION, 1);
	osd_wr_be(&w, pass->state, 1);
	osd_wr_zero(&w, 2);
	osd_wr_be(&w, pass->incarnation, 4);
	osd_wr_be(&w, pass->partition_id, 8);
	osd_wr_be(&w, pass->object_id, 8);
	osd_wr_be(&w, pass->began_ms, 8);
	osd_wr_be(&w, pass->ended_ms, 8);
	osd_wr_be(&w, pass->objects, 8);
	osd_wr_be(&w, pass->blocks, 8);
	osd_wr_be(&w, pass->made, 8);
	osd_wr_be(&w, pass->damaged, 8);
	osd_wr_be(&w, pass->failed, 8);
}

static bool pass_decode(const uint8_t *bytes, size_t length, struct osd_scrub_pass *ret_pass)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	struct osd_scrub_pass pass;
	uint64_t version = osd_rd_be(&r, 1), state = osd_rd_be(&r, 1);

	osd_rd_be(&r, 2);
	pass.state = (enum osd_scrub_state)state;
	pass.incarnation = (uint32_t)osd_rd_be(&r, 4);
	pass.partition_id = osd_rd_be(&r, 8);
	pass.object_id = osd_rd_be(&r, 8);
	pass.began_ms = osd_rd_be(&r, 8);
	pass.ended_ms = osd_rd_be(&r, 8);
	pass.objects = osd_rd_be(&r, 8);
	pass.blocks = osd_rd_be(&r, 8);
	pass.made = osd_rd_be(&r, 8);
	pass.damaged = osd_rd_be(&r, 8);
	pass.failed = osd_rd_be(&r, 8);
	if (r.bad || version != PASS_VERSION || state > OSD_SCRUB_STOPPED)
		return false;
	*ret_pass = pass;
	return true;
}

enum osd_status osd_scrub_load(struct osd_objects *objects)
{
	struct osd_key key = osd_key_meta(OSD_META_SCRUB);
	uint8_t bytes[PASS_BYTES];
	size_t length;
	enum osd_status status;

	if (!objects->sums.kept)
		return OSD_OK;
	status = osd_kv_get(objects->kv, NULL, OSD_KV_META, osd_key_bytes(&key), 0, bytes,
			    sizeof(bytes), &length);
	/* A record that does not decode counts as none: then a pass begins. */
	if (status == OSD_OK)
		pass_decode(bytes, OSD_MIN(length, sizeof(bytes)), &objects->sums.pass);
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

static void show_pass(struct osd_objects *objects, const struct osd_scrub_pass *pass)
{
	osd_lock(&objects->sums.lock);
	objects->sums.pass = *pass;
	osd_unlock(&objects->sums.lock);
}

static void store_pass(struct osd_objects *objects, const struct osd_scrub_pass *pass)
{
	struct osd_key key = osd_key_meta(OSD_META_SCRUB);
	uint8_t bytes[PASS_BYTES];
	struct osd_kv_txn *kv;

	show_pass(objects, pass);
	pass_encode(pass, bytes);
	if (osd_own_begin(objects, OSD_KV_CHANGE, &kv) != OSD_OK)
		return;
	if (osd_key_put(kv, OSD_KV_META, &key, bytes, sizeof(bytes)) == OSD_OK)
		osd_own_commit(objects, kv, false);
	else
		osd_own_abort(kv);
}

/* ---- being told --------------------------------------------------------------------------- */

void osd_scrub_tell(struct osd_objects *objects, bool start)
{
	struct osd_sums *sums = &objects->sums;

	osd_lock(&sums->lock);
	sums->start = start && (sums->pass.state != OSD_SCRUB_RUNNING || sums->stop);
	sums->stop = !start;
	osd_unlock(&sums->lock);
	/* Without a thread, the next call of osd_scrub_check makes it start. */
	(void)osd_helper_call(&objects->scrub);
}

static bool is_told(struct osd_objects *objects, bool *what, bool take)
{
	bool told;

	osd_lock(&objects->sums.lock);
	told = *what;
	if (take)
		*what = false;
	osd_unlock(&objects->sums.lock);
	return told;
}

static bool must_end(struct osd_objects *objects)
{
	return osd_should_stop(objects) || is_told(objects, &objects->sums.stop, false);
}

/* ---- one object --------------------------------------------------------------------------- */

/* A piece ends at the end of a block, and at the end of the head, whose last block may be shorter.  The
 * last piece has no end, so its lock keeps writers from adding bytes. */
static uint64_t piece_end(const struct osd_object *object, uint64_t at)
{
	uint64_t border = object->file.head_bytes, end = at + PIECE_BYTES;

	if (at < border && border < end)
		end = border;
	return end < atomic_load(&object->length) ? end : UINT64_MAX;
}

static enum osd_status check_piece(struct osd_object *object, uint64_t at,
				   struct osd_sums_check *check, uint64_t *ret_end)
{
	struct osd_range range;
	enum osd_status status = osd_object_lock_read(object, &range, at, UINT64_MAX, false);

	if (status != OSD_OK)
		return status;
	*ret_end = piece_end(object, at);
	status = osd_object_check_sums(object, at, *ret_end - at, check);
	osd_object_unlock_read(object, &range);
	return status;
}

static bool is_at_rest(struct osd_object *object)
{
	uint64_t last = atomic_load(&object->write_tick);

	return last == 0 || atomic_load(&object->objects->tick) - last >= REST_TICKS;
}

static enum osd_status seal(struct osd_object *object)
{
	struct osd_range range;
	enum osd_status status = osd_object_lock_read(object, &range, 0, UINT64_MAX, false);

	if (status != OSD_OK)
		return status;
	if (object->has_files && is_at_rest(object))
		status = osd_tier_seal_sums(&object->file);
	osd_object_unlock_read(object, &range);
	return status;
}

static enum osd_status scrub_object(struct osd_object *object, struct osd_scrub_pass *pass)
{
	enum osd_status status = OSD_OK;
	uint64_t at = 0;

	while (status == OSD_OK && at != UINT64_MAX) {
		struct osd_sums_check check = {.make = true,
					       .device = true,
					       .damage = osd_sums_note_damage,
					       .arg = object};

		status = check_piece(object, at, &check, &at);
		pass->blocks += check.blocks;
		pass->made += check.unknown;
		pass->damaged += check.damaged;
		if (!osd_upkeep_keep_pace(object->objects,
					  OSD_MAX(LEAST_BYTES, check.blocks * OSD_SUM_BLOCK),
					  atomic_load(&object->objects->sums.rate), must_end))
			return OSD_E_TASK_ABORTED;
	}
	return status == OSD_OK && is_at_rest(object) ? seal(object) : status;
}

/* False: stopped before its end. */
static bool look_at(struct osd_objects *objects, const struct osd_place *place,
		    struct osd_scrub_pass *pass)
{
	OSD_CLEANUP(osd_object_putp) struct osd_object *object = NULL;
	struct osd_object_id id = {place->partition_id, place->object_id};
	enum osd_status status = osd_object_get(objects, id, &object);

	/* A partition of another incarnation: the reaper frees what was found. */
	if (status == OSD_OK && object->partition->incarnation == place->incarnation)
		status = scrub_object(object, pass);
	if (status == OSD_E_TASK_ABORTED)
		return false;
	if (osd_status_is_gone(status))
		return true;
	pass->objects++;
	if (status == OSD_OK)
		return true;
	pass->failed++;
	osd_warning("object %" PRIx64 ".%" PRIx64 " could not be compared with its checksums: %s",
		    id.partition_id, id.object_id, osd_status_info(status)->meaning);
	return true;
}

/* ---- a pass ------------------------------------------------------------------------------- */

struct scan {
	struct osd_place next; /* the first record not visited yet */
	unsigned looked_at;
	bool more;
	struct osd_place found[SCAN_OBJECTS];
	size_t count;
};

static bool scan_record(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct scan *scan = arg;
	const uint8_t *bytes = key.data;
	struct osd_record record;
	struct osd_place place;

	if (key.length != OSD_KEY_OBJECT_PART)
		return true;
	place = osd_key_place(bytes);
	if (scan->looked_at++ == SCAN_RECORDS || scan->count == SCAN_OBJECTS) {
		scan->next = place;
		scan->more = true;
		return false;
	}
	if (osd_record_decode(value.data, value.length, &record) == OSD_OK &&
	    record.type == OSD_USER_OBJECT && (record.flags & OSD_REC_HAS_FILES))
		scan->found[scan->count++] = place;
	return true;
}

static void set_position(struct osd_scrub_pass *pass, const struct osd_place *place)
{
	pass->partition_id = place->partition_id;
	pass->incarnation = place->incarnation;
	pass->object_id = place->object_id;
}

/* *more becomes false at the end of the pass. */
static enum osd_status walk_on(struct osd_objects *objects, struct osd_scrub_pass *pass, bool *more)
{
	struct osd_place from = {pass->partition_id, pass->incarnation, pass->object_id};
	struct osd_key key = osd_key_object(&from);
	struct scan scan = {.count = 0};
	enum osd_status status = osd_kv_scan(objects->kv, NULL, OSD_KV_OBJECTS, osd_key_bytes(&key),
					     0, scan_record, &scan);

	if (status != OSD_OK) {
		osd_warning("the scrub cannot read the objects' records: %s",
			    osd_status_info(status)->meaning);
		return status;
	}
	for (size_t i = 0; i < scan.count; i++) {
		set_position(pass, &scan.found[i]);
		if (must_end(objects) || !look_at(objects, &scan.found[i], pass))
			return OSD_OK;
		show_pass(objects, pass);
	}
	if (scan.more)
		set_position(pass, &scan.next);
	*more = scan.more;
	return OSD_OK;
}

static void begin_pass(struct osd_objects *objects, struct osd_scrub_pass *pass)
{
	/* One that was stopped continues, and keeps the damage it has met. */
	if (pass->state != OSD_SCRUB_STOPPED) {
		*pass = (struct osd_scrub_pass){.began_ms = osd_wall_msec(),
						.ended_ms = pass->ended_ms};
		osd_sums_begin_pass(objects);
	}
	pass->state = OSD_SCRUB_RUNNING;
	osd_info("scrub: comparing all data with its checksums, at most %" PRIu64 " KiB a second",
		 atomic_load(&objects->sums.rate) >> 10);
	store_pass(objects, pass);
}

static void end_pass(struct osd_objects *objects, struct osd_scrub_pass *pass, bool is_done)
{
	pass->state = is_done ? OSD_SCRUB_IDLE : OSD_SCRUB_STOPPED;
	pass->ended_ms = osd_wall_msec();
	if (is_done)
		osd_sums_end_pass(objects);
	store_pass(objects, pass);
	osd_log(pass->damaged || pass->failed ? OSD_LOG_WARNING : OSD_LOG_INFO,
		"scrub %s: %" PRIu64 " objects, %" PRIu64 " blocks; %" PRIu64 " damaged, %" PRIu64
		" had no checksum yet; %" PRIu64 " objects could not be read",
		is_done ? "done" : "stopped", pass->objects, pass->blocks, pass->damaged,
		pass->made, pass->failed);
}

static void run_pass(struct osd_objects *objects, struct osd_scrub_pass *pass)
{
	uint64_t stored = osd_monotonic_usec();
	enum osd_status status = OSD_OK;
	bool more = true;

	while (status == OSD_OK && more && !must_end(objects)) {
		status = walk_on(objects, pass, &more);
		if (osd_monotonic_usec() - stored < STORE_USEC)
			continue;
		store_pass(objects, pass);
		stored = osd_monotonic_usec();
	}
	if (osd_should_stop(objects)) /* it continues at the next opening */
		store_pass(objects, pass);
	else
		end_pass(objects, pass, !more);
}

/* Whether the interval since the last pass is over.  *ret_pass: the present state of the pass. */
static bool is_due(struct osd_objects *objects, struct osd_scrub_pass *ret_pass)
{
	uint64_t now = osd_wall_msec();

	osd_lock(&objects->sums.lock);
	*ret_pass = objects->sums.pass;
	osd_unlock(&objects->sums.lock);
	return objects->sums.interval_ms && now >= ret_pass->ended_ms &&
	       now - ret_pass->ended_ms >= objects->sums.interval_ms;
}

void osd_scrub_work(void *arg)
{
	struct osd_objects *objects = arg;
	struct osd_scrub_pass pass;
	bool due = is_due(objects, &pass);

	if (pass.state != OSD_SCRUB_RUNNING) { /* otherwise the last run of the target left it */
		bool start = is_told(objects, &objects->sums.start, true);

		is_told(objects, &objects->sums.stop, true);
		if (!start && !due)
			return;
		begin_pass(objects, &pass);
	}
	run_pass(objects, &pass);
}

uint64_t osd_scrub_check(void *arg)
{
	struct osd_objects *objects = arg;
	struct osd_scrub_pass pass;

	if (is_due(objects, &pass) || pass.state == OSD_SCRUB_RUNNING ||
	    is_told(objects, &objects->sums.start, false))
		(void)osd_helper_call(&objects->scrub);
	return osd_monotonic_usec() + IDLE_USEC;
}
