/* SPDX-License-Identifier: GPL-2.0-or-later */
/* placed_result.c -- see placed_result.h. */
#include "placed_result.h"

#include <string.h>

#include "proxy_client.h"

#define ALIGNMENT 64u

static const struct osd_engine_job *now;

void osd_placed_begin(const struct osd_engine_job *job)
{
	now = job;
}

bool osd_result_is_placed(const void *result, size_t length, uint32_t *ret_place)
{
	uintptr_t at = (uintptr_t)result, texts = (uintptr_t)osd_proxy_texts();

	if (length == 0 || at < texts || at - texts > OSD_SHM_PLACES_BYTES ||
	    length > OSD_SHM_PLACES_BYTES - (at - texts))
		return false;
	*ret_place = (uint32_t)(at - texts);
	return true;
}

/* Behind the texts, if they lie there. */
static size_t free_place(bool over_texts)
{
	if (over_texts || !now->run.in_shared)
		return 0;
	return ((size_t)osd_job_run_texts(&now->run) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool has_room(size_t place, size_t length)
{
	return length <= OSD_STAGE_DATA_MAX && place <= OSD_SHM_PLACES_BYTES &&
	       length <= OSD_SHM_PLACES_BYTES - place;
}

bool osd_place_more(const void *placed, size_t placed_length, const void *bytes, size_t length)
{
	size_t place = free_place(false);
	uint8_t *to = osd_proxy_texts() + place;

	if (placed != to || length > OSD_STAGE_DATA_MAX || !has_room(place, placed_length + length))
		return false;
	if (length)
		memcpy(to + placed_length, bytes, length);
	return true;
}

const void *osd_place_result(const void *bytes, size_t length, bool over_texts)
{
	size_t place;
	uint32_t there;
	uint8_t *to;

	if (!now || !now->run.stage || now->run.compile || length == 0)
		return NULL;
	if (osd_result_is_placed(bytes, length, &there))
		return bytes;
	place = free_place(over_texts);
	if (!has_room(place, length))
		return NULL;
	to = osd_proxy_texts() + place;
	memcpy(to, bytes, length);
	return to;
}
