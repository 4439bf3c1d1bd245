/* SPDX-License-Identifier: GPL-2.0-or-later */
/* open.c -- the object layer as a whole: open, close, a freeze of its files, FORMAT OSD. This file
 * calls the others, and none of this folder calls it. */
#include "object/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/util.h"
#include "object/name_cache.h"
#include "object/named.h"
#include "object/txn_run.h"
#include "object/value_index.h"
#include "object/view_impl.h"
#include "store/direct.h"
#include "store/freeze.h"
#include "store/stand_in.h"

#define ROOM_BYTES (UINT64_C(1) << 20) /* less than this is none */
#define ROOM_TRIES 64u

/* ---- opening the stores ------------------------------------------------------------------ */

/* Opens a unit without a directory, for which the library for tests is necessary. */
static enum osd_status open_in_memory(struct osd_objects *objects, char message[256])
{
	if (!osd_stand_ins)
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD, "no data directory is named");
	memcpy(objects->system_id, "\x01\x01\x00\x10IOSD    memory  ", sizeof(objects->system_id));
	snprintf(objects->serial, sizeof(objects->serial), "memory");
	if (getrandom(objects->seal, sizeof(objects->seal), 0) != sizeof(objects->seal))
		return OSD_E_NO_MEMORY;
	return osd_stand_ins->open(&objects->kv, &objects->tier.head);
}

static void name_after_store(struct osd_objects *objects)
{
	for (size_t i = 0; i < OSD_MEDIA_STORE_ID; i++)
		snprintf(objects->serial + 2 * i, 3, "%02x", objects->media->store_id[i]);
	memcpy(objects->system_id, objects->media->system_id, sizeof(objects->system_id));
}

/* Whether there is room since another transaction removed the ballast.  A limit on the tries ends loops
 * where a quota of the file system lets nobody use the free bytes. */
static bool has_room(struct osd_objects *objects)
{
	unsigned left = atomic_load(&objects->room_tries);

	if (osd_media_free_bytes(objects->media) < ROOM_BYTES)
		return false;
	while (left > 0 && !atomic_compare_exchange_weak(&objects->room_tries, &left, left - 1))
		;
	return left > 0;
}

/* Called when the database meets a full disk.  Removing the ballast makes room for the pages in the
 * database's cache, and for transactions, such as REMOVEs.  From now on commands that need space
 * are refused, until there is room for the ballast again. */
static bool make_room(void *arg)
{
	struct osd_objects *objects = arg;
	bool released = osd_media_ballast_release(objects->media);

	osd_space_refused(objects, OSD_SPACE_MAIN);
	if (!released)
		return has_room(objects);
	atomic_store(&objects->room_tries, ROOM_TRIES);
	atomic_store(&objects->disk_full, true);
	return true;
}

/* Recovery needs space.  If it fails on a full disk, it is tried again without the ballast. */
static enum osd_status open_records(struct osd_objects *objects,
				    const struct osd_objects_config *config, char message[256])
{
	OSD_CLEANUP_FREE char *path = NULL;
	struct osd_bdb_config bdb = {.cache_bytes = config->cache_bytes};
	uint64_t start_nsec = osd_monotonic_nsec();
	enum osd_status status;

	if (asprintf(&path, "%s/db", config->directory) < 0)
		return OSD_E_NO_MEMORY;
	bdb.directory = path;
	bdb.full = make_room;
	bdb.arg = objects;
	bdb.disk_bytes = osd_media_disk_bytes(objects->media);
	status = osd_bdb_open(&bdb, message, &objects->kv);
	if (status != OSD_OK &&
	    (osd_media_ballast_release(objects->media) || atomic_load(&objects->disk_full)))
		status = osd_bdb_open(&bdb, message, &objects->kv);
	objects->recovery_seconds = (double)(osd_monotonic_nsec() - start_nsec) / 1e9;
	return status;
}

static enum osd_status open_files(const struct osd_objects_config *config, const char *directory,
				  int data_fd, struct osd_data **ret_data)
{
	bool direct = config->io == OSD_IO_DIRECT;

	if (direct && !osd_direct_works(data_fd)) {
		osd_warning("the file system of '%s' refuses direct I/O: its files go through the "
			    "page cache",
			    directory);
		direct = false;
	}
	return osd_file_data_open(data_fd, direct, ret_data);
}

static bool on_one_device(const struct osd_media *media)
{
	struct stat main, heads;

	return !media->heads_absent && fstat(media->main.data_fd, &main) == 0 &&
	       fstat(media->heads.data_fd, &heads) == 0 && main.st_dev == heads.st_dev;
}

