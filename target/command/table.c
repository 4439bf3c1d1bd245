/* SPDX-License-Identifier: GPL-2.0-or-later */
/* table.c -- see table.h.  Permissions: osd2-wire 6.3. */
#include "command/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "command/commands.h"
#include "wire/cdb_layout.h"
#include "wire/cursor.h"

#define R	     OSD_ROOT
#define P	     OSD_PARTITION
#define C	     OSD_COLLECTION
#define U	     OSD_USER_OBJECT
#define NO_OBJECT_ID OSD_CMD_PARTITION_OR_ROOT

static const struct osd_command_def commands[] = {
	{OSD_SA_OBJECT_STRUCTURE_CHECK, "OBJECT STRUCTURE CHECK", R | P, OSD_PERM_DEV_MGMT,
	 OSD_CMD_LONG | NO_OBJECT_ID, osd_cmd_object_structure_check},
	{OSD_SA_FORMAT_OSD, "FORMAT OSD", R, OSD_PERM_OBJ_MGMT | OSD_PERM_GLOBAL,
	 OSD_CMD_EXCLUSIVE | OSD_CMD_LONG | NO_OBJECT_ID, osd_cmd_format_osd},
	{OSD_SA_CREATE, "CREATE", U, OSD_PERM_CREATE,
	 OSD_CMD_TXN | OSD_CMD_REQUESTED_ID | OSD_CMD_LONG, osd_cmd_create},
	{OSD_SA_LIST, "LIST", R | P, OSD_PERM_READ,
	 OSD_CMD_TXN | OSD_CMD_READ_ONLY | OSD_CMD_OWN_ATTRS | OSD_CMD_LONG | NO_OBJECT_ID,
	 osd_cmd_list},
	{OSD_SA_PUNCH, "PUNCH", U, OSD_PERM_WRITE,
	 OSD_CMD_CHANGES | OSD_CMD_CHANGES_DATA | OSD_CMD_OWN_ATTRS | OSD_CMD_LONG | OSD_CMD_MOVES,
	 osd_cmd_punch},
	{OSD_SA_READ, "READ", U, OSD_PERM_READ,
	 OSD_CMD_RANGE | OSD_CMD_CONTINUATION | OSD_CMD_INLINE, osd_cmd_read},
	{OSD_SA_WRITE, "WRITE", U, OSD_PERM_WRITE,
	 OSD_CMD_RANGE | OSD_CMD_DATA_OUT | OSD_CMD_CONTINUATION | OSD_CMD_CHANGES |
		 OSD_CMD_CHANGES_DATA | OSD_CMD_OWN_ATTRS,
	 osd_cmd_write},
	{OSD_SA_APPEND, "APPEND", U, OSD_PERM_APPEND,
	 OSD_CMD_DATA_OUT | OSD_CMD_CHANGES | OSD_CMD_CHANGES_DATA | OSD_CMD_OWN_ATTRS,
	 osd_cmd_append},
	{OSD_SA_FLUSH, "FLUSH", U, OSD_PERM_OBJ_MGMT, OSD_CMD_LONG, osd_cmd_flush},
	{OSD_SA_CLEAR, "CLEAR", U, OSD_PERM_WRITE,
	 OSD_CMD_RANGE | OSD_CMD_CHANGES | OSD_CMD_CHANGES_DATA | OSD_CMD_OWN_ATTRS | OSD_CMD_LONG,
	 osd_cmd_clear},
	{OSD_SA_REMOVE, "REMOVE", U, OSD_PERM_REMOVE,
	 OSD_CMD_TXN | OSD_CMD_ATTRS_FIRST | OSD_CMD_CHANGES | OSD_CMD_CHANGES_DATA,
	 osd_cmd_remove},
	{OSD_SA_CREATE_PARTITION, "CREATE PARTITION", P, OSD_PERM_CREATE,
	 OSD_CMD_TXN | OSD_CMD_REQUESTED_ID | NO_OBJECT_ID, osd_cmd_create_partition},
	{OSD_SA_REMOVE_PARTITION, "REMOVE PARTITION", P, OSD_PERM_REMOVE,
	 OSD_CMD_TXN | OSD_CMD_ATTRS_FIRST | OSD_CMD_LONG | NO_OBJECT_ID, osd_cmd_remove_partition},
	{OSD_SA_GET_ATTRIBUTES, "GET ATTRIBUTES", R | P | C | U, OSD_PERM_GET_ATTR,
	 OSD_CMD_TXN | OSD_CMD_READ_ONLY | OSD_CMD_GET_FIRST | OSD_CMD_INLINE, osd_cmd_attributes},
	{OSD_SA_SET_ATTRIBUTES, "SET ATTRIBUTES", R | P | C | U, OSD_PERM_SET_ATTR,
	 OSD_CMD_TXN | OSD_CMD_READ_ONLY, osd_cmd_attributes},
	{OSD_SA_CREATE_AND_WRITE, "CREATE AND WRITE", U, OSD_PERM_CREATE | OSD_PERM_WRITE,
	 OSD_CMD_REQUESTED_ID | OSD_CMD_RANGE | OSD_CMD_DATA_OUT | OSD_CMD_CONTINUATION |
		 OSD_CMD_OWN_ATTRS,
	 osd_cmd_create_and_write},
	{OSD_SA_COPY_USER_OBJECTS, "COPY USER OBJECTS", U,
	 OSD_PERM_CREATE | OSD_PERM_READ | OSD_PERM_WRITE,
	 OSD_CMD_REQUESTED_ID | OSD_CMD_CONTINUATION | OSD_CMD_OWN_ATTRS | OSD_CMD_LONG,
	 osd_cmd_copy_user_objects},
	{OSD_SA_CREATE_COLLECTION, "CREATE COLLECTION", C, OSD_PERM_CREATE,
	 OSD_CMD_TXN | OSD_CMD_REQUESTED_ID, osd_cmd_create_collection},
	{OSD_SA_CREATE_USER_TRACKING_COLLECTION, "CREATE USER TRACKING COLLECTION", C,
	 OSD_PERM_CREATE | OSD_PERM_READ | OSD_PERM_WRITE,
	 OSD_CMD_REQUESTED_ID | OSD_CMD_CONTINUATION | OSD_CMD_OWN_ATTRS | OSD_CMD_LONG,
	 osd_cmd_create_user_tracking_collection},
	{OSD_SA_REMOVE_COLLECTION, "REMOVE COLLECTION", C, OSD_PERM_REMOVE,
	 OSD_CMD_OWN_ATTRS | OSD_CMD_LONG, osd_cmd_remove_collection},
	{OSD_SA_LIST_COLLECTION, "LIST COLLECTION", P | C, OSD_PERM_READ,
	 OSD_CMD_TXN | OSD_CMD_READ_ONLY | OSD_CMD_OWN_ATTRS | OSD_CMD_LONG, osd_cmd_list_collection},
	{OSD_SA_FLUSH_COLLECTION, "FLUSH COLLECTION", C, OSD_PERM_OBJ_MGMT, OSD_CMD_LONG,
	 osd_cmd_flush_collection},
	{OSD_SA_FLUSH_PARTITION, "FLUSH PARTITION", P, OSD_PERM_OBJ_MGMT,
	 OSD_CMD_LONG | NO_OBJECT_ID, osd_cmd_flush_partition},
	{OSD_SA_FLUSH_OSD, "FLUSH OSD", R, OSD_PERM_OBJ_MGMT, OSD_CMD_LONG | NO_OBJECT_ID,
	 osd_cmd_flush_osd},
	{OSD_SA_QUERY, "QUERY", C, OSD_PERM_QUERY,
	 OSD_CMD_CONTINUATION | OSD_CMD_OWN_ATTRS | OSD_CMD_LONG, osd_cmd_query},
	{OSD_SA_REMOVE_MEMBER_OBJECTS, "REMOVE MEMBER OBJECTS", C,
	 OSD_PERM_REMOVE | OSD_PERM_M_OBJECT, OSD_CMD_OWN_ATTRS | OSD_CMD_LONG,
	 osd_cmd_remove_member_objects},
	{OSD_SA_GET_MEMBER_ATTRIBUTES, "GET MEMBER ATTRIBUTES", C,
	 OSD_PERM_GET_ATTR | OSD_PERM_M_OBJECT, OSD_CMD_OWN_ATTRS | OSD_CMD_LONG,
	 osd_cmd_get_member_attributes},
	{OSD_SA_SET_MEMBER_ATTRIBUTES, "SET MEMBER ATTRIBUTES", C,
	 OSD_PERM_SET_ATTR | OSD_PERM_M_OBJECT, OSD_CMD_OWN_ATTRS | OSD_CMD_LONG,
	 osd_cmd_set_member_attributes},
	{OSD_SA_SET_KEY, "SET KEY", R | P, OSD_PERM_DEV_MGMT | OSD_PERM_POL_SEC, OSD_CMD_TXN,
	 osd_cmd_set_key},
	{OSD_SA_SET_MASTER_KEY, "SET MASTER KEY", R,
	 OSD_PERM_DEV_MGMT | OSD_PERM_POL_SEC | OSD_PERM_GLOBAL, OSD_CMD_TXN | OSD_CMD_DATA_OUT,
	 osd_cmd_set_master_key},
	{OSD_SA_READ_MAP, "READ MAP", U, OSD_PERM_DEV_MGMT, 0, osd_cmd_read_map},
	{OSD_SA_PERFORM_SCSI_COMMAND, "PERFORM SCSI COMMAND", R,
	 OSD_PERM_DEV_MGMT | OSD_PERM_GLOBAL, 0, osd_cmd_perform_scsi_command},
	{OSD_SA_PERFORM_TASK_MANAGEMENT_FUNCTION, "PERFORM TASK MANAGEMENT FUNCTION", R,
	 OSD_PERM_DEV_MGMT | OSD_PERM_GLOBAL, OSD_CMD_MAY_PARK,
	 osd_cmd_perform_task_management_function},
	{OSD_SA_EXEC, "EXEC", R | P | C | U, OSD_PERM_FUN_EXE,
	 OSD_CMD_DATA_OUT | OSD_CMD_CONTINUATION | OSD_CMD_MAY_PARK, osd_cmd_exec},
	{OSD_SA_COMPARE_AND_SWAP, "COMPARE AND SWAP", U, OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR,
	 OSD_CMD_TXN | OSD_CMD_CHANGES, osd_cmd_compare_and_swap},
	{OSD_SA_FETCH_AND_ADD, "FETCH AND ADD", U, OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR,
	 OSD_CMD_TXN | OSD_CMD_CHANGES, osd_cmd_fetch_and_add},
	{OSD_SA_GENERIC_COMPARE_AND_SWAP, "GENERIC COMPARE AND SWAP", U,
	 OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR, OSD_CMD_TXN | OSD_CMD_CHANGES | OSD_CMD_OWN_ATTRS,
	 osd_cmd_generic_compare_and_swap},
	{OSD_SA_CONDITIONAL_SET_ATTRIBUTES, "CONDITIONAL SET ATTRIBUTES", U,
	 OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR, OSD_CMD_TXN | OSD_CMD_CHANGES | OSD_CMD_OWN_ATTRS,
	 osd_cmd_conditional_set_attributes},
};

