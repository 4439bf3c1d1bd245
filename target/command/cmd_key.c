/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cmd_key.c -- SET KEY and SET MASTER KEY (osd2-wire 3.15, 3.16; docs/security-protocol.md). */
#include <string.h>

#include "command/commands.h"
#include "security/exchange.h"
#include "security/keys.h"
#include "wire/capability.h"
#include "wire/cursor.h"

enum {
	FIELD_BYTE11 = 11,
	FIELD_PARTITION = 16,
	FIELD_VERSION = 24, /* DH GROUP */
	FIELD_LIST_LENGTH = 32,
	FIELD_ALLOCATION = 36,
	FIELD_METHOD = 82,
};

enum { KEY_MASK = 0x3, ROOT_KEY = 1, PARTITION_KEY = 2, WORKING_KEY = 3 };
enum { STEP_MASK = 0x3, STEP_SEED = 0, STEP_CHANGE = 1 };

#define LENGTH_BYTES 4 /* before each value of an exchange */

/* The right to change keys comes from a key, whatever methods the policies require. */
static enum osd_status check_method(struct osd_command_context *ctx,
				    enum osd_mac_algorithm *ret_algorithm)
{
	struct osd_capability capability;

	osd_capability_decode(ctx->request->decoded.capability, &capability);
	if (!ctx->keyring || capability.security_method == OSD_NOSEC ||
	    capability.icv_algorithm >= OSD_MAC_ALGORITHMS)
		return osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_METHOD);
	*ret_algorithm = (enum osd_mac_algorithm)capability.icv_algorithm;
	return OSD_OK;
}

/* ---- SET KEY ----------------------------------------------------------------------------- */

static enum osd_status name_key(struct osd_request *request, struct osd_key_name *ret_name)
{
	const struct osd_cdb *cdb = &request->decoded;
	uint8_t which = cdb->command_bits & KEY_MASK;

	*ret_name = (struct osd_key_name){which == ROOT_KEY	   ? OSD_KEY_ROOT
					  : which == PARTITION_KEY ? OSD_KEY_PARTITION
								   : OSD_KEY_WORKING,
					  cdb->partition_id, cdb->key.version};
	if (which == 0)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	if (which == ROOT_KEY && cdb->partition_id != 0)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_PARTITION);
	if (cdb->key.version >= (which == WORKING_KEY ? OSD_KEY_VERSIONS : 1))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_VERSION);
	return OSD_OK;
}

enum osd_status osd_cmd_set_key(struct osd_command_context *ctx)
{
	const struct osd_cdb *cdb = &ctx->request->decoded;
	enum osd_mac_algorithm algorithm = OSD_HMAC_SHA256;
	struct osd_key_name name;
	enum osd_status status = check_method(ctx, &algorithm);

	if (status == OSD_OK)
		status = name_key(ctx->request, &name);
	if (status == OSD_OK)
		status = osd_keyring_set(ctx->keyring, ctx->txn, &name, algorithm,
					 cdb->key.identifier, cdb->key.seed);
	/* The parent that signed the request has been invalidated since. */
	return status == OSD_E_NO_OBJECT
		       ? osd_command_fail(ctx->request, OSD_E_CDB_FIELD, FIELD_BYTE11)
		       : status;
}

/* ---- SET MASTER KEY ---------------------------------------------------------------------- */

static enum osd_status begin_exchange(struct osd_command_context *ctx,
				      enum osd_mac_algorithm algorithm, size_t length)
{
	struct osd_request *request = ctx->request;
	uint8_t theirs[OSD_DH_MAX], answer[LENGTH_BYTES + OSD_DH_MAX];
	enum osd_status status;

	if (ctx->command_data_length != length)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_LIST_LENGTH);
	if (request->decoded.key.allocation_length < LENGTH_BYTES + length)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_ALLOCATION);
	memcpy(theirs, ctx->command_data, length);
	osd_put_be(answer, length, LENGTH_BYTES);
	status = osd_exchange_begin(osd_keyring_exchanges(ctx->keyring), ctx->txn,
				    request->nexus.id, request->decoded.key.version, algorithm,
				    theirs, answer + LENGTH_BYTES);
	if (status == OSD_OK)
		osd_command_data_in(request, answer, LENGTH_BYTES + length);
	return status;
}

static enum osd_status end_exchange(struct osd_command_context *ctx, size_t length)
{
	struct osd_request *request = ctx->request;
	uint8_t values[2 * (LENGTH_BYTES + OSD_DH_MAX)];
	struct osd_rd r = osd_rd_init(values, ctx->command_data_length);
	const uint8_t *theirs, *ours;
	uint64_t first, second;

	if (ctx->command_data_length != 2 * (LENGTH_BYTES + length))
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_LIST_LENGTH);
	memcpy(values, ctx->command_data, ctx->command_data_length);
	first = osd_rd_be(&r, LENGTH_BYTES);
	theirs = osd_rd_bytes(&r, length);
	second = osd_rd_be(&r, LENGTH_BYTES);
	ours = osd_rd_bytes(&r, length);
	if (first != length || second != length)
		return OSD_E_PARAM_FIELD;
	return osd_exchange_end(osd_keyring_exchanges(ctx->keyring), ctx->txn, request->nexus.id,
				request->decoded.key.version, theirs, ours,
				request->decoded.key.identifier);
}

enum osd_status osd_cmd_set_master_key(struct osd_command_context *ctx)
{
	struct osd_request *request = ctx->request;
	uint8_t step = request->decoded.command_bits & STEP_MASK;
	size_t length = osd_dh_length(request->decoded.key.version);
	enum osd_mac_algorithm algorithm = OSD_HMAC_SHA256;
	enum osd_status status = check_method(ctx, &algorithm);

	if (status != OSD_OK)
		return status;
	if (step > STEP_CHANGE)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_BYTE11);
	if (!length)
		return osd_command_fail(request, OSD_E_CDB_FIELD, FIELD_VERSION);
	return step == STEP_SEED ? begin_exchange(ctx, algorithm, length)
				 : end_exchange(ctx, length);
}