static enum osd_status open_on_disk(struct osd_objects *objects,
				    const struct osd_objects_config *config, char message[256])
{
	bool two = config->ssd_directory != NULL;
	uint64_t wanted = objects->heads.head_bytes;
	const struct osd_media_config roots = {
		.directory = config->directory,
		.ssd_directory = config->ssd_directory,
		.head_bytes = wanted == OSD_HEAD_AS_FORMATTED ? OSD_MEDIA_HEAD_BYTES : wanted,
		.without_heads = config->on_ssd_loss == OSD_SSD_LOSS_READ_THROUGH,
	};
	enum osd_status status = osd_media_open(&roots, message, &objects->media);

	if (status != OSD_OK)
		return status;
	name_after_store(objects);
	if (wanted == OSD_HEAD_AS_FORMATTED)
		objects->heads.head_bytes = objects->media->head_bytes;
	status = open_records(objects, config, message);
	if (status == OSD_OK && objects->media->heads_absent) {
		osd_warning(
			"the SSD directory '%s' is absent: objects are served without their heads",
			config->ssd_directory);
		status = osd_absent_data_open(&objects->tier.head);
	} else if (status == OSD_OK) {
		status = two ? open_files(config, config->ssd_directory,
					  objects->media->heads.data_fd, &objects->tier.head)
			     : open_files(config, config->directory, objects->media->main.data_fd,
					  &objects->tier.head);
	}
	if (status == OSD_OK && two)
		status = open_files(config, config->directory, objects->media->main.data_fd,
				    &objects->tier.tail);
	if (status == OSD_OK && two)
		status = osd_both_open(true, &objects->tier.both);
	objects->tier.one_device = two && on_one_device(objects->media);
	if (status == OSD_OK && !osd_media_ballast_restore(objects->media))
		atomic_store(&objects->disk_full, true);
	return status;
}

/* Does nothing in the product (store/stand_in.h). */
static enum osd_status wrap_for_test(struct osd_objects *objects,
				     const struct osd_objects_config *config, char message[256])
{
	struct osd_opened_stores stores = {.kv = objects->kv,
					   .head = objects->tier.head,
					   .tail = objects->tier.tail,
					   .commit = objects->commit};
	enum osd_status status;

	if (!osd_stand_ins || !config->test)
		return OSD_OK;
	status = osd_stand_ins->wrap(config->test, message, &stores);
	objects->kv = stores.kv;
	objects->tier.head = stores.head;
	objects->tier.tail = stores.tail;
	objects->commit = stores.commit;
	objects->faults = stores.faults;
	return status;
}

/* ---- threads ----------------------------------------------------------------------------- */

static enum osd_status start_threads(struct osd_objects *objects)
{
	uint64_t soon = osd_monotonic_usec() + OSD_UPKEEP_USEC;

	objects->settle_timer = (struct osd_timer){osd_maintain_check, objects, soon, NULL};
	objects->mover_timer = (struct osd_timer){osd_mover_check, objects, soon, NULL};
	objects->scrub_timer = (struct osd_timer){osd_scrub_check, objects, 0, NULL};
	osd_timer_add(&objects->timers, &objects->settle_timer);
	if (osd_heads_two_roots(objects))
		osd_timer_add(&objects->timers, &objects->mover_timer);
	if (objects->sums.kept)
		osd_timer_add(&objects->timers, &objects->scrub_timer);
	/* The helpers finish what an earlier run left. */
	return osd_helper_call(&objects->reaper) && osd_helper_call(&objects->indexer) &&
			       osd_timers_start(&objects->timers, "iosd-upkeep")
		       ? OSD_OK
		       : OSD_E_NO_MEMORY;
}

static void stop_threads(struct osd_objects *objects)
{
	osd_lock(&objects->work_lock);
	objects->stop = true;
	pthread_cond_broadcast(&objects->work);
	osd_unlock(&objects->work_lock);
	osd_helper_stop(&objects->scrub);
	osd_helper_stop(&objects->mover);
	osd_helper_stop(&objects->indexer);
	osd_helper_stop(&objects->reaper);
	osd_timers_stop(&objects->timers);
}

/* ---- open and close ---------------------------------------------------------------------- */

