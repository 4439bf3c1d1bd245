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

static void check_row(const struct osd_command_def *def)
{
	uint16_t flags = def->flags;

	CHECK(!strcmp(def->name, osd_service_action_name(def->service_action)));
	CHECK(def->execute != NULL);
	CHECK(def->permissions != 0);
	CHECK(def->object_types != 0);
	CHECK(!(def->object_types &
		~(OSD_ROOT | OSD_PARTITION | OSD_COLLECTION | OSD_USER_OBJECT)));
	/* A requested id is the id of one type. */
	CHECK(!(flags & OSD_CMD_REQUESTED_ID) || one_type(def->object_types));
	/* A parked command cannot hold a transaction. */
	CHECK(!(flags & OSD_CMD_MAY_PARK) || !(flags & OSD_CMD_TXN));
	/* One order of attributes, and only where the dispatcher has the transaction. */
	CHECK(!(flags & OSD_CMD_GET_FIRST && flags & OSD_CMD_ATTRS_FIRST));
	CHECK(!(flags & (OSD_CMD_GET_FIRST | OSD_CMD_ATTRS_FIRST)) || flags & OSD_CMD_TXN);
	CHECK(!(flags & OSD_CMD_EXCLUSIVE) || !(flags & OSD_CMD_TXN));
	CHECK(!(flags & OSD_CMD_INLINE) || !(flags & (OSD_CMD_CHANGES | OSD_CMD_MAY_PARK)));
	CHECK((flags & (OSD_CMD_INLINE | OSD_CMD_TXN)) != (OSD_CMD_INLINE | OSD_CMD_TXN) ||
	      flags & OSD_CMD_READ_ONLY);
	CHECK(!(flags & OSD_CMD_READ_ONLY) || flags & OSD_CMD_TXN);
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

static void test_listing(void)
{
	char *text = NULL;
	size_t length = 0, lines = 0, tabs = 0;
	FILE *out = open_memstream(&text, &length);

	CHECK(out != NULL);
	osd_command_list(out);
	fclose(out);
	for (size_t i = 0; i < length; i++) {
		lines += text[i] == '\n';
		tabs += text[i] == '\t';
	}
	CHECK_EQ(lines, (sizeof(actions) + sizeof(osc_actions)) / sizeof(actions[0]));
	CHECK_EQ(tabs, lines * 4);
	CHECK(strstr(text, "8886\tWRITE\tyes\tuser object\tWRITE\n") != NULL);
	CHECK(strstr(text, "88A8\tCREATE CLONE\tno\t\t\n") != NULL);
	CHECK(strstr(text, "888D\tCAS\tosc-compat\tuser object\tGET_ATTR + SET_ATTR\n") != NULL);
	free(text);
}

int main(void)
{
	test_rows();
	test_listing();
	return 0;
}
