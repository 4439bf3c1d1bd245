/* SPDX-License-Identifier: GPL-2.0-or-later */
/* head_page.c -- attribute pages about heads: 2000_0004h of a user object (how long its head may be,
 * and where it is), B000_0003h of the root (settings, room on both devices, what the mover does).
 *
 * Of the settings, the drain is kept in the store; the rest holds until the target ends, and begins
 * as configured. */

#include "base/util.h"
#include "object/internal.h"
#include "wire/cursor.h"
#include "wire/osd2.h"

/* Of page 2000_0004h. */
enum { HEAD_SIZE = 1, HEAD_ON, HEAD_SSD_BYTES, HEAD_HDD_BYTES, HEAD_END };
enum { ON_NONE, ON_SSD, ON_HDD };

#define RATE_MIN (UINT64_C(64) << 10)
#define RATE_MAX (UINT64_C(1) << 40)
#define AT(field) offsetof(struct osd_heads, field)

/* ---- of a user object ---------------------------------------------------------------------------- */

static enum osd_status head_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				size_t *ret_length)
{
	const struct osd_record *record = &txn->record;
	bool has_files = record->flags & OSD_REC_HAS_FILES;
	bool none = record->head_bytes == OSD_TIER_ONE;
	uint64_t length, part, value;
	enum osd_status status;

	(void)context, (void)page;
	*ret_length = 0;
	if (!osd_heads_two_roots(txn->objects) || osd_txn_type(txn) != OSD_USER_OBJECT)
		return OSD_OK;
	if (number >= HEAD_END)
		return OSD_OK;
	status = osd_object_used(txn, id, &length);
	if (status != OSD_OK)
		return status;
	part = record->head_on ? 0 : osd_head_part(record->head_bytes, length);
	if (number == HEAD_SIZE)
		value = none ? 0 : record->head_bytes;
	else if (number == HEAD_ON)
		value = !has_files ? ON_NONE : record->head_on ? ON_HDD : ON_SSD;
	else
		value = number == HEAD_SSD_BYTES ? part : length - part;
	osd_number_put(value, number == HEAD_ON ? 1 : 8, buffer, capacity, ret_length);
	return OSD_OK;
}

/* Once there are files, their names and lengths follow from the head size. */
static enum osd_status head_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				uint32_t page, uint32_t number, const uint8_t *value, size_t length)
{
	uint64_t head_bytes;

	(void)context, (void)id, (void)page;
	if (number != HEAD_SIZE || length != 8 || !osd_heads_two_roots(txn->objects) ||
	    osd_txn_type(txn) != OSD_USER_OBJECT || (txn->record.flags & OSD_REC_HAS_FILES))
		return OSD_E_PARAM_FIELD;
	head_bytes = osd_get_be(value, 8);
	if (head_bytes > OSD_HEAD_MAX)
		return OSD_E_PARAM_FIELD;
	txn->record.head_bytes = head_bytes;
	txn->dirty = true;
	osd_note_attr_change(txn);
	return OSD_OK;
}

const struct osd_page_provider osd_head_page = {
	.page = OSD_PAGE_HEAD,
	.page_name = "iosd head",
	.get = head_get,
	.last = HEAD_END - 1,
	.set = head_set,
};

/* ---- of the root --------------------------------------------------------------------------------- */

/* Room on the SSD; *ret_length 0: the store has no SSD. */
static enum osd_status room(struct osd_objects *objects, uint32_t number, uint8_t *buffer,
			    size_t capacity, size_t *ret_length)
{
	bool ssd = number == OSD_HEADS_SSD_TOTAL || number == OSD_HEADS_SSD_FREE;
	bool wants_total = number == OSD_HEADS_SSD_TOTAL || number == OSD_HEADS_HDD_TOTAL;
	uint64_t total, available;
	enum osd_status status;

	if (ssd && !osd_heads_two_roots(objects))
		return OSD_OK;
	status = osd_data_capacity(ssd || !osd_heads_two_roots(objects) ? objects->tier.head
									: objects->tier.tail,
				   &total, &available);
	if (status == OSD_OK)
		osd_number_put(wants_total ? total : available, 8, buffer, capacity, ret_length);
	return status;
}

