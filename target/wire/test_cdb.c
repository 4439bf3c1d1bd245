/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_cdb.c -- the CDB codec against golden frames, every refusal with its field, the offset
 * code. */
#include "wire/cdb.h"

#include "wire/cursor.h"
#include "wire/test_golden.h"

static struct osd_cdb decode_ok(const uint8_t *bytes)
{
	struct osd_cdb cdb;
	uint16_t field;

	CHECK_EQ(osd_cdb_decode(bytes, OSD_CDB_LENGTH, false, &cdb, &field), OSD_OK);
	CHECK_EQ(field, OSD_NO_FIELD);
	return cdb;
}

/* Reads a golden CDB and writes it again. */
static struct osd_cdb roundtrip(const char *name)
{
	struct golden frame = golden(name);
	uint8_t again[OSD_CDB_LENGTH];
	struct osd_cdb cdb;

	CHECK_EQ(frame.length, OSD_CDB_LENGTH);
	cdb = decode_ok(frame.bytes);
	CHECK(osd_cdb_encode(&cdb, again));
	CHECK_BYTES(again, sizeof(again), frame.bytes, frame.length);
	return cdb;
}

static void test_data_commands(void)
{
	struct osd_cdb cdb = roundtrip("cdb.write");

	CHECK_EQ(cdb.service_action, OSD_SA_WRITE);
	CHECK_EQ(cdb.partition_id, 0x10000);
	CHECK_EQ(cdb.object_id, 0x10001);
	CHECK_EQ(cdb.length, 5);
	CHECK_EQ(cdb.starting_byte_address, 100);
	CHECK_EQ(cdb.attributes.format, OSD_CDBFMT_LIST);
	CHECK_EQ(cdb.attributes.set_length, 32);
	CHECK_EQ(cdb.attributes.set_offset, 8);
	CHECK(osd_cdb_sets(&cdb) && !osd_cdb_gets(&cdb));
	CHECK_EQ(osd_cdb_command_data_out(&cdb), 5);
	CHECK_EQ(osd_cdb_command_data_in(&cdb), 0);

	cdb = roundtrip("cdb.read_pieces");
	CHECK_EQ(cdb.continuation_length, 80);
	CHECK_EQ(osd_cdb_command_data_in(&cdb), 12288);
	CHECK_EQ(osd_cdb_data_in_needed(&cdb), 12288);
	CHECK_EQ(osd_cdb_command_data_out(&cdb), 0);
}

static void test_attribute_formats(void)
{
	struct osd_cdb cdb = roundtrip("cdb.get_attributes");

	CHECK_EQ(cdb.attributes.get_list_length, 24);
	CHECK_EQ(cdb.attributes.get_list_offset, 0);
	CHECK_EQ(cdb.attributes.get_allocation_length, 56);
	CHECK_EQ(osd_cdb_data_in_needed(&cdb), 56);
	CHECK(osd_cdb_gets(&cdb) && !osd_cdb_sets(&cdb));

	cdb = roundtrip("cdb.set_one");
	CHECK(osd_cdb_sets(&cdb) && !osd_cdb_gets(&cdb));
	CHECK_EQ(cdb.attributes.set_page, 0x10000);
	CHECK_EQ(cdb.attributes.set_number, 2);
	CHECK_BYTES(cdb.attributes.set_value, cdb.attributes.set_length, "\xca\xfe", 2);

	cdb = roundtrip("cdb.set_page");
	CHECK(osd_cdb_sets(&cdb) && !osd_cdb_gets(&cdb));
	CHECK_EQ(cdb.attributes.set_length, 12);
	CHECK_EQ(cdb.attributes.set_offset, 16);

	cdb = roundtrip("cdb.create");
	CHECK(cdb.fua && !cdb.dpo);
	CHECK_EQ(cdb.timestamps_control, OSD_TIMESTAMPS_BYPASS);
	CHECK_EQ(cdb.create_count, 3);
	CHECK_EQ(cdb.length, 0);
	CHECK_EQ(cdb.attributes.get_page, OSD_PAGE_CURRENT_COMMAND);
	CHECK_EQ(cdb.attributes.get_allocation_length, 76);
	CHECK(!osd_cdb_sets(&cdb));
}