const struct osd_command_def *osd_command_at(size_t index)
{
	return index < OSD_ARRAY_SIZE(commands) ? &commands[index] : NULL;
}

/* Where a service action stands in the index: those of 88xxh and of 8Fxxh overlap in eight bits, not in
 * these. */
static uint8_t place(uint16_t service_action)
{
	return (uint8_t)(service_action & 0x7f) | (service_action >> 8 == 0x8f ? 0x80 : 0);
}

static uint8_t row_of[256]; /* by place: index + 1; 0: no command */

static __attribute__((constructor)) void index_commands(void)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(commands); i++)
		row_of[place(commands[i].service_action)] = (uint8_t)(i + 1);
}

const struct osd_command_def *osd_command_find(uint16_t service_action)
{
	uint8_t row = row_of[place(service_action)];

	return row && commands[row - 1].service_action == service_action ? &commands[row - 1]
									 : NULL;
}

#define LONG_BYTES	(4u << 20)   /* of data, in any command */
#define LONG_LIST_BYTES (256u << 10) /* of a list of ids */
#define LONG_COUNT	256u	     /* objects of one CREATE */

enum osd_command_span osd_command_span(const struct osd_request *request)
{
	const struct osd_command_def *def;

	bool is_long = true;

	if (request->cdb_length != OSD_CDB_LENGTH)
		return OSD_SPAN_SHORT;
	if (request->data_out_length > LONG_BYTES || request->data_in_capacity > LONG_BYTES)
		return OSD_SPAN_LONG;
	def = osd_command_find((uint16_t)osd_get_be(request->cdb + AT_SERVICE_ACTION, 2));
	if (!def || !(def->flags & OSD_CMD_LONG))
		return OSD_SPAN_SHORT;
	if (def->flags & OSD_CMD_MOVES)
		return OSD_SPAN_MOVES;
	if (def->service_action == OSD_SA_CREATE)
		is_long = osd_get_be(request->cdb + AT_LENGTH, 2) > LONG_COUNT;
	else if (def->service_action == OSD_SA_LIST || def->service_action == OSD_SA_LIST_COLLECTION)
		is_long = request->data_in_capacity > LONG_LIST_BYTES;
	return is_long ? OSD_SPAN_LONG : OSD_SPAN_SHORT;
}

