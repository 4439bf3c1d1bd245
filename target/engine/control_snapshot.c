/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control_snapshot.c -- the figures of a target as SNAPSHOT shows them (docs/control.md).  Counters are
 * since the target started, times are seconds, sizes bytes. */
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "engine/control_impl.h"
#include "engine/engine.h"
#include "engine/figures.h"
#include "exec/figures.h"
#include "object/object.h"

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

static void write_workers(struct osd_engine *engine, struct osd_json *json)
{
	struct osd_engine_load load;

	osd_engine_load(engine, &load);
	osd_json_open(json, "workers", '{');
	osd_json_number(json, "count", load.workers);
	osd_json_number(json, "busy", load.busy);
	osd_json_number(json, "queued", load.queued);
	osd_json_usec(json, "oldest", load.oldest_usec);
	osd_json_number(json, "min", 1);
	osd_json_number(json, "max", OSD_WORKERS_MAX);
	osd_json_close(json, '}');
}

static void write_store(struct osd_objects *objects, struct osd_json *json)
{
	struct osd_objects_stats stats;

	osd_objects_stats(objects, &stats);
	osd_json_open(json, "store", '{');
	osd_json_number(json, "capacity_bytes", stats.capacity_bytes);
	osd_json_number(json, "used_bytes", stats.used_bytes);
	osd_json_number(json, "partitions", stats.partition_count);
	osd_json_number(json, "objects", stats.object_count);
	osd_json_usec(json, "recovery", (uint64_t)(stats.recovery_seconds * 1e6));
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

static void write_tiers(const struct osd_objects_figures *figures, struct osd_json *json)
{
	osd_json_open(json, "heads", '[');
	for (size_t i = 0; i < OSD_ARRAY_SIZE(figures->tiers) && figures->tiers[i].tier; i++) {
		osd_json_open(json, NULL, '{');
		osd_json_text(json, "tier", figures->tiers[i].tier);
		osd_json_number(json, "bytes", figures->tiers[i].bytes);
		osd_json_number(json, "reads", figures->tiers[i].reads);
		osd_json_number(json, "writes", figures->tiers[i].writes);
		osd_json_number(json, "errors", figures->tiers[i].errors);
		osd_json_close(json, '}');
	}
	osd_json_close(json, ']');
}

void osd_control_write_snapshot(struct osd_control *control, const struct osd_control_peer *peer,
				struct osd_json *json)
{
	struct osd_objects_figures figures;

	osd_objects_figures(control->targets.objects, &figures);
	write_target(control, json);
	write_manager(control, peer, json);
	osd_json_bool(json, "shedding", control->shedding);
	osd_json_bool(json, "faults", control->targets.faults);
	write_bounds(json);
	write_workers(control->targets.engine, json);
	osd_figures_write(control->targets.figures, json);
	write_store(control->targets.objects, json);
	write_transactions(&figures, json);
	write_tiers(&figures, json);
	osd_exec_write_figures(control->targets.exec, json);
}