static void test_other_commands(void)
{
	struct osd_cdb cdb = roundtrip("cdb.list");

	CHECK(cdb.list_attr);
	CHECK_EQ(cdb.list_identifier, 7);
	CHECK_EQ(cdb.continuation_length, 0);
	CHECK_EQ(cdb.initial_object_id, 0x10100);
	CHECK_EQ(cdb.attributes.retrieved_offset, 0x400);
	CHECK_EQ(osd_cdb_data_in_needed(&cdb), 0x500);

	cdb = roundtrip("cdb.remove_collection");
	CHECK_EQ(cdb.command_bits, 1);

	cdb = roundtrip("cdb.exec");
	CHECK(cdb.immed_tr);
	CHECK_EQ(cdb.code_length, 11);
	CHECK_EQ(cdb.result_allocation_length, 4096);
	CHECK_EQ(cdb.continuation_length, 112);
	CHECK_EQ(cdb.attributes.get_list_offset, 128);
	CHECK_EQ(osd_cdb_command_data_out(&cdb), 11);
	CHECK_EQ(osd_cdb_command_data_in(&cdb), 4096);
	CHECK_EQ(osd_cdb_data_in_needed(&cdb), 4096 + 80);
}

/* One change to a good CDB, and what must come of it. */
struct refusal {
	const char *base;
	uint16_t at, width;
	uint64_t value;
	enum osd_status status;
	uint16_t field;
};

static const struct refusal refusals[] = {
	{"cdb.write", 0, 1, 0x28, OSD_E_OPCODE, OSD_NO_FIELD},
	{"cdb.write", 7, 1, 0xc0, OSD_E_OPCODE, OSD_NO_FIELD}, /* OSD-1 length */
	{"cdb.write", 7, 1, 0xe3, OSD_E_OPCODE, OSD_NO_FIELD},
	{"cdb.write", 8, 2, 0x8806, OSD_E_OPCODE, OSD_NO_FIELD}, /* OSD-1 WRITE */
	{"cdb.write", 8, 2, 0x888d, OSD_E_CDB_FIELD, 8},
	{"cdb.write", 8, 2, 0x1234, OSD_E_CDB_FIELD, 8},
	{"cdb.write", 10, 1, 0x03, OSD_E_CDB_FIELD, 10},
	{"cdb.write", 10, 1, 0x06, OSD_E_CDB_FIELD, 10},
	{"cdb.write", 11, 1, 0x00, OSD_E_CDB_FIELD, 11},
	{"cdb.write", 12, 1, 0x01, OSD_E_CDB_FIELD, 12},
	{"cdb.write", 12, 1, 0x80, OSD_E_CDB_FIELD, 12},
	{"cdb.write", 12, 1, 0xe0, OSD_E_CDB_FIELD, 12},
	{"cdb.write", 48, 4, 39, OSD_E_CDB_FIELD, 48},
	{"cdb.write", 48, 4, 44, OSD_E_CDB_FIELD, 48},
	{"cdb.write", 48, 4, (1u << 20) + 8, OSD_E_CDB_FIELD, 48},
	{"cdb.write", 68, 4, 7, OSD_E_PARAM_LENGTH, 68},
	{"cdb.write", 72, 4, 0xffffffff, OSD_E_CDB_FIELD, 72},
	{"cdb.write", 72, 4, 0x80000001, OSD_E_CDB_FIELD, 72}, /* exponent -8 */
	{"cdb.write", 72, 4, 0xa0000000, OSD_E_CDB_FIELD, 72}, /* exponent -6 */
	{"cdb.get_attributes", 52, 4, 1, OSD_E_PARAM_LENGTH, 52},
	{"cdb.get_attributes", 56, 4, 0xffffffff, OSD_E_CDB_FIELD, 56},
	{"cdb.get_attributes", 64, 4, 0xffffffff, OSD_E_CDB_FIELD, 64},
	{"cdb.set_one", 52, 4, 0xffffffff, OSD_E_CDB_FIELD, 52},
	{"cdb.set_one", 56, 4, 0xffffffff, OSD_E_CDB_FIELD, 56},
	{"cdb.set_one", 60, 2, 19, OSD_E_CDB_FIELD, 60},
	{"cdb.set_page", 64, 4, 0xffffffff, OSD_E_CDB_FIELD, 64},
	{"cdb.set_page", 68, 4, 0xffffffff, OSD_E_CDB_FIELD, 68},
	{"cdb.set_page", 72, 4, 0xffff, OSD_E_CDB_FIELD, 72},
	{"cdb.set_page", 76, 4, 0xffffffff, OSD_E_CDB_FIELD, 76},
	{"cdb.create", 60, 4, 0x90000000, OSD_E_CDB_FIELD, 60},
	{"cdb.exec", 64, 4, 0xb0000000, OSD_E_CDB_FIELD, 64}, /* attributes on top of the result */
	{"cdb.exec", 48, 4, 8, OSD_E_CDB_FIELD, 48},
};

