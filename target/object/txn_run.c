/* SPDX-License-Identifier: GPL-2.0-or-later */
/* txn_run.c -- see txn_run.h.  It also runs the object layer's own transactions (txn.h). */
#include "object/txn_run.h"

#include "object/txn.h"

/* Whether the work is done again.  After the last try *status becomes OSD_E_BUSY. */
static bool begins_again(enum osd_status *status, unsigned tries)
{
	if (*status != OSD_E_CONFLICT)
		return false;
	if (tries > OSD_TXN_RETRIES)
		*status = OSD_E_BUSY;
	return tries <= OSD_TXN_RETRIES;
}

enum osd_status osd_txn_first(struct osd_txn *txn, osd_first_fn *first, void *arg,
			      struct osd_object_id id)
{
	txn->first = (struct osd_first){first, arg, id};
	return OSD_E_TXN_TOO_LARGE;
}

static enum osd_status run_once(struct osd_objects *objects, unsigned flags, osd_txn_fn *fn,
				void *arg, struct osd_first *ret_first)
{
	struct osd_txn *txn;
	enum osd_status status = osd_txn_begin(objects, flags, &txn);

	if (status != OSD_OK)
		return status;
	status = fn(txn, arg);
	if (status == OSD_OK)
		return osd_txn_commit(txn, flags & OSD_COMMIT_DURABLE);
	if (status == OSD_E_TXN_TOO_LARGE)
		*ret_first = txn->first;
	osd_txn_abort(txn);
	return status;
}

enum osd_status osd_txn_run(struct osd_objects *objects, unsigned flags, osd_txn_fn *fn, void *arg)
{
	struct osd_first first;
	enum osd_status status;
	unsigned tries = 0;

	do {
		first.fn = NULL;
		status = run_once(objects, flags, fn, arg, &first);
		if (first.fn)
			status = first.fn(first.arg, first.id);
	} while (first.fn ? status == OSD_OK : begins_again(&status, ++tries));
	return status;
}

static enum osd_status own_run_once(struct osd_objects *objects, unsigned flags, osd_own_fn *fn,
				    void *arg)
{
	bool reads = flags & OSD_TXN_READ_ONLY;
	struct osd_kv_txn *kv;
	enum osd_status status = osd_own_begin(objects, reads ? OSD_KV_READ : OSD_KV_CHANGE, &kv);

	if (status != OSD_OK)
		return status;
	status = fn(kv, arg);
	if (status == OSD_OK && !reads)
		return osd_own_commit(objects, kv, flags & OSD_COMMIT_DURABLE);
	osd_own_abort(kv);
	return status;
}

enum osd_status osd_own_run(struct osd_objects *objects, unsigned flags, osd_own_fn *fn, void *arg)
{
	enum osd_status status;
	unsigned tries = 0;

	do
		status = own_run_once(objects, flags, fn, arg);
	while (begins_again(&status, ++tries));
	return status;
}
