/* SPDX-License-Identifier: GPL-2.0-or-later */
/* codec.c -- the bytes of a list of used objects (used.h). */
#include "exec/used/used.h"

#include <stdlib.h>

#include "wire/cursor.h"

#define HEAD_BYTES  16u
#define ENTRY_BYTES 24u
#define RANGE_BYTES 16u

static size_t entry_bytes(const struct osd_used_entry *entry)
{
	return ENTRY_BYTES + (entry->kinds & OSD_USED_VERSIONED ? OSD_VERSION_BYTES : 0) +
	       (entry->kinds & OSD_MADE_DATA ? 2 * OSD_VERSION_BYTES : 0) +
	       RANGE_BYTES * (size_t)entry->range_count;
}

static void put_version(struct osd_wr *w, struct osd_data_version version)
{
	osd_wr_be(w, version.counter, 8);
	osd_wr_be(w, version.opening, 4);
}

static void put_entry(struct osd_wr *w, const struct osd_used_entry *entry)
{
	osd_wr_be(w, entry->id.partition_id, 8);
	osd_wr_be(w, entry->id.object_id, 8);
	osd_wr_be(w, entry->kinds, 4);
	osd_wr_be(w, entry->range_count, 4);
	if (entry->kinds & OSD_USED_VERSIONED)
		put_version(w, entry->version);
	if (entry->kinds & OSD_MADE_DATA) {
		put_version(w, entry->before);
		put_version(w, entry->after);
	}
	for (uint32_t i = 0; i < entry->range_count; i++) {
		osd_wr_be(w, entry->ranges[i].start, 8);
		osd_wr_be(w, entry->ranges[i].end, 8);
	}
}

enum osd_status osd_used_encode(const struct osd_used *used, uint8_t **ret_bytes,
				size_t *ret_length)
{
	size_t length = HEAD_BYTES;
	struct osd_wr w;

	*ret_bytes = NULL;
	*ret_length = 0;
	if (!used->count && !used->left_out)
		return OSD_OK;
	for (uint32_t i = 0; i < used->count; i++)
		length += entry_bytes(&used->entries[i]);
	*ret_bytes = malloc(length);
	if (!*ret_bytes)
		return OSD_E_NO_MEMORY;
	w = osd_wr_init(*ret_bytes, length);
	osd_wr_be(&w, OSD_USED_FORM, 2);
	osd_wr_zero(&w, 2);
	osd_wr_be(&w, used->count, 4);
	osd_wr_be(&w, used->left_out, 8);
	for (uint32_t i = 0; i < used->count; i++)
		put_entry(&w, &used->entries[i]);
	*ret_length = osd_wr_used(&w);
	return OSD_OK;
}

static struct osd_data_version get_version(struct osd_rd *r)
{
	uint64_t counter = osd_rd_be(r, 8);

	return (struct osd_data_version){counter, (uint32_t)osd_rd_be(r, 4)};
}

/* Its entry must be a new one. */
static bool read_entry(struct osd_rd *r, struct osd_used *used)
{
	uint64_t partition_id = osd_rd_be(r, 8), object_id = osd_rd_be(r, 8);
	struct osd_object_id id = {partition_id, object_id};
	uint32_t kinds = (uint32_t)osd_rd_be(r, 4), ranges = (uint32_t)osd_rd_be(r, 4);
	uint32_t before = used->count;

	if (r->bad || ranges > OSD_USED_RANGES_MAX)
		return false;
	if (kinds & OSD_USED_DATA)
		osd_used_read(used, id, get_version(r), 0, 0);
	else if (kinds & OSD_USED_MEMBERS)
		osd_used_members(used, id, get_version(r));
	if (kinds & OSD_MADE_DATA) {
		struct osd_data_version first = get_version(r);

		osd_used_wrote(used, id, first, get_version(r));
	}
	osd_used_note(used, id, kinds);
	osd_rd_bytes(r, RANGE_BYTES * (size_t)ranges);
	return !r->bad && used->count == before + 1;
}

static enum osd_status bad_list(void)
{
	return osd_internal("the list of objects that a job used is damaged");
}

enum osd_status osd_used_decode(const uint8_t *bytes, size_t length, struct osd_used *used)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	unsigned form = (unsigned)osd_rd_be(&r, 2);
	uint32_t count;

	osd_rd_be(&r, 2);
	count = (uint32_t)osd_rd_be(&r, 4);
	used->left_out = osd_rd_be(&r, 8);
	if (r.bad || form != OSD_USED_FORM)
		return bad_list();
	for (uint32_t i = 0; i < count; i++)
		if (!read_entry(&r, used))
			return bad_list();
	return osd_rd_left(&r) ? bad_list() : OSD_OK;
}
