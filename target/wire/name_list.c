/* SPDX-License-Identifier: GPL-2.0-or-later */
/* name_list.c -- see name_list.h. */
#include "wire/name_list.h"

#include <stdbool.h>
#include <string.h>

#include "base/util.h"
#include "wire/cursor.h"

enum { AT_VERB = 0, AT_FLAGS = 1, AT_RESERVED = 2, AT_PATH_LENGTH = 4, AT_OTHER_LENGTH = 6 };
enum { AT_MOST = 8, AT_PREFIX_LENGTH = 12, AT_RESERVED2 = 14, AT_OBJECT = 16, AT_EXPECTED = 24 };

/* The fields of a verb. */
enum { HAS_OTHER = 1, HAS_PREFIX = 2, HAS_MOST = 4, HAS_OBJECT = 8, HAS_EXPECTED = 16 };
enum { HAS_CHECKSUM = 32, HAS_DATA = 64 };

struct verb {
	uint8_t verb, flags, has;
};

static const struct verb verbs[] = {
	{OSD_NAME_LOOKUP, 0, HAS_MOST | HAS_DATA | HAS_EXPECTED},
	{OSD_NAME_LIST, OSD_NAME_ATTRIBUTES | OSD_NAME_EACH, HAS_OTHER | HAS_PREFIX | HAS_MOST},
	{OSD_NAME_CREATE, OSD_NAME_OPEN_EXISTING, 0},
	{OSD_NAME_MKDIR, OSD_NAME_OPEN_EXISTING, 0},
	{OSD_NAME_LINK, OSD_NAME_REPLACE, HAS_OTHER | HAS_OBJECT | HAS_EXPECTED},
	{OSD_NAME_UNLINK, 0, HAS_EXPECTED},
	{OSD_NAME_RMDIR, 0, HAS_EXPECTED},
	{OSD_NAME_RENAME, OSD_NAME_REPLACE | OSD_NAME_EXCHANGE, HAS_OTHER | HAS_EXPECTED},
	{OSD_NAME_PUT, OSD_NAME_REPLACE | OSD_NAME_CHECKSUM,
	 HAS_MOST | HAS_DATA | HAS_CHECKSUM | HAS_EXPECTED},
};

static const struct verb *find_verb(uint8_t verb)
{
	for (size_t i = 0; i < OSD_ARRAY_SIZE(verbs); i++)
		if (verbs[i].verb == verb)
			return &verbs[i];
	return NULL;
}

static bool has_extra(const struct verb *verb, unsigned has, uint64_t value)
{
	return value != 0 && !(verb->has & has);
}

/* It stands in the field of an object's id. */
static bool has_bad_checksum(const struct osd_name_params *params, const struct verb *verb)
{
	uint64_t most = params->flags & OSD_NAME_CHECKSUM ? UINT32_MAX : 0;

	return verb->has & HAS_CHECKSUM && params->object_id > most;
}

/* The byte of a field that is wrong; -1: none. */
static int wrong_field(const struct osd_name_params *params, const struct verb *verb,
		       uint64_t reserved)
{
	if (!verb)
		return AT_VERB;
	if (params->flags & ~verb->flags ||
	    (params->flags & OSD_NAME_REPLACE && params->flags & OSD_NAME_EXCHANGE))
		return AT_FLAGS;
	if (reserved)
		return AT_RESERVED;
	if (has_extra(verb, HAS_OTHER, params->other.length))
		return AT_OTHER_LENGTH;
	if (has_extra(verb, HAS_MOST, params->most) ||
	    (verb->has & HAS_DATA && params->most > OSD_NAME_DATA_MAX))
		return AT_MOST;
	if (has_extra(verb, HAS_PREFIX, params->prefix.length))
		return AT_PREFIX_LENGTH;
	/* LINK names the object by its id or by a path, and not by both. */
	if (has_extra(verb, HAS_OBJECT | HAS_CHECKSUM, params->object_id) ||
	    (params->object_id && params->other.length) || has_bad_checksum(params, verb))
		return AT_OBJECT;
	return has_extra(verb, HAS_EXPECTED, params->expected) ? AT_EXPECTED : -1;
}

static struct osd_name take_text(struct osd_rd *r, size_t length)
{
	return (struct osd_name){osd_rd_bytes(r, length), length};
}

enum osd_status osd_name_params_decode(const uint8_t *bytes, size_t length,
				       struct osd_name_params *ret_params, uint16_t *ret_field)
{
	const size_t there = OSD_MIN(length, (size_t)OSD_NAME_PARAMS_MAX);
	struct osd_rd r = osd_rd_init(bytes, there);
	struct osd_name_params params = {0};
	uint8_t verb = (uint8_t)osd_rd_be(&r, 1);
	size_t path, other, prefix, data;
	uint64_t reserved;
	int wrong;

