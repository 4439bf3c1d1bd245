/* SPDX-License-Identifier: GPL-2.0-or-later */
/* codec.c -- the bytes of a job record: a head of fixed size, then tagged fields (docs/format.md).
 *
 * The head has what every job has.  Each field has a tag, and a tag has one meaning for ever, so a later
 * release adds a field without a new layout.  A release refuses a record with an unknown field that must be
 * understood: it would run the job in another way than asked.  It skips other unknown fields. */
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "exec/record/format.h"

/* In stored order: ascending.  From MUST_UNDERSTAND on, a release that does not know the tag refuses. */
enum tag {
	TAG_BEGIN = 1,
	TAG_ARRAY = 2,
	TAG_PREDECESSOR = 3,
	TAG_RIGHTS = 4,
	TAG_KEY = 5,
	TAG_NAME = 6,
	TAG_MESSAGE = 7,
	TAG_PRINCIPAL = 8,
	TAG_POOL = 9,
	TAG_SET = 10,
	TAG_SIGNER = 11,
	TAG_USED = 12,
	TAG_OFFLOAD = 16,
	TAG_MUST_UNDERSTAND = 0x8000,
	TAG_FUNCTION = 0x8001,
};

#define LENGTH_AT  2 /* bytes of the whole record: none may be missing, a field of rights least of all */
#define FIELD_HEAD 4 /* bytes: tag, length */
#define VERSION_MAX 255 /* of later releases: a greater number is damage */

/* Tag, member of the record. */
#define TEXTS(X)                                                                                   \
	X(TAG_NAME, name)                                                                          \
	X(TAG_MESSAGE, message)                                                                    \
	X(TAG_PRINCIPAL, principal)                                                                \
	X(TAG_POOL, pool)                                                                          \
	X(TAG_SET, set)                                                                            \
	X(TAG_SIGNER, function.signer)

enum {
#define X(member, width) +width
	HEAD_BYTES = 2 + 2 + (OSD_JOB_NUMBERS(X)) + 8 + 8 + 32 + 32,
	ARRAY_BYTES = (OSD_JOB_ARRAY_NUMBERS(X)),
	PREDECESSOR_BYTES = (OSD_JOB_PREDECESSOR_NUMBERS(X)),
	OFFLOAD_BYTES = (OSD_JOB_OFFLOAD_NUMBERS(X)),
#undef X
#define X(tag, member) +FIELD_HEAD + (int)sizeof(((struct osd_job_record *)NULL)->member)
	TEXTS_MAX = (TEXTS(X)),
#undef X
	FUNCTION_BYTES = 8 + 8 + 1, /* and the method */
	FIELDS_MAX = 8 * FIELD_HEAD + 8 + 4 + FUNCTION_BYTES + OSD_JOB_METHOD_MAX + ARRAY_BYTES + PREDECESSOR_BYTES + OFFLOAD_BYTES +
		     OSD_JOB_RIGHTS_BYTES + OSD_JOB_KEY_MAX + TEXTS_MAX,
};
_Static_assert(HEAD_BYTES + FIELDS_MAX <= OSD_JOB_RECORD_MAX / 2, "half is for later releases");

/* ---- write ----------------------------------------------------------------------------------- */

static void write_head(struct osd_wr *w, const struct osd_job_record *record)
{
	osd_wr_be(w, OSD_JOB_RECORD_VERSION, 2);
	osd_wr_be(w, 0, 2); /* the length, which is known last */
	OSD_JOB_NUMBERS(OSD_JOB_WRITE)
	osd_wr_be(w, record->starved_usec, 8);
	osd_wr_be(w, record->charged, 8);
	osd_wr_bytes(w, record->code_sha256, sizeof(record->code_sha256));
	osd_wr_bytes(w, record->content_sha256, sizeof(record->content_sha256));
}

static void begin_field(struct osd_wr *w, enum tag tag, size_t length)
{
	osd_wr_be(w, tag, 2);
	osd_wr_be(w, length, 2);
}

static void write_field(struct osd_wr *w, enum tag tag, const void *bytes, size_t length)
{
	if (!length)
		return;
	begin_field(w, tag, length);
	osd_wr_bytes(w, bytes, length);
}

