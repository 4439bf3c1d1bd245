/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_table.c -- the command table is consistent with the standard's list and with itself. */
#include "base/test.h"
#include "command/table.h"

static const uint16_t actions[] = {
#define X(code, symbol, name) code,
	OSD_SERVICE_ACTIONS(X)
#undef X
};

static const uint16_t osc_actions[] = {
#define X(code, symbol, name) code,
	OSD_OSC_SERVICE_ACTIONS(X)
#undef X
};

static bool one_type(uint8_t types)
{
	return types && !(types & (types - 1));
}

/* The columns agree with the flags. */
static void check_columns(const struct osd_command_def *def)
{
	bool of_user_object = def->object_types == OSD_USER_OBJECT;
	bool runs_long = def->span != OSD_RUNS_SHORT;

	CHECK(def->latency < OSD_LATENCY_COUNT);
	CHECK(def->bytes == OSD_BYTES_NONE || of_user_object);
	CHECK(def->data_use == OSD_USE_NONE || of_user_object);
	/* Commands with data of their own resolve the object (resolve.h). */
	CHECK(!(def->flags & OSD_CMD_CHANGES) || of_user_object);
	CHECK(def->bytes != OSD_BYTES_SCATTER || def->flags & OSD_CMD_CONTINUATION);
	CHECK(def->data_use != OSD_USE_CHANGES || def->flags & OSD_CMD_CHANGES);
	CHECK(!def->counter || def->flags & OSD_CMD_CHANGES);
	/* Steps in transactions of their own, whose attributes the definition serves. */
	CHECK(!def->tracked || (def->flags & OSD_CMD_OWN_ATTRS && runs_long));
	CHECK(!def->tracked || !(def->flags & OSD_CMD_TXN));
	CHECK(!(def->flags & OSD_CMD_URGENT) || !runs_long);
	/* On the caller's thread a long command decides itself how much it does. */
	CHECK(!(def->flags & OSD_CMD_INLINE) || !runs_long || def->flags & OSD_CMD_OWN_ATTRS);
}

static void check_row(const struct osd_command_def *def)
{
	uint16_t flags = def->flags;

	CHECK(osd_service_action_name(def->service_action) != NULL);
	CHECK(def->execute != NULL);
	CHECK(def->permissions != 0);
	CHECK(def->object_types != 0);
	CHECK(!(def->object_types &
		~(OSD_ROOT | OSD_PARTITION | OSD_COLLECTION | OSD_USER_OBJECT)));
	/* A requested id is the id of one type. */
	CHECK(!(flags & OSD_CMD_REQUESTED_ID) || one_type(def->object_types));
	/* A parked command cannot hold a transaction: it parks before that, in first(). */
	CHECK(!(flags & OSD_CMD_MAY_PARK) || !(flags & OSD_CMD_TXN) || def->first);
	/* One order of attributes, and only where the dispatcher has the transaction. */
	CHECK(!(flags & OSD_CMD_GET_FIRST && flags & OSD_CMD_ATTRS_FIRST));
	CHECK(!(flags & (OSD_CMD_GET_FIRST | OSD_CMD_ATTRS_FIRST)) || flags & OSD_CMD_TXN);
	CHECK(!(flags & OSD_CMD_EXCLUSIVE) || !(flags & OSD_CMD_TXN));
	CHECK(!(flags & OSD_CMD_INLINE) || !(flags & OSD_CMD_CHANGES));
	CHECK((flags & (OSD_CMD_INLINE | OSD_CMD_TXN)) != (OSD_CMD_INLINE | OSD_CMD_TXN) ||
	      flags & OSD_CMD_NO_CHANGE);
	CHECK(!(flags & OSD_CMD_NO_CHANGE) || flags & OSD_CMD_TXN);
	check_columns(def);
}

static void test_rows(void)
{
	size_t supported = 0;

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		const struct osd_command_def *def = osd_command_find(actions[i]);

		if (!def)
			continue;
		CHECK_EQ(def->service_action, actions[i]);
		check_row(def);
		supported++;
	}
	CHECK(supported >= 24);
	/* OSC's codes are names for other rows, never rows. */
	for (size_t i = 0; i < sizeof(osc_actions) / sizeof(osc_actions[0]); i++)
		CHECK(!osd_command_find(osc_actions[i]) && !osd_service_action_name(osc_actions[i]));
	/* No row for a code the standard does not name. */
	for (unsigned code = 0; code <= 0xffff; code++)
		CHECK(!osd_command_find((uint16_t)code) || osd_service_action_name((uint16_t)code));
}

/* The row of a CDB before it is decoded, and how long its request may take. */
static void test_undecoded(void)
{
	struct osd_cdb cdb = {.service_action = OSD_SA_CREATE,
			      .create_count = 256,
			      .attributes.format = OSD_CDBFMT_LIST};
	uint8_t bytes[OSD_CDB_LENGTH];
	struct osd_request request = {.cdb = bytes, .cdb_length = sizeof(bytes)};
	const struct osd_command_def *def;

	CHECK(osd_cdb_encode(&cdb, bytes));
	def = osd_command_of(bytes, sizeof(bytes));
	CHECK(def == osd_command_find(OSD_SA_CREATE));
	request.data_out_length = 16u << 10; /* attributes of each object: 4 MiB of all */
	CHECK_EQ(osd_command_span(def, &request), OSD_SPAN_SHORT);
	request.data_out_length++;
	CHECK_EQ(osd_command_span(def, &request), OSD_SPAN_LONG);
	request.data_out_length = 0;
	cdb.create_count = 257;
	CHECK(osd_cdb_encode(&cdb, bytes));
	CHECK_EQ(osd_command_span(def, &request), OSD_SPAN_LONG);
	CHECK_EQ(osd_command_span(osd_command_find(OSD_SA_PUNCH), &request), OSD_SPAN_MOVES);
	def = osd_command_find(OSD_SA_LIST);
	CHECK_EQ(osd_command_span(def, &request), OSD_SPAN_SHORT);
	request.data_in_capacity = (256u << 10) + 1;
	CHECK_EQ(osd_command_span(def, &request), OSD_SPAN_LONG);

	CHECK(!osd_command_of(bytes, sizeof(bytes) - 1) && !osd_command_of(NULL, 0));
	bytes[7]--;
	CHECK(!osd_command_of(bytes, sizeof(bytes)));
	bytes[7]++;
	bytes[8] = 0x12; /* a service action of nobody's */
	CHECK(!osd_command_of(bytes, sizeof(bytes)));
	CHECK_EQ(osd_command_span(NULL, &request), OSD_SPAN_SHORT);
}

int main(void)
{
	test_rows();
	test_undecoded();
	return 0;
}
