/* SPDX-License-Identifier: GPL-2.0-or-later */
/* precondition.c -- see precondition.h. */
#include "command/precondition.h"

#include <string.h>

#include "command/resolve.h"

static bool find(const struct osd_command_context *ctx, struct osd_descriptor *ret_descriptor)
{
	return ctx->copy &&
	       osd_continuation_find(&ctx->continuation, OSD_DESC_PRECONDITION, ret_descriptor);
}

bool osd_precondition_given(const struct osd_command_context *ctx)
{
	struct osd_descriptor descriptor;

	return find(ctx, &descriptor);
}

/* *ret_given: the command has one. */
static enum osd_status decode(struct osd_command_context *ctx, struct osd_precondition *ret_wanted,
			      bool *ret_given)
{
	struct osd_descriptor descriptor;
	enum osd_status status = OSD_OK;

	*ret_given = find(ctx, &descriptor);
	if (*ret_given)
		status = osd_precondition_decode(&descriptor, ret_wanted);
	return status == OSD_OK ? OSD_OK
				: osd_command_fail(ctx->request, status, OSD_CONTINUATION_FIELD);
}

enum osd_status osd_precondition_load(struct osd_command_context *ctx, uint32_t page,
				      struct osd_data_version *version,
				      const struct osd_data_version **ret_wanted)
{
	struct osd_precondition wanted;
	bool given;
	enum osd_status status = decode(ctx, &wanted, &given);

	*ret_wanted = page == OSD_PAGE_VERSION ? ctx->request->checked_version : NULL;
	if (status != OSD_OK || !given)
		return status;
	if (wanted.page != page || wanted.number != OSD_VERSION_NUMBER)
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, OSD_CONTINUATION_FIELD);
	*version = (struct osd_data_version){wanted.counter, wanted.opening};
	*ret_wanted = version;
	return OSD_OK;
}

/* 0: this type has no version.  The type is known once the transaction has found the object. */
static uint32_t page_of(const struct osd_command_context *ctx)
{
	switch (ctx->request->object_type) {
	case OSD_USER_OBJECT:
		return OSD_PAGE_VERSION;
	case OSD_COLLECTION:
		return OSD_PAGE_MEMBERS_VERSION;
	default:
		return 0;
	}
}

enum osd_status osd_precondition_begin(struct osd_command_context *ctx, struct osd_pin **ret_pin)
{
	struct osd_precondition wanted;
	bool given;
	enum osd_status status = decode(ctx, &wanted, &given);

	*ret_pin = NULL;
	if (status != OSD_OK ||
	    (given ? wanted.page != OSD_PAGE_VERSION : !ctx->request->checked_version))
		return status;
	status = osd_resolve_object(ctx);
	if (status == OSD_OK)
		status = osd_pin_begin(ctx->object, ret_pin);
	/* The transaction reports an object that is absent, or of another type. */
	return osd_status_is_gone(status) ? OSD_OK : status;
}

enum osd_status osd_precondition_compare(struct osd_txn *txn, struct osd_object_id id,
					 uint32_t page, const struct osd_data_version *wanted)
{
	uint8_t is[OSD_VERSION_BYTES] = {0}, should[OSD_VERSION_BYTES];
	size_t length = 0;
	enum osd_status status =
		osd_attr_get(txn, id, page, OSD_VERSION_NUMBER, is, sizeof(is), &length);

	if (status != OSD_OK)
		return status;
	osd_version_encode(*wanted, should);
	return length == sizeof(is) && memcmp(is, should, sizeof(is)) == 0 ? OSD_OK : OSD_E_VERSION;
}

static enum osd_status compare(struct osd_command_context *ctx, struct osd_txn *txn)
{
	const struct osd_data_version *wanted;
	struct osd_data_version version;
	uint32_t page = page_of(ctx);
	enum osd_status status = osd_precondition_load(ctx, page, &version, &wanted);

	return status == OSD_OK && wanted
		       ? osd_precondition_compare(txn, ctx->request->object, page, wanted)
		       : status;
}

enum osd_status osd_precondition_check(struct osd_command_context *ctx, struct osd_txn *txn,
				       struct osd_pin *pin)
{
	enum osd_status status = pin ? osd_pin_hold(pin, txn) : OSD_OK;

	return status == OSD_OK ? compare(ctx, txn) : status;
}

enum osd_status osd_precondition_members(struct osd_command_context *ctx, struct osd_txn *txn)
{
	enum osd_status status;

	if (!osd_precondition_given(ctx))
		return OSD_OK;
	status = osd_object_hold(txn, ctx->request->object);
	return status == OSD_OK ? compare(ctx, txn) : status;
}
