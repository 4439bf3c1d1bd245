/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stand_in.h -- where a library for tests and benchmarks puts its own stores in the place of those on
 * disk, or between them and the object layer.  The product has no such library: target/testing/ is
 * linked into the harness, the C unit tests, the fuzz targets and bs_iosd_test.so. */
#ifndef OSD_STORE_STAND_IN_H
#define OSD_STORE_STAND_IN_H

#include "store/store.h"

struct osd_test_stores; /* testing/stores.h */
struct osd_fault_plan;	/* testing/stores.h */

/* The stores of one logical unit while it opens. */
struct osd_opened_stores {
	struct osd_kv *kv;
	struct osd_data *head, *tail; /* tail NULL: there is one root */
	enum osd_kv_commit commit;    /* how its transactions end, unless a command asks for more */
	struct osd_fault_plan *faults;
};

struct osd_stand_ins {
	/* Makes stores for a unit that has no directory. */
	enum osd_status (*open)(struct osd_kv **ret_kv, struct osd_data **ret_data);
	/* Wraps the stores as the test asks.  After an error the caller closes those that are not NULL.
	 * In either case it frees faults, which may be NULL, after it has closed the stores. */
	enum osd_status (*wrap)(const struct osd_test_stores *wanted, char message[256],
				struct osd_opened_stores *stores);
	/* The unit is open: calls of its stores are counted from here on. */
	void (*ready)(const struct osd_test_stores *wanted, struct osd_fault_plan *faults);
};

/* NULL in the product.  The library sets it when it is loaded. */
extern const struct osd_stand_ins *osd_stand_ins;

#endif
