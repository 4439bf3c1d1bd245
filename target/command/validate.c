/* SPDX-License-Identifier: GPL-2.0-or-later */
/* validate.c -- see validate.h.  wire/cdb.c has already refused fields that no CDB may have. */
#include "command/validate.h"

#include "base/util.h"
#include "command/integrity.h"
#include "object/txn_run.h"

enum {
	FIELD_OPTIONS = 10,
	FIELD_PARTITION_ID = 16,
	FIELD_OBJECT_ID = 24,
	FIELD_START = 40,
	FIELD_CONTINUATION = 48,
};

/* Well-known collections have ids below the first ordinary one (osd2-wire 1.2). */
static bool object_id_is_valid(uint64_t object_id, uint8_t types)
{
	return object_id >= OSD_FIRST_ID || (types & OSD_COLLECTION && object_id != 0);
}

/* Ids that name something that exists: which type may it be? */
static enum osd_status check_named(struct osd_request *request)
{
	uint8_t types = request->def->object_types;
	uint64_t pid = request->object.partition_id, oid = request->object.object_id;

	if (pid == 0) {
		request->object_type = OSD_ROOT;
		if (!(types & OSD_ROOT))
			return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_PARTITION_ID);
		if (oid != 0)
			return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_OBJECT_ID);
		return OSD_OK;
	}
	if (oid == 0 && types & OSD_PARTITION) {
		request->object_type = OSD_PARTITION;
		return OSD_OK;
	}
	request->object_type = types & OSD_USER_OBJECT ? OSD_USER_OBJECT : OSD_COLLECTION;
	if (!(types & (OSD_USER_OBJECT | OSD_COLLECTION))) /* FORMAT's and LIST's rows end here */
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_PARTITION_ID);
	if (!object_id_is_valid(oid, types))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_OBJECT_ID);
	return OSD_OK;
}

/* Requested ids: 0 = the target chooses. */
static enum osd_status check_requested(struct osd_request *request)
{
	uint64_t pid = request->object.partition_id, oid = request->object.object_id;

	request->object_type = (enum osd_object_type)request->def->object_types;
	if (request->object_type == OSD_PARTITION) {
		return OSD_OK;
	}
	if (pid == 0)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_PARTITION_ID);
	if (oid != 0 && oid < OSD_FIRST_ID)
		return osd_command_fail(request, OSD_E_EXISTS, FIELD_OBJECT_ID);
	return OSD_OK;
}

enum osd_status osd_validate_ids(struct osd_request *request)
{
	const struct osd_command_def *def = request->def;

	request->object.partition_id = request->decoded.partition_id;
	request->object.object_id = request->decoded.object_id;
	if (def->flags & OSD_CMD_PARTITION_OR_ROOT)
		request->object.object_id = 0;
	if (def->object_types == OSD_ROOT && def->flags & OSD_CMD_PARTITION_OR_ROOT) {
		request->object = (struct osd_object_id){0, 0};
		request->object_type = OSD_ROOT;
		return OSD_OK;
	}
	return def->flags & OSD_CMD_REQUESTED_ID ? check_requested(request) : check_named(request);
}

/* No object grows past what a file offset can say; reads may ask for anything that adds up. */
static enum osd_status check_range(struct osd_request *request)
{
	const struct osd_command_def *def = request->def;
	uint64_t last = def->flags & (OSD_CMD_CHANGES | OSD_CMD_DATA_OUT) ? INT64_MAX : UINT64_MAX;
	uint64_t end;

	if (def->bytes != OSD_BYTES_RANGE && def->bytes != OSD_BYTES_SCATTER)
		return OSD_OK;
	if (osd_add_u64(request->decoded.starting_byte_address, request->decoded.length, &end) &&
	    end <= last)
		return OSD_OK;
	return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_START);
}

static enum osd_status check_isolation(struct osd_request *request)
{
	uint8_t method = request->decoded.isolation;

	if (method == OSD_ISOLATION_DEFAULT || osd_isolation_supported(method))
		return OSD_OK;
	return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_OPTIONS);
}

enum osd_status osd_validate(struct osd_request *request)
{
	uint16_t field = OSD_NO_FIELD;
	enum osd_status status = check_range(request);

	if (status == OSD_OK)
		status = check_isolation(request);
	if (status != OSD_OK)
		return status;
	if (request->decoded.continuation_length && !(request->def->flags & OSD_CMD_CONTINUATION))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_CONTINUATION);
	status = osd_cdb_check_data_out(&request->decoded, request->data_out_length, &field);
	if (status != OSD_OK)
		return osd_command_fail(request, status, field);
	return osd_integrity_check_offset(request);
}

enum osd_status osd_validate_exists(struct osd_request *request, struct osd_txn *txn)
{
	enum osd_object_type type;
	enum osd_status status = osd_object_type_of(txn, request->object, &type);

	if (status != OSD_OK)
		return status;
	if (!(request->def->object_types & type))
		return osd_command_fail(request, OSD_E_NO_OBJECT, FIELD_OBJECT_ID);
	request->object_type = type;
	return OSD_OK;
}

static enum osd_status exists_in(struct osd_txn *txn, void *arg)
{
	return osd_validate_exists(arg, txn);
}

enum osd_status osd_validate_alone(struct osd_command_context *ctx)
{
	return osd_txn_run(ctx->objects, OSD_TXN_READ_ONLY, exists_in, ctx->request);
}

enum osd_status osd_validate_unmarked(struct osd_txn *txn, struct osd_object_id id,
				      enum osd_object_type type)
{
	bool unfinished = false;
	enum osd_status status = OSD_OK;

	if (type == OSD_USER_OBJECT)
		status = osd_surrogate_marked(txn, id, &unfinished);
	if (status != OSD_OK)
		return status;
	return unfinished ? OSD_E_JOB_IN_WAY : OSD_OK;
}