static void test_refusals(void)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		const struct refusal *r = &refusals[i];
		struct golden frame = golden(r->base);
		struct osd_cdb cdb;
		uint16_t field;

		osd_put_be(frame.bytes + r->at, r->value, r->width);
		CHECK_EQ(osd_cdb_decode(frame.bytes, frame.length, false, &cdb, &field), r->status);
		CHECK_EQ(field, r->field);
		if (r->status != OSD_E_OPCODE)
			CHECK_EQ(cdb.partition_id, osd_get_be(frame.bytes + 16, 8));
	}
}

static struct osd_cdb decode_changed(const char *base, bool osc_compat, uint16_t service_action,
				     uint8_t options)
{
	struct golden frame = golden(base);
	struct osd_cdb cdb;
	uint16_t field;

	osd_put_be(frame.bytes + 8, service_action, 2);
	frame.bytes[10] = options;
	CHECK_EQ(osd_cdb_decode(frame.bytes, frame.length, osc_compat, &cdb, &field), OSD_OK);
	return cdb;
}

/* OSC's codes and byte 10, and what they are without the switch. */
static void test_osc(void)
{
	static const struct {
		uint16_t code, meaning;
	} codes[] = {{0x888d, OSD_SA_COMPARE_AND_SWAP},
		     {0x8890, OSD_SA_FETCH_AND_ADD},
		     {0x8891, OSD_SA_CONDITIONAL_SET_ATTRIBUTES},
		     {0x88a5, OSD_SA_GENERIC_COMPARE_AND_SWAP}};
	struct golden frame = golden("cdb.write");
	struct osd_cdb cdb;
	uint16_t field;

	osd_put_be(frame.bytes + 32, 16, 8);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		osd_put_be(frame.bytes + 8, codes[i].code, 2);
		CHECK_EQ(osd_cdb_decode(frame.bytes, frame.length, true, &cdb, &field), OSD_OK);
		CHECK_EQ(cdb.service_action, codes[i].meaning);
		CHECK_EQ(osd_cdb_decode(frame.bytes, frame.length, false, &cdb, &field),
			 OSD_E_CDB_FIELD);
		CHECK_EQ(field, 8);
	}
	cdb = decode_changed("cdb.write", true, OSD_SA_WRITE, OSD_DDT_VEC);
	CHECK(cdb.data_distribution == OSD_DDT_VEC && cdb.isolation == 0);
	cdb = decode_changed("cdb.write", false, OSD_SA_WRITE, 2);
	CHECK(cdb.data_distribution == 0 && cdb.isolation == 2);
	cdb = decode_changed("cdb.write", true, OSD_SA_APPEND, 1);
	CHECK(cdb.data_distribution == 0 && cdb.isolation == 1);
	cdb = decode_changed("cdb.create", true, OSD_SA_CREATE, 0);
	CHECK_EQ(cdb.timestamps_control, 0);
}

