/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums.c -- see sums.h: whether the store keeps checksums, which of them are valid after a power
 * failure, and the list of damaged blocks.  Not here: the scrub (scrub.c). */
#include "object/sums.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/ration.h"
#include "base/util.h"
#include "object/internal.h"
#include "object/run.h"

/* log lines about damaged blocks that are not in the list */
#define UNLISTED_LINES 10u
#define UNLISTED_USEC  UINT64_C(1000000)

/* ---- on and off -------------------------------------------------------------------------- */

static enum osd_status turn_off(struct osd_objects *objects)
{
	struct osd_media *media = objects->media;
	/* Files first.  Once the feature is off, bytes change without their sums.  A sealed file of
	 * sums that stayed would count as valid when checksums are on again. */
	enum osd_status status = osd_file_data_remove_sums(media->main.data_fd);

	osd_info("checksums are turned off: their files are removed");
	if (status == OSD_OK && media->heads.data_fd >= 0)
		status = osd_file_data_remove_sums(media->heads.data_fd);
	return status == OSD_OK ? osd_media_set_feature(media, OSD_MEDIA_SUMS, false) : status;
}

static enum osd_status change_use(struct osd_objects *objects, enum osd_sums_use use,
				  char message[256])
{
	bool kept = objects->media->features & OSD_MEDIA_SUMS, wanted = use == OSD_SUMS_ON;
	enum osd_status status;

	if (use == OSD_SUMS_AS_STORED || kept == wanted)
		return OSD_OK;
	/* Both superblocks have the feature, and files of sums are on both devices. */
	if (objects->media->heads_absent)
		return OSD_EXPLAIN(
			message, OSD_E_PARAM_FIELD,
			"option 'checksums' cannot be changed while the SSD directory is absent");
	status = wanted ? osd_media_set_feature(objects->media, OSD_MEDIA_SUMS, true)
			: turn_off(objects);
	if (status != OSD_OK)
		snprintf(message, 256, "cannot turn checksums %s: %s", wanted ? "on" : "off",
			 osd_status_info(status)->meaning);
	return status;
}

static enum osd_status wrap(struct osd_objects *objects, bool verify)
{
	struct osd_tier *tier = &objects->tier;
	bool heads_absent = objects->media && objects->media->heads_absent;
	enum osd_status status = OSD_OK;

	if (!heads_absent)
		status = osd_sums_data_wrap(OSD_STEAL(tier->head), verify, &objects->sums.figures,
					    &tier->head);
	if (status == OSD_OK && tier->tail)
		status = osd_sums_data_wrap(OSD_STEAL(tier->tail), verify, &objects->sums.figures,
					    &tier->tail);
	return status;
}

enum osd_status osd_objects_open_sums(struct osd_objects *objects,
				      const struct osd_sums_config *config, char message[256])
{
	const struct osd_sums_config none = {0};
	enum osd_status status = OSD_OK;

	if (!config)
		config = &none;
	if (objects->media)
		status = change_use(objects, config->use, message);
	if (status != OSD_OK)
		return status;
	objects->sums.kept = objects->media ? objects->media->features & OSD_MEDIA_SUMS
					    : config->use == OSD_SUMS_ON;
	if (!objects->sums.kept && config->verify == OSD_VERIFY_ALWAYS)
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
				   "option 'verify' is always, but this store keeps no checksums: "
				   "give checksums=on as well");
	if (!objects->sums.kept)
		return OSD_OK;
	objects->sums.compares = config->verify == OSD_VERIFY_ALWAYS;
	objects->sums.rate = config->scrub_rate ? config->scrub_rate : OSD_SCRUB_RATE;
	objects->sums.interval_ms = config->scrub_days * 24 * 3600 * 1000;
	objects->open_max =
		OSD_MAX(1, objects->open_max * 2 / 3); /* six descriptors instead of four */
	return wrap(objects, objects->sums.compares);
}

/* ---- power failures ---------------------------------------------------------------------- */

