/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pin.c -- keeps the data of a user object as they are while a transaction compares their version and commits
 * (object.h).  A pin is a lock of all bytes for reading.  Effects of the transaction, such as the removal of the
 * object, lock them for writing, so the pin ends before them. */
#include <stdlib.h>

#include "object/internal.h"

struct osd_pin {
	struct osd_object *source; /* owned: it has the data; NULL: the object itself has */
	struct osd_object *object; /* borrowed, or the source */
	struct osd_range range;
	bool locked;
};

static void unlock(struct osd_pin *pin)
{
	if (pin->locked)
		osd_object_unlock_read(pin->object, &pin->range);
	pin->locked = false;
}

static enum osd_status lock(struct osd_pin *pin, struct osd_object *object)
{
	enum osd_status status = osd_object_get_source(object, &pin->source);

	pin->object = pin->source ? pin->source : object;
	if (status == OSD_OK)
		status = osd_object_lock_read(pin->object, &pin->range, 0, UINT64_MAX, false);
	pin->locked = status == OSD_OK;
	return status;
}

enum osd_status osd_pin_begin(struct osd_object *object, struct osd_pin **ret_pin)
{
	struct osd_pin *pin = calloc(1, sizeof(*pin));
	enum osd_status status;

	if (!pin)
		return OSD_E_NO_MEMORY;
	status = lock(pin, object);
	if (status == OSD_OK)
		*ret_pin = pin;
	else
		osd_pin_end(pin);
	return status;
}

static enum osd_status state_of(struct osd_object *object, bool nowait, uint64_t *ret_length,
				struct osd_data_version *ret_version)
{
	struct osd_range range;
	enum osd_status status = osd_object_lock_read(object, &range, 0, UINT64_MAX, nowait);

	if (status != OSD_OK)
		return status;
	*ret_length = atomic_load(&object->length);
	*ret_version = osd_version_of(object);
	osd_object_unlock_read(object, &range);
	return OSD_OK;
}

enum osd_status osd_object_state(struct osd_object *object, uint64_t *ret_length,
				 struct osd_data_version *ret_version)
{
	return state_of(object, false, ret_length, ret_version);
}

enum osd_status osd_object_state_at_once(struct osd_object *object, uint64_t *ret_length,
					 struct osd_data_version *ret_version)
{
	return state_of(object, true, ret_length, ret_version);
}

static void at_end(void *arg, bool committed)
{
	if (committed)
		unlock(arg);
}

enum osd_status osd_pin_hold(struct osd_pin *pin, struct osd_txn *txn)
{
	/* Another transaction has committed a length, or given it up, and waits for the pin to say so. */
	if (atomic_load(&pin->object->resizing))
		return OSD_E_BUSY;
	return osd_txn_on_end(txn, at_end, pin);
}

void osd_pin_end(struct osd_pin *pin)
{
	if (!pin)
		return;
	unlock(pin);
	osd_object_put(pin->source);
	free(pin);
}
