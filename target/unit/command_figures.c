/* SPDX-License-Identifier: GPL-2.0-or-later */
/* command_figures.c -- see command_figures.h. */
#include "unit/command_figures.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "base/util.h"
#include "command/table.h"
#include "wire/json.h"

#define NOTED_NS 100000000 /* so that threads seldom write what they all read */

struct row {
	enum osd_latency_class latency;
	_Atomic uint64_t counts[OSD_STATUS_COUNT];
};

struct osd_figures {
	struct osd_histogram seconds[OSD_LATENCY_COUNT];
	_Atomic uint64_t noted_ns; /* of the last request, within NOTED_NS */
	_Atomic uint64_t rejected[OSD_REJECTION_COUNT];
	const struct osd_command_def *first; /* the table of commands */
	size_t row_count;
	struct row rows[]; /* in its order; one more for what is in no row */
};

struct osd_figures *osd_figures_create(void)
{
	struct osd_figures *figures;
	size_t count = 0;

	while (osd_command_at(count))
		count++;
	figures = calloc(1, sizeof(*figures) + (count + 1) * sizeof(struct row));
	if (!figures)
		return NULL;
	figures->first = osd_command_at(0);
	figures->row_count = count;
	for (size_t i = 0; i < count; i++)
		figures->rows[i].latency = osd_command_at(i)->latency;
	figures->rows[count].latency = OSD_LATENCY_OTHER;
	return figures;
}

void osd_figures_note(struct osd_figures *figures, const struct osd_request *request,
		      uint64_t now_ns)
{
	size_t at = request->def ? (size_t)(request->def - figures->first) : figures->row_count;
	struct row *row = &figures->rows[at];

	if (now_ns - atomic_load_explicit(&figures->noted_ns, memory_order_relaxed) >= NOTED_NS)
		atomic_store_explicit(&figures->noted_ns, now_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&row->counts[request->fault.status], 1, memory_order_relaxed);
	osd_histogram_add(&figures->seconds[row->latency], (now_ns - request->submitted_ns) / 1000);
}

bool osd_figures_noted_since(const struct osd_figures *figures, uint64_t ns)
{
	return atomic_load_explicit(&figures->noted_ns, memory_order_relaxed) + NOTED_NS > ns;
}

void osd_figures_reject(struct osd_figures *figures, enum osd_rejection why)
{
	atomic_fetch_add_explicit(&figures->rejected[why], 1, memory_order_relaxed);
}

/* "OSD_E_NO_OBJECT" is shown as "no_object". */
static void write_status(struct osd_json *json, enum osd_status status)
{
	const char *name = osd_status_info(status)->name;
	char label[32];
	size_t length = 0;

	name += strncmp(name, "OSD_E_", 6) == 0 ? 6 : 4;
	for (; name[length] && length < sizeof(label) - 1; length++)
		label[length] = (char)tolower((unsigned char)name[length]);
	label[length] = '\0';
	osd_json_text(json, "status", label);
}

static void write_row(const struct row *row, const char *name, struct osd_json *json)
{
	for (unsigned status = 0; status < OSD_STATUS_COUNT; status++) {
		uint64_t count = atomic_load_explicit(&row->counts[status], memory_order_relaxed);

		if (!count)
			continue;
		osd_json_open(json, NULL, '{');
		osd_json_text(json, "command", name);
		write_status(json, status);
		osd_json_number(json, "count", count);
		osd_json_close(json, '}');
	}
}

void osd_figures_write(const struct osd_figures *figures, struct osd_json *json)
{
	static const char *const classes[] = {OSD_LATENCY_CLASSES(OSD_NAME_OF)};
	static const char *const rejections[] = {OSD_REJECTIONS(OSD_NAME_OF)};

	osd_json_open(json, "commands", '[');
	for (size_t i = 0; i < figures->row_count; i++)
		write_row(&figures->rows[i],
			  osd_service_action_name(osd_command_at(i)->service_action), json);
	write_row(&figures->rows[figures->row_count], "unknown", json);
	osd_json_close(json, ']');
	osd_json_open(json, "command_seconds", '{');
	for (unsigned i = 0; i < OSD_LATENCY_COUNT; i++)
		osd_json_histogram(json, classes[i], &figures->seconds[i]);
	osd_json_close(json, '}');
	osd_json_open(json, "rejected", '{');
	for (unsigned i = 0; i < OSD_REJECTION_COUNT; i++)
		osd_json_number(json, rejections[i],
				atomic_load_explicit(&figures->rejected[i], memory_order_relaxed));
	osd_json_close(json, '}');
}