static const struct {
	size_t at; /* in struct osd_heads */
	uint64_t least, most;
	size_t width;
} settings[] = {
	[OSD_HEADS_SIZE] = {AT(head_bytes), 0, OSD_HEAD_MAX, 8},
	[OSD_HEADS_POLICY] = {AT(policy), OSD_HEADS_FIRST, OSD_HEADS_OFF, 1},
	[OSD_HEADS_HIGH] = {AT(high), OSD_HEADS_PERCENT_MIN, OSD_HEADS_PERCENT_MAX, 1},
	[OSD_HEADS_LOW] = {AT(low), OSD_HEADS_PERCENT_MIN, OSD_HEADS_PERCENT_MAX, 1},
	[OSD_HEADS_RATE] = {AT(rate), RATE_MIN, RATE_MAX, 8},
	[OSD_HEADS_DRAIN] = {AT(draining), 0, 1, 1},
};

static _Atomic uint64_t *setting_of(struct osd_heads *heads, uint64_t number)
{
	return (_Atomic uint64_t *)(void *)((uint8_t *)heads + settings[number].at);
}

static uint64_t heads_value(struct osd_objects *objects, uint32_t number, size_t *ret_width)
{
	struct osd_heads *heads = &objects->heads;
	uint64_t bytes[2];

	*ret_width = number <= OSD_HEADS_DRAIN ? settings[number].width : 8;
	switch (number) {
	case OSD_HEADS_SIZE:
	case OSD_HEADS_POLICY:
	case OSD_HEADS_HIGH:
	case OSD_HEADS_LOW:
	case OSD_HEADS_RATE:
		return atomic_load(setting_of(heads, number));
	case OSD_HEADS_DRAIN:
		return atomic_load(&heads->draining) ? 1 + atomic_load(&heads->drained) : 0;
	case OSD_HEADS_SSD_BYTES:
	case OSD_HEADS_HDD_BYTES:
		osd_heads_bytes(objects, bytes);
		return bytes[number - OSD_HEADS_SSD_BYTES];
	case OSD_HEADS_TO_SSD:
	case OSD_HEADS_TO_HDD:
		return atomic_load(&heads->moved[number - OSD_HEADS_TO_SSD]);
	case OSD_HEADS_TO_SSD_BYTES:
	case OSD_HEADS_TO_HDD_BYTES:
		return atomic_load(&heads->moved_bytes[number - OSD_HEADS_TO_SSD_BYTES]);
	default:
		return atomic_load(&heads->passed_over);
	}
}

static enum osd_status heads_get(void *context, struct osd_txn *txn, struct osd_object_id id,
				 uint32_t page, uint32_t number, uint8_t *buffer, size_t capacity,
				 size_t *ret_length)
{
	struct osd_objects *objects = txn->objects;
	uint64_t value;
	size_t width;

	(void)context, (void)id, (void)page;
	*ret_length = 0;
	if (number >= OSD_HEADS_SSD_TOTAL && number <= OSD_HEADS_HDD_FREE)
		return room(objects, number, buffer, capacity, ret_length);
	if (number >= OSD_HEADS_END || !osd_heads_two_roots(objects))
		return OSD_OK;
	value = heads_value(objects, number, &width);
	osd_number_put(value, width, buffer, capacity, ret_length);
	return OSD_OK;
}

/* A setting that the store does not keep takes effect with the commit. effect: generation is its
 * number. */
static void run_setting(struct osd_txn *txn, struct osd_effect *effect, bool committed)
{
	if (!committed)
		return;
	atomic_store(setting_of(&txn->objects->heads, effect->generation), effect->value);
	osd_heads_changed(txn->objects);
}

static bool is_setting(uint32_t number, uint64_t value, size_t length)
{
	return number > 0 && number < OSD_ARRAY_SIZE(settings) &&
	       length == settings[number].width && value >= settings[number].least &&
	       value <= settings[number].most;
}

static enum osd_status heads_set(void *context, struct osd_txn *txn, struct osd_object_id id,
				 uint32_t page, uint32_t number, const uint8_t *value,
				 size_t length)
{
	uint64_t wanted = length && length <= 8 ? osd_get_be(value, length) : 0;
	enum osd_status status;

	(void)context, (void)id;
	if (!osd_heads_two_roots(txn->objects) || !is_setting(number, wanted, length))
		return OSD_E_PARAM_FIELD;
	status = osd_txn_add_effect(
		txn,
		(struct osd_effect){.run = run_setting, .generation = number, .value = wanted});
	return status == OSD_OK && number == OSD_HEADS_DRAIN
		       ? osd_attr_stored_set(txn, page, number, value, wanted ? length : 0)
		       : status;
}

const struct osd_page_provider osd_heads_root_page = {
	.page = OSD_PAGE_HEADS_ROOT,
	.page_name = "iosd heads",
	.get = heads_get,
	.last = OSD_HEADS_END - 1,
	.set = heads_set,
};