/* Fields of the commands about the unit and of the atomic ones, there and back. */
static void test_special_fields(void)
{
	static const uint8_t inquiry[OSD_EMBEDDED_CDB] = {0x12, 0, 0, 1, 2};
	struct osd_cdb cdb = {.service_action = OSD_SA_PERFORM_SCSI_COMMAND}, back;
	uint8_t bytes[OSD_CDB_LENGTH];

	cdb.attributes.format = OSD_CDBFMT_LIST;
	memcpy(cdb.embedded, inquiry, sizeof(inquiry));
	CHECK(osd_cdb_encode(&cdb, bytes));
	CHECK_BYTES(bytes + 32, 16, inquiry, 16);
	back = decode_ok(bytes);
	CHECK(!memcmp(back.embedded, inquiry, sizeof(inquiry)) && back.length == 0);
	CHECK_EQ(osd_cdb_command_data_in(&back), 0x102);

	cdb = (struct osd_cdb){.service_action = OSD_SA_PERFORM_TASK_MANAGEMENT_FUNCTION};
	cdb.attributes.format = OSD_CDBFMT_LIST;
	cdb.allocation_length = 8;
	cdb.task_function = 0x81;
	cdb.task_tag = UINT64_C(0x1122334455667788);
	CHECK(osd_cdb_encode(&cdb, bytes));
	CHECK_BYTES(bytes + 32, 16, "\0\x08\0\0\0\0\0\x81\x11\x22\x33\x44\x55\x66\x77\x88", 16);
	back = decode_ok(bytes);
	CHECK(back.task_function == 0x81 && back.task_tag == cdb.task_tag);
	CHECK_EQ(osd_cdb_command_data_in(&back), 8);

	cdb = (struct osd_cdb){.service_action = OSD_SA_COMPARE_AND_SWAP, .length = 16};
	cdb.attributes.format = OSD_CDBFMT_LIST;
	cdb.result_offset = 24;
	CHECK(osd_cdb_encode(&cdb, bytes));
	back = decode_ok(bytes);
	CHECK_EQ(osd_cdb_command_data_in(&back), 32);
	CHECK_EQ(osd_cdb_command_data_out(&back), 16);
}

static void test_lengths(void)
{
	struct golden frame = golden("cdb.write");
	struct osd_cdb cdb;
	uint16_t field;

	CHECK_EQ(osd_cdb_decode(frame.bytes, 0, false, &cdb, &field), OSD_E_OPCODE);
	CHECK_EQ(osd_cdb_decode(frame.bytes, 235, false, &cdb, &field), OSD_E_OPCODE);
	CHECK_EQ(osd_cdb_decode(frame.bytes, 237, false, &cdb, &field), OSD_E_OPCODE);
}

/* What is unused is judged by its length, whatever the offset says; reserved bits do not matter. */
static void test_tolerance(void)
{
	struct golden frame = golden("cdb.write");
	struct osd_cdb cdb;

	osd_put_be(frame.bytes + 56, 0, 4);
	osd_put_be(frame.bytes + 60, 512, 4); /* an allocation without a get list */
	memset(frame.bytes + 2, 0xff, 5);
	frame.bytes[10] = 0xe0;
	cdb = decode_ok(frame.bytes);
	CHECK(!osd_cdb_gets(&cdb));
	CHECK_EQ(cdb.attributes.get_allocation_length, 0);

	frame = golden("cdb.create"); /* a count of 0 means 1 */
	osd_put_be(frame.bytes + 32, 0, 2);
	CHECK_EQ(decode_ok(frame.bytes).create_count, 1);

	frame = golden("cdb.set_one"); /* page 0 sets nothing, length 0 makes undefined */
	osd_put_be(frame.bytes + 60, 0, 2);
	cdb = decode_ok(frame.bytes);
	CHECK(osd_cdb_sets(&cdb));
	osd_put_be(frame.bytes + 52, 0, 4);
	cdb = decode_ok(frame.bytes);
	CHECK(!osd_cdb_sets(&cdb));

	frame = golden("cdb.write"); /* in FLUSH byte 10 may hold the scope */
	osd_put_be(frame.bytes + 8, OSD_SA_FLUSH, 2);
	frame.bytes[10] = 0x03;
	CHECK_EQ(decode_ok(frame.bytes).isolation, 0);

	osd_put_be(frame.bytes + 8, OSD_SA_READ_MAP, 2);
	frame.bytes[10] = 0;
	osd_put_be(frame.bytes + 48, 0x80000000, 4);
	CHECK_EQ(decode_ok(frame.bytes).map_type, 0x8000);

	osd_put_be(frame.bytes + 8, OSD_SA_SET_KEY, 2); /* the seed may end in anything */
	osd_put_be(frame.bytes + 48, 13, 4);
	CHECK_EQ(decode_ok(frame.bytes).continuation_length, 0);
}

