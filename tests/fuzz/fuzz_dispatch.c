/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_dispatch.c -- invariant: whatever CDBs and Data-Out an initiator sends one after the
 * other, each command ends once, with a SAM status, sense data that decodes and names a field
 * inside the CDB, and Data-In that stays inside its buffer, no byte of which is left unset; and
 * the store still answers afterwards.
 *
 * Input: requests back to back, each be16 length of Data-Out, 236 bytes of CDB, Data-Out (cut at
 * the input's end).  The store is in memory, new for each input.  It holds partition 1_0000h with
 * user objects 1_0000h and 1_0001h and collection 1_0002h, an empty partition 2_0000h, and the active function
 * 11h/1_0000h, which has a contract and an inverse.  No function runs: there are no sandboxes. */
#include "base/log.h"
#include "command/dispatch.h"
#include "command/request.h"
#include "function/function.h"
#include "fuzz.h"
#include "wire/cursor.h"
#include "wire/sense.h"
#include "testing/initiator.h"

#define REQUESTS_MAX 16
#define DATA_IN_MAX  (64u << 10)
#define CAPACITY     (8u << 20)
#define ANSWERS_MAX  (1u << 20)

/* One run over the input.  Data-In is filled with the pattern beforehand; two passes with
 * different patterns show which reported bytes nobody wrote. */
struct pass {
	struct osd_dispatcher *dispatcher;
	bool osc_compat;
	uint8_t pattern;
	uint8_t *answers; /* all Data-In back to back, ANSWERS_MAX bytes */
	size_t used;
};

static void check_status(const struct osd_request *request)
{
	struct osd_sense sense;

	switch (request->sam_status) {
	case OSD_SAM_GOOD:
		HOLDS(request->sense_length == 0);
		break;
	case OSD_SAM_CHECK_CONDITION:
		HOLDS(osd_sense_decode(request->sense, request->sense_length, &sense));
		HOLDS(sense.sense_key != 0);
		HOLDS(!sense.has_field || sense.field_in_data_out ||
		      sense.field_pointer < OSD_CDB_LENGTH);
		break;
	default:
		HOLDS(request->sam_status == OSD_SAM_BUSY);
	}
	HOLDS(request->data_in_length <= request->data_in_capacity);
	HOLDS(request->data_in_length <= request->data_in_needed);
	HOLDS(request->data_out_used <= request->data_out_length);
}

/* Runs one command over buffers of exactly their size. */
static uint8_t run(struct pass *pass, const uint8_t *cdb, const uint8_t *data_out,
		   size_t data_out_length, size_t data_in_capacity)
{
	struct osd_request request = {
		.cdb = cdb,
		.cdb_length = OSD_CDB_LENGTH,
		.data_out = data_out,
		.data_out_length = data_out_length,
		.data_in = data_in_capacity ? malloc(data_in_capacity) : NULL,
		.data_in_capacity = data_in_capacity,
		.nexus = {1, "iqn.fuzz", NULL, "127.0.0.1"},
	};

	HOLDS(!data_in_capacity || request.data_in);
	if (data_in_capacity)
		memset(request.data_in, pass->pattern, data_in_capacity);
	HOLDS(osd_dispatch(pass->dispatcher, &request) == OSD_DISPATCH_DONE);
	check_status(&request);
	HOLDS(!request.attributes);
	HOLDS(ANSWERS_MAX - pass->used >= request.data_in_length);
	if (request.data_in_length)
		memcpy(pass->answers + pass->used, request.data_in, request.data_in_length);
	pass->used += request.data_in_length;
	free(request.data_in);
	return request.sam_status;
}

/* Data-In as large as the CDB asks for, within reason; the CDB's last byte decides whether it is
 * cut. */
static size_t data_in_for(const uint8_t *cdb, bool osc_compat)
{
	struct osd_cdb decoded;
	uint64_t needed;
	uint16_t field;

	if (osd_cdb_decode(cdb, OSD_CDB_LENGTH, osc_compat, &decoded, &field) != OSD_OK)
		return 0;
	needed = osd_cdb_data_in_needed(&decoded);
	if (needed > DATA_IN_MAX)
		needed = DATA_IN_MAX;
	return cdb[OSD_CDB_LENGTH - 1] & 1 ? (size_t)needed / 2 : (size_t)needed;
}

static void make(struct pass *pass, uint16_t service_action, uint64_t partition_id,
		 uint64_t object_id)
{
	struct osd_cdb cdb = {.service_action = service_action,
			      .partition_id = partition_id,
			      .object_id = object_id,
			      .attributes.format = OSD_CDBFMT_LIST};
	uint8_t bytes[OSD_CDB_LENGTH];

	HOLDS(osd_cdb_encode(&cdb, bytes));
	HOLDS(run(pass, bytes, NULL, 0, 0) == OSD_SAM_GOOD);
}

static void populate(struct pass *pass)
{
	make(pass, OSD_SA_CREATE_PARTITION, 0x10000, 0);
	make(pass, OSD_SA_CREATE, 0x10000, 0x10000);
	make(pass, OSD_SA_CREATE, 0x10000, 0x10001);
	make(pass, OSD_SA_CREATE_COLLECTION, 0x10000, 0x10002);
	make(pass, OSD_SA_CREATE_PARTITION, 0x20000, 0);
}

static void make_function(struct osd_objects *objects, struct osd_functions *functions)
{
	static const struct {
		uint32_t number;
		const char *value;
	} manifest[] = {{5, "\0"},	  {6, "f"},	  {0x14, "\1"},
			{8, "main back"}, {0x17, "back"}, {0x18, "\1"}};
	struct osd_object_id id = {0x11, 0x10000};
	struct osd_object *object;
	struct osd_txn *txn;
	uint64_t made;

	HOLDS(osd_txn_begin(objects, 0, &txn) == OSD_OK);
	HOLDS(osd_partition_create(txn, id.partition_id, &made) == OSD_OK);
	HOLDS(osd_user_object_create(txn, id.partition_id, id.object_id, 1, &made) == OSD_OK);
	for (size_t i = 0; i < sizeof(manifest) / sizeof(*manifest); i++)
		HOLDS(osd_attr_set(txn, id, OSD_PAGE_FUNCTION, manifest[i].number,
				   (const uint8_t *)manifest[i].value,
				   i == 0 ? 1 : strlen(manifest[i].value)) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	HOLDS(osd_object_get(objects, id, &object) == OSD_OK);
	HOLDS(osd_object_write(object, 0, "code", 4, 0) == OSD_OK);
	osd_object_put(object);
	HOLDS(osd_function_activate(functions, id, false, NULL, NULL) == OSD_OK);
}

static void run_all(struct pass *pass, struct osd_rd r)
{
	for (int i = 0; i < REQUESTS_MAX && osd_rd_left(&r) >= 2 + OSD_CDB_LENGTH; i++) {
		size_t length = (size_t)osd_rd_be(&r, 2);
		const uint8_t *cdb = osd_rd_bytes(&r, OSD_CDB_LENGTH), *data_out;
		uint8_t *copy;

		if (length > osd_rd_left(&r))
			length = osd_rd_left(&r);
		data_out = osd_rd_bytes(&r, length);
		/* Of its exact size, so that ASan sees overruns. */
		copy = length ? malloc(length) : NULL;
		HOLDS(!length || copy);
		if (length)
			memcpy(copy, data_out, length);
		run(pass, cdb, copy, length, data_in_for(cdb, pass->osc_compat));
		free(copy);
	}
}

/* One pass over a store of its own. */
static void run_pass(struct pass *pass, const uint8_t *data, size_t size)
{
	struct osd_objects_config config = {0};
	struct osd_dispatcher_config dispatcher = {.osc_compat = pass->osc_compat};
	char message[256];

	HOLDS(osd_objects_open(&config, message, &dispatcher.objects) == OSD_OK);
	HOLDS(osd_objects_format(dispatcher.objects, CAPACITY) == OSD_OK);
	HOLDS(osd_functions_open(dispatcher.objects, NULL, message, &dispatcher.functions) ==
	      OSD_OK);
	make_function(dispatcher.objects, dispatcher.functions);
	HOLDS(osd_dispatcher_create(&dispatcher, &pass->dispatcher) == OSD_OK);
	populate(pass);
	run_all(pass, osd_rd_init(data, size));
	make(pass, OSD_SA_FLUSH_OSD, 0, 0);
	osd_dispatcher_free(pass->dispatcher);
	osd_functions_close(dispatcher.functions);
	osd_objects_close(dispatcher.objects);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t answers[2][ANSWERS_MAX];
	/* The first CDB's last byte decides. */
	bool osc_compat = size >= 2 + OSD_CDB_LENGTH && data[1 + OSD_CDB_LENGTH] & 2;
	struct pass first = {.pattern = 0xa5, .answers = answers[0], .osc_compat = osc_compat};
	struct pass second = {.pattern = 0x5a, .answers = answers[1], .osc_compat = osc_compat};

	osd_log_init(-1, "fuzz", OSD_LOG_ERROR);
	run_pass(&first, data, size);
	run_pass(&second, data, size);
	for (size_t i = 0; first.used == second.used && i < first.used; i++)
		HOLDS(first.answers[i] != first.pattern || second.answers[i] != second.pattern);
	return 0;
}
