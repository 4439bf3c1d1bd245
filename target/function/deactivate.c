/* SPDX-License-Identifier: GPL-2.0-or-later */
/* deactivate.c -- the end of an activation (function.h). */
#include "function/impl.h"
#include "object/txn_run.h"

struct ending {
	struct osd_object_id id;
	const struct osd_function *version; /* NULL: whichever is active */
};

static enum osd_status unmark(struct osd_txn *txn, void *arg)
{
	const struct ending *ending = arg;
	struct osd_function now;
	enum osd_status status = osd_object_hold(txn, ending->id);

	if (status == OSD_OK)
		status = osd_function_read(txn, ending->id, &now);
	if (status == OSD_OK && !osd_function_is_one(ending->id))
		status = OSD_E_NO_OBJECT;
	if (status != OSD_OK || (ending->version && !osd_function_same(&now, ending->version)))
		return status;
	return osd_function_mark(txn, ending->id, NULL);
}

static enum osd_status end(struct osd_functions *functions, struct ending ending)
{
	enum osd_status status =
		osd_txn_run(functions->objects, OSD_COMMIT_DURABLE, unmark, &ending);

	osd_function_match(functions, ending.id);
	return status;
}

enum osd_status osd_function_end(struct osd_functions *functions,
				 const struct osd_function *version)
{
	enum osd_status status = end(functions, (struct ending){version->id, version});

	if (status != OSD_OK)
		osd_function_drop(functions, version, false);
	return status;
}

enum osd_status osd_function_deactivate(struct osd_functions *functions, struct osd_object_id id)
{
	return end(functions, (struct ending){id, NULL});
}
