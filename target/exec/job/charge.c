/* SPDX-License-Identifier: GPL-2.0-or-later */
/* charge.c -- charges the space of a job, without its output, to its partition; in the jobs
 * partition, to its principal as well (job.h). */
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "exec/job/job.h"

/* ---- bytes of principals --------------------------------------------------------------------- */

struct osd_stored_bytes {
	struct osd_stored_bytes *next;
	uint64_t bytes; /* never 0 for long */
	char principal[];
};

void osd_stored_init(struct osd_stored *stored, uint64_t most)
{
	stored->most = most;
	osd_lock_init(&stored->lock, OSD_RANK_STORED);
}

/* Under stored->lock. */
static struct osd_stored_bytes **find(struct osd_stored *stored, const char *principal)
{
	struct osd_stored_bytes **link;
	uint32_t hash = 2166136261u; /* FNV-1a */

	osd_assert_held(&stored->lock);
	for (const char *at = principal; *at; at++)
		hash = (hash ^ (uint8_t)*at) * 16777619u;
	link = &stored->buckets[hash % OSD_STORED_BUCKETS];
	while (*link && strcmp((*link)->principal, principal) != 0)
		link = &(*link)->next;
	return link;
}

static enum osd_status take(struct osd_stored *stored, const char *principal, uint64_t bytes,
			    uint64_t limit)
{
	size_t size = strlen(principal) + 1;
	enum osd_status status = OSD_OK;
	struct osd_stored_bytes **link;
	uint64_t sum;

	osd_lock(&stored->lock);
	link = find(stored, principal);
	if (!osd_add_u64(*link ? (*link)->bytes : 0, bytes, &sum) || sum > limit) {
		status = OSD_E_QUOTA;
	} else if (!*link) {
		*link = calloc(1, sizeof(**link) + size);
		if (*link)
			memcpy((*link)->principal, principal, size);
		else
			status = OSD_E_NO_MEMORY;
	}
	if (status == OSD_OK)
		(*link)->bytes = sum;
	osd_unlock(&stored->lock);
	return status;
}

static void give(struct osd_stored *stored, const char *principal, uint64_t bytes)
{
	struct osd_stored_bytes **link = find(stored, principal), *entry = *link;

	if (!entry)
		return;
	entry->bytes -= OSD_MIN(entry->bytes, bytes);
	if (entry->bytes)
		return;
	*link = entry->next;
	free(entry);
}

void osd_stored_clear(struct osd_stored *stored)
{
	for (size_t i = 0; i < OSD_STORED_BUCKETS; i++)
		while (stored->buckets[i]) {
			struct osd_stored_bytes *entry = stored->buckets[i];

			stored->buckets[i] = entry->next;
			free(entry);
		}
}

/* A charge that the commit or the abort of a transaction settles. */
struct note {
	struct osd_stored *stored;
	uint64_t taken, freed;
	char principal[];
};

static void run_note(void *arg, bool committed)
{
	struct note *note = arg;
	uint64_t back = committed ? note->freed : note->taken;

	osd_lock(&note->stored->lock);
	if (back)
		give(note->stored, note->principal, back);
	osd_unlock(&note->stored->lock);
	free(note);
}

/* Charges the principal of a job in the jobs partition. */
static enum osd_status charge_principal(struct osd_exec *exec, struct osd_txn *txn,
					const char *principal, uint64_t before, uint64_t after,
					bool limited)
{
	size_t size = strlen(principal) + 1;
	struct note *note = calloc(1, sizeof(*note) + size);
	enum osd_status status = OSD_OK;

	if (!note)
		return OSD_E_NO_MEMORY;
	note->stored = &exec->stored;
	memcpy(note->principal, principal, size);
	if (after > before) {
		note->taken = after - before;
		status = take(&exec->stored, principal, note->taken,
			      limited ? exec->stored.most : UINT64_MAX);
	} else {
		note->freed = before - after;
	}
	if (status != OSD_OK) {
		free(note);
		return status;
	}
	return osd_txn_on_end(txn, run_note, note);
}

/* ---- charges --------------------------------------------------------------------------------- */

/* The fixed part of a job's charge.  An array is charged the fixed part of its members. */
static uint64_t base_of(const struct osd_job_record *record)
{
	if (record->flags & OSD_JOB_MEMBER)
		return 0;
	return (1 + (uint64_t)record->array.count) * OSD_JOB_BASE_BYTES;
}