static void init_locks(struct osd_objects *objects)
{
	osd_cond_init(&objects->work);
	osd_lock_init(&objects->work_lock, OSD_RANK_OBJECTS_WORK);
	osd_helper_init(&objects->reaper, "iosd-reaper", osd_reaper_work, objects);
	osd_helper_init(&objects->indexer, "iosd-indexer", osd_indexer_work, objects);
	osd_helper_init(&objects->mover, "iosd-mover", osd_mover_work, objects);
	osd_helper_init(&objects->scrub, "iosd-scrub", osd_scrub_work, objects);
	osd_timers_init(&objects->timers);
	osd_lock_init(&objects->index_lock, OSD_RANK_INDEX);
	osd_lock_init(&objects->sums.lock, OSD_RANK_DAMAGED);
	osd_rwlock_init(&objects->partitions_lock, OSD_RANK_PARTITIONS);
	osd_cache_init(objects);
}

static void apply_config(struct osd_objects *objects, const struct osd_objects_config *config)
{
	objects->method = config->method;
	objects->commands_queued = config->commands_queued;
	objects->context = config->context;
	objects->sync_data = config->durability == OSD_DURABILITY_SYNC;
	objects->commit = objects->sync_data ? OSD_KV_COMMIT_DURABLE : OSD_KV_COMMIT_PROCESS;
}

static void add_pages(struct osd_objects *objects)
{
	static const struct osd_page_provider *const pages[] = {
		&osd_index_page,      &osd_store_page,	   &osd_charged_page,
		&osd_head_page,	      &osd_version_page,   &osd_members_version_page,
		&osd_heads_root_page, &osd_sums_root_page,
	};

	for (size_t i = 0; i < OSD_ARRAY_SIZE(pages); i++)
		osd_objects_add_page(objects, pages[i]);
}

static enum osd_status open_parts(struct osd_objects *objects,
				  const struct osd_objects_config *config, char message[256])
{
	enum osd_status status = config->directory ? open_on_disk(objects, config, message)
						   : open_in_memory(objects, message);

	if (status == OSD_OK)
		status = wrap_for_test(objects, config, message);
	if (status == OSD_OK)
		status = osd_freeze_open(objects->kv, objects->tier.head, objects->tier.tail,
					 &objects->freeze);
	/* The sums wrap the freeze, so that a file and its sums are frozen at the same moment. */
	if (status == OSD_OK)
		status = osd_objects_open_sums(objects, config->sums, message);
	/* The stores that calls go to: those of the sums, if there are some. */
	if (status == OSD_OK)
		osd_space_begin(objects, config->ssd_directory, config->directory);
	if (status == OSD_OK)
		status = osd_recover(objects, message);
	if (status == OSD_OK)
		status = osd_scrub_load(objects);
	return status == OSD_OK ? start_threads(objects) : status;
}

enum osd_status osd_objects_open(const struct osd_objects_config *config, char message[256],
				 struct osd_objects **ret_objects)
{
	struct osd_objects *objects = calloc(1, sizeof(*objects));
	enum osd_status status;

	snprintf(message, 256, "cannot open the store: out of memory or another resource");
	if (!objects)
		return OSD_E_NO_MEMORY;
	objects->names = osd_name_cache_create();
	if (!objects->names) {
		free(objects);
		return OSD_E_NO_MEMORY;
	}
	init_locks(objects);
	add_pages(objects);
	apply_config(objects, config);
	objects->forget_entries = osd_cache_remove_partition;
	objects->unname = osd_unname;
	objects->follow_members = osd_views_follow_members;
	osd_heads_init(objects, config->heads);
	objects->heads.escape = osd_head_escape;
	status = open_parts(objects, config, message);
	if (status != OSD_OK) {
		osd_objects_close(objects);
		return status;
	}
	if (osd_stand_ins && config->test)
		osd_stand_ins->ready(config->test, objects->faults);
	message[0] = '\0';
	*ret_objects = objects;
	return OSD_OK;
}

/* Records in the store that nothing is left to settle. */
static void mark_clean(struct osd_objects *objects)
{
	struct osd_key key = osd_key_meta(OSD_META_CLEAN);
	struct osd_kv_txn *kv;

	if (osd_own_begin(objects, OSD_KV_CHANGE, &kv) != OSD_OK)
		return;
	if (osd_key_put(kv, OSD_KV_META, &key, "", 0) == OSD_OK)
		osd_own_commit(objects, kv, true);
	else
		osd_own_abort(kv);
}

