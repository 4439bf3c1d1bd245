/* SPDX-License-Identifier: GPL-2.0-or-later */
/* commands.h -- the command functions, one for each supported service action; only table.c calls
 * for them by name. */
#ifndef OSD_COMMAND_COMMANDS_H
#define OSD_COMMAND_COMMANDS_H

#include "command/context.h"

struct osd_draft;

/* cmd_object.c */
osd_command_fn osd_cmd_create, osd_cmd_create_and_write, osd_cmd_remove;
/* cmd_data.c */
osd_command_fn osd_cmd_read, osd_cmd_write, osd_cmd_append, osd_cmd_clear, osd_cmd_punch;
osd_command_fn osd_cmd_flush, osd_cmd_flush_partition, osd_cmd_flush_osd;
/* cmd_check.c */
osd_command_fn osd_cmd_object_structure_check;
/* cmd_copy.c */
osd_command_fn osd_cmd_copy_user_objects;
/* cmd_names.c */
osd_command_fn osd_cmd_read_names, osd_cmd_change_names;
/* name_data.c */
osd_command_fn osd_cmd_change_names_first;
/* cmd_map.c */
osd_command_fn osd_cmd_read_map;
/* cmd_partition.c */
osd_command_fn osd_cmd_format_osd, osd_cmd_create_partition, osd_cmd_remove_partition;
/* cmd_collection.c */
osd_command_fn osd_cmd_create_collection, osd_cmd_create_user_tracking_collection;
osd_command_fn osd_cmd_remove_collection;
/* cmd_query.c */
osd_command_fn osd_cmd_query;
/* cmd_member.c */
osd_command_fn osd_cmd_get_member_attributes, osd_cmd_set_member_attributes;
osd_command_fn osd_cmd_remove_member_objects;
/* cmd_list.c */
osd_command_fn osd_cmd_list, osd_cmd_list_collection;
/* cmd_atomic.c */
osd_command_fn osd_cmd_compare_and_swap, osd_cmd_fetch_and_add;
osd_command_fn osd_cmd_generic_compare_and_swap, osd_cmd_conditional_set_attributes;
/* cmd_perform.c */
osd_command_fn osd_cmd_perform_scsi_command, osd_cmd_perform_task_management_function;
/* cmd_key.c */
osd_command_fn osd_cmd_set_key, osd_cmd_set_master_key;
/* cmd_exec.c */
osd_command_fn osd_cmd_exec;
/* cmd_function.c */
osd_command_fn osd_cmd_execute_function, osd_cmd_activate_function;
/* attributes only: the dispatcher does the work */
osd_command_fn osd_cmd_attributes;

/* Writes to the draft of an object, which begins with that if it is NULL. */
enum osd_status osd_command_write_draft(struct osd_command_context *ctx, uint64_t place,
					uint64_t requested_id, const struct osd_change *change,
					struct osd_draft **draft);
/* Makes the draft an object, in one transaction with the attributes of attributes_of (NULL: none)
 * and those the command sets; the rows of its callers say OSD_CMD_OWN_ATTRS (cmd_object.c). */
enum osd_status osd_command_put_draft(struct osd_command_context *ctx, struct osd_draft *draft,
				      const struct osd_object *attributes_of);

/* Passes on the status of a removal; for OSD_E_FUNCTION_IN_USE the sense names a call of the function, or of one of
 * the partition (cmd_function.c). */
enum osd_status osd_command_in_use(struct osd_command_context *ctx, enum osd_status status);

/* The pieces that a WRITE changes: one, or those of the scatter/gather list.  The caller frees
 * *ret_pieces (cmd_data.c). */
enum osd_status osd_command_load_change(struct osd_command_context *ctx,
					struct osd_piece **ret_pieces, struct osd_change *change);

#endif