static void test_keys(void)
{
	struct osd_cdb cdb = {.service_action = OSD_SA_SET_KEY,
			      .partition_id = 0x10000,
			      .command_bits = 3,
			      .attributes.format = OSD_CDBFMT_LIST};
	struct osd_cdb back;
	uint8_t bytes[OSD_CDB_LENGTH];
	uint16_t field;

	cdb.key.version = 0x0f;
	for (uint8_t i = 0; i < sizeof(cdb.key.seed); i++)
		cdb.key.seed[i] = (uint8_t)(0x80 + i);
	memcpy(cdb.key.identifier, "1234567", sizeof(cdb.key.identifier));
	CHECK(osd_cdb_encode(&cdb, bytes));
	CHECK_BYTES(bytes + 24, 28,
		    "\x0f"
		    "1234567\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89"
		    "\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93",
		    28);
	back = decode_ok(bytes);
	CHECK(back.object_id == 0 && back.command_bits == 3 && back.key.version == 0x0f);
	CHECK_BYTES(back.key.seed, sizeof(back.key.seed), cdb.key.seed, sizeof(cdb.key.seed));
	CHECK_EQ(osd_cdb_command_data_out(&back) + osd_cdb_command_data_in(&back), 0);
	bytes[10] = 3; /* no such isolation; the bits still choose the key that signs the refusal */
	CHECK_EQ(osd_cdb_decode(bytes, sizeof(bytes), false, &back, &field), OSD_E_CDB_FIELD);
	CHECK(field == 10 && back.command_bits == 3);

	cdb.service_action = OSD_SA_SET_MASTER_KEY;
	cdb.parameter_list_length = 256;
	cdb.key.allocation_length = 260;
	CHECK(osd_cdb_encode(&cdb, bytes));
	CHECK_BYTES(bytes + 32, 8, "\0\0\1\0\0\0\1\4", 8);
	back = decode_ok(bytes);
	CHECK_EQ(osd_cdb_command_data_out(&back), 256);
	CHECK_EQ(osd_cdb_command_data_in(&back), 260);
}

