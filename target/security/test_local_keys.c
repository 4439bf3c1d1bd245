/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test_local_keys.c -- keys of the local administrator: which stores get them, that the key in the file gives
 * all the others, partitions that come and go, a security manager that takes over, and failing calls. */
#include "security/local_keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/test.h"
#include "base/util.h"
#include "security/test_store.h"
#include "testing/stores.h"
#include "wire/capability.h"
#include "wire/cursor.h"

static const uint8_t seed[OSD_SEED_LENGTH] = "a seed of twenty by.";
static const uint8_t other[OSD_KEY_IDENTIFIER] = "manager";

static void make_store(struct store *store, bool local)
{
	make_store_of(store, OSD_CAPKEY, local);
}

static void make_partition(struct store *store, uint64_t id)
{
	struct osd_txn *txn = begin(store);

	OK(osd_partition_create(txn, id, &id));
	OK(osd_local_keys_add(store->keyring, txn, id));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
}

static void set_root(struct store *store)
{
	struct osd_key_name name = {OSD_KEY_ROOT, 0, 0};
	struct osd_txn *txn = begin(store);

	OK(osd_keyring_set(store->keyring, txn, &name, OSD_HMAC_SHA256, other, seed));
	OK(osd_txn_commit(txn, OSD_COMMIT_PROCESS));
}

static bool known(struct store *store, enum osd_key_level level, uint64_t partition_id)
{
	struct osd_secret secret;

	osd_keyring_secret(store->keyring, level, partition_id, 0, &secret);
	return secret.known;
}