struct beginning {
	struct osd_objects *objects;
	struct osd_run_record run;
};

/* META's S record identifies the machine, its boot and the files of the last run; its number is the epoch.
 * Sums of files that are not sealed are valid only if the machine has not rebooted since, and the files are
 * the same, not a copy. */
static enum osd_status follow_run(struct osd_kv_txn *kv, void *arg)
{
	struct beginning *beginning = arg;
	struct osd_objects *objects = beginning->objects;
	struct osd_run_record last, *run = &beginning->run;
	bool known;
	enum osd_status status = osd_run_record_get(objects, kv, OSD_META_SUMS, 1, &last, &known);

	if (status != OSD_OK && status != OSD_E_NO_OBJECT)
		return status;
	if (status == OSD_OK) {
		/* A record that does not decode counts as a power failure. */
		run->numbers[0] = last.numbers[0];
		if (!known || !osd_run_is_unbroken(objects, &last.at, &run->at))
			run->numbers[0]++;
		if (run->numbers[0] != last.numbers[0])
			osd_warning("the store was not closed in order and the machine was "
				    "restarted, or it is a copy: checksums of what was written "
				    "lately are made again by the next scrub");
	}
	return osd_run_record_put(kv, OSD_META_SUMS, 1, run);
}

static void set_epoch(struct osd_objects *objects, uint32_t epoch)
{
	if (osd_sums_are_kept(objects->tier.head))
		osd_sums_set_epoch(objects->tier.head, epoch);
	if (objects->tier.tail)
		osd_sums_set_epoch(objects->tier.tail, epoch);
}

enum osd_status osd_sums_begin_run(struct osd_objects *objects)
{
	struct beginning beginning = {objects, {.numbers[0] = 1}};
	enum osd_status status;

	if (!objects->sums.kept)
		return OSD_OK;
	osd_run_find(objects, &beginning.run.at);
	/* Durable: after a power failure the next run must not take this epoch again. */
	status = osd_own_run(objects, OSD_COMMIT_DURABLE, follow_run, &beginning);
	if (status == OSD_OK)
		set_epoch(objects, beginning.run.numbers[0]);
	return status;
}

enum osd_status osd_sums_end_run(struct osd_objects *objects)
{
	return objects->sums.kept ? osd_tier_sync_all(&objects->tier) : OSD_OK;
}

/* ---- checking ---------------------------------------------------------------------------- */

struct part_check {
	struct osd_sums_check *check;
	uint64_t shift; /* of the file's offsets */
};

static void tell_damage(void *arg, uint64_t offset)
{
	const struct part_check *part = arg;

	if (part->check->damage)
		part->check->damage(part->check->arg, offset + part->shift);
}

/* Offsets are those of the object, in one of its two files. */
static enum osd_status check_part(struct osd_object *object, bool tail, uint64_t offset,
				  uint64_t length, struct osd_sums_check *check)
{
	struct part_check part = {check, tail ? object->file.head_bytes : 0};
	struct osd_sums_check in_file = {
		.make = check->make, .device = check->device, .damage = tell_damage, .arg = &part};
	enum osd_status status =
		osd_tier_check_sums(&object->file, tail, offset - part.shift, length, &in_file);

	check->blocks += in_file.blocks;
	check->unknown += in_file.unknown;
	check->damaged += in_file.damaged;
	return status == OSD_E_NO_OBJECT ? OSD_OK : status;
}

enum osd_status osd_object_check_sums(struct osd_object *object, uint64_t offset, uint64_t length,
				      struct osd_sums_check *check)
{
	uint64_t border = object->file.head_bytes, in_head;
	enum osd_status status = OSD_OK;

	if (!object->objects->sums.kept || !object->has_files)
		return OSD_OK;
	in_head = offset < border ? OSD_MIN(length, border - offset) : 0;
	if (in_head)
		status = check_part(object, false, offset, in_head, check);
	if (status == OSD_OK && in_head < length && border != OSD_TIER_ONE)
		status = check_part(object, true, offset + in_head, length - in_head, check);
	osd_cache_note_open(object);
	return status;
}

