/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_map.c -- READ MAP (osd2-wire 3.11): where a user object has data, holes and damage. */
#include "base/util.h"
#include "command/commands.h"
#include "command/osc.h"
#include "command/resolve.h"
#include "command/task_management.h"
#include "wire/map_data.h"

#define DESCRIPTORS_MAX 65536u /* in one answer, or counted for ADDITIONAL LENGTH */

enum { FIELD_ALLOCATION = 32, FIELD_MAP_TYPE = 48 };

struct map {
	const struct osd_request *request;
	struct osd_map_writer writer;
	enum osd_map_type wanted;
};

static bool add(void *arg, const struct osd_extent *extent)
{
	struct map *map = arg;

	if (map->wanted == OSD_MAP_ALL || map->wanted == extent->type)
		osd_map_writer_add(&map->writer, (uint16_t)extent->type, extent->offset,
				   extent->length);
	return map->writer.count < DESCRIPTORS_MAX && !osd_command_aborted(map->request);
}

static enum osd_status check(struct osd_request *request)
{
	const struct osd_cdb *cdb = &request->decoded;
	uint64_t least = OSD_MAP_HEADER + osd_osc_map_least(request);

	switch (cdb->map_type) {
	case OSD_MAP_ALL:
	case OSD_MAP_DATA:
	case OSD_MAP_HOLE:
	case OSD_MAP_DAMAGED_DATA:
	case OSD_MAP_DAMAGED_ATTRIBUTES:
		break;
	default:
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_MAP_TYPE);
	}
	if (cdb->allocation_length && cdb->allocation_length < least)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_ALLOCATION);
	return OSD_OK;
}

enum osd_status osd_cmd_read_map(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	const struct osd_cdb *cdb = &request->decoded;
	struct map map = {.request = request, .wanted = (enum osd_map_type)cdb->map_type};
	size_t room = (size_t)OSD_MIN(cdb->allocation_length, (uint64_t)request->data_in_capacity);
	enum osd_status status = check(request);

	if (status == OSD_OK)
		status = osd_resolve_object(ctx);
	if (status != OSD_OK)
		return status;
	osd_map_writer_init(&map.writer, request->data_in, room < OSD_MAP_HEADER ? 0 : room);
	status = osd_object_map(ctx->object, cdb->starting_byte_address, add, &map);
	if (status == OSD_OK && osd_command_aborted(request))
		status = OSD_E_TASK_ABORTED;
	if (status == OSD_OK && cdb->allocation_length)
		request->command_data_in = osd_map_writer_finish(&map.writer);
	return status;
}
