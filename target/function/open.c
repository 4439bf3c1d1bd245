/* SPDX-License-Identifier: GPL-2.0-or-later */
/* open.c -- start and end: finds the active functions of a store (function.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "function/hooks.h"
#include "function/kept.h"
#include "function/machine.h"
#include "function/signers.h"
#include "function/signing.h"
#include "function/stack.h"
#include "function/stack_note.h"
#include "object/txn_run.h"
#include "wire/osd2.h"

#define PIECE 64 /* ids read at a time */

struct scan {
	enum osd_list_kind kind;
	struct osd_object_id in;
	uint64_t next, ids[PIECE];
	size_t count;
};

static enum osd_status list(struct osd_txn *txn, void *arg)
{
	struct scan *scan = arg;
	struct osd_list_request request = {scan->kind, scan->in, scan->next};
	struct osd_list_result result;
	enum osd_status status = osd_list_uncounted(txn, &request, scan->ids, PIECE, &result);

	if (status == OSD_OK) {
		scan->count = result.count;
		scan->next = result.next_id;
	}
	return status;
}

static enum osd_status find_one(struct osd_functions *functions, struct osd_object_id id)
{
	struct osd_function function = {.id = id};
	static const uint8_t none[sizeof(function.sha256)];
	enum osd_status status = osd_function_load(functions, &function);

	if (status != OSD_OK || memcmp(function.sha256, none, sizeof(none)) == 0)
		return status;
	status = osd_signing_recheck(functions, &function);
	if (status != OSD_OK)
		return osd_signing_is_refusal(status) ? OSD_OK : status;
	return osd_function_found(functions, &function) ? OSD_OK : OSD_E_NO_MEMORY;
}

static enum osd_status scan_partition(struct osd_functions *functions, uint64_t partition_id)
{
	struct scan scan = {.kind = OSD_LIST_USER_OBJECTS,
			    .in.partition_id = partition_id,
			    .next = OSD_FIRST_ID};
	enum osd_status status = OSD_OK;

	while (scan.next && status == OSD_OK) {
		status = osd_txn_run(functions->objects, OSD_TXN_READ_ONLY, list, &scan);
		for (size_t i = 0; i < scan.count && status == OSD_OK; i++)
			status = find_one(functions,
					  (struct osd_object_id){partition_id, scan.ids[i]});
	}
	return status;
}

static enum osd_status scan_store(struct osd_functions *functions)
{
	struct scan scan = {.kind = OSD_LIST_PARTITIONS, .next = 1};
	enum osd_status status = OSD_OK;

	while (scan.next && status == OSD_OK) {
		status = osd_txn_run(functions->objects, OSD_TXN_READ_ONLY, list, &scan);
		for (size_t i = 0; i < scan.count && status == OSD_OK; i++) {
			if (scan.ids[i] > OSD_FUNCTION_PARTITION_LAST)
				return OSD_OK;
			status = scan_partition(functions, scan.ids[i]);
		}
	}
	return status;
}

OSD_DEFINE_CLEANUP(struct osd_functions *, osd_functions_close)

static struct osd_functions *create(struct osd_objects *objects)
{
	struct osd_functions *functions = calloc(1, sizeof(*functions));

	if (!functions)
		return NULL;
	functions->notes = osd_stack_notes_create();
	if (!functions->notes) {
		free(functions);
		return NULL;
	}
	functions->objects = objects;
	osd_lock_init(&functions->lock, OSD_RANK_FUNCTIONS);
	osd_function_add_page(functions);
	osd_stack_add_pages(functions);
	osd_hooks_add_pages(functions);
	osd_objects_watch_removals(objects, osd_function_removed, functions);
	return functions;
}

enum osd_status osd_functions_open(struct osd_objects *objects, const char *signers,
				   char message[256], struct osd_functions **ret_functions)
{
	OSD_CLEANUP(osd_functions_closep) struct osd_functions *functions = create(objects);
	enum osd_status status;

	snprintf(message, 256, "out of memory");
	if (!functions)
		return OSD_E_NO_MEMORY;
	functions->signers_file = signers ? strdup(signers) : NULL;
	if (signers && !functions->signers_file)
		return OSD_E_NO_MEMORY;
	status = osd_signers_read(signers, message, &functions->signers);
	if (status != OSD_OK)
		return status;
	status = scan_store(functions);
	if (status != OSD_OK)
		return OSD_EXPLAIN(message, status, "cannot read the functions of the store: %s",
				   osd_status_info(status)->meaning);
	*ret_functions = OSD_STEAL(functions);
	return OSD_OK;
}

/* Without a place to keep results, READs compute. */
void osd_functions_keep(struct osd_functions *functions, const char *directory, uint64_t quota)
{
	enum osd_status status =
		quota ? osd_kept_open(directory, quota, &functions->results) : OSD_OK;

	if (status != OSD_OK)
		osd_warning("cannot keep what functions compute in %s: %s",
			    directory ? directory : "memory", osd_status_info(status)->meaning);
}

void osd_functions_keep_machine(struct osd_functions *functions, const char *directory,
				const char *build)
{
	functions->machine = osd_machine_open(directory, build);
	atomic_store(&functions->machine_due, true); /* of functions that ended meanwhile */
	osd_machine_sweep(functions);
}

struct osd_kept *osd_functions_kept(struct osd_functions *functions)
{
	return functions->results;
}

void osd_functions_close(struct osd_functions *functions)
{
	if (!functions)
		return;
	osd_objects_unwatch_removals(functions->objects, functions);
	osd_machine_close(OSD_STEAL(functions->machine)); /* what is active stays so */
	osd_functions_forget(functions);
	osd_lock_destroy(&functions->lock);
	osd_signers_free(functions->signers);
	osd_stack_notes_free(functions->notes);
	osd_kept_close(functions->results);
	free(functions->signers_file);
	free(functions->entries);
	free(functions);
}
