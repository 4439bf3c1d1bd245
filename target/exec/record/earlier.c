/* SPDX-License-Identifier: GPL-2.0-or-later */
/* earlier.c -- job records of versions 1 to 6, which are read and never written.  Each is one fixed order
 * of fields, and each version added fields at the end. */
#include "exec/record/format.h"

static void read_text(struct osd_rd *r, char *text, size_t capacity)
{
	osd_job_read_text(r, osd_rd_be(r, 2), text, capacity);
}

static void read_rights(struct osd_rd *r, struct osd_job_rights *rights)
{
	size_t length = osd_rd_be(r, 2);

	if (length == OSD_JOB_RIGHTS_BYTES)
		osd_job_read_rights(r, rights);
	else if (length)
		r->bad = true;
}

static void read_version_1(struct osd_rd *r, struct osd_job_record *record)
{
	OSD_JOB_NUMBERS(OSD_JOB_READ)
	record->key_length = (uint8_t)osd_rd_be(r, 1);
	osd_job_read_bytes(r, record->code_sha256, sizeof(record->code_sha256));
	osd_job_read_bytes(r, record->content_sha256, sizeof(record->content_sha256));
	if (record->key_length > sizeof(record->key))
		r->bad = true;
	else
		osd_job_read_bytes(r, record->key, record->key_length);
	read_text(r, record->name, sizeof(record->name));
	read_text(r, record->message, sizeof(record->message));
	read_text(r, record->principal, sizeof(record->principal));
}

void osd_job_record_read_earlier(struct osd_rd *r, unsigned version, struct osd_job_record *record)
{
	record->charged = OSD_JOB_UNCOUNTED;
	read_version_1(r, record);
	if (version >= 2) {
		read_text(r, record->pool, sizeof(record->pool));
		read_text(r, record->set, sizeof(record->set));
	}
	if (version >= 3) {
		OSD_JOB_ARRAY_NUMBERS(OSD_JOB_READ)
		OSD_JOB_PREDECESSOR_NUMBERS(OSD_JOB_READ)
	}
	if (version >= 4)
		read_rights(r, &record->rights);
	if (version >= 5) {
		record->starved_usec = osd_rd_be(r, 8);
		record->charged = osd_rd_be(r, 8);
	}
	if (version >= 6)
		record->begin_msec = osd_rd_be(r, 8);
}
