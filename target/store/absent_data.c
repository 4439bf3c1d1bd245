/* SPDX-License-Identifier: GPL-2.0-or-later */
/* absent_data.c -- the data store of an absent device: no file can be opened or removed, and
 * nothing waits to be written. */
#include <stdlib.h>

#include "store/store.h"

static void absent_close(struct osd_data *data)
{
	free(data);
}

static enum osd_status absent_open_file(struct osd_data *data, const struct osd_data_name *name,
					unsigned flags, struct osd_data_file **ret_file)
{
	(void)data, (void)name, (void)flags, (void)ret_file;
	return OSD_E_HEAD_ABSENT;
}

static bool absent_can_clone(struct osd_data *data)
{
	(void)data;
	return false;
}

static enum osd_status absent_name(struct osd_data *data, const struct osd_data_name *name)
{
	(void)data, (void)name;
	return OSD_E_HEAD_ABSENT;
}

static enum osd_status absent_remove_partition(struct osd_data *data, uint64_t partition_id,
					       uint32_t incarnation)
{
	(void)data, (void)partition_id, (void)incarnation;
	return OSD_E_HEAD_ABSENT;
}

static enum osd_status absent_sync_all(struct osd_data *data)
{
	(void)data;
	return OSD_OK;
}

static enum osd_status absent_capacity(struct osd_data *data, uint64_t *ret_total,
				       uint64_t *ret_free)
{
	(void)data;
	*ret_total = *ret_free = 0;
	return OSD_OK;
}

/* No file is ever open, so the functions of open files are not set. */
static const struct osd_data_ops absent_ops = {
	.close = absent_close,
	.open_file = absent_open_file,
	.can_clone = absent_can_clone,
	.sync_directories = absent_name,
	.remove = absent_name,
	.remove_partition = absent_remove_partition,
	.sync_all = absent_sync_all,
	.capacity = absent_capacity,
};

enum osd_status osd_absent_data_open(struct osd_data **ret_data)
{
	struct osd_data *data = calloc(1, sizeof(*data));

	if (!data)
		return OSD_E_NO_MEMORY;
	data->ops = &absent_ops;
	*ret_data = data;
	return OSD_OK;
}
