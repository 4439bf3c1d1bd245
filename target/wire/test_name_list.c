/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_name_list.c -- names: golden frames, parameters cut at every length, answers byte by byte. */
#include "wire/name_list.h"

#include <string.h>

#include "wire/test_golden.h"

static bool is_text(struct osd_name text, const char *wanted)
{
	return text.length == strlen(wanted) && memcmp(text.bytes, wanted, text.length) == 0;
}

static void test_params(void)
{
	struct golden rename = golden("names.rename"), list = golden("names.list");
	struct osd_name_params params;
	uint16_t field;

	CHECK_EQ(osd_name_params_decode(rename.bytes, rename.length, &params, &field), OSD_OK);
	CHECK_EQ(params.verb, OSD_NAME_RENAME);
	CHECK_EQ(params.flags, OSD_NAME_REPLACE);
	CHECK_EQ(params.expected, 0x10001);
	CHECK(is_text(params.path, "a/b") && is_text(params.other, "c") && is_text(params.prefix, ""));
	CHECK_EQ(osd_name_params_decode(list.bytes, list.length, &params, &field), OSD_OK);
	CHECK_EQ(params.verb, OSD_NAME_LIST);
	CHECK_EQ(params.flags, OSD_NAME_ATTRIBUTES);
	CHECK_EQ(params.most, 100);
	CHECK(is_text(params.path, "d") && is_text(params.other, "b") && is_text(params.prefix, "x"));
	for (size_t cut = 0; cut < list.length; cut++)
		CHECK_EQ(osd_name_params_decode(list.bytes, cut, &params, &field),
			 OSD_E_PARAM_LENGTH);
}

/* The data of PUT are not decoded, so they need not be there. */
static void test_data(void)
{
	struct golden put = golden("names.put"), lookup = golden("names.lookup");
	uint8_t head[OSD_NAME_PARAMS_HEADER + 1] = {OSD_NAME_PUT, 0, 0, 0, 0, 1, 0, 0, 0, 0x10};
	uint8_t each[OSD_NAME_PARAMS_HEADER] = {OSD_NAME_LIST, OSD_NAME_EACH};
	const size_t most = OSD_NAME_DATA_MAX;
	struct osd_name_params params;
	uint16_t field;

	CHECK_EQ(osd_name_params_decode(put.bytes, put.length, &params, &field), OSD_OK);
	CHECK_EQ(params.verb, OSD_NAME_PUT);
	CHECK_EQ(params.flags, OSD_NAME_REPLACE | OSD_NAME_CHECKSUM);
	CHECK(is_text(params.path, "a/b") && params.most == 5 && params.data_at == put.length - 5);
	CHECK(params.checksum == 0x9a71bb4c && params.object_id == 0);
	for (size_t cut = 0; cut < put.length; cut++)
		CHECK_EQ(osd_name_params_decode(put.bytes, cut, &params, &field),
			 OSD_E_PARAM_LENGTH);
	CHECK_EQ(osd_name_params_decode(lookup.bytes, lookup.length, &params, &field), OSD_OK);
	CHECK_EQ(params.most, 5);
	each[OSD_NAME_PARAMS_HEADER - 1] = 1;
	CHECK_EQ(osd_name_params_decode(each, sizeof(each), &params, &field), OSD_E_PARAM_FIELD);
	CHECK_EQ(field, 24);
	each[0] = OSD_NAME_LOOKUP;
	CHECK_EQ(osd_name_params_decode(each, sizeof(each), &params, &field), OSD_E_PARAM_FIELD);
	CHECK_EQ(field, 1);
	each[1] = 0;
	CHECK_EQ(osd_name_params_decode(each, sizeof(each), &params, &field), OSD_OK);
	CHECK_EQ(params.expected, 1);
	head[OSD_NAME_PARAMS_HEADER] = 'a';
	CHECK_EQ(osd_name_params_decode(head, sizeof(head) + most, &params, &field), OSD_OK);
	CHECK_EQ(params.most, most);
	CHECK_EQ(osd_name_params_decode(head, sizeof(head) + most - 1, &params, &field),
		 OSD_E_PARAM_LENGTH);
	head[11] = 1;
	CHECK_EQ(osd_name_params_decode(head, sizeof(head) + most + 1, &params, &field),
		 OSD_E_PARAM_FIELD);
	CHECK_EQ(field, 8);
}

static void test_answers(void)
{
	struct golden entry = golden("names.entry"), listed = golden("names.listed");
	struct golden found = golden("names.found");
	uint8_t bytes[OSD_NAME_LIST_HEADER + 2 * (OSD_NAME_LIST_ENTRY + 16)];
	struct osd_name_list_entry first = {
		.object_id = 0x10002,
		.type = 0x40,
		.created_ms = 0x1a1ee565e00,
		.modified_ms = 0x1a1ee565e64,
		.version = {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2},
		.name = (const uint8_t *)"d",
		.name_length = 1,
	};
	struct osd_name_list_entry second = first;
	size_t at = OSD_NAME_LIST_HEADER;

	osd_name_entry_encode(0x10000, 0x10001, 0x80, OSD_NAME_MADE, 2, bytes);
	CHECK_BYTES(bytes, OSD_NAME_ENTRY, entry.bytes, entry.length);
	osd_name_entry_encode(0x10000, 0x10001, 0x80, OSD_NAME_DATA, 1, bytes);
	osd_name_data_encode(7, first.version, 5, bytes + OSD_NAME_ENTRY);
	CHECK_BYTES(bytes, OSD_NAME_ENTRY + OSD_NAME_DATA_HEADER, found.bytes, found.length - 5);
	second.object_id = 0x10001;
	second.type = 0x80;
	second.length = 5;
	second.version[11] = 3;
	second.name = (const uint8_t *)"notes.txt";
	second.name_length = 9;
	memset(bytes, 0xa5, sizeof(bytes));
	osd_name_list_header_encode(2, 1, bytes);
	osd_name_list_entry_encode(&first, bytes + at);
	at += osd_name_list_entry_bytes(first.name_length);
	osd_name_list_entry_encode(&second, bytes + at);
	at += osd_name_list_entry_bytes(second.name_length);
	CHECK_BYTES(bytes, at, listed.bytes, listed.length);
}

int main(void)
{
	test_params();
	test_data();
	test_answers();
	return 0;
}
