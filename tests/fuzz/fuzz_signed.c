/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fuzz_signed.c -- invariant: whatever the bytes of a request that is signed with the right key, it ends
 * once, with sense data that decodes; under CMDRSP and ALLDATA that begin with the response check value.
 * Without permissions, or with one bit of the check value changed, it never succeeds.
 *
 * Input: requests back to back, each a byte of options (enum below), be16 length of Data-Out, 236 bytes of
 * CDB, Data-Out (cut at the input's end).  The capability is what the CDB has, with format, method and
 * algorithm made possible; check values are put in.  The store is in memory, new for each input, demands
 * CAPKEY, and holds partition 1_0000h with user objects 1_0000h and 1_0001h and collection 1_0002h. */
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "command/dispatch.h"
#include "command/request.h"
#include "function/function.h"
#include "fuzz.h"
#include "security/keys.h"
#include "wire/continuation.h"
#include "wire/cursor.h"
#include "wire/sense.h"
#include "testing/initiator.h"

#define REQUESTS_MAX 16
#define DATA_IN_MAX  (64u << 10)
#define CAPACITY     (8u << 20)

enum options {
	METHOD = 0x03, /* 0: CMDRSP */
	WITH_SHA1 = 0x04,
	NOTHING = 0x08,	  /* no permissions */
	FLIPPED = 0x10,	  /* a bit of the check value */
	AS_IT_IS = 0x20,  /* the capability's fields; else for everything in the partition */
	UNCHECKED = 0x40, /* Data-Out's check values are left as they are */
};

enum { AT_ICV = 184, AT_NONCE = 216, AT_DATA_OUT_OFFSET = 232, DATA_OUT_INFORMATION = 56 };

struct world {
	struct osd_objects *objects;
	struct osd_keyring *keyring;
	struct osd_nonces *nonces;
	struct osd_functions *functions;
	struct osd_dispatcher *dispatcher;
	uint64_t sequence;
};

static const uint8_t token[OSD_SECURITY_TOKEN_BYTES] = "token";

/* ---- keys ------------------------------------------------------------------------------------ */

static const char *master_file(void)
{
	static char path[64];

	if (!path[0])
		snprintf(path, sizeof(path), "fuzz-master-%d.key", (int)getpid());
	unlink(path);
	return path;
}

static void set_key(struct world *world, enum osd_key_level level, uint64_t partition_id)
{
	static const uint8_t identifier[OSD_KEY_IDENTIFIER] = "fuzzed", seed[OSD_SEED_LENGTH] = {1};
	struct osd_key_name name = {level, partition_id, 0};
	struct osd_txn *txn;

	HOLDS(osd_txn_begin(world->objects, 0, &txn) == OSD_OK);
	HOLDS(osd_keyring_set(world->keyring, txn, &name, OSD_HMAC_SHA256, identifier, seed) ==
	      OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
}

static void make(struct world *world)
{
	struct osd_txn *txn;
	uint64_t id;

	HOLDS(osd_txn_begin(world->objects, 0, &txn) == OSD_OK);
	HOLDS(osd_partition_create(txn, 0x10000, &id) == OSD_OK);
	HOLDS(osd_user_object_create(txn, 0x10000, 0x10000, 1, &id) == OSD_OK);
	HOLDS(osd_user_object_create(txn, 0x10000, 0x10001, 1, &id) == OSD_OK);
	HOLDS(osd_collection_create(txn, 0x10000, 0x10002, OSD_COLLECTION_LINKED, &id) == OSD_OK);
	HOLDS(osd_txn_commit(txn, OSD_COMMIT_PROCESS) == OSD_OK);
	set_key(world, OSD_KEY_ROOT, 0);
	for (uint64_t partition = 0; partition <= 0x10000; partition += 0x10000) {
		set_key(world, OSD_KEY_PARTITION, partition);
		set_key(world, OSD_KEY_WORKING, partition);
	}
}

/* ---- signing --------------------------------------------------------------------------------- */

static bool is_of_root(const uint8_t *cdb)
{
	uint64_t action = osd_get_be(cdb + 8, 2);

	return action == OSD_SA_FORMAT_OSD || action == OSD_SA_FLUSH_OSD ||
	       action == OSD_SA_CREATE_PARTITION || action == OSD_SA_REMOVE_PARTITION;
}

/* The capability's fixed fields, and unless told otherwise everything that the CDB's ids may name. */
static void write_capability(uint8_t *cdb, uint8_t options)
{
	uint8_t *c = cdb + OSD_CAPABILITY_AT;

	if (!(options & AS_IT_IS)) {
		uint8_t type = c[48], descriptor = c[55];

		memset(c, 0, OSD_CAPABILITY_LENGTH);
		c[48] = type;
		c[55] = descriptor;
		memset(c + 49, 0xff, 2);
		memcpy(c + 72, cdb + 16, 16);
	}
	c[0] = OSD_CAPABILITY_OSD2;
	c[1] = options & WITH_SHA1 ? OSD_HMAC_SHA1 : OSD_HMAC_SHA256;
	c[2] = options & METHOD ? options & METHOD : OSD_CMDRSP;
	if (options & NOTHING)
		memset(c + 49, 0, 5);
}

struct signer {
	enum osd_mac_algorithm algorithm;
	uint8_t key[OSD_MAC_LENGTH];
};

static void find_key(struct world *world, const uint8_t *cdb, struct signer *signer)
{
	uint64_t partition = is_of_root(cdb) ? 0 : osd_get_be(cdb + 16, 8);
	struct osd_secret secret;

	osd_keyring_secret(world->keyring, OSD_KEY_WORKING, partition, 0, &secret);
	signer->algorithm = (enum osd_mac_algorithm)cdb[OSD_CAPABILITY_AT + 1];
	osd_capability_key(signer->algorithm, secret.key, cdb + OSD_CAPABILITY_AT,
			   osd_objects_system_id(world->objects), signer->key);
}

static void sign_data_out(const struct signer *signer, const uint8_t *cdb, uint8_t *out,
			  size_t length)
{
	struct osd_cdb decoded;
	struct osd_mac mac;
	uint64_t at, counts[3];
	uint16_t field;

	if (osd_cdb_decode(cdb, OSD_CDB_LENGTH, false, &decoded, &field) != OSD_OK ||
	    osd_cdb_check_data_out(&decoded, length, &field) != OSD_OK)
		return;
	if (decoded.continuation_length >= OSD_CONTINUATION_HEADER) {
		memset(out + 8, 0, OSD_MAC_LENGTH);
		osd_mac_init(&mac, signer->algorithm, signer->key);
		osd_mac_update(&mac, cdb + AT_NONCE, OSD_NONCE_LENGTH);
		osd_mac_update(&mac, out, decoded.continuation_length);
		osd_mac_final(&mac, out + 8);
	}
	if (!osd_offset_decode((uint32_t)osd_get_be(cdb + AT_DATA_OUT_OFFSET, 4), &at) ||
	    at > length || length - at < DATA_OUT_INFORMATION)
		return;
	counts[0] = osd_cdb_command_data_out(&decoded);
	counts[1] = decoded.attributes.format != OSD_CDBFMT_SET_ONE && osd_cdb_sets(&decoded)
			    ? decoded.attributes.set_length
			    : 0;
	counts[2] = decoded.attributes.get_list_length;
	for (size_t i = 0; i < 3; i++)
		osd_put_be(out + at + 8 * i, counts[i], 8);
	osd_mac_init(&mac, signer->algorithm, signer->key);
	osd_mac_update(&mac, cdb + AT_NONCE, OSD_NONCE_LENGTH);
	osd_mac_update(&mac, out + decoded.continuation_length, (size_t)counts[0]);
	osd_mac_update(&mac, out + decoded.attributes.set_offset, (size_t)counts[1]);
	osd_mac_update(&mac, out + decoded.attributes.get_list_offset, (size_t)counts[2]);
	osd_mac_update(&mac, out + at, 24);
	osd_mac_final(&mac, out + at + 24);
}

static void sign(struct world *world, uint8_t *cdb, uint8_t *out, size_t length, uint8_t options)
{
	struct signer signer;
	struct osd_mac mac;

	write_capability(cdb, options);
	osd_put_be(cdb + AT_NONCE, osd_wall_msec(), 6);
	osd_put_be(cdb + AT_NONCE + 6, ++world->sequence, 6);
	find_key(world, cdb, &signer);
	memset(cdb + AT_ICV, 0, OSD_MAC_LENGTH);
	osd_mac_init(&mac, signer.algorithm, signer.key);
	if ((options & METHOD) == OSD_CAPKEY)
		osd_mac_update(&mac, token, sizeof(token));
	else
		osd_mac_update(&mac, cdb, OSD_CDB_LENGTH);
	osd_mac_final(&mac, cdb + AT_ICV);
	if (!(options & UNCHECKED) && length)
		sign_data_out(&signer, cdb, out, length);
	if (options & FLIPPED)
		cdb[AT_ICV + length % 20] ^= 0x10;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Not admitted, no CDB at all, or a SET MASTER KEY whose exchange has not begun: no key yet. */
static void check_unproved(const struct osd_request *request, const struct osd_sense *sense)
{
	if (sense->asc_ascq == 0x2c00)
		HOLDS(request->decoded.service_action == OSD_SA_SET_MASTER_KEY);
	else if (sense->asc_ascq != 0x2000)
		HOLDS(sense->asc_ascq == 0x2400 && sense->field_pointer == OSD_CAPABILITY_AT);
}

static void check_answer(const struct osd_request *request, uint8_t options)
{
	bool proves = (options & METHOD) != OSD_CAPKEY;
	struct osd_sense sense;

	HOLDS(request->data_in_length <= request->data_in_capacity);
	HOLDS(!request->security.admitted && !request->security.proof.grant.verified);
	if (request->sam_status == OSD_SAM_GOOD) {
		HOLDS(!(options & (NOTHING | FLIPPED)));
		return;
	}
	if (!request->sense_length) {
		HOLDS(!proves && request->sam_status != OSD_SAM_CHECK_CONDITION);
		return;
	}
	HOLDS(osd_sense_decode(request->sense, request->sense_length, &sense));
	if (sense.has_response_icv) {
		HOLDS(proves && request->sense[8] == 0x07);
	} else if (proves) {
		check_unproved(request, &sense);
	}
	if (options & FLIPPED)
		check_unproved(request, &sense);
}

static size_t data_in_for(const uint8_t *cdb)
{
	struct osd_cdb decoded;
	uint64_t needed;
	uint16_t field;

	if (osd_cdb_decode(cdb, OSD_CDB_LENGTH, false, &decoded, &field) != OSD_OK)
		return 0;
	needed = osd_cdb_data_in_needed(&decoded) + 64;
	return needed > DATA_IN_MAX ? DATA_IN_MAX : (size_t)needed;
}

static void run(struct world *world, const uint8_t *bytes, const uint8_t *data, size_t length,
		uint8_t options)
{
	uint8_t *cdb = malloc(OSD_CDB_LENGTH), *out = length ? malloc(length) : NULL;
	struct osd_request request = {.cdb = cdb,
				      .cdb_length = OSD_CDB_LENGTH,
				      .data_out = out,
				      .data_out_length = length,
				      .nexus = {1, "iqn.fuzz", NULL, "127.0.0.1"}};

	HOLDS(cdb && (out || !length));
	memcpy(cdb, bytes, OSD_CDB_LENGTH);
	if (length)
		memcpy(out, data, length);
	sign(world, cdb, out, length, options);
	request.data_in_capacity = data_in_for(cdb);
	request.data_in = request.data_in_capacity ? malloc(request.data_in_capacity) : NULL;
	HOLDS(request.data_in || !request.data_in_capacity);
	HOLDS(osd_dispatch(world->dispatcher, &request) == OSD_DISPATCH_DONE);
	check_answer(&request, options);
	touch(request.data_in, request.data_in_length);
	free(request.data_in);
	free(cdb);
	free(out);
}

static void run_all(struct world *world, struct osd_rd r)
{
	for (int i = 0; i < REQUESTS_MAX && osd_rd_left(&r) >= 3 + OSD_CDB_LENGTH; i++) {
		uint8_t options = (uint8_t)osd_rd_be(&r, 1);
		size_t length = (size_t)osd_rd_be(&r, 2);
		const uint8_t *cdb = osd_rd_bytes(&r, OSD_CDB_LENGTH);

		if (length > osd_rd_left(&r))
			length = osd_rd_left(&r);
		run(world, cdb, osd_rd_bytes(&r, length), length, options);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct osd_objects_config config = {.method = OSD_CAPKEY};
	struct osd_dispatcher_config dispatcher = {0};
	struct world world = {0};
	const char *file = master_file();
	char message[256];

	osd_log_init(-1, "fuzz", OSD_LOG_ERROR);
	HOLDS(osd_objects_open(&config, message, &world.objects) == OSD_OK);
	HOLDS(osd_objects_format(world.objects, CAPACITY) == OSD_OK);
	HOLDS(osd_keyring_open(world.objects, file, message, &world.keyring) == OSD_OK);
	HOLDS(osd_nonces_open(world.objects, world.keyring, &world.nonces) == OSD_OK);
	HOLDS(osd_functions_open(world.objects, NULL, message, &world.functions) == OSD_OK);
	dispatcher.objects = world.objects;
	dispatcher.functions = world.functions;
	dispatcher.keyring = world.keyring;
	dispatcher.nonces = world.nonces;
	memcpy(dispatcher.token, token, sizeof(token));
	make(&world);
	HOLDS(osd_dispatcher_create(&dispatcher, &world.dispatcher) == OSD_OK);
	run_all(&world, osd_rd_init(data, size));
	osd_dispatcher_free(world.dispatcher);
	osd_functions_close(world.functions);
	osd_nonces_close(world.nonces);
	osd_keyring_close(world.keyring);
	osd_objects_close(world.objects);
	unlink(file);
	return 0;
}
