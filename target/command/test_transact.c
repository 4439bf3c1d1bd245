/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_transact.c -- work that is a deadlock victim: it is repeated, each time in a transaction of
 * its own, and who loses every time is told BUSY without sense data. */
#include "command/transact.h"

#include "base/test.h"
#include "command/complete.h"
#include "wire/sense.h"

struct unlucky {
	int attempts, defeats; /* it loses the first so many */
	uint64_t pid;
};

static enum osd_status lose(void *arg, struct osd_txn *txn)
{
	struct unlucky *unlucky = arg;
	enum osd_status status = osd_partition_create(txn, 0, &unlucky->pid);

	CHECK_EQ(status, OSD_OK);
	return unlucky->attempts++ < unlucky->defeats ? OSD_E_RETRY : OSD_OK;
}

static uint64_t partitions(struct osd_objects *objects)
{
	struct osd_list_request list = {.kind = OSD_LIST_PARTITIONS};
	struct osd_list_result result;
	struct osd_txn *txn;
	uint64_t ids[4];

	CHECK_EQ(osd_txn_begin(objects, OSD_TXN_READ_ONLY, &txn), OSD_OK);
	CHECK_EQ(osd_list(txn, &list, ids, 4, &result), OSD_OK);
	osd_txn_abort(txn);
	return result.count;
}

static void test_last_chance(struct osd_objects *objects)
{
	struct unlucky unlucky = {.defeats = OSD_TXN_RETRIES};

	CHECK_EQ(osd_transact(objects, 0, OSD_COMMIT_PROCESS, lose, &unlucky), OSD_OK);
	CHECK_EQ(unlucky.attempts, OSD_TXN_RETRIES + 1);
	CHECK_EQ(partitions(objects), 1);
}

static void test_busy(struct osd_objects *objects)
{
	struct unlucky unlucky = {.defeats = OSD_TXN_RETRIES + 1};
	struct osd_request request = {0};
	enum osd_status status = osd_transact(objects, 0, OSD_COMMIT_PROCESS, lose, &unlucky);

	CHECK_EQ(status, OSD_E_BUSY);
	CHECK_EQ(unlucky.attempts, OSD_TXN_RETRIES + 1);
	CHECK_EQ(partitions(objects), 1);
	osd_complete_status(&request, status);
	CHECK_EQ(request.sam_status, OSD_SAM_BUSY);
	CHECK_EQ(request.sense_length, 0);
}

int main(void)
{
	struct osd_objects_config config = {.create = true};
	struct osd_objects *objects;
	char message[256];

	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_OK);
	test_last_chance(objects);
	test_busy(objects);
	osd_objects_close(objects);
	return 0;
}
