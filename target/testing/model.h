/* SPDX-License-Identifier: GPL-2.0-or-later */
/* model.h -- a simulated disk: a store of data whose calls take the time that a device of the thesis
 * would take, whatever the real one does.  For tests and benchmarks; its figures are simulated.
 *
 * A device does one thing at a time, in the order asked; two devices work at once.  A read or write
 * takes the access time and its bytes at the device's rate.  A device with an arm (hdd) saves the
 * access time of a call that goes on where the last one ended; one without (ssd) never does.
 * Calls on names and inodes (open, create, truncate, punch, map, sync, remove) take one access, as
 * with cold caches; stat and times of an open file take none.  There is no page cache: every call counts,
 * and a read that may not wait is refused (OSD_E_WOULD_BLOCK).
 *
 * Threads: as store.h. */
#ifndef OSD_TESTING_MODEL_H
#define OSD_TESTING_MODEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"

#define OSD_MODEL_DEVICES 2

struct osd_model_device {
	bool arm;
	uint64_t access_nsec;
	uint64_t read_rate, write_rate; /* bytes a second; not 0 */
};

/* Devices of the main root and of the one for heads. */
struct osd_model {
	struct osd_model_device devices[OSD_MODEL_DEVICES];
	unsigned count;
};

/* "thesis": the hard disk of Runde's thesis for the main root and its SSD for heads;
 * "thesis-hdd", "thesis-ssd": one of them for the only root; or a device for each root, joined by '+', as
 * hdd:15ms:65MB/s+ssd:0.2ms:275MB/s:150MB/s (access time, rate of reads, rate of writes if another).
 * False: it is none of these. */
bool osd_model_parse(const char *text, struct osd_model *ret_model);

enum osd_model_work {
	OSD_MODEL_READ,
	OSD_MODEL_WRITE,
	OSD_MODEL_NAME /* names and inodes: length does not matter */
};

/* The place of a device's arm, and the time at which it is free: a clock without a wait. */
struct osd_model_arm {
	struct osd_model_device device; /* constant */
	uint64_t free_nsec;
	struct osd_data_name name;
	uint64_t offset;
	bool placed; /* it is at offset of name */
};

/* When work that comes at now_nsec ends; it is the device's last now. */
uint64_t osd_model_plan(struct osd_model_arm *arm, uint64_t now_nsec, enum osd_model_work work,
			const struct osd_data_name *name, uint64_t offset, uint64_t length);

/* Takes the inner store over, also when it fails. */
enum osd_status osd_model_data_wrap(struct osd_data *inner, const struct osd_model_device *device,
				    struct osd_data **ret_data);

#endif