static void write_rights(struct osd_wr *w, const struct osd_job_rights *rights)
{
	uint8_t capability[OSD_CAPABILITY_LENGTH];

	osd_capability_encode(&rights->grant.capability, capability);
	begin_field(w, TAG_RIGHTS, OSD_JOB_RIGHTS_BYTES);
	osd_wr_bytes(w, capability, sizeof(capability));
	osd_wr_be(w, rights->grant.level, 1);
	osd_wr_be(w, rights->grant.key_partition, 8);
	osd_wr_bytes(w, rights->key_stamp, sizeof(rights->key_stamp));
}

static void write_function(struct osd_wr *w, const struct osd_job_function *function)
{
	size_t method = strlen(function->method);

	begin_field(w, TAG_FUNCTION, FUNCTION_BYTES + method);
	osd_wr_be(w, function->id.partition_id, 8);
	osd_wr_be(w, function->id.object_id, 8);
	osd_wr_be(w, function->access, 1);
	osd_wr_bytes(w, function->method, method);
}

static void write_fields(struct osd_wr *w, const struct osd_job_record *record)
{
	if (record->begin_msec) {
		begin_field(w, TAG_BEGIN, 8);
		osd_wr_be(w, record->begin_msec, 8);
	}
	if (record->array.object_id) {
		begin_field(w, TAG_ARRAY, ARRAY_BYTES);
		OSD_JOB_ARRAY_NUMBERS(OSD_JOB_WRITE)
	}
	if (record->predecessor.object_id) {
		begin_field(w, TAG_PREDECESSOR, PREDECESSOR_BYTES);
		OSD_JOB_PREDECESSOR_NUMBERS(OSD_JOB_WRITE)
	}
	if (record->rights.limited)
		write_rights(w, &record->rights);
	write_field(w, TAG_KEY, record->key, record->key_length);
#define X(tag, member) write_field(w, tag, record->member, strlen(record->member));
	TEXTS(X)
#undef X
	if (record->used_length) {
		begin_field(w, TAG_USED, 4);
		osd_wr_be(w, record->used_length, 4);
	}
	if (record->flags & OSD_JOB_PURE) {
		begin_field(w, TAG_OFFLOAD, OFFLOAD_BYTES);
		OSD_JOB_OFFLOAD_NUMBERS(OSD_JOB_WRITE)
	}
	if (record->function.id.object_id)
		write_function(w, &record->function);
}

size_t osd_job_record_encode(const struct osd_job_record *record, uint8_t bytes[OSD_JOB_RECORD_MAX])
{
	struct osd_wr w = osd_wr_init(bytes, OSD_JOB_RECORD_MAX);

	write_head(&w, record);
	write_fields(&w, record);
	osd_put_be(bytes + LENGTH_AT, osd_wr_used(&w), 2);
	return osd_wr_used(&w);
}

/* ---- read ------------------------------------------------------------------------------------ */

static void read_head(struct osd_rd *r, size_t length, struct osd_job_record *record)
{
	if (osd_rd_be(r, 2) != length)
		r->bad = true;
	OSD_JOB_NUMBERS(OSD_JOB_READ)
	record->starved_usec = osd_rd_be(r, 8);
	record->charged = osd_rd_be(r, 8);
	osd_job_read_bytes(r, record->code_sha256, sizeof(record->code_sha256));
	osd_job_read_bytes(r, record->content_sha256, sizeof(record->content_sha256));
}

static void read_key(struct osd_rd *r, size_t length, struct osd_job_record *record)
{
	if (length > sizeof(record->key)) {
		r->bad = true;
		return;
	}
	record->key_length = (uint8_t)length;
	osd_job_read_bytes(r, record->key, length);
}

static void read_function(struct osd_rd *r, struct osd_job_function *function)
{
	function->id.partition_id = osd_rd_be(r, 8);
	function->id.object_id = osd_rd_be(r, 8);
	function->access = (uint8_t)osd_rd_be(r, 1);
	osd_job_read_text(r, osd_rd_left(r), function->method, sizeof(function->method));
	if (!function->id.object_id || !function->method[0] || function->access > OSD_JOB_WRITES)
		r->bad = true;
}

