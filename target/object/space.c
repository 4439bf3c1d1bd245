/* SPDX-License-Identifier: GPL-2.0-or-later */
/* space.c -- see space.h. */
#include "object/space.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "object/internal.h"

#define LOG_EVERY_USEC 60000000u

/* The store of a device; NULL for the SSD if there is one device only. */
static struct osd_data *device(const struct osd_objects *objects, bool main)
{
	const struct osd_tier *tier = &objects->tier;

	if (!tier->tail)
		return main ? tier->head : NULL;
	return main ? tier->tail : tier->head;
}

static void device_full(void *arg, const struct osd_data *data)
{
	struct osd_objects *objects = arg;

	osd_space_refused(objects,
			  data == device(objects, true) ? OSD_SPACE_MAIN : OSD_SPACE_SSD);
}

void osd_space_begin(struct osd_objects *objects, const char *ssd, const char *main)
{
	const char *const names[] = {ssd, main};

	for (unsigned i = 0; i < OSD_ARRAY_SIZE(names); i++) {
		struct osd_data *data = device(objects, i == 1);

		/* Without memory for a name the log has "?", which is no reason not to start. */
		objects->space.names[i] = strdup(names[i] ? names[i] : "memory");
		if (data) {
			data->full.fn = device_full;
			data->full.arg = objects;
		}
	}
}

void osd_space_end(struct osd_objects *objects)
{
	free(objects->space.names[0]);
	free(objects->space.names[1]);
}

/* ---- the log ------------------------------------------------------------------------------- */

void osd_space_refused(struct osd_objects *objects, enum osd_space_cause cause)
{
	atomic_fetch_add_explicit(&objects->space.refused[cause], 1, memory_order_relaxed);
}

