/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_version.h -- versions of data and members of objects of one partition, for the test_*.c about them. */
#ifndef OSD_OBJECT_TEST_VERSION_H
#define OSD_OBJECT_TEST_VERSION_H

#include "object/internal.h"
#include "object/test_support.h"

#define PID UINT64_C(0x10000)

static inline struct osd_data_version test_version(struct osd_objects *objects, uint64_t oid,
						   uint32_t page)
{
	struct osd_object_id id = {PID, oid};
	uint8_t bytes[OSD_VERSION_BYTES];

	CHECK_EQ(test_get(objects, id, page, OSD_VERSION_NUMBER, bytes, sizeof(bytes)),
		 sizeof(bytes));
	return (struct osd_data_version){osd_get_be(bytes, 8), (uint32_t)osd_get_be(bytes + 8, 4)};
}

static inline struct osd_data_version version_of(struct osd_objects *objects, uint64_t oid)
{
	return test_version(objects, oid, OSD_PAGE_VERSION);
}

static inline bool same(struct osd_data_version a, struct osd_data_version b)
{
	return osd_same_version(a, b);
}

static inline struct osd_object *get(struct osd_objects *objects, uint64_t oid)
{
	struct osd_object *object;

	OK(osd_object_get(objects, (struct osd_object_id){PID, oid}, &object));
	return object;
}

static inline void do_write(struct osd_objects *objects, uint64_t oid)
{
	OK(test_write(objects, (struct osd_object_id){PID, oid}, 0, "write", 5));
}

#endif
