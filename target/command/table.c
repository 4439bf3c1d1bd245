/* SPDX-License-Identifier: GPL-2.0-or-later */
/* table.c -- see table.h.  Permissions: osd2-wire 6.3. */
#include "command/table.h"

#include "base/util.h"
#include "command/commands.h"
#include "command/tracked.h"
#include "object/hooks.h"
#include "wire/cdb_peek.h"

#define R	     OSD_ROOT
#define P	     OSD_PARTITION
#define C	     OSD_COLLECTION
#define U	     OSD_USER_OBJECT
#define NO_OBJECT_ID OSD_CMD_PARTITION_OR_ROOT

static const struct osd_command_def commands[] = {
	{OSD_SA_OBJECT_STRUCTURE_CHECK, R | P, OSD_PERM_DEV_MGMT, OSD_LATENCY_OTHER, NO_OBJECT_ID,
	 .execute = osd_cmd_object_structure_check, .span = OSD_RUNS_LONG},
	{OSD_SA_FORMAT_OSD, R, OSD_PERM_OBJ_MGMT | OSD_PERM_GLOBAL, OSD_LATENCY_OTHER,
	 OSD_CMD_EXCLUSIVE | NO_OBJECT_ID, .execute = osd_cmd_format_osd, .span = OSD_RUNS_LONG,
	 .signing = OSD_SIGNED_ROOT},
	{OSD_SA_CREATE, U, OSD_PERM_CREATE, OSD_LATENCY_MANAGE, OSD_CMD_TXN | OSD_CMD_REQUESTED_ID,
	 .execute = osd_cmd_create, .span = OSD_RUNS_LONG_IF_MANY, .events = OSD_HOOK_CREATE},
	{OSD_SA_LIST, R | P, OSD_PERM_READ, OSD_LATENCY_LIST,
	 OSD_CMD_TXN | OSD_CMD_NO_CHANGE | OSD_CMD_OWN_ATTRS | NO_OBJECT_ID,
	 .execute = osd_cmd_list, .span = OSD_RUNS_LONG_IF_LISTED},
	{OSD_SA_PUNCH, U, OSD_PERM_WRITE, OSD_LATENCY_WRITE,
	 OSD_CMD_CONTINUATION | OSD_CMD_CHANGES | OSD_CMD_OWN_ATTRS, .execute = osd_cmd_punch,
	 .bytes = OSD_BYTES_FROM, .data_use = OSD_USE_CHANGES, .span = OSD_RUNS_MOVING,
	 .events = OSD_HOOK_WRITE},
	{OSD_SA_READ, U, OSD_PERM_READ, OSD_LATENCY_READ, OSD_CMD_CONTINUATION | OSD_CMD_INLINE,
	 .execute = osd_cmd_read, .bytes = OSD_BYTES_SCATTER, .data_use = OSD_USE_READS},
	{OSD_SA_WRITE, U, OSD_PERM_WRITE, OSD_LATENCY_WRITE,
	 OSD_CMD_DATA_OUT | OSD_CMD_CONTINUATION | OSD_CMD_CHANGES | OSD_CMD_OWN_ATTRS |
		 OSD_CMD_MAY_PARK,
	 .execute = osd_cmd_write, .bytes = OSD_BYTES_SCATTER, .data_use = OSD_USE_CHANGES,
	 .events = OSD_HOOK_WRITE},
	{OSD_SA_APPEND, U, OSD_PERM_APPEND, OSD_LATENCY_WRITE,
	 OSD_CMD_DATA_OUT | OSD_CMD_CONTINUATION | OSD_CMD_CHANGES | OSD_CMD_OWN_ATTRS,
	 .execute = osd_cmd_append, .bytes = OSD_BYTES_AT_END, .data_use = OSD_USE_CHANGES,
	 .events = OSD_HOOK_WRITE},
	{OSD_SA_FLUSH, U, OSD_PERM_OBJ_MGMT, OSD_LATENCY_FLUSH, 0, .execute = osd_cmd_flush,
	 .data_use = OSD_USE_READS, .span = OSD_RUNS_LONG},
	{OSD_SA_CLEAR, U, OSD_PERM_WRITE, OSD_LATENCY_WRITE,
	 OSD_CMD_CONTINUATION | OSD_CMD_CHANGES | OSD_CMD_OWN_ATTRS, .execute = osd_cmd_clear,
	 .bytes = OSD_BYTES_RANGE, .data_use = OSD_USE_CHANGES, .span = OSD_RUNS_LONG,
	 .events = OSD_HOOK_WRITE},
	{OSD_SA_REMOVE, U, OSD_PERM_REMOVE, OSD_LATENCY_MANAGE,
	 OSD_CMD_TXN | OSD_CMD_CONTINUATION | OSD_CMD_ATTRS_FIRST | OSD_CMD_CHANGES,
	 .execute = osd_cmd_remove, .data_use = OSD_USE_CHANGES, .events = OSD_HOOK_REMOVE},
	{OSD_SA_CREATE_PARTITION, P, OSD_PERM_CREATE, OSD_LATENCY_MANAGE,
	 OSD_CMD_TXN | OSD_CMD_REQUESTED_ID | NO_OBJECT_ID | OSD_CMD_NEEDS_USER,
	 .execute = osd_cmd_create_partition, .signing = OSD_SIGNED_ROOT},
	{OSD_SA_REMOVE_PARTITION, P, OSD_PERM_REMOVE, OSD_LATENCY_MANAGE,
	 OSD_CMD_TXN | OSD_CMD_ATTRS_FIRST | NO_OBJECT_ID, .execute = osd_cmd_remove_partition,
	 .span = OSD_RUNS_LONG, .scope_permissions = OSD_PERM_GBL_REM, .signing = OSD_SIGNED_ROOT},
	{OSD_SA_GET_ATTRIBUTES, R | P | C | U, OSD_PERM_GET_ATTR, OSD_LATENCY_ATTRIBUTES,
	 OSD_CMD_TXN | OSD_CMD_NO_CHANGE | OSD_CMD_GET_FIRST | OSD_CMD_INLINE,
	 .execute = osd_cmd_attributes},
	/* As CREATE PARTITION, it may attach a function: the store then keeps the user's name. */
	{OSD_SA_SET_ATTRIBUTES, R | P | C | U, OSD_PERM_SET_ATTR, OSD_LATENCY_ATTRIBUTES,
	 OSD_CMD_TXN | OSD_CMD_NO_CHANGE | OSD_CMD_CONTINUATION | OSD_CMD_NEEDS_USER,
	 .execute = osd_cmd_attributes},
	{OSD_SA_CREATE_AND_WRITE, U, OSD_PERM_CREATE | OSD_PERM_WRITE, OSD_LATENCY_WRITE,
	 OSD_CMD_REQUESTED_ID | OSD_CMD_DATA_OUT | OSD_CMD_CONTINUATION | OSD_CMD_OWN_ATTRS |
		 OSD_CMD_MAY_PARK,
	 .execute = osd_cmd_create_and_write, .bytes = OSD_BYTES_SCATTER,
	 .events = OSD_HOOK_CREATE},
	{OSD_SA_COPY_USER_OBJECTS, U, OSD_PERM_CREATE | OSD_PERM_READ | OSD_PERM_WRITE,
	 OSD_LATENCY_MANAGE,
	 OSD_CMD_REQUESTED_ID | OSD_CMD_CONTINUATION | OSD_CMD_OWN_ATTRS | OSD_CMD_MAY_PARK,
	 .execute = osd_cmd_copy_user_objects, .data_use = OSD_USE_COPIES, .span = OSD_RUNS_LONG,
	 .events = OSD_HOOK_CREATE, .untold = true},
	{OSD_SA_CREATE_COLLECTION, C, OSD_PERM_CREATE, OSD_LATENCY_MANAGE,
	 OSD_CMD_TXN | OSD_CMD_REQUESTED_ID, .execute = osd_cmd_create_collection},
	{OSD_SA_CREATE_USER_TRACKING_COLLECTION, C,
	 OSD_PERM_CREATE | OSD_PERM_READ | OSD_PERM_WRITE, OSD_LATENCY_MANAGE,
	 OSD_CMD_REQUESTED_ID | OSD_CMD_CONTINUATION | OSD_CMD_OWN_ATTRS,
	 .execute = osd_cmd_create_user_tracking_collection, .span = OSD_RUNS_LONG,
	 .tracked = &osd_tracked_create_collection},
	{OSD_SA_REMOVE_COLLECTION, C, OSD_PERM_REMOVE, OSD_LATENCY_MANAGE,
	 OSD_CMD_CONTINUATION | OSD_CMD_OWN_ATTRS, .execute = osd_cmd_remove_collection,
	 .span = OSD_RUNS_LONG, .tracked = &osd_tracked_remove_collection},
	{OSD_SA_LIST_COLLECTION, P | C, OSD_PERM_READ, OSD_LATENCY_LIST,
	 OSD_CMD_TXN | OSD_CMD_NO_CHANGE | OSD_CMD_OWN_ATTRS, .execute = osd_cmd_list_collection,
	 .span = OSD_RUNS_LONG_IF_LISTED},
	{OSD_SA_FLUSH_COLLECTION, C, OSD_PERM_OBJ_MGMT, OSD_LATENCY_FLUSH, 0,
	 .execute = osd_cmd_flush_partition, .span = OSD_RUNS_LONG},
	{OSD_SA_FLUSH_PARTITION, P, OSD_PERM_OBJ_MGMT, OSD_LATENCY_FLUSH, NO_OBJECT_ID,
	 .execute = osd_cmd_flush_partition, .span = OSD_RUNS_LONG},
	{OSD_SA_FLUSH_OSD, R, OSD_PERM_OBJ_MGMT, OSD_LATENCY_FLUSH, NO_OBJECT_ID,
	 .execute = osd_cmd_flush_osd, .span = OSD_RUNS_LONG, .signing = OSD_SIGNED_ROOT},
	{OSD_SA_QUERY, C, OSD_PERM_QUERY, OSD_LATENCY_LIST,
	 OSD_CMD_CONTINUATION | OSD_CMD_OWN_ATTRS, .execute = osd_cmd_query, .span = OSD_RUNS_LONG,
	 .tracked = &osd_tracked_query},
	{OSD_SA_REMOVE_MEMBER_OBJECTS, C, OSD_PERM_REMOVE | OSD_PERM_M_OBJECT, OSD_LATENCY_MANAGE,
	 OSD_CMD_CONTINUATION | OSD_CMD_OWN_ATTRS, .execute = osd_cmd_remove_member_objects,
	 .span = OSD_RUNS_LONG, .tracked = &osd_tracked_remove_members},
	{OSD_SA_GET_MEMBER_ATTRIBUTES, C, OSD_PERM_GET_ATTR | OSD_PERM_M_OBJECT,
	 OSD_LATENCY_ATTRIBUTES, OSD_CMD_OWN_ATTRS | OSD_CMD_INLINE,
	 .execute = osd_cmd_get_member_attributes, .span = OSD_RUNS_LONG},
	{OSD_SA_SET_MEMBER_ATTRIBUTES, C, OSD_PERM_SET_ATTR | OSD_PERM_M_OBJECT,
	 OSD_LATENCY_ATTRIBUTES, OSD_CMD_CONTINUATION | OSD_CMD_OWN_ATTRS,
	 .execute = osd_cmd_set_member_attributes, .span = OSD_RUNS_LONG,
	 .tracked = &osd_tracked_set_members},
	{OSD_SA_SET_KEY, R | P, OSD_PERM_DEV_MGMT | OSD_PERM_POL_SEC, OSD_LATENCY_OTHER,
	 OSD_CMD_TXN, .execute = osd_cmd_set_key, .signing = OSD_SIGNED_SET_KEY},
	{OSD_SA_SET_MASTER_KEY, R, OSD_PERM_DEV_MGMT | OSD_PERM_POL_SEC | OSD_PERM_GLOBAL,
	 OSD_LATENCY_OTHER, OSD_CMD_TXN | OSD_CMD_DATA_OUT, .execute = osd_cmd_set_master_key,
	 .signing = OSD_SIGNED_SET_MASTER_KEY},
	{OSD_SA_READ_MAP, U, OSD_PERM_DEV_MGMT, OSD_LATENCY_READ, 0, .execute = osd_cmd_read_map,
	 .data_use = OSD_USE_READS},
	{OSD_SA_PERFORM_SCSI_COMMAND, R, OSD_PERM_DEV_MGMT | OSD_PERM_GLOBAL, OSD_LATENCY_OTHER,
	 OSD_CMD_NEEDS_IDENTITY, .execute = osd_cmd_perform_scsi_command},
	{OSD_SA_PERFORM_TASK_MANAGEMENT_FUNCTION, R, OSD_PERM_DEV_MGMT | OSD_PERM_GLOBAL,
	 OSD_LATENCY_OTHER, OSD_CMD_MAY_PARK | OSD_CMD_URGENT,
	 .execute = osd_cmd_perform_task_management_function},
	{OSD_SA_EXEC, R | P | C | U, OSD_PERM_FUN_EXE, OSD_LATENCY_EXEC,
	 OSD_CMD_DATA_OUT | OSD_CMD_CONTINUATION | OSD_CMD_MAY_PARK | OSD_CMD_NEEDS_USER,
	 .execute = osd_cmd_exec, .at_once = true},
	{OSD_SA_EXECUTE_FUNCTION, R | P | C | U, OSD_PERM_FUN_EXE, OSD_LATENCY_EXEC,
	 OSD_CMD_DATA_OUT | OSD_CMD_CONTINUATION | OSD_CMD_MAY_PARK | OSD_CMD_NEEDS_USER |
		 OSD_CMD_INLINE,
	 .execute = osd_cmd_execute_function},
	{OSD_SA_ACTIVATE_FUNCTION, U, OSD_PERM_SET_ATTR | OSD_PERM_FUN_EXE, OSD_LATENCY_MANAGE,
	 OSD_CMD_MAY_PARK, .execute = osd_cmd_activate_function, .span = OSD_RUNS_LONG},
	{OSD_SA_COMPARE_AND_SWAP, U, OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR, OSD_LATENCY_ATTRIBUTES,
	 OSD_CMD_TXN | OSD_CMD_CHANGES, .execute = osd_cmd_compare_and_swap,
	 .counter = OSD_COUNTER_SWAP, .events = OSD_HOOK_SET, .untold = true},
	{OSD_SA_FETCH_AND_ADD, U, OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR, OSD_LATENCY_ATTRIBUTES,
	 OSD_CMD_TXN | OSD_CMD_CHANGES, .execute = osd_cmd_fetch_and_add,
	 .counter = OSD_COUNTER_ADD, .events = OSD_HOOK_SET, .untold = true},
	{OSD_SA_GENERIC_COMPARE_AND_SWAP, U, OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR,
	 OSD_LATENCY_ATTRIBUTES, OSD_CMD_TXN | OSD_CMD_CHANGES | OSD_CMD_OWN_ATTRS,
	 .execute = osd_cmd_generic_compare_and_swap, .events = OSD_HOOK_SET, .untold = true},
	{OSD_SA_CONDITIONAL_SET_ATTRIBUTES, U, OSD_PERM_GET_ATTR | OSD_PERM_SET_ATTR,
	 OSD_LATENCY_ATTRIBUTES, OSD_CMD_TXN | OSD_CMD_CHANGES | OSD_CMD_OWN_ATTRS,
	 .execute = osd_cmd_conditional_set_attributes, .events = OSD_HOOK_SET, .untold = true},
	{OSD_SA_READ_NAMES, R | P | C, OSD_PERM_READ, OSD_LATENCY_LIST,
	 OSD_CMD_TXN | OSD_CMD_NO_CHANGE | OSD_CMD_DATA_OUT | OSD_CMD_INLINE | OSD_CMD_OWN_ATTRS,
	 .execute = osd_cmd_read_names, .span = OSD_RUNS_LONG_IF_LISTED},
	{OSD_SA_CHANGE_NAMES, R | P | C, OSD_PERM_CREATE | OSD_PERM_WRITE | OSD_PERM_REMOVE,
	 OSD_LATENCY_MANAGE, OSD_CMD_TXN | OSD_CMD_DATA_OUT | OSD_CMD_MAY_PARK,
	 .execute = osd_cmd_change_names, .first = osd_cmd_change_names_first},
};