static void unknown_field(struct osd_rd *r, unsigned tag)
{
	if (tag < TAG_MUST_UNDERSTAND) {
		r->at = r->end;
		return;
	}
	osd_error("a job's record has field %#06x, which this release does not know: use the "
		  "release that wrote it, or a later one",
		  tag);
	r->bad = true;
}

/* r has the bytes of this field alone; bytes that its tag has no meaning for make it bad. */
static bool read_field(struct osd_rd *r, unsigned tag, struct osd_job_record *record)
{
	size_t length = osd_rd_left(r);

	switch (tag) {
	case TAG_BEGIN:
		record->begin_msec = osd_rd_be(r, 8);
		break;
	case TAG_ARRAY:
		OSD_JOB_ARRAY_NUMBERS(OSD_JOB_READ)
		break;
	case TAG_PREDECESSOR:
		OSD_JOB_PREDECESSOR_NUMBERS(OSD_JOB_READ)
		break;
	case TAG_OFFLOAD:
		OSD_JOB_OFFLOAD_NUMBERS(OSD_JOB_READ)
		break;
	case TAG_RIGHTS:
		osd_job_read_rights(r, &record->rights);
		break;
	case TAG_FUNCTION:
		read_function(r, &record->function);
		break;
	case TAG_USED:
		record->used_length = (uint32_t)osd_rd_be(r, 4);
		break;
	case TAG_KEY:
		read_key(r, length, record);
		break;
#define X(tag, member)                                                                             \
	case tag:                                                                                  \
		osd_job_read_text(r, length, record->member, sizeof(record->member));              \
		break;
		TEXTS(X)
#undef X
	default:
		unknown_field(r, tag);
	}
	return !r->bad && r->at == r->end;
}

/* Tags ascend, so each is there at most once. */
static void read_fields(struct osd_rd *r, struct osd_job_record *record)
{
	unsigned before = 0;

	while (osd_rd_left(r) != 0) {
		unsigned tag = (unsigned)osd_rd_be(r, 2);
		size_t length = osd_rd_be(r, 2);
		const uint8_t *bytes = osd_rd_bytes(r, length);
		struct osd_rd field = osd_rd_init(bytes, length);

		if (!bytes || tag <= before || !read_field(&field, tag, record))
			r->bad = true;
		before = tag;
	}
}

/* Whether a record that does not decode is whole, with a field that a later release wrote and this one must not
 * skip. */
static bool has_later_field(const uint8_t *bytes, size_t length)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	bool later = false;

	if (osd_rd_be(&r, 2) != OSD_JOB_RECORD_VERSION)
		return false;
	osd_rd_bytes(&r, HEAD_BYTES - 2);
	while (!r.bad && osd_rd_left(&r) != 0) {
		unsigned tag = (unsigned)osd_rd_be(&r, 2);

		later |= tag >= TAG_MUST_UNDERSTAND && tag != TAG_FUNCTION;
		osd_rd_bytes(&r, osd_rd_be(&r, 2));
	}
	return later && !r.bad;
}

enum osd_status osd_job_record_decode(const uint8_t *bytes, size_t length,
				      struct osd_job_record *ret_record)
{
	struct osd_rd r = osd_rd_init(bytes, length);
	struct osd_job_record record = {0};
	unsigned version = (unsigned)osd_rd_be(&r, 2);

	if (version > OSD_JOB_RECORD_VERSION && version <= VERSION_MAX)
		return osd_internal("a job's record has version %u, which this release (up to %d) does "
				    "not know: use the release that wrote it, or a later one",
				    version, OSD_JOB_RECORD_VERSION);
	if (version < 1 || version > OSD_JOB_RECORD_VERSION)
		return OSD_E_MEDIUM;
	if (version == OSD_JOB_RECORD_VERSION) {
		read_head(&r, length, &record);
		read_fields(&r, &record);
	} else {
		osd_job_record_read_earlier(&r, version, &record);
	}
	if (r.bad || osd_rd_left(&r) != 0 || !osd_job_state_is_known(record.state))
		return has_later_field(bytes, length)
			       ? osd_internal("a later release wrote the record of a job")
			       : OSD_E_MEDIUM;
	*ret_record = record;
	return OSD_OK;
}
