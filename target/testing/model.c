/* SPDX-License-Identifier: GPL-2.0-or-later */
/* model.c -- what a simulated disk is and how long it takes; see model.h.  No clock, no files. */
#include "testing/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define NSEC_PER_S UINT64_C(1000000000)
#define ACCESS_MAX (10 * NSEC_PER_S)
#define RATE_MIN   1000.0 /* bytes a second: a call has to end */
#define RATE_MAX   1e12

static const struct osd_model_device thesis_hdd = {true, 15000000, 65000000, 65000000};
static const struct osd_model_device thesis_ssd = {false, 200000, 275000000, 150000000};

struct unit {
	const char *name;
	double factor;
};

/* A number and its unit up to the next ':' or '+' or the end, which is where *text is then. */
static bool parse_quantity(const char **text, const struct unit *units, size_t count, double min,
			   double max, uint64_t *ret_value)
{
	size_t length = strcspn(*text, ":+");
	double value;
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	value = strtod(*text, &end);
	for (size_t i = 0; i < count && !errno; i++) {
		size_t unit = strlen(units[i].name);

		if (end + unit != *text + length || memcmp(end, units[i].name, unit) != 0)
			continue;
		value *= units[i].factor;
		if (!(value >= min && value <= max))
			return false;
		*ret_value = (uint64_t)(value + 0.5);
		*text += length;
		return true;
	}
	return false;
}

static bool parse_rate(const char **text, uint64_t *ret_rate)
{
	static const struct unit units[] = {{"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}};

	return parse_quantity(text, units, OSD_ARRAY_SIZE(units), RATE_MIN, RATE_MAX, ret_rate);
}

/* "hdd:ACCESS:RATE[:RATE]" */
static bool parse_device(const char **text, struct osd_model_device *ret_device)
{
	static const struct unit units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	struct osd_model_device device = {.arm = strncmp(*text, "hdd:", 4) == 0};

	if (!device.arm && strncmp(*text, "ssd:", 4) != 0)
		return false;
	*text += 4;
	if (!parse_quantity(text, units, OSD_ARRAY_SIZE(units), 0, (double)ACCESS_MAX,
			    &device.access_nsec) ||
	    *(*text)++ != ':' || !parse_rate(text, &device.read_rate))
		return false;
	device.write_rate = device.read_rate;
	if (**text == ':') {
		(*text)++;
		if (!parse_rate(text, &device.write_rate))
			return false;
	}
	*ret_device = device;
	return true;
}

bool osd_model_parse(const char *text, struct osd_model *ret_model)
{
	struct osd_model model = {.count = 0};

	if (strcmp(text, "thesis") == 0) {
		*ret_model = (struct osd_model){{thesis_hdd, thesis_ssd}, 2};
		return true;
	}
	if (strcmp(text, "thesis-hdd") == 0) {
		*ret_model = (struct osd_model){{thesis_hdd}, 1};
		return true;
	}
	if (strcmp(text, "thesis-ssd") == 0) {
		*ret_model = (struct osd_model){{thesis_ssd}, 1};
		return true;
	}
	for (;;) {
		if (model.count == OSD_MODEL_DEVICES ||
		    !parse_device(&text, &model.devices[model.count]))
			return false;
		model.count++;
		if (*text == '\0')
			break;
		if (*text++ != '+')
			return false;
	}
	*ret_model = model;
	return true;
}

/* ---- time -------------------------------------------------------------------------------- */

static bool same_file(const struct osd_data_name *a, const struct osd_data_name *b)
{
	return a->object_id == b->object_id && a->partition_id == b->partition_id &&
	       a->generation == b->generation && a->incarnation == b->incarnation &&
	       a->tail == b->tail;
}

/* Bytes at a rate, without overflow. */
static uint64_t transfer_nsec(uint64_t bytes, uint64_t rate)
{
	return bytes / rate * NSEC_PER_S +
	       (uint64_t)((double)(bytes % rate) * 1e9 / (double)rate + 0.5);
}

uint64_t osd_model_plan(struct osd_model_arm *arm, uint64_t now_nsec, enum osd_model_work work,
			const struct osd_data_name *name, uint64_t offset, uint64_t length)
{
	const struct osd_model_device *device = &arm->device;
	uint64_t end = OSD_MAX(now_nsec, arm->free_nsec);

	if (work == OSD_MODEL_NAME) {
		arm->placed = false;
		end += device->access_nsec;
	} else {
		if (!device->arm || !arm->placed || arm->offset != offset ||
		    !same_file(&arm->name, name))
			end += device->access_nsec;
		end += transfer_nsec(length, work == OSD_MODEL_READ ? device->read_rate
								    : device->write_rate);
		arm->name = *name;
		arm->offset = offset + length;
		arm->placed = true;
	}
	arm->free_nsec = end;
	return end;
}