	params.flags = (uint8_t)osd_rd_be(&r, 1);
	reserved = osd_rd_be(&r, 2);
	path = osd_rd_be(&r, 2);
	other = osd_rd_be(&r, 2);
	params.most = (uint32_t)osd_rd_be(&r, 4);
	prefix = osd_rd_be(&r, 2);
	reserved |= osd_rd_be(&r, 2);
	params.object_id = osd_rd_be(&r, 8);
	params.expected = osd_rd_be(&r, 8);
	params.path = take_text(&r, path);
	params.other = take_text(&r, other);
	params.prefix = take_text(&r, prefix);
	params.data_at = there - osd_rd_left(&r);
	data = verb == OSD_NAME_PUT ? params.most : 0;
	*ret_field = 0;
	if (r.bad || length - params.data_at != data || path > OSD_NAME_PATH_MAX || other > OSD_NAME_PATH_MAX ||
	    prefix > OSD_NAME_PATH_MAX)
		return OSD_E_PARAM_LENGTH;
	wrong = wrong_field(&params, find_verb(verb), reserved);
	if (wrong >= 0) {
		*ret_field = (uint16_t)wrong;
		return OSD_E_PARAM_FIELD;
	}
	params.verb = (enum osd_name_verb)verb;
	if (verb == OSD_NAME_PUT) {
		params.checksum = (uint32_t)params.object_id;
		params.object_id = 0;
	}
	*ret_params = params;
	return OSD_OK;
}

void osd_name_entry_encode(uint64_t partition_id, uint64_t object_id, uint8_t type,
			   uint8_t outcome, uint32_t names, uint8_t bytes[OSD_NAME_ENTRY])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_NAME_ENTRY);

	osd_wr_be(&w, object_id, 8);
	osd_wr_be(&w, type, 1);
	osd_wr_be(&w, outcome, 1);
	osd_wr_be(&w, 0, 2);
	osd_wr_be(&w, names, 4);
	osd_wr_be(&w, partition_id, 8);
}

void osd_name_data_encode(uint64_t length, const uint8_t version[12], uint32_t count,
			  uint8_t bytes[OSD_NAME_DATA_HEADER])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_NAME_DATA_HEADER);

	osd_wr_be(&w, length, 8);
	osd_wr_bytes(&w, version, 12);
	osd_wr_be(&w, count, 4);
}

void osd_name_list_entry_encode(const struct osd_name_list_entry *entry, uint8_t *bytes)
{
	size_t length = osd_name_list_entry_bytes(entry->name_length);

	osd_put_be(bytes, entry->object_id, 8);
	bytes[8] = entry->type;
	memset(bytes + 9, 0, 5);
	osd_put_be(bytes + 14, entry->name_length, 2);
	osd_name_list_facts_encode(entry, bytes);
	osd_put_be(bytes + 52, 0, 4);
	/* Zeros fill up the name.  It has at least one byte, so they are behind the fixed part. */
	osd_put_be(bytes + length - 8, 0, 8);
	memcpy(bytes + OSD_NAME_LIST_ENTRY, entry->name, entry->name_length);
}

/* Apart from the entry: the scan that writes entries must not call the store for the facts. */
void osd_name_list_facts_encode(const struct osd_name_list_entry *entry, uint8_t *bytes)
{
	osd_put_be(bytes + 16, entry->length, 8);
	osd_put_be(bytes + 24, entry->created_ms, 8);
	osd_put_be(bytes + 32, entry->modified_ms, 8);
	memcpy(bytes + 40, entry->version, sizeof(entry->version));
}

void osd_name_list_facts_copy(const uint8_t *from, uint8_t *bytes)
{
	memcpy(bytes + 16, from + 16, 36);
}

void osd_name_list_each_encode(uint32_t names, uint32_t attribute_bytes, uint8_t *bytes)
{
	osd_put_be(bytes + 10, names, 4);
	osd_put_be(bytes + 52, attribute_bytes, 4);
}

void osd_name_list_each_copy(const uint8_t *from, uint8_t *bytes)
{
	memcpy(bytes + 10, from + 10, 4);
	memcpy(bytes + 52, from + 52, 4);
}

uint32_t osd_name_list_attribute_bytes(const uint8_t *bytes)
{
	return (uint32_t)osd_get_be(bytes + 52, 4);
}

void osd_name_list_header_encode(uint32_t count, int more, uint8_t bytes[OSD_NAME_LIST_HEADER])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_NAME_LIST_HEADER);

	osd_wr_be(&w, count, 4);
	osd_wr_be(&w, more ? 1 : 0, 1);
	osd_wr_be(&w, 0, 3);
}
