/* SPDX-License-Identifier: GPL-2.0-or-later */
/* calls.c -- what a script's calls are measured against: the same operations of the object layer,
 * without a script, a proxy and a process between (rows script_create and kin).
 *
 * bench_calls DIRECTORY COUNT [ATTRIBUTES [BYTES]]: makes a store in the empty DIRECTORY, then prints
 * one line of JSON, median nanoseconds of each: create, set6, get6, remove; with ATTRIBUTES attributes
 * of BYTES bytes in place of 6 of 8.  Every operation is one transaction, as a proxy makes it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "object/object.h"

#define PAGE	       0x10000u /* of application attributes */
#define COUNT_MAX      100000
#define ATTRIBUTES_MAX 64 /* that a script sets or gets by one call */
#define BYTES_MAX      64

struct step {
	uint64_t partition_id;
	struct osd_object_id id;
	uint32_t attributes;
	size_t bytes;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- the operations ---------------------------------------------------------------------------- */

static enum osd_status create(struct osd_txn *txn, struct step *step)
{
	return osd_user_object_create(txn, step->partition_id, 0, 1, &step->id.object_id);
}

static enum osd_status set6(struct osd_txn *txn, struct step *step)
{
	static const uint8_t value[BYTES_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
	enum osd_status status = OSD_OK;

	for (uint32_t i = 1; i <= step->attributes && status == OSD_OK; i++)
		status = osd_attr_set(txn, step->id, PAGE, i, value, step->bytes);
	return status;
}

static enum osd_status get6(struct osd_txn *txn, struct step *step)
{
	uint8_t value[BYTES_MAX];
	size_t length;
	enum osd_status status = OSD_OK;

	for (uint32_t i = 1; i <= step->attributes && status == OSD_OK; i++)
		status = osd_attr_get(txn, step->id, PAGE, i, value, sizeof(value), &length);
	return status;
}

static enum osd_status remove_object(struct osd_txn *txn, struct step *step)
{
	return osd_user_object_remove(txn, step->id);
}

static const struct {
	const char *name;
	unsigned flags;
	enum osd_status (*run)(struct osd_txn *txn, struct step *step);
} operations[] = {
	{"create", 0, create},
	{"set6", 0, set6},
	{"get6", OSD_TXN_READ_ONLY, get6},
	{"remove", 0, remove_object},
};

#define OPERATIONS (sizeof(operations) / sizeof(operations[0]))

static enum osd_status transact(struct osd_objects *objects, size_t which, struct step *step)
{
	struct osd_txn *txn;
	enum osd_status status = osd_txn_begin(objects, operations[which].flags, &txn);

	if (status != OSD_OK)
		return status;
	status = operations[which].run(txn, step);
	if (status == OSD_OK)
		return osd_txn_commit(txn, OSD_COMMIT_PROCESS);
	osd_txn_abort(txn);
	return status;
}

/* ---- figures ----------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The four in turn on one object after the other, as the script does it. */
static enum osd_status measure(struct osd_objects *objects, struct step step, size_t count,
			       uint64_t *times)
{
	enum osd_status status = OSD_OK;

	for (size_t i = 0; i < count && status == OSD_OK; i++) {
		for (size_t which = 0; which < OPERATIONS && status == OSD_OK; which++) {
			uint64_t start = now_ns();

			status = transact(objects, which, &step);
			times[which * count + i] = now_ns() - start;
		}
	}
	return status;
}

static void print(uint64_t *times, size_t count)
{
	for (size_t which = 0; which < OPERATIONS; which++) {
		uint64_t *own = times + which * count;

		qsort(own, count, sizeof(*own), ascending);
		printf("%s\"%s\": %" PRIu64, which ? ", " : "{", operations[which].name,
		       own[count / 2]);
	}
	printf("}\n");
}

static enum osd_status make_partition(struct osd_objects *objects, uint64_t *ret_id)
{
	struct osd_txn *txn;
	enum osd_status status = osd_txn_begin(objects, 0, &txn);

	if (status != OSD_OK)
		return status;
	status = osd_partition_create(txn, 0, ret_id);
	if (status == OSD_OK)
		return osd_txn_commit(txn, OSD_COMMIT_PROCESS);
	osd_txn_abort(txn);
	return status;
}

/* Argument i, or what it is without; 0: no number from 1 to max. */
static unsigned long number(int argc, char **argv, int i, unsigned long without, unsigned long max)
{
	unsigned long found = i < argc ? strtoul(argv[i], NULL, 10) : without;

	return found <= max ? found : 0;
}

int main(int argc, char **argv)
{
	struct osd_objects_config config = {0};
	struct osd_objects *objects;
	struct step step = {0};
	uint64_t *times;
	char message[256] = "";
	enum osd_status status;
	size_t count;

	count = number(argc, argv, 2, 0, COUNT_MAX);
	step.attributes = (uint32_t)number(argc, argv, 3, 6, ATTRIBUTES_MAX);
	step.bytes = number(argc, argv, 4, 8, BYTES_MAX);
	if (count == 0 || step.attributes == 0 || step.bytes == 0) {
		fprintf(stderr, "usage: bench_calls DIRECTORY COUNT [ATTRIBUTES [BYTES]]\n");
		return 2;
	}
	config.directory = argv[1];
	times = calloc(OPERATIONS * count, sizeof(*times));
	status = times ? osd_objects_open(&config, message, &objects) : OSD_E_NO_MEMORY;
	if (status != OSD_OK) {
		fprintf(stderr, "bench_calls: %s\n", message);
		free(times);
		return 1;
	}
	status = make_partition(objects, &step.partition_id);
	step.id.partition_id = step.partition_id;
	if (status == OSD_OK)
		status = measure(objects, step, count, times);
	if (status == OSD_OK)
		print(times, count);
	else
		fprintf(stderr, "bench_calls: %s\n", osd_status_info(status)->name);
	osd_objects_close(objects);
	free(times);
	return status == OSD_OK ? 0 : 1;
}
