/* SPDX-License-Identifier: GPL-2.0-or-later */
/* copy.c -- attributes of one object set on another (COPY USER OBJECTS with CPY_ATTR); its data is
 * in draft.c.
 *
 * Only one object is at hand at a time, and changing from one to the other costs a read and a write
 * of the record: values go over in batches. */
#include "object/internal.h"

#include <stdlib.h>

#include "base/util.h"
#include "object/draft.h"

#define BATCH_BYTES (1u << 20)

struct copied {
	uint32_t page, number;
	size_t at, length; /* of the value in the batch */
};

struct batch {
	struct copied
		*list; /* owned: all attributes to copy; the values of [first, next) are here */
	size_t count, capacity, next;
	uint8_t *bytes; /* owned, BATCH_BYTES */
};

static bool add(struct batch *batch, uint32_t page, uint32_t number)
{
	if (!OSD_MAKE_ROOM(batch->list, batch->count, batch->capacity))
		return false;
	batch->list[batch->count++] = (struct copied){page, number, 0, 0};
	return true;
}

static enum osd_status find_on_page(struct osd_txn *txn, uint32_t page, struct batch *batch)
{
	struct osd_numbers numbers = {NULL, 0, 0};
	enum osd_status status = osd_attr_stored_numbers(txn, page, &numbers);

	for (size_t i = 0; status == OSD_OK && i < numbers.count; i++)
		if (!add(batch, page, numbers.list[i]))
			status = OSD_E_NO_MEMORY;
	free(numbers.list);
	return status;
}

/* Collects the user name and the application's pages of the object at hand.  It leaves out the values of
 * the atomic commands, which are the source's state: a copy of a locked object is not locked. */
static enum osd_status find(struct osd_txn *txn, struct batch *batch)
{
	struct osd_numbers pages = {NULL, 0, 0};
	enum osd_status status = osd_attr_stored_pages(txn, &pages);

	if (status == OSD_OK && !add(batch, OSD_REL_INFORMATION, OSD_INFO_USERNAME))
		status = OSD_E_NO_MEMORY;
	for (size_t i = 0; status == OSD_OK && i < pages.count; i++)
		if (pages.list[i] != OSD_PAGE_COUNTERS && osd_attr_page_is_open(txn, pages.list[i]))
			status = find_on_page(txn, pages.list[i], batch);
	free(pages.list);
	return status;
}

/* Reads values from next on, until the batch is full. */
static enum osd_status read_batch(struct osd_txn *txn, struct batch *batch, size_t *ret_end)
{
	size_t used = 0, i = batch->next;
	enum osd_status status = OSD_OK;

	for (; i < batch->count && BATCH_BYTES - used >= OSD_ATTRIBUTE_MAX; i++) {
		struct copied *copied = &batch->list[i];

		status = osd_attr_stored_get(txn, copied->page, copied->number, batch->bytes + used,
					     OSD_ATTRIBUTE_MAX, &copied->length);
		if (status != OSD_OK)
			return status;
		copied->at = used;
		used += copied->length;
	}
	*ret_end = i;
	return OSD_OK;
}

static enum osd_status copy_batch(struct osd_txn *txn, struct osd_object_id from,
				  struct osd_object_id to, struct batch *batch)
{
	size_t end = 0;
	enum osd_status status = osd_txn_take(txn, from, false);

	if (status == OSD_OK)
		status = read_batch(txn, batch, &end);
	for (; status == OSD_OK && batch->next < end; batch->next++) {
		const struct copied *copied = &batch->list[batch->next];

		if (copied->length > 0)
			status = osd_attr_set(txn, to, copied->page, copied->number,
					      batch->bytes + copied->at, copied->length);
	}
	return status;
}

enum osd_status osd_copy_attributes(struct osd_txn *txn, const struct osd_object *from,
				    struct osd_object_id to)
{
	struct batch batch = {.bytes = malloc(BATCH_BYTES)};
	enum osd_status status = batch.bytes ? osd_txn_take(txn, from->id, false) : OSD_E_NO_MEMORY;

	/* A later object has the id. */
	if (status == OSD_OK &&
	    osd_txn_time(txn, OSD_T_CREATED) != atomic_load(&from->times[OSD_T_CREATED]))
		status = OSD_E_NO_OBJECT;
	if (status == OSD_OK)
		status = find(txn, &batch);
	while (status == OSD_OK && batch.next < batch.count)
		status = copy_batch(txn, from->id, to, &batch);
	free(batch.list);
	free(batch.bytes);
	return status;
}
