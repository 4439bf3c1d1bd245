/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_snapshot.c -- the figures of a target as SNAPSHOT shows them (docs/control.md).  Counters are
 * since the target started, times are seconds, sizes bytes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "unit/control_impl.h"
#include "unit/unit.h"
#include "unit/command_figures.h"
#include "exec/exec.h"
#include "object/object.h"
#include "object/space.h"
#include "object/sums.h"

static void write_target(struct osd_control *control, struct osd_json *json)
{
	osd_json_open(json, "target", '{');
	osd_json_text(json, "boot", control->boot);
	osd_json_text(json, "version", OSD_VERSION);
	osd_json_number(json, "pid", (uint64_t)getpid());
	osd_json_usec(json, "monotonic", osd_monotonic_usec());
	osd_json_usec(json, "wall", osd_wall_msec() * 1000);
	osd_json_usec(json, "started", control->started_usec);
	osd_json_close(json, '}');
}

static void write_manager(const struct osd_control *control, const struct osd_control_peer *peer,
			  struct osd_json *json)
{
	osd_json_bool(json, "manages", control->manager == peer);
	if (!control->manager) {
		osd_json_null(json, "manager");
		return;
	}
	osd_json_open(json, "manager", '{');
	osd_json_text(json, "who", control->manager->who);
	osd_json_number(json, "pid", (uint64_t)control->manager->pid);
	osd_json_number(json, "uid", control->manager->uid);
	osd_json_usec(json, "since", control->manager_since_usec);
	osd_json_close(json, '}');
}

static void write_bounds(struct osd_json *json)
{
	osd_json_open(json, "bounds", '[');
	for (unsigned i = 0; i < OSD_HISTOGRAM_STEPS; i++)
		osd_json_usec(json, NULL, osd_histogram_bounds[i]);
	osd_json_close(json, ']');
}

static void write_workers(struct osd_unit *unit, struct osd_json *json)
{
	struct osd_unit_load load;

	osd_unit_load(unit, &load);
	osd_json_open(json, "workers", '{');
	osd_json_number(json, "count", load.workers);
	osd_json_number(json, "busy", load.busy);
	osd_json_number(json, "queued", load.queued);
	osd_json_usec(json, "oldest", load.oldest_usec);
	osd_json_number(json, "min", 1);
	osd_json_number(json, "max", OSD_WORKERS_MAX);
	osd_json_close(json, '}');
}

static void write_partitions(const struct osd_space *space, struct osd_json *json)
{
	osd_json_open(json, "largest", '[');
	for (unsigned i = 0; i < space->largest_count; i++) {
		const struct osd_space_partition *row = &space->largest[i];
		char id[24];

		snprintf(id, sizeof(id), "0x%" PRIx64, row->id);
		osd_json_open(json, NULL, '{');
		osd_json_text(json, "partition", id);
		osd_json_number(json, "used_bytes", row->used_bytes);
		osd_json_number(json, "charged_bytes", row->charged_bytes);
		if (row->has_quota)
			osd_json_number(json, "quota_bytes", row->quota_bytes);
		osd_json_number(json, "objects", row->objects);
		osd_json_close(json, '}');
	}
	osd_json_close(json, ']');
}

static void write_store(const struct osd_control *control, const struct osd_space *space,
			struct osd_json *json)
{
	static const char *const causes[] = {OSD_SPACE_CAUSES(OSD_NAME_OF)};
	char id[OSD_CONTROL_STORE_ID];
	struct osd_objects_stats stats;

	osd_objects_stats(control->targets.objects, &stats);
	osd_json_open(json, "store", '{');
	osd_json_text(json, "system_id", osd_control_store_id(control, id));
	osd_json_number(json, "capacity_bytes", space->capacity_bytes);
	osd_json_number(json, "used_bytes", space->used_bytes);
	osd_json_number(json, "charged_bytes", space->charged_bytes);
	osd_json_number(json, "free_bytes", space->free_bytes);
	osd_json_number(json, "partitions", space->partitions);
	osd_json_number(json, "objects", space->objects);
	osd_json_usec(json, "recovery", (uint64_t)(stats.recovery_seconds * 1e6));
	osd_json_open(json, "no_space", '{');
	for (unsigned i = 0; i < OSD_SPACE_CAUSE_COUNT; i++)
		osd_json_number(json, causes[i], space->refused[i]);
	osd_json_close(json, '}');
	write_partitions(space, json);
	osd_json_close(json, '}');
}

