/* SPDX-License-Identifier: GPL-2.0-or-later */
/* listings.c -- see listings.h. */
#include "harness/listings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "command/current.h"
#include "command/sense_table.h"
#include "command/table.h"

struct word {
	unsigned bit;
	const char *text;
};

/* The words of the bits that are set. */
static void print_words(unsigned bits, const struct word *words, size_t count,
			const char *separator)
{
	const char *before = "";

	for (size_t i = 0; i < count; i++) {
		if (!(bits & words[i].bit))
			continue;
		printf("%s%s", before, words[i].text);
		before = separator;
	}
}

/* ---- commands -------------------------------------------------------------------------------- */

static const struct word types[] = {{OSD_ROOT, "root"},
				    {OSD_PARTITION, "partition"},
				    {OSD_COLLECTION, "collection"},
				    {OSD_USER_OBJECT, "user object"}};

static const struct word permissions[] = {
	{OSD_PERM_READ, "READ"},	 {OSD_PERM_WRITE, "WRITE"},
	{OSD_PERM_GET_ATTR, "GET_ATTR"}, {OSD_PERM_SET_ATTR, "SET_ATTR"},
	{OSD_PERM_CREATE, "CREATE"},	 {OSD_PERM_REMOVE, "REMOVE"},
	{OSD_PERM_OBJ_MGMT, "OBJ_MGMT"}, {OSD_PERM_APPEND, "APPEND"},
	{OSD_PERM_DEV_MGMT, "DEV_MGMT"}, {OSD_PERM_GLOBAL, "GLOBAL"},
	{OSD_PERM_POL_SEC, "POL/SEC"},	 {OSD_PERM_M_OBJECT, "M_OBJECT"},
	{OSD_PERM_QUERY, "QUERY"},	 {OSD_PERM_GBL_REM, "GBL_REM"},
	{OSD_PERM_FUN_EXE, "FUN_EXE"},
};

struct action {
	uint16_t code, meaning; /* meaning: the row's service action */
	const char *name;
};

static void print_action(const struct action *action)
{
	const struct osd_command_def *def = osd_command_find(action->meaning);
	const char *supported = action->code == action->meaning ? "yes" : "osc-compat";

	printf("%04X\t%s\t%s\t", action->code, action->name, def ? supported : "no");
	print_words(def ? def->object_types : 0, types, OSD_ARRAY_SIZE(types), ", ");
	putchar('\t');
	print_words(def ? def->permissions : 0, permissions, OSD_ARRAY_SIZE(permissions), " + ");
	putchar('\n');
}

static int by_code(const void *a, const void *b)
{
	return (int)((const struct action *)a)->code - (int)((const struct action *)b)->code;
}

void harness_list_commands(void)
{
	struct action actions[] = {
#define X(code, symbol, name) {code, OSD_SA_##symbol, name},
		OSD_SERVICE_ACTIONS(X) OSD_OSC_SERVICE_ACTIONS(X)
#undef X
	};

	qsort(actions, OSD_ARRAY_SIZE(actions), sizeof(actions[0]), by_code);
	for (size_t i = 0; i < OSD_ARRAY_SIZE(actions); i++)
		print_action(&actions[i]);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void print_current(const char *number, unsigned length, const char *meaning)
{
	printf("%08" PRIX32 "\tT10 Current Command\t%s\t%u\tno\t%s\n", OSD_PAGE_CURRENT_COMMAND,
	       number, length, meaning);
}

/* The Current Command page is the command's own; all others are those of objects. */
void harness_list_attributes(void)
{
	osd_attr_print_table(stdout);
	print_current("0", 40, "page identification");
	print_current("1", 32, "response integrity check value; zero under NOSEC");
	print_current("2", 1, "type of the object addressed or made");
	print_current("3", 8, "its partition id");
	print_current("4", 8, "its object id; of many made, the highest");
	print_current("5", 8, "where APPEND wrote");
	print_current("6", 8, "change in used capacity, signed");
	print_current("form", OSD_CURRENT_PAGE_BYTES - 8, "length of the page form");
}

/* ---- sense data ------------------------------------------------------------------------------ */

#define FIELD (1u << 8) /* descriptor 02h: beside the bits of enum osd_sense_descriptors */

/* In the order in which they are sent. */
static const struct word descriptors[] = {
	{OSD_SENSE_OBJECT, "06"},
	{FIELD, "02"},
	{OSD_SENSE_COMMAND_INFORMATION, "01"},
	{OSD_SENSE_INFORMATION, "00"},
	{OSD_SENSE_ATTRIBUTE, "08"},
	{OSD_SENSE_TEXT, "80"},
};

static const char *sam_status(enum osd_status status)
{
	if (status == OSD_E_BUSY || status == OSD_E_QUEUE_FULL)
		return "BUSY";
	return status == OSD_E_TASK_ABORTED ? "TASK ABORTED" : "CHECK CONDITION";
}

void harness_list_sense(void)
{
	const struct osd_sense_row *row;

	for (size_t i = 0; (row = osd_sense_row_at(i)); i++) {
		const struct osd_status_info *info = osd_status_info(row->status);
		unsigned field = row->field == OSD_SENSE_NO_FIELD ? 0 : FIELD;

		printf("%s\t%s\t%X\t%02X/%02X\t", row->condition, sam_status(row->status),
		       (unsigned)info->sense_key, info->asc_ascq >> 8, info->asc_ascq & 0xff);
		if (row->field == OSD_SENSE_FIELD_GIVEN)
			printf("at fault");
		else if (field)
			printf("%d", row->field);
		putchar('\t');
		print_words(row->descriptors | field, descriptors, OSD_ARRAY_SIZE(descriptors),
			    " ");
		printf("\t%s\n", row->value ? row->value : "");
	}
}