void osd_objects_close(struct osd_objects *objects)
{
	bool was_running;

	if (!objects)
		return;
	was_running = objects->timers.started;
	osd_objects_thaw(objects);
	stop_threads(objects);
	if (was_running)
		osd_maintain(objects, true);
	if (was_running && osd_sums_end_run(objects) == OSD_OK)
		mark_clean(objects);
	objects->watcher_count = 0;
	osd_partitions_forget(objects);
	osd_cache_release(objects);
	osd_freeze_close(objects->freeze);
	osd_kv_close(objects->kv);
	osd_tier_close(&objects->tier);
	free(objects->faults);
	osd_name_cache_free(objects->names);
	osd_media_close(objects->media);
	osd_space_end(objects);
	pthread_cond_destroy(&objects->work);
	osd_helper_release(&objects->reaper);
	osd_helper_release(&objects->indexer);
	osd_helper_release(&objects->mover);
	osd_helper_release(&objects->scrub);
	osd_timers_release(&objects->timers);
	osd_lock_destroy(&objects->work_lock);
	osd_lock_destroy(&objects->index_lock);
	osd_lock_destroy(&objects->sums.lock);
	osd_rwlock_destroy(&objects->partitions_lock);
	free(objects);
}

/* ---- a copy of the files from outside ----------------------------------------------------------- */

/* The first checkpoint writes the gathered changes while commands run.  The second one, inside the
 * freeze, is then short. */
enum osd_status osd_objects_freeze(struct osd_objects *objects, uint64_t wait_usec,
				   uint64_t freeze_usec)
{
	enum osd_status status = osd_kv_checkpoint(objects->kv, true);

	if (status == OSD_OK)
		status = osd_freeze_begin(objects->freeze, wait_usec, freeze_usec);
	return status;
}

bool osd_objects_thaw(struct osd_objects *objects)
{
	return objects->freeze && osd_freeze_end(objects->freeze);
}

/* ---- FORMAT OSD -------------------------------------------------------------------------- */

/* Begins the next epoch, which is empty.  The reaper frees the old one. */
static enum osd_status begin_epoch(struct osd_txn *txn, void *arg)
{
	struct osd_objects *objects = txn->objects;
	struct osd_key dead = osd_key_dead_epoch(atomic_load(&objects->epoch));
	const uint64_t *capacity = arg;
	struct osd_root_record root;
	enum osd_status status = osd_root_hold(txn, &root);

	if (status == OSD_OK) {
		root.epoch++;
		root.next_partition_id = OSD_FIRST_ID;
		root.capacity = *capacity;
		root.common.bypass = 0;
		root.isolation = 0;
		root.common.quotas = (struct osd_quotas){OSD_NO_LIMIT, OSD_NO_LIMIT, OSD_NO_LIMIT,
							 UINT32_MAX, OSD_NO_LIMIT};
		status = osd_root_store(txn, &root);
	}
	if (status == OSD_OK)
		status = osd_methods_begin(objects, txn->kv, root.epoch);
	if (status == OSD_OK)
		status = osd_key_put(txn->kv, OSD_KV_META, &dead, "", 0);
	return status;
}

/* The largest possible capacity; OSD_E_CDB_FIELD: the wanted one is larger. */
static enum osd_status check_capacity(struct osd_objects *objects, uint64_t wanted,
				      uint64_t *ret_total)
{
	uint64_t available;
	enum osd_status status = osd_tier_capacity(&objects->tier, ret_total, &available);

	if (status == OSD_OK && wanted > *ret_total)
		status = OSD_E_CDB_FIELD;
	return status;
}

enum osd_status osd_objects_check_format(struct osd_objects *objects, uint64_t capacity_bytes)
{
	uint64_t total;

	return check_capacity(objects, capacity_bytes, &total);
}

enum osd_status osd_objects_format(struct osd_objects *objects, uint64_t capacity_bytes)
{
	uint64_t total;
	enum osd_status status = check_capacity(objects, capacity_bytes, &total);

	/* Records of jobs are removed first: without their surrogates they would have no meaning. */
	if (status == OSD_OK)
		status = osd_clear_prefix(objects, OSD_KV_JOB_KEYS, (struct osd_bytes){"", 0});
	if (status == OSD_OK)
		status = osd_clear_prefix(objects, OSD_KV_JOBS, (struct osd_bytes){"", 0});
	if (status == OSD_OK)
		status = osd_txn_run(objects, OSD_TXN_INTERNAL | OSD_COMMIT_DURABLE, begin_epoch,
				     &capacity_bytes);
	if (status != OSD_OK)
		return status;
	osd_partitions_forget(objects);
	atomic_store(&objects->charged_bytes, 0); /* attributes of the old root */
	atomic_store(&objects->stacked, false);	  /* the same */
	osd_hooks_forget(objects);
	osd_note_policy_change(objects);
	atomic_store(&objects->heads.draining, false); /* an attribute of the old root */
	osd_heads_changed(objects);
	atomic_store(&objects->capacity_bytes, capacity_bytes ? capacity_bytes : total);
	osd_kick_reaper(objects);
	return OSD_OK;
}
