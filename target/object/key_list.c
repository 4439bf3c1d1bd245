/* SPDX-License-Identifier: GPL-2.0-or-later */
/* key_list.c -- see key_list.h. */
#include "object/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

struct collect_context {
	struct osd_key_list *list;
	size_t limit;
	bool no_memory;
};

static bool collect_key(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct collect_context *context = arg;
	struct osd_key_list *list = context->list;
	uint16_t length = (uint16_t)key.length;

	(void)value;
	if (list->used + sizeof(length) + key.length > list->capacity) {
		size_t capacity = OSD_MAX(4096, 2 * (list->used + sizeof(length) + key.length));
		uint8_t *bytes = realloc(list->bytes, capacity);

		if (!bytes) {
			context->no_memory = true;
			return false;
		}
		list->bytes = bytes;
		list->capacity = capacity;
	}
	memcpy(list->bytes + list->used, &length, sizeof(length));
	memcpy(list->bytes + list->used + sizeof(length), key.data, key.length);
	list->used += sizeof(length) + key.length;
	return ++list->count < context->limit;
}

enum osd_status osd_key_list_collect(struct osd_objects *objects, struct osd_kv_txn *kv,
				     enum osd_kv_table table, struct osd_bytes prefix, size_t limit,
				     struct osd_key_list *list)
{
	struct collect_context context = {list, limit, false};
	enum osd_status status;

	*list = (struct osd_key_list){0};
	status = osd_kv_scan(objects->kv, kv, table, prefix, prefix.length, collect_key, &context);
	return status == OSD_OK && context.no_memory ? OSD_E_NO_MEMORY : status;
}

bool osd_key_list_next(struct osd_key_list *list, struct osd_bytes *ret_key)
{
	uint16_t length;

	if (list->at >= list->used)
		return false;
	memcpy(&length, list->bytes + list->at, sizeof(length));
	*ret_key = (struct osd_bytes){list->bytes + list->at + sizeof(length), length};
	list->at += sizeof(length) + length;
	return true;
}

void osd_key_list_release(struct osd_key_list *list)
{
	free(list->bytes);
	*list = (struct osd_key_list){0};
}

/* ---- without a list ---------------------------------------------------------------------- */

struct ids {
	uint64_t *list;
	size_t at, capacity, count;
};

static bool add_id(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	struct ids *ids = arg;

	(void)value;
	if (key.length >= ids->at + 8)
		ids->list[ids->count++] = osd_get_be((const uint8_t *)key.data + ids->at, 8);
	return ids->count < ids->capacity;
}

enum osd_status osd_key_ids(struct osd_objects *objects, struct osd_kv_txn *kv,
			    enum osd_kv_table table, const struct osd_key *from, size_t at,
			    uint64_t *ids, size_t capacity, size_t *ret_count)
{
	struct ids found = {.list = ids, .at = at, .capacity = capacity};
	enum osd_status status =
		osd_kv_scan(objects->kv, kv, table, osd_key_bytes(from), at, add_id, &found);

	*ret_count = found.count;
	return status;
}

static bool see_one(void *arg, struct osd_bytes key, struct osd_bytes value)
{
	(void)key, (void)value;
	*(bool *)arg = true;
	return false;
}

enum osd_status osd_key_any(struct osd_objects *objects, struct osd_kv_txn *kv,
			    enum osd_kv_table table, struct osd_bytes prefix, bool *ret_any)
{
	*ret_any = false;
	return osd_kv_scan(objects->kv, kv, table, prefix, prefix.length, see_one, ret_any);
}
