/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_cdb.c -- invariant: any bytes decode to a refusal that names a field inside the CDB, or
 * to a CDB that encodes again and then no longer changes; and a Data-Out that passes the check
 * holds all it points at. */
#include "fuzz.h"
#include "wire/capability.h"
#include "wire/cdb.h"

static void check_segments(const struct osd_cdb *cdb, uint64_t data_out_length)
{
	const struct osd_cdb_attributes *a = &cdb->attributes;
	uint16_t field = 0;

	if (osd_cdb_check_data_out(cdb, data_out_length, &field) != OSD_OK) {
		HOLDS(field < OSD_CDB_LENGTH);
		return;
	}
	HOLDS(cdb->continuation_length <= data_out_length);
	HOLDS(osd_cdb_command_data_out(cdb) <= data_out_length - cdb->continuation_length);
	HOLDS(!a->get_list_length || a->get_list_length <= data_out_length);
	HOLDS(!a->get_list_length || a->get_list_offset <= data_out_length - a->get_list_length);
	if (a->format != OSD_CDBFMT_SET_ONE && a->set_length)
		HOLDS(a->set_length <= data_out_length &&
		      a->set_offset <= data_out_length - a->set_length);
}

static void check_again(const struct osd_cdb *cdb)
{
	uint8_t once[OSD_CDB_LENGTH], twice[OSD_CDB_LENGTH];
	struct osd_cdb again;
	uint16_t field;

	HOLDS(osd_cdb_encode(cdb, once));
	HOLDS(osd_cdb_decode(once, sizeof(once), false, &again, &field) == OSD_OK);
	HOLDS(osd_cdb_encode(&again, twice));
	HOLDS(!memcmp(once, twice, sizeof(once)));
}

static void check_capability(const uint8_t *bytes)
{
	uint8_t once[OSD_CAPABILITY_LENGTH], twice[OSD_CAPABILITY_LENGTH];
	struct osd_capability capability;

	osd_capability_decode(bytes, &capability);
	osd_capability_encode(&capability, once);
	osd_capability_decode(once, &capability);
	osd_capability_encode(&capability, twice);
	HOLDS(!memcmp(once, twice, sizeof(once)));
}

static void check_offset(uint64_t wanted)
{
	uint64_t offset, back;
	uint32_t code;

	if (!osd_offset_encode(wanted, &code, &offset))
		return;
	HOLDS(offset >= wanted && offset - wanted < 1u << 15);
	HOLDS(osd_offset_decode(code, &back) && back == offset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct osd_cdb cdb;
	uint16_t field;
	enum osd_status status = osd_cdb_decode(data, size, true, &cdb, &field);

	HOLDS(field < OSD_CDB_LENGTH || field == OSD_NO_FIELD);
	HOLDS(status != OSD_OK || cdb.data_distribution <= OSD_DDT_VEC);
	status = osd_cdb_decode(data, size, false, &cdb, &field);
	HOLDS(!cdb.data_distribution);

	if (status != OSD_OK) {
		HOLDS(field < OSD_CDB_LENGTH || field == OSD_NO_FIELD);
		return 0;
	}
	check_again(&cdb);
	check_capability(cdb.capability);
	check_segments(&cdb, cdb.nonce[0]);
	check_segments(&cdb, cdb.starting_byte_address);
	check_offset(cdb.starting_byte_address);
	HOLDS(osd_cdb_data_in_needed(&cdb) >= osd_cdb_command_data_in(&cdb));
	return 0;
}
