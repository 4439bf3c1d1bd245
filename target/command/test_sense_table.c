/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_sense_table.c -- every outcome has a row, and the first row of each says what must hold. */
#include "command/sense_table.h"

#include "base/test.h"

static void test_every_outcome_has_a_row(void)
{
	for (int i = 0; i < OSD_STATUS_COUNT; i++) {
		enum osd_status status = (enum osd_status)i;
		bool shown = status != OSD_OK && status != OSD_PENDING &&
			     status != OSD_E_CONFLICT && status != OSD_E_WOULD_BLOCK &&
			     status != OSD_E_UNSUPPORTED && status != OSD_E_TXN_TOO_LARGE;

		CHECK_EQ(osd_sense_row(status, OSD_PARTITION) != NULL, shown);
		CHECK_EQ(osd_sense_row(status, OSD_USER_OBJECT) != NULL, shown);
	}
}

static void test_default_fields(void)
{
	CHECK_EQ(osd_sense_row(OSD_E_NO_PARTITION, OSD_USER_OBJECT)->field, 16);
	CHECK_EQ(osd_sense_row(OSD_E_NO_OBJECT, OSD_USER_OBJECT)->field, 24);
	CHECK_EQ(osd_sense_row(OSD_E_EXISTS, OSD_PARTITION)->field, 16);
	CHECK_EQ(osd_sense_row(OSD_E_EXISTS, OSD_COLLECTION)->field, 24);
	CHECK_EQ(osd_sense_row(OSD_E_CDB_FIELD, OSD_ROOT)->field, OSD_SENSE_FIELD_GIVEN);
	CHECK_EQ(osd_sense_row(OSD_E_PARAM_LENGTH, OSD_ROOT)->field, OSD_SENSE_NO_FIELD);
	CHECK(!osd_sense_names_object(OSD_E_OPCODE) && osd_sense_names_object(OSD_E_CDB_FIELD));
	CHECK(osd_sense_names_object(OSD_E_BUSY) && osd_sense_names_object(OSD_E_QUEUE_FULL));
}

int main(void)
{
	test_every_outcome_has_a_row();
	test_default_fields();
	return 0;
}
