/* SPDX-License-Identifier: GPL-2.0-or-later */
/* attr.c -- get, set and walk the attributes of an object.  Each access goes to the part that keeps
 * the page (attr_class.c): a provider, the standard pages (attr_std.c, attr_set.c), or the store
 * (attr_stored.c).
 * Page forms are in attr_page.c, timestamps in attr_time.c. */
#include "object/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* ---- get --------------------------------------------------------------------------------- */

static enum osd_status provider_get(const struct osd_page_provider *provider, struct osd_txn *txn,
				    uint32_t page, uint32_t number, uint8_t *buffer,
				    size_t capacity, size_t *ret_length)
{
	if (number != 0)
		return provider->get(provider->context, txn, txn->id, page, number, buffer,
				     capacity, ret_length);
	osd_identification_put("IOSD", provider->page_name, buffer, capacity, ret_length);
	return OSD_OK;
}

enum osd_status osd_attr_peek(struct osd_txn *txn, uint32_t page, uint32_t number, uint8_t *buffer,
			      size_t capacity, size_t *ret_length)
{
	const struct osd_page_provider *provider = osd_objects_page(txn->objects, page);
	uint32_t relative = 0;

	if (provider && osd_attr_provider_fits(txn, page))
		return provider_get(provider, txn, page, number, buffer, capacity, ret_length);
	switch (osd_attr_classify(txn, page, &relative)) {
	case OSD_PAGE_STANDARD:
		return osd_std_get(txn, relative, number, buffer, capacity, ret_length);
	case OSD_PAGE_OPEN:
	case OSD_PAGE_CLOSED:
		return number == 0
			       ? osd_attr_identification(txn, page, buffer, capacity, ret_length)
			       : osd_attr_stored_get(txn, page, number, buffer, capacity,
						     ret_length);
	case OSD_PAGE_BAD:
		break;
	}
	return OSD_E_PARAM_FIELD;
}

/* The object's record is not read, and its access time does not change.  Length 0: nothing was found. */
static enum osd_status get_vouched(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				   uint32_t number, uint8_t *buffer, size_t capacity,
				   size_t *ret_length)
{
	const struct osd_page_provider *provider;

	*ret_length = 0;
	if (!(txn->flags & OSD_TXN_READ_ONLY) || number == 0 || number == OSD_NUMBER_ALL)
		return OSD_OK;
	provider = osd_objects_page(txn->objects, page);
	return provider && provider->vouches
		       ? provider->get(provider->context, txn, id, page, number, buffer, capacity,
				       ret_length)
		       : OSD_OK;
}

enum osd_status osd_attr_get(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			     uint32_t number, uint8_t *buffer, size_t capacity, size_t *ret_length)
{
	enum osd_status status =
		get_vouched(txn, id, page, number, buffer, capacity, ret_length);

	if (status != OSD_OK || *ret_length > 0)
		return status;
	status = osd_txn_take(txn, id, false);
	if (status == OSD_OK && number == OSD_NUMBER_ALL)
		status = OSD_E_PARAM_FIELD;
	if (status != OSD_OK)
		return status;
	osd_note_attr_access(txn);
	return osd_attr_peek(txn, page, number, buffer, capacity, ret_length);
}

/* ---- set --------------------------------------------------------------------------------- */

/* osd2-wire 5.2: number 0 of an application's page is its name. */
static bool is_identification(const uint8_t *value, size_t length)
{
	return length <= OSD_PAGE_IDENTIFICATION && (length == 0 || memchr(value, '\0', length));
}

static enum osd_status set_at_hand(struct osd_txn *txn, uint32_t page, uint32_t number,
				   const uint8_t *value, size_t length)
{
	uint32_t relative = 0;
	enum osd_page_class class = osd_attr_classify(txn, page, &relative);

	if (class == OSD_PAGE_BAD)
		return OSD_E_PARAM_FIELD;
	if (class == OSD_PAGE_STANDARD)
		return osd_std_set(txn, relative, number, value, length);
	if (class == OSD_PAGE_CLOSED && !(txn->flags & OSD_TXN_INTERNAL))
		return OSD_E_PARAM_FIELD;
	if (number == 0 && !is_identification(value, length))
		return OSD_E_PARAM_FIELD;
	return osd_attr_stored_set(txn, page, number, value, length);
}

enum osd_status osd_object_hold(struct osd_txn *txn, struct osd_object_id id)
{
	return osd_txn_take(txn, id, true);
}

static void note_set(struct osd_txn *txn)
{
	/* The root and partitions have other records, and their times are kept in memory. */
	osd_note_attr_change(txn);
	txn->dirty = txn->place.object_id != 0;
}

/* The hooks themselves are not checked: a check that fails could not be removed. */
static unsigned events_of(uint32_t page, uint32_t number)
{
	if (page == OSD_PAGE_HOOKS)
		return 0;
	/* A new logical length changes the data: checks of WRITE must see it, too. */
	return page == OSD_REL_INFORMATION && number == OSD_INFO_LOGICAL_LENGTH
		       ? OSD_HOOK_SET | OSD_HOOK_WRITE
		       : OSD_HOOK_SET;
}

enum osd_status osd_attr_set(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			     uint32_t number, const uint8_t *value, size_t length)
{
	const struct osd_page_provider *provider = osd_objects_page(txn->objects, page);
	enum osd_status status;

