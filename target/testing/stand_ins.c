/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stand_ins.c -- puts the stores of this library where the object layer looks for them
 * (store/stand_in.h). */
#include "store/stand_in.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/util.h"
#include "store/media.h"
#include "testing/model.h"
#include "testing/stores.h"

static enum osd_status open_in_memory(struct osd_kv **ret_kv, struct osd_data **ret_data)
{
	enum osd_status status = osd_mem_kv_open(ret_kv);

	return status == OSD_OK ? osd_mem_data_open(ret_data) : status;
}

static enum osd_status wrap_models(const char *text, char message[256],
				   struct osd_opened_stores *stores)
{
	struct osd_model model;
	enum osd_status status;

	if (!osd_model_parse(text, &model))
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
				   "option 'model' names no simulated disks (docs/tiers.md)");
	if (model.count != (stores->tail ? 2 : 1))
		return OSD_EXPLAIN(message, OSD_E_PARAM_FIELD,
				   "option 'model' has %u disk(s) and the store %d root(s)",
				   model.count, stores->tail ? 2 : 1);
	status = osd_model_data_wrap(OSD_STEAL(stores->head), &model.devices[model.count - 1],
				     &stores->head);
	if (status == OSD_OK && stores->tail)
		status = osd_model_data_wrap(OSD_STEAL(stores->tail), &model.devices[0],
					     &stores->tail);
	return status;
}

static enum osd_status wrap_faults(bool kill, struct osd_opened_stores *stores)
{
	struct osd_fault_plan *plan = calloc(1, sizeof(*plan));
	enum osd_status status;

	if (!plan)
		return OSD_E_NO_MEMORY;
	plan->status = OSD_E_MEDIUM;
	plan->kill = kill;
	stores->faults = plan;
	status = osd_fault_kv_wrap(OSD_STEAL(stores->kv), plan, &stores->kv);
	if (status == OSD_OK)
		status = osd_fault_data_wrap(OSD_STEAL(stores->head), plan, &stores->head);
	if (status == OSD_OK && stores->tail)
		status = osd_fault_data_wrap(OSD_STEAL(stores->tail), plan, &stores->tail);
	return status;
}

static enum osd_status wrap(const struct osd_test_stores *wanted, char message[256],
			    struct osd_opened_stores *stores)
{
	enum osd_status status = OSD_OK;

	stores->faults = NULL;
	if (wanted->unsafe_nosync && stores->commit == OSD_KV_COMMIT_PROCESS)
		stores->commit = OSD_KV_COMMIT_NOSYNC;
	if (wanted->model)
		status = wrap_models(wanted->model, message, stores);
	if (status == OSD_OK && wanted->fault_at)
		status = wrap_faults(wanted->fault_kill, stores);
	return status;
}

/* Opening calls the store too, and those calls are not counted. */
static void ready(const struct osd_test_stores *wanted, struct osd_fault_plan *faults)
{
	if (!faults)
		return;
	atomic_store(&faults->calls, 0);
	atomic_store(&faults->fail_at, wanted->fault_at);
}

static const struct osd_stand_ins stand_ins = {
	.open = open_in_memory,
	.wrap = wrap,
	.ready = ready,
};

__attribute__((constructor)) static void set_stand_ins(void)
{
	osd_stand_ins = &stand_ins;
	osd_media_ballast_bytes = OSD_TEST_BALLAST_BYTES;
}