static uint64_t content_of(const struct osd_job_record *record)
{
	if (record->flags & OSD_JOB_MEMBER)
		return 0;
	return (uint64_t)record->args_length + record->code_length;
}

static enum osd_status charge(struct osd_exec *exec, struct osd_txn *txn,
			      const struct osd_job_record *record, uint64_t before, uint64_t after,
			      bool limited)
{
	uint64_t base = base_of(record);
	enum osd_status status = osd_txn_charge_records(txn, record->id, before, after, limited);

	if (status != OSD_OK || record->id.partition_id != OSD_JOBS_PARTITION)
		return status;
	if (before - OSD_MIN(before, base) == after - OSD_MIN(after, base))
		return OSD_OK;
	status = charge_principal(exec, txn, record->principal, before - OSD_MIN(before, base),
				  after - OSD_MIN(after, base), limited);
	/* The caller may try again with less in the same transaction. */
	if (status == OSD_E_QUOTA)
		(void)osd_txn_charge_records(txn, record->id, after, before, false);
	return status;
}

enum osd_status osd_job_charge_accepted(struct osd_exec *exec, struct osd_txn *txn,
					struct osd_job_record *record, size_t payload_bytes)
{
	record->charged = base_of(record) + content_of(record) + payload_bytes;
	return charge(exec, txn, record, 0, record->charged, true);
}

bool osd_job_charge_keeps(struct osd_exec *exec, const struct osd_job_record *record)
{
	const struct osd_stored_bytes *entry;
	bool keeps = true;

	if (record->state == OSD_STATE_COMPLETED || record->flags & OSD_JOB_MEMBER ||
	    content_of(record) > OSD_JOB_KEEP_MAX)
		return false;
	if (record->id.partition_id != OSD_JOBS_PARTITION)
		return true;
	osd_lock(&exec->stored.lock);
	entry = *find(&exec->stored, record->principal);
	if (entry)
		keeps = entry->bytes <= exec->stored.most / 2;
	osd_unlock(&exec->stored.lock);
	return keeps;
}

enum osd_status osd_job_charge_ended(struct osd_exec *exec, struct osd_txn *txn,
				     const struct osd_job_record *record,
				     const struct osd_job_remains *remains, bool limited,
				     uint64_t *ret_charged)
{
	uint64_t gone = record->flags & OSD_JOB_CODE_KEPT ? 0 : content_of(record);
	uint64_t after = record->charged - OSD_MIN(record->charged, gone);

	if (remains)
		after += remains->result_length + remains->stderr_stored +
			 remains->traceback_length + remains->states_length +
			 record->used_length;
	*ret_charged = after;
	return charge(exec, txn, record, record->charged, after, limited);
}

enum osd_status osd_job_charge_count(struct osd_txn *txn, const struct osd_job_record *record,
				     uint64_t *ret_bytes)
{
	uint64_t bytes = record->charged;
	enum osd_status status = OSD_OK;

	if (bytes == OSD_JOB_UNCOUNTED) {
		bytes = base_of(record);
		if (!osd_job_state_terminal(record->state) || record->flags & OSD_JOB_CODE_KEPT)
			bytes += content_of(record);
		for (int kind = OSD_PAYLOAD_RESULT; kind <= OSD_PAYLOAD_LAST && status == OSD_OK;
		     kind++) {
			size_t length;

			status = osd_job_payload_any(txn, record->id, (enum osd_job_payload)kind,
						     NULL, 0, &length);
			bytes += length;
		}
	}
	*ret_bytes = bytes;
	return status;
}

enum osd_status osd_job_forget(struct osd_exec *exec, struct osd_txn *txn,
			       const struct osd_job_record *record)
{
	uint64_t charged;
	enum osd_status status = osd_job_charge_count(txn, record, &charged);

	if (status == OSD_OK)
		status = charge(exec, txn, record, charged, 0, false);
	return status == OSD_OK ? osd_job_record_delete(txn, record) : status;
}

bool osd_stored_found(struct osd_stored *stored, const struct osd_job_record *record,
		      uint64_t bytes)
{
	uint64_t base = base_of(record);

	return record->id.partition_id != OSD_JOBS_PARTITION || bytes <= base ||
	       take(stored, record->principal, bytes - base, UINT64_MAX) == OSD_OK;
}