	if (number == OSD_NUMBER_ALL || length > OSD_ATTRIBUTE_MAX ||
	    (osd_is_objects_collection(id) && !(txn->flags & OSD_TXN_INTERNAL)))
		return OSD_E_PARAM_FIELD;
	/* The record is locked before its hooks are read: none can be added in between. */
	status = osd_txn_take(txn, id, true);
	if (status == OSD_OK)
		status = osd_txn_permitted(txn, osd_txn_hooks(txn), events_of(page, number));
	if (status != OSD_OK)
		return status;
	if (provider && osd_attr_provider_fits(txn, page))
		return provider->set ? provider->set(provider->context, txn, id, page, number,
						     value, length)
				     : OSD_E_PARAM_FIELD;
	status = set_at_hand(txn, page, number, value, length);
	if (status == OSD_OK)
		note_set(txn);
	return status;
}

/* ---- values that the store keeps for providers (page_provider.h) ---------------------------------- */

enum osd_status osd_page_kept_get(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				  uint32_t number, uint8_t *buffer, size_t capacity,
				  size_t *ret_length)
{
	enum osd_status status = osd_txn_take(txn, id, false);

	return status == OSD_OK ? osd_attr_stored_get(txn, page, number, buffer, capacity, ret_length)
				: status;
}

enum osd_status osd_page_value(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			       uint32_t number, uint8_t *buffer, size_t capacity,
			       size_t *ret_length)
{
	enum osd_status status = osd_txn_take(txn, id, false);

	return status == OSD_OK ? osd_attr_peek(txn, page, number, buffer, capacity, ret_length)
				: status;
}

enum osd_status osd_page_kept_set(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
				  uint32_t number, const uint8_t *value, size_t length)
{
	enum osd_status status = osd_txn_take(txn, id, true);

	if (status == OSD_OK)
		status = osd_attr_stored_set(txn, page, number, value, length);
	if (status == OSD_OK)
		note_set(txn);
	return status;
}

/* ---- walk -------------------------------------------------------------------------------- */

/* Calls fn for an attribute that has a value.  The value is read just before. */
static enum osd_status see_number(struct osd_txn *txn, uint32_t page, uint32_t number,
				  uint8_t *buffer, osd_attr_fn *fn, void *arg)
{
	size_t length = 0;
	enum osd_status status;

	if (osd_txn_stopped(txn))
		return OSD_E_TASK_ABORTED;
	status = osd_attr_peek(txn, page, number, buffer, OSD_ATTRIBUTE_MAX, &length);
	return status == OSD_OK && length > 0 /* a damaged record can be longer */
		       ? fn(arg, page, number, buffer, OSD_MIN(length, OSD_ATTRIBUTE_MAX))
		       : status;
}

static enum osd_status each_provided(const struct osd_page_provider *provider, struct osd_txn *txn,
				     uint8_t *buffer, osd_attr_fn *fn, void *arg)
{
	enum osd_status status = OSD_OK;

	if (provider->each)
		return provider->each(provider->context, txn, txn->id, provider->page, fn, arg);
	for (uint32_t number = 1; status == OSD_OK && number <= provider->last; number++)
		status = see_number(txn, provider->page, number, buffer, fn, arg);
	return status;
}

static enum osd_status each_on_page(struct osd_txn *txn, uint32_t page, uint8_t *buffer,
				    osd_attr_fn *fn, void *arg)
{
	const struct osd_page_provider *provider = osd_objects_page(txn->objects, page);
	struct osd_numbers numbers = {NULL, 0, 0};
	uint32_t relative = 0;
	enum osd_page_class class = osd_attr_classify(txn, page, &relative);
	enum osd_status status;

	if (provider && osd_attr_provider_fits(txn, page))
		return each_provided(provider, txn, buffer, fn, arg);
	if (class == OSD_PAGE_BAD)
		return OSD_E_PARAM_FIELD;
	if (class == OSD_PAGE_STANDARD)
		status = osd_std_numbers(txn, relative, &numbers);
	else
		status = osd_attr_stored_numbers(txn, page, &numbers);
	for (size_t i = 0; status == OSD_OK && i < numbers.count; i++)
		status = see_number(txn, page, numbers.list[i], buffer, fn, arg);
	free(numbers.list);
	return status;
}

/* Walks one number of every page, or all numbers. */
static enum osd_status each_on_all_pages(struct osd_txn *txn, uint32_t number, uint8_t *buffer,
					 osd_attr_fn *fn, void *arg)
{
	struct osd_numbers pages = {NULL, 0, 0};
	enum osd_status status = osd_attr_pages(txn, &pages);

	for (size_t i = 0; status == OSD_OK && i < pages.count; i++)
		status = number == OSD_NUMBER_ALL
				 ? each_on_page(txn, pages.list[i], buffer, fn, arg)
				 : see_number(txn, pages.list[i], number, buffer, fn, arg);
	free(pages.list);
	return status;
}

static enum osd_status each(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			    uint32_t number, osd_attr_fn *fn, void *arg)
{
	OSD_CLEANUP_FREE uint8_t *buffer = NULL;
	enum osd_status status = osd_txn_take(txn, id, false);

	if (status != OSD_OK)
		return status;
	osd_note_attr_access(txn);
	buffer = malloc(OSD_ATTRIBUTE_MAX);
	if (!buffer)
		return OSD_E_NO_MEMORY;
	return page == OSD_PAGE_ALL ? each_on_all_pages(txn, number, buffer, fn, arg)
				    : each_on_page(txn, page, buffer, fn, arg);
}

enum osd_status osd_attr_each(struct osd_txn *txn, struct osd_object_id id, uint32_t page,
			      osd_attr_fn *fn, void *arg)
{
	return each(txn, id, page, OSD_NUMBER_ALL, fn, arg);
}

enum osd_status osd_attr_each_page(struct osd_txn *txn, struct osd_object_id id, uint32_t number,
				   osd_attr_fn *fn, void *arg)
{
	return each(txn, id, OSD_PAGE_ALL, number, fn, arg);
}
