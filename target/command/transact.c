/* SPDX-License-Identifier: GPL-2.0-or-later */
/* transact.c -- see transact.h. */
#include "command/transact.h"

static enum osd_status try_once(struct osd_objects *objects, unsigned txn_flags,
				enum osd_commit how, osd_transact_fn *fn, void *arg)
{
	struct osd_txn *txn;
	enum osd_status status = osd_txn_begin(objects, txn_flags, &txn);

	if (status != OSD_OK)
		return status;
	status = fn(arg, txn);
	if (status == OSD_OK)
		return osd_txn_commit(txn, how);
	osd_txn_abort(txn);
	return status;
}

enum osd_status osd_transact(struct osd_objects *objects, unsigned txn_flags, enum osd_commit how,
			     osd_transact_fn *fn, void *arg)
{
	enum osd_status status;

	for (int attempt = 0; attempt <= OSD_TXN_RETRIES; attempt++) {
		status = try_once(objects, txn_flags, how, fn, arg);
		if (status != OSD_E_RETRY)
			return status;
	}
	return OSD_E_BUSY;
}