/* ---- damage ------------------------------------------------------------------------------ */

static bool same_block(const struct osd_damaged_block *block, struct osd_object_id id,
		       uint64_t offset)
{
	return osd_same_id(block->id, id) && block->offset == offset;
}

void osd_sums_note_damage(void *arg, uint64_t offset)
{
	const struct osd_object *object = arg;
	struct osd_sums *sums = &object->objects->sums;
	static struct osd_ration ration = OSD_RATION(UNLISTED_LINES, UNLISTED_USEC);
	bool known = false, listed;
	unsigned withheld;

	osd_lock(&sums->lock);
	for (size_t i = 0; !known && i < sums->count; i++) {
		known = same_block(&sums->list[i], object->id, offset);
		sums->list[i].seen = sums->list[i].seen || known;
	}
	listed = known || sums->count < OSD_SUMS_LIST;
	if (!known && listed)
		sums->list[sums->count++] = (struct osd_damaged_block){object->id, offset, true};
	osd_unlock(&sums->lock);
	if (!known && (listed || osd_ration_take(&ration, osd_monotonic_usec(), &withheld)))
		osd_error("object %" PRIx64 ".%" PRIx64 " is damaged: bytes %" PRIu64 " to %" PRIu64
			  " differ from their checksum; write them again, or restore the object",
			  object->id.partition_id, object->id.object_id, offset,
			  offset + OSD_SUM_BLOCK - 1);
}

void osd_sums_note_read(struct osd_object *object, uint64_t offset, uint64_t length)
{
	struct osd_sums_check check = {.damage = osd_sums_note_damage, .arg = object};

	osd_object_check_sums(object, offset, length, &check);
}

uint64_t osd_object_first_damage(struct osd_object *object, uint64_t start)
{
	struct osd_sums *sums = &object->objects->sums;
	uint64_t first = UINT64_MAX;

	osd_lock(&sums->lock);
	for (size_t i = 0; i < sums->count; i++) {
		const struct osd_damaged_block *block = &sums->list[i];

		if (same_block(block, object->id, block->offset) &&
		    block->offset + OSD_SUM_BLOCK > start)
			first = OSD_MIN(first, block->offset);
	}
	osd_unlock(&sums->lock);
	return first == UINT64_MAX ? start : first;
}

void osd_sums_begin_pass(struct osd_objects *objects)
{
	struct osd_sums *sums = &objects->sums;

	osd_lock(&sums->lock);
	for (size_t i = 0; i < sums->count; i++)
		sums->list[i].seen = false;
	osd_unlock(&sums->lock);
}

void osd_sums_end_pass(struct osd_objects *objects)
{
	struct osd_sums *sums = &objects->sums;
	size_t kept = 0;

	osd_lock(&sums->lock);
	for (size_t i = 0; i < sums->count; i++)
		if (sums->list[i].seen)
			sums->list[kept++] = sums->list[i];
	sums->count = kept;
	osd_unlock(&sums->lock);
}

bool osd_objects_keep_sums(const struct osd_objects *objects)
{
	return objects->sums.kept;
}

bool osd_objects_compare_reads(const struct osd_objects *objects)
{
	return objects->sums.compares;
}

void osd_sums_stats(struct osd_objects *objects, struct osd_sums_stats *ret_stats)
{
	struct osd_sums *sums = &objects->sums;

	*ret_stats = (struct osd_sums_stats){
		.kept = sums->kept,
		.checked = atomic_load(&sums->figures.checked),
		.made = atomic_load(&sums->figures.made),
		.damaged = atomic_load(&sums->figures.damaged),
		.forgotten = atomic_load(&sums->figures.forgotten),
	};
	osd_lock(&sums->lock);
	ret_stats->damaged_now = sums->count;
	ret_stats->pass = sums->pass;
	osd_unlock(&sums->lock);
}
