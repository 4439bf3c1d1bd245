/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stores.h -- stores for tests and benchmarks: in memory, and wrappers that fail, or die, at the n-th
 * call.  model.h has the simulated disks.  A program that is linked with this library can open a unit
 * without a directory, which is then in memory, and understands the options of options.c.
 *
 * Threads and errors: as store/store.h. */
#ifndef OSD_TESTING_STORES_H
#define OSD_TESTING_STORES_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

#define OSD_TEST_BALLAST_BYTES (UINT64_C(1) << 20) /* unless option 'ballast' says more */

/* The changes to a unit's stores that a test asks for (osd_objects_config.test); all zero: none. */
struct osd_test_stores {
	uint64_t fault_at;  /* the n-th store call after opening fails; 0: none */
	bool fault_kill;    /* instead the process is killed there */
	bool unsafe_nosync; /* commit with DB_TXN_NOSYNC, which loses data on SIGKILL */
	const char *model;  /* simulated disks (model.h); NULL: none */
};

enum osd_status osd_mem_kv_open(struct osd_kv **ret_kv);
enum osd_status osd_mem_data_open(struct osd_data **ret_data);

/* Shared by the wrappers of one unit: call number fail_at (from 1) over all of them gets status,
 * or the process dies there. */
struct osd_fault_plan {
	_Atomic uint64_t calls;
	_Atomic uint64_t fail_at; /* 0: never */
	_Atomic bool goes_on;	  /* those after it fail, too */
	enum osd_status status;
	bool kill;
};

/* Each takes the inner store over, also when it fails; plan is borrowed. */
enum osd_status osd_fault_kv_wrap(struct osd_kv *inner, struct osd_fault_plan *plan,
				  struct osd_kv **ret_kv);
enum osd_status osd_fault_data_wrap(struct osd_data *inner, struct osd_fault_plan *plan,
				    struct osd_data **ret_data);

#endif
