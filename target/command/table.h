/* SPDX-License-Identifier: GPL-2.0-or-later */
/* table.h -- every service action the target knows of, one row each (style: the row declares, the
 * dispatcher enforces, the function works). */
#ifndef OSD_COMMAND_TABLE_H
#define OSD_COMMAND_TABLE_H

#include <stdio.h>

#include "command/context.h"

/* The row, or NULL when the target does not support the service action. */
const struct osd_command_def *osd_command_find(uint16_t service_action);
/* How long a request may take that has not been decoded yet, by its service action and size. */
enum osd_command_span osd_command_span(const struct osd_request *request);
/* The rows, for walking them; NULL behind the last. */
const struct osd_command_def *osd_command_at(size_t index);
/* Rows for documentation and tests: tab separated code, name, supported, object types,
 * permissions. */
void osd_command_list(FILE *out);

#endif