static void write_transactions(const struct osd_objects_figures *figures, struct osd_json *json)
{
	osd_json_open(json, "transactions", '{');
	osd_json_histogram(json, "seconds", figures->transactions);
	osd_json_open(json, "aborted", '{');
	for (size_t i = 0; i < OSD_ARRAY_SIZE(figures->aborted); i++)
		osd_json_number(json, figures->aborted[i].why, figures->aborted[i].count);
	osd_json_close(json, '}');
	osd_json_close(json, '}');
}

static void write_tiers(const struct osd_objects_figures *figures, const struct osd_space *space,
			struct osd_json *json)
{
	osd_json_open(json, "heads", '[');
	for (size_t i = 0; i < OSD_ARRAY_SIZE(figures->tiers) && figures->tiers[i].tier; i++) {
		bool main = strcmp(figures->tiers[i].tier, "main") == 0;

		osd_json_open(json, NULL, '{');
		osd_json_text(json, "tier", figures->tiers[i].tier);
		osd_json_number(json, "bytes", figures->tiers[i].bytes);
		osd_json_number(json, "reads", figures->tiers[i].reads);
		osd_json_number(json, "writes", figures->tiers[i].writes);
		osd_json_number(json, "errors", figures->tiers[i].errors);
		osd_json_number(json, "data", space->devices[main].data_bytes);
		if (space->devices[main].known) {
			osd_json_number(json, "total", space->devices[main].total_bytes);
			osd_json_number(json, "free", space->devices[main].free_bytes);
		}
		osd_json_close(json, '}');
	}
	osd_json_close(json, ']');
}

/* Nothing of a store that keeps none. */
static void write_sums(struct osd_objects *objects, struct osd_json *json)
{
	struct osd_sums_stats stats;

	osd_sums_stats(objects, &stats);
	if (!stats.kept)
		return;
	osd_json_open(json, "checksums", '{');
	osd_json_bool(json, "running", stats.pass.state == OSD_SCRUB_RUNNING);
	osd_json_number(json, "ended_ms", stats.pass.ended_ms);
	osd_json_number(json, "objects", stats.pass.objects);
	osd_json_number(json, "checked", stats.checked);
	osd_json_number(json, "made", stats.made);
	osd_json_number(json, "damaged", stats.damaged);
	osd_json_number(json, "damaged_now", stats.damaged_now);
	osd_json_number(json, "unreadable", stats.pass.failed);
	osd_json_close(json, '}');
}

static void write_all(struct osd_control *control, const struct osd_control_peer *peer,
		      struct osd_json *json)
{
	struct osd_objects_figures figures;
	struct osd_space space;

	/* Read once: the store and its devices must not show two readings. */
	osd_objects_space(control->targets.objects, &space);
	osd_objects_figures(control->targets.objects, &figures);
	write_target(control, json);
	write_manager(control, peer, json);
	osd_json_bool(json, "shedding", control->shedding);
	osd_json_bool(json, "faults", control->targets.faults);
	write_bounds(json);
	write_workers(control->targets.unit, json);
	osd_figures_write(control->targets.figures, json);
	write_store(control, &space, json);
	write_transactions(&figures, json);
	write_tiers(&figures, &space, json);
	write_sums(control->targets.objects, json);
	osd_exec_write_figures(control->targets.exec, json);
}

void osd_control_send_snapshot(struct osd_control *control, struct osd_control_peer *peer,
			       uint32_t serial)
{
	struct osd_json json = osd_control_begin(control);

	write_all(control, peer, &json);
	osd_control_send(control, peer, OSD_CONTROL_SNAPSHOT_IS, serial, &json);
}
