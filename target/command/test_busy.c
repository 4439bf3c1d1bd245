/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_busy.c -- a command whose transaction loses every deadlock is told BUSY without sense data. */
#include "base/test.h"
#include "command/complete.h"
#include "object/txn_run.h"

static enum osd_status lose(struct osd_txn *txn, void *arg)
{
	(void)txn;
	(void)arg;
	return OSD_E_CONFLICT;
}

int main(void)
{
	struct osd_objects_config config = {0};
	struct osd_request request = {0};
	struct osd_objects *objects;
	char message[256];

	CHECK_EQ(osd_objects_open(&config, message, &objects), OSD_OK);
	osd_complete_status(&request, osd_txn_run(objects, 0, lose, NULL), false);
	CHECK_EQ(request.sam_status, OSD_SAM_BUSY);
	CHECK_EQ(request.sense_length, 0);
	osd_objects_close(objects);
	return 0;
}