static void print_types(FILE *out, uint8_t types)
{
	static const struct {
		uint8_t bit;
		const char *name;
	} names[] = {{R, "root"}, {P, "partition"}, {C, "collection"}, {U, "user object"}};
	const char *separator = "";

	for (size_t i = 0; i < OSD_ARRAY_SIZE(names); i++) {
		if (!(types & names[i].bit))
			continue;
		fprintf(out, "%s%s", separator, names[i].name);
		separator = ", ";
	}
}

static void print_permissions(FILE *out, uint16_t permissions)
{
	static const struct {
		uint16_t bit;
		const char *name;
	} names[] = {
		{OSD_PERM_READ, "READ"},	 {OSD_PERM_WRITE, "WRITE"},
		{OSD_PERM_GET_ATTR, "GET_ATTR"}, {OSD_PERM_SET_ATTR, "SET_ATTR"},
		{OSD_PERM_CREATE, "CREATE"},	 {OSD_PERM_REMOVE, "REMOVE"},
		{OSD_PERM_OBJ_MGMT, "OBJ_MGMT"}, {OSD_PERM_APPEND, "APPEND"},
		{OSD_PERM_DEV_MGMT, "DEV_MGMT"}, {OSD_PERM_GLOBAL, "GLOBAL"},
		{OSD_PERM_POL_SEC, "POL/SEC"},	 {OSD_PERM_M_OBJECT, "M_OBJECT"},
		{OSD_PERM_QUERY, "QUERY"},	 {OSD_PERM_GBL_REM, "GBL_REM"},
		{OSD_PERM_FUN_EXE, "FUN_EXE"},
	};
	const char *separator = "";

	for (size_t i = 0; i < OSD_ARRAY_SIZE(names); i++) {
		if (!(permissions & names[i].bit))
			continue;
		fprintf(out, "%s%s", separator, names[i].name);
		separator = " + ";
	}
}

struct action {
	uint16_t code, meaning; /* meaning: the row's service action */
	const char *name;
};

static void print_action(FILE *out, const struct action *action)
{
	const struct osd_command_def *def = osd_command_find(action->meaning);
	const char *supported = action->code == action->meaning ? "yes" : "osc-compat";

	fprintf(out, "%04X\t%s\t%s\t", action->code, action->name, def ? supported : "no");
	if (def)
		print_types(out, def->object_types);
	fputc('\t', out);
	if (def)
		print_permissions(out, def->permissions);
	fputc('\n', out);
}

static int by_code(const void *a, const void *b)
{
	return (int)((const struct action *)a)->code - (int)((const struct action *)b)->code;
}

void osd_command_list(FILE *out)
{
	struct action actions[] = {
#define X(code, symbol, name) {code, OSD_SA_##symbol, name},
		OSD_SERVICE_ACTIONS(X) OSD_OSC_SERVICE_ACTIONS(X)
#undef X
	};

	qsort(actions, OSD_ARRAY_SIZE(actions), sizeof(actions[0]), by_code);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(actions); i++)
		print_action(out, &actions[i]);
}