const struct osd_command_def *osd_command_at(size_t index)
{
	return index < OSD_ARRAY_SIZE(commands) ? &commands[index] : NULL;
}

/* The place of a service action in the index: those of 88xxh and of 8Fxxh overlap in eight bits, not in
 * these. */
static uint8_t place(uint16_t service_action)
{
	return (uint8_t)(service_action & 0x7f) | (service_action >> 8 == 0x8f ? 0x80 : 0);
}

/* Filled before main() and constant then: every command finds its row without a lock. */
static uint8_t row_of[256]; /* by place: index + 1; 0: no command */

static __attribute__((constructor)) void index_commands(void)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(commands); i++)
		row_of[place(commands[i].service_action)] = (uint8_t)(i + 1);
}

const struct osd_command_def *osd_command_find(uint16_t service_action)
{
	uint8_t row = row_of[place(service_action)];

	/* Service actions of other groups have the same places. */
	return row && commands[row - 1].service_action == service_action ? &commands[row - 1]
									 : NULL;
}

#define LONG_LIST_BYTES (256u << 10) /* of a list of ids */
#define LONG_COUNT	256u	     /* objects of one CREATE */

const struct osd_command_def *osd_command_of(const uint8_t *cdb, size_t length)
{
	return osd_cdb_is_osd2(cdb, length) ? osd_command_find(osd_cdb_peek_service_action(cdb))
					    : NULL;
}

enum osd_command_span osd_command_long_span(const struct osd_command_def *def,
					    const struct osd_request *request)
{
	bool is_long = false;
	uint64_t count;

	if (request->data_out_length > OSD_LONG_BYTES || request->data_in_capacity > OSD_LONG_BYTES)
		return OSD_SPAN_LONG;
	switch (def->span) {
	case OSD_RUNS_SHORT:
		break;
	case OSD_RUNS_LONG:
		is_long = true;
		break;
	case OSD_RUNS_LONG_IF_MANY:
		count = osd_cdb_peek_create_count(request->cdb);
		/* The Data-Out is the attributes of each object. */
		is_long = count > LONG_COUNT || count * request->data_out_length > OSD_LONG_BYTES;
		break;
	case OSD_RUNS_LONG_IF_LISTED:
		is_long = request->data_in_capacity > LONG_LIST_BYTES;
		break;
	case OSD_RUNS_MOVING:
		return OSD_SPAN_MOVES;
	}
	return is_long ? OSD_SPAN_LONG : OSD_SPAN_SHORT;
}
