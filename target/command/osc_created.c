/* SPDX-License-Identifier: GPL-2.0-or-later */
/* osc_created.c -- the attributes that a CREATE of many objects gets, in the order of OSC (osc.h). */
#include "command/attributes.h"
#include "command/osc.h"

static enum osd_status get_of_each(struct osd_request *request, struct osd_txn *txn,
				   struct osd_attr_writer *writer)
{
	struct osd_object_id id = request->object; /* the last one */
	enum osd_status status = OSD_OK;

	id.object_id -= request->made_count - 1;
	for (; status == OSD_OK && id.object_id <= request->object.object_id; id.object_id++)
		status = osd_attributes_group(request, txn, id, writer);
	return status;
}

enum osd_status osd_osc_get_created(struct osd_request *request, struct osd_txn *txn)
{
	struct osd_attr_list *list = &request->attributes->get_list;
	const struct osd_attr_list all = *list;
	struct osd_attr_list rest = all;
	struct osd_attr_writer writer;
	enum osd_status status = OSD_OK;
	struct osd_attr attr;

	osd_attributes_groups_begin(request, &writer);
	while (status == OSD_OK && osd_attr_list_next(&rest, &attr)) {
		list->end = rest.at; /* one entry of it */
		status = get_of_each(request, txn, &writer);
		list->at = rest.at;
	}
	*list = all;
	if (status == OSD_OK)
		osd_attributes_list_end(request, &writer);
	return status;
}