/* The key in the file; false: there is no file. */
static bool read_file(struct store *store, uint8_t generation[OSD_MAC_LENGTH])
{
	FILE *file = fopen(store->local, "r");
	char digits[2 * OSD_MAC_LENGTH + 1], byte[3] = "";
	struct stat st;

	if (!file)
		return false;
	OK(fstat(fileno(file), &st));
	CHECK_EQ(st.st_mode & 0777, 0600);
	CHECK_EQ(fscanf(file, "iosd local key 1\ngeneration %64[0-9a-f]\nsystem-id ", digits), 1);
	fclose(file);
	for (size_t i = 0; i < OSD_MAC_LENGTH; i++) {
		memcpy(byte, digits + 2 * i, 2);
		generation[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	return true;
}

/* Whether the target's working key of a partition is the one that follows from the file's key. */
static bool follows(struct store *store, uint64_t partition_id)
{
	uint8_t root[OSD_MAC_LENGTH], bytes[OSD_SEED_LENGTH] = "iosd local p";
	struct osd_key_pair partition, working;
	struct osd_secret secret;

	CHECK(read_file(store, root));
	osd_put_be(bytes + 12, partition_id, 8);
	osd_key_derive(OSD_HMAC_SHA256, root, (struct osd_mac_input){bytes, sizeof(bytes)},
		       (struct osd_mac_input){"", 0}, &partition);
	osd_key_derive(OSD_HMAC_SHA256, partition.generation,
		       (struct osd_mac_input){"iosd local working 0", OSD_SEED_LENGTH},
		       (struct osd_mac_input){"", 0}, &working);
	osd_keyring_secret(store->keyring, OSD_KEY_WORKING, partition_id, 0, &secret);
	return secret.known && !memcmp(secret.key, working.authentication, OSD_MAC_LENGTH);
}

/* ---- tests ------------------------------------------------------------------------------- */

static void test_new_store(void)
{
	struct store store;
	uint8_t before[OSD_MAC_LENGTH], after[OSD_MAC_LENGTH];
	struct osd_txn *txn;
	uint64_t id = 0x10001;

	make_store(&store, true);
	CHECK(follows(&store, 0));
	make_partition(&store, 0x10000);
	CHECK(follows(&store, 0x10000));
	txn = begin(&store);
	OK(osd_partition_create(txn, id, &id));
	OK(osd_local_keys_add(store.keyring, txn, id));
	osd_txn_abort(txn);
	CHECK(!known(&store, OSD_KEY_PARTITION, id));
	CHECK(read_file(&store, before));
	OK(unlink(store.local));
	OK(symlink("/dev/null", store.local));
	reopen(&store, true);
	CHECK(read_file(&store, after)); /* a file again, whatever was in its place */
	CHECK(!memcmp(before, after, sizeof(before)));
	CHECK(follows(&store, 0x10000));
	remove_store(&store);
}

/* A store of an earlier release has a master key and no root key. */
/* Where nobody needs a capability there is none, so that its user sees what all do. */
static void test_store_that_takes_nosec(void)
{
	uint8_t root[OSD_MAC_LENGTH];
	struct store store;

	make_store_of(&store, OSD_NOSEC, true);
	CHECK(!read_file(&store, root));
	CHECK(known(&store, OSD_KEY_WORKING, 0));
	remove_store(&store);
}

static void test_earlier_store(void)
{
	struct store store;
	uint8_t key[OSD_MAC_LENGTH];

	make_store(&store, false);
	for (uint64_t id = 0x10000; id < 0x10000 + 150; id++)
		make_partition(&store, id);
	CHECK(!known(&store, OSD_KEY_PARTITION, 0x10000));
	CHECK(!read_file(&store, key));
	reopen(&store, true);
	CHECK(follows(&store, 0));
	for (uint64_t id = 0x10000; id < 0x10000 + 150; id++)
		CHECK(follows(&store, id));
	remove_store(&store);
}

static void test_taken_over(void)
{
	struct store store;
	uint8_t key[OSD_MAC_LENGTH];

	make_store(&store, true);
	make_partition(&store, 0x10000);
	set_root(&store);
	CHECK(!known(&store, OSD_KEY_WORKING, 0x10000));
	make_partition(&store, 0x10001);
	CHECK(!known(&store, OSD_KEY_PARTITION, 0x10001));
	reopen(&store, true);
	CHECK(!read_file(&store, key));
	CHECK(!known(&store, OSD_KEY_PARTITION, 0x10000));
	remove_store(&store);
}

static void test_no_place(void)
{
	struct store store;
	char message[256];

	make_store(&store, true);
	CHECK_EQ(osd_local_keys_open(store.keyring, "/no/such/folder/key", message), OSD_E_MEDIUM);
	CHECK(strstr(message, "/no/such/folder/key") != NULL);
	remove_store(&store);
}

/* All keys or none, wherever a call of the store fails.  False: one did. */
static bool open_with_fault(const char *local, uint64_t fault_at)
{
	const struct osd_test_stores faults = {.fault_at = fault_at};
	struct osd_objects_config config = {.test = &faults};
	static const struct osd_key_pair master = {{1}, {2}};
	static const uint8_t initial[OSD_KEY_IDENTIFIER] = "initial";
	struct store store = {0};
	char message[256];
	struct osd_txn *txn;
	enum osd_status status;

	OK(osd_objects_open(&config, message, &store.objects));
	if (osd_keyring_open(store.objects, NULL, message, &store.keyring) != OSD_OK) {
		osd_objects_close(store.objects);
		return false;
	}
	txn = begin(&store);
	status = osd_keyring_set_master(store.keyring, txn, initial, &master);
	if (status == OSD_OK)
		status = osd_txn_commit(OSD_STEAL(txn), OSD_COMMIT_PROCESS);
	osd_txn_abort(txn);
	if (status == OSD_OK)
		status = osd_local_keys_open(store.keyring, local, message);
	if (status != OSD_OK)
		CHECK(*message || !known(&store, OSD_KEY_ROOT, 0));
	CHECK_EQ(known(&store, OSD_KEY_ROOT, 0), known(&store, OSD_KEY_WORKING, 0));
	close_store(&store);
	return status == OSD_OK;
}

static void test_faults(void)
{
	char local[] = "/tmp/test_local_key.XXXXXX";
	unsigned good = 0, bad = 0;
	int fd = mkstemp(local);

	CHECK(fd >= 0);
	close(fd);
	for (uint64_t at = 1; good < 40 && at < 1000; at++) {
		bool all = open_with_fault(local, at);

		good = all ? good + 1 : 0;
		bad += !all;
	}
	CHECK(bad > 10 && good == 40);
	unlink(local);
}

int main(void)
{
	osd_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), "test_local_keys", OSD_LOG_WARNING);
	test_new_store();
	test_store_that_takes_nosec();
	test_earlier_store();
	test_taken_over();
	test_no_place();
	test_faults();
	return 0;
}