static const char *size_text(char buffer[32], uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double size = (double)bytes;
	unsigned unit = 0;

	for (; size >= 1024 && unit + 1 < OSD_ARRAY_SIZE(units); unit++)
		size /= 1024;
	snprintf(buffer, 32, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
	return buffer;
}

static void log_device(struct osd_objects *objects, enum osd_space_cause cause, uint64_t times)
{
	const char *name = objects->space.names[cause == OSD_SPACE_MAIN];
	struct osd_data *data = device(objects, cause == OSD_SPACE_MAIN);
	uint64_t total = 0, available = 0;
	char texts[2][32], quoted[256];

	osd_log_quote(quoted, sizeof(quoted), name ? name : "?", name ? strlen(name) : 1);
	if (data)
		osd_data_capacity(data, &total, &available);
	size_text(texts[0], available);
	size_text(texts[1], total);
	if (cause == OSD_SPACE_MAIN)
		osd_error("no space left on '%s', %s free of %s: %" PRIu64
			  " write(s) failed; remove objects or enlarge the file system "
			  "('osd target df' shows the space)",
			  quoted, texts[0], texts[1], times);
	else
		osd_warning("no space left on the SSD '%s', %s free of %s: %" PRIu64
			    " write(s) failed there; heads of objects go to the main device "
			    "('osd target df' shows the space)",
			    quoted, texts[0], texts[1], times);
}

static void log_capacity(struct osd_objects *objects, uint64_t times)
{
	char text[32];

	osd_error("the store has reached its capacity of %s: %" PRIu64
		  " write(s) were refused; remove objects ('osd target df' shows the space)",
		  size_text(text, atomic_load(&objects->capacity_bytes)), times);
}

void osd_space_report(struct osd_objects *objects)
{
	struct osd_space_log *space = &objects->space;
	uint64_t now = osd_monotonic_usec();

	for (unsigned cause = 0; cause < OSD_SPACE_CAUSE_COUNT; cause++) {
		uint64_t refused = atomic_load(&space->refused[cause]);
		uint64_t times = refused - space->logged[cause];

		if (times == 0 || (space->logged_usec[cause] &&
				   now - space->logged_usec[cause] < LOG_EVERY_USEC))
			continue;
		space->logged[cause] = refused;
		space->logged_usec[cause] = now;
		if (cause == OSD_SPACE_CAPACITY)
			log_capacity(objects, times);
		else
			log_device(objects, cause, times);
	}
}

void osd_space_found(struct osd_objects *objects)
{
	osd_info("there is space on '%s' again: commands that need some are accepted",
		 objects->space.names[1] ? objects->space.names[1] : "?");
}

/* ---- figures ------------------------------------------------------------------------------- */

static void insert(struct osd_space *space, const struct osd_space_partition *row)
{
	unsigned at = space->largest_count;

	if (at == OSD_SPACE_LARGEST && space->largest[at - 1].used_bytes >= row->used_bytes)
		return;
	if (at == OSD_SPACE_LARGEST)
		at--;
	else
		space->largest_count++;
	for (; at > 0 && space->largest[at - 1].used_bytes < row->used_bytes; at--)
		space->largest[at] = space->largest[at - 1];
	space->largest[at] = *row;
}

/* *ret_on_ssd: bytes of heads on the SSD. */
static void look_at_partitions(struct osd_objects *objects, struct osd_space *space,
			       uint64_t *ret_on_ssd)
{
	*ret_on_ssd = 0;
	osd_read_lock(&objects->partitions_lock);
	osd_each_partition (objects, partition, true) {
		uint64_t quota = atomic_load(&partition->data.capacity);

		*ret_on_ssd += atomic_load(&partition->head_bytes[0]);
		insert(space, &(struct osd_space_partition){
				      .id = partition->id,
				      .used_bytes = atomic_load(&partition->data.used_bytes),
				      .charged_bytes = atomic_load(&partition->data.charged_bytes),
				      .has_quota = quota != OSD_NO_LIMIT,
				      .quota_bytes = quota,
				      .objects = atomic_load(&partition->data.object_count)});
	}
	osd_rw_unlock(&objects->partitions_lock);
}

static void look_at_devices(struct osd_objects *objects, struct osd_space *space, uint64_t on_ssd)
{
	/* Commands run between the reading of both numbers, so on_ssd may be the larger one. */
	uint64_t of_main = space->used_bytes - OSD_MIN(on_ssd, space->used_bytes);

	for (unsigned i = 0; i < OSD_ARRAY_SIZE(space->devices); i++) {
		struct osd_data *data = device(objects, i == 1);

		space->devices[i].known =
			data && osd_data_capacity(data, &space->devices[i].total_bytes,
						  &space->devices[i].free_bytes) == OSD_OK;
		space->devices[i].data_bytes = i == 1 ? of_main : on_ssd;
	}
}

void osd_objects_space(struct osd_objects *objects, struct osd_space *ret_space)
{
	uint64_t total, available, on_ssd;

	*ret_space = (struct osd_space){
		.capacity_bytes = atomic_load(&objects->capacity_bytes),
		.used_bytes = atomic_load(&objects->used_bytes),
		.charged_bytes = atomic_load(&objects->charged_bytes),
		.objects = atomic_load(&objects->object_count),
		.partitions = atomic_load(&objects->partition_count),
	};
	for (unsigned i = 0; i < OSD_SPACE_CAUSE_COUNT; i++)
		ret_space->refused[i] = atomic_load(&objects->space.refused[i]);
	look_at_partitions(objects, ret_space, &on_ssd);
	look_at_devices(objects, ret_space, on_ssd);
	/* It fails while the SSD is absent.  The main device is then all that can take bytes. */
	if (osd_tier_capacity(&objects->tier, &total, &available) != OSD_OK)
		available = ret_space->devices[1].free_bytes;
	ret_space->free_bytes = ret_space->capacity_bytes -
				OSD_MIN(ret_space->charged_bytes, ret_space->capacity_bytes);
	/* While the disk is full, quota.c refuses all charges but those to the jobs' reserve. */
	ret_space->free_bytes = atomic_load(&objects->disk_full)
					? 0
					: OSD_MIN(ret_space->free_bytes, available);
}