static void test_data_out(void)
{
	struct osd_cdb cdb = decode_ok(golden("cdb.exec").bytes);
	uint16_t field = 0;

	CHECK_EQ(osd_cdb_check_data_out(&cdb, 160, &field), OSD_OK);
	CHECK_EQ(osd_cdb_check_data_out(&cdb, UINT64_MAX, &field), OSD_OK);
	CHECK_EQ(osd_cdb_check_data_out(&cdb, 159, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, 52);
	CHECK_EQ(osd_cdb_check_data_out(&cdb, 122, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, 32);
	CHECK_EQ(osd_cdb_check_data_out(&cdb, 111, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, 48);

	cdb = decode_ok(golden("cdb.write").bytes);
	CHECK_EQ(osd_cdb_check_data_out(&cdb, 40, &field), OSD_OK);
	CHECK_EQ(osd_cdb_check_data_out(&cdb, 39, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, 68);
	cdb.length = UINT64_MAX;
	CHECK_EQ(osd_cdb_check_data_out(&cdb, 40, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, 32);

	cdb = decode_ok(golden("cdb.set_page").bytes);
	CHECK_EQ(osd_cdb_check_data_out(&cdb, 27, &field), OSD_E_CDB_FIELD);
	CHECK_EQ(field, 72);
	cdb = decode_ok(golden("cdb.set_one").bytes);
	CHECK_EQ(osd_cdb_check_data_out(&cdb, 0, &field), OSD_OK);
}

static const struct {
	uint64_t wanted;
	uint32_t code;
	uint64_t actual;
} offsets[] = {
	{0, 0xb0000000, 0},
	{1, 0xb0000001, 8},
	{8, 0xb0000001, 8},
	{256, 0xb0000020, 256},
	{4096, 0xb0000200, 4096},
	{4100, 0xb0000201, 4104},
	{0x10000, 0xb0002000, 0x10000},
	{0x7ffffff8, 0xbfffffff, 0x7ffffff8},
	{0x7ffffff9, 0xc8000000, 0x80000000}, /* the carry that Linux's encoder wraps */
	{0x7fffffff, 0xc8000000, 0x80000000},
	{0x80000000, 0xc8000000, 0x80000000},
	{0x80000001, 0xc8000001, 0x80000010},
	{UINT64_C(0x100000000), 0xd8000000, UINT64_C(0x100000000)},
	{UINT64_C(0xfffffff) << 7, 0x08000000, UINT64_C(1) << 35}, /* else "unused" */
	{UINT64_C(1) << 40, 0x58000000, UINT64_C(1) << 40},
	{(UINT64_C(1) << 43) - (1 << 15), 0x7fffffff, (UINT64_C(1) << 43) - (1 << 15)},
};

static void test_offsets(void)
{
	uint64_t actual;
	uint32_t code;

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		CHECK(osd_offset_encode(offsets[i].wanted, &code, &actual));
		CHECK_EQ(code, offsets[i].wanted ? offsets[i].code : 0);
		CHECK_EQ(actual, offsets[i].actual);
		CHECK(osd_offset_decode(offsets[i].code, &actual));
		CHECK_EQ(actual, offsets[i].actual);
	}
	CHECK(!osd_offset_encode((UINT64_C(1) << 43) - (1 << 15) + 1, &code, &actual));
	CHECK(!osd_offset_encode(UINT64_MAX, &code, &actual));
	CHECK(osd_offset_decode(0x00000001, &actual) && actual == 256);
	CHECK(osd_offset_decode(0x00000010, &actual) && actual == 4096);
	CHECK(osd_offset_decode(0x70000001, &actual) && actual == 32768);
	CHECK(osd_offset_decode(0xffffff00, &actual) && actual == UINT64_C(0xfffff00) << 7);
	CHECK(!osd_offset_decode(OSD_OFFSET_UNUSED, &actual));
	for (uint32_t exponent = 8; exponent <= 10; exponent++)
		CHECK(!osd_offset_decode(exponent << 28, &actual));
}

static void test_encoder_refuses(void)
{
	struct osd_cdb cdb = decode_ok(golden("cdb.write").bytes);
	uint8_t bytes[OSD_CDB_LENGTH];

	cdb.attributes.set_offset = 12; /* not a multiple of 8 */
	CHECK(!osd_cdb_encode(&cdb, bytes));
	cdb.attributes.set_offset = UINT64_C(1) << 43;
	CHECK(!osd_cdb_encode(&cdb, bytes));
	cdb.attributes.set_offset = 8;
	cdb.isolation = 8;
	CHECK(!osd_cdb_encode(&cdb, bytes));
	cdb.isolation = 0;
	cdb.attributes.format = 0;
	CHECK(!osd_cdb_encode(&cdb, bytes));
}

int main(void)
{
	test_data_commands();
	test_attribute_formats();
	test_other_commands();
	test_refusals();
	test_osc();
	test_special_fields();
	test_lengths();
	test_tolerance();
	test_keys();
	test_data_out();
	test_offsets();
	test_encoder_refuses();
	return 0;
}
